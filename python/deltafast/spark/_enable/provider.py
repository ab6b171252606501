"""The format `delta` of a session without Delta's jar: what the Java class `DeltaProvider` calls to read and write.

The class uses public and internal interfaces of Spark; where they differ `enable` raises an error.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from weakref import WeakSet

from deltafast._util.write_modes import WriteMode, save_mode
from deltafast.exceptions import DeltaError, ErrorCode, InvalidArgumentError
from deltafast.spark._commands.catalog import handle
from deltafast.spark._conditions import Operation
from deltafast.spark._enable.statement_handler import ParsedStatements
from deltafast.spark._scan.physical_columns import Columns, quoted, spark_schema
from deltafast.spark._scan.reader import followed, read
from deltafast.spark._session.java_calls import delta_provider, put_parser, set_handler, take_parser_back
from deltafast.spark._session.java_library import first_line
from deltafast.spark._session.session import Session, version_number
from deltafast.spark._session.storage import place_of
from deltafast.spark._session.unity_tables import CATALOG_CLASS
from deltafast.spark._streaming.stream_source import plan_streams
from deltafast.spark._write.physical_schema import fits_as_stored
from deltafast.spark._write.writer import WriteRequest, described, write_rows
from deltafast.spark.exceptions import during, set_failure
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltafast._catalog.unity.client import UnityCatalog
    from deltafast.spark._enable.unity_handler import UnityHandler

__all__ = [
    "CLUSTER",
    "PARTITION",
    "READ",
    "DeltasJarError",
    "Provider",
    "forget_deltas_catalog",
    "known_options",
    "known_to_delta",
    "properties_in",
    "put_catalog",
    "take_catalog_back",
]

_THEIRS = "org.apache.spark.sql.delta.sources.DeltaDataSource"
_CATALOG, _THEIR_CATALOG = "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_OUR_CATALOG = "io.deltafast.spark.DeltafastCatalog"
_CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"

#: The options of a reader.
READ = (
    "versionAsOf",
    "timestampAsOf",
    "readChangeFeed",
    "readChangeData",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
)
_WRITE = (
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "partitionOverwriteMode",
    "txnAppId",
    "txnVersion",
    "userMetadata",
    "maxRecordsPerFile",
    "compression",
    "optimizeWrite",
    "replaceUsing",
    "replaceOn",
    "targetAlias",
    "dataChange",
)
#: Maximum number of errors that are kept until Java has raised them.
_FAILURES = 64
#: Options that have an effect with mode overwrite only.
_OVERWRITE = ("replaceWhere", "overwriteSchema", "replaceUsing", "replaceOn", "targetAlias")
#: Spark's names of the options that hold a writer's partition and clustering columns.
PARTITION, CLUSTER = "__partition_columns", "__clustering_columns"


class DeltasJarError(InvalidArgumentError):
    """Delta's own jar is in the session, or on the server."""


def known_to_delta(session: Session) -> bool:
    """Return whether Delta's own jar is in the session."""
    return _has_class(session, _THEIRS)


def put_catalog(session: Session) -> None:
    """Set the catalog with time travel in a classic session that has Spark's own, or names Delta's without its jar."""
    named = session.conf(_CATALOG)
    is_free = named in (None, "builtin") or (named == _THEIR_CATALOG and not _has_class(session, _THEIR_CATALOG))
    if is_free and _has_class(session, _OUR_CATALOG):
        session.spark.conf.set(_CATALOG, _OUR_CATALOG)


def take_catalog_back(session: Session) -> None:
    """Restore Spark's own catalog in a session."""
    if session.conf(_CATALOG) == _OUR_CATALOG:
        session.spark.conf.unset(_CATALOG)
    if session.conf(_CATALOG) is not None and not _has_class(session, str(session.conf(_CATALOG))):
        # A setting with which the driver was started.
        session.spark.conf.set(_CATALOG, "builtin")


def _take_checkpoint_files_back(spark: Any) -> None:
    """Restore Spark's own class for checkpoint files, if Java's `CheckpointSetting` has set another one."""
    if str(spark.conf.get(_CHECKPOINT_FILES, "")).endswith(".LocalCheckpointFiles"):
        spark.conf.unset(_CHECKPOINT_FILES)


def forget_deltas_catalog(session: Session) -> None:
    """Set Spark's own catalog in a session of Connect whose settings name Delta's, if the server lacks that."""
    if session.conf(_CATALOG) != _THEIR_CATALOG:
        return
    try:
        session.spark.catalog.currentDatabase()
    except Exception:
        # The setting is the server's, so it cannot be removed here.
        session.spark.conf.set(_CATALOG, "builtin")
        try:
            session.spark.catalog.currentDatabase()
        except Exception:  # noqa: BLE001 - the cause is another one, so the first error is raised
            session.spark.conf.set(_CATALOG, _THEIR_CATALOG)
        else:
            return
        raise


