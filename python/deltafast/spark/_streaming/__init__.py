"""Spark's streams from and into tables."""
