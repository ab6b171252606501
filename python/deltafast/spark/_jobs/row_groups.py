"""Copies of row groups: Spark's tasks copy the encoded row groups of files into new files and decode nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deltafast.spark._jobs.tasks import keys_of, shared
from deltafast.spark._session.file_options import file_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["Source", "copy_row_groups"]

_KEY, _ORDER, _SOURCE, _TASK = "__deltafast_key", "__deltafast_order", "source", "task"


class Source(NamedTuple):
    """Files whose row groups are copied."""

    #: The path of a file as in the log, or of a folder relative to the table.
    path: str
    #: The task whose files in the folder are copied; None for a file.
    task: int | None = None


def copy_row_groups(
    session: Session,
    name: str,
    place: Place,
    folder: str,
    part: str,
    sources: Sequence[tuple[int, Sequence[Source]]],
    sizes: Sequence[int],
) -> None:
    """Copy the row groups of files into new files.

    Args:
        session: The session.
        name: The format, `RowGroupFormat`, from `file_format`.
        place: The table.
        folder: The folder of the new files, relative to the table.
        part: The name of the column whose values name the folder of a new file within `folder`.
        sources: The value of `part` of each new file, and the files that it consists of.
        sizes: Bytes of the new files.
    """
    import pyarrow as pa

    tasks = shared(sizes)
    keys = keys_of(tasks[-1] + 1)
    rows = [
        (number, keys[task], order, *source)
        for (number, files), task in zip(sources, tasks, strict=True)
        for order, source in enumerate(files)
    ]
    types = (pa.int32(), pa.int32(), pa.int32(), pa.string(), pa.int32())
    columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
    frame = session.frame(pa.table(columns, [part, _KEY, _ORDER, _SOURCE, _TASK])).repartition(len(keys), _KEY)
    # One file of a task is open at a time.
    writer = frame.sortWithinPartitions(part, _ORDER).select(part, _SOURCE, _TASK).write.format(name).mode("append")
    # The session may limit the rows of a file, which are files here.
    options = {"root": place.hadoop, "maxRecordsPerFile": "0", **file_options(session, place, "READ_WRITE")}
    options["mapreduce.fileoutputcommitter.marksuccessfuljobs"] = "false"
    writer.options(**options).partitionBy(part).save(f"{place.hadoop}/{folder}")
