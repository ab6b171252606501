"""OPTIMIZE and REORG: compaction, Z-order and liquid clustering, and the removal of deleted rows and columns."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._delta_keys import UNIFORM_FORMATS
from deltafast._expr.constraints import bind_rows
from deltafast._expr.listed import listed
from deltafast._ops.alter import TableAlterer, alter_table
from deltafast._util.arguments import HOOKS_FIRST, also_by_position
from deltafast._util.options import commit_options
from deltafast._util.writer_properties import encoding
from deltafast.exceptions import InvalidArgumentError
from deltafast.progress import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltafast._core_types import FileSizeStatistics, NamedExpression, OptimizeMetrics, OptimizeOptions
    from deltafast._expr.context import ExpressionContext
    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate
    from deltafast._util.writer_properties import WriterProperties
    from deltafast.progress import Progress
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["TableOptimizer"]


class TableOptimizer:
    """Rewrites files of a table without changing rows; returned by `DeltaTable.optimize`.

    Examples:
        The examples of the methods continue this one.

        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> table = DeltaTable("cities")
        >>> table.append({"id": [4], "city": ["Bonn"]})["num_added_rows"]
        1
        >>> metrics = table.optimize.compact()
        >>> metrics["numFilesRemoved"], metrics["numFilesAdded"]
        (2, 1)
    """

    def __init__(self, table: TableHandle) -> None:
        self.table = table

    def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Run `compact`."""
        return self.compact(*args, **options)

    @also_by_position(*HOOKS_FIRST)
    def compact(
        self,
        partition_filters: Predicate | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,  # noqa: ARG002 - of `deltalake`; all cores work on one file at a time
        max_spill_size: int | None = None,  # noqa: ARG002 - of `deltalake`; memory is always bounded
        max_temp_directory_size: int | None = None,  # noqa: ARG002 - of `deltalake`; nothing is spilled
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Compact small files of a partition into large ones.

        A table with clustering columns is clustered instead, see `cluster`. Files are packed up to `target_size` in the
        order of their creation. Files of that size stay, unless more than 5 % of their rows are deleted by deletion
        vectors. Concurrent appends do not conflict; a concurrent commit that changes the same files does. Row ids and
        row commit versions are preserved.

        Protocol: "Requirements for Writers" (`dataChange` is false), "Clustered Table".

        Args:
            partition_filters: Partitions to compact: DNF tuples, or any other predicate of `DeltaTable.delete`, over
                partition columns; None for a clustered table.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            max_concurrent_tasks: Accepted without effect: all cores work on one file at a time.
            max_spill_size: Accepted without effect: memory is always bounded.
            max_temp_directory_size: Accepted without effect: nothing is spilled.
            min_commit_interval: Commit the finished files at this interval (seconds, or a timedelta) and continue, so
                that a conflict or a crash only loses later work; one commit if None.
            writer_properties: Encoding of the new files.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: True for a bar on standard error, a function of (done, total), or a tqdm-like bar; counts new
                files.

        Returns:
            The metrics of `deltalake`: `numFilesAdded`, `numFilesRemoved`, `filesAdded` and `filesRemoved` (JSON
            strings of avg, max, min, totalFiles, totalSize), `partitionsOptimized`, `totalConsideredFiles`,
            `totalFilesSkipped`, `maxBinSpanFiles` ...

        Raises:
            InvalidArgumentError: The filters use other columns than partition columns, or the table is clustered.
            CommitFailedError: A concurrent commit changed the same files; `ConcurrentDeleteDeleteError` or
                `ConcurrentDeleteReadError`.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed.

        Examples:
            >>> metrics = table.append({"id": [5], "city": ["Bern"]})
            >>> metrics = table.optimize.compact(target_size=64 * 1024 * 1024)
            >>> len(table.files())
            1
        """
        options: OptimizeOptions = {
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
        """Cluster a table by its clustering columns, incrementally (liquid clustering).

        New files, and groups of files that were clustered together (ZCubes) and are still small, are combined and
        written along a Hilbert curve through the columns; with one column they are sorted. Large groups stay, and so do
        files that were clustered by other columns or by another provider. Nothing is done if all files are one group.
        Memory and disk are used as by `z_order`; concurrent appends do not conflict. The selection of files is that of
        delta-spark, so both can continue each other's work.

        Protocol: "Clustered Table", "Requirements for Writers" (`dataChange` is false).

        Args:
            full: Include files that were clustered by other columns or by another provider: `OPTIMIZE .. FULL`.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            min_cube_size: Size in bytes from which a group stays unchanged; 100 GiB if None (delta-spark's
                `optimize.clustering.mergeStrategy.minCubeSize.threshold`).
            cube_size: Target size of a group in bytes; 150 GiB if None, at least `min_cube_size`.
            min_commit_interval: Commit the finished groups at this interval (seconds, or a timedelta) and continue with
                the others; one commit if None.
            writer_properties: Encoding of the new files.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts groups.

        Returns:
            As `compact`; `clusteringStats` has delta-spark's metrics: `inputZCubeFiles`, `inputOtherFiles`,
            `mergedFiles` (each `numFiles` and `size` in bytes), `inputNumZCubes`, `numOutputZCubes`.

        Raises:
            InvalidArgumentError: The table has no clustering columns.
            CommitFailedError: As `compact`.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed, or the disk is full.

        Examples:
            >>> clustered = DeltaTable.create("clustered", {"id": "long"}, cluster_by="id")
            >>> metrics = clustered.append({"id": [2, 1]}), clustered.append({"id": [3, 0]})
            >>> clustered.optimize.cluster()["numFilesAdded"]
            1
        """
        options: OptimizeOptions = {
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
        """Rewrite the files that contain deleted rows or dropped columns: `REORG TABLE .. APPLY (PURGE)`.

        These are the files with deletion vectors, and those with columns that are no longer in the schema. The old
        files stay until `vacuum` deletes them; only then are the rows and columns irrecoverable. Clustered files stay
        clustered. The footer of every file without a deletion vector is read.

        Protocol: "Deletion Vectors", "Column Mapping", "Requirements for Writers" (`dataChange` is false).

        Args:
            partition_filters: Partitions to rewrite, as for `compact`; all if None.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            min_commit_interval: As for `compact`.
            writer_properties: Encoding of the new files.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts new files.

        Returns:
            As `compact`.

        Raises:
            InvalidArgumentError: The filters use other columns than partition columns.
            CommitFailedError: As `compact`.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed.

        Examples:
            >>> table.alter.set_table_properties({"delta.enableDeletionVectors": True})
            >>> table.delete("id = 1")["num_deleted_rows"]
            1
            >>> table.optimize.purge()["numFilesAdded"]
            1
            >>> table.deletion_vectors().read_all().num_rows
            0
        """
        options: OptimizeOptions = {
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
        """Make a table readable by Iceberg: `REORG .. APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))`.

        Up to three commits are made: (1) the properties (compatibility, column mapping by name, no deletion vectors);
        (2) for version 2, a rewrite of all files without the tag of that version; (3) the property that requests
        Iceberg metadata (`delta.universalFormat.enabledFormats`). A commit without changes is left out. The Iceberg
        metadata itself is not written here: an engine with a converter writes it with its next commit. If a call fails,
        the next one continues. Concurrent appends do not conflict.

        Protocol: "IcebergCompatV1", "IcebergCompatV2", "Requirements for Writers" (`dataChange` is false). Versions,
        tags and names of operations are delta-spark's.

        Args:
            iceberg_compat_version: 1 or 2. Version 1 does not support arrays, maps and tables with the feature
                `deletionVectors`, and does not rewrite files: an incompatible file is an error.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            min_commit_interval: As for `compact`.
            writer_properties: Encoding of the new files.
            commit_properties: See `CommitProperties`; the last commit records the application transactions.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts new files.

        Returns:
            As `compact`, for the rewritten files.

        Raises:
            InvalidArgumentError: The version does not support the table's types or features.
            DeltaProtocolError: The version is unknown, or a file is incompatible with version 1.
            CommitFailedError: A concurrent commit changed the table's metadata or the same files.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed.

        Examples:
            >>> import warnings
            >>> with warnings.catch_warnings(action="ignore"):  # deltafast writes no Iceberg metadata itself
            ...     metrics = table.optimize.upgrade_uniform(2)
            >>> table.metadata().configuration["delta.enableIcebergCompatV2"]
            'true'
        """
        table = self.table
        promised = "iceberg" in table.metadata().configuration.get(UNIFORM_FORMATS, "").split(",")
        earlier = None if commit_properties is None else replace(commit_properties, app_transactions=None)
        alterer = TableAlterer(table)
        earlier_options = commit_options(earlier, post_commithook_properties)
        alter_table(table, "upgrade_uniform", earlier_options, version=iceberg_compat_version)
        options: OptimizeOptions = {
            "encoding": encoding(writer_properties, table.time_zone, target_size),
            "min_commit_interval_ms": _milliseconds(min_commit_interval),
            "commit_options": commit_options(commit_properties if promised else earlier, post_commithook_properties),
            "task": "upgrade",
        }
        metrics = self._run(options, None, progress)
        alterer.set_table_properties(
            {UNIFORM_FORMATS: "iceberg"},
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        return metrics

    @also_by_position(*HOOKS_FIRST)
    def z_order(
        self,
        columns: Iterable[str],
        partition_filters: Predicate | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,  # noqa: ARG002 - of `deltalake`; all cores work on one file at a time
        max_spill_size: int | None = None,  # noqa: ARG002 - of `deltalake`; the memory budget applies
        max_temp_directory_size: int | None = None,  # noqa: ARG002 - of `deltalake`; rows are spilled once at most
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Rewrite all rows of each partition along the Z-order curve of some columns.

        Rows with similar values in all of the columns are stored in the same files, so that data skipping excludes most
        files for a predicate on any of the columns. Each call rewrites all files of the chosen partitions. Rows beyond
        an eighth of the memory budget (`DELTAFAST_MEMORY_LIMIT`) are spilled once to a file in the folder for temporary
        files.

        Protocol: "Requirements for Writers" (`dataChange` is false).

        Args:
            columns: Names of columns with an ordered type, `a.b` for a field in a struct; no partition columns.
            partition_filters: Partitions to rewrite, as for `compact`.
            target_size: Bytes of a file; `delta.targetFileSize`, else 100 MiB, if None.
            max_concurrent_tasks: Accepted without effect: all cores work on one file at a time.
            max_spill_size: Accepted without effect: the memory budget applies.
            max_temp_directory_size: Accepted without effect: the rows of a partition are spilled once at most.
            min_commit_interval: Commit the finished partitions at this interval (seconds, or a timedelta) and continue
                with the others; one commit if None.
            writer_properties: Encoding of the new files.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `compact`; counts partitions.

        Returns:
            As `compact`.

        Raises:
            InvalidArgumentError: A column does not exist, has no ordered type or is a partition column; the table is
                clustered; or as `compact`.
            CommitFailedError: As `compact`.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed, or the disk is full.

        Examples:
            >>> table.optimize.z_order(["id", "city"])["numFilesAdded"]
            1
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        if not names:
            message = "z_order needs at least one column"
            raise InvalidArgumentError(message)
        options: OptimizeOptions = {
            "encoding": encoding(writer_properties, self.table.time_zone, target_size),
            "min_commit_interval_ms": _milliseconds(min_commit_interval),
            "commit_options": commit_options(commit_properties, post_commithook_properties),
            "z_order_by": names,
        }
        return self._run(options, partition_filters, progress)

    def _run(self, options: OptimizeOptions, partition_filters: Predicate | None, progress: Progress) -> dict[str, Any]:
        table = self.table
        rows = self._chosen(partition_filters, table.expression_context)
        with counted(progress, "groups of files"):
            done = _core.optimize(table.snapshot, options, rows)
        if done.version is not None:
            table.move(done.snapshot)
        return optimize_metrics(done.metrics)

    def _chosen(self, partition_filters: Predicate | None, context: ExpressionContext) -> NamedExpression | None:
        """Return the bound predicate of the chosen partitions; None for all."""
        if partition_filters is None or (isinstance(partition_filters, list) and not partition_filters):
            return None
        rows = bind_rows(partition_filters, self.table.schema().to_json(), context)
        shown = listed(partition_filters, context.dialect, context.zone) if isinstance(partition_filters, str) else None
        return rows if shown is None else {**rows, "sql": shown}


def _milliseconds(interval: int | timedelta | None) -> int | None:
    if isinstance(interval, timedelta):
        return interval // timedelta(milliseconds=1)
    return None if interval is None else interval * 1000


#: Names of the plans in `deltalake`, by layout.
_STRATEGIES = {"packed": "preserveLocality", "zOrder": "zOrder", "clustered": "clustering"}


def optimize_metrics(report: OptimizeMetrics) -> dict[str, Any]:
    added, removed = report["added"], report["removed"]
    ordered = report["layout"] == "packed"
    metrics: dict[str, Any] = {
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
        metrics["clusteringStats"] = report["clustering"]
    return metrics


def _sizes(files: FileSizeStatistics) -> str:
    avg = files["sum"] / files["count"] if files["count"] else 0.0
    sizes = {
        "avg": avg,
        "max": files["max"],
        "min": files["min"],
        "totalFiles": files["count"],
        "totalSize": files["sum"],
    }
    return json.dumps(sizes, separators=(",", ":"))
