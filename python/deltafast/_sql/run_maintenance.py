"""OPTIMIZE, VACUUM, RESTORE and GENERATE through the methods of the table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast._delta_keys import TARGET_FILE_SIZE
from deltafast._handle import handle_of
from deltafast._ops.vacuum import vacuum as delete_files
from deltafast._sql.answers import answer, nothing
from deltafast._sql.expressions import plain
from deltafast._sql.result_columns import OPTIMIZED, RESTORED, VACUUMED
from deltafast._sql.rows import source_rows
from deltafast._util.locations import local_path
from deltafast._util.options import commit_options
from deltafast.exceptions import InvalidArgumentError
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    import pyarrow as pa

    from deltafast._core_types import VacuumOptions
    from deltafast._sql.tables import Tables
    from deltafast._sql.tree import (
        Expression,
        Generate,
        Optimize,
        Reorg,
        Restore,
        Vacuum,
    )
    from deltafast._util.dialect import Dialect

__all__ = [
    "run_generate",
    "run_optimize",
    "run_reorg",
    "run_restore",
    "run_vacuum",
]

#: Target size of OPTIMIZE unless the table has a property for it, as in delta-spark; 1 GiB.
_TARGET_SIZE = 1 << 30

_RESTORED = {"num_removed_files": "num_removed_file", "num_restored_files": "num_restored_file"}


def run_optimize(optimize: Optimize, tables: Tables) -> pa.RecordBatchReader:
    """Compact or cluster the table's files."""
    table = tables.table(optimize.target)
    options = _options(table, tables)
    where = _where(table, optimize.where, tables.dialect)
    laid = tables.optimizer(table)
    if optimize.full:
        if where is not None or optimize.zorder_by:
            message = "OPTIMIZE .. FULL takes neither WHERE nor ZORDER BY: it reclusters the whole table"
            raise InvalidArgumentError(message)
        return _optimized(table, laid.cluster(full=True, **options))
    if optimize.zorder_by:
        columns = [".".join(path) for path in optimize.zorder_by]
        return _optimized(table, laid.z_order(columns, partition_filters=where, **options))
    return _optimized(table, laid.compact(where, **options))


def run_reorg(reorg: Reorg, tables: Tables) -> pa.RecordBatchReader:
    """Rewrite files with deleted rows or dropped columns, or files that Iceberg cannot read."""
    table = tables.table(reorg.target)
    optimizer, options = tables.optimizer(table), _options(table, tables)
    if reorg.upgrade is None:
        return _optimized(table, optimizer.purge(_where(table, reorg.where, tables.dialect), **options))
    result = optimizer.upgrade_uniform(reorg.upgrade, **options)
    # If no file had to be rewritten, delta-spark returns no row.
    return _optimized(table, result) if result["numFilesRemoved"] else answer([], OPTIMIZED)


def _where(table: DeltaTable, where: Expression | None, dialect: Dialect) -> str | None:
    columns = [field.name for field in table.schema().fields]
    return None if where is None else plain(where, columns, dialect=dialect)


def _options(table: DeltaTable, tables: Tables) -> dict[str, Any]:
    options: dict[str, Any] = {"commit_properties": tables.commit_properties}
    size = tables.optimized_file_size()
    if size is not None or TARGET_FILE_SIZE not in table.metadata().configuration:
        options["target_size"] = size or _TARGET_SIZE
    return options


def _optimized(table: DeltaTable, result: dict[str, Any]) -> pa.RecordBatchReader:
    metrics = dict(result)
    for side in ("filesAdded", "filesRemoved"):
        sizes = json.loads(metrics[side])
        metrics[side] = sizes if sizes["totalFiles"] else sizes | {"min": None, "max": None}
    # Number of commits; `deltalake` has the number of files under that name.
    metrics["numBatches"] = 1
    metrics["numTableColumns"] = len(table.schema().fields)
    if metrics["plannerStrategy"] == "zOrder":
        files = {"num": metrics["numFilesRemoved"], "size": metrics["filesRemoved"]["totalSize"]}
        metrics["zOrderStats"] = {
            "strategyName": "all",
            "inputCubeFiles": {"num": 0, "size": 0},
            "inputOtherFiles": files,
            "inputNumCubes": 0,
            "mergedFiles": files,
            "numOutputCubes": metrics["partitionsOptimized"],
        }
    return answer([{"path": table.table_uri, "metrics": metrics}], OPTIMIZED)


def run_vacuum(vacuum: Vacuum, tables: Tables) -> pa.RecordBatchReader:
    """Delete files that no version needs; returns their paths for a dry run, else the table's path."""
    table = tables.table(vacuum.target)
    inventory = None if vacuum.inventory is None else source_rows(vacuum.inventory, tables)
    if inventory is not None and vacuum.lite:
        message = "LITE only uses the log, so USING INVENTORY would have no effect: give one of them"
        raise InvalidArgumentError(message)
    options: VacuumOptions = {
        "dry_run": vacuum.dry_run,
        "enforce_retention": tables.enforce_retention,
        "full": not vacuum.lite,
        "commit_options": commit_options(None if vacuum.dry_run else tables.commit_properties),
    }
    paths = delete_files(handle_of(table), vacuum.hours, options, inventory)
    root = local_path(table.table_uri)
    found = [f"{root}{path}" for path in paths] if vacuum.dry_run else [root]
    return answer([{"path": path} for path in found], VACUUMED)


def run_restore(restore: Restore, tables: Tables) -> pa.RecordBatchReader:
    """Restore an older version."""
    # Through the class, here and below: a subclass may return results as in `deltalake`.
    table = tables.table(restore.target)
    at = tables.at(restore.at)
    tables.check_timestamp(table, at)
    result = DeltaTable.restore(
        table,
        at,
        protocol_downgrade_allowed=tables.allows_protocol_downgrade(),
        commit_properties=tables.commit_properties,
    )
    row = {name: result[_RESTORED.get(name, name)] for name in RESTORED.names}
    return answer([row], RESTORED)


def run_generate(generate: Generate, tables: Tables) -> pa.RecordBatchReader:
    """Write symlink manifests."""
    tables.table(generate.target).generate()
    return nothing()
