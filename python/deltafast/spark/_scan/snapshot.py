"""One version of a table for the read modes: its columns, its files as one table, and file skipping."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast._delta_keys import ENABLE_ROW_TRACKING, MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._util.column_mapping import MappingMode
from deltafast._util.values import from_epoch_ms, to_epoch_ms
from deltafast.exceptions import (
    DeltaError,
    DeltaProtocolError,
    ErrorCode,
    InvalidArgumentError,
    SchemaMismatchError,
    VersionNotFoundError,
)
from deltafast.spark._scan.physical_columns import Columns, field_of, mapping_mode, spark_schema, string_collations
from deltafast.spark._session.session import timestamp_in_zone, version_number

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    import pyarrow as pa

    from deltafast import _core
    from deltafast._core_types import BoundTree
    from deltafast._expr.tree import Node
    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place
    from deltafast.table import DeltaTable

__all__ = ["BASE_ROW_ID", "COMMIT_VERSION", "VECTOR", "Listing", "Version", "change_data_range", "total"]

#: Columns with one value for all rows of a file, in addition to the partition columns.
VECTOR = "__deltafast_vector"
BASE_ROW_ID = "__deltafast_base_row_id"
COMMIT_VERSION = "__deltafast_commit_version"

#: Above this number of files only those that a query needs are listed: each costs Java microseconds and a kilobyte.
MANY = 20_000

_MATERIALIZED = {
    "row_id": (MATERIALIZED_ROW_ID, BASE_ROW_ID),
    "row_commit_version": (MATERIALIZED_ROW_COMMIT_VERSION, COMMIT_VERSION),
}


class Listing(NamedTuple):
    """The files that are read."""

    #: One row per file: `path` (as in the log), `size`, `time` (ms), `ended`, `rows` (that are not deleted; null if the
    #: log has no statistics), then the constants; None if there are so many that only the files that a query needs are
    #: listed (`Version.chosen`).
    files: Any
    #: The constants: fields in Delta's JSON, by their names in `files`.
    constants: list[dict[str, Any]]
    #: Deleted rows by file: `vector` (its number in the constants) and `words`; None if no row is deleted.
    vectors: pa.Table | None
    #: Bytes of all the files.
    size: int
    #: The metadata columns to read, and the bound tree that skips files.
    wanted: tuple[str, ...]
    predicate: BoundTree | None
    #: The files with deletion vectors, by their numbers.
    marked: Any
    #: Whether they hold a change data feed: they need not be files of the version, and columns that the schema declares
    #: NOT NULL may be null in older ones.
    is_feed: bool = False
    #: Whether they are known to be all files of the version.
    is_whole: bool = False

    def only(self, paths: Collection[str], *, others: bool = False) -> Listing:
        """Return the files at these paths of the log, or all others."""
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        mask = compute.is_in(self.files.column("path"), pa.array(list(paths), pa.string()))
        return self._replace(files=self.files.filter(compute.invert(mask) if others else mask), is_whole=False)


class Version:
    """One version of a table.

    Args:
        session: The session that reads it.
        place: The table's location.
        table: A handle on it.
        is_past: Whether it was selected by version or timestamp, so that newer versions may have removed its
            files.
        follows: Whether each query reads the version that is the newest then (`newer`).
    """

    def __init__(
        self, session: Session, place: Place, table: DeltaTable, *, is_past: bool = False, follows: bool = False
    ) -> None:
        self.session, self.place, self.is_past, self.follows = session, place, is_past, follows
        self._table = table
        self.snapshot = handle_of(table).snapshot
        metadata = table.metadata()
        self.table_id = metadata.id
        schema = json.loads(self.snapshot.metadata()["schemaString"])
        protocol = table.protocol()
        #: The features that its protocol lists.
        self.features = features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        self.mapping = mapping_mode(protocol.min_reader_version, features, metadata.configuration)
        self.columns = Columns(schema, metadata.partition_columns, is_mapped=self.mapping is not MappingMode.NONE)
        _check_collations(session, self.columns)
        self.properties = metadata.configuration
        self.tracks_rows = "rowTracking" in features
        #: Whether every row has an id and a commit version.
        self.numbers_rows = self.tracks_rows and self.properties.get(ENABLE_ROW_TRACKING, "").lower() == "true"
        self._has_vectors = "deletionVectors" in features
        self._verdicts: dict[str, str] = {}
        #: Java's form of schemas, by their JSON.
        self.java_schemas: dict[str, Any] = {}

    @property
    def number(self) -> int:
        """Its version number."""
        return self.snapshot.version

    @property
    def follows_vectors(self) -> bool:
        """Whether newer versions that are read by the same frame may have deletion vectors."""
        return self.follows and self._has_vectors

    def newer(self) -> Version | None:
        """Return the newest version, for a frame that was created for this one; None if this is the newest.

        Raises:
            SchemaMismatchError: A column was removed or changed, so that a frame of this version cannot show it.
        """
        newest = self.snapshot.update()
        if newest.version == self.number:
            return None
        handle_of(self._table).move(newest)
        found = Version(self.session, self.place, self._table, follows=True)
        known = {field["name"]: field for field in found.columns.fields}
        is_same = found.mapping == self.mapping and found.columns.partition == self.columns.partition
        if not is_same or any(known.get(field["name"]) != field for field in self.columns.fields):
            message = (
                f"the columns of {self.place.uri} have changed since the frame was made of version {self.number}: "
            )
            raise SchemaMismatchError(
                message + "create it again",
                code=ErrorCode.FRAME_SCHEMA_CHANGED,
                parameters={"path": self.place.uri},
            )
        return found

    def materialized(self, name: str) -> tuple[str | None, str]:
        """Return the column that materializes row ids or commit versions, and the constant of the default.

        Raises:
            InvalidArgumentError: There is no such metadata column.
            DeltaProtocolError: The table does not have row tracking.
        """
        if name not in _MATERIALIZED:
            message = f"there is no metadata column {name!r}; there are {', '.join(_MATERIALIZED)}"
            raise InvalidArgumentError(message)
        if not self.tracks_rows:
            message = f"{name} needs a table with the feature rowTracking; {self.place.uri} has it not"
            raise DeltaProtocolError(message, feature="rowTracking")
        key, constant = _MATERIALIZED[name]
        return self.properties.get(key), constant

    def listing(
        self,
        predicate: BoundTree | None,
        wanted: tuple[str, ...] = (),
        *,
        lazy: bool = False,
        only: Collection[str] | None = None,
    ) -> Listing:
        """Return the files with all that Java needs, as one table.

        Args:
            predicate: A bound tree; files that cannot match are skipped.
            wanted: Metadata columns to read.
            lazy: List no files if there are very many.
            only: List only the files at these paths of the log.
        """
        paths = None if only is None else set(only)
        constants = [field for field in self.columns.partition for field in self.columns.physical([field])]
        vectors, marked = self._vectors(paths)
        if vectors is not None:
            constants.append(field_of(VECTOR, "integer"))
        constants += [field_of(name, "long") for name in (BASE_ROW_ID, COMMIT_VERSION) if wanted]
        listing = Listing(None, constants, vectors, 0, wanted, predicate, marked)
        if lazy and self.snapshot.num_files() >= MANY:
            return listing._replace(size=self.snapshot.size_in_bytes())
        files = self._files(listing, predicate, paths)
        return listing._replace(files=files, size=total(files.column("size")))

    def chosen(self, listing: Listing, filters: str) -> pa.Table:
        """Return the files that can match filters (see `verdict`), for a listing without files."""
        from deltafast._expr.tree import Bound

        nodes = [node for sql in _split(filters) if (node := self._bound(sql)) is not None]
        if listing.predicate is not None:
            nodes.append(Bound.from_tree(listing.predicate).expr)
        return self._files(listing, self._together(nodes))

    def _files(self, listing: Listing, predicate: BoundTree | None, only: set[str] | None = None) -> pa.Table:
        """Return the table of the files that can match a bound tree; with `only`, of these paths."""
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        # Paths that leave the table's store are rejected before Spark opens them.
        if only is None or not all(map(_is_below, only)):
            RecordBatchReader(self.snapshot.file_uris(predicate, as_in_log=True, paths=only)).read_all()
        names = ["path", "size_bytes", "modification_time", "num_records", "partition", "deletion_vector"]
        has_row_ids = bool(listing.wanted) or self.numbers_rows
        names += ["base_row_id", "default_row_commit_version"] if has_row_ids else []
        found = RecordBatchReader(self.snapshot.files(columns=names, predicate=predicate, paths=only)).read_all()
        paths = found.column("path").combine_chunks()
        is_ended = self._ended(paths, only) if self.is_past else None
        if is_ended is None:
            is_ended = pa.repeat(pa.scalar(value=False), len(paths))
        descriptor = found.column("deletion_vector").combine_chunks()
        deleted = compute.struct_field(descriptor, "cardinality")
        data: dict[str, Any] = {
            "path": paths,
            "size": compute.coalesce(found.column("size_bytes"), 0),
            "time": compute.coalesce(found.column("modification_time"), 0),
            "ended": is_ended,
            "rows": compute.subtract(found.column("num_records"), compute.coalesce(deleted, 0)),
        }
        for field in self.columns.partition:
            values = compute.struct_field(found.column("partition").combine_chunks(), field["name"])
            data[self.columns.name(field)] = values
        if listing.vectors is not None:
            number = compute.index_in(paths, listing.marked)
            has_vector = compute.is_valid(descriptor)
            if compute.any(compute.and_(has_vector, compute.is_null(number))).as_py():
                message = f"some deletion vectors of {self.place.uri} at version {self.number} were not found"
                raise DeltaError(message)
            data[VECTOR] = compute.if_else(has_vector, number, None)
        for name, column in ((BASE_ROW_ID, "base_row_id"), (COMMIT_VERSION, "default_row_commit_version")):
            if has_row_ids:
                data[name] = found.column(column)
        return pa.table(data)

    def _ended(self, paths: Any, only: set[str] | None = None) -> Any:
        """Return which of these files newer versions have removed; None if there is no newer version."""
        newest = self.snapshot.update()
        return None if newest.version == self.number else _not_in(newest, paths, only)

    def removed(self, paths: Any) -> Any:
        """Return which files are not in the newest version."""
        return _not_in(self.snapshot.update(), paths, set(paths.to_pylist()))

    def ended(self, paths: Any) -> str:
        """Return a character for each file, `1` if newer versions have removed it; empty if no version is newer."""
        found = self._ended(paths)
        return "" if found is None else _digits(found)

    def _vectors(self, only: set[str] | None = None) -> tuple[pa.Table | None, Any]:
        """Return the deleted rows, by the numbers of their files, and the files by these numbers."""
        import pyarrow as pa

        if not self._has_vectors:
            return None, None
        words = RecordBatchReader(self.snapshot.deletion_vectors(as_bitmaps=True, paths=only)).read_all()
        if not len(words):
            return None, None
        columns: Any = {"vector": pa.array(range(len(words)), pa.int32()), "words": words.column("words")}
        return pa.table(columns), words.column("path").combine_chunks()

    # --- file skipping, called by Spark's planner ------------------------------------------------

    def verdict(self, paths: Any, filters: str) -> str:
        """Return which files may hold matching rows.

        Args:
            paths: The files, as in the log.
            filters: Spark SQL over physical names, each after its length: `5:a = 1`. Filters that the core does
                not support skip no file.

        Returns:
            A character for each file, `0` if it can be skipped; empty if all files must be read.
        """
        import pyarrow.compute as pc

        if filters not in self._verdicts:
            nodes = [node for sql in _split(filters) if (node := self._bound(sql)) is not None]
            answer = ""
            if nodes:
                stream = self.snapshot.file_uris(self._together(nodes), as_in_log=True)
                kept = RecordBatchReader(stream).read_all().column("uri").combine_chunks()
                answer = _digits(cast("Any", pc).is_in(paths, kept))
            self._verdicts[filters] = answer
        return self._verdicts[filters]

    def _together(self, nodes: list[Node]) -> BoundTree | None:
        from deltafast._expr.tree import Bound, joined

        if not nodes:
            return None
        return Bound(joined("and", nodes), ansi=self.session.is_ansi, zone=self.session.zone).to_tree()

    def _bound(self, sql: str) -> Node | None:
        from deltafast._expr import bind_predicate
        from deltafast._expr.tree import Bound

        fields = self.columns.physical(self.columns.fields)
        try:
            schema = {"type": "struct", "fields": fields}
            tree = bind_predicate(sql, schema, self.session.expression_context)
        except DeltaError:
            return None
        return self.columns.logical_paths(Bound.from_tree(tree).expr)


def _check_collations(session: Session, columns: Columns) -> None:
    """Reject collations that the session's Spark does not have; over Connect, the server rejects them."""
    for field in columns.fields:
        for path, name in string_collations(field).items():
            if name is not None and not session.is_connect:
                schema = spark_schema([field_of("_", f"string collate {name}")])
                try:
                    session.spark._jsparkSession.parseDataType(schema.json())
                except Exception:  # noqa: BLE001 - Java's, whose text has the column's type
                    message = f"the column `{path}` has the collation {name}, which Spark does not have"
                    raise DeltaProtocolError(message, column=path, feature="collations") from None


