"""`DeltaTable.stream_changes`: the rows that were added to a table since a cursor, in batches of bounded size.

A cursor is plain JSON and records the position of a stream in the immutable log: if it is stored together with the
result of a batch, no row is lost or processed twice. A stream begins with the rows of a snapshot, file by file, then
continues commit by commit; it ends at the newest version, and can be continued from the last cursor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from deltafast import _core
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._libraries import names_missing, require
from deltafast._util.options import names
from deltafast._util.values import from_epoch_ms
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate

__all__ = ["ChangeBatch", "ChangeStream", "StreamFile", "StreamPosition", "StreamSettings", "stream_changes"]

_FORMAT: Final = 1


class RemovalPolicy(StrEnum):
    """What a stream without the change data feed does with commits that change or delete rows, see `on_change`."""

    ERROR = "error"
    SKIP = "skip"
    ROWS = "rows"


class ChangeBatch(NamedTuple):
    """Rows of a stream, and the cursor after them."""

    #: Can be read once; rows are read on demand.
    rows: pa.RecordBatchReader
    #: Plain JSON, to be stored with the result of the batch and passed to the next `stream_changes`.
    cursor: dict[str, Any]


class StreamSettings(NamedTuple):
    """What a stream returns of each commit, and how it divides it into batches; see `DeltaTable.stream_changes`."""

    change_data_feed: bool
    on_change: RemovalPolicy
    max_files: int | None = None
    max_bytes: int | None = None
    columns: Sequence[str] | None = None
    predicate: Predicate | None = None


@dataclass(frozen=True)
class StreamPosition:
    """The next file: its `index` among the files of the commit, or of the snapshot, of `version`."""

    version: int
    index: int
    snapshot: bool


@dataclass(frozen=True)
class StreamFile:
    path: str
    bytes: int


class _Piece(NamedTuple):
    """Files of one version, or with `files` None the change feed of that version."""

    place: StreamPosition
    files: list[StreamFile] | None


@names_missing
def stream_changes(
    table: TableHandle,
    cursor: Mapping[str, Any] | None,
    starting_version: int | Literal["latest"] | None,
    settings: StreamSettings,
) -> Iterator[ChangeBatch]:
    """See `DeltaTable.stream_changes`."""
    # Before the first batch is asked for.
    require("pyarrow")

    for name, limit in (("max_files", settings.max_files), ("max_bytes", settings.max_bytes)):
        if limit is not None and limit < 1:
            message = f"{name} must be at least 1, not {limit}"
            raise InvalidArgumentError(message)
    stream = ChangeStream(table.pinned(), settings)
    place, batch = stream.begin(cursor, starting_version)
    return stream.run(place, batch)


class ChangeStream:
    def __init__(self, table: TableHandle, settings: StreamSettings) -> None:
        self.table = table
        self.settings = settings
        self.id = table.metadata().id

    # --- start positions and cursors -------------------------------------------------------------

    def begin(self, cursor: Mapping[str, Any] | None, start: int | str | None) -> tuple[StreamPosition, int]:
        """Return the first position, and the number of earlier batches."""
        if cursor is not None:
            if start is not None:
                message = "give either cursor or starting_version, not both"
                raise InvalidArgumentError(message)
            return self.place_of(cursor)
        newest = self.table.version()
        if start is None:
            return StreamPosition(newest, 0, snapshot=True), 0
        if start == "latest":
            return StreamPosition(newest + 1, 0, snapshot=False), 0
        if not isinstance(start, int) or isinstance(start, bool) or start < 0:
            message = f"starting_version must be a version or 'latest', not {start!r}"
            raise InvalidArgumentError(message)
        return StreamPosition(start, 0, snapshot=False), 0

    def place_of(self, cursor: Mapping[str, Any]) -> tuple[StreamPosition, int]:
        """Return the position of a cursor."""
        kinds = {
            "format": int,
            "table": str,
            "change_data_feed": bool,
            "version": int,
            "index": int,
            "snapshot": bool,
            "batch": int,
        }
        wrong = [key for key, kind in kinds.items() if type(cursor.get(key)) is not kind]
        if wrong or cursor["format"] != _FORMAT or min(cursor["version"], cursor["index"], cursor["batch"]) < 0:
            wrong_keys = ", ".join(wrong) or "format"
            message = f"not a cursor of stream_changes (wrong: {wrong_keys}): {dict(cursor)!r:.200}"
            raise InvalidArgumentError(message)
        if cursor["table"] != self.id:
            message = f"the cursor is of another table ({cursor['table']}): this one was replaced, start without cursor"
            raise InvalidArgumentError(message)
        if cursor["change_data_feed"] != self.settings.change_data_feed:
            setting = f"change_data_feed={cursor['change_data_feed']}"
            message = f"the cursor belongs to a stream with {setting}; start over without a cursor to change that"
            raise InvalidArgumentError(message)
        return StreamPosition(cursor["version"], cursor["index"], cursor["snapshot"]), cursor["batch"]

    def cursor(self, place: StreamPosition, batch: int) -> dict[str, Any]:
        """Return the cursor of a position."""
        return {
            "format": _FORMAT,
            "table": self.id,
            "change_data_feed": self.settings.change_data_feed,
            "version": place.version,
            "index": place.index,
            "snapshot": place.snapshot,
            "batch": batch,
        }

    # --- batches ---------------------------------------------------------------------------------

    def run(self, place: StreamPosition, batch: int) -> Iterator[ChangeBatch]:
        """Yield batches up to the newest version."""
        while True:
            pieces, after = self.admitted(place)
            if after == place:
                return
            batch += 1
            yield ChangeBatch(self.rows(pieces, place), self.cursor(after, batch))
            place = after

    def admitted(self, place: StreamPosition) -> tuple[list[_Piece], StreamPosition]:
        """Return the pieces of the next batch, and the position after it."""
        pieces: list[_Piece] = []
        files = size = 0
        if place.snapshot:
            return self.admitted_of_snapshot(place)
        newest = self.table.snapshot.update()
        if place.version > newest.version:
            return pieces, place
        commits = _core.Commits.list(newest, place.version)
        while place.version <= newest.version:
            commit = self.commit(commits, place.version)
            if commit.table_id is not None and pieces:
                break
            if self.settings.change_data_feed:
                if pieces and not self.fits(files + commit.feed_files, size + commit.feed_bytes):
                    break
                if commit.feed_files:
                    pieces.append(_Piece(place, None))
                files, size = files + commit.feed_files, size + commit.feed_bytes
            else:
                rest = self.new_files(commit, place)[place.index :]
                count = self.fitting(rest, files, size)
                if count:
                    pieces.append(_Piece(place, rest[:count]))
                    files, size = files + count, size + sum(file.bytes for file in rest[:count])
                if count < len(rest):
                    return pieces, StreamPosition(place.version, place.index + count, snapshot=False)
            place = StreamPosition(place.version + 1, 0, snapshot=False)
        return pieces, place

    def admitted_of_snapshot(self, place: StreamPosition) -> tuple[list[_Piece], StreamPosition]:
        """Return the pieces of the next batch of the snapshot, and the position after it."""
        held = self.snapshot_files(place.version)
        taken = held[place.index : place.index + self.fitting(held[place.index :], 0, 0)]
        pieces = [_Piece(place, taken)] if taken else []
        done = place.index + len(taken)
        if done < len(held):
            return pieces, StreamPosition(place.version, done, snapshot=True)
        # The next commit may have another schema.
        return pieces, StreamPosition(place.version + 1, 0, snapshot=False)

    def fits(self, files: int, size: int) -> bool:
        """Return whether a batch of this size is within the limits."""
        max_files, max_bytes = self.settings.max_files, self.settings.max_bytes
        return (max_files is None or files <= max_files) and (max_bytes is None or size <= max_bytes)

    def fitting(self, rest: list[StreamFile], files: int, size: int) -> int:
        """Return how many of the files fit into the batch; the first file of a batch always does."""
        count = 0
        for file in rest:
            files, size = files + 1, size + file.bytes
            if not self.fits(files, size) and files > 1:
                break
            count += 1
        return count

    def new_files(self, commit: _core.CommitFiles, place: StreamPosition) -> list[StreamFile]:
        """Return the files of a commit whose rows are new."""
        if not commit.removes or self.settings.on_change is RemovalPolicy.ROWS:
            return [StreamFile(*add) for add in commit.adds]
        if self.settings.on_change is RemovalPolicy.SKIP:
            return []
        message = (
            f"version {place.version} deletes or changes rows, which a stream of appended rows cannot represent: read "
            "the change data feed (change_data_feed=True), ignore such versions with on_change='skip', or read all "
            "rows of their files with 'rows'"
        )
        raise DeltaProtocolError(message, version=place.version, path=self.table.table_uri)

    # --- the log ---------------------------------------------------------------------------------

    def snapshot_files(self, version: int) -> list[StreamFile]:
        """Return the files of a version, the oldest first."""
        stream = self.at(version).snapshot.files(columns=["path", "size_bytes", "modification_time"])
        found: Any = RecordBatchReader(stream).read_all()
        ordered = found.sort_by([("modification_time", "ascending"), ("path", "ascending")])
        values = zip(ordered.column("path").to_pylist(), ordered.column("size_bytes").to_pylist(), strict=True)
        return [StreamFile(path, size) for path, size in values]

    def commit(self, commits: _core.Commits, version: int) -> _core.CommitFiles:
        """Return a commit of this table."""
        commit = commits.read(version)
        if commit.table_id not in (None, self.id):
            message = f"version {version} is the beginning of another table: start over without a cursor"
            raise InvalidArgumentError(message)
        return commit

    def at(self, version: int) -> TableHandle:
        """Return the table at a version."""
        return self.table.at_version(version)

    # --- rows ------------------------------------------------------------------------------------

    def rows(self, pieces: list[_Piece], place: StreamPosition) -> pa.RecordBatchReader:
        """Return the rows of the pieces, which have the same schema, as one stream."""
        import pyarrow as pa

        if not pieces:
            newest = min(place.version, self.table.snapshot.update().version)
            return pa.RecordBatchReader.from_batches(self.schema(self.at(newest)), [])
        readers = (self.piece(piece) for piece in pieces)
        first = next(readers)

        def batches() -> Iterator[pa.RecordBatch]:
            yield from first
            for reader in readers:
                yield from reader.cast(first.schema) if reader.schema != first.schema else reader

        return pa.RecordBatchReader.from_batches(first.schema, batches())

    def schema(self, table: TableHandle) -> pa.Schema:
        """Return the schema of the rows of a version."""
        import pyarrow as pa

        schema: Any = table.arrow_schema()
        if self.settings.change_data_feed:
            schema = schema.append(pa.field("_change_type", pa.string()))
            schema = schema.append(pa.field("_commit_version", pa.int64()))
            schema = schema.append(pa.field("_commit_timestamp", pa.timestamp("us", "UTC")))
        if self.settings.columns is None:
            return schema
        return pa.schema([schema.field(name) for name in self.settings.columns])

    def piece(self, piece: _Piece) -> pa.RecordBatchReader:
        """Return the rows of one piece."""
        version = piece.place.version
        if piece.files is None:
            return _reader(self.changes(version))
        there = self.at(version)
        files = [file.path for file in piece.files]
        if not self.settings.change_data_feed:
            return _reader(there.scan(self.settings.columns, self.settings.predicate, files=files))
        return self.inserts(there, files)

    def changes(self, version: int) -> _core.ArrowStream:
        """Return the change data feed of a version."""
        there = self.at(version)
        tree = there.bind(self.settings.predicate, change_data=True)
        return there.snapshot.cdf(version, version, None, None, names(self.settings.columns), tree, False, False)

    def inserts(self, there: TableHandle, files: list[str]) -> pa.RecordBatchReader:
        """Return rows of the snapshot as inserts of its version."""
        import pyarrow as pa

        marks: dict[str, Any] = {
            "_change_type": "insert",
            "_commit_version": there.version(),
            "_commit_timestamp": from_epoch_ms(there.snapshot.timestamp_ms),
        }
        schema = self.schema(there)
        own = [name for name in schema.names if name not in marks]
        reader = _reader(there.scan(own, self.settings.predicate, files=files))

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                if not schema.names:
                    yield batch  # `from_arrays` without arrays has no rows
                    continue
                arrays: list[Any] = []
                for field in cast("Any", schema):
                    if field.name in marks:
                        arrays.append(pa.array([marks[field.name]] * batch.num_rows, field.type))
                    else:
                        arrays.append(batch.column(field.name).cast(field.type))
                yield cast("Any", pa.RecordBatch).from_arrays(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


def _reader(stream: _core.ArrowStream) -> pa.RecordBatchReader:
    import pyarrow as pa

    # Not over the C stream interface, in which an error is only a message: a missing file keeps its class.
    reader = RecordBatchReader(stream)
    return pa.RecordBatchReader.from_batches(reader.schema, reader)
