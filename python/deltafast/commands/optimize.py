"""OPTIMIZE: fewer and larger files with the same rows."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast.convert import HOOKS_FIRST, also_by_position, choices
from deltafast.expr.demands import bind_rows
from deltafast.progress import watch
from deltafast.writer import encoding

if TYPE_CHECKING:
    from deltafast.filters import Predicate
    from deltafast.progress import Progress
    from deltafast.table import DeltaTable
    from deltafast.transaction import CommitProperties, PostCommitHookProperties
    from deltafast.writer import WriterProperties

__all__ = ["TableOptimizer"]


class TableOptimizer:
    """Lays out the files of a table anew; `DeltaTable.optimize` is one. No row changes."""

    def __init__(self, table: DeltaTable) -> None:
        self.table = table

    def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
        """The same as `compact`."""
        return self.compact(*args, **options)

    @also_by_position(*HOOKS_FIRST)
    def compact(
        self,
        partition_filters: Predicate | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,  # noqa: ARG002 - of `deltalake`; all cores work on one file at a time
        max_spill_size: int | None = None,  # noqa: ARG002 - of `deltalake`; memory is bounded without
        max_temp_directory_size: int | None = None,  # noqa: ARG002 - of `deltalake`; nothing is spilled
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Pack small files of a partition into large ones.

        Files are packed in the order of their making up to `target_size`. Files that are as large stay, unless deletion
        vectors took more than a twentieth of their rows. Appends go on beside it; a commit that changes the same files
        meanwhile ends it. Row ids and commit versions are kept.

        Protocol: "Requirements for Writers" (`dataChange` is false).

        Args:
            partition_filters: Which partitions: DNF tuples, or anything else that `DeltaTable.delete` takes, over
                partition columns.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            max_concurrent_tasks: Of no consequence: all cores work on one file at a time.
            max_spill_size: Of no consequence: memory is bounded without.
            max_temp_directory_size: Of no consequence: nothing is spilled.
            min_commit_interval: Commit what is done after so much time (seconds, or a timedelta) and go on, so that a
                conflict or a crash only costs what came after; all in one commit if None.
            writer_properties: How files are encoded.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: True for a bar on standard error, a function of (done, all), or a tqdm-like bar; counts new files.

        Returns:
            The figures of `deltalake`: `numFilesAdded`, `numFilesRemoved`, `filesAdded` and `filesRemoved` (JSON texts
            of avg, max, min, totalFiles, totalSize), `partitionsOptimized`, `totalConsideredFiles`,
            `totalFilesSkipped`, `maxBinSpanFiles` ...

        Raises:
            InvalidArgumentError: The filters name other columns than partition columns.
            CommitFailedError: Another writer changed the same files meanwhile; `ConcurrentDeleteDeleteError` or
                `ConcurrentDeleteReadError`.
            CommitUnknownError: Whether the commit was made cannot be found out.
            StorageError: The store failed.
        """
        table = self.table
        zone = table._time_zone
        if isinstance(min_commit_interval, timedelta):
            interval = min_commit_interval // timedelta(milliseconds=1)
        else:
            interval = None if min_commit_interval is None else min_commit_interval * 1000
        options = {
            "encoding": encoding(writer_properties, zone, target_size),
            "min_commit_interval_ms": interval,
            "choices": choices(commit_properties, post_commithook_properties),
        }
        everything = partition_filters is None or (isinstance(partition_filters, list) and not partition_filters)
        rows = None if everything else bind_rows(partition_filters, table.schema().to_json(), zone=zone)
        counter = _core.Counter()
        watching = watch(counter, progress)
        try:
            moved, report = _core.optimize(table._snapshot, json.dumps(options), counter, rows)
        finally:
            if watching is not None:
                watching.stop()
        figures = json.loads(report)
        if figures["version"] is not None:
            table._move(moved)
        return _figures(figures)


def _figures(report: dict[str, Any]) -> dict[str, Any]:
    added, removed = report["added"], report["removed"]
    return {
        "numFilesAdded": added["count"],
        "numFilesRemoved": removed["count"],
        "filesAdded": _sizes(added),
        "filesRemoved": _sizes(removed),
        "partitionsOptimized": report["partitions"],
        "numBatches": removed["count"],
        "totalConsideredFiles": report["considered"],
        "totalFilesSkipped": report["considered"] - removed["count"],
        "preserveInsertionOrder": True,
        "plannerStrategy": "preserveLocality",
        "preservedStableOrder": True,
        "maxBinSpanFiles": report["largest_bin"],
    }


def _sizes(files: dict[str, int]) -> str:
    avg = files["sum"] / files["count"] if files["count"] else 0.0
    texts = {
        "avg": avg,
        "max": files["max"],
        "min": files["min"],
        "totalFiles": files["count"],
        "totalSize": files["sum"],
    }
    return json.dumps(texts, separators=(",", ":"))
