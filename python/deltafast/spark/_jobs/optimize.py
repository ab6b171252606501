"""OPTIMIZE and REORG as Spark jobs.

The core plans which files are combined, as for the embedded command. Where files equal what a copy of their rows would
be, one job copies their row groups. Another one reads the other files, sends the rows of each new file to one task, and
writes them; a curve needs a job before, which takes a sample of its columns. Where the new files are too few for all
cores, several tasks write pieces of them, and one more job joins the row groups of the pieces. The core commits the
files that were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._ops.optimize import TableOptimizer, optimize_metrics
from deltafast._util.dialect import Dialect
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError, warn
from deltafast.spark._jobs.curve import OWN, PLACE, STEP, placed, ranked, word
from deltafast.spark._jobs.file_formats import file_format
from deltafast.spark._jobs.folders import Folders
from deltafast.spark._jobs.ranges import Ranges, bins_of
from deltafast.spark._jobs.row_groups import Source
from deltafast.spark._jobs.tasks import MOST_PARTS
from deltafast.spark._scan.physical_columns import field_of
from deltafast.spark._scan.row_positions import Rows
from deltafast.spark._session.session import Session, quiet

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

#: The mode of the expressions that sort rows, in any session.
_ANSI = {"spark.sql.ansi.enabled": "true"}

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
        context = self.table.expression_context._replace(dialect=Dialect.SPARK, zone=self._session.zone)
        rows = self._chosen(partition_filters, context)
        job = _core.OptimizeJob(self.table.snapshot, options, rows)
        requirements = job.requirements()
        copied = Rows(self._session, self._table, requirements["row_tracking_columns"])
        folders = Folders(copied, copied.columns, requirements)
        with self._session.set(_ANSI), folders:
            if requirements["bins"]:
                _Copy(copied, requirements, job).write(folders)
            done = job.run(folders.hand_over()[0])
        if done.version is not None:
            self.table.move(done.snapshot)
        # The order of a task's rows after a shuffle is not defined.
        return optimize_metrics(done.metrics) | {"preserveInsertionOrder": False, "preservedStableOrder": False}


class _Copy:
    """Rewrites the rows of all bins into new files.

    Tasks copy row groups where the core says so, and write rows otherwise; pieces of new files are then joined.
    """

    def __init__(self, rows: Rows, requirements: OptimizeRequirements, job: _core.OptimizeJob) -> None:
        self._rows, self._requirements, self._job = rows, requirements, job
        self._part = requirements["part"]
        #: The format that copies row groups.
        self._format = file_format(rows.session, "RowGroupFormat")

    def write(self, folders: Folders) -> None:
        """Write the new files."""
        bins = bins_of(self._requirements)
        is_packed = not self._requirements["columns"]
        copied = set(self._job.bins_to_copy()) if self._format and is_packed else set[int]()
        if copied and self._format:
            chosen = [bins[number] for number in sorted(copied)]
            sources = [(each.first, [Source(path) for path in each.files]) for each in chosen]
            folders.copy_row_groups(self._format, self._part, sources, [each.size for each in chosen])
        rest = [each for number, each in enumerate(bins) if number not in copied]
        if rest:
            cores = self._rows.session.spark.sparkContext.defaultParallelism if self._format else 1
            self._write_rows(folders, Ranges(rest, cores, is_packed=is_packed))

    def _write_rows(self, folders: Folders, ranges: Ranges) -> None:
        columns = self._requirements["columns"]
        if columns:
            frame = self._laid([word(self._rows.columns, path) for path in columns], ranges)
            order = [PLACE]
        else:
            numbers, keys = ranges.of_files()
            frame = self._rows.frame(self._listing(ranges, {self._part: numbers, _TASK: keys}), (self._part, _TASK))
            order = []
        # A task may have this many open files, so that its rows need not be sorted by their part: Spark sorts by the
        # position alone with a radix sort, by two columns with comparisons of rows.
        settings = {
            "spark.sql.maxConcurrentOutputFileWriters": str(MOST_PARTS),
            # A checksum of each row is to detect that an attempt of a task has other rows than the one before. The
            # rows of a version are always the same, and so are the tasks that they are sent to.
            "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
        }

        def spread(frame: Any) -> Any:
            """Send each row to its task, in order."""
            frame = frame.repartition(ranges.tasks, _TASK)
            return frame.sortWithinPartitions(*order) if order else frame

        def join(folder: str) -> None:
            sources = [(part, [Source(folder, task) for task in pieces]) for part, pieces in ranges.of_parts()]
            sizes = [each.size for each in ranges.bins for _ in range(each.parts)]
            folders.copy_row_groups(str(self._format), self._part, sources, sizes)

        with self._rows.session.set(settings):
            if ranges.are_pieces:
                folders.copy_pieces(frame, (_TASK, *order), spread, join)
            else:
                folders.copy(frame, self._part, (_TASK, *order), spread)

    def _listing(self, ranges: Ranges, constants: dict[str, list[int]]) -> Listing:
        """Return the files of the bins with constants, in the order of the bins' files."""
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        paths = [path for each in ranges.bins for path in each.files]
        listing = self._rows.listing(None, paths)
        place = compute.index_in(listing.files.column("path").combine_chunks(), pa.array(paths, pa.string()))
        files = listing.files
        for name, values in constants.items():
            files = files.append_column(name, pa.array(values, pa.int32()).take(place))
        return listing._replace(
            files=files, constants=[*listing.constants, *(field_of(name, "integer") for name in constants)]
        )

    def _laid(self, words: list[str], ranges: Ranges) -> Any:
        """Return each bin's rows in ranges along the curve."""
        from pyspark.sql import functions

        numbers = [number for number, each in enumerate(ranges.bins) for _ in each.files]
        frame = self._rows.frame(self._listing(ranges, {_BIN: numbers}), (_BIN,))
        known = self._rows.session.frame(self._known(frame, words, ranges))
        frame = frame.join(functions.broadcast(known), functions.col(_BIN) == functions.col(f"{OWN}bin_known"))
        bits = self._job.rank_bits(ranges.counts)
        frame = placed(frame, words, bits, is_hilbert=self._requirements["is_hilbert"])
        frame = ranked(frame, {STEP: (PLACE, f"{OWN}cuts")}, max(ranges.counts) - 1)
        part, task = f"{OWN}first + {STEP}", f"get({OWN}keys, {STEP})"
        return frame.withColumns({self._part: functions.expr(part), _TASK: functions.expr(task)})

    def _known(self, frame: Any, words: list[str], ranges: Ranges) -> pa.Table:
        """Return the bounds of ranks, the boundaries of ranges, and the ranges of each bin."""
        import pyarrow as pa

        sample = self._sample(frame, words)
        found: Any = RecordBatchReader(self._job.curve(sample, ranges.counts)).read_all()
        out: dict[str, Any] = {
            f"{OWN}bin_known": found.column("bin"),
            f"{OWN}first": pa.array(ranges.firsts, pa.int32()),
            f"{OWN}keys": pa.array(ranges.keys, pa.list_(pa.int32())),
        }
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
