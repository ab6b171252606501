"""`format("deltafast")`: tables as a Python data source, for reading, writing and streams.

All columns of all rows pass through the Python of the executors, which need deltafast: `deltafast.spark.read`, `write`,
`stream` and `sink` are several times as fast. The format is for `readStream` into any sink, and for programs that refer
to a format by name.
"""

from __future__ import annotations

import importlib.util
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

from deltafast._handle import handle_of
from deltafast._util.write_modes import OverwriteScope
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._scan.executor_rows import CHANGE_DATA_FIELDS, Opened, arrow_schema
from deltafast.spark._scan.physical_columns import field_of, plain_type, spark_schema
from deltafast.spark._session.executor_package import Shipped
from deltafast.spark._session.session import version_number, whole_number
from deltafast.spark._session.storage import HadoopSettings, place_of
from deltafast.spark._streaming import staged_batches
from deltafast.spark._streaming.batch_planner import BEGINNING, StreamPlan
from deltafast.spark._streaming.options import is_true, stream_options
from deltafast.spark._streaming.schema_check import fields_of
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow

    from deltafast.spark._scan.read_tasks import Piece
    from deltafast.spark._session.storage import Place
else:
    # PySpark 4.0 has neither class, 4.1 no batch limits: see `follows`.
    DataSourceStreamArrowWriter = getattr(datasource, "DataSourceStreamArrowWriter", object)
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
    except ImportError:
        ReadAllAvailable = ReadMaxFiles = None
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

__all__ = ["DeltafastDataSource", "PlacesDataSource", "follows"]

_READ = ("path", "versionasof", "timestampasof")
_CHANGE_DATA_OPTIONS = (
    "readchangefeed",
    "readchangedata",
    "startingversion",
    "endingversion",
    "startingtimestamp",
    "endingtimestamp",
)
_WRITE = (
    "path",
    "checkpointlocation",
    "mergeschema",
    "overwriteschema",
    "replacewhere",
    "partitionoverwritemode",
    "partitionby",
    "txnappid",
    "txnversion",
    "usermetadata",
)


