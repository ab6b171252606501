"""PySpark's streams over Connect while deltafast is enabled: `format("delta")` of `readStream` and `writeStream`.

The server's Python source of that name reads and writes the streams; whatever Spark does not pass to it is passed as
options. Names of tables are resolved here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast.spark._commands.catalog import place_of_name
from deltafast.spark._enable.dataframe_writer import note_of, noting
from deltafast.spark._enable.streams import pass_arguments, table_to_write
from deltafast.spark._session.session import Session
from deltafast.spark.exceptions import translated

if TYPE_CHECKING:
    from deltafast.spark._enable.dataframe_writer import Replace

__all__ = ["put"]


def put(replace: Replace) -> None:
    """Patch the methods."""
    from pyspark.sql.connect.streaming.readwriter import DataStreamReader, DataStreamWriter

    replace(DataStreamReader, "table", _reader_table)
    for name in ("format", "partitionBy"):
        replace(DataStreamWriter, name, noting(name))
    replace(DataStreamWriter, "start", _start)
    replace(DataStreamWriter, "toTable", _to_table)


def _reader_table(before: Any) -> Any:
    @translated()
    def table(reader: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
        there = place_of_name(Session(reader._client), tableName)
        return before(reader, tableName) if there is None else reader.format("delta").load(there)

    return table


def _start(before: Any) -> Any:
    def start(
        writer: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - PySpark's name
        outputMode: str | None = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> Any:
        pass_arguments(writer, format, outputMode, partitionBy, queryName, options)
        note = note_of(writer)
        if note.format is not None and note.is_delta(writer._session) and note.partition:
            writer.option("partitionBy", ",".join(note.partition))
            del writer._write_proto.partitioning_column_names[:]
        return before(writer, path)

    return start


def _to_table(before: Any) -> Any:
    @translated()
    def to_table(
        writer: Any,
        tableName: str,  # noqa: N803
        format: str | None = None,  # noqa: A002
        outputMode: str | None = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> Any:
        pass_arguments(writer, format, outputMode, partitionBy, queryName, options)
        there = table_to_write(writer._session, note_of(writer), tableName, lambda: _schema(writer))
        return before(writer, tableName) if there is None else writer.format("delta").start(there)

    return to_table


def _schema(writer: Any) -> Any:
    from pyspark.sql.connect.dataframe import DataFrame

    return DataFrame(writer._write_stream._child, writer._session).schema
