"""Read mode `index`: a file index in the driver, over which Spark's own Parquet reader runs.

Files are neither listed nor opened for planning; their partition values come from the log. When Spark has pushed down
the user's filters it asks the index, `DeltaFileIndex`, which asks the core. The reader is Spark's own; `ParquetFormat`
extends it to skip the rows that deletion vectors delete, and where executors cannot load that, a join with the bitmaps
removes them. If a query only needs a table's rows, `RowFormat` makes rows from the reader's batches faster than Spark
does; `RowTrackingRule` completes the ids of rows in `_metadata`. The Java classes use internal interfaces of Spark;
where those differ, read mode `paths` returns the same rows.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from deltafast._types import array_of
from deltafast.exceptions import DeltaError, InvalidArgumentError, warn
from deltafast.spark._conditions import Operation
from deltafast.spark._scan.physical_columns import field_of, spark_schema
from deltafast.spark._scan.snapshot import BASE_ROW_ID, COMMIT_VERSION, VECTOR, total
from deltafast.spark._session.file_options import file_options
from deltafast.spark._session.java_calls import (
    FAILED,
    UNCHANGED,
    FilePlanner,
    IndexedFiles,
    add_file_selection_rule,
    add_row_count_rule,
    add_row_format_rule,
    add_row_tracking_rule,
    file_index,
    frame_of_index,
    frame_of_stream,
    parquet_format,
    set_planner,
)
from deltafast.spark._session.java_library import UnavailableError, first_line, load, on_executors
from deltafast.spark._session.session import spill, spilled

if TYPE_CHECKING:
    from deltafast.spark._scan.snapshot import Listing, Version
    from deltafast.spark._session.session import Session

__all__ = ["IndexUnavailableError", "scan"]

#: Seconds during which files are assumed to exist: no vacuum deletes files that new, and a check costs a listing.
_YOUNG = 10.0

#: `auto` (the default): `ParquetFormat` and `RowFormat` read. `parquet`: Spark's unmodified reader; a join removes
#: deleted rows.
READER = "spark.deltafast.reader"
_READERS = ("auto", "parquet")


class IndexUnavailableError(DeltaError):
    """This Spark cannot use the file index."""


class _PruningPlanner(FilePlanner):
    """The planner of an index that lists all files."""

    def __init__(self, version: Version, paths: Any, table_id: str) -> None:
        self._version, self._paths, self._since = version, paths, time.monotonic()
        self._table_id = table_id

    def matchingFiles(self, filters: str) -> str:  # noqa: N802 - Java calls it
        """Return which files can match; on an error all match."""
        try:
            return self._version.verdict(self._paths, filters)
        except Exception:  # noqa: BLE001 - an error in Java's thread would fail the user's query needlessly
            return ""

    def removedFiles(self) -> str:  # noqa: N802 - Java calls it
        """Return which files newer versions have removed; on an error none."""
        try:
            is_young = time.monotonic() - self._since < _YOUNG
            return "" if is_young else self._version.ended(self._paths)
        except Exception:  # noqa: BLE001 - an error in Java's thread would fail the user's query needlessly
            return ""

    def tableId(self) -> str:  # noqa: N802 - Java calls it
        """Return the id of the table; empty if the index has only some of the files of the version."""
        return self._table_id


class _ListingPlanner(FilePlanner):
    """The planner of an index that lists no files."""

    def __init__(self, version: Version, listing: Listing, table_id: str) -> None:
        self._version, self._listing, self._since = version, listing, time.monotonic()
        self._table_id, self._failure = table_id, ""

    def removedFiles(self) -> str:  # noqa: N802 - Java calls it
        """Return whether to list the files again: a string that is not empty."""
        is_young = time.monotonic() - self._since < _YOUNG
        self._version.is_past |= not is_young
        return "" if is_young else "list again"

    def listFiles(self, filters: str) -> str | None:  # noqa: N802 - Java calls it
        """Spill the files that can match filters; return the path."""
        try:
            return spilled(_block(self._listing, self._version.chosen(self._listing, filters)))
        except Exception as error:  # noqa: BLE001 - Java raises it in the thread of the query
            self._failure = str(error)
            return None

    def rowCount(self) -> int:  # noqa: N802 - Java calls it
        """Return the number of rows of all files; -1 if unknown."""
        with contextlib.suppress(Exception):
            rows: Any = self._version.chosen(self._listing, "").column("rows")
            return -1 if rows.null_count else total(rows)
        return -1

    def tableId(self) -> str:  # noqa: N802 - Java calls it
        """Return the id of the table; empty if the index has only some of the files of the version."""
        return self._table_id

    def failure(self) -> str:
        """Return why the last listing failed."""
        return self._failure


class _FollowingPlanner(FilePlanner):
    """The planner of an index with which each query reads the newest version."""

    def __init__(self, version: Version, planner: FilePlanner, *, leaves_out: bool) -> None:
        self._version, self._planner, self._leaves_out = version, planner, leaves_out
        self._execution = self._failure = self._files = self._vectors = ""
        self._size = 0

    def matchingFiles(self, filters: str) -> str:  # noqa: N802 - Java calls it
        """Return which files of the newest version can match."""
        return self._planner.matchingFiles(filters)

    def removedFiles(self) -> str:  # noqa: N802 - Java calls it
        """Return which files of the newest version still newer ones have removed."""
        return self._planner.removedFiles()

    def listFiles(self, filters: str) -> str | None:  # noqa: N802 - Java calls it
        """Spill the files of the newest version that can match filters."""
        return self._planner.listFiles(filters)

    def rowCount(self) -> int:  # noqa: N802 - Java calls it
        """Return the number of rows of the newest version."""
        return self._planner.rowCount()

    def tableId(self) -> str:  # noqa: N802 - Java calls it
        """Return the id of the table at the newest version."""
        return self._planner.tableId()

    def newerVersion(self, execution: str) -> int:  # noqa: N802 - Java calls it
        """Update to the newest version, once for each query; return its number if there is a newer one."""
        if execution and execution == self._execution:
            return UNCHANGED
        self._failure = ""
        try:
            newer = self._version.newer()
            if newer is not None:
                self._update(newer)
        except Exception as error:  # noqa: BLE001 - Java raises it in the thread of the query
            from deltafast.spark.exceptions import as_spark_error  # PySpark is imported when it is used

            self._failure = str(as_spark_error(error, Operation.RELATION))
            return FAILED
        self._execution = execution
        return UNCHANGED if newer is None else newer.number

    def newerFiles(self) -> str:  # noqa: N802 - Java calls it
        """Return the path of the spilled files of the newer version; empty if it lists none."""
        return self._files

    def newerVectors(self) -> str:  # noqa: N802 - Java calls it
        """Return the path of the spilled deletion vectors of the newer version; empty if it has none."""
        return self._vectors

    def newerSize(self) -> int:  # noqa: N802 - Java calls it
        """Return the bytes of the files of the newer version."""
        return self._size

    def failure(self) -> str:
        """Return why the last update, or else the last listing, failed."""
        return self._failure or self._planner.failure()

    def _update(self, newer: Version) -> None:
        listing = newer.listing(None, lazy=True)._replace(is_whole=True)
        if listing.vectors is not None and not self._leaves_out:
            message = f"{newer.place.uri} has deletion vectors since version {newer.number}: create the frame again"
            raise DeltaError(message)
        listed = listing._replace(constants=_without_number(listing))
        self._files = "" if listed.files is None else spilled(_block(listed, listed.files))
        self._vectors = "" if listing.vectors is None else spilled(listing.vectors.select(["words"]))
        self._size = listing.size
        self._version, self._planner = newer, _planner(newer, listed)


def _planner(version: Version, listing: Listing) -> FilePlanner:
    """Return the planner for a listing."""
    if listing.is_feed:
        return FilePlanner()
    table_id = version.table_id if listing.is_whole else ""
    if listing.files is None:
        return _ListingPlanner(version, listing, table_id)
    return _PruningPlanner(version, listing.files.column("path").combine_chunks(), table_id)


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
    spark = session.spark
    java = spark._jsparkSession

    def schema(fields: list[dict[str, Any]]) -> Any:
        declared = fields if listing.is_feed else version.columns.declared(fields)
        text = spark_schema(declared).json()
        if text not in version.java_schemas:
            version.java_schemas[text] = java.parseDataType(text)
        return version.java_schemas[text]

    leaves_out = listing.vectors is not None or version.follows_vectors
    _load_index(session)
    reader = _reader(version, listing, leaves_out=leaves_out)
    listed = listing if reader is None else listing._replace(constants=_without_number(listing))
    vectors = None if listing.vectors is None or reader is None else listing.vectors.select(["words"])
    options = file_options(session, version.place, "READ")
    try:
        constants = schema(listed.constants)
        with contextlib.ExitStack() as stack:
            files = "" if listed.files is None else stack.enter_context(spill(_block(listed, listed.files)))
            words = "" if vectors is None else stack.enter_context(spill(vectors))
            place = version.place.hadoop
            indexed_files = IndexedFiles(files, listing.size, words)
            index = file_index(session, place, version.number, constants, indexed_files, options)
        # If a join removes deleted rows, the frame is tied to the version of the joined bitmaps.
        follows = version.follows and reader is not None
        if listed.files is None or len(listed.files) or follows:
            planner = _planner(version, listed)
            if follows:
                planner = _FollowingPlanner(version, planner, leaves_out=leaves_out)
            set_planner(session, index, planner, follows=follows)
        frame = DataFrame(frame_of_index(session, index, schema(data), reader, options), spark)
        _count_by_log(session)
        if reader is not None:
            _make_rows(session)
        _select_files(session)
    except Exception as error:
        message = f"this Spark does not take deltafast's list of files ({first_line(error)})"
        raise IndexUnavailableError(message) from error
    if listing.vectors is None or reader is not None:
        return frame
    return without_deleted(frame, _small(session, listing.vectors))


def _load_index(session: Session) -> None:
    try:
        load(session, "DeltaFileIndex")
    except UnavailableError as error:
        message = f"this Spark cannot compile deltafast's list of files ({error})"
        raise IndexUnavailableError(message) from error


#: The missing features of each Java virtual machine that were reported already.
_REPORTED: set[tuple[Any, str]] = set()


def _report(session: Session, consequence: str, error: UnavailableError) -> None:
    """Warn, once, of a class that is not available."""
    key = (session.spark._sc._gateway, consequence)
    if key not in _REPORTED:
        _REPORTED.add(key)
        warn(f"this Spark does not take a class of deltafast ({error}); {consequence}")


def _count_by_log(session: Session) -> None:
    """Add an optimizer rule that takes a table's row count from the log; if it cannot be added, tasks count."""
    try:
        add_row_count_rule(session)
    except UnavailableError as error:
        _report(session, "tasks count the rows of whole tables instead of the log", error)


