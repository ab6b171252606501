"""`delta.connect`: the classes of `delta.tables` accept sessions of Spark Connect, too."""

from .tables import DeltaTable

__all__ = ["DeltaTable"]
