"""A table's definition as a CREATE TABLE statement, which `deltafast.sql` and Spark run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast._delta_keys import (
    COLUMN_MAPPING_MAX_COLUMN_ID,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from deltafast._expr.types import DECLARED_TYPE, sql_name, type_from_json
from deltafast._types import type_text
from deltafast._util.column_path import parts_of_text
from deltafast.exceptions import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.table import DeltaTable

__all__ = ["create_statement", "quoted", "sql_type", "string"]

#: Properties that the table keeps for itself.
_OWN = {COLUMN_MAPPING_MAX_COLUMN_ID, MATERIALIZED_ROW_ID} | {
    MATERIALIZED_ROW_COMMIT_VERSION,
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
}


def create_statement(
    table: DeltaTable, address: str | None = None, *, name: str | None = None, location: str | None = None
) -> str:
    """Return the statement that creates an empty table with the same columns, layout and properties.

    CHECK constraints are properties (`delta.constraints.NAME`), which the statement has, too.

    Args:
        table: The table.
        address: The path or URL of the new table; by default that of the table itself.
        name: The name of the new table in a catalog, instead of its address.
        location: Its location, if it has a name and the catalog does not choose it.
    """
    address = table.table_uri.rstrip("/").removeprefix("file://") if address is None else address
    metadata, detail = table.metadata(), table.detail()
    columns = ",\n  ".join(_column(field) for field in json.loads(table.schema().to_json())["fields"])
    lines = [f"CREATE TABLE {name or f'delta.{quoted(address)}'} (\n  {columns}\n)"]
    lines.append("USING DELTA")
    if metadata.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted, metadata.partition_columns))})")
    if detail["clusteringColumns"]:
        paths = (".".join(map(quoted, parts_of_text(name))) for name in detail["clusteringColumns"])
        lines.append(f"CLUSTER BY ({', '.join(paths)})")
    if metadata.description:
        lines.append(f"COMMENT {string(metadata.description)}")
    if location is not None:
        lines.append(f"LOCATION {string(location)}")
    protocol = table.protocol()
    # Features that a protocol lists: no property or column needs to bring them.
    properties = {
        f"delta.feature.{feature}": "supported"
        for feature in (*(protocol.reader_features or ()), *(protocol.writer_features or ()))
    }
    properties |= {key: value for key, value in metadata.configuration.items() if key not in _OWN}
    if properties:
        pairs = ",\n  ".join(f"{string(key)} = {string(value)}" for key, value in sorted(properties.items()))
        lines.append(f"TBLPROPERTIES (\n  {pairs}\n)")
    return "\n".join(lines)


def sql_type(data_type: Any) -> str:
    """Return a type of the log's schema in Spark SQL, with the comments and NOT NULL of nested fields."""
    return type_text(data_type, lambda name: sql_name(type_from_json(name)), _nested, word=str.upper)


def quoted(name: str) -> str:
    """Return an identifier."""
    return f"`{name.replace('`', '``')}`"


def string(value: str) -> str:
    """Return a string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    if not escaped.isprintable():
        escaped = "".join(c if printable(c) == c else _code_point(c) for c in escaped)
    return f"'{escaped}'"


def _code_point(character: str) -> str:
    """Return the escape of a character in a string of Spark SQL."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 - of four hexadecimal digits


def _nested(field: Mapping[str, Any], type_name: str) -> str:
    comment = field["metadata"].get("comment")
    return (
        f"{quoted(field['name'])}: {type_name}"
        f"{'' if field['nullable'] else ' NOT NULL'}{f' COMMENT {string(comment)}' if comment else ''}"
    )


def _column(field: Mapping[str, Any]) -> str:
    metadata = field["metadata"]
    # CHAR and VARCHAR are strings in the schema.
    declared: str | None = metadata.get(DECLARED_TYPE)
    parts = [quoted(field["name"]), sql_type(field["type"]) if declared is None else declared.upper()]
    if not field["nullable"]:
        parts.append("NOT NULL")
    if GENERATION_EXPRESSION in metadata:
        parts.append(f"GENERATED ALWAYS AS ({metadata[GENERATION_EXPRESSION]})")
    if IDENTITY_START in metadata:
        how = "BY DEFAULT" if metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) else "ALWAYS"
        start, step = metadata[IDENTITY_START], metadata[IDENTITY_STEP]
        parts.append(f"GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})")
    if "CURRENT_DEFAULT" in metadata:
        parts.append(f"DEFAULT {metadata['CURRENT_DEFAULT']}")
    if metadata.get("comment"):
        parts.append(f"COMMENT {string(metadata['comment'])}")
    return " ".join(parts)
