"""SHOW CREATE TABLE: a statement of Spark's SQL that makes a table with the definition of another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deltafast._delta_keys import (
    COLUMN_MAPPING_MAX_COLUMN_ID,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from deltafast._expr.types import DECLARED_TYPE
from deltafast._types import PRIMITIVES, type_text
from deltafast.schema import tree_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.schema import Field
    from deltafast.table import DeltaTable

__all__ = ["create_table_text", "quoted"]

_PLAIN: Final = re.compile(r"[A-Za-z_]\w*")


def create_table_text(table: DeltaTable, name: str | None, entry: Mapping[str, str]) -> str:
    """Return a CREATE TABLE statement with the columns, the layout and the properties of a table.

    Args:
        table: The table.
        name: Its name in a catalog; None for a table that is named by its location.
        entry: What the catalog says of it, see `Tables.catalog_entry`.
    """
    metadata, protocol = table.metadata(), table.protocol()
    location = entry.get("Location", table.table_uri)
    columns = ",\n  ".join(_column(field) for field in table.schema().fields)
    lines = [f"CREATE TABLE {name or f'delta.{_backquoted(location)}'} (\n  {columns})", "USING delta"]
    detail = table.detail()
    for clause, key in (("PARTITIONED BY", "partitionColumns"), ("CLUSTER BY", "clusteringColumns")):
        if detail[key]:
            lines.append(f"{clause} ({', '.join(map(quoted, detail[key]))})")
    if metadata.description is not None:
        lines.append(f"COMMENT {_string(metadata.description)}")
    if name is not None and entry.get("Type") != "MANAGED":
        lines.append(f"LOCATION {_string(location)}")
    properties = {key: value for key, value in metadata.configuration.items() if key != COLUMN_MAPPING_MAX_COLUMN_ID}
    # Features of a list that no property or column brings with itself.
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    properties |= {f"delta.feature.{feature}": "supported" for feature in listed}
    if properties:
        pairs = ",\n  ".join(f"{_string(key)} = {_string(value)}" for key, value in sorted(properties.items()))
        lines.append(f"TBLPROPERTIES (\n  {pairs})")
    return "\n".join(lines) + "\n"


def quoted(name: str) -> str:
    """Return a column's name, in backquotes where it needs them."""
    return name if _PLAIN.fullmatch(name) else _backquoted(name)


def _backquoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _column(field: Field) -> str:
    metadata: dict[str, Any] = field.metadata
    words = [quoted(field.name), _type(field)]
    if not field.nullable:
        words.append("NOT NULL")
    if GENERATION_EXPRESSION in metadata:
        words.append(f"GENERATED ALWAYS AS ({metadata[GENERATION_EXPRESSION]})")
    if IDENTITY_START in metadata:
        how = "BY DEFAULT" if metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) else "ALWAYS"
        start, step = metadata[IDENTITY_START], metadata[IDENTITY_STEP]
        words.append(f"GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})")
    if "CURRENT_DEFAULT" in metadata:
        words.append(f"DEFAULT {metadata['CURRENT_DEFAULT']}")
    if "comment" in metadata:
        words.append(f"COMMENT {_string(metadata['comment'])}")
    return " ".join(words)


def _type(field: Field) -> str:
    """Return the type of a column; a CHAR or VARCHAR as it was declared."""
    declared = field.metadata.get(DECLARED_TYPE)
    if declared is not None:
        return str(declared).upper()
    return type_text(
        tree_of(field.type),
        lambda name: PRIMITIVES[name].sql.upper() if name in PRIMITIVES else name.upper(),
        lambda inner, text: f"{quoted(inner['name'])}: {text}{_of_field(inner)}",
        word=str.upper,
        separator=", ",
    )


def _of_field(field: Mapping[str, Any]) -> str:
    """Return NOT NULL and the comment of a field of a struct."""
    metadata: dict[str, Any] = field.get("metadata") or {}
    comment = metadata.get("comment")
    null = "" if field.get("nullable", True) else " NOT NULL"
    return null if comment is None else f"{null} COMMENT {_string(comment)}"


def _string(text: str) -> str:
    escaped = str(text).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
