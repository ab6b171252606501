"""OPTIMIZE and REORG: fewer and larger files with the same rows, rows laid out anew, files without what is gone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._expr.demands import bind_rows
from deltafast._expr.listed import listed
from deltafast._ops.alter import TableAlterer, alter_table
from deltafast._util.arguments import HOOKS_FIRST, also_by_position
from deltafast._util.options import commit_options
from deltafast._util.writer_properties import encoding
from deltafast.exceptions import InvalidArgumentError
from deltafast.progress import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate
    from deltafast._util.writer_properties import WriterProperties
    from deltafast.progress import Progress
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["TableOptimizer"]

#: Promises other formats' metadata beside the log.
_FORMATS = "delta.universalFormat.enabledFormats"


class TableOptimizer:
    """Lays out the files of a table anew; `DeltaTable.optimize` is one. No row changes."""

    def __init__(self, table: TableHandle) -> None:
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
        """Pack small files of a partition into large ones; of a table with clustering columns do what `cluster` does.

        Files are packed in the order of their making up to `target_size`. Files that are as large stay, unless deletion
        vectors took more than a twentieth of their rows. Appends go on beside it; a commit that changes the same files
        meanwhile ends it. Row ids and commit versions are kept.

        Protocol: "Requirements for Writers" (`dataChange` is false), "Clustered Table".

        Args:
            partition_filters: Which partitions: DNF tuples, or anything else that `DeltaTable.delete` takes, over
                partition columns; None for a clustered table.
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
            InvalidArgumentError: The filters name other columns than partition columns, or the table is clustered.
            CommitFailedError: Another writer changed the same files meanwhile; `ConcurrentDeleteDeleteError` or
                `ConcurrentDeleteReadError`.
            CommitUnknownError: Whether the commit was made cannot be found out.
            StorageError: The store failed.
        """
        options = {
            "encoding": encoding(writer_properties, self.table.time_zone, target_size),
            "min_commit_interval_ms": _milliseconds(min_commit_interval),
            "commit_options": commit_options(commit_properties, post_commithook_properties),
        }
        return self._run(options, partition_filters, progress)

    def cluster(
        self,
        *,
        full: bool = False,
        target_size: int | None = None,
        min_cube_size: int | None = None,
        cube_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Lay rows of a table with clustering columns out by these, incrementally (liquid clustering).

        New files, and groups of files clustered together (ZCubes) that are still small, are put together and
        written along Hilbert's curve through the columns; a column alone is sorted. Large groups stay, and so do files
        that were clustered by other columns or by another provider. Where all files are one group nothing is done.
        Memory and disk are used as by `z_order`; appends go on beside it. Which files are taken is delta-spark's
        choice, and it can go on where this ends.

        Protocol: "Clustered Table", "Requirements for Writers" (`dataChange` is false).

        Args:
            full: Take files, too, that other columns or another provider clustered: `OPTIMIZE .. FULL`.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            min_cube_size: Bytes from which a group stays as it is; 100 GiB if None (delta-spark's
                `optimize.clustering.mergeStrategy.minCubeSize.threshold`).
            cube_size: Bytes of files that become one group; 150 GiB if None, `min_cube_size` at least.
            min_commit_interval: Commit what is done after so much time (seconds, or a timedelta) and go on with the
                other groups; all in one commit if None.
            writer_properties: How files are encoded.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts groups.

        Returns:
            As `compact`; `clusteringStats` has delta-spark's figures: `inputZCubeFiles`, `inputOtherFiles`,
            `mergedFiles` (each `numFiles` and `size` in bytes), `inputNumZCubes`, `numOutputZCubes`.

        Raises:
            InvalidArgumentError: The table has no clustering columns.
            CommitFailedError: As `compact`.
            CommitUnknownError: Whether the commit was made cannot be found out.
            StorageError: The store failed, or there is no room for rows on disk.
        """
        options = {
            "encoding": encoding(writer_properties, self.table.time_zone, target_size),
            "min_commit_interval_ms": _milliseconds(min_commit_interval),
            "commit_options": commit_options(commit_properties, post_commithook_properties),
            "task": "cluster_full" if full else "cluster",
            "min_cube_size": min_cube_size,
            "cube_size": cube_size,
        }
        return self._run(options, None, progress)

    def purge(
        self,
        partition_filters: Predicate | None = None,
        *,
        target_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Rewrite the files that hold more than their rows: `REORG TABLE .. APPLY (PURGE)`.

        These are the files with deletion vectors, and those with columns that the table has not any more. The old
        files stay until `vacuum` deletes them; only then the rows and columns are gone for good. A file that was
        clustered stays so. The footer of every file without deletion vector is read.

        Protocol: "Deletion Vectors", "Column Mapping", "Requirements for Writers" (`dataChange` is false).

        Args:
            partition_filters: Which partitions, as for `compact`; all if None.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            min_commit_interval: As for `compact`.
            writer_properties: How files are encoded.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts new files.

        Returns:
            As `compact`.

        Raises:
            InvalidArgumentError: The filters name other columns than partition columns.
            CommitFailedError: As `compact`.
            CommitUnknownError: Whether the commit was made cannot be found out.
            StorageError: The store failed.
        """
        options = {
            "encoding": encoding(writer_properties, self.table.time_zone, target_size),
            "min_commit_interval_ms": _milliseconds(min_commit_interval),
            "commit_options": commit_options(commit_properties, post_commithook_properties),
            "task": "purge",
        }
        return self._run(options, partition_filters, progress)

    def upgrade_uniform(
        self,
        iceberg_compat_version: int = 2,
        *,
        target_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Make a table one that Iceberg reads, too: `REORG .. APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))`.

        Three versions, each left out where it has nothing to do: the properties (compatibility, column mapping by name,
        no deletion vectors); for version 2 all files that do not say by their tag that they were written for it,
        written anew; the promise of Iceberg's metadata (`delta.universalFormat.enabledFormats`). These metadata are not
        made here: an engine that has a converter makes them with its next commit. Where it ends on its way, it can be
        run again and goes on. Appends go on beside it.

        Protocol: "IcebergCompatV1", "IcebergCompatV2", "Requirements for Writers" (`dataChange` is false). Versions,
        tags and names of operations are delta-spark's.

        Args:
            iceberg_compat_version: 1 or 2. Version 1 has no arrays and maps, is not for tables with the feature
                `deletionVectors`, and leaves files as they are: those that do not fit refuse it.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            min_commit_interval: As for `compact`.
            writer_properties: How files are encoded.
            commit_properties: See `CommitProperties`; the last version records the transactions.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts new files.

        Returns:
            As `compact`, of the files that were written anew.

        Raises:
            InvalidArgumentError: The table's types or features are not for that version.
            DeltaProtocolError: There is no such version, or a file does not fit version 1.
            CommitFailedError: Another writer changed the table or the same files meanwhile.
            CommitUnknownError: Whether the commit was made cannot be found out.
            StorageError: The store failed.
        """
        table = self.table
        promised = "iceberg" in table.metadata().configuration.get(_FORMATS, "").split(",")
        earlier = None if commit_properties is None else replace(commit_properties, app_transactions=None)
        alterer = TableAlterer(table)
        alter_table(table, "upgrade_uniform", earlier, post_commithook_properties, version=iceberg_compat_version)
        options = {
            "encoding": encoding(writer_properties, table.time_zone, target_size),
            "min_commit_interval_ms": _milliseconds(min_commit_interval),
            "commit_options": commit_options(commit_properties if promised else earlier, post_commithook_properties),
            "task": "upgrade",
        }
        figures = self._run(options, None, progress)
        alterer.set_table_properties(
            {_FORMATS: "iceberg"},
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        return figures

    @also_by_position(*HOOKS_FIRST)
    def z_order(
        self,
        columns: Iterable[str],
        partition_filters: Predicate | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,  # noqa: ARG002 - of `deltalake`; all cores work on one file at a time
        max_spill_size: int | None = None,  # noqa: ARG002 - of `deltalake`; the process's budget says
        max_temp_directory_size: int | None = None,  # noqa: ARG002 - of `deltalake`; never more than the rows once
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Lay all rows of each partition anew, along the Z-order curve of some columns.

        Rows that are near to each other in all of the columns come into the same files, so that the statistics of files
        exclude most of them for a predicate on any of the columns. All files of the chosen partitions are written anew
        each time. Rows that do not fit into an eighth of the memory budget (`DELTAFAST_MEMORY_LIMIT`) go to a file in
        the folder for temporary files and back, once.

        Protocol: "Requirements for Writers" (`dataChange` is false).

        Args:
            columns: Names of columns with an order, `a.b` for a field in a struct; none of them a partition column.
            partition_filters: Which partitions, as for `compact`.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            max_concurrent_tasks: Of no consequence: all cores work on one file at a time.
            max_spill_size: Of no consequence: the budget says how much is held in memory.
            max_temp_directory_size: Of no consequence: the rows of a partition are on disk once at most.
            min_commit_interval: Commit what is done after so much time (seconds, or a timedelta) and go on with the
                other partitions; all in one commit if None.
            writer_properties: How files are encoded.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts partitions.

        Returns:
            As `compact`.

        Raises:
            InvalidArgumentError: A column is not there, has no order or is a partition column; the table is clustered;
                or as `compact`.
            CommitFailedError: As `compact`.
            CommitUnknownError: Whether the commit was made cannot be found out.
            StorageError: The store failed, or there is no room for rows on disk.
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        if not names:
            message = "z_order needs at least one column"
            raise InvalidArgumentError(message)
        options = {
            "encoding": encoding(writer_properties, self.table.time_zone, target_size),
            "min_commit_interval_ms": _milliseconds(min_commit_interval),
            "commit_options": commit_options(commit_properties, post_commithook_properties),
            "z_order_by": names,
        }
        return self._run(options, partition_filters, progress)

    def _run(self, options: dict[str, Any], partition_filters: Predicate | None, progress: Progress) -> dict[str, Any]:
        table = self.table
        rows = self._chosen(partition_filters, table.time_zone)
        with counted(progress, "groups of files"):
            moved, report = _core.optimize(table.snapshot, json.dumps(options), rows)
        figures = json.loads(report)
        if figures["version"] is not None:
            table.move(moved)
        return optimize_figures(figures)

    def _chosen(self, partition_filters: Predicate | None, zone: str) -> str | None:
        """What the core takes for the rows of some partitions; None for all."""
        if partition_filters is None or (isinstance(partition_filters, list) and not partition_filters):
            return None
        rows = bind_rows(partition_filters, self.table.schema().to_json(), zone=zone)
        shown = listed(partition_filters, zone) if isinstance(partition_filters, str) else None
        return rows if shown is None else json.dumps(json.loads(rows) | {"sql": shown})


def _milliseconds(interval: int | timedelta | None) -> int | None:
    if isinstance(interval, timedelta):
        return interval // timedelta(milliseconds=1)
    return None if interval is None else interval * 1000


#: What `deltalake` calls a plan, by how rows lie.
_STRATEGIES = {"packed": "preserveLocality", "zOrder": "zOrder", "clustered": "clustering"}


def optimize_figures(report: dict[str, Any]) -> dict[str, Any]:
    added, removed = report["added"], report["removed"]
    ordered = report["layout"] == "packed"
    figures = {
        "numFilesAdded": added["count"],
        "numFilesRemoved": removed["count"],
        "filesAdded": _sizes(added),
        "filesRemoved": _sizes(removed),
        "partitionsOptimized": report["partitions"],
        "numBatches": removed["count"],
        "totalConsideredFiles": report["considered"],
        "totalFilesSkipped": report["considered"] - removed["count"],
        "preserveInsertionOrder": ordered,
        "plannerStrategy": _STRATEGIES[report["layout"]],
        "preservedStableOrder": ordered,
        "maxBinSpanFiles": report["largest_bin"],
    }
    if report["clustering"] is not None:
        figures["clusteringStats"] = report["clustering"]
    return figures


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
