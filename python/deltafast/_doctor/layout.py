"""Checks for inefficient layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._doctor.finding import Finding, FindingLevel
from deltafast._layout.measure import SMALL, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltafast.table import DeltaTable

__all__ = ["layout_findings"]

#: Number of small files in a partition from which compaction pays off.
MANY_SMALL = 8
#: Share of deleted rows that slows scans down.
MANY_DELETED = 0.05
#: Share of files with overlapping bounds from which clustering is ineffective.
MUCH_OVERLAP = 0.5
#: Number of files below which the layout does not matter.
FEW_FILES = 8
#: Size in bytes below which a partition is too small, and the number of such partitions that is reported.
SMALL_PARTITION, MANY_PARTITIONS = 1 << 20, 100


def layout_findings(table: DeltaTable, shown: str) -> Iterator[Finding]:
    """Yield the findings about the layout."""
    layout = measure(table, versions=0)
    small = [part for part in layout.partitions if part.small_files >= MANY_SMALL]
    if small:
        count = sum(part.small_files for part in small)
        message = f"{count} files are smaller than {SMALL >> 20} MiB, in {len(small)} partitions"
        yield Finding(FindingLevel.ADVICE, "small-files", message, f"deltafast optimize {shown}")
    if layout.rows and layout.deleted_rows / layout.rows > MANY_DELETED:
        share = layout.deleted_rows / layout.rows
        message = f"deletion vectors hide {share:.0%} of the rows that are stored, in {layout.files_with_vectors} files"
        yield Finding(FindingLevel.ADVICE, "deleted-rows", message, f"deltafast optimize {shown}")
    if layout.files_without_rows:
        message = f"{layout.files_without_rows} files have no statistics, so no predicate can leave them out"
        yield Finding(
            FindingLevel.ADVICE, "no-statistics", message, "rewrite them: overwrite the table or partition with itself"
        )
    tiny = [part for part in layout.partitions if part.bytes < SMALL_PARTITION]
    if len(tiny) >= MANY_PARTITIONS and 2 * len(tiny) > len(layout.partitions):
        message = (
            f"{len(tiny)} of {len(layout.partitions)} partitions hold less than 1 MiB: it is too finely partitioned"
        )
        remedy = "rewrite the table with fewer partitions, or with CLUSTER BY instead"
        yield Finding(FindingLevel.ADVICE, "small-partitions", message, remedy)
    for column in layout.columns:
        if column.clustered and layout.files >= FEW_FILES and column.share > MUCH_OVERLAP:
            message = (
                f"the table is clustered by `{column.name}`, but the bounds of a file overlap those of "
                f"{column.depth:.0f} of {column.files} files, on average"
            )
            yield Finding(FindingLevel.ADVICE, "not-clustered", message, f"deltafast optimize {shown}")
