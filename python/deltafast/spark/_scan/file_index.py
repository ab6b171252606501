"""Read mode `index`: a file index compiled into the driver, over which Spark's own Parquet reader runs.

Files are neither listed nor opened for planning; their partition values come from the log. When Spark has pushed down
the user's filters it asks the index, `index.java`, which asks the core. The reader is Spark's own; `format.java`
extends it to skip the rows that deletion vectors delete, and where executors cannot load that, a join with the bitmaps
removes them. If a query only needs a table's rows, `rows.java` makes rows from the reader's batches faster than Spark
does; `tracking.java` completes the ids of rows in `_metadata`. The classes use internal interfaces of Spark; where
those differ, read mode `paths` returns the same rows.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, cast

from deltafast.exceptions import DeltaError, InvalidArgumentError, warn
from deltafast.spark._scan.physical_columns import array_of, field_of, spark_schema
from deltafast.spark._scan.snapshot import BASE_ROW_ID, COMMIT_VERSION, VECTOR
from deltafast.spark._session.java_classes import UnavailableError, call_static, first_line, load, on_executors
from deltafast.spark._session.session import spill, spilled

if TYPE_CHECKING:
    from deltafast.spark._scan.snapshot import Listing, Version
    from deltafast.spark._session.session import Session

__all__ = ["IndexUnavailableError", "scan"]

#: Seconds during which files are assumed to exist: no vacuum deletes files that new, and a check costs a listing.
_YOUNG = 10.0

#: `auto` (the default): `format.java` and `rows.java` read. `parquet`: Spark's unmodified reader; a join removes
#: deleted rows.
READER = "spark.deltafast.reader"
_READERS = ("auto", "parquet")


class IndexUnavailableError(DeltaError):
    """This Spark cannot use the file index."""


class _Prune:
    """The callback for Spark's planner if the file index lists all files."""

    def __init__(self, version: Version, paths: Any) -> None:
        self._version, self._paths, self._since = version, paths, time.monotonic()

    def apply(self, filters: str) -> str:
        """Return which files can match, or for `?` which may be deleted; on an error all files exist and match."""
        try:
            if filters == "?":
                is_young = time.monotonic() - self._since < _YOUNG
                return "" if is_young else self._version.ended(self._paths)
            return self._version.verdict(self._paths, filters)
        except Exception:  # noqa: BLE001 - an error in Java's thread would fail the user's query needlessly
            return ""

    class Java:
        """The Java interface that it implements, as py4j expects it."""

        implements = ["java.util.function.Function"]  # noqa: RUF012


class _List:
    """The callback for Spark's planner if the file index lists no files."""

    def __init__(self, version: Version, listing: Listing) -> None:
        self._version, self._listing, self._since = version, listing, time.monotonic()

    def apply(self, filters: str) -> str:
        """Spill the files that can match filters: return a path, or `!` and an error message.

        `?` asks whether to list them again: the result is not empty if so. `#` asks for the number of their rows, which
        is empty if unknown.
        """
        if filters == "?":
            is_young = time.monotonic() - self._since < _YOUNG
            self._version.is_past |= not is_young
            return "" if is_young else "anew"
        if filters == "#":
            with contextlib.suppress(Exception):
                rows: Any = self._version.chosen(self._listing, "").column("rows")
                return "" if rows.null_count else str(rows.to_numpy().sum())
            return ""
        try:
            return spilled(_block(self._listing, self._version.chosen(self._listing, filters)))
        except Exception as error:  # noqa: BLE001 - Java raises it in the thread of the query
            return f"!{error}"

    class Java:
        """The Java interface that it implements, as py4j expects it."""

        implements = ["java.util.function.Function"]  # noqa: RUF012