class DeltafastDataSource(Shipped, DataSource):
    """The format; `deltafast.spark.register` registers it with the settings of the session."""

    #: Hadoop's settings of stores, and the session's time zone.
    settings: HadoopSettings
    zone = "UTC"
    _table: DeltaTable | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "deltafast"

    @property
    def given(self) -> dict[str, Any]:
        """The options, by their names in lower case."""
        return {str(key).lower(): value for key, value in dict(cast("Any", self.options)).items()}

    @property
    def place(self) -> Place:
        """The location of the table."""
        if "path" not in self.given:
            message = "format('deltafast') needs the path of a table: load(path), start(path) or option('path', ...)"
            raise InvalidArgumentError(message)
        return place_of(self.settings, self.given["path"])

    def table(self, version: int | None = None, timestamp: str | None = None) -> DeltaTable:
        """Return the table at a version."""
        place = self.place
        options = place.options or None
        return DeltaTable(place.uri, version=version, timestamp=timestamp, storage_options=options, time_zone=self.zone)

    def schema(self) -> Any:
        """Return the columns of the version that is read, to which the frame is pinned."""
        given = self.given
        version = given.get("versionasof")
        number = None if version is None else version_number("versionAsOf", version)
        table = self.table(number, given.get("timestampasof"))
        self._version = table.version()
        fields = [field_of(field["name"], plain_type(field["type"])) for field in fields_of(handle_of(table))]
        if is_true(given.get("readchangefeed", given.get("readchangedata"))):
            fields += CHANGE_DATA_FIELDS
        return spark_schema(fields)

    def reader(self, schema: Any) -> DataSourceReader:
        """Return a reader of a version, or of the changes of some versions."""
        given = self.given
        reads_change_data = is_true(given.get("readchangefeed", given.get("readchangedata")))
        _known(given, _READ + _CHANGE_DATA_OPTIONS if reads_change_data else _READ)
        version = getattr(self, "_version", given.get("versionasof"))
        number = None if version is None else version_number("versionAsOf", version)
        table = self.table(number, None if version else given.get("timestampasof"))
        return _Reader(Opened.of(self.place, self.zone, schema), table, given if reads_change_data else None)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader that streams the table."""
        return _StreamReader(self, schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Return a writer that appends, or overwrites."""
        return _Writer(self, schema, overwrite=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
        """Return a writer that appends each batch exactly once, or in mode complete overwrites."""
        if not hasattr(datasource, "DataSourceStreamArrowWriter"):
            message = "writing streams by format('deltafast') needs PySpark 4.1 or newer; "
            message += "use foreachBatch(deltafast.spark.sink(path))"
            raise InvalidArgumentError(message)
        return _StreamWriter(self, schema, overwrite=overwrite)


def follows() -> None:
    """Reject streaming reads on versions of Spark that do not report the end of the last batch to a source.

    Raises:
        InvalidArgumentError: This PySpark is too old.
    """
    if importlib.util.find_spec("pyspark.sql.streaming.datasource") is None:
        message = (
            "following a table needs PySpark 4.2 or newer, whose sources of streams know where the last batch ended; "
        )
        raise InvalidArgumentError(message + "reading tables, and writing streams by deltafast.spark.sink, does not")


def _known(given: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for key in given:
        if key not in names:
            message = f"there is no option {key!r} here for format('deltafast'); there are {', '.join(names)}"
            raise InvalidArgumentError(message)


# --- reading -------------------------------------------------------------------------------------


class _Part(InputPartition):
    """The data that one task reads."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(tuple(piece))
        self.piece = piece


class _Reader(Shipped, DataSourceReader):
    def __init__(self, opened: Opened, table: DeltaTable, change_data_feed: dict[str, Any] | None) -> None:
        self._opened = opened
        self._pieces = opened.pieces(table) if change_data_feed is None else opened.changes(table, change_data_feed)

    def partitions(self) -> list[Any]:
        return [_Part(piece) for piece in self._pieces]

    def read(self, partition: Any) -> Iterator[Any]:
        # If there are no partitions Spark passes an empty one.
        return self._opened.rows(partition.piece) if isinstance(partition, _Part) else iter(())


class _StreamReader(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, source: DeltafastDataSource, schema: Any) -> None:
        options = stream_options(source.given, known=("path",))
        added = {field["name"] for field in CHANGE_DATA_FIELDS} if options.change_data_feed else set[str]()
        fields = [field for field in schema.jsonValue()["fields"] if field["name"] not in added]
        if options.change_data_feed and options.exclude is not None and not isinstance(source, PlacesDataSource):
            message = (
                "format('deltafast') reads a change data feed without excludeRegex: use readStream.format('delta')"
            )
            raise InvalidArgumentError(message)
        self._max_files = options.max_files
        self._opened = Opened.of(source.place, source.zone, schema)
        self._arguments = options, None if isinstance(source, PlacesDataSource) else fields
        self._source = source
        self._held: StreamPlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Executors need only this; the plan stays on the driver.
        return {"_opened": self._opened}

    @property
    def _plan(self) -> StreamPlan:
        if self._held is None:
            self._held = StreamPlan(self._source.table(), *self._arguments)
        return self._held

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        # Earlier versions of PySpark 4.1 would lose the error.
        follows()
        return BEGINNING

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return ReadMaxFiles(self._max_files or (1 << 31) - 1)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        follows()
        return self._plan.next(start or BEGINNING, limited=not isinstance(limit, ReadAllAvailable))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._plan.stop_at_newest()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        return [_Part(piece) for piece in self._plan.pieces(start, end)]

    def read(self, partition: Any) -> Iterator[Any]:
        return self._opened.rows(partition.piece) if isinstance(partition, _Part) else iter(())

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        pass


class PlacesDataSource(DeltafastDataSource):
    """The positions of a stream only, for `deltafast.spark.stream`, which reads the rows of a batch itself."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which `deltafast.spark.stream` refers to it."""
        return "deltafast-places"

    def schema(self) -> Any:
        """Return a schema of one column, of which no batch has rows."""
        return spark_schema([field_of("version", "long")])

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader of the positions."""
        return _PlacesReader(self, schema)


class _PlacesReader(_StreamReader):
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:  # noqa: ARG002
        return []


# --- writing -------------------------------------------------------------------------------------


@dataclass
class _Staged(WriterCommitMessage):
    path: str | None


class _Staging(Shipped):
    """The common part of both writers."""

    def __init__(self, source: DeltafastDataSource, schema: Any, *, overwrite: bool) -> None:
        given = source.given
        _known(given, _WRITE)
        self._place, self._zone, self._given = source.place, source.zone, given
        self._settings, self._overwrite = source.settings, overwrite
        self._folder = f"spark-{uuid.uuid4()}"
        self._fields: list[dict[str, Any]] = schema.jsonValue()["fields"]
        if ("replacewhere" in given or "partitionoverwritemode" in given) and not overwrite:
            message = "replaceWhere and partitionOverwriteMode belong to mode('overwrite')"
            raise InvalidArgumentError(message)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Staged:
        return _Staged(staged_batches.stage(self._place, self._folder, iterator))

    def _commit(self, messages: list[Any], app: tuple[str, int] | None, *, is_batch: bool = False) -> None:
        given = self._given
        paths = [message.path for message in messages if message is not None and message.path]
        mode = str(given.get("partitionoverwritemode", "static")).lower()
        merges, overwrites = is_true(given.get("mergeschema")), is_true(given.get("overwriteschema"))
        partition = given.get("partitionby")
        settings: dict[str, Any] = {
            "mode": "overwrite" if self._overwrite else "append",
            "partition_by": None if partition is None else [name.strip() for name in partition.split(",")],
            "cluster_by": [],
            "name": None,
            "description": None,
            "configuration": {},
            "schema_mode": "overwrite" if overwrites else "merge" if merges else None,
            "dynamic_partitions": mode == OverwriteScope.DYNAMIC and self._overwrite,
            "app_transaction": app,
            "user_metadata": given.get("usermetadata"),
        }
        if is_batch and app is not None:
            settings["batch"] = {"query_id": app[0], "epoch_id": app[1]}
        schema = arrow_schema(spark_schema(self._fields))
        staged_batches.commit(self._place, schema, paths, settings, given.get("replacewhere"), self._zone)

    def _discard(self, messages: list[Any]) -> None:
        staged_batches.discard(self._place, [message.path for message in messages if message is not None])


class _Writer(_Staging, DataSourceArrowWriter):
    def commit(self, messages: list[Any]) -> None:
        given = self._given
        if ("txnappid" in given) != ("txnversion" in given):
            self._discard(messages)
            message = "txnAppId and txnVersion go together: give both"
            raise InvalidArgumentError(message)
        app = None
        if "txnappid" in given:
            try:
                app = str(given["txnappid"]), whole_number("txnVersion", given["txnversion"])
            except InvalidArgumentError:
                self._discard(messages)
                raise
        self._commit(messages, app)

    def abort(self, messages: list[Any]) -> None:
        self._discard(messages)


class _StreamWriter(_Staging, DataSourceStreamArrowWriter):
    def __init__(self, source: DeltafastDataSource, schema: Any, *, overwrite: bool) -> None:
        super().__init__(source, schema, overwrite=overwrite)
        if "txnversion" in self._given:
            message = "a stream counts its batches itself: leave txnVersion out"
            raise InvalidArgumentError(message)
        if "txnappid" not in self._given and "checkpointlocation" not in self._given:
            message = (
                "format('deltafast') needs option('checkpointLocation', ...) at the stream, or option('txnAppId', "
            )
            message += "...): commits of the query are known by them"
            raise InvalidArgumentError(message)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        app = self._given.get("txnappid")
        try:
            if app is None:
                app = staged_batches.query_id(place_of(self._settings, self._given["checkpointlocation"]))
        except BaseException:
            self._discard(messages)
            raise
        self._commit(messages, (str(app), batchId), is_batch=True)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: ARG002, N803
        self._discard(messages)
