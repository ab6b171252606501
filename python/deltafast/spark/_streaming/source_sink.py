"""Streams by Spark's own reader and writer: `stream` reads from a table, `sink` writes to one; and `register`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from deltafast._util.write_modes import OverwriteScope, WriteMode
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._session.executor_package import register_at_driver, shipped_format
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of, settings_of
from deltafast.spark._streaming.batch_frames import BatchFrames
from deltafast.spark._streaming.batch_planner import BEGINNING, StreamPlan
from deltafast.spark._streaming.checkpoint_files import CheckpointFolder
from deltafast.spark._streaming.options import stream_options
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from deltafast._core_types import WriteOptions
    from deltafast.spark._session.storage import Place
    from deltafast.spark._streaming.options import StreamOptions

__all__ = ["register", "sink", "stream"]

#: delta-spark's options of a stream writer that `sink` sets itself.
_COUNTED = ("txnappid", "txnversion")


class _Settings:
    """Hadoop's settings of stores, for processes without a session."""

    def __init__(self, session: Session) -> None:
        self._held = settings_of(session)
        self.via_hadoop = session.via_hadoop
        self._home = session.home()
        self._gateway = None if session.is_connect else session.gateway("")

    def hadoop(self, prefix: str) -> dict[str, str]:
        """Return the settings that begin with `prefix`."""
        return {key: value for key, value in self._held.items() if key.startswith(prefix)}

    def home(self) -> str | None:
        """The folder to which paths without a scheme are relative."""
        return self._home

    def gateway(self, path: str) -> dict[str, str]:
        """Return the options with which the core accesses a path through the driver's Java."""
        if self._gateway is None:
            message = f"{path} is accessed through the driver's Java, which Spark Connect does not expose"
            raise InvalidArgumentError(message)
        return self._gateway


def register(spark: Any) -> None:
    """Register `format("deltafast")` in a session, for `read`, `write`, `readStream`, `writeStream`.

    It keeps the current settings of stores and time zone of the session; register it again when they change. Rows pass
    through the Python of the executors, which need deltafast; `read`, `write`, `stream` and `sink` are faster.

    Args:
        spark: The session, classic or Connect.

    Examples:
        >>> import pathlib
        >>> import deltafast.spark
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> deltafast.spark.register(spark)
        >>> spark.read.format("deltafast").load(str(pathlib.Path("cities").absolute())).count()
        3
    """
    session = Session(spark)
    rows, places = _formats(session)
    spark.dataSource.register(shipped_format(rows))
    if session.is_connect:
        spark.dataSource.register(shipped_format(places))
    else:
        register_at_driver(spark, places)


def register_as_delta(session: Session) -> None:
    """Register the format on a Connect server under the name `delta`, too."""
    rows = type("RegisteredAsDelta", (_formats(session)[0],), {"name": classmethod(lambda _: "delta")})
    session.spark.dataSource.register(shipped_format(rows))


def _formats(session: Session) -> list[type[Any]]:
    from deltafast.spark._streaming.data_source import DeltafastDataSource, PlacesDataSource

    of = {"settings": _Settings(session), "zone": session.zone}
    # Created here, so that they are pickled with their settings.
    return [type(f"Registered{kind.__name__}", (kind,), of) for kind in (DeltafastDataSource, PlacesDataSource)]


def stream(
    spark: Any,
    path: str | os.PathLike[str],
    each_batch: Callable[[Any, int], None],
    checkpoint: str | os.PathLike[str],
    *,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    **options: Any,
) -> Any:
    """Stream a table, reading each batch with Spark's own Parquet reader.

    Args:
        spark: The session, classic or Connect.
        path: The table.
        each_batch: Called with a data frame of new rows and the number of the batch. After a failure it is called
            again with the same rows and number: `deltafast.spark.sink` writes these only once. Over Connect it is
            pickled and called in the server's Python, which needs deltafast.
        checkpoint: The folder of the query's checkpoint.
        trigger: The trigger of batches, as `DataStreamWriter.trigger` takes it: `{"availableNow": True}`.
        query_name: Spark's name of the query.
        options: delta-spark's: `maxFilesPerTrigger`, `maxBytesPerTrigger`, `startingVersion`, `startingTimestamp`,
            `ignoreDeletes`, `ignoreChanges`, `skipChangeCommits`, `readChangeFeed`, `excludeRegex`, `failOnDataLoss`.
            Executors need deltafast for the change feed only.

    Returns:
        Spark's `StreamingQuery`, which has started.

    Raises:
        InvalidArgumentError: An option is invalid, or PySpark is older than 4.2.
        TableNotFoundError: There is no table.

    Examples:
        >>> import pathlib
        >>> import deltafast.spark
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> checkpoint = pathlib.Path("checkpoint").absolute()
        >>> counts = []
        >>> def add(batch, number):
        ...     counts.append(batch.count())
        >>> query = deltafast.spark.stream(spark, "cities", add, checkpoint, trigger={"availableNow": True})
        >>> query.awaitTermination()
        >>> counts
        [3]
    """
    session = Session(spark)
    from deltafast.spark._streaming.data_source import follows

    follows()
    given = stream_options(options)
    place = place_of(session, path)
    table = DeltaTable(place.uri, storage_options=place.options or None, time_zone=session.zone)
    register(spark)
    folder = place_of(session, checkpoint)
    plan = StreamPlan(table, given)
    if session.is_connect:
        called = _at_server(place, plan.fields, given, folder, each_batch)
    else:
        called = _called(_Batches(session, place, plan, folder), each_batch)

    reader = spark.readStream.format("deltafast-places")
    for key, value in options.items():
        reader = reader.option(key, str(value).lower() if isinstance(value, bool) else str(value))
    writer = reader.load(place.hadoop).writeStream.foreachBatch(called).option("checkpointLocation", folder.hadoop)
    writer = writer if query_name is None else writer.queryName(query_name)
    writer = writer if trigger is None else writer.trigger(**trigger)
    return writer.start()