def check_timestamp(table: DeltaTable, timestamp: str | datetime) -> None:
    """Reject a timestamp after that of the newest version, as delta-spark does: its version is not known yet.

    Args:
        table: The table, as of that timestamp or later.
        timestamp: The timestamp.

    Raises:
        VersionNotFoundError: The timestamp is after that of the newest version.
    """
    newest = handle_of(table).snapshot.update()
    if to_epoch_ms(timestamp) > newest.timestamp_ms:
        committed = from_epoch_ms(newest.timestamp_ms).isoformat()
        message = (
            f"{timestamp} is after the newest version of {table.table_uri}, {newest.version}, which was committed "
            f"at {committed}; give that timestamp or an earlier one"
        )
        raise VersionNotFoundError(
            message,
            version=newest.version,
            path=table.table_uri,
            code=ErrorCode.TIMESTAMP_TOO_LATE,
            parameters={"timestamp": timestamp, "version": newest.version, "version_timestamp": committed},
        )


def change_data_range(
    snapshot: _core.Snapshot,
    starts: tuple[Any, Any],
    ends: tuple[Any, Any],
    zone: str,
    *,
    allow_out_of_range: bool = False,
    as_opened: bool = False,
) -> tuple[int, int]:
    """Return the versions of a change data feed, with an inclusive end; (0, -1) if there are none.

    Args:
        snapshot: The table.
        starts: `startingVersion` and `startingTimestamp`, exactly one of which is given.
        ends: `endingVersion` and `endingTimestamp`, at most one of which is given.
        zone: The session's time zone, for timestamps without one.
        allow_out_of_range: Whether a range that starts after the newest version has no versions, instead of being an
            error.
        as_opened: Whether the feed has the snapshot's columns also with column mapping.

    Raises:
        InvalidArgumentError: A version is not a number, or the combination of arguments or the range is invalid.
    """
    if starts.count(None) == 2:  # noqa: PLR2004 - both
        message = "a change data feed needs startingVersion or startingTimestamp"
        raise InvalidArgumentError(message, code=ErrorCode.CHANGE_FEED_START_MISSING)
    if starts.count(None) != 1 or None not in ends:
        message = "give one of startingVersion and startingTimestamp, and at most one of the two ends, not both"
        raise InvalidArgumentError(message)
    start_version = None if starts[0] is None else version_number("startingVersion", starts[0])
    end_version = None if ends[0] is None else version_number("endingVersion", ends[0])
    start_ms = None if starts[1] is None else to_epoch_ms(timestamp_in_zone(str(starts[1]), zone))
    is_after_newest = (start_version is not None and start_version > snapshot.version) or (
        start_ms is not None and start_ms > snapshot.timestamp_ms
    )
    if allow_out_of_range and is_after_newest:
        return 0, -1
    # The core resolves the range and reports at once what is wrong with it.
    found = snapshot.cdf_range(
        starting_version=start_version,
        ending_version=end_version,
        starting_timestamp_ms=start_ms,
        ending_timestamp_ms=None if ends[1] is None else to_epoch_ms(timestamp_in_zone(str(ends[1]), zone)),
        as_opened=as_opened,
    )
    return found or (0, -1)


