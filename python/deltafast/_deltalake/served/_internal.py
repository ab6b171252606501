"""`deltalake._internal`: those names of the extension that other libraries import."""

from typing import Any

from deltalake import __version__, rust_core_version

from deltafast._deltalake.install import init_tracing, missing, shutdown_tracing
from deltafast._deltalake.schema import Field
from deltafast._interop.raw_table import RawDeltaTable
from deltafast._ops.alter import TableFeatures
from deltafast.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)
from deltafast.schema import ArrayType, DataType, MapType, PrimitiveType, Schema, StructType, VariantType
from deltafast.transaction import RemoveAction, Transaction

__all__ = [
    "ArrayType",
    "CommitFailedError",
    "DataType",
    "DeltaError",
    "DeltaProtocolError",
    "Field",
    "MapType",
    "PrimitiveType",
    "RawDeltaTable",
    "RemoveAction",
    "Schema",
    "SchemaMismatchError",
    "StructType",
    "TableFeatures",
    "TableNotFoundError",
    "Transaction",
    "VariantType",
    "__version__",
    "init_tracing",
    "rust_core_version",
    "shutdown_tracing",
]

_NANOSECOND_TIMESTAMPS = False


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
