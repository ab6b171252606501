"""The calls into deltafast's Java classes, and the interfaces through which Java calls Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast
from weakref import WeakKeyDictionary, WeakSet

from deltafast.spark._session.java_library import add_service, call_static, construct, load, package_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.spark._session.java_library import JavaSession

__all__ = [
    "FAILED",
    "UNCHANGED",
    "CatalogHandler",
    "FilePlanner",
    "FormatHandler",
    "IndexedFiles",
    "StatementHandler",
    "StreamHandler",
    "StreamPlanner",
    "add_file_selection_rule",
    "add_row_count_rule",
    "add_row_format_rule",
    "add_row_tracking_rule",
    "delta_provider",
    "file_index",
    "frame_of_index",
    "frame_of_stream",
    "hadoop_gateway",
    "marked",
    "parquet_format",
    "put_parser",
    "refresh_cached_rows",
    "set_catalog_handler",
    "set_handler",
    "set_planner",
    "set_stream_handler",
    "stream_planner",
    "stream_provider",
    "strings_of",
    "take_parser_back",
]

#: Results of `FilePlanner.newerVersion` that are not versions.
UNCHANGED, FAILED = -1, -2
#: The beginning of a statement that Spark's own parser reads; `StatementParser.java` removes it.
_MARK = "/* Spark's own */ "
#: The virtual machines in which Python reads other statements first.
_READING: WeakSet[Any] = WeakSet()
_FORMATS = "org.apache.spark.sql.sources.DataSourceRegister"


class FilePlanner:
    """Selects the files of a query, as the Java interface of this name describes; this one knows of no files."""

    def matchingFiles(self, filters: str) -> str:  # noqa: ARG002, N802 - Java calls it
        """Return a character for each listed file, `0` if it cannot match filters; empty if that is unknown."""
        return ""

    def removedFiles(self) -> str:  # noqa: N802 - Java calls it
        """Return a character for each listed file, `0` if no newer version has removed it; empty if none has."""
        return ""

    def listFiles(self, filters: str) -> str | None:  # noqa: ARG002, N802 - Java calls it
        """Spill the files that can match filters; return the path, or None if that failed."""
        return None

    def rowCount(self) -> int:  # noqa: N802 - Java calls it
        """Return the number of rows of all files; -1 if unknown."""
        return -1

    def newerVersion(self, execution: str) -> int:  # noqa: ARG002, N802 - Java calls it
        """Update to the newest version, once for each execution; return its number, `UNCHANGED` or `FAILED`."""
        return UNCHANGED

    def newerFiles(self) -> str:  # noqa: N802 - Java calls it
        """Return the path of the spilled files of the newer version; empty if it lists none."""
        return ""

    def newerVectors(self) -> str:  # noqa: N802 - Java calls it
        """Return the path of the spilled deletion vectors of the newer version; empty if it has none."""
        return ""

    def newerSize(self) -> int:  # noqa: N802 - Java calls it
        """Return the bytes of the files of the newer version."""
        return 0

    def tableId(self) -> str:  # noqa: N802 - Java calls it
        """Return the id of the table; empty if the index has only some of the files of the version."""
        return ""

    def failure(self) -> str:
        """Return why the last call failed."""
        return ""


class CatalogHandler(Protocol):
    """Asks servers of Unity Catalog; `CatalogHandler.java` documents the methods."""

    def location(self, session: Any, catalog: Any, schema: Any, table: Any, failure: Any) -> str | None: ...
    def schemas(self, session: Any, catalog: Any, failure: Any) -> str | None: ...
    def tables(self, session: Any, catalog: Any, schema: Any, failure: Any) -> str | None: ...
    def drop(self, session: Any, catalog: Any, schema: Any, table: Any, failure: Any) -> bool: ...
    def rename(self, session: Any, catalog: Any, schema: Any, table: Any, newName: Any, failure: Any) -> None: ...  # noqa: N803


class FormatHandler(Protocol):
    """Reads and writes for the format `delta`; `FormatHandler.java` documents the methods."""

    def read(self, session: Any, options: Any, failure: Any) -> Any: ...
    def describe(self, session: Any, location: Any, description: Any) -> bool: ...
    def write(self, session: Any, options: Any, mode: Any, rows: Any, failure: Any) -> None: ...


class StatementHandler(Protocol):
    """Reads and runs statements of Delta's SQL; `StatementHandler.java` documents the methods."""

    def read(self, session: Any, text: Any, parameters: Any, reading: Any, failure: Any) -> None: ...
    def run(self, session: Any, text: Any, failure: Any) -> Any: ...


