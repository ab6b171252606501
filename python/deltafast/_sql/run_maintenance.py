"""OPTIMIZE, VACUUM, RESTORE, DESCRIBE, SHOW and GENERATE through the methods of the table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from deltafast._delta_keys import MIN_READER_VERSION, MIN_WRITER_VERSION, TARGET_FILE_SIZE
from deltafast._handle import handle_of
from deltafast._ops.vacuum import vacuum as delete_files
from deltafast._sql.answers import answer, nothing
from deltafast._sql.expressions import plain
from deltafast._sql.result_columns import OPTIMIZED, RESTORED, VACUUMED
from deltafast._sql.rows import source_rows
from deltafast._sql.tree import Describe, DescribeKind, FactsKind, ShowKind
from deltafast._types import spark_name
from deltafast._util.locations import local_path
from deltafast._util.options import commit_options
from deltafast._util.values import from_epoch_ms
from deltafast.exceptions import InvalidArgumentError
from deltafast.schema import tree_of
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from deltafast._core_types import VacuumOptions
    from deltafast._sql.tables import Tables
    from deltafast._sql.tree import (
        Expression,
        Facts,
        Generate,
        Optimize,
        Reorg,
        Restore,
        Show,
        Vacuum,
    )
    from deltafast._util.dialect import Dialect

__all__ = [
    "commits",
    "facts_of",
    "run_describe",
    "run_generate",
    "run_optimize",
    "run_reorg",
    "run_restore",
    "run_show",
    "run_vacuum",
]

#: Target size of OPTIMIZE unless the table has a property for it, as in delta-spark; 1 GiB.
_TARGET_SIZE = 1 << 30

_STRINGS = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("us", "UTC")
_DETAIL = pa.schema(
    [
        ("format", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("location", pa.string()),
        ("createdAt", _TIME),
        ("lastModified", _TIME),
        ("partitionColumns", pa.list_(pa.string())),
        ("clusteringColumns", pa.list_(pa.string())),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", _STRINGS),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", pa.list_(pa.string())),
    ]
)
_JOB = pa.struct(
    [(name, pa.string()) for name in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")]
)
_HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _TIME),
        ("userId", pa.string()),
        ("userName", pa.string()),
        ("operation", pa.string()),
        ("operationParameters", _STRINGS),
        ("job", _JOB),
        ("notebook", pa.struct([("notebookId", pa.string())])),
        ("clusterId", pa.string()),
        ("readVersion", pa.int64()),
        ("isolationLevel", pa.string()),
        ("isBlindAppend", pa.bool_()),
        ("operationMetrics", _STRINGS),
        ("userMetadata", pa.string()),
        ("engineInfo", pa.string()),
    ]
)
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


def run_describe(describe: Describe, tables: Tables) -> pa.RecordBatchReader:
    """Describe a table, its history or its columns."""
    table = tables.table(describe.target)
    if describe.kind is DescribeKind.DETAIL:
        detail = table.detail()
        features = {*detail["tableFeatures"], *_implied(table)}
        given = {"properties": list(detail["properties"].items()), "tableFeatures": sorted(features)}
        name = tables.catalog_name(describe.target) or detail["name"]
        return answer([detail | given | {"name": name}], _DETAIL)
    if describe.kind is DescribeKind.HISTORY:
        return commits(DeltaTable.history(table, describe.limit))
    names = ("col_name", "data_type", "comment")
    fields = table.schema().fields
    rows = [(field.name, spark_name(tree_of(field.type)), field.metadata.get("comment")) for field in fields]
    kinds = {name: (kind, comment) for name, kind, comment in rows}
    detail = table.detail()
    for title, key in (
        ("# Partition Information", "partitionColumns"),
        ("# Clustering Information", "clusteringColumns"),
    ):
        if detail[key]:
            rows += [(title, "", ""), ("# col_name", "data_type", "comment")]
            rows += [(name, *kinds.get(name, ("", None))) for name in detail[key]]
    return answer(
        [dict(zip(names, row, strict=True)) for row in rows], pa.schema([(name, pa.string()) for name in names])
    )


#: Features that a writer version implies, by the first version that has them.
_LEGACY = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}


def _implied(table: DeltaTable) -> list[str]:
    """Return the features that a protocol without feature lists implies."""
    protocol = table.protocol()
    if protocol.writer_features is not None:
        return []
    return [name for version, names in _LEGACY.items() if version <= protocol.min_writer_version for name in names]


def facts_of(facts: Facts, tables: Tables) -> Any:
    """Return files, history or detail of a table, as rows that can be read once."""
    if facts.kind is FactsKind.FILES:
        return DeltaTable.get_add_actions(tables.table(facts.table), flatten=True)
    kind = DescribeKind.HISTORY if facts.kind is FactsKind.HISTORY else DescribeKind.DETAIL
    return run_describe(Describe(facts.table, kind, facts.limit), tables)


def commits(history: list[dict[str, Any]]) -> pa.RecordBatchReader:
    """Return `DeltaTable.history` in delta-spark's columns."""
    return answer([_commit(entry) for entry in history], _HISTORY)


def _commit(entry: dict[str, Any]) -> dict[str, Any]:
    row = {name: entry.get(name) for name in _HISTORY.names}
    row["timestamp"] = None if entry.get("timestamp") is None else from_epoch_ms(entry["timestamp"])
    for name in ("operationParameters", "operationMetrics"):
        entries = cast("dict[str, Any] | None", row[name])
        row[name] = None if entries is None else [(key, _text(value)) for key, value in entries.items()]
    return row


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) or value is None else json.dumps(value)


def run_show(show: Show, tables: Tables) -> pa.RecordBatchReader:
    """List properties, columns or partitions."""
    table = tables.table(show.target)
    if show.kind is ShowKind.COLUMNS:
        return answer(
            [{"col_name": field.name} for field in table.schema().fields], pa.schema([("col_name", pa.string())])
        )
    if show.kind is ShowKind.PARTITIONS:
        names = table.metadata().partition_columns
        if not names:
            message = f"the table {show.target.name!r} has no partitions"
            raise InvalidArgumentError(message)
        return answer(table.partitions(), pa.schema([(name, pa.string()) for name in names]))
    protocol = table.protocol()
    properties = dict(table.metadata().configuration)
    properties[MIN_READER_VERSION] = str(protocol.min_reader_version)
    properties[MIN_WRITER_VERSION] = str(protocol.min_writer_version)
    for feature in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}:
        properties[f"delta.feature.{feature}"] = "supported"
    if show.key is not None:
        properties = {
            show.key: properties.get(show.key, f"Table {show.target.name} does not have property: {show.key}")
        }
    rows = [{"key": key, "value": value} for key, value in sorted(properties.items())]
    return answer(rows, pa.schema([("key", pa.string()), ("value", pa.string())]))
