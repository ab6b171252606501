"""What is measured: each row of the published table, who takes part, what must be reached.

A scenario names a generated table, a piece of work (`measure.py`) and its
contenders. Goals compare one phase of the scenario's subject with another contender or
with a fixed figure; `aim` goals are wishes, the others are promises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import returns

if TYPE_CHECKING:
    from tables import Table

SUBJECT = "deltafast"
BASELINE = "deltalake"
SPARK = "delta-spark"
DAYS = 365
IDS_PER_FILE = 1000
#: Of the table of data.
ROWS = 20_000_000


@dataclass(frozen=True)
class Contender:
    """Who takes part in a scenario, and how.

    Attributes:
        name: The name in the report.
        peer: The implementation, as `measure.py` knows it; `floor` for the binary.
        options: Added to the job.
        table: Another table than the scenario's.
        samples: At most so many samples, for those who take very long.
    """

    name: str
    peer: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    table: str | None = None
    samples: int | None = None

    @property
    def environment(self) -> str:
        """The environment that it runs in: main, duckdb or floor."""
        return self.peer if self.peer in {"duckdb", "floor"} else "main"


@dataclass(frozen=True)
class Goal:
    """One figure to reach.

    Attributes:
        text: As the report says it.
        measure: wall, peak_mb, or a fact's name.
        limit: The most that is allowed: a factor of the other contender's, or a plain figure.
        phase: The phase; the scenario's first if None.
        of: The other contender, if it is a factor.
        aim: A wish, not a promise.
        added: The limit is the most that is added to the other contender's figure, not a factor of it.
    """

    text: str
    measure: str
    limit: float
    phase: str | None = None
    of: str | None = None
    aim: bool = False
    added: bool = False


@dataclass(frozen=True)
class Scenario:
    """One row of the table.

    Attributes:
        name: For the command line and the results.
        title: For the report.
        table: The generated table.
        work: The kind of work.
        contenders: Who takes part; the subject first.
        phases: The names of what is timed, with the report's words for each.
        goals: What must be reached.
        options: Added to every job.
        samples: At most so many samples.
        note: A remark for the report.
    """

    name: str
    title: str
    table: str
    work: str
    contenders: tuple[Contender, ...]
    phases: dict[str, str]
    goals: tuple[Goal, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    samples: int | None = None
    note: str = ""


def faster(times: float, *, of: str = BASELINE, phase: str | None = None, aim: bool = False) -> Goal:
    """Ask for so many times less wall time than another."""
    words = "faster" if times == 1 else f"{times:g}x faster"
    return Goal(f"{words} than {of}", "wall", 1 / times, phase, of, aim)


def within(factor: float, of: str, *, aim: bool = False) -> Goal:
    """Ask for at most so many times another's wall time."""
    return Goal(f"within {factor:g}x of {of}", "wall", factor, None, of, aim)


def lighter(share: float, words: str, *, aim: bool = False) -> Goal:
    """Ask for at most a share of the baseline's peak memory."""
    return Goal(f"{words} of {BASELINE}'s peak memory", "peak_mb", share, None, BASELINE, aim)


def _both() -> tuple[Contender, ...]:
    return (Contender(SUBJECT, SUBJECT), Contender(BASELINE, BASELINE))


def _listing(name: str, title: str, table: str, *more: Contender, goals: tuple[Goal, ...] = ()) -> Scenario:
    stream = Contender("deltafast, streamed", SUBJECT, {"form": "stream"})
    return Scenario(
        name,
        title,
        table,
        "files",
        (*_both(), stream, *more),
        {"files": ""},
        goals,
        samples=3,
    )


_PARQUET = "Polars scan_parquet"
_TYPED_PARSE = "floor: typed parse"


