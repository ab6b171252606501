"""The rows of a batch of a stream as a data frame over Spark's own reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast.spark._scan.change_scan import changes
from deltafast.spark._scan.executor_rows import CHANGE_DATA_FIELDS
from deltafast.spark._scan.physical_columns import field_of, plain_type, quoted, spark_type
from deltafast.spark._scan.reader import files_frame
from deltafast.spark._scan.snapshot import Version
from deltafast.table import pinned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place
    from deltafast.spark._streaming.batch_planner import StreamPlan

__all__ = ["BatchFrames", "stream_fields"]


def stream_fields(plan: StreamPlan) -> list[dict[str, Any]]:
    """Return the columns of a stream, in Delta's JSON."""
    fields = [field_of(field["name"], plain_type(field["type"])) for field in plan.fields]
    return fields + CHANGE_DATA_FIELDS if plan.options.change_data_feed else fields


class BatchFrames:
    """The rows between two positions of a stream.

    Args:
        session: The session that reads them.
        place: The table's location.
        plan: The stream.
    """

    def __init__(self, session: Session, place: Place, plan: StreamPlan) -> None:
        self.session, self._place, self._plan = session, place, plan
        self._fields = stream_fields(plan)
        #: The newest version when a batch was last read from it.
        self._newest: Version | None = None

    def between(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Any:
        """Return the rows between two positions; without rows a frame over no files."""
        held: dict[tuple[int, bool], list[str]] = {}
        versions: list[int] = []
        self._plan.table.update_incremental()
        for piece in self._plan.pieces(start, end):
            if piece.files is None:
                versions.append(piece.version)
            else:
                held.setdefault((piece.version, piece.snapshot), []).extend(piece.files)
        frames = [
            self._shaped(files_frame(there := self._at(version), paths), there) for (version, _), paths in held.items()
        ]
        if versions:
            there = self._at(versions[-1])
            found = changes(there, versions[0], versions[-1], self._plan.excluded)
            frames.append(self._shaped(found, there, has_changes=True))
        if not frames:
            frames.append(self._empty())
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def _empty(self) -> Any:
        """Return a frame without rows."""
        from pyspark.sql import functions

        columns = (functions.lit(None).cast(spark_type(of["type"])).alias(of["name"]) for of in self._fields)
        return self.session.spark.range(0).select(*columns)

    def _at(self, version: int) -> Version:
        there = pinned(self._plan.table)
        if there.version() != version:
            there.load_as_version(version)
            return Version(self.session, self._place, there, is_past=True)
        if self._newest is None or self._newest.number != version:
            self._newest = Version(self.session, self._place, there)
        return self._newest

    def _shaped(self, frame: Any, version: Version, *, has_changes: bool = False) -> Any:
        """Return the stream's columns; those that the version did not have are null.

        Args:
            frame: The version's columns.
            version: The version.
            has_changes: Whether the frame also has the columns of the change data feed.
        """
        from pyspark.sql import functions

        own = {field["name"]: plain_type(field["type"]) for field in version.columns.fields}
        given = [*own.items(), *((field["name"], field["type"]) for field in CHANGE_DATA_FIELDS if has_changes)]
        if given == [(field["name"], plain_type(field["type"])) for field in self._fields]:
            return frame
        added: dict[str, Any] = {
            "_change_type": functions.lit("insert"),
            "_commit_version": functions.lit(version.number).cast("long"),
            "_commit_timestamp": functions.timestamp_millis(functions.lit(version.snapshot.timestamp_ms)),
        }
        columns: list[Any] = []
        for field in self._fields:
            name = field["name"]
            if name in frame.columns:
                column = functions.col(quoted(name))
                same = name in added or own.get(name) == plain_type(field["type"])
                column = column if same else column.cast(spark_type(field["type"]))
            else:
                column = added.get(name, functions.lit(None).cast(spark_type(field["type"])))
            columns.append(column.alias(name))
        return frame.select(*columns)
