"""Delta Lake tables of any size, with a Rust core.

    >>> from deltafast import DeltaTable, write_deltalake
    >>> write_deltalake("numbers", {"id": [1, 2]})
    >>> DeltaTable("numbers").count()
    2

Importing this package is cheap: pyarrow, DuckDB, pandas and Polars are imported by the calls
that need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltafast._libraries import raise_named
from deltafast._ops.query_source import register_query_source

if TYPE_CHECKING:
    from deltafast._core import build_profile
    from deltafast._core import version as rust_core_version
    from deltafast._deltalake.install import install_as_deltalake
    from deltafast._interop.duckdb_query import QueryBuilder
    from deltafast._interop.record_batch_reader import RecordBatchReader
    from deltafast._ops.add_actions import create_table_with_add_actions
    from deltafast._ops.alter import TableAlterer, TableFeatures
    from deltafast._ops.convert_parquet import convert_to_deltalake
    from deltafast._sql.run import sql
    from deltafast.check import StoreCheck, check_store
    from deltafast.exceptions import (
        ChangeDataNotRecordedError,
        CommitFailedError,
        CommitUnknownError,
        ConcurrentAppendError,
        ConcurrentDeleteDeleteError,
        ConcurrentDeleteReadError,
        ConcurrentTransactionError,
        ConcurrentWriteError,
        ConstraintViolatedError,
        CorruptDataError,
        CorruptLogError,
        DataFileNotFoundError,
        DeltaError,
        DeltaProtocolError,
        DeltaWarning,
        InternalError,
        InvalidArgumentError,
        MetadataChangedError,
        MissingLibraryError,
        ProtocolChangedError,
        ResourceError,
        SchemaMismatchError,
        StorageError,
        TableNotFoundError,
        VersionNotFoundError,
    )
    from deltafast.schema import ArrayType, DataType, Field, MapType, PrimitiveType, Schema, StructType, VariantType
    from deltafast.table import DeltaTable, DeltaTableConfig, Metadata, ProtocolVersions
    from deltafast.transaction import CommitProperties, PostCommitHookProperties, Transaction
    from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake

    __version__: str

__all__ = [
    "ArrayType",
    "BloomFilterProperties",
    "ChangeDataNotRecordedError",
    "ColumnProperties",
    "CommitFailedError",
    "CommitProperties",
    "CommitUnknownError",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConcurrentWriteError",
    "ConstraintViolatedError",
    "CorruptDataError",
    "CorruptLogError",
    "DataFileNotFoundError",
    "DataType",
    "DeltaError",
    "DeltaProtocolError",
    "DeltaTable",
    "DeltaTableConfig",
    "DeltaWarning",
    "Field",
    "InternalError",
    "InvalidArgumentError",
    "MapType",
    "Metadata",
    "MetadataChangedError",
    "MissingLibraryError",
    "PostCommitHookProperties",
    "PrimitiveType",
    "ProtocolChangedError",
    "ProtocolVersions",
    "QueryBuilder",
    "RecordBatchReader",
    "ResourceError",
    "Schema",
    "SchemaMismatchError",
    "StorageError",
    "StoreCheck",
    "StructType",
    "TableAlterer",
    "TableFeatures",
    "TableNotFoundError",
    "Transaction",
    "VariantType",
    "VersionNotFoundError",
    "WriterProperties",
    "__version__",
    "build_profile",
    "check_store",
    "convert_to_deltalake",
    "create_table_with_add_actions",
    "install_as_deltalake",
    "rust_core_version",
    "sql",
    "write_deltalake",
]

#: The module of each public name.
_HOME = {
    **dict.fromkeys([name for name in __all__ if name.endswith(("Error", "Warning"))], "exceptions"),
    **dict.fromkeys(
        ["ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "Schema", "StructType", "VariantType"],
        "schema",
    ),
    **dict.fromkeys(["DeltaTable", "DeltaTableConfig", "Metadata", "ProtocolVersions"], "table"),
    **dict.fromkeys(
        ["CommitProperties", "PostCommitHookProperties", "Transaction"],
        "transaction",
    ),
    **dict.fromkeys(["BloomFilterProperties", "ColumnProperties", "WriterProperties", "write_deltalake"], "writer"),
    **dict.fromkeys(["StoreCheck", "check_store"], "check"),
    **dict.fromkeys(["TableAlterer", "TableFeatures"], "_ops.alter"),
    "QueryBuilder": "_interop.duckdb_query",
    "RecordBatchReader": "_interop.record_batch_reader",
    "build_profile": "_core",
    "convert_to_deltalake": "_ops.convert_parquet",
    "create_table_with_add_actions": "_ops.add_actions",
    "install_as_deltalake": "_deltalake.install",
    "sql": "_sql.run",
}


def _query_rows(text: str, zone: str) -> Any:
    """Return the rows of a query; the module that runs queries is imported on demand."""
    return import_module("deltafast._sql.run").query(text, zone)


register_query_source(_query_rows)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name in ("rust_core_version", "__version__"):
        value: Any = import_module("deltafast._core").version
        value = value() if name == "__version__" else value
    elif name in _HOME:
        try:
            value = getattr(import_module(f"deltafast.{_HOME[name]}"), name)
        except ModuleNotFoundError as error:
            raise_named(error, f"deltafast.{name}")
            raise
    else:
        message = f"module 'deltafast' has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
