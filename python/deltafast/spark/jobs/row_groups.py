"""Copies of row groups: Spark's tasks copy the encoded row groups of files into new files and decode nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast.spark._session.file_options import file_options
from deltafast.spark._session.java_library import UnavailableError, load, on_executors
from deltafast.spark.jobs.tasks import keys_of, shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["copy_row_groups", "row_group_format"]

_TASK, _ORDER, _SOURCE = "__deltafast_task", "__deltafast_order", "source"


def row_group_format(session: Session) -> str | None:
    """Return the name of the format that copies row groups; None if the session does not have it."""
    if session.is_connect:
        return None
    try:
        kind = load(session, "RowGroupFormat")
        on_executors(session, kind)
    except UnavailableError:
        return None
    return str(kind.getName())


def copy_row_groups(
    session: Session,
    name: str,
    place: Place,
    folder: str,
    part: str,
    sources: Sequence[tuple[int, Sequence[str]]],
    sizes: Sequence[int],
) -> None:
    """Copy the row groups of files into new files.

    Args:
        session: The session.
        name: The format, from `row_group_format`.
        place: The table.
        folder: The folder of the new files, relative to the table.
        part: The name of the column whose values name the folder of a new file within `folder`.
        sources: The value of `part` of each new file, and the files that it consists of: paths as in the log, or
            folders with files, which end with a slash.
        sizes: Bytes of the new files.
    """
    import pyarrow as pa

    tasks = shared(sizes)
    keys = keys_of(tasks[-1] + 1)
    rows = [
        (number, keys[task], order, source)
        for (number, files), task in zip(sources, tasks, strict=True)
        for order, source in enumerate(files)
    ]
    types = (pa.int32(), pa.int32(), pa.int32(), pa.string())
    columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
    frame = session.frame(pa.table(columns, [part, _TASK, _ORDER, _SOURCE])).repartition(len(keys), _TASK)
    # One file of a task is open at a time.
    writer = frame.sortWithinPartitions(part, _ORDER).select(part, _SOURCE).write.format(name).mode("append")
    # The session may limit the rows of a file, which are files here.
    options = {"root": place.hadoop, "maxRecordsPerFile": "0", **file_options(session, place, "READ_WRITE")}
    options["mapreduce.fileoutputcommitter.marksuccessfuljobs"] = "false"
    writer.options(**options).partitionBy(part).save(f"{place.hadoop}/{folder}")
