"""`deltalake.table`."""

from typing import Any

from deltafast._deltalake.install import missing
from deltafast._deltalake.merge import TableMerger
from deltafast._deltalake.table import DeltaTable, TableAlterer
from deltafast._deltalake.table import create_deltalake as _create_deltalake
from deltafast._ops.optimize import TableOptimizer
from deltafast._util.filters import (
    FilePruningPredicateType,
    FilterConjunctionType,
    FilterDNFType,
    FilterLiteralType,
    FilterType,
)
from deltafast.table import DeltaTableConfig, Metadata, ProtocolVersions
from deltafast.transaction import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction
from deltafast.writer import WriterProperties

__all__ = [
    "FSCK_METRICS_FILES_REMOVED_LABEL",
    "MAX_SUPPORTED_PYARROW_WRITER_VERSION",
    "MAX_SUPPORTED_READER_VERSION",
    "NOT_SUPPORTED_PYARROW_WRITER_VERSIONS",
    "NOT_SUPPORTED_READER_VERSION",
    "SUPPORTED_READER_FEATURES",
    "SUPPORTED_WRITER_FEATURES",
    "AddAction",
    "CommitProperties",
    "DeltaTable",
    "DeltaTableConfig",
    "FilePruningPredicateType",
    "FilterConjunctionType",
    "FilterDNFType",
    "FilterLiteralType",
    "FilterType",
    "Metadata",
    "PartitionFilterType",
    "PostCommitHookProperties",
    "ProtocolVersions",
    "RemoveAction",
    "TableAlterer",
    "TableMerger",
    "TableOptimizer",
    "WriterProperties",
    "_create_deltalake",
]

PartitionFilterType = list[tuple[str, str, str | list[str]]]
FSCK_METRICS_FILES_REMOVED_LABEL = "files_removed"

# Libraries that write files with pyarrow themselves ask these; what pyarrow can write is the same for both packages.
MAX_SUPPORTED_PYARROW_WRITER_VERSION = 7
NOT_SUPPORTED_PYARROW_WRITER_VERSIONS = [3, 4, 5, 6]
SUPPORTED_WRITER_FEATURES = {"appendOnly", "invariants", "timestampNtz", "variantType", "variantType-preview"}
MAX_SUPPORTED_READER_VERSION = 3
NOT_SUPPORTED_READER_VERSION = -1
SUPPORTED_READER_FEATURES = {"timestampNtz", "variantType", "variantType-preview"}


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
