"""A stream that follows changes of the table's metadata with a schema log, as delta-spark does.

A batch ends in front of a commit that changes the schema, the properties or the protocol. When the query has completed
this batch, the new metadata is added to the log and the query stops; after a restart it continues with the new schema.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltafast._handle import handle_of
from deltafast.exceptions import ErrorCode, InvalidArgumentError, SchemaMismatchError, VersionNotFoundError
from deltafast.spark._streaming.batch_planner import StreamPlan
from deltafast.spark._streaming.delta_spark_offsets import AFTER_CHANGE, BARRIER, CHANGE
from deltafast.spark._streaming.schema_changes import changes_between, checkpoint_hash
from deltafast.spark._streaming.schema_log import TrackedMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltafast import _core
    from deltafast._ops.change_stream import StreamFile, StreamPosition
    from deltafast.spark._scan.read_tasks import Piece
    from deltafast.spark._streaming.options import Room, StreamOptions
    from deltafast.spark._streaming.schema_log import SchemaLog
    from deltafast.table import DeltaTable

__all__ = ["TrackedPlan"]


class TrackedPlan(StreamPlan):
    """A stream with a schema log.

    Args:
        table: A handle on its newest version.
        options: The options of the stream.
        log: The schema log.
        source: The folder of the source in the checkpoint of the query.

    Raises:
        InvalidArgumentError: The options tolerate data loss, which a log cannot.
    """

    def __init__(self, table: DeltaTable, options: StreamOptions, log: SchemaLog, source: str) -> None:
        super().__init__(table, options)
        if not options.fails_on_loss:
            message = (
                "a stream with schemaTrackingLocation cannot continue after lost commits: leave failOnDataLoss out"
            )
            raise InvalidArgumentError(message)
        self._schemas, self._source = log, source
        newest = TrackedMetadata.of(handle_of(self.table).snapshot, source)
        #: The entry with which the stream was started; None if the log was empty.
        self._started_with = log.current
        #: The metadata with which the stream reads.
        self._reads_with = newest
        if log.current is not None:
            missing = log.current.configuration is None or log.current.protocol is None
            self._reads_with = log.current if not missing else _completed(log.current, newest)
            self.fields = [dict(field) for field in log.current.fields]
        self._protocol_changes: dict[int, int | None] = {}

    # --- before the start ------------------------------------------------------------------------

    def merge_changes(self) -> None:
        """Skip metadata that no rows were written with: add the last one of consecutive changes to the log."""
        current, newest = self._schemas.current, handle_of(self.table).snapshot.version
        if current is None:
            return
        version = current.version
        while version <= newest:
            commit = self._peek(version)
            if commit is None or commit.adds or commit.removes or commit.feed_files or not self._has_metadata(version):
                break
            version += 1
        if version - 1 > current.version:
            entry = replace(self._metadata_at(version - 1), source=current.source)
            self._schemas.add(entry, replaces=True)
            self._started_with = self._reads_with = self._schemas.current or entry
            self.fields = [dict(field) for field in entry.fields]

    def check_start(self, options: Mapping[str, str], setting: Callable[[str], str | None]) -> None:
        """Check that the query may read with the newest entry of the log.

        Args:
            options: The options of the reader, by their names in lower case.
            setting: Returns a setting of the session.

        Raises:
            InvalidArgumentError: The log belongs to another source.
            SchemaMismatchError: The program must allow a change of the schema first, or no option can allow it.
        """
        current, uri = self._schemas.current, self.table.table_uri
        if current is None:
            return
        if current.source != self._source:
            message = (
                f"the schema log {self._schemas.location} belongs to the source {current.source}, not to "
                f"{self._source}: give the stream another schemaTrackingLocation or streamingSourceTrackingId"
            )
            raise InvalidArgumentError(message)
        previous = self._schemas.previous
        if previous is None:
            return
        found = changes_between(previous.fields, current.fields)
        if found.incompatible:
            message = (
                f"the schema of {uri} changed in version {current.version} in a way that a stream cannot follow "
                f"({', '.join(found.incompatible)}): start over with another checkpoint"
            )
            raise SchemaMismatchError(
                message,
                version=current.version,
                path=uri,
                code=ErrorCode.STREAM_SCHEMA_CHANGED,
                parameters={"version": current.version},
            )
        stream = checkpoint_hash(self._source)
        blocked = found.blocked(options, setting, stream, current.version)
        if blocked:
            settings = " and ".join(f"spark.databricks.delta.streaming.{name}.ckpt_{stream}" for name in blocked)
            message = (
                f"the stream of {uri} stops after a {found.kind} between versions {previous.version} and "
                f"{current.version} ({found.description()}): change the stream's target if necessary, then set "
                f"{' and '.join(blocked)} as options of the reader to {current.version} or to always, or set "
                f"{settings} in the session"
            )
            raise SchemaMismatchError(
                message,
                version=current.version,
                path=uri,
                code=ErrorCode.STREAM_STOPPED_BY_SCHEMA_CHANGE,
                parameters={"change": found.kind, "start": previous.version, "end": current.version},
            )

    # --- positions -------------------------------------------------------------------------------

    def _from_delta_spark(self, found: dict[str, Any]) -> dict[str, Any]:
        position = super()._from_delta_spark(found)
        index = int(found["index"])
        return position | {BARRIER: index} if index in (CHANGE, AFTER_CHANGE) else position

    def next(self, start: Mapping[str, Any], *, limited: bool = True) -> dict[str, Any]:
        """Return the position at the end of the next batch, as `StreamPlan.next` does.

        In front of a change of the metadata it returns two positions, one after the other; then `start` until the query
        is restarted.

        Raises:
            SchemaMismatchError: The log was started, with other metadata than the newest.
        """
        if self._schemas.current is None and start.get("begin") is None:
            self._begin = self._begin or self._beginning()
            self._start_log(min(self._begin.version, handle_of(self.table).snapshot.version))
        barrier = start.get(BARRIER)
        if barrier == CHANGE:
            return {**start, BARRIER: AFTER_CHANGE}
        if barrier is not None and self._is_change(self._place(start["at"]).version):
            return dict(start)
        end = super().next(start, limited=limited)
        place = self._place(end["at"])
        newest = handle_of(self.table).snapshot.version
        until = newest if self._last is None else min(newest, self._last)
        if place.snapshot or place.index or place.version > until or not self._is_change(place.version):
            return end
        return {**end, BARRIER: CHANGE}

    def pieces(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Piece]:
        """Return the data to read between two positions, as `StreamPlan.pieces` does.

        Raises:
            SchemaMismatchError: The log was started, with other metadata than the newest.
        """
        if start == end:
            return []
        if self._schemas.current is None and end.get("begin") is not None:
            # The query ran without a log before.
            first = self._place(end["begin"] if start.get("begin") is None else start["at"])
            last = self._place(end["at"])
            is_before = not last.snapshot and last.index == 0
            self._start_log(first.version, max(first.version, last.version - is_before))
        return super().pieces(start, end)

    def finish(self, end: Mapping[str, Any]) -> None:
        """Add changed metadata to the log after the batch that ends in front of it.

        Raises:
            SchemaMismatchError: Metadata was added: the query must be restarted.
        """
        if end.get(BARRIER) is not None:
            version = self._place(end["at"]).version
            if self._is_change(version):
                self._follow(self._metadata_at(version))

    # --- contents of a batch ---------------------------------------------------------------------

    def _taken(self, commit: _core.CommitFiles, place: StreamPosition, room: Room) -> int | None:
        if place.index == 0 and self._is_change(place.version):
            return 0
        return super()._taken(commit, place, room)

    def _snapshot(self, version: int) -> list[StreamFile]:
        is_newer = version >= self._reads_with.version and not self._knows(version)
        if self._schemas.current is not None and is_newer:
            found = self._metadata_at(version)
            if not found.is_same_as(self._reads_with):
                # The stream has read nothing with the newest entry.
                self._follow(found, replaces=True)
        return super()._snapshot(version)

    def _check_new(self, version: int) -> None:
        """The log follows the changes."""

    def _check_old(self, version: int) -> None:
        """The rows of a batch have the schema of the log."""

    # --- the log ---------------------------------------------------------------------------------

    def _start_log(self, first: int, last: int | None = None) -> None:
        """Add the first entry: the metadata of a version, or that with which all rows of a planned batch can be read.

        Raises:
            SchemaMismatchError: The stream must be restarted to read with it, or there is no such metadata.
        """
        entry = self._metadata_at(first)
        if last is not None:
            changed = [v for v in range(first + 1, last + 1) if (c := self._peek(v)) and c.table_id is not None]
            found = [entry, *map(self._metadata_at, changed)]
            entry = replace(found[-1], version=last)
            for older in found:
                changes = changes_between(older.fields, entry.fields)
                if changes.kind or changes.incompatible:
                    message = (
                        f"the schema log {self._schemas.location} cannot be started: the query has planned a batch of "
                        f"{self.table.table_uri} from version {first} to {last}, whose schema changed within it "
                        f"({changes.description() or ', '.join(changes.incompatible)}): start over with another "
                        "checkpoint"
                    )
                    raise SchemaMismatchError(
                        message,
                        version=last,
                        path=self.table.table_uri,
                        code=ErrorCode.SCHEMA_LOG_INITIALIZATION,
                        parameters={"start": first, "end": last},
                    )
        self._schemas.add(entry)
        if not entry.is_same_as(self._reads_with):
            self._raise_evolution(entry)

    def _follow(self, entry: TrackedMetadata, *, replaces: bool = False) -> None:
        self._schemas.add(entry, replaces=replaces)
        self._raise_evolution(entry)

    def _raise_evolution(self, entry: TrackedMetadata) -> None:
        uri = self.table.table_uri
        message = (
            f"the metadata of {uri} changed in version {entry.version}, and the schema log {self._schemas.location} "
            f"contains it now (columns: {', '.join(field['name'] for field in entry.fields)}): start the query again, "
            "which continues with it"
        )
        raise SchemaMismatchError(
            message,
            version=entry.version,
            path=uri,
            code=ErrorCode.STREAM_METADATA_CHANGED,
            parameters={"table": uri, "version": entry.version},
        )

    def _metadata_at(self, version: int) -> TrackedMetadata:
        return TrackedMetadata.of(self._at(version).snapshot, self._source)

    def _knows(self, version: int) -> bool:
        """Return whether the stream was started with the metadata of a later version."""
        return self._started_with is not None and self._started_with.version >= version

    def _is_change(self, version: int) -> bool:
        """Return whether a commit changes the metadata with which the stream reads."""
        if self._schemas.current is None or self._knows(version) or not self._has_metadata(version):
            return False
        return not self._metadata_at(version).is_same_as(self._reads_with)

    def _has_metadata(self, version: int) -> bool:
        """Return whether a commit has metadata, or the first protocol that is not the stream's."""
        commit = self._peek(version)
        return commit is not None and (commit.table_id is not None or version == self._first_protocol_change())

    def _peek(self, version: int) -> _core.CommitFiles | None:
        return self._commit(None if version in self._seen else self._commits(version), version)

    def _first_protocol_change(self) -> int | None:
        """Return the first version whose protocol is not the stream's, by a search: the core does not report them."""
        newest = handle_of(self.table).snapshot
        if newest.version not in self._protocol_changes:
            self._protocol_changes = {newest.version: self._search_protocol(newest.version)}
        return self._protocol_changes[newest.version]

    def _search_protocol(self, newest: int) -> int | None:
        low, high = self._reads_with.version, newest
        if low >= high or self._has_protocol(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            try:
                low, high = (middle, high) if self._has_protocol(middle) else (low, middle)
            except VersionNotFoundError:
                # It is older than the log that is left.
                low = middle
        return high

    def _has_protocol(self, version: int) -> bool:
        return self._metadata_at(version).has_protocol_of(self._reads_with)


def _completed(entry: TrackedMetadata, newest: TrackedMetadata) -> TrackedMetadata:
    """Return an entry of an early release of delta-spark with the table's configuration and protocol."""
    return replace(
        entry,
        configuration=newest.configuration if entry.configuration is None else entry.configuration,
        protocol=newest.protocol if entry.protocol is None else entry.protocol,
    )