def _scan(
    name: str,
    title: str,
    table: str,
    *,
    form: str = "held",
    **options: Any,
) -> Scenario:
    job = {"form": form, **options}
    deleted = table != "data"
    contenders = [
        *_both(),
        Contender(f"{_PARQUET}, no deletions" if deleted else _PARQUET, "polars scan_parquet", table="data"),
        Contender("Polars scan_delta", "polars scan_delta"),
        Contender("DuckDB", "duckdb"),
    ]
    if not deleted:
        contenders.append(Contender("pyarrow", "pyarrow"))
        if "predicate" not in options and form == "held":
            columns = ["--columns", ",".join(options["columns"])] if "columns" in options else []
            contenders.append(Contender("floor: arrow-rs decode", "floor", {"arguments": ["scan", *columns]}))
    if form == "held":
        contenders += [
            Contender("deltafast, scan_polars", "deltafast scan_polars"),
            Contender("deltafast, to_duckdb", "deltafast to_duckdb"),
        ]
    goals = [faster(1), faster(1, of="DuckDB")]
    if deleted:
        goals.append(faster(1, of="Polars scan_delta", aim=True))
    else:
        goals += [within(1.1, _PARQUET), within(1.05, _PARQUET, aim=True)]
    return Scenario(name, title, table, "scan", tuple(contenders), {"scan": ""}, tuple(goals), job)


def predicates(table: Table) -> list[str]:
    """Make two predicates over the log's partition and statistics.

    Each names a day and a range: of identifiers, which rise with the files, so that
    about a hundred files of the day are left; of amounts, which are scattered, so that
    about one in a hundred is left.

    Args:
        table: A generated log.

    Returns:
        The predicates, as SQL.
    """
    files = table.facts["files"]
    # The middle of 14 June 2024, the 166th of the 365 days that the files are dealt to.
    low = int(165.5 / DAYS * files) * IDS_PER_FILE
    return [
        f"date = '2024-06-14' AND id BETWEEN {low} AND {low + 100 * IDS_PER_FILE}",
        "date = '2024-09-01' AND amount < 1.0",
    ]


def options_for(scenario: Scenario, table: Table) -> dict[str, Any]:
    """Complete a scenario's options with what depends on the table.

    Args:
        scenario: The scenario.
        table: Its table.

    Returns:
        What is added to every job.
    """
    options = dict(scenario.options)
    # With a smaller table go fewer commits, by fewer writers, in a shorter time.
    for name, least in (("seconds", 1.0), ("count", 20), ("writers", 4)):
        if name in options:
            options[name] = max(min(least, options[name]), type(least)(options[name] * table.facts["rows"] / ROWS))
    if scenario.work == "plan":
        options["predicates"] = predicates(table)
    if options.get("predicate") == "point":
        options["predicate"] = f"id = {math.floor(table.facts['rows'] * 0.6173)}"
    return options


def _append(name: str, title: str, **options: Any) -> Scenario:
    goals = (faster(1.5), faster(1.7, aim=True))
    return Scenario(name, title, "data", "append", _both(), {"append": ""}, goals, options, samples=3)


def _appends(writers: int, times: float, *more: Goal) -> Scenario:
    goals = (faster(times), *more, Goal("no failed append", "failed", 0), faster(4, aim=True))
    title = f"Append 100 rows per commit, {writers} writer{'s' if writers > 1 else ''} on one table, time per commit"
    job = {"writers": writers, "seconds": 8}
    return Scenario(f"appends-{writers}", title, "data", "appends", _both(), {"commit": ""}, goals, job, samples=3)


def _counter(writers: int) -> Scenario:
    goals = (Goal("no failed UPDATE", "failed", 0), Goal("no lost UPDATE", "lost", 0), faster(1))
    note = (
        "After a conflict, a writer retries on the newest version, at most 30 times: automatically "
        "(`max_conflict_retries`) or, if the library has no such option, in a loop with pauses."
    )
    job = {"writers": writers, "seconds": 8}
    title = f"Contended counter: UPDATE of one row, {writers} writers, time per successful UPDATE"
    return Scenario("counter", title, "data", "counter", _both(), {"commit": ""}, goals, job, samples=3, note=note)