def _not_in(snapshot: _core.Snapshot, paths: Any, only: set[str] | None) -> Any:
    """Return which files a version does not have; with `only`, which holds them, other files are not listed."""
    import pyarrow.compute as pc

    compute: Any = pc
    there = RecordBatchReader(snapshot.file_uris(None, as_in_log=True, paths=only)).read_all()
    return compute.invert(compute.is_in(paths, there.column("uri").combine_chunks()))


def total(numbers: Any) -> int:
    """Return the sum of integers, which are not null."""
    import pyarrow.compute as pc

    compute: Any = pc
    return compute.sum(numbers, min_count=0).as_py()


_AS_DIGITS = bytes.maketrans(b"\0\1", b"01")


def _digits(mask: Any) -> str:
    """Return a character for each value of an array of booleans that are not null, `1` for true."""
    import pyarrow as pa

    numbers = mask.cast(pa.uint8())
    data = numbers.buffers()[1].to_pybytes()[numbers.offset : numbers.offset + len(numbers)]
    return data.translate(_AS_DIGITS).decode("ascii")


#: Paths without a scheme, an escape or a step upwards.
_PLAIN = re.compile(r"(?!/)(?:[\w=-][\w=.-]*/)*[\w=-][\w=.-]*")
_LENGTH = re.compile(r"(\d+):")


def _is_below(path: str) -> bool:
    """Return whether a path of the log is below the table, whatever else it contains; False if that is not obvious."""
    return _PLAIN.fullmatch(path) is not None


def _split(filters: str) -> list[str]:
    out: list[str] = []
    at = 0
    while match := _LENGTH.match(filters, at):
        at = match.end() + int(match[1])
        out.append(filters[match.end() : at])
    return out