class _Follow:
    """The callback for Spark's planner if each query reads the newest version."""

    def __init__(self, version: Version, core: _Prune | _List, *, leaves_out: bool) -> None:
        self._version, self._core, self._leaves_out = version, core, leaves_out
        self._query = ""

    def apply(self, asked: str) -> str:
        """Return the result for the newest version; `@` and the number of the query updates to it.

        The result of an update is empty if there is no newer version; else it consists of lines: two spilled tables, of
        the files and of deletion vectors (empty if there are none), the bytes of the files, and the version.
        """
        if not asked.startswith("@"):
            return self._core.apply(asked)
        query = asked[1:]
        if query and query == self._query:
            return ""
        try:
            newer = self._version.newer()
            if newer is not None:
                return self._to(newer, query)
        except Exception as error:  # noqa: BLE001 - Java raises it in the thread of the query
            return f"!{error}"
        self._query = query
        return ""

    def _to(self, newer: Version, query: str) -> str:
        listing = newer.listing(None, lazy=True)
        if listing.vectors is not None and not self._leaves_out:
            message = f"{newer.place.uri} has deletion vectors since version {newer.number}: create the frame again"
            raise DeltaError(message)
        listed = listing._replace(constants=_without_number(listing))
        files = "" if listed.files is None else spilled(_block(listed, listed.files))
        vectors = "" if listing.vectors is None else spilled(listing.vectors.select(["words"]))
        self._version, self._core, self._query = newer, _core(newer, listed), query
        return "\n".join((files, vectors, str(listing.size), str(newer.number)))

    class Java:
        """The Java interface that it implements, as py4j expects it."""

        implements = ["java.util.function.Function"]  # noqa: RUF012


def _core(version: Version, listing: Listing) -> _Prune | _List:
    """Return the callback for a listing."""
    if listing.files is None:
        return _List(version, listing)
    return _Prune(version, listing.files.column("path").combine_chunks())


def _block(listing: Listing, files: Any) -> Any:
    """Return the files with their columns in the order in which Java reads them."""
    import pyarrow as pa

    constants = [field["name"] for field in listing.constants]
    # Where the number is a constant, a join removes the deleted rows.
    is_ours = VECTOR in files.column_names and VECTOR not in constants
    numbers = files.column(VECTOR) if is_ours else pa.nulls(len(files), pa.int32())
    block = files.select(["path", "size", "time", "ended", "rows"]).append_column("vector", numbers)
    for place, name in (("base", BASE_ROW_ID), ("version", COMMIT_VERSION)):
        known = files.column(name) if name in files.column_names else pa.nulls(len(files), pa.int64())
        block = block.append_column(place, known)
    for name in constants:
        block = block.append_column(name, files.column(name))
    return block


def scan(version: Version, listing: Listing, data: list[dict[str, Any]]) -> Any:
    """Return a frame of physical columns and constants, without deleted rows.

    Args:
        version: The version.
        listing: Its files.
        data: The columns of its files, in Delta's JSON.

    Raises:
        IndexUnavailableError: This Spark does not have the required classes.
    """
    from pyspark.sql import DataFrame

    session = version.session
    spark, jvm = session.spark, session.jvm
    java = spark._jsparkSession

    def schema(fields: list[dict[str, Any]]) -> Any:
        return java.parseDataType(spark_schema(version.columns.declared(fields)).json())

    leaves_out = listing.vectors is not None or version.follows_vectors
    kind, reader = _index(session), _reader(version, listing, leaves_out=leaves_out)
    listed = listing if reader is None else listing._replace(constants=_without_number(listing))
    vectors = None if listing.vectors is None or reader is None else listing.vectors.select(["words"])
    try:
        constants = schema(listed.constants)
        with contextlib.ExitStack() as stack:
            arguments = spark._sc._gateway.new_array(jvm.java.lang.Object, 8)
            arguments[0] = version.place.hadoop
            arguments[1] = str(version.number)
            arguments[2] = constants
            files = listed.files
            arguments[3] = "" if files is None else stack.enter_context(spill(_block(listed, files)))
            arguments[4] = str(listing.size)
            arguments[5] = java.sessionState().newHadoopConf()
            arguments[6] = "" if vectors is None else stack.enter_context(spill(vectors))
            arguments[7] = spark._sc._jsc.sc()
            index = kind.getConstructors()[0].newInstance(arguments)
        # If a join removes deleted rows, the frame is tied to the version of the joined bitmaps.
        follows = version.follows and reader is not None
        if files is None or len(files) or follows:
            from pyspark import java_gateway

            cast("Any", java_gateway).ensure_callback_server_started(spark._sc._gateway)
            core = _core(version, listed)
            index.setCore(_Follow(version, core, leaves_out=leaves_out) if follows else core)
            if follows:
                index.follow()
        formats = jvm.org.apache.spark.sql.execution.datasources
        relation = formats.HadoopFsRelation(
            index,
            constants,
            schema(data),
            jvm.scala.Option.empty(),
            formats.parquet.ParquetFileFormat() if reader is None else reader,
            jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()),
            java,
        )
        frame = DataFrame(java.baseRelationToDataFrame(relation), spark)
        _count_by_log(session)
        if reader is not None:
            _make_rows(session)
    except Exception as error:
        message = f"this Spark does not take deltafast's list of files ({first_line(error)})"
        raise IndexUnavailableError(message) from error
    if listing.vectors is None or reader is not None:
        return frame
    return without_deleted(frame, _small(session, kind, listing.vectors))