def _change(name: str, title: str, goals: tuple[Goal, ...], *, vectors: bool = False) -> Scenario:
    work = name.partition("-")[0]
    options: dict[str, Any] = {"where": "id % 100 = 7", "updates": {"quantity": "quantity + 1"}}
    note = "`deltalake` writes no deletion vectors; it uses copy-on-write in both cases." if vectors else ""
    contenders = (Contender(SUBJECT, SUBJECT, {"vectors": vectors}), Contender(BASELINE, BASELINE))
    return Scenario(name, title, "data", work, contenders, {"change": ""}, goals, options, samples=3, note=note)


def _merge(share: str, every: int, *, vectors: bool, near: bool = False) -> Scenario:
    """Keys of every file, one in `every`; or with `near`, all keys of a range within one file."""
    name = f"merge-{share.replace('.', '-')}" + ("-near" if near else "") + ("-vectors" if vectors else "")
    how = "deletion vectors" if vectors else "copy-on-write"
    title = f"MERGE (upsert) of {share} % of 20 M rows in {'one' if near else 'every'} file, with {how}"
    goals = (faster(4), faster(8, aim=True)) if vectors else (faster(1.3), faster(2, aim=True))
    goals = (*goals, Goal("half of deltalake's peak memory", "peak_mb", 0.5, of=BASELINE))
    note = "`deltalake` writes no deletion vectors; it uses copy-on-write in both cases." if vectors else ""
    first = ROWS // 4
    where = f"id >= {first} and id < {first + ROWS // every}" if near else f"id % {every} = 3"
    options = {"every": 1 if near else every, "rows": ROWS, "where": where}
    contenders = (Contender(SUBJECT, SUBJECT, {"vectors": vectors}), Contender(BASELINE, BASELINE))
    return Scenario(name, title, "data", "merge", contenders, {"change": ""}, goals, options, samples=3, note=note)


def _compact(
    name: str, title: str, goals: tuple[Goal, ...], table: str, column: str, target_mb: int, **more: Any
) -> Scenario:
    options = {"column": column, "target_mb": target_mb, **more}
    return Scenario(name, title, table, "compact", _both(), {"compact": ""}, goals, options, samples=3)


def _returns() -> Scenario:
    """The cases of Delta's merge benchmark, against delta-spark."""
    contenders = (Contender(SUBJECT, SUBJECT), Contender(SPARK, SPARK, samples=1))
    goals = tuple(faster(1, of=SPARK, phase=case.name) for case in returns.CASES)
    note = (
        "The cases of Delta's own merge benchmark, on 3 M generated rows of TPC-DS `web_returns` (24 columns, 20 "
        "files, scattered keys). Both sides run the same statement with copy-on-write, and all rows of the results "
        "are compared. delta-spark 4.4.0 has the same cores, 4 GB and 8 shuffle partitions, and has run all "
        "statements once to warm up. Fractions: files from which the source is drawn, matched rows of these files, "
        "and new rows as a share of these files' rows."
    )
    phases = {case.name: case.title for case in returns.CASES}
    title = "MERGE: cases of Delta's merge benchmark"
    return Scenario("returns", title, "returns", "returns", contenders, phases, goals, samples=3, note=note)


PARQUET = "Spark's own Parquet"
_SPARK_NOTE = (
    "Each sample is a Spark 4.2 application with delta-spark 4.4.0's jar, both cores and 4 GB, the same for all "
    "contenders; CPU time and memory are the sums of Java and Python."
)
PLAIN = "Spark without Delta"
_START_NOTE = (
    "Each sample imports PySpark, starts a Spark 4.2 application with both cores and 4 GB, enables deltafast, or has "
    "delta-spark 4.4.0's jar and settings, and ends with the answer of `SELECT 1`; CPU time and memory are the sums of "
    "Java and Python."
)
_CLUSTER_NOTE = (
    "Each sample is a Spark 4.2 application with delta-spark 4.4.0's jar on a standalone cluster on this machine: two "
    "workers of one core, each with an executor of 3 GiB; CPU time and memory are the sums of all processes."
)
_SPARK_PEERS = (Contender(SUBJECT, SUBJECT), Contender(SPARK, SPARK))
_QUERIES = {
    "whole": "all columns",
    "two": "two columns",
    "filter": "a selective filter",
    "aggregate": "an aggregate",
    "count": "count(*)",
}


