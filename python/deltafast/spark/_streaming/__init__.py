"""Spark streams that read from and write to tables."""
