"""The package `deltalake`, served by deltafast: the names of its release `__version__`, bound to those of deltafast.

These files are never imported under this name: `deltafast.install_as_deltalake()` and the distribution in
`compat/deltalake/` load them as `deltalake`. So they import only deltafast, and no part of it that is slow to import.
"""

from typing import TYPE_CHECKING, Any

from deltafast._deltalake.install import SUBMODULES as _SUBMODULES
from deltafast._deltalake.install import disable_nanosecond_timestamps as _disable_nanosecond_timestamps
from deltafast._deltalake.install import enable_nanosecond_timestamps, init_tracing, missing
from deltafast._deltalake.install import nanosecond_timestamps_enabled as _nanosecond_timestamps_enabled
from deltafast._deltalake.schema import Field
from deltafast._deltalake.table import DeltaTable, convert_to_deltalake, write_deltalake
from deltafast._ops.alter import TableFeatures
from deltafast.schema import DataType, Schema, VariantType
from deltafast.table import Metadata
from deltafast.transaction import CommitProperties, PostCommitHookProperties, Transaction
from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties

if TYPE_CHECKING:
    from deltafast._deltalake.query import QueryBuilder

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
    "_disable_nanosecond_timestamps",
    "_nanosecond_timestamps_enabled",
    "convert_to_deltalake",
    "enable_nanosecond_timestamps",
    "init_tracing",
    "rust_core_version",
    "write_deltalake",
]

# For libraries that use nanoseconds if they are available.
_NANOSECOND_TIMESTAMPS = False


def rust_core_version() -> str:
    """The version of the core behind `deltalake`: deltafast's."""
    from deltafast import _core

    return _core.version()


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES["deltalake"]])


def __getattr__(name: str) -> Any:
    if name == "QueryBuilder":  # it brings DuckDB along
        from deltafast._deltalake.query import QueryBuilder

        return QueryBuilder
    return missing(__name__, name)
