"""Conversions of arguments, values and paths that the rest of the package shares."""
