"""Planning of the batches of a stream: the files between two positions in the log.

A position is the cursor of `DeltaTable.stream_changes` in plain JSON; Spark keeps it in the query's checkpoint. It also
holds the beginning of the stream, which Spark does not keep: a failed batch is planned again from its end alone.
Nothing here needs Spark.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._ops.change_stream import ChangeStream, RemovalPolicy, StreamFile, StreamPosition, StreamSettings
from deltafast._util.values import to_epoch_ms
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError, SchemaMismatchError, VersionNotFoundError
from deltafast.spark._scan.physical_columns import plain_type
from deltafast.spark._scan.read_tasks import Piece, cut
from deltafast.spark._session.session import timestamp_in_zone
from deltafast.spark._streaming.delta_spark_offsets import without_offset
from deltafast.spark._streaming.options import Room
from deltafast.spark._streaming.schema_check import chosen, fields_of, fits
from deltafast.table import pinned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast import _core
    from deltafast._core_types import Metadata
    from deltafast._handle import TableHandle
    from deltafast.spark._streaming.options import StreamOptions
    from deltafast.table import DeltaTable

__all__ = ["BEGINNING", "StreamPlan"]

#: The position of a stream that has not begun; the first plan determines the actual one.
BEGINNING: dict[str, Any] = {"begin": None}

#: Maximum number of versions that are kept open.
_TABLES = 8


class StreamPlan:
    """A stream that reads a table.

    Args:
        table: A handle on its newest version.
        options: The options of the stream.
        schema: The fields of the stream's rows, in Delta's JSON; the table's if None.

    Raises:
        SchemaMismatchError: The fields are not the table's.
    """

    def __init__(self, table: DeltaTable, options: StreamOptions, schema: list[dict[str, Any]] | None = None) -> None:
        self.table, self.options = pinned(table), options
        settings = StreamSettings(options.change_data_feed, RemovalPolicy.ROWS)
        self._log = ChangeStream(handle_of(table).pinned(), settings)
        self._base = table.version()
        own = fields_of(handle_of(table))
        self.fields = own if schema is None else chosen(own, schema, handle_of(table))
        #: Files whose path in the log it matches are left out.
        self.excluded = None if options.exclude is None else re.compile(options.exclude)
        self._last: int | None = None
        self._begin: StreamPosition | None = None
        self._seen: dict[int, _core.CommitFiles | None] = {}
        self._held: tuple[int, list[StreamFile]] | None = None
        self._tables: dict[int, TableHandle] = {}
        #: The last version whose metadata is known, and its metadata.
        self._known: tuple[int, Metadata] | None = None

    # --- positions -------------------------------------------------------------------------------

    def position_of(self, text: str) -> dict[str, Any]:
        """Return a position from the checkpoint of a query, which may be one of delta-spark.

        Args:
            text: The JSON; empty for a query that has not begun.

        Raises:
            InvalidArgumentError: It is not a position of a stream of this table.
        """
        if not text:
            return BEGINNING
        try:
            found: Any = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict) and "begin" in found:
            return without_offset(cast("dict[str, Any]", found))
        if isinstance(found, dict) and {"reservoirId", "reservoirVersion", "index"} <= found.keys():
            return self._from_delta_spark(cast("dict[str, Any]", found))
        message = f"the checkpoint holds no position of a stream of a Delta table: {text:.200}"
        raise InvalidArgumentError(message)

    def _from_delta_spark(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the position of delta-spark's offset: the last file that it read, or a negative index for none."""
        if found["reservoirId"] != self._log.id:
            message = (
                f"the checkpoint is of another table ({found['reservoirId']}): this one was replaced, use a new one"
            )
            raise InvalidArgumentError(message)
        version, index = int(found["reservoirVersion"]), max(int(found["index"]) + 1, 0)
        is_snapshot = bool(found.get("isStartingVersion", False))
        if index and (self.options.change_data_feed or self.excluded is not None):
            version, index = self._after_files(version, index, snapshot=is_snapshot)
        place = self._log.cursor(StreamPosition(version, index, snapshot=is_snapshot), 0)
        return {"begin": place, "at": place}

    def _after_files(self, version: int, count: int, *, snapshot: bool) -> tuple[int, int]:
        """Return version and index of the position after the first files of a version, as delta-spark counts them."""
        if snapshot:
            paths = [file.path for file in self._log.snapshot_files(version)]
        else:
            commit = self._commit(self._commits(version), version)
            if commit is None:
                return version + 1, 0
            if self.options.change_data_feed and not _has_only_inserts(commit):
                if count < commit.feed_files and not self._is_read_whole(version):
                    message = (
                        f"the checkpoint of delta-spark ends within the changes of version {version} of "
                        f"{self.table.table_uri}, which deltafast reads as a whole: let delta-spark complete them"
                    )
                    raise InvalidArgumentError(message, version=version, path=self.table.table_uri)
                return version + 1, 0
            paths = [path for path, _ in commit.adds]
        return version, sum(not self._is_excluded(path) for path in paths[:count])

    def _is_read_whole(self, version: int) -> bool:
        """Return whether delta-spark does not divide the changes of a version: change data files, deletion vectors."""
        found = RecordBatchReader(self._at(version).snapshot.change_files(version, version)).read_all()
        return found.column("change_type").null_count > 0 or found.column("excluded").null_count < len(found)

    def stop_at_newest(self) -> None:
        """Stop at the version that is the newest now."""
        self._last = self._newest().version

    def next(self, start: Mapping[str, Any], *, limited: bool = True) -> dict[str, Any]:
        """Return the position at the end of the next batch; `start` itself if there is no new data.

        Args:
            start: The end of the last batch, or `BEGINNING`.
            limited: Whether the limits of a batch apply.

        Raises:
            InvalidArgumentError: The position is one of another table.
            VersionNotFoundError: Commits were deleted from the log.
            DeltaProtocolError: A commit changes rows and no option says how to handle it.
            SchemaMismatchError: The schema changed.
        """
        if start.get("begin") is None:
            self._begin = begin = self._begin or self._beginning()
            place = begin
        else:
            begin, place = self._place(start["begin"]), self._place(start["at"])
        after = self._after(place, limited=limited)
        if after == place and start.get("begin") is not None:
            return dict(start)
        return {"begin": self._log.cursor(begin, 0), "at": self._log.cursor(after, 0)}

    def pieces(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Piece]:
        """Return the data to read between two positions; large parts are split for several tasks.

        Raises:
            VersionNotFoundError: Commits were deleted from the log.
            SchemaMismatchError: The rows do not match the stream's schema.
        """
        if end.get("begin") is None:
            return []
        first = self._place(end["begin"] if start.get("begin") is None else start["at"])
        last = self._place(end["at"])
        held: list[_Part] = []
        if first.snapshot:
            files = self._snapshot(first.version)[first.index : last.index if last.snapshot else None]
            held.append(_Part(first.version, files, snapshot=True))
        if not last.snapshot:
            place = StreamPosition(first.version + 1, 0, snapshot=False) if first.snapshot else first
            held += self._changes(place, last) if self.options.change_data_feed else self._commits_between(place, last)
        pieces = self._cut(held)
        for version in range(first.version, last.version):
            self._seen.pop(version, None)
        return pieces

    def _changes(self, place: StreamPosition, last: StreamPosition) -> list[_Part]:
        """Return the versions that have changes, and the files of versions of which not all are read."""
        commits = self._commits(place.version)
        held: list[_Part] = []
        for version in range(place.version, last.version + (last.index > 0)):
            commit = self._commit(commits, version)
            if commit is None or not commit.feed_files:
                continue
            begin = place.index if version == place.version else 0
            if begin or version == last.version:
                files = self._rows_of(commit, version)[: last.index if version == last.version else None]
                held.append(_Part(version, files[begin:], snapshot=False))
            else:
                held.append(_Part(version, None, snapshot=False))
        return held

    def _commits_between(self, place: StreamPosition, last: StreamPosition) -> list[_Part]:
        """Return the files of commits; those of consecutive commits that only add rows are read at one version."""
        commits = self._commits(place.version)
        held: list[_Part] = []
        run: list[_Versioned] = []
        end = last.version + (last.index > 0)
        for version in range(place.version, end):
            commit = self._commit(commits, version)
            if commit is None:
                continue
            if run and (commit.removes or commit.table_id is not None):
                held += self._run(run, version - 1)
                run = []
            files = self._rows_of(commit, version)[: last.index if version == last.version else None]
            files = files[place.index if version == place.version else 0 :]
            if commit.removes:
                held.append(_Part(version, files, snapshot=False))
            else:
                run += [_Versioned(file, version) for file in files]
        return held + (self._run(run, end - 1) if run else [])

    def _run(self, run: list[_Versioned], version: int) -> list[_Part]:
        """Return files of several commits at the last version, or at their own one if they have changed since.

        The newest version stands for the last one where it can: it is open, and small batches have a version each.
        """
        version = self._stand_in(version)
        paths = {file.path for file, _ in run}
        listed = self._at(version).snapshot.files(columns=["path", "deletion_vector"], paths=paths)
        found = RecordBatchReader(listed).read_all()
        plain = found.column("deletion_vector").combine_chunks().is_null()
        whole = set(found.column("path").combine_chunks().filter(plain).to_pylist())
        out: dict[int, list[StreamFile]] = {}
        for file, of in run:
            out.setdefault(version if file.path in whole else of, []).append(file)
        return [_Part(at, files, snapshot=False) for at, files in sorted(out.items())]

    def _stand_in(self, version: int) -> int:
        """Return the newest version if files that both versions have are read in the same way at both, else `version`.

        A file that lost its deletion vector in between would have other rows, so a table without the feature is needed.
        """
        newest = handle_of(self.table)
        if newest.version() == version or "deletionVectors" in (newest.protocol().reader_features or ()):
            return version
        known = self._known
        # A batch that is planned again may be one of before.
        if known is None or known[0] > version or any(map(self._may_change, range(known[0] + 1, version + 1))):
            self._check_old(version)
            known = version, self._at(version).snapshot.metadata()
        self._known = version, known[1]
        return newest.version() if known[1] == newest.snapshot.metadata() else version

    def _cut(self, held: list[_Part]) -> list[Piece]:
        """Split files into parts of the size of a task, after a check that their versions match the stream's schema."""
        lost: set[int] = set()
        checked: int | None = None
        for version in sorted({part.version for part in held}):
            # Between two versions without a change of metadata the schema is the same.
            if checked is None or any(self._may_change(between) for between in range(checked + 1, version + 1)):
                try:
                    self._check_old(version)
                except VersionNotFoundError:
                    if self.options.fails_on_loss:
                        raise
                    lost.add(version)
                    continue
            checked = version
        out: list[Piece] = []
        for version, files, snapshot in held:
            if version in lost:
                continue
            if files is None:
                out.append(Piece(version, None, snapshot))
            else:
                out += [Piece(version, part, snapshot) for part in cut((file.path, file.bytes) for file in files)]
        return out

    def _may_change(self, version: int) -> bool:
        commit = self._seen.get(version)
        return commit is None or commit.table_id is not None

    # --- contents of a batch ---------------------------------------------------------------------

    def _after(self, place: StreamPosition, *, limited: bool) -> StreamPosition:
        """Return the position at the end of the batch that begins at `place`."""
        room = Room(self.options if limited else None)
        if place.snapshot:
            files = self._snapshot(place.version)
            index = place.index + room.taken(files[place.index :])
            if index < len(files):
                return StreamPosition(place.version, index, snapshot=True)
            place = StreamPosition(place.version + 1, 0, snapshot=False)
        newest = self._newest().version
        until = newest if self._last is None else min(newest, self._last)
        commits = self._commits(place.version)
        while place.version <= until and not room.is_full:
            commit = self._commit(commits, place.version)
            if commit is not None:
                index = self._taken(commit, place, room)
                if index is not None:
                    return StreamPosition(place.version, index, snapshot=False)
            place = StreamPosition(place.version + 1, 0, snapshot=False)
        return place

    def _taken(self, commit: _core.CommitFiles, place: StreamPosition, room: Room) -> int | None:
        """Take the files of a commit up to the limits; return the index of the first one not taken, or None."""
        if commit.table_id is not None and place.version > self._base:
            self._check_new(place.version)
        if self.options.change_data_feed and not _has_only_inserts(commit):
            files, size = self._feed_of(commit, place.version)
            return None if not files or room.takes_all(files, size) else 0
        files = self._rows_of(commit, place.version)
        index = place.index + room.taken(files[place.index :])
        return index if index < len(files) else None

    def _feed_of(self, commit: _core.CommitFiles, version: int) -> tuple[int, int]:
        """Return the number of files of a commit's change data feed, and their bytes."""
        if self.excluded is None or not commit.feed_files:
            return commit.feed_files, commit.feed_bytes
        found = RecordBatchReader(self._at(version).snapshot.change_files(version, version)).read_all()
        columns = (found.column(name).to_pylist() for name in ("path", "size_bytes", "excluded"))
        listed = [entry for entry in zip(*columns, strict=True) if not self._is_excluded(entry[0])]
        # A file that gets another deletion vector is removed and added, which are two files for the limits.
        often = Counter(path for path, _, _ in listed)
        added = {path for path, _ in commit.adds}
        times = [2 if vector and path in added and often[path] == 1 else 1 for path, _, vector in listed]
        return sum(times), sum(n * size for n, (_, size, _) in zip(times, listed, strict=True))

    def _rows_of(self, commit: _core.CommitFiles, version: int) -> list[StreamFile]:
        """Return the files of a commit whose rows are new.

        Raises:
            DeltaProtocolError: It changes rows and no option says how to handle it.
        """
        options = self.options
        if commit.removes:
            if options.skips_changes:
                return []
            if commit.adds and not options.ignores_changes:
                message = (
                    f"version {version} of {self.table.table_uri} changes rows, which a stream of appended rows cannot "
                    "report: read the change feed (readChangeFeed), skip such versions (skipChangeCommits), or "
                    "take all rows of their files (ignoreChanges)"
                )
                raise DeltaProtocolError(message, version=version, path=self.table.table_uri)
            if not commit.adds and not (options.ignores_deletes or options.ignores_changes):
                message = (
                    f"version {version} of {self.table.table_uri} deletes rows, which a stream of appended rows cannot "
                    "report: read the change feed (readChangeFeed), or skip such versions (ignoreDeletes or "
                    "skipChangeCommits)"
                )
                raise DeltaProtocolError(message, version=version, path=self.table.table_uri)
        return [StreamFile(*add) for add in commit.adds if not self._is_excluded(add[0])]

    def _is_excluded(self, path: str) -> bool:
        return self.excluded is not None and self.excluded.search(path) is not None

    # --- the log ---------------------------------------------------------------------------------

    def _beginning(self) -> StreamPosition:
        """Return the position at which the stream begins."""
        newest = self._newest()
        start, timestamp = self.options.starting_version, self.options.starting_timestamp
        if timestamp is not None:
            return StreamPosition(
                self._since(to_epoch_ms(timestamp_in_zone(timestamp, handle_of(self.table).time_zone)), newest),
                0,
                snapshot=False,
            )
        if start is None:
            version = newest.version if self._last is None else min(newest.version, self._last)
            return StreamPosition(version, 0, snapshot=True)
        if start == "latest":
            return StreamPosition(newest.version + 1, 0, snapshot=False)
        if start > newest.version:
            message = f"startingVersion is {start}, but {newest.version} is the newest of {self.table.table_uri}"
            raise VersionNotFoundError(message, version=start, path=self.table.table_uri)
        return StreamPosition(start, 0, snapshot=False)

    def _since(self, time: int, newest: _core.Snapshot) -> int:
        """Return the first version that was committed at or after a timestamp."""
        if time > newest.timestamp_ms:
            message = f"startingTimestamp is {self.options.starting_timestamp}, but the newest version of "
            message += f"{self.table.table_uri} was committed before it"
            raise VersionNotFoundError(message, version=newest.version, path=self.table.table_uri)
        try:
            found = newest.at_timestamp(time)
        except VersionNotFoundError:
            # It is before the oldest version that can be read; the commits begin there.
            return int(newest.history(None)[-1]["version"])
        return found.version if found.timestamp_ms == time else found.version + 1

    def _newest(self) -> _core.Snapshot:
        self.table.update_incremental()
        return handle_of(self.table).snapshot

    def _commits(self, version: int) -> _core.Commits | None:
        from deltafast import _core

        newest = handle_of(self.table).snapshot
        return None if version > newest.version else _core.Commits.list(newest, version)

    def _commit(self, commits: _core.Commits | None, version: int) -> _core.CommitFiles | None:
        """Return a commit of this table; None for a deleted one if the options tolerate data loss."""
        if version not in self._seen:
            if commits is None:
                message = f"version {version} of {self.table.table_uri} is not there any more: the table went back"
                raise VersionNotFoundError(message, version=version, path=self.table.table_uri)
            try:
                self._seen[version] = self._log.commit(commits, version)
            except VersionNotFoundError as error:
                if self.options.fails_on_loss:
                    message = (
                        f"the commit of version {version} of {self.table.table_uri} is gone from the log, so the "
                        "stream would lose rows: start over with another checkpoint, or go on behind the gap with "
                        "failOnDataLoss=false"
                    )
                    raise VersionNotFoundError(message, version=version, path=self.table.table_uri) from error
                self._seen[version] = None
        return self._seen[version]

    def _snapshot(self, version: int) -> list[StreamFile]:
        """Return the files of a version, the oldest first."""
        if self._held is None or self._held[0] != version:
            files = [file for file in self._log.snapshot_files(version) if not self._is_excluded(file.path)]
            self._held = version, files
        return self._held[1]

    def _at(self, version: int) -> TableHandle:
        newest = handle_of(self.table)
        if version == newest.version():
            return newest.pinned()
        if version not in self._tables:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
            self._tables[version] = self._log.at(version)
        return self._tables[version]

    def _place(self, cursor: Any) -> StreamPosition:
        if not isinstance(cursor, dict):
            message = f"the checkpoint holds no place of a stream of deltafast: {cursor!r:.200}"
            raise InvalidArgumentError(message)
        return self._log.place_of(cast("dict[str, Any]", cursor))[0]

    # --- the schema ------------------------------------------------------------------------------

    def _check_new(self, version: int) -> None:
        """Check that a version later than the stream's schema still has it."""
        now = {field["name"]: plain_type(field["type"]) for field in fields_of(self._at(version))}
        before = {field["name"]: plain_type(field["type"]) for field in fields_of(self._at(self._base))}
        if list(now.items()) != list(before.items()):
            changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
            message = f"the schema of {self.table.table_uri} changed in version {version}"
            message += f" ({', '.join(changed)})" if changed else " (the order of the columns)"
            message += ": start the query again, which then has the new schema"
            raise SchemaMismatchError(message, version=version, path=self.table.table_uri)
        self._base = version

    def _check_old(self, version: int) -> None:
        """Check that rows of a version can be converted to the stream's schema."""
        if version >= self._base:
            return
        kinds = {field["name"]: field["type"] for field in self.fields}
        newest = {field["name"] for field in fields_of(self._at(self._base))}
        old = fields_of(self._at(version))
        gone = [field["name"] for field in old if field["name"] not in newest]
        if gone:
            message = (
                f"version {version} of {self.table.table_uri} has columns that were dropped or renamed since "
                f"({', '.join(gone)}): start the stream again with a later startingVersion"
            )
            raise SchemaMismatchError(message, version=version, path=self.table.table_uri)
        for field in old:
            if field["name"] in kinds and not fits(field["type"], kinds[field["name"]]):
                message = (
                    f"the type of the column {field['name']!r} of {self.table.table_uri} has changed since version "
                    f"{version}: start the stream again with a later startingVersion"
                )
                raise SchemaMismatchError(message, version=version, path=self.table.table_uri, column=field["name"])


def _has_only_inserts(commit: _core.CommitFiles) -> bool:
    """Return whether the change data feed of a commit are the rows of its files."""
    return not commit.removes and commit.feed_files == len(commit.adds)


class _Part(NamedTuple):
    """Files of one version, or its changes."""

    version: int
    files: list[StreamFile] | None
    snapshot: bool


class _Versioned(NamedTuple):
    """A file, and the version that added it."""

    file: StreamFile
    version: int