def _spark_read(name: str, title: str, table: str, *, times: float, vectors: bool) -> Scenario:
    """Queries of Spark, against delta-spark and, where no row is deleted, files without a log."""
    peers = _SPARK_PEERS if vectors else (*_SPARK_PEERS, Contender(PARQUET, PARQUET))
    goals = tuple(faster(times, of=SPARK, phase=phase) for phase in _QUERIES if phase != "count")
    if not vectors:
        for phase in ("whole", "two", "filter", "aggregate"):
            goals += (Goal(f"within 1.1x of {PARQUET}", "wall", 1.1, phase, PARQUET),)
        goals += (Goal("below 0.3 s", "wall", 0.3, "count"),)
    job = {"where": "id between 5000000 and 5000100", "vectors": vectors}
    return Scenario(name, title, table, "spark-read", peers, _QUERIES, goals, job, samples=3, note=_SPARK_NOTE)


def _spark_append(name: str, title: str, by: list[str]) -> Scenario:
    peers = (*_SPARK_PEERS, Contender(PARQUET, PARQUET))
    goals = (within(1.15, PARQUET), faster(1, of=SPARK))
    return Scenario(
        name, title, "data", "spark-append", peers, {"write": ""}, goals, {"by": by}, samples=1, note=_SPARK_NOTE
    )


_SPARK_CHANGES = {
    f"{work}{way}": f"{work.upper()} with {'deletion vectors' if way else 'copy-on-write'}"
    for work in ("delete", "update", "merge")
    for way in ("-vectors", "")
}

_PLAN_PHASES = {"cold": "open and plan", "again": "plan with another predicate"}

