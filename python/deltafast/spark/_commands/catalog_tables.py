"""Catalog tables created from existing ones: a Delta table at the location, another table, Parquet files."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from deltafast._delta_keys import COLUMN_MAPPING_MAX_COLUMN_ID
from deltafast._expr.lexer import unescape
from deltafast._sql.tree import TableName
from deltafast._util.write_modes import CreateMode
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._commands.catalog import facts_of_name, handle, place_of_name
from deltafast.spark._commands.create_table import NewTable, create, place_of_new, where
from deltafast.spark._commands.session_tables import SparkTables
from deltafast.spark._conditions import Operation
from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark._session.storage import place_of
from deltafast.spark.exceptions import during
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast.spark._session.session import Session

__all__ = [
    "Like",
    "OfCatalog",
    "Relocation",
    "adopted",
    "check_location",
    "create_like",
    "like_of",
    "of_catalog",
    "relocation_of",
]

_NAME: Final = r"(?:[\w]+|`(?:[^`]|``)+`)(?:\s*\.\s*(?:[\w]+|`(?:[^`]|``)+`))*"
_LIKE: Final = re.compile(
    rf"""(?isx) \s* CREATE \s+ TABLE \s+ (IF\s+NOT\s+EXISTS\s+)? ({_NAME}) \s+ LIKE \s+ ({_NAME})
    (?: \s+ USING \s+ `?delta`? )? (?: \s+ LOCATION \s+ '([^']*)' )? \s* ;? \s*"""
)
_RELOCATION: Final = re.compile(
    rf"""(?is)\s*ALTER\s+TABLE\s+({_NAME})\s+SET\s+LOCATION\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*;?\s*"""
)
_CONVERT: Final = re.compile(
    rf"(?is)\s*CONVERT\s+TO\s+DELTA\s+(?!parquet\s*\.\s*`|iceberg\s*\.)({_NAME})(\s+NO\s+STATISTICS)?"
)


class Like(NamedTuple):
    """`CREATE TABLE a LIKE b`."""

    name: str
    source: str
    location: str | None
    if_not_exists: bool


def like_of(text: str) -> Like | None:
    """Parse a `CREATE TABLE .. LIKE ..` statement of tables that Delta may have."""
    match = _LIKE.fullmatch(text)
    return None if match is None else Like(match[2], match[3], match[4], match[1] is not None)


class Relocation(NamedTuple):
    """`ALTER TABLE a SET LOCATION '..'`."""

    name: str
    location: str


def relocation_of(text: str) -> Relocation | None:
    """Parse a statement that gives a table of the catalog another location; None for any other."""
    match = _RELOCATION.fullmatch(text)
    return None if match is None or path_in(match[1]) is not None else Relocation(match[1], unescape(match[2][1:-1]))


def check_location(session: Session, moved: Relocation) -> None:
    """Check that the table at a new location has the columns and partitions of the one at the old.

    Raises:
        TableNotFoundError: There is no table at the new location.
        InvalidArgumentError: Its columns, or its partition columns, are others.
    """
    tables = SparkTables.of(session)
    with during(Operation.COMMAND):
        there = handle(session, place_of(session, moved.location))
    here = handle(session, place_of(session, tables.place(_named(moved.name))))
    definitions = [
        (_alike([json.loads(field.to_json()) for field in table.schema().fields]), table.metadata().partition_columns)
        for table in (here, there)
    ]
    if definitions[0] != definitions[1]:
        message = f"the table at {moved.location} has other columns than {moved.name}"
        code = ErrorCode.LOCATION_SCHEMA_MISMATCH
        raise InvalidArgumentError(message, code=code, parameters={"path": moved.location})


