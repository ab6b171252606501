"""A Spark session: its settings and credentials, the Java classes compiled for it, the code shipped to executors."""
