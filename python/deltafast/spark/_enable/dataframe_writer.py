"""PySpark's `DataFrameReader` and `DataFrameWriter` while deltafast is enabled.

The format alone would be enough for paths; but a frame that is created here is a part of the query's own plan, whatever
the table's features, and existing tables of the catalog are written as delta-spark does it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from deltafast._util.write_modes import CreateMode, WriteMode, save_mode
from deltafast.exceptions import DeltaError, ErrorCode, InvalidArgumentError
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._commands.catalog import name_in_catalog, place_of_name, place_of_view
from deltafast.spark._commands.create_table import NewTable, create, where
from deltafast.spark._conditions import Operation
from deltafast.spark._enable.provider import CLUSTER, PARTITION, properties_in, read_frame, write_frame
from deltafast.spark._session.session import Session
from deltafast.spark._write.physical_schema import by_position
from deltafast.spark.exceptions import UnsupportedSchemaException, translated

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Note",
    "Replace",
    "columns_of",
    "note_of",
    "note_of_write",
    "noting",
    "options_to_load",
    "put",
    "sequence_of",
    "take_format_of_table",
    "text_of",
    "with_given_schema",
    "write_inserted",
]

#: Replaces a method of a class by the result of a function, which gets PySpark's method.
Replace: TypeAlias = "Callable[[Any, str, Callable[[Any], Any]], None]"

_KEY = "_deltafast_note"
_OVERWRITE_MODE = "partitionOverwriteMode"


class Note:
    """The arguments of a reader's or writer's methods, which PySpark passes only to Java."""

    def __init__(self) -> None:
        self.format: str | None = None
        self.mode = "errorifexists"
        #: The schema that the user gave a reader, as DDL or a type.
        self.schema: Any = None
        self.is_bucketed = False
        self.options: dict[str, str] = {}
        self.partition: list[str] = []
        self.cluster: list[str] = []

    def is_delta(self, spark: Any) -> bool:
        """Return whether it reads or writes Delta tables."""
        return (self.format or spark.conf.get("spark.sql.sources.default", "parquet")).lower() == "delta"

    def given(self, path: str) -> dict[str, str]:
        """Return everything as options, as Spark passes them to a format."""
        found = self.options | {"path": path}
        if self.partition:
            found[PARTITION] = json.dumps(self.partition)
        if self.cluster:
            found[CLUSTER] = json.dumps(self.cluster)
        return found


def note_of(writer: Any) -> Note:
    """Return the recorded arguments of a writer."""
    if not hasattr(writer, _KEY):
        setattr(writer, _KEY, Note())
    return getattr(writer, _KEY)


def sequence_of(writer: Any, columns: list[str]) -> Any:
    """Return names of columns as the method of Java's writer takes them."""
    from pyspark.sql.classic.column import _to_seq  # pyright: ignore[reportPrivateUsage]

    return cast("Any", _to_seq)(writer._spark._sc, columns)


def text_of(value: Any) -> str:
    """Return an option's value as a string in Spark's form."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def put(replace: Replace) -> None:
    """Patch the methods."""
    from pyspark.sql import DataFrameReader, DataFrameWriter

    for name in ("format", "option", "options", "schema"):
        replace(DataFrameReader, name, noting(name))
    replace(DataFrameReader, "load", _load)
    for name in ("format", "mode", "option", "options", "partitionBy", "clusterBy", "bucketBy"):
        replace(DataFrameWriter, name, noting(name))
    replace(DataFrameWriter, "saveAsTable", _save_as_table)
    replace(DataFrameWriter, "insertInto", _insert_into)


def noting(name: str) -> Callable[[Any], Any]:
    """Return a patch of a writer's method that also records its arguments."""

    def make(before: Any) -> Any:
        def method(writer: Any, *values: Any, **named: Any) -> Any:
            keep(note_of(writer), name, values, named)
            return before(writer, *values, **named)

        return method

    return make