def _index(session: Session) -> Any:
    try:
        return load(session, "index.java", "DeltafastFileIndex")
    except UnavailableError as error:
        message = f"this Spark cannot compile deltafast's list of files ({error})"
        raise IndexUnavailableError(message) from error


def _count_by_log(session: Session) -> None:
    """Add an optimizer rule that takes a table's row count from the log; if it cannot be added, tasks count."""
    with contextlib.suppress(UnavailableError):
        kind = load(session, "counting.java", "DeltafastCounting")
        call_static(session, kind, "addRule", session.spark._jsparkSession)


def _make_rows(session: Session) -> None:
    """Add an optimizer rule that makes whole rows faster; if it cannot be added, Spark makes them."""
    with contextlib.suppress(UnavailableError):
        kind = load(session, "rows.java", "DeltafastRows")
        on_executors(session, kind, "DeltafastRowsProbe")
        call_static(session, kind, "addRule", session.spark._jsparkSession)


def _complete_row_ids(session: Session) -> bool:
    """Add an optimizer rule that completes row ids and commit versions in `_metadata`; return whether it was added."""
    with contextlib.suppress(UnavailableError):
        kind = load(session, "tracking.java", "DeltafastTracking")
        call_static(session, kind, "addRule", session.spark._jsparkSession)
        return True
    return False


def _reader(version: Version, listing: Listing, *, leaves_out: bool) -> Any:
    """Return the reader that skips deleted rows itself; None to use Spark's."""
    session = version.session
    chosen = session.conf(READER, "auto")
    if chosen not in _READERS:
        message = f"{READER} must be one of {', '.join(_READERS)}, not {chosen!r}"
        raise InvalidArgumentError(message)
    if chosen == "parquet":
        return None
    try:
        kind = load(session, "format.java", "DeltafastFormat")
        on_executors(session, kind, "DeltafastProbe")
        arguments = session.spark._sc._gateway.new_array(session.jvm.java.lang.Object, 3)
        arguments[0] = str(leaves_out).lower()
        has_row_ids = version.numbers_rows and _complete_row_ids(session)
        for place, name in enumerate(("row_id", "row_commit_version"), start=1):
            arguments[place] = (version.materialized(name)[0] or "") if has_row_ids else ""
        return kind.getConstructors()[0].newInstance(arguments)
    except UnavailableError as error:
        if listing.vectors is not None:
            warn(f"this Spark does not take deltafast's reader ({error}); deleted rows are left out by a join instead")
        return None


def _without_number(listing: Listing) -> list[dict[str, Any]]:
    return [field for field in listing.constants if field["name"] != VECTOR]


def without_deleted(frame: Any, vectors: Any) -> Any:
    """Return the rows that the bitmaps of `vectors` (`vector`, `words`) do not contain, by position in the file."""
    from pyspark.sql import functions

    joined = frame.join(functions.broadcast(vectors), functions.col(VECTOR) == functions.col("vector"), "left")
    return joined.where(kept("_metadata.row_index", "words"))


def kept(row: str, words: str) -> Any:
    """Return whether a row's bit is not set; after the last word, or without words, no row is deleted."""
    from pyspark.sql import functions

    # `get` returns null where an index out of bounds would be an error under ANSI.
    word = f"get({words}, cast(shiftright({row}, 6) as int))"
    return functions.expr(f"coalesce(getbit({word}, cast({row} & 63 as int)), 0) = 0")


def _small(session: Session, kind: Any, table: Any) -> Any:
    """Return a table as a frame whose rows are in the plan, so that reading it needs no job."""
    from pyspark.sql import DataFrame

    fields = [field_of("vector", "integer"), field_of("words", array_of("long"))]
    java = session.spark._jsparkSession
    with spill(table) as file:
        schema = java.parseDataType(spark_schema(fields).json())
        return DataFrame(call_static(session, kind, "frame", java, schema, file), session.spark)