SCENARIOS = (
    Scenario(
        "open",
        "Open a table (version, schema) with 1 M files in a checkpoint",
        "log-checkpoint",
        "open",
        (
            *_both(),
            Contender("deltalake, without_files", BASELINE, {"options": {"without_files": True}}),
            Contender("Polars scan_delta", "polars scan_delta"),
            Contender("DuckDB", "duckdb"),
        ),
        {"open": ""},
        (
            faster(50),
            Goal("peak memory below 120 MB", "peak_mb", 120),
            faster(200, aim=True),
        ),
    ),
    Scenario(
        "open-crc",
        "Open the same table with a version checksum file",
        "log-checkpoint-crc",
        "open",
        _both(),
        {"open": ""},
    ),
    _listing(
        "files-checkpoint",
        "List all files with all statistics, from a checkpoint of 1 M files",
        "log-checkpoint",
        Contender(_TYPED_PARSE, "floor", {"arguments": ["checkpoint"]}),
        Contender("pyarrow, statistics as text", "pyarrow"),
        Contender("DuckDB delta_list_files, no statistics", "duckdb", samples=1),
        goals=(
            faster(5),
            lighter(0.5, "half"),
            within(1.3, _TYPED_PARSE),
            faster(8, aim=True),
            lighter(1 / 3, "a third", aim=True),
        ),
    ),
    _listing(
        "files-parsed",
        "List all files with all statistics, from a checkpoint that also has typed statistics",
        "log-checkpoint-parsed",
    ),
    _listing("files-v2", "List all files with all statistics, from a V2 checkpoint with ten sidecars", "log-v2"),
    _listing(
        "files-json",
        "List all files with all statistics, from ten JSON commits of 100,000",
        "log-json",
        Contender(_TYPED_PARSE, "floor", {"arguments": ["json"]}),
        goals=(
            faster(5),
            within(1.2, _TYPED_PARSE),
            faster(10, aim=True),
            within(1, _TYPED_PARSE, aim=True),
        ),
    ),
    _listing(
        "files-commits",
        "List all files with all statistics, from 10,000 small commits",
        "log-commits",
        goals=(faster(5), faster(10, aim=True)),
    ),
    Scenario(
        "plan",
        "Plan with a partition and a range predicate, 1 M files in a checkpoint",
        "log-checkpoint",
        "plan",
        (*_both(), Contender("DuckDB, EXPLAIN", "duckdb")),
        _PLAN_PHASES,
        (
            faster(5, phase="cold"),
            Goal("second plan below 20 ms", "wall", 0.02, "again"),
            faster(10, phase="cold", aim=True),
        ),
    ),
    Scenario(
        "refresh",
        "Refresh after one new commit, 1 M files in a checkpoint",
        "log-checkpoint",
        "refresh",
        (
            Contender(SUBJECT, SUBJECT, {"count": 1000}),
            Contender(BASELINE, BASELINE, {"count": 5}, samples=1),
        ),
        {"refresh": "refresh only", "plan": "refresh and plan one day"},
        (
            Goal("below 10 ms", "wall", 0.01),
            Goal("memory grows by less than 10 MB over 1,000 refreshes", "growth_mb", 10),
        ),
        samples=3,
        note="Median of the refreshes in one process: 1,000 with deltafast, 5 with deltalake.",
    ),
    Scenario(
        "plan-10m",
        "Plan with a partition and a range predicate, 10 M files in a checkpoint of 16 parts",
        "log-10m",
        "plan",
        (Contender(SUBJECT, SUBJECT),),
        _PLAN_PHASES,
        (
            Goal("peak memory below 1 GB", "peak_mb", 1000, "cold"),
            Goal("peak memory below 500 MB", "peak_mb", 500, "cold", aim=True),
        ),
        samples=3,
    ),
    Scenario(
        "checkpoint",
        "Checkpoint of 1 M files, from ten JSON commits of 100,000",
        "log-json",
        "checkpoint",
        _both(),
        {"checkpoint": ""},
        (
            faster(3),
            lighter(0.5, "half"),
            faster(5, aim=True),
            lighter(0.25, "a quarter", aim=True),
        ),
        samples=3,
        note="deltafast writes JSON and typed statistics, as delta-spark does; `deltalake` writes JSON statistics.",
    ),
    Scenario(
        "checkpoint-again",
        "Checkpoint of 1 M files, from a checkpoint and a commit",
        "log-checkpoint",
        "checkpoint",
        _both(),
        {"checkpoint": ""},
        (
            faster(3),
            lighter(0.5, "half"),
            faster(5, aim=True),
            lighter(0.25, "a quarter", aim=True),
        ),
        {"new_commit": True},
        samples=3,
    ),
    Scenario(
        "checkpoint-10m",
        "Checkpoint of 10 M files, from a checkpoint of 16 parts and a commit",
        "log-10m",
        "checkpoint",
        (Contender(SUBJECT, SUBJECT),),
        {"checkpoint": ""},
        (Goal("peak memory below 1.5 GB", "peak_mb", 1500),),
        {"new_commit": True},
        samples=1,
    ),
    _scan("scan-all", "Scan of 20 M rows x 8 columns: all columns, in memory", "data"),
    _scan("scan-stream", "Scan of 20 M rows x 8 columns: all columns, streamed", "data", form="stream"),
    _scan("scan-two", "Scan of two columns", "data", columns=["id", "price"]),
    _scan("scan-point", "Scan with a point filter", "data", predicate="point"),
    _scan("scan-dv1", "Scan of all columns, 1 % of the rows deleted by deletion vectors", "data-dv1"),
    _scan("scan-dv10", "Scan of all columns, 10 % of the rows deleted by deletion vectors", "data-dv10"),
    Scenario(
        "vectors",
        "Decode 1,000 deletion vectors of 100,000 rows, in four tables",
        "vectors-quarters",
        "vectors",
        _both(),
        {"vectors": ""},
        (faster(5),),
        note="The vectors are in four tables, because `deltalake` 1.6.6 hangs on a table with more than about 500.",
    ),
    Scenario(
        "vectors-one",
        "Decode 1,000 deletion vectors of 100,000 rows, in one table",
        "vectors",
        "vectors",
        (Contender(SUBJECT, SUBJECT),),
        {"vectors": ""},
    ),
    Scenario(
        "feed",
        "Change data feed of 100 versions, 5 M changes x 8 columns, streamed",
        "feed",
        "feed",
        (Contender(SUBJECT, SUBJECT, {"options": {"string_view": True}}), Contender(BASELINE, BASELINE)),
        {"feed": ""},
        (faster(3), Goal("peak memory below 400 MB", "peak_mb", 400)),
        note="Strings are returned as views, as `deltalake` always does.",
    ),
    _append("append", "Append 20 M rows x 8 columns to a new table"),
    _append("append-parts", "Append the same rows to a new table with 100 partitions", partitions=100),
    _appends(1, 2),
    _appends(4, 2),
    _appends(16, 3, Goal("a third of deltalake's p99", "p99_ms", 1 / 3, None, BASELINE)),
    Scenario(
        "appends-10000",
        "Append 100 rows per commit, 10,000 commits of one process, time per commit",
        "data",
        "many",
        _both(),
        {"commit": ""},
        (faster(2), Goal("memory grows by less than 10 MB from the 1,000th commit on", "growth_mb", 10)),
        {"count": 10_000},
        samples=1,
    ),
    _counter(16),
    Scenario(
        "convert",
        "Convert 10,000 Parquet files, 8 columns with statistics",
        "parquet",
        "convert",
        _both(),
        {"convert": ""},
        (faster(2), faster(5, aim=True)),
        samples=3,
    ),
    Scenario(
        "vacuum",
        "Plan a full vacuum of 1 M files (dry run), 1 % of them unreferenced",
        "log-vacuum",
        "vacuum",
        _both(),
        {"plan": ""},
        (faster(2), faster(5, aim=True)),
        samples=3,
    ),
    _change(
        "delete", "DELETE of 1 % of 20 M rows in every file, with copy-on-write", (faster(1.5), faster(2.5, aim=True))
    ),
    _change(
        "delete-vectors", "The same DELETE, with deletion vectors", (faster(5), faster(15, aim=True)), vectors=True
    ),
    _change("update", "UPDATE of one column in 1 % of 20 M rows, with copy-on-write", (faster(2), faster(4, aim=True))),
    _change(
        "update-vectors", "The same UPDATE, with deletion vectors", (faster(5), faster(10, aim=True)), vectors=True
    ),
    *(_merge(share, n, vectors=v) for share, n in (("0.01", 10_000), ("1", 100), ("20", 5)) for v in (True, False)),
    *(_merge("1", 100, vectors=v, near=True) for v in (True, False)),
    _returns(),
    _compact("compact", "OPTIMIZE 50 files of 15 MB into 2", (faster(5), faster(9, aim=True)), "data", "id", 420),
    _compact(
        "z-order",
        "Z-order 20 M rows by two columns",
        (faster(2), Goal("half the peak memory", "peak_mb", 0.5, None, BASELINE), faster(4, aim=True)),
        "data",
        "id",
        100,
        z_order_by=["price", "event_time"],
    ),
    Scenario(
        "cluster",
        "Cluster 20 M unclustered rows by two columns",
        "data",
        "cluster",
        (Contender(SUBJECT, SUBJECT), Contender(SPARK, SPARK, samples=1)),
        {"cluster": ""},
        (faster(2, of=SPARK), Goal("half of delta-spark's peak memory", "peak_mb", 0.5, of=SPARK)),
        {"by": ["price", "event_time"], "column": "id", "target_mb": 100},
        samples=3,
        note="`OPTIMIZE` of a table with liquid clustering. delta-spark 4.4.0 has the same cores and 4 GB, and has run "
        "it once to warm up.",
    ),
    _compact("compact-small", "OPTIMIZE 10,000 small files into 1", (faster(2),), "parquet", "id", 420),
    _spark_read("spark-read", "Spark: queries of 20 M rows, 50 files", "data", times=1, vectors=False),
    _spark_read("spark-small", "Spark: queries of 20 M rows, 10,000 files", "data-small", times=1, vectors=False),
    _spark_read(
        "spark-vectors-1", "Spark: queries of 20 M rows, 1 % of them deleted", "data-dv1", times=2, vectors=True
    ),
    _spark_read(
        "spark-vectors-10", "Spark: queries of 20 M rows, 10 % of them deleted", "data-dv10", times=2, vectors=True
    ),
    _spark_append("spark-append", "Spark: write 20 M rows", []),
    _spark_append("spark-append-parts", "Spark: write 20 M rows, partitioned", ["status"]),
    Scenario(
        "spark-change",
        "Spark: change 1 % of 20 M rows in every file",
        "data",
        "spark-change",
        _SPARK_PEERS,
        _SPARK_CHANGES,
        tuple(faster(2, of=SPARK, phase=phase) for phase in _SPARK_CHANGES),
        samples=1,
        note=_SPARK_NOTE,
    ),
    Scenario(
        "spark-cluster",
        "Spark with two workers: change 1 % of 20 M rows in every file, and OPTIMIZE, as Spark jobs",
        "data",
        "spark-change",
        _SPARK_PEERS,
        {**_SPARK_CHANGES, "optimize": "OPTIMIZE", "z_order": "OPTIMIZE ZORDER BY two columns"},
        tuple(faster(1.5, of=SPARK, phase=phase) for phase in (*_SPARK_CHANGES, "optimize", "z_order")),
        {"workers": 2, "optimizes": True},
        samples=1,
        note=_CLUSTER_NOTE,
    ),
    Scenario(
        "spark-feed",
        "Spark: change data feed of 100 versions, 5 M changes",
        "feed",
        "spark-feed",
        _SPARK_PEERS,
        {"feed": ""},
        (faster(2, of=SPARK),),
        samples=3,
        note=_SPARK_NOTE,
    ),
    Scenario(
        "spark-stream",
        "Spark: stream of 20 M rows, as much as there is",
        "data",
        "spark-stream",
        _SPARK_PEERS,
        {"noop": "to nothing", "table": "to a table"},
        (faster(2, of=SPARK, phase="noop"), faster(1.5, of=SPARK, phase="table")),
        samples=3,
        note=_SPARK_NOTE,
    ),
    Scenario(
        "spark-batches",
        "Spark: batches of a stream, a small file each, time of a batch",
        "feed",
        "spark-batches",
        _SPARK_PEERS,
        {"versions": "1,000 versions after the first", "initial": "a table of 50 files that exists before"},
        (faster(2, of=SPARK, phase="versions"), faster(2, of=SPARK, phase="initial")),
        {"batches": 1000, "files": 50},
        samples=1,
        note=_SPARK_NOTE,
    ),
    Scenario(
        "spark-start",
        "Spark: start of a session",
        "feed",
        "spark-start",
        (*_SPARK_PEERS, Contender(PLAIN, PLAIN)),
        {"start": ""},
        (
            Goal(f"at most 1 CPU s more than {PLAIN}", "cpu", 1, of=PLAIN, added=True),
            Goal(f"at most 0.3 CPU s more than {PLAIN}", "cpu", 0.3, of=PLAIN, aim=True, added=True),
        ),
        samples=3,
        note=_START_NOTE,
    ),
    Scenario(
        "spark-plan",
        "Spark: plan a point query on a table with 1 M files",
        "log-checkpoint",
        "spark-plan",
        _SPARK_PEERS,
        {"first": "first query", "again": "second query"},
        (faster(5, of=SPARK),),
        {"where": f"id = {IDS_PER_FILE * 500_000 + 7}"},
        samples=1,
        note=_SPARK_NOTE,
    ),
)