def keep(note: Note, name: str, values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Record the arguments of one method."""
    if name in ("partitionBy", "clusterBy"):
        first: Any = values[0] if len(values) == 1 else values
        columns: list[Any] = list(cast("list[Any]", first)) if isinstance(first, list | tuple) else [first]
        setattr(note, "partition" if name == "partitionBy" else "cluster", [str(column) for column in columns])
        return
    if name == "options":
        note.options |= {key: text_of(value) for key, value in named.items() if value is not None}
        return
    given = [*values, *named.values()]
    if name == "schema":
        note.schema = given[0]
    elif name == "bucketBy":
        note.is_bucketed = True
    elif name == "option":
        note.options[str(given[0])] = text_of(given[1])
    elif given and given[0] is not None:
        setattr(note, name, str(given[0]) if name == "format" else str(given[0]).lower())


def options_to_load(
    reader: Any,
    spark: Any,
    path: Any,
    format: Any,  # noqa: A002 - PySpark's name
    schema: Any,
    options: dict[str, Any],
) -> dict[str, str] | None:
    """Record the arguments of a reader's `load`; return all options if it reads a Delta table, else None."""
    if format is not None:
        reader.format(format)
    if schema is not None:
        reader.schema(schema)
    reader.options(**options)
    note = note_of(reader)
    if not note.is_delta(spark) or not (path is None or isinstance(path, str)):
        return None
    return note.options | ({} if path is None else {"path": path})


def note_of_write(writer: Any, format: Any, mode: Any, partition: Any, options: dict[str, Any]) -> Note:  # noqa: A002
    """Record the arguments of a writer's last method, and return all recorded ones."""
    writer.mode(mode).options(**options)
    if partition is not None:
        writer.partitionBy(partition)
    if format is not None:
        writer.format(format)
    note = note_of(writer)
    if note.is_bucketed and note.is_delta(writer._spark):
        message = "a Delta table has no buckets: leave bucketBy out, or cluster the table by clusterBy"
        raise InvalidArgumentError(message)
    return note


def take_format_of_table(note: Note, session: Session, name: str) -> None:
    """Give an append without a format that of the table if it is a Delta table, as delta-spark's catalog does."""
    is_append = note.format is None and save_mode(note.mode) is WriteMode.APPEND
    if is_append and place_of_name(session, name) is not None:
        note.format = "delta"


def with_given_schema(frame: Any, note: Note) -> Any:
    """Check that the user gave no schema or the table's, and return the frame.

    Raises:
        UnsupportedSchemaException: The user gave another schema.
    """
    from pyspark.sql.types import StructType

    if note.schema is not None:
        given = note.schema if isinstance(note.schema, StructType) else StructType.fromDDL(note.schema)
        if given.simpleString() != frame.schema.simpleString():
            message = "format('delta') does not support user-specified schema: leave schema out, the log has it"
            raise UnsupportedSchemaException(message)
    return frame


def _load(before: Any) -> Any:
    def load(reader: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
        known = options_to_load(reader, reader._spark, path, format, schema, options)
        if known is not None:
            # Spark's own implementation raises Spark's exceptions for errors.
            frame = None
            with suppress(DeltaError):
                frame = read_frame(reader._spark, known)
            if frame is not None:
                return with_given_schema(frame, note_of(reader))
        return before(reader, path)

    return load


def _save_as_table(before: Any) -> Any:
    @translated(Operation.WRITE)
    def save_as_table(
        writer: Any,
        name: str,
        format: str | None = None,  # noqa: A002 - PySpark's name
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        note, spark = note_of_write(writer, format, mode, partitionBy, options), writer._spark
        inside = path_in(name)
        if inside is not None:
            write_frame(writer._df, save_mode(note.mode), note.given(inside))
            return
        session = Session(spark)
        is_in_unity_catalog = name_in_catalog(session, name) is not None
        if is_in_unity_catalog and note.format is None:
            # All its tables that Spark opens are Delta tables.
            note.format = "delta"
        take_format_of_table(note, session, name)
        if note.is_delta(spark):
            there = place_of_name(session, name)
            if there is not None and save_mode(note.mode) in (WriteMode.APPEND, WriteMode.OVERWRITE):
                write_frame(writer._df, save_mode(note.mode), note.given(there))
                return
            if is_in_unity_catalog:
                _create_in_unity_catalog(session, name, note, writer._df)
                return
            # The columns are options only: Spark passes those of `clusterBy` to the catalog alone, and moves those of
            # `partitionBy` to the end of the rows, whose order is that of the new table.
            for key, columns in ((PARTITION, note.partition), (CLUSTER, note.cluster)):
                if columns:
                    writer._jwrite = writer._jwrite.option(key, json.dumps(columns))
            if note.partition:
                writer._jwrite = writer._jwrite.partitionBy(sequence_of(writer, []))
        before(writer, name)

    return save_as_table


def _create_in_unity_catalog(session: Session, name: str, note: Note, rows: Any) -> None:
    """Create a table of Unity Catalog, at the location of the option `path` or as a managed one."""
    path, whole, is_managed = where(session, name, note.options.get("path"))
    mode = CreateMode.IF_NOT_EXISTS if save_mode(note.mode) is WriteMode.IGNORE else CreateMode.CREATE
    properties = properties_in(note.options)
    create(session, NewTable(mode, path, whole, [], note.partition, note.cluster, properties, None, is_managed), rows)


def columns_of(rows: Any, table: Any, name: str, *, evolves: bool) -> Any:
    """Match the columns of rows with those of a table by position; additional ones are accepted with schema evolution.

    Args:
        rows: The rows.
        table: The table as a frame.
        name: The table's name.
        evolves: Whether there may be more columns, and more fields in structs.

    Raises:
        InvalidArgumentError: There are more columns, or fewer; or a struct has.
    """
    columns: list[str] = table.columns
    more = rows.columns[len(columns) :]
    if len(columns) > len(rows.columns) or (more and not evolves):
        message = f"{name} has {len(columns)} columns, the rows have {len(rows.columns)}"
        raise InvalidArgumentError(
            message,
            code=ErrorCode.INSERT_ARITY_MISMATCH,
            parameters={"columns": len(columns), "values": len(rows.columns)},
        )
    return by_position(rows.toDF(*columns, *more), json.loads(table.schema.json())["fields"], evolves=evolves)


def write_inserted(session: Session, rows: Any, note: Note, path: str, *, replaces: bool) -> None:
    """Write the rows of `insertInto`; as in delta-spark, the session's setting has precedence over the options there.

    Args:
        session: The session.
        rows: The rows with the columns of the table.
        note: The recorded arguments of the writer.
        path: The location of the table.
        replaces: Whether the rows replace others.
    """
    options = note.options | {"path": path}
    if replaces and session.replaces_partitions:
        options = {key: value for key, value in options.items() if key.lower() != _OVERWRITE_MODE.lower()}
        options[_OVERWRITE_MODE] = "dynamic"
    write_frame(rows, WriteMode.OVERWRITE if replaces else WriteMode.APPEND, options)


def _insert_into(before: Any) -> Any:
    @translated(Operation.WRITE)
    def insert_into(writer: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
        note, spark = note_of(writer), writer._spark
        session = Session(spark)
        there = place_of_name(session, tableName) or place_of_view(session, tableName)
        if there is None:
            before(writer, tableName, overwrite)
            return
        replaces = save_mode(note.mode) is WriteMode.OVERWRITE if overwrite is None else overwrite
        rows = columns_of(writer._df, spark.table(tableName), tableName, evolves=session.merges_schemas)
        write_inserted(session, rows, note, there, replaces=replaces)

    return insert_into
