"""Read mode `arrow`: executors read with the Rust reader and pass Arrow batches to Spark.

It reads the change data feed, and files that the JVM cannot read or would read incorrectly (field ids that disagree
with names, names that Spark hides). Executors need deltafast and access to the store; filters on the frame do not skip
files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast.spark._scan.executor_rows import arrow_schema
from deltafast.spark._scan.physical_columns import field_of, plain_type, quoted, spark_schema
from deltafast.spark._scan.read_tasks import cut
from deltafast.spark._session.executor_package import shipped
from deltafast.spark._session.session import quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from deltafast._core_types import BoundTree
    from deltafast.spark._scan.snapshot import Version

__all__ = ["changes", "scan"]

#: Maximum number of tasks; each opens the version itself.
_TASKS = 1000


def scan(
    version: Version,
    predicate: BoundTree | None,
    metadata_columns: tuple[str, ...],
    only: frozenset[str] | None = None,
) -> Any:
    """Return a frame of the table's columns and the given metadata columns; with `only`, of these files alone."""
    import pyarrow as pa

    fields = [field_of(field["name"], plain_type(field["type"])) for field in version.columns.fields]
    fields += [field_of(name, "long") for name in metadata_columns]
    paths = None if only is None else set(only)
    found = RecordBatchReader(
        version.snapshot.files(columns=["path", "size_bytes"], predicate=predicate, paths=paths)
    ).read_all()
    listed: Any = zip(found.column("path").to_pylist(), found.column("size_bytes").to_pylist(), strict=True)
    chunks = cut(listed)
    work = pa.table({"paths": pa.array([list(chunk) for chunk in chunks], pa.list_(pa.string()))})
    columns = [field["name"] for field in version.columns.fields]
    opened = _opener(version)
    metadata = list(metadata_columns)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for paths in cast("list[list[str]]", batch.column("paths").to_pylist()):
                stream = opened().scan(
                    columns=columns, predicate=predicate, metadata_columns=metadata, files=paths, string_view=False
                )
                yield from RecordBatchReader(stream)

    return _mapped(version, work, read, fields)


def changes(version: Version, first: int, last: int) -> Any:
    """Return the change data feed of some versions: the columns of `version` and the feed's three."""
    import pyarrow as pa

    fields = [field_of(field["name"], plain_type(field["type"])) for field in version.columns.fields]
    added = {"_change_type": "string", "_commit_version": "long", "_commit_timestamp": "timestamp"}
    fields += [field_of(name, of) for name, of in added.items()]
    columns = [field["name"] for field in fields]
    work = pa.table({"version": pa.array(range(first, last + 1), pa.int64())})
    opened = _opener(version)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in cast("list[int]", batch.column("version").to_pylist()):
                snapshot = opened()
                stream = snapshot.cdf(starting_version=number, ending_version=number, columns=columns, as_opened=True)
                yield from RecordBatchReader(stream)

    return _mapped(version, work, read, fields)


def _mapped(version: Version, work: pa.Table, read: Callable[..., Any], fields: list[dict[str, Any]]) -> Any:
    schema = spark_schema(fields)
    session = version.session
    if not len(work):
        return session.spark.createDataFrame([], schema)
    with quiet():
        rows = session.frame(work).repartition(min(len(work), _TASKS)).mapInArrow(shipped(_cast(read, schema)), schema)
    if not (version.columns.has_chars and session.pads_chars):
        return rows
    others = [quoted(field["name"]) for field in fields[len(version.columns.fields) :]]
    return rows.select(*version.columns.padded(), *others)


def _cast(read: Callable[..., Any], schema: Any) -> Callable[..., Any]:
    """Return a function whose batches have variants as Spark takes them: it finds the two parts by position."""
    if '"variant"' not in schema.json():
        return read
    target = arrow_schema(schema)

    def read_cast(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in read(batches):
            yield batch.cast(target)

    return read_cast


def _opener(version: Version) -> Callable[[], Any]:
    """Return a function that opens the version, once in each Python process of an executor."""
    uri, number, zone = version.place.uri, version.number, version.session.zone
    options = dict(version.place.options)
    held: dict[str, Any] = {}

    def opened() -> Any:
        if "snapshot" not in held:
            from deltafast import _core

            held["snapshot"] = _core.Snapshot.open(
                uri, version=number, storage_options=options or None, options={"time_zone": zone}
            )
        return held["snapshot"]

    return opened
