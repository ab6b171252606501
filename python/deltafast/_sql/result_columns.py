"""Columns of the results of statements that change tables: those of delta-spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltafast._sql import tree

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CHANGED_ROWS", "MERGED", "NO_COLUMNS", "OPTIMIZED", "RESTORED", "VACUUMED", "columns_of"]


def _numbers(names: Iterable[str]) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


NO_COLUMNS: Final = pa.schema([])
#: DELETE and UPDATE.
CHANGED_ROWS: Final = _numbers(["num_affected_rows"])
_INSERTED: Final = _numbers(["num_affected_rows", "num_inserted_rows"])
MERGED: Final = _numbers(["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"])
VACUUMED: Final = pa.schema([("path", pa.string())])
RESTORED: Final = _numbers(
    [
        "table_size_after_restore",
        "num_of_files_after_restore",
        "num_removed_files",
        "num_restored_files",
        "removed_files_size",
        "restored_files_size",
    ]
)
_CLONED: Final = _numbers(
    [
        "source_table_size",
        "source_num_of_files",
        "num_removed_files",
        "num_copied_files",
        "removed_files_size",
        "copied_files_size",
    ]
)
_SIZES = pa.struct(
    [
        ("min", pa.int64()),
        ("max", pa.int64()),
        ("avg", pa.float64()),
        ("totalFiles", pa.int64()),
        ("totalSize", pa.int64()),
    ]
)
_FILES = pa.struct([("numFiles", pa.int64()), ("size", pa.int64())])
_CLUSTERED = pa.struct(
    [
        ("inputZCubeFiles", _FILES),
        ("inputOtherFiles", _FILES),
        ("inputNumZCubes", pa.int64()),
        ("mergedFiles", _FILES),
        ("numOutputZCubes", pa.int64()),
    ]
)
_CUBES = pa.struct([("num", pa.int64()), ("size", pa.int64())])
_Z_ORDERED = pa.struct(
    [
        ("strategyName", pa.string()),
        ("inputCubeFiles", _CUBES),
        ("inputOtherFiles", _CUBES),
        ("inputNumCubes", pa.int64()),
        ("mergedFiles", _CUBES),
        ("numOutputCubes", pa.int64()),
        ("mergedNumCubes", pa.int64()),
    ]
)
_PARALLELISM = pa.struct(
    [(f"{bound}{of}Parallelism", pa.int64()) for of in ("ClusterActive", "SessionActive") for bound in ("max", "min")]
)
_VECTORS = pa.struct([("numDeletionVectorsRemoved", pa.int64()), ("numDeletionVectorRowsRemoved", pa.int64())])
#: OPTIMIZE and REORG; columns without a meaning here are null.
OPTIMIZED: Final = pa.schema(
    [
        ("path", pa.string()),
        (
            "metrics",
            pa.struct(
                [
                    ("numFilesAdded", pa.int64()),
                    ("numFilesRemoved", pa.int64()),
                    ("filesAdded", _SIZES),
                    ("filesRemoved", _SIZES),
                    ("partitionsOptimized", pa.int64()),
                    ("zOrderStats", _Z_ORDERED),
                    ("clusteringStats", _CLUSTERED),
                    ("numBins", pa.int64()),
                    ("numBatches", pa.int64()),
                    ("totalConsideredFiles", pa.int64()),
                    ("totalFilesSkipped", pa.int64()),
                    ("preserveInsertionOrder", pa.bool_()),
                    ("numFilesSkippedToReduceWriteAmplification", pa.int64()),
                    ("numBytesSkippedToReduceWriteAmplification", pa.int64()),
                    ("startTimeMs", pa.int64()),
                    ("endTimeMs", pa.int64()),
                    ("totalClusterParallelism", pa.int64()),
                    ("totalScheduledTasks", pa.int64()),
                    ("autoCompactParallelismStats", _PARALLELISM),
                    ("deletionVectorStats", _VECTORS),
                    ("numTableColumns", pa.int64()),
                    ("numTableColumnsWithStats", pa.int64()),
                ]
            ),
        ),
    ]
)

_COLUMNS: Final[dict[type, pa.Schema]] = {
    tree.Insert: _INSERTED,
    tree.Delete: CHANGED_ROWS,
    tree.Update: CHANGED_ROWS,
    tree.Merge: MERGED,
    tree.CreateTable: NO_COLUMNS,
    tree.Clone: _CLONED,
    tree.Alter: NO_COLUMNS,
    tree.Optimize: OPTIMIZED,
    tree.Reorg: OPTIMIZED,
    tree.Vacuum: VACUUMED,
    tree.Restore: RESTORED,
    tree.Convert: NO_COLUMNS,
    tree.Generate: NO_COLUMNS,
}


def columns_of(statement: tree.Statement) -> pa.Schema | None:
    """Return the columns of the result of a statement that changes tables; None if it only reads."""
    return _COLUMNS.get(type(statement))
