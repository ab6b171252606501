"""Engines, which join and sort for the operations."""
