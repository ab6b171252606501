"""Delta's statements and queries on Spark."""
