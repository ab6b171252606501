"""PySpark's streams while deltafast is enabled: `format("delta")` of `readStream` and `writeStream`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltafast._util.write_modes import WriteMode
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._commands.catalog import place_of_name
from deltafast.spark._conditions import Operation
from deltafast.spark._enable.dataframe_writer import (
    Note,
    keep,
    note_of,
    noting,
    options_to_load,
    sequence_of,
    with_given_schema,
)
from deltafast.spark._enable.provider import known_options, read_frame
from deltafast.spark._session.java_calls import stream_provider
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark._streaming.source_sink import sink
from deltafast.spark.exceptions import translated
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast.spark._enable.dataframe_writer import Replace

__all__ = ["pass_arguments", "put", "table_to_write"]

#: The modes of the batches of a stream by its output mode.
_BATCH_MODES: Final = {
    "append": WriteMode.APPEND,
    "complete": WriteMode.OVERWRITE,
    #: The mode of a note until one is set.
    "errorifexists": WriteMode.APPEND,
}


def put(replace: Replace) -> None:
    """Patch the methods."""
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    replace(DataStreamReader, "format", _reader_format)
    for name in ("option", "options", "schema"):
        replace(DataStreamReader, name, noting(name))
    replace(DataStreamReader, "load", _reader_load)
    replace(DataStreamReader, "table", _reader_table)
    for name in ("format", "outputMode", "option", "options", "partitionBy"):
        replace(DataStreamWriter, name, _noting(name))
    for name in ("foreachBatch", "foreach"):
        replace(DataStreamWriter, name, _with_function(name))
    replace(DataStreamWriter, "start", _start)
    replace(DataStreamWriter, "toTable", _to_table)


def _reader_format(before: Any) -> Any:
    def reader_format(reader: Any, source: str) -> Any:
        note_of(reader).format = source
        return before(reader, source)

    return reader_format


def _reader_load(before: Any) -> Any:
    @translated(Operation.STREAM)
    def load(reader: Any, path: str | None = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
        known = options_to_load(reader, reader._spark, path, format, schema, options)
        note = note_of(reader)
        if known is not None and "path" in known:
            # Spark would report an error of the data source with a traceback.
            place = place_of(Session(reader._spark), str(known["path"]))
            given = place.options or None
            if not DeltaTable.is_deltatable(place.uri, given):
                DeltaTable(place.uri, storage_options=given)  # raises the error that names the reason
        if known is not None and note.schema is not None and note.format is not None:
            with_given_schema(read_frame(reader._spark, {"path": known.get("path", "")}), note)
        return before(reader, path)

    return load


def _reader_table(before: Any) -> Any:
    def table(reader: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
        there = place_of_name(Session(reader._spark), tableName)
        return before(reader, tableName) if there is None else reader.format("delta").load(there)

    return table


def _noting(name: str) -> Callable[[Any], Any]:
    def make(before: Any) -> Any:
        def method(writer: Any, *values: Any, **named: Any) -> Any:
            note = note_of(writer)
            if name == "outputMode":
                keep(note, "mode", values, named)
            else:
                keep(note, name, values, named)
            # A function writes the batches, for which Spark needs neither.
            is_ours = name == "format" and note.is_delta(writer._spark)
            return writer if is_ours or name == "partitionBy" else before(writer, *values, **named)

        return method

    return make


def _with_function(name: str) -> Callable[[Any], Any]:
    """Note that a function writes the batches: like a later format, it replaces the format that was given before."""

    def make(before: Any) -> Any:
        def method(writer: Any, function: Any) -> Any:
            note_of(writer).format = name
            return before(writer, function)

        return method

    return make


def _start(before: Any) -> Any:
    @translated()
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
        if note.format is None or not note.is_delta(writer._spark):
            if note.partition:
                writer._jwrite = writer._jwrite.partitionBy(sequence_of(writer, note.partition))
            return before(writer, path)
        target = path or {key.lower(): value for key, value in note.options.items()}.get("path")
        if not target:
            message = "writeStream.format('delta') needs the path of a table: start(path)"
            raise InvalidArgumentError(message)
        _need_checkpoint(writer._spark, note)
        session = Session(writer._spark)
        if not session.is_connect:
            stream_provider(session).chooseCheckpointFiles(writer._spark._jsparkSession)
        return before(_into(writer, note, target))

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
        note = note_of(writer)
        if note.format is not None and note.is_delta(writer._spark):
            _need_checkpoint(writer._spark, note)
        there = table_to_write(writer._spark, note, tableName, lambda: writer._df.schema)
        if there is None:
            if note.partition:
                writer._jwrite = writer._jwrite.partitionBy(sequence_of(writer, note.partition))
            return before(writer, tableName)
        return _into(writer, note, there).start()

    return to_table


def _need_checkpoint(spark: Any, note: Note) -> None:
    """Reject a query that would start over each time: Spark does not require a checkpoint for `foreachBatch`."""
    is_given = "checkpointlocation" in {key.lower() for key in note.options}
    if not is_given and not spark.conf.get("spark.sql.streaming.checkpointLocation", None):
        message = (
            'checkpointLocation must be specified either through option("checkpointLocation", ...) or '
            'SparkSession.conf.set("spark.sql.streaming.checkpointLocation", ...)'
        )
        raise InvalidArgumentError(message)


def table_to_write(spark: Any, note: Note, name: str, schema: Callable[[], Any]) -> str | None:
    """Return the location of the catalog's table that a stream writes; it is created if it does not exist.

    Args:
        spark: The session, classic or Connect.
        note: The recorded arguments of the writer.
        name: The table's name.
        schema: Returns the stream's columns, for a new table.

    Returns:
        The location; None for a table that is not a Delta table.
    """
    session = Session(spark)
    there = place_of_name(session, name)
    if there is None and note.format is not None and note.is_delta(spark):
        empty = spark.createDataFrame([], schema()).write.format("delta")
        empty.partitionBy(*note.partition).saveAsTable(name)
        there = place_of_name(session, name)
    return there


def pass_arguments(writer: Any, source: Any, mode: Any, partition: Any, name: Any, options: dict[str, Any]) -> None:
    """Pass the arguments of a writer's last method to it."""
    writer.options(**options)
    if mode is not None:
        writer.outputMode(mode)
    if partition is not None:
        writer.partitionBy(partition)
    if source is not None:
        writer.format(source)
    if name is not None:
        writer.queryName(name)


def _into(writer: Any, note: Note, path: str) -> Any:
    """Return the writer with a function that writes its batches, instead of the format."""
    mode = _BATCH_MODES.get(note.mode)
    if mode is None:
        message = f"format('delta') has the output modes append and complete, not {note.mode}"
        raise InvalidArgumentError(message)
    given = {key: value for key, value in known_options(note.options).items() if key != "txnVersion"}
    app = given.pop("txnAppId", None)
    note.format = "foreachBatch"
    # Spark refuses the columns for such a writer: they are the sink's from now on.
    partition, note.partition = note.partition or None, []
    return writer.foreachBatch(sink(path, app, mode=mode.value, options=given, partition_by=partition))  # pyright: ignore[reportArgumentType]
