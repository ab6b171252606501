"""DESCRIBE and SHOW: a table's columns, partitions, properties, history and definition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from deltafast._delta_keys import MIN_READER_VERSION, MIN_WRITER_VERSION
from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._sql.answers import answer
from deltafast._sql.ddl import create_statement, quoted
from deltafast._sql.rows import constants
from deltafast._sql.tree import Describe, DescribeKind, FactsKind, ShowKind
from deltafast._types import spark_name
from deltafast._util.values import from_epoch_ms
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.schema import tree_of
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._sql.tables import Tables
    from deltafast._sql.tree import Facts, Path, Show
    from deltafast.schema import Field

__all__ = ["commits", "facts_of", "run_describe", "run_show"]

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
_DESCRIPTION: Final = pa.schema([(name, pa.string()) for name in ("col_name", "data_type", "comment")])
_COLUMN: Final = pa.schema([(name, pa.string()) for name in ("info_name", "info_value")])


def run_describe(describe: Describe, tables: Tables) -> pa.RecordBatchReader:
    """Describe a table, its history, its columns or one of them."""
    table = tables.table(describe.target)
    if describe.kind is DescribeKind.DETAIL:
        detail = table.detail()
        features = {*detail["tableFeatures"], *_implied(table)}
        given = {"properties": list(detail["properties"].items()), "tableFeatures": sorted(features)}
        name = catalog_name(tables.catalog_entry(describe.target)) or detail["name"]
        return answer([detail | given | {"name": name}], _DETAIL)
    if describe.kind is DescribeKind.HISTORY:
        return commits(DeltaTable.history(table, describe.limit))
    if describe.kind is DescribeKind.COLUMN:
        return _column(table, describe.column)
    rows = _columns(table)
    if describe.kind is DescribeKind.EXTENDED:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(key, value, "") for key, value in _details(table, tables.catalog_entry(describe.target)).items()]
        defaults = [(field, field.metadata["CURRENT_DEFAULT"]) for field in _with_defaults(table)]
        if defaults:
            rows += [("", "", ""), ("# Column Default Values", "", "")]
            rows += [(field.name, spark_name(tree_of(field.type)), str(default)) for field, default in defaults]
    return answer([dict(zip(_DESCRIPTION.names, row, strict=True)) for row in rows], _DESCRIPTION)


def _columns(table: DeltaTable) -> list[tuple[str, str, str | None]]:
    """Return name, type and comment of the columns, then those by which the table is partitioned or clustered."""
    fields = table.schema().fields
    rows = [(field.name, spark_name(tree_of(field.type)), field.metadata.get("comment")) for field in fields]
    described = {name: (kind, comment) for name, kind, comment in rows}
    detail = table.detail()
    for title, names, shown in (
        ("# Partition Information", detail["partitionColumns"], _shown),
        # These are paths already, with backquotes where they need them.
        ("# Clustering Information", detail["clusteringColumns"], str),
    ):
        if names:
            rows += [(title, "", ""), ("# col_name", "data_type", "comment")]
            rows += [(shown(name), *described.get(name, ("", None))) for name in names]
    return rows


def _shown(name: str) -> str:
    """Return a column's name as Spark shows it, in backquotes where it has other characters."""
    return name if name.isidentifier() and name.isascii() else quoted(name)