class StreamHandler(Protocol):
    """Plans streams that read tables; `StreamHandler.java` documents the methods."""

    def streamSchema(self, session: Any, options: Any, failure: Any) -> Any: ...  # noqa: N802 - Java calls it
    def streamPlanner(self, session: Any, options: Any, checkpoint: Any, failure: Any) -> Any: ...  # noqa: N802


class StreamPlanner(Protocol):
    """Plans the batches of one streaming query; `StreamPlanner.java` documents the methods."""

    def schema(self) -> Any: ...
    def nextPosition(self, start: Any, isLimited: bool, failure: Any) -> str | None: ...  # noqa: N802, N803
    def batch(self, start: Any, end: Any, failure: Any) -> Any: ...
    def finish(self, end: Any, failure: Any) -> None: ...
    def stopAtNewest(self, failure: Any) -> None: ...  # noqa: N802


class _Interface:
    """The Java interface that an object implements, as py4j expects it in its attribute `Java`."""

    def __init__(self, package: str, name: str) -> None:
        self.implements = [f"{package}.{name}"]


class IndexedFiles(NamedTuple):
    """The files of a file index."""

    #: A file with the list of the files as an Arrow stream; empty to list them for each query.
    listing: str
    #: Their bytes.
    size: int
    #: A file with the deletion vectors as an Arrow stream; empty if there are none.
    vectors: str


def file_index(
    session: JavaSession,
    root: str,
    version: int,
    partition: Any,
    files: IndexedFiles,
    file_options: Mapping[str, str],
) -> Any:
    """Return a file index.

    Args:
        session: A session.
        root: The location of the table.
        version: Its version.
        partition: The schema of the constants of the files.
        files: The files.
        file_options: Settings of Hadoop for the files of the table.
    """
    spark = session.spark
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    for key, value in file_options.items():
        configuration.set(key, value)
    context = spark._sc._jsc.sc()
    listing, size, vectors = files
    return _new(session, "DeltaFileIndex", root, version, partition, listing, size, configuration, vectors, context)


def frame_of_index(session: JavaSession, index: Any, columns: Any, reader: Any, file_options: Mapping[str, str]) -> Any:
    """Return the Java frame of the physical columns and constants of a file index.

    Args:
        session: A session.
        index: The file index.
        columns: The schema of the files.
        reader: The reader of files; Spark's if None.
        file_options: Settings of Hadoop for the files of the table.
    """
    # Most tables have no options, and each call to Java costs time.
    options: Any = session.jvm.java.util.HashMap() if file_options else None
    for key, value in file_options.items():
        options.put(key, value)
    return index.frame(session.spark._jsparkSession, columns, reader, options)


def set_planner(session: JavaSession, index: Any, planner: FilePlanner, *, follows: bool) -> None:
    """Set the planner of a file index; `follows` makes each query read the newest version."""
    index.setPlanner(_implementing(session, "DeltaFileIndex", planner, "FilePlanner"), follows)


def frame_of_stream(session: JavaSession, schema: Any, file: str) -> Any:
    """Return a small table, an Arrow stream in a file, as a Java frame whose rows are in the plan."""
    return call_static(session, load(session, "ArrowRows"), "frame", session.spark._jsparkSession, schema, file)


def parquet_format(
    session: JavaSession, kind: Any, *, has_vectors: bool, is_local: bool, row_ids: str, commit_versions: str
) -> Any:
    """Return the reader of Parquet files that skips deleted rows.

    Args:
        session: A session.
        kind: The class `ParquetFormat`.
        has_vectors: Whether some files have deletion vectors.
        is_local: Whether the table is on a local disk.
        row_ids: The column with materialized row ids; empty without row tracking.
        commit_versions: The column with materialized commit versions; empty without row tracking.
    """
    return construct(session, kind, has_vectors, is_local, row_ids, commit_versions)


def add_row_count_rule(session: JavaSession) -> None:
    """Add the optimizer rule that takes a table's row count from the log."""
    _add_rule(session, "RowCountRule")


def add_file_selection_rule(session: JavaSession) -> None:
    """Add the optimizer rule that selects files by the filters of a query, for its estimates."""
    _add_rule(session, "FileSelectionRule")


