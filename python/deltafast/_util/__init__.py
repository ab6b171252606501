"""Conversions of arguments, values and paths, shared by the rest of the package."""