def _has_class(session: Session, name: str) -> bool:
    try:
        session.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass(name)
    except Exception:  # noqa: BLE001 - py4j's errors for a missing class differ
        return False
    return True


def known_options(options: Mapping[str, Any], names: tuple[str, ...] = _WRITE) -> dict[str, Any]:
    """Return the options that are delta-spark's; like delta-spark, it ignores others."""
    given = {str(key).lower(): value for key, value in options.items()}
    return {name: given[name.lower()] for name in names if name.lower() in given}


def properties_in(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that are properties of a new table; the core ignores the case of their names."""
    return {key: value for key, value in options.items() if key.lower().startswith("delta.")}


class Provider:
    """Reads and writes for Java.

    Args:
        session: The session that is enabled; others of the same driver share the format.

    Raises:
        InvalidArgumentError: This Spark does not accept the format.
    """

    #: Whether Spark's parser gives statements to Python.
    parses: Final = True

    def __init__(self, session: Session) -> None:
        self._session = session
        #: The last errors, by the messages with which Java raises them; threads share them.
        self._failures: OrderedDict[str, BaseException] = OrderedDict()
        self._failing = threading.Lock()
        self._catalogs: UnityHandler | None = None
        #: Those that have the parser and the catalog.
        self._sessions: WeakSet[Any] = WeakSet()
        try:
            self._java = delta_provider(session)
            plan_streams(session, self._java, "DeltaProvider")
            set_handler(session, self._java, self)
            self._statements = ParsedStatements(self, self._spark, self._fail)
            self.include(session.spark)
        except DeltaError:
            raise
        except Exception as error:
            message = f"this Spark does not take deltafast's format delta ({first_line(error)}); "
            message += "use deltafast.spark.read and write"
            raise InvalidArgumentError(message) from error

    def belongs_to(self, spark: Any) -> bool:
        """Return whether a session is one of this driver, which has not been stopped since."""
        return getattr(spark, "_sc", None) is self._session.spark._sc and spark._sc._jsc is not None

    def include(self, spark: Any) -> None:
        """Give a session the parser and the catalog, also one that existed before."""
        if spark not in self._sessions:
            session = Session(spark)
            put_parser(session, self._statements)
            put_catalog(session)
            self._sessions.add(spark)

    def forget(self, spark: Any) -> None:
        """Make the next query read the newest versions of tables of the catalog."""
        self._java.dropCachedRelations(spark._jsparkSession.sessionState().catalog())

    def manage(self, spark: Any, name: str) -> None:
        """Make a table at the catalog's default location managed, so that its files are deleted with its name."""
        self._java.makeManaged(spark._jsparkSession, name)

    def put_catalogs(self, catalogs: Mapping[str, UnityCatalog]) -> None:
        """Give the session the catalogs of servers of Unity Catalog, those that its settings name too."""
        if not catalogs and CATALOG_CLASS not in self._session.settings("spark.sql.catalog.").values():
            return
        from deltafast.spark._enable.unity_handler import UnityHandler, named_in_settings

        found = {**named_in_settings(self._session), **catalogs}
        if found:
            self._catalogs = UnityHandler(self._session, self._fail)
            self._catalogs.put(found)

    def end(self) -> None:
        """Stop answering requests."""
        if self._catalogs is not None:
            self._catalogs.end()
        self._java.setHandler(None)
        self._java.setStreamHandler(None)
        take_parser_back(self._session)
        for spark in self._sessions:
            if self.belongs_to(spark):
                take_catalog_back(Session(spark))
                _take_checkpoint_files_back(spark)

    def read(self, session: Any, options: Any, failure: Any) -> Any:
        """Return the frame of a table for Java; on an error set `failure`."""
        try:
            with during(Operation.RELATION):
                return read_frame(self._spark(session), _strings(options))._jdf
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            self._fail(error, failure)
            return None

    def describe(self, session: Any, location: Any, description: Any) -> bool:
        """Set the columns, partition columns and comment of a table in Java's `TableDescription`; False on an error."""
        try:
            own = Session(self._spark(session))
            table = handle(own, place_of(own, str(location)))
            metadata = table.metadata()
            names = list(metadata.partition_columns)
            columns = Columns(json.loads(table.schema().to_json()), names, is_mapped=False)
            gateway = own.spark._sc._gateway
            partitions = gateway.new_array(own.jvm.java.lang.String, len(names))
            for place, name in enumerate(names):
                partitions[place] = name
            description.set(spark_schema(columns.seen()).json(), partitions, metadata.description)
        except Exception:  # noqa: BLE001 - the catalog's entry is shown as it is; a query raises the error
            return False
        return True

    def write(self, session: Any, options: Any, mode: Any, rows: Any, failure: Any) -> None:
        """Write rows for Java; on an error set `failure`."""
        try:
            from pyspark.sql import DataFrame

            frame = DataFrame(rows, self._spark(session))
            with during(Operation.WRITE):
                write_frame(frame, save_mode(str(mode)), _strings(options), fits=fits_as_stored)
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            self._fail(error, failure)

    def _fail(self, error: BaseException, failure: Any) -> None:
        raised = set_failure(error, failure)
        if raised is None:
            return
        found, message = raised
        with self._failing:
            self._failures[message] = found
            while len(self._failures) > _FAILURES:
                self._failures.popitem(last=False)

    def failure(self, message: str) -> BaseException | None:
        """Return the exception that Java raises with this message."""
        with self._failing:
            known = [key for key in self._failures if message.startswith(key)]
            return self._failures[max(known, key=len)] if known else None

    def _spark(self, java: Any) -> Any:
        if java.equals(self._session.spark._jsparkSession):
            return self._session.spark
        from pyspark.sql import SparkSession

        return SparkSession(self._session.spark._sc, java)


def _strings(options: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in dict(options).items()}


def read_frame(spark: Any, options: Mapping[str, Any]) -> Any:
    """Return a table by the options of `spark.read.format("delta")`."""
    given = known_options(options, READ)
    path = _path(options)
    at = re.fullmatch(r"(.+)@v(\d+)", path)
    if at and not {"versionAsOf", "timestampAsOf"} & given.keys():
        path, given["versionAsOf"] = at[1], at[2]
    version_number("versionAsOf", given.get("versionAsOf", 0))
    path, values = _table_of_partition(Session(spark), path)
    if str(given.get("readChangeFeed", given.get("readChangeData", "false"))).lower() != "true":
        given = {key: value for key, value in given.items() if key in ("versionAsOf", "timestampAsOf")}
    frame = read(spark, path, options=given) if given else followed(spark, path)
    return _of_partition(frame, values) if values else frame


def _table_of_partition(session: Session, path: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the table of a partition's folder `table/p=1`, and the partition's values; any other path as it is."""
    root, values = path.rstrip("/"), list[tuple[str, str]]()
    while (match := re.fullmatch(r"(.+)/([^/=]+)=([^/]+)", root)) is not None:
        root, name, value = match[1], match[2], match[3]
        values.append((unquote(name), unquote(value)))
    if not values or _is_table(session, path) or not _is_table(session, root):
        return path, []
    return root, values


def _is_table(session: Session, path: str) -> bool:
    place = place_of(session, path)
    return DeltaTable.is_deltatable(place.uri, place.options or None)


def _of_partition(frame: Any, values: list[tuple[str, str]]) -> Any:
    from pyspark.sql import functions

    for name, value in values:
        if name not in frame.columns:
            message = f"the folder {name}={value} is not that of a partition: the table has no column `{name}`"
            raise InvalidArgumentError(message, code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": name})
        column = functions.col(quoted(name))
        is_null = value == "__HIVE_DEFAULT_PARTITION__"
        frame = frame.where(
            column.isNull() if is_null else column == functions.lit(value).cast(frame.schema[name].dataType)
        )
    return frame


def write_frame(
    frame: Any, mode: WriteMode, options: Mapping[str, Any], *, fits: Callable[[Any, Any], None] | None = None
) -> None:
    """Write by the options of `frame.write.format("delta")`.

    Args:
        frame: The rows.
        mode: What to do if the table exists.
        options: All options of the writer.
        fits: Raises if the frame's schema may not be cast to the table's; ANSI store assignment if None.
    """
    given = {str(key).lower(): value for key, value in options.items()}
    partition, cluster = given.get(PARTITION), given.get(CLUSTER)
    known = known_options(options)
    by: list[str] | None = json.loads(partition) if partition else None
    if by is None and mode is WriteMode.OVERWRITE and str(known.get("overwriteSchema", "false")).lower() == "true":
        # A replaced table gets the partitioning of this write.
        by = []
    clustered = [part if isinstance(part, str) else ".".join(part) for part in json.loads(cluster)] if cluster else None
    table = described(by, clustered, configuration=properties_in(options))
    if mode is not WriteMode.OVERWRITE:
        # As in delta-spark: without overwrite these options have no effect.
        known = {key: value for key, value in known.items() if key not in _OVERWRITE}
    request = WriteRequest(mode, known.pop("replaceWhere", None), known, table)
    write_rows(frame, _path(options), request, fits=fits)


def _path(options: Mapping[str, Any]) -> str:
    given = {str(key).lower(): value for key, value in options.items()}
    paths: list[Any] = json.loads(given["paths"]) if "paths" in given else []
    if "path" in given:
        paths = [given["path"]]
    if len(paths) != 1:
        message = f"format('delta') needs the path of one table, not {len(paths)}"
        raise InvalidArgumentError(message)
    return str(paths[0])