def add_row_format_rule(session: JavaSession) -> None:
    """Add the optimizer rule that makes whole rows column by column."""
    _add_rule(session, "RowFormat")


def add_row_tracking_rule(session: JavaSession) -> None:
    """Add the optimizer rule that completes row ids and commit versions in `_metadata`."""
    _add_rule(session, "RowTrackingRule")


#: The optimizer rules of each session.
_RULES: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def _add_rule(session: JavaSession, name: str) -> None:
    """Add the optimizer rule of a class to a session, once."""
    known = _RULES.setdefault(session.spark, set())
    if name not in known:
        call_static(session, load(session, name), "addRule", session.spark._jsparkSession)
        known.add(name)


def refresh_cached_rows(session: JavaSession, root: str) -> None:
    """Drop the rows that Spark has cached of the newest version of a table, which has changed."""
    call_static(session, load(session, "CachedRows"), "refresh", session.spark._jsparkSession, root)


def delta_provider(session: JavaSession) -> Any:
    """Return the format `delta`, which the session finds from now on."""
    provider = _new(session, "DeltaProvider")
    add_service(session, provider.getClass(), _FORMATS)
    return provider


def set_handler(session: JavaSession, provider: Any, handler: FormatHandler) -> None:
    """Set the object that reads and writes for the format `delta`."""
    provider.setHandler(_implementing(session, "DeltaProvider", handler, "FormatHandler"))


def set_catalog_handler(session: JavaSession, handler: CatalogHandler | None) -> None:
    """Set the object that answers for catalogs of Unity Catalog; None for none."""
    name = "CatalogRequests"
    given = None if handler is None else _implementing(session, name, handler, "CatalogHandler")
    call_static(session, load(session, name), "setHandler", given)


def put_parser(session: JavaSession, handler: StatementHandler) -> None:
    """Put an object that reads and runs statements before the parser of a session and of those derived from it."""
    kind = load(session, "StatementParser")
    call_static(session, kind, "setHandler", _implementing(session, "StatementParser", handler, "StatementHandler"))
    call_static(session, kind, "install", session.spark._jsparkSession)
    _READING.add(session.spark._sc._gateway)


def take_parser_back(session: JavaSession) -> None:
    """Leave all statements to Spark again."""
    call_static(session, load(session, "StatementParser"), "setHandler", None)
    _READING.discard(session.spark._sc._gateway)


def marked(spark: Any, text: str) -> str:
    """Return a statement that is not read by Python first.

    Args:
        spark: The session, classic or Connect.
        text: The statement.
    """
    return _MARK + text if hasattr(spark, "_sc") and spark._sc._gateway in _READING else text


def stream_provider(session: JavaSession) -> Any:
    """Return the source of streams, for sessions in which `delta` is another format."""
    return _new(session, "DeltaStreamProvider")


def set_stream_handler(session: JavaSession, provider: Any, name: str, handler: StreamHandler) -> None:
    """Set the object that plans the streams of a provider, which is of the class `name`."""
    provider.setStreamHandler(_implementing(session, name, handler, "StreamHandler"))


def stream_planner(session: JavaSession, name: str, planner: StreamPlanner) -> Any:
    """Prepare a planner of a stream as the result of a call by a provider, which is of the class `name`."""
    return _implementing(session, name, planner, "StreamPlanner")


def hadoop_gateway(session: JavaSession) -> Any:
    """Start a gateway to Hadoop's file systems."""
    kind = load(session, "HadoopGateway")
    return call_static(session, kind, "start", kind.getClassLoader())


def strings_of(session: JavaSession, found: Any) -> dict[str, str]:
    """Return the strings of a Java map in one call; a dict of the map itself takes two calls for each key."""
    mapper = session.jvm.com.fasterxml.jackson.databind.ObjectMapper()
    return cast("dict[str, str]", json.loads(mapper.writeValueAsString(found)))


def _implementing(session: JavaSession, caller: str, implementation: Any, interface: str) -> Any:
    """Prepare an object for calls from a Java class."""
    from pyspark import java_gateway

    cast("Any", java_gateway).ensure_callback_server_started(session.spark._sc._gateway)
    implementation.Java = _Interface(package_of(session, caller), interface)
    return implementation


def _new(session: JavaSession, name: str, *arguments: Any) -> Any:
    return construct(session, load(session, name), *arguments)
