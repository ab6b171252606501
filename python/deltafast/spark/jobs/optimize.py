"""OPTIMIZE and REORG as Spark jobs.

The core plans which files are combined, as for the embedded command. One job reads all of them, sends the rows of each
new file to one task, and writes them; a curve needs another job before, which takes a sample of its columns. The core
commits the files that were written.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._ops.optimize import TableOptimizer, optimize_metrics
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError, warn
from deltafast.spark._scan.physical_columns import field_of
from deltafast.spark._scan.row_positions import Rows
from deltafast.spark._session.session import ANSI, Session, quiet
from deltafast.spark.jobs.curve import OWN, PLACE, STEP, placed, ranked, word
from deltafast.spark.jobs.folders import Folders
from deltafast.spark.jobs.tasks import MOST_PARTS, keys_of, shared

if TYPE_CHECKING:
    import pyarrow as pa

    from deltafast._core_types import OptimizeOptions, OptimizeRequirements
    from deltafast._util.filters import Predicate
    from deltafast.progress import Progress
    from deltafast.spark._scan.snapshot import Listing
    from deltafast.table import DeltaTable

__all__ = ["IN_DRIVER", "JobOptimizer", "optimize"]

#: The begin of the warning about a table that jobs refuse, where the session does not ask for jobs.
IN_DRIVER = "the command runs in the driver's process, not as Spark jobs"

#: Columns in addition to the table's: the number of a file's bin, and the key that sends a row to its task.
_BIN, _TASK = "__deltafast_bin", "__deltafast_task"

#: Sample size: rows of all bins together, and minimum for each bin.
_SAMPLE, _SAMPLE_OF_BIN = 200_000, 2_000


def optimize(spark: Any, table: DeltaTable) -> JobOptimizer:
    """Rewrite the files of a table.

    Args:
        spark: The session, classic or Connect.
        table: A handle, which is updated to the new version.

    Returns:
        An object with the methods of `DeltaTable.optimize`: `compact`, `z_order`, `cluster`, `purge`. There is one
        commit, and Spark encodes the files, so `min_commit_interval` and `writer_properties` are not accepted.
    """
    return JobOptimizer(Session(spark), table)


class JobOptimizer(TableOptimizer):
    """Rewrites the files of a table by Spark jobs without changing rows.

    Args:
        session: The session.
        table: A handle, which is updated to the new version.
        in_driver: Rewrites the files of a table that jobs refuse; if None, an error says that they do.
    """

    def __init__(self, session: Session, table: DeltaTable, in_driver: TableOptimizer | None = None) -> None:
        super().__init__(handle_of(table))
        self._session, self._table, self._in_driver = session, table, in_driver

    def _run(self, options: OptimizeOptions, partition_filters: Predicate | None, progress: Progress) -> dict[str, Any]:
        try:
            return self._run_jobs(options, partition_filters)  # Spark shows the progress of its jobs.
        except DeltaProtocolError as error:
            if self._in_driver is None:
                raise
            warn(f"{IN_DRIVER}: {error}")
            return self._in_driver._run(options, partition_filters, progress)

    def _run_jobs(self, options: OptimizeOptions, partition_filters: Predicate | None) -> dict[str, Any]:
        for name, given in (
            ("min_commit_interval", options.get("min_commit_interval_ms")),
            ("writer_properties", options.get("encoding", {}).get("writer_properties")),
        ):
            if given:
                message = f"{name} is of the core: leave it out, or set spark.deltafast.engine to driver"
                raise InvalidArgumentError(message)
        rows = self._chosen(partition_filters, self._session.zone)
        job = _core.OptimizeJob(self.table.snapshot, options, rows)
        requirements = job.requirements()
        copied = Rows(self._session, self._table, requirements["row_tracking_columns"])
        folders = Folders(copied, copied.columns, requirements)
        with self._session.set(ANSI), folders:
            if requirements["bins"]:
                _Copy(copied, requirements, job).write(folders)
            done = job.run(folders.hand_over()[0])
        if done.version is not None:
            self.table.move(done.snapshot)
        # The order of a task's rows after a shuffle is not defined.
        return optimize_metrics(done.metrics) | {"preserveInsertionOrder": False, "preservedStableOrder": False}


class _Copy:
    """Rewrites the rows of all bins into new files, which are parts of bins."""

    def __init__(self, rows: Rows, requirements: OptimizeRequirements, job: _core.OptimizeJob) -> None:
        self._rows, self._requirements, self._job = rows, requirements, job
        self._part = requirements["part"]
        parts = requirements["parts"]
        #: The number of each bin's first part.
        self._first = [0, *accumulate(parts)][:-1]
        sizes = [size // count for size, count in zip(requirements["bytes"], parts, strict=True) for _ in range(count)]
        tasks = shared(sizes)
        self._tasks = tasks[-1] + 1
        keys = keys_of(self._tasks)
        #: For each part the key that sends its rows to its task.
        self._keys = [keys[task] for task in tasks]

    def write(self, folders: Folders) -> None:
        """Write the new files."""
        columns = self._requirements["columns"]
        if columns:
            frame = self._laid([word(self._rows.columns, path) for path in columns])
            order, settings = [self._part, PLACE], {}
        else:
            constants = {self._part: self._first, _TASK: self._keys}
            frame = self._rows.frame(self._listing(constants), tuple(constants))
            # A task may have this many open files, so that its rows need not be sorted.
            order, settings = [], {"spark.sql.maxConcurrentOutputFileWriters": str(MOST_PARTS)}
        with self._rows.session.set(settings):
            folders.copy(frame, self._part, (_TASK, *order[1:]), lambda frame: self._spread(frame, order))

    def _listing(self, constants: dict[str, list[int]]) -> Listing:
        """Return the files of the bins, each with these constants of its bin."""
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        bins = self._requirements["bins"]
        paths = [path for files in bins for path in files]
        listing = self._rows.listing(None, paths)
        place = compute.index_in(listing.files.column("path").combine_chunks(), pa.array(paths, pa.string()))
        number = pa.array([number for number, files in enumerate(bins) for _ in files], pa.int32()).take(place)
        files = listing.files
        for name, values in constants.items():
            files = files.append_column(name, pa.array(values, pa.int32()).take(number))
        return listing._replace(
            files=files, constants=[*listing.constants, *(field_of(name, "integer") for name in constants)]
        )

    def _laid(self, words: list[str]) -> Any:
        """Return each bin's rows in parts along the curve."""
        from pyspark.sql import functions

        parts = self._requirements["parts"]
        frame = self._rows.frame(self._listing({_BIN: list(range(len(parts)))}), (_BIN,))
        known = self._rows.session.frame(self._known(frame, words, parts))
        frame = frame.join(functions.broadcast(known), functions.col(_BIN) == functions.col(f"{OWN}bin_known"))
        frame = placed(frame, words, self._requirements["bits"], is_hilbert=self._requirements["is_hilbert"])
        frame = ranked(frame, {STEP: (PLACE, f"{OWN}cuts")}, max(parts) - 1)
        part, task = f"{OWN}first + {STEP}", f"get({OWN}keys, {STEP})"
        return frame.withColumns({self._part: functions.expr(part), _TASK: functions.expr(task)})

    def _known(self, frame: Any, words: list[str], parts: list[int]) -> pa.Table:
        """Return the bounds of ranks, the boundaries of parts, and the parts of each bin."""
        import pyarrow as pa

        found: Any = RecordBatchReader(self._job.curve(self._sample(frame, words))).read_all()
        keys = [self._keys[first : first + count] for first, count in zip(self._first, parts, strict=True)]
        out: dict[str, Any] = {f"{OWN}bin_known": found.column("bin")}
        out |= {f"{OWN}first": pa.array(self._first, pa.int32()), f"{OWN}keys": pa.array(keys, pa.list_(pa.int32()))}
        for name in found.column_names[1:]:
            column = found.column(name)
            if pa.types.is_list(column.type) and pa.types.is_large_binary(column.type.value_type):
                column = column.cast(pa.list_(pa.binary()))
            out[OWN + name] = column
        return pa.table(out)

    def _sample(self, frame: Any, words: list[str]) -> pa.Table:
        """Return a sample of the curve's columns."""
        wanted = max(_SAMPLE, _SAMPLE_OF_BIN * len(self._requirements["bins"]))
        share = wanted / max(self._requirements["rows"], 1)
        frame = frame.selectExpr(f"{_BIN} as bin", *(f"{word} as c{n}" for n, word in enumerate(words)))
        if share < 1:
            frame = frame.sample(share, 0)
        with quiet():
            return frame.toArrow()

    def _spread(self, frame: Any, order: list[str]) -> Any:
        """Send each row to its task, in order."""
        frame = frame.repartition(self._tasks, _TASK)
        if order:
            frame = frame.sortWithinPartitions(*order)
        return frame.drop(_TASK, PLACE)
