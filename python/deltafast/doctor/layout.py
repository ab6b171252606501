"""Layouts that cost time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast.doctor.finding import Finding
from deltafast.layout.measure import SMALL, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltafast.table import DeltaTable

__all__ = ["layout_findings"]

#: Small files in a partition from which on packing them pays.
MANY_SMALL = 8
#: Deleted rows, as a share, that a scan notices.
MANY_DELETED = 0.05
#: Files whose bounds overlap, as a share, from which on clustering is no help.
MUCH_OVERLAP = 0.5
#: Files below which no layout matters.
FEW_FILES = 8
#: Bytes of a partition below which partitioning costs more than it gives, and how many of them there must be.
SMALL_PARTITION, MANY_PARTITIONS = 1 << 20, 100


def layout_findings(table: DeltaTable, shown: str) -> Iterator[Finding]:
    """What a layout costs."""
    layout = measure(table, versions=0)
    small = [part for part in layout.partitions if part.small_files >= MANY_SMALL]
    if small:
        count = sum(part.small_files for part in small)
        message = f"{count} files are smaller than {SMALL >> 20} MiB, in {len(small)} partitions"
        yield Finding("advice", "small-files", message, f"deltafast optimize {shown}")
    if layout.rows and layout.deleted_rows / layout.rows > MANY_DELETED:
        share = layout.deleted_rows / layout.rows
        message = f"deletion vectors hide {share:.0%} of the rows that are stored, in {layout.files_with_vectors} files"
        yield Finding("advice", "deleted-rows", message, f"deltafast optimize {shown}")
    if layout.files_without_rows:
        message = f"{layout.files_without_rows} files have no statistics, so no predicate can leave them out"
        yield Finding("advice", "no-statistics", message, "rewrite them: overwrite the table or partition with itself")
    tiny = [part for part in layout.partitions if part.bytes < SMALL_PARTITION]
    if len(tiny) >= MANY_PARTITIONS and 2 * len(tiny) > len(layout.partitions):
        message = (
            f"{len(tiny)} of {len(layout.partitions)} partitions hold less than 1 MiB: it is too finely partitioned"
        )
        remedy = "write the table anew with fewer partitions, or with CLUSTER BY instead"
        yield Finding("advice", "small-partitions", message, remedy)
    for column in layout.columns:
        if column.clustered and layout.files >= FEW_FILES and column.share > MUCH_OVERLAP:
            message = (
                f"the table is clustered by `{column.name}`, but the bounds of a file overlap those of "
                f"{column.depth:.0f} of {column.files} files, on average"
            )
            yield Finding("advice", "not-clustered", message, f"deltafast optimize {shown}")
