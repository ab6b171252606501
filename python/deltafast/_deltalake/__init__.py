"""The package `deltalake`, served by deltafast: the names of its release `__version__`, bound to deltafast's own.

These files are never imported under this name: `deltafast.install_as_deltalake()` and the distribution in `compat/` put
them in the place of `deltalake`. So they import nothing but deltafast, and nothing of it that is slow to import.
"""

from typing import TYPE_CHECKING, Any

from deltafast.alter import TableFeatures
from deltafast.conversion import convert_to_deltalake
from deltafast.dropin import enable_nanosecond_timestamps, init_tracing, missing
from deltafast.dropin_table import DeltaTable, write_deltalake
from deltafast.schema import DataType, Field, Schema, VariantType
from deltafast.table import Metadata
from deltafast.transaction import CommitProperties, PostCommitHookProperties, Transaction
from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties

if TYPE_CHECKING:
    from deltafast.query import ViewQueryBuilder as QueryBuilder

__version__ = "1.6.6"
__served_by__ = "deltafast"

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "CommitProperties",
    "DataType",
    "DeltaTable",
    "Field",
    "Metadata",
    "PostCommitHookProperties",
    "QueryBuilder",
    "Schema",
    "TableFeatures",
    "Transaction",
    "VariantType",
    "WriterProperties",
    "__version__",
    "convert_to_deltalake",
    "enable_nanosecond_timestamps",
    "init_tracing",
    "rust_core_version",
    "write_deltalake",
]

# Asked for and called by whoever wants nanoseconds where they can be had.
_NANOSECOND_TIMESTAMPS = False


def _disable_nanosecond_timestamps() -> None:  # pyright: ignore[reportUnusedFunction]
    """Nothing: they are never enabled."""


def _nanosecond_timestamps_enabled() -> bool:  # pyright: ignore[reportUnusedFunction]
    return False


def rust_core_version() -> str:
    """The version of the core behind `deltalake`: deltafast's."""
    from deltafast import __version__ as version

    return version


def __getattr__(name: str) -> Any:
    if name == "QueryBuilder":  # it brings DuckDB along
        from deltafast.query import ViewQueryBuilder

        return ViewQueryBuilder
    return missing(__name__, name)