def _called(batches: _Batches, each_batch: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """Return the function that Spark calls with an empty frame for each batch."""

    def called(empty: Any, number: int) -> None:  # noqa: ARG001 - Spark's
        each_batch(batches.frame(number), number)

    return called


def _at_server(
    place: Place,
    fields: list[dict[str, Any]],
    given: StreamOptions,
    checkpoint: Place,
    each_batch: Callable[[Any, int], None],
) -> Callable[[Any, int], None]:
    """Return the function that the Spark Connect server calls, in a Python process with a session of its own."""
    held: dict[str, _Batches] = {}

    def called(empty: Any, number: int) -> None:
        if "batches" not in held:
            session = Session(empty.sparkSession)
            table = DeltaTable(place.uri, storage_options=place.options or None, time_zone=session.zone)
            held["batches"] = _Batches(session, place, StreamPlan(table, given, fields), checkpoint)
        each_batch(held["batches"].frame(number), number)

    return called


class _Batches:
    """The batches of a query, whose ends Spark writes to its checkpoint before it runs them."""

    def __init__(self, session: Session, place: Place, plan: StreamPlan, checkpoint: Place) -> None:
        self._frames, self._plan = BatchFrames(session, place, plan), plan
        self._session, self._checkpoint = session, checkpoint

    def frame(self, number: int) -> Any:
        """Return the rows of a batch."""
        start = self._offset(number - 1) if number else BEGINNING
        return self._frames.between(start, self._offset(number))

    def _offset(self, number: int) -> dict[str, Any]:
        """Return the position of the end of a batch."""
        text = self._read(f"offsets/{number}")
        # A version, a line of settings, and a line for each source; there is one.
        lines = text.splitlines()[2:]
        return self._plan.position_of(lines[0] if lines else repr(text))

    def _read(self, name: str) -> str:
        """Return a file of the checkpoint, read through Spark's Java, or by the core on Connect."""
        if self._session.is_connect:
            from deltafast.spark._streaming.staged_batches import text_of

            return text_of(self._checkpoint, name)
        return CheckpointFolder(self._session, self._checkpoint.hadoop).read(name)


def sink(
    path: str | os.PathLike[str],
    app_id: str | None = None,
    *,
    mode: Literal["append", "overwrite"] = "append",
    **arguments: Any,
) -> Callable[[Any, int], None]:
    """Return a function for `foreachBatch` that writes each batch exactly once, with Spark's own Parquet writer.

    The commit records the query and the number of the batch; a batch that was committed is ignored when Spark runs it
    again after a failure.

    Args:
        path: The table; the first batch creates it if it does not exist.
        app_id: The application id of the query's transactions in the table; the query's id, which is kept in its
            checkpoint, if None. An id belongs to one query and one table.
        mode: What a batch does: `append` its rows, or `overwrite` the table with them, for queries in mode complete.
        arguments: Other arguments of `deltafast.spark.write`, `options` for example.

    Raises:
        InvalidArgumentError: An argument is invalid; or there is no query whose id could be used.

    Examples:
        >>> import pathlib
        >>> import deltafast.spark
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> checkpoint = pathlib.Path("checkpoint").absolute()
        >>> copy = deltafast.spark.sink("copy")
        >>> query = deltafast.spark.stream(spark, "cities", copy, checkpoint, trigger={"availableNow": True})
        >>> query.awaitTermination()
        >>> deltafast.spark.read(spark, "copy").count()
        3
    """
    from deltafast.spark._write.writer import WriteRequest, described, write_rows

    options = dict(arguments.pop("options", None) or {})
    if mode == WriteMode.OVERWRITE and not any(key.lower() == "partitionoverwritemode" for key in options):
        # As in delta-spark, a batch of mode complete replaces the whole table, whatever the session's settings.
        options["partitionOverwriteMode"] = OverwriteScope.STATIC.value
    wrong = [key for key in options if key.lower() in _COUNTED]
    if wrong or mode not in (WriteMode.APPEND, WriteMode.OVERWRITE):
        message = f"a sink counts its batches itself: leave {', '.join(wrong)} out, and give app_id"
        if not wrong:
            message = f"mode must be append or overwrite, not {mode!r}"
        raise InvalidArgumentError(message)

    where = arguments.pop("replace_where", None)
    others = {name: arguments.pop(name) for name in ("writer", "storage_options") if name in arguments}
    table = described(**arguments)

    def write_batch(frame: Any, number: int) -> None:
        app = app_id or _query_id(frame)
        counted = options | {"txnAppId": app, "txnVersion": number}
        written: WriteOptions = {**table, "batch": {"query_id": app, "epoch_id": number}}
        write_rows(frame, path, WriteRequest(mode, where, counted, written, **others))

    return write_batch


def _query_id(frame: Any) -> str:
    session = Session(frame.sparkSession)
    found = None
    if not session.is_connect:
        found = session.spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        message = "the id of the query cannot be found out here: give app_id, a name that only this query has"
        raise InvalidArgumentError(message)
    return str(found)
