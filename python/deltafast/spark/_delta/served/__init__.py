"""The package `delta` of delta-spark's release `__version__`, provided by deltafast."""

from . import exceptions  # pyright: ignore[reportUnusedImport] - programs use `delta.exceptions`
from .pip_utils import configure_spark_with_delta_pip
from .tables import DeltaTable
from .version import __version__

__all__ = ["DeltaTable", "__version__", "configure_spark_with_delta_pip"]
__served_by__ = "deltafast"