def _column(table: DeltaTable, path: Path) -> pa.RecordBatchReader:
    name, *inner = path
    if inner:
        message = f"DESCRIBE shows columns, not fields such as {'.'.join(path)}; describe `{name}`"
        raise InvalidArgumentError(message)
    field = next((field for field in table.schema().fields if field.name.lower() == name.lower()), None)
    if field is None:
        known = ", ".join(field.name for field in table.schema().fields)
        message = f"the table has no column `{name}`; it has {known}"
        raise InvalidArgumentError(message, code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": name})
    facts = {
        "col_name": name,
        "data_type": spark_name(tree_of(field.type)),
        "comment": field.metadata.get("comment", "NULL"),
    }
    return answer([{"info_name": key, "info_value": value} for key, value in facts.items()], _COLUMN)


def _details(table: DeltaTable, entry: dict[str, str]) -> dict[str, str]:
    """Return the facts of DESCRIBE EXTENDED; those of a catalog are given."""
    comment = table.metadata().description
    properties = ",".join(f"{key}={value}" for key, value in sorted(_properties(table).items()))
    location = entry.get("Location", table.table_uri)
    return {
        **{key: entry[key] for key in ("Catalog", "Namespace", "Database", "Table") if key in entry},
        **{key: entry[key] for key in ("Created Time", "Last Access", "Created By", "Type") if key in entry},
        **({} if comment is None else {"Comment": comment}),
        "Location": location,
        "Provider": "delta",
        **{key: entry[key] for key in ("Owner", "Is_managed_location") if key in entry},
        "Table Properties": f"[{properties}]",
    }


def _with_defaults(table: DeltaTable) -> list[Field]:
    return [field for field in table.schema().fields if "CURRENT_DEFAULT" in field.metadata]


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


def catalog_name(entry: Mapping[str, str]) -> str | None:
    """Return the full name of a table by its entry in a catalog; None without an entry."""
    parts = [entry.get(part) for part in ("Catalog", "Database", "Table")]
    return None if None in parts else ".".join(map(str, parts))


def run_show(show: Show, tables: Tables) -> pa.RecordBatchReader:
    """List properties, columns or partitions, or show a statement that makes such a table."""
    table = tables.table(show.target)
    if show.kind is ShowKind.COLUMNS:
        columns = [{"col_name": field.name} for field in table.schema().fields]
        return answer(columns, pa.schema([("col_name", pa.string())]))
    if show.kind is ShowKind.PARTITIONS:
        return _partitions(show, table, tables)
    if show.kind is ShowKind.CREATE_TABLE:
        entry = tables.catalog_entry(show.target)
        name = catalog_name(entry)
        location = None if name is None or entry.get("Type") == "MANAGED" else entry.get("Location")
        statement = create_statement(table, name=name, location=location) + "\n"
        return answer([{"createtab_stmt": statement}], pa.schema([("createtab_stmt", pa.string())]))
    properties = _properties(table)
    if show.key is not None:
        name = catalog_name(tables.catalog_entry(show.target)) or show.target.name
        properties = {show.key: properties.get(show.key, f"Table {name} does not have property: {show.key}")}
    rows = [{"key": key, "value": value} for key, value in sorted(properties.items())]
    return answer(rows, pa.schema([("key", pa.string()), ("value", pa.string())]))


def _properties(table: DeltaTable) -> dict[str, str]:
    """Return the properties of a table with its protocol as properties."""
    protocol = table.protocol()
    properties = dict(table.metadata().configuration)
    properties[MIN_READER_VERSION] = str(protocol.min_reader_version)
    properties[MIN_WRITER_VERSION] = str(protocol.min_writer_version)
    for feature in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}:
        properties[f"delta.feature.{feature}"] = "supported"
    return properties


def _partitions(show: Show, table: DeltaTable, tables: Tables) -> pa.RecordBatchReader:
    """Return the partitions of a table, with the types of their columns."""
    name = catalog_name(tables.catalog_entry(show.target)) or show.target.name
    if not table.metadata().partition_columns:
        message = f"the table {name!r} has no partitions"
        raise InvalidArgumentError(message, code=ErrorCode.TABLE_NOT_PARTITIONED, parameters={"table": name})
    valueless = [column for column, value in show.partition if value is None]
    if valueless:
        message = f"PARTITION names `{valueless[0]}` without a value; write {valueless[0]} = .."
        raise InvalidArgumentError(message)
    given = constants(show.partition, table, tables.zone)
    filters = [(column, "is" if value is None else "=", value) for column, value in given.items()]
    handle = handle_of(table)
    return RecordBatchReader(handle.snapshot.partitions(handle.bind_pruning(filters or None, None))).to_pyarrow()