def _select_files(session: Session) -> None:
    """Add an optimizer rule that selects files by filters; if it cannot be added, estimates are those of tables."""
    try:
        add_file_selection_rule(session)
    except UnavailableError as error:
        _report(session, "queries are planned by the sizes of whole tables", error)


def _make_rows(session: Session) -> None:
    """Add an optimizer rule that makes whole rows faster; if it cannot be added, Spark makes them."""
    try:
        on_executors(session, load(session, "RowFormat"))
        add_row_format_rule(session)
    except UnavailableError as error:
        _report(session, "Spark makes the rows of whole tables, which is slower", error)


def _complete_row_ids(session: Session) -> bool:
    """Add an optimizer rule that completes row ids and commit versions in `_metadata`; return whether it was added."""
    try:
        add_row_tracking_rule(session)
    except UnavailableError as error:
        _report(session, "_metadata has no row_id and row_commit_version", error)
        return False
    return True


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
        kind = load(session, "ParquetFormat")
        on_executors(session, kind)
        has_row_ids = version.numbers_rows and _complete_row_ids(session)
        names = ("row_id", "row_commit_version")
        row_ids, commit_versions = ((version.materialized(name)[0] or "") if has_row_ids else "" for name in names)
        return parquet_format(
            session,
            kind,
            has_vectors=leaves_out,
            is_local=version.place.folder is not None,
            row_ids=row_ids,
            commit_versions=commit_versions,
        )
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


def _small(session: Session, table: Any) -> Any:
    """Return a table as a frame whose rows are in the plan, so that reading it needs no job."""
    from pyspark.sql import DataFrame

    fields = [field_of("vector", "integer"), field_of("words", array_of("long"))]
    java = session.spark._jsparkSession
    with spill(table) as file:
        schema = java.parseDataType(spark_schema(fields).json())
        return DataFrame(frame_of_stream(session, schema, file), session.spark)
