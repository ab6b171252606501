"""`delta.version`: the release of delta-spark whose names these modules have."""

__all__ = ["__version__"]

__version__ = "4.4.0"
