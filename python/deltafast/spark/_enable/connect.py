"""`enable` over Spark Connect: the client has no Java, so PySpark's own classes are patched to read and write `delta`.

The server gets the Python data source under the name `delta`, so that its catalog can hold tables. It does not pass
their locations to such a source: queries get frames for the names of tables in the client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from deltafast._util.write_modes import WriteMode, save_mode
from deltafast.exceptions import DeltaError, ErrorCode, InvalidArgumentError
from deltafast.spark._commands.catalog import READ_BY_CLIENT, default_place, new_entry, place_of_name
from deltafast.spark._conditions import Operation
from deltafast.spark._enable.dataframe_writer import (
    columns_of,
    note_of,
    note_of_write,
    noting,
    options_to_load,
    take_format_of_table,
    with_given_schema,
    write_inserted,
)
from deltafast.spark._enable.provider import DeltasJarError, read_frame, write_frame
from deltafast.spark._session.java_library import first_line
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark._streaming.source_sink import register_as_delta
from deltafast.spark._write.physical_schema import fits_as_stored
from deltafast.spark.exceptions import translated

if TYPE_CHECKING:
    from deltafast.spark._enable.dataframe_writer import Replace

__all__ = ["ConnectProvider", "frame_of", "put"]


class ConnectProvider:
    """The format as registered on the server.

    Args:
        session: A session of Connect.

    Raises:
        DeltasJarError: The server already has a format `delta`.
        InvalidArgumentError: The server does not accept Python data sources.
    """

    #: Whether Spark's parser gives statements to Python.
    parses: Final = False

    def __init__(self, session: Session) -> None:
        try:
            register_as_delta(session)
        except DeltaError:
            raise
        except Exception as error:
            if getattr(error, "getCondition", str)() == "DATA_SOURCE_ALREADY_EXISTS":
                message = "Delta's own jar is on this server, or another implementation of format('delta'): remove it "
                message += "there, or use deltafast.spark.read and write alongside it"
                raise DeltasJarError(message) from error
            message = f"the server does not take deltafast's format delta ({first_line(error)})"
            raise InvalidArgumentError(message) from error
        READ_BY_CLIENT.add(session.spark)

    def belongs_to(self, spark: Any) -> bool:
        """Return whether a session is one in which the server has the format."""
        return spark in READ_BY_CLIENT

    def include(self, spark: Any) -> None:
        """Do nothing: the parser is the server's."""

    def forget(self, spark: Any) -> None:
        """Do nothing: no relations are cached."""

    def manage(self, spark: Any, name: str) -> None:
        """Do nothing: the table was registered as a managed one."""

    def end(self) -> None:
        """Do nothing: the server cannot unregister a format."""


def put(replace: Replace) -> None:
    """Patch the methods."""
    from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter
    from pyspark.sql.connect.session import SparkSession

    # The exceptions that a server raises.
    importlib.import_module("deltafast.spark._session.connect_exceptions")
    for name in ("format", "option", "options", "schema"):
        replace(DataFrameReader, name, noting(name))
    replace(DataFrameReader, "load", _load)
    replace(DataFrameReader, "table", _table)
    replace(SparkSession, "table", _session_table)
    for name in ("format", "mode", "option", "options", "partitionBy", "clusterBy", "bucketBy"):
        replace(DataFrameWriter, name, noting(name))
    replace(DataFrameWriter, "save", _save)
    replace(DataFrameWriter, "saveAsTable", _save_as_table)
    replace(DataFrameWriter, "insertInto", _insert_into)


def _load(before: Any) -> Any:
    @translated(Operation.RELATION)
    def load(reader: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
        known = options_to_load(reader, reader._client, path, format, schema, options)
        if known is None:
            return before(reader, path)
        return with_given_schema(read_frame(reader._client, known), note_of(reader))

    return load


def _table(before: Any) -> Any:
    @translated(Operation.RELATION)
    def table(reader: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
        there = place_of_name(Session(reader._client), tableName)
        if there is None:
            return before(reader, tableName)
        return read_frame(reader._client, note_of(reader).options | {"path": there})

    return table


def _session_table(before: Any) -> Any:
    del before

    def table(spark: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
        return spark.read.table(tableName)

    return table


def frame_of(writer: Any) -> Any:
    """Return the rows of a writer."""
    from pyspark.sql.connect.dataframe import DataFrame

    return DataFrame(writer._df, writer._spark)


def _save(before: Any) -> Any:
    @translated(Operation.WRITE)
    def save(
        writer: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - PySpark's name
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        note = note_of_write(writer, format, mode, partitionBy, options)
        if note.is_delta(writer._spark):
            given = note.given(path) if path is not None else note.given(note.options.get("path", ""))
            write_frame(frame_of(writer), save_mode(note.mode), given, fits=fits_as_stored)
        else:
            before(writer, path)

    return save


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
        note, session = note_of_write(writer, format, mode, partitionBy, options), Session(writer._spark)
        take_format_of_table(note, session, name)
        if not note.is_delta(writer._spark):
            before(writer, name)
            return
        there, mode = place_of_name(session, name), save_mode(note.mode)
        if there is not None and mode is WriteMode.IGNORE:
            return
        if there is not None and mode is WriteMode.ERROR:
            message = f"the table {name} already exists at {there}; append to it, or overwrite it"
            raise InvalidArgumentError(
                message, code=ErrorCode.CATALOG_TABLE_EXISTS, parameters={"table": name, "path": there}
            )
        given = there or note.options.get("path")
        path = given or default_place(session, name)
        rows = frame_of(writer)
        managed = (lambda: rows.schema.jsonValue()["fields"]) if given is None else None
        with new_entry(session, name, place_of(session, path), managed):
            write_frame(rows, mode, note.given(path))

    return save_as_table


def _insert_into(before: Any) -> Any:
    @translated(Operation.WRITE)
    def insert_into(writer: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
        note, spark = note_of(writer), writer._spark
        session = Session(spark)
        there = place_of_name(session, tableName)
        if there is None:
            before(writer, tableName, overwrite)
            return
        replaces = save_mode(note.mode) is WriteMode.OVERWRITE if overwrite is None else overwrite
        rows = columns_of(frame_of(writer), spark.table(tableName), tableName, evolves=session.merges_schemas)
        write_inserted(session, rows, note, there, replaces=replaces)

    return insert_into