def create_like(session: Session, like: Like) -> None:
    """Create an empty table with the columns, the partitioning and the properties of another.

    Raises:
        InvalidArgumentError: The table already exists.
    """
    tables = SparkTables.of(session)
    source = handle(session, place_of(session, tables.place(_named(like.source))))
    metadata = source.metadata()
    path, name, is_managed = where(session, like.name, like.location)
    table = NewTable(
        CreateMode.IF_NOT_EXISTS if like.if_not_exists else CreateMode.CREATE,
        path,
        name,
        [_bare(json.loads(field.to_json())) for field in source.schema().fields],
        list(metadata.partition_columns),
        [],
        {key: value for key, value in metadata.configuration.items() if key != COLUMN_MAPPING_MAX_COLUMN_ID},
        metadata.description,
        is_managed,
    )
    create(session, table)


_MAPPING: Final = "delta.columnMapping."


def _named(name: str) -> TableName:
    path = path_in(name)
    return TableName(path or name, by_path=path is not None, pos=0)


def _bare(node: Any) -> Any:
    """Return a field without its physical name and id, which a new table assigns again."""
    return _without(node, lambda key: key.startswith(_MAPPING))


def _alike(node: Any) -> Any:
    """Return a type without the metadata of its fields."""
    return _without(node, lambda key: key == "metadata")


def _without(node: Any, leave: Callable[[str], bool]) -> Any:
    """Return JSON without some keys."""
    if isinstance(node, list):
        return [_without(item, leave) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    return {key: _without(value, leave) for key, value in cast("dict[str, Any]", node).items() if not leave(key)}


def adopted(session: Session, table: NewTable) -> NewTable:
    """Return the table to create; a table with the same definition at its location is only given a name.

    Args:
        session: The session.
        table: A table with an explicit location.

    Raises:
        InvalidArgumentError: The existing table has other columns, or other partition columns.
    """
    if table.mode is not CreateMode.CREATE or table.name is None:
        return table
    place = place_of_new(session, table)
    if not DeltaTable.is_deltatable(place.uri, place.options or None):
        return table
    if place_of_name(session, table.name) is not None:
        return table
    there = handle(session, place)
    fields = [json.loads(field.to_json()) for field in there.schema().fields]
    if table.fields and _alike(fields) != _alike(table.fields):
        message = (
            f"the specified schema does not match the existing schema at {place.hadoop}: give the same columns, or "
        )
        raise InvalidArgumentError(
            message + "none", code=ErrorCode.TABLE_DEFINITION_MISMATCH, parameters={"path": place.hadoop}
        )
    if table.partition and table.partition != list(there.metadata().partition_columns):
        message = f"the specified partitioning does not match the existing partitioning at {place.hadoop}"
        raise InvalidArgumentError(message, code=ErrorCode.TABLE_DEFINITION_MISMATCH, parameters={"path": place.hadoop})
    return table._replace(mode=CreateMode.IF_NOT_EXISTS)


class OfCatalog(NamedTuple):
    """`CONVERT TO DELTA` of a table of the catalog."""

    name: str
    #: The statement with the table's folder instead.
    text: str


def of_catalog(session: Session, text: str) -> OfCatalog | None:
    """Parse a statement that converts a table of the catalog; None for any other.

    Raises:
        InvalidArgumentError: The table does not consist of Parquet files.
    """
    match = _CONVERT.match(text)
    if match is None:
        return None
    name = match[1]
    facts = facts_of_name(session, name)
    if facts.get("Provider", "").lower() != "parquet" or "Location" not in facts:
        message = f"{name} is not a table of Parquet files of the session's catalog; name one, or write parquet.`path`"
        raise InvalidArgumentError(message)
    partition = [column.name for column in session.spark.catalog.listColumns(name) if column.isPartition]
    types = {field.name: field.dataType.simpleString() for field in session.spark.table(name).schema.fields}
    columns = ", ".join(f"{quoted(column)} {types[column]}" for column in partition)
    by = f" PARTITIONED BY ({columns})" if partition and "PARTITIONED" not in text.upper() else ""
    folder = facts["Location"].removeprefix("file:") if facts["Location"].startswith("file:/") else facts["Location"]
    return OfCatalog(name, f"CONVERT TO DELTA parquet.{quoted(folder)}{text[match.end(1) :].rstrip().rstrip(';')}{by}")
