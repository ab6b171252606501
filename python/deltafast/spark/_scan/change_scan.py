"""The change data feed as a plan over Spark's own Parquet reader.

The core lists the files that hold the changes, and of each the rows that are not changes; these are skipped as deleted
rows are. Executors need nothing.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._util.column_mapping import MappingMode
from deltafast.exceptions import InvalidArgumentError, warn
from deltafast.spark._scan import file_index, python_scan
from deltafast.spark._scan.file_index import IndexUnavailableError
from deltafast.spark._scan.physical_columns import field_of, quoted
from deltafast.spark._scan.snapshot import VECTOR, Listing

if TYPE_CHECKING:
    import re

    import pyarrow as pa

    from deltafast.spark._scan.physical_columns import Columns
    from deltafast.spark._scan.snapshot import Version

__all__ = ["changes"]

_TYPE, _VERSION, _TIME = "_change_type", "_commit_version", "_commit_timestamp"


def changes(version: Version, first: int, last: int, excluded: re.Pattern[str] | None = None) -> Any:
    """Return the change data feed of some versions: the columns of `version` and the feed's three.

    Args:
        version: The version whose schema the feed has.
        first: The first version of the feed.
        last: The last one; no rows if it is less than `first`.
        excluded: Changes in files whose path in the log it matches are left out.

    Raises:
        InvalidArgumentError: Files cannot be left out, because the Python of the executors reads the feed.
    """
    is_empty, has_ids = last < first, version.mapping is MappingMode.ID
    if is_empty or version.session.is_connect or (has_ids and not version.snapshot.ids_agree()):
        _check_python(excluded)
        return python_scan.changes(version, first, last)
    try:
        return _scan(version, first, last, excluded)
    except IndexUnavailableError as error:
        _check_python(excluded)
        warn(f"{error}; the Python of the executors reads the change data feed instead")
        return python_scan.changes(version, first, last)


def _check_python(excluded: re.Pattern[str] | None) -> None:
    if excluded is not None:
        message = (
            "excludeRegex with a change data feed needs a classic session whose Spark reads the feed: filter the rows"
        )
        raise InvalidArgumentError(message)


def _scan(version: Version, first: int, last: int, excluded: re.Pattern[str] | None) -> Any:
    import pyarrow.compute as pc
    from pyspark.sql import functions

    compute: Any = pc
    found: Any = RecordBatchReader(version.snapshot.change_files(first, last)).read_all()
    if excluded is not None:
        found = found.filter([excluded.search(path) is None for path in found.column("path").to_pylist()])
    in_files = compute.is_null(found.column("change_type"))
    frames: list[Any] = []
    for files, has_column in ((found.filter(in_files), True), (found.filter(compute.invert(in_files)), False)):
        parts = _by_partition_columns(files)
        if not parts and not has_column and not frames:
            parts = [([field["name"] for field in version.columns.partition], files)]
        for partition_columns, part in parts:
            columns = version.columns.partitioned_by(partition_columns)
            data = columns.physical(columns.data)
            data += [field_of(_TYPE, "string")] if has_column else []
            listing = _listing(version, columns, part, has_column=has_column)
            rows = file_index.scan(version, listing, data)
            added = [functions.col(quoted(name)) for name in (_TYPE, _VERSION, _TIME)]
            frames.append(rows.select(*columns.project(pads=version.session.pads_chars), *added))
    return reduce(lambda frame, other: frame.unionAll(other), frames)


def _by_partition_columns(files: pa.Table) -> list[tuple[list[str], pa.Table]]:
    """Return the files by the columns that partition them, which an overwrite within the range may have changed."""
    lists = cast("list[list[str]]", files.column("partition_columns").to_pylist())
    distinct = sorted(set(map(tuple, lists)))
    if len(distinct) == 1:
        return [(list(distinct[0]), files)]
    return [(list(names), files.filter([tuple(other) == names for other in lists])) for names in distinct]


def _listing(version: Version, columns: Columns, found: pa.Table, *, has_column: bool) -> Listing:
    """Return the files of a feed, partitioned as in `columns`; `has_column` if they contain the change type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    files: Any = found
    paths = files.column("path").combine_chunks()
    # Newer versions may have removed them, so a vacuum may have deleted them.
    gone = version.removed(paths)
    data: dict[str, Any] = {
        "path": paths,
        "size": files.column("size_bytes"),
        "time": files.column("modification_time"),
        "ended": gone,
        "rows": files.column("num_rows"),
    }
    partition = files.column("partition").combine_chunks()
    for field in columns.partition:
        data[columns.name(field)] = compute.struct_field(partition, field["name"])
    constants = columns.physical(columns.partition)
    if not has_column:
        data[_TYPE] = files.column("change_type")
        constants.append(field_of(_TYPE, "string"))
    data[_VERSION], data[_TIME] = files.column("commit_version"), files.column("commit_timestamp")
    constants += [field_of(_VERSION, "long"), field_of(_TIME, "timestamp")]
    words = files.column("excluded").combine_chunks()
    is_marked = compute.is_valid(words)
    vectors = None
    if compute.any(is_marked).as_py():
        # A file can be here several times, with other rows each time: vectors are numbered by row of the list.
        number = compute.subtract(compute.cumulative_sum(is_marked.cast(pa.int32())), pa.scalar(1, pa.int32()))
        data[VECTOR] = compute.if_else(is_marked, number, None)
        constants.append(field_of(VECTOR, "integer"))
        kept = words.filter(is_marked)
        vectors = pa.table({"vector": pa.array(range(len(kept)), pa.int32()), "words": kept})
    size = int(compute.sum(files.column("size_bytes")).as_py() or 0)
    return Listing(pa.table(data), constants, vectors, size, (), None, paths, is_feed=True)
