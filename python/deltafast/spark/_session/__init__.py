"""A Spark session: its settings and credentials, Java classes compiled for it, code shipped to executors."""
