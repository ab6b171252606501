"""Rows of a version as the Python of an executor passes them to Spark: Arrow batches of exactly one schema."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._util.values import from_epoch_ms
from deltafast.spark._scan.physical_columns import field_of
from deltafast.spark._scan.read_tasks import Piece, cut
from deltafast.spark._scan.snapshot import change_data_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from deltafast import _core
    from deltafast.spark._session.storage import Place
    from deltafast.table import DeltaTable

__all__ = ["CHANGE_DATA_FIELDS", "Opened", "arrow_schema"]

#: The columns that the change data feed adds to a table's.
CHANGE_DATA_FIELDS = [
    field_of("_change_type", "string"),
    field_of("_commit_version", "long"),
    field_of("_commit_timestamp", "timestamp"),
]


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema in which Spark takes batches."""
    import inspect

    from pyspark.sql.pandas.types import to_arrow_schema

    # Until PySpark 4.1 timestamps are in UTC unless the caller chooses a time zone.
    zone: Any = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


class Opened(NamedTuple):
    """The arguments with which an executor opens the table, and the columns to read."""

    uri: str
    options: tuple[tuple[str, str], ...]
    zone: str
    schema: Any

    @classmethod
    def of(cls, place: Place, zone: str, schema: Any) -> Opened:
        """Return the arguments for a table."""
        return cls(place.uri, tuple(sorted(place.options.items())), zone, schema)

    def pieces(self, table: DeltaTable) -> list[Piece]:
        """Return all rows of a version, in parts of the size of a task."""
        found = RecordBatchReader(handle_of(table).snapshot.files(columns=["path", "size_bytes"])).read_all()
        listed: Any = zip(found.column("path").to_pylist(), found.column("size_bytes").to_pylist(), strict=True)
        return [Piece(table.version(), part, snapshot=False) for part in cut(listed)]

    def changes(self, table: DeltaTable, given: Mapping[str, Any]) -> list[Piece]:
        """Return the changes of some versions, one version per task."""
        starts = (given.get("startingversion"), given.get("startingtimestamp"))
        ends = (given.get("endingversion"), given.get("endingtimestamp"))
        first, last = change_data_range(handle_of(table).snapshot, starts, ends, self.zone)
        return [Piece(version, None, snapshot=False) for version in range(first, last + 1)]

    def rows(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece; columns that its version does not have are null."""
        import pyarrow as pa

        target: Any = arrow_schema(self.schema)
        snapshot = _snapshot(self.uri, self.options, self.zone, piece.version)
        if piece.files is None:
            stream = snapshot.cdf(starting_version=piece.version, ending_version=piece.version)
            constants: dict[str, Any] = {}
        else:
            names = [field.name for field in cast("Any", pa.schema(cast("Any", snapshot.arrow_schema())))]
            wanted = [name for name in names if name in target.names]
            stream = snapshot.scan(columns=wanted, files=list(piece.files), string_view=False)
            constants = {
                "_change_type": "insert",
                "_commit_version": piece.version,
                "_commit_timestamp": from_epoch_ms(snapshot.timestamp_ms),
            }
        for batch in RecordBatchReader(stream):
            arrays = [_column(batch, field, constants) for field in target]
            yield cast("Any", pa.RecordBatch).from_arrays(arrays, schema=target)


def _column(batch: Any, field: Any, constants: dict[str, Any]) -> Any:
    import pyarrow as pa

    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    make: Any = pa
    if field.name in constants:
        return make.repeat(make.scalar(constants[field.name], field.type), batch.num_rows)
    return make.nulls(batch.num_rows, field.type)


@lru_cache(maxsize=8)
def _snapshot(uri: str, options: tuple[tuple[str, str], ...], zone: str, version: int) -> _core.Snapshot:
    """Open a version, once in each Python process of an executor."""
    from deltafast import _core

    return _core.Snapshot.open(uri, version=version, storage_options=dict(options) or None, options={"time_zone": zone})
