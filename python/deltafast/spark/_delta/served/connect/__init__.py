"""`delta.connect`: the classes of `delta.tables` accept sessions of Spark Connect, too."""

from . import exceptions  # pyright: ignore[reportUnusedImport] - PySpark raises its classes once it is imported
from .tables import DeltaTable

__all__ = ["DeltaTable"]
