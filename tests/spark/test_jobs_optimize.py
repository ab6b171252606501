"""OPTIMIZE does the same as Spark jobs, embedded, and in delta-spark."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import pathlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import CommitFailedError, CorruptDataError, InvalidArgumentError
from deltafast.spark import _jobs as jobs
from deltafast.spark._jobs.file_formats import file_format
from deltafast.spark._jobs.ranges import Bin, Ranges
from deltafast.spark._jobs.row_groups import Source, copy_row_groups
from deltafast.spark._jobs.tasks import keys_of, shared
from deltafast.spark._scan.row_positions import Rows
from deltafast.spark._session.session import Session

from .helpers import rows
from .test_jobs import COMPARED, LAYOUTS, content, leftovers, make, same_ids, table_of, twin

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def said(folder: str) -> dict[str, Any]:
    """What the newest commit says but for sizes, names and times."""
    version = DeltaTable(folder).version()
    lines = (pathlib.Path(folder) / f"_delta_log/{version:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    adds = [action["add"] for action in actions if "add" in action]
    removes = [action["remove"] for action in actions if "remove" in action]
    metrics = {key: value for key, value in info["operationMetrics"].items() if not key.endswith("FileSize")}
    del metrics["numAddedBytes"]
    return {
        "operation": info["operation"],
        "parameters": info["operationParameters"],
        "isolation": info["isolationLevel"],
        "metrics": metrics,
        "names": sorted(info["operationMetrics"]),
        "tags": {json.dumps(add.get("tags", {}) | {"ZCUBE_ID": bool(add.get("tags"))}, sort_keys=True) for add in adds},
        "cubes": len({add.get("tags", {}).get("ZCUBE_ID") for add in adds}),
        "providers": {add.get("clusteringProvider") for add in adds},
        "data_change": {action["dataChange"] for action in adds + removes},
        "partitions": sorted(json.dumps(add["partitionValues"], sort_keys=True) for add in adds),
        "rows": sum(json.loads(add["stats"])["numRecords"] for add in adds),
        "removed": sorted(remove["path"] for remove in removes),
        "row_ids": ["baseRowId" in add for add in adds],
    }


#: What is asked of the optimizer of either engine.
TASKS = {
    "compact": lambda found: found.compact(target_size=3000),
    "z_order": lambda found: found.z_order(["v", "s.x", "name"]),
    "purge": lambda found: found.purge(),
    "one": lambda found: found.z_order(["id"], target_size=2000),
}


@pytest.mark.proof
@pytest.mark.parametrize("layout", COMPARED)
def test_it_is_the_embedded_one(reference, spark, tmp_path, layout):
    core = str(make(tmp_path / "t", layout))
    before = content(core)
    for name, task in TASKS.items():
        ours, other = twin(core), twin(f"{core}-twin")
        version = DeltaTable(ours).version()
        found, wanted = task(jobs.optimize(spark, DeltaTable(ours))), task(DeltaTable(other).optimize)
        assert found.keys() == wanted.keys()
        assert found["numFilesRemoved"] == wanted["numFilesRemoved"], name
        assert found["totalConsideredFiles"] == wanted["totalConsideredFiles"]
        assert found["partitionsOptimized"] == wanted["partitionsOptimized"]
        assert content(ours) == before
        assert DeltaTable(ours).version() == DeltaTable(other).version()
        if found["numFilesRemoved"]:
            assert DeltaTable(ours).version() == version + 1
            # Files this small are mostly footers, whose sizes say nothing of how many there will be.
            assert name == "one" or said(ours) == said(other), name
            assert rows(reference._load(ours)) == rows(deltafast.spark.read(spark, other))
            same_ids(reference, ours, other)
        assert not leftovers(ours)
    # Where nothing is to be done there is no version.
    table = DeltaTable(twin(core))
    jobs.optimize(spark, table).compact(target_size=1 << 30)
    version = table.version()
    metrics = jobs.optimize(spark, table).compact(target_size=1 << 30)
    assert (table.version(), metrics["numFilesAdded"]) == (version, 0)


@pytest.mark.filterwarnings("ignore:.*an engine that has a converter:deltafast.DeltaWarning")
def test_files_are_rewritten_for_iceberg(reference, spark, tmp_path):
    folder = tmp_path / "t"
    data = pa.table({"id": list(range(20)), "p": [n % 2 for n in range(20)], "l": [[n] for n in range(20)]})
    write_deltalake(folder, data, partition_by="p", configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(folder).delete("id = 3")
    before = content(str(folder))
    statement = f"REORG TABLE delta.`{folder}` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"
    (row,) = deltafast.spark.sql(spark, statement).collect()
    assert (row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"]) == (2, 2)
    table = DeltaTable(folder)
    assert [entry["operation"] for entry in table.history(3)][::-1] == [
        "REORG TABLE UPGRADE UNIFORM",
        "REORG",
        "SET TBLPROPERTIES",
    ]
    lines = (folder / "_delta_log" / f"{table.version() - 1:020}.json").read_text().splitlines()
    adds = [action["add"] for action in map(json.loads, lines) if "add" in action]
    assert [add["tags"] for add in adds] == [{"ICEBERG_COMPAT_VERSION": "2"}] * 2
    assert all("p" in pq.read_schema(path).names for path in table.file_uris())
    assert content(str(folder)) == before
    assert rows(reference._load(str(folder))) == rows(deltafast.spark.read(spark, str(folder)))


def points(seed: int, count: int) -> pa.Table:
    """Points of a square, in no order."""
    numbers = [(n * 7919 + seed * 31) % 1_000_003 for n in range(count)]
    return pa.table(
        {
            "id": pa.array(range(seed * count, (seed + 1) * count), pa.int64()),
            "x": pa.array([n * n % 1009 for n in numbers], pa.int64()),
            # Files that Spark writes have no bounds of floating point columns.
            "y": pa.array([None if n % 997 == 0 else n * 31 % 2003 // 2 for n in numbers], pa.int32()),
            "s": [f"customer-{n % 300:05}" for n in numbers],
        }
    )


def met(folder: str) -> int:
    """Files that filters on each of the columns do not exclude."""
    table = DeltaTable(folder)
    filters = [f"x between {n} and {n + 20}" for n in range(0, 1000, 50)]
    filters += [f"y between {n} and {n + 20}" for n in range(0, 1000, 50)]
    filters += [f"s between 'customer-{n:05}' and 'customer-{n + 5:05}'" for n in range(0, 300, 15)]
    return sum(len(table.file_uris(file_pruning_predicate=text)) for text in filters)


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["clustered", "z-order"])
def test_rows_lie_as_well_along_the_curve(reference, spark, tmp_path, kind):
    folder = tmp_path / "t"
    for n in range(4):
        cluster_by = {"cluster_by": ["x", "y"]} if kind == "clustered" and n == 0 else {}
        write_deltalake(folder, points(n, 10_000), mode="append", **cluster_by)
    core = str(folder)
    size = sum(DeltaTable(core).get_add_actions()["size_bytes"].to_pylist()) // 20
    ours, theirs, before = twin(core), twin(f"{core}-twin"), met(core)
    found = {}
    for folder, optimizer in ((ours, jobs.optimize(spark, DeltaTable(ours))), (core, DeltaTable(core).optimize)):
        if kind == "clustered":
            found[folder] = optimizer.cluster(target_size=size)
        else:
            found[folder] = optimizer.z_order(["x", "y"], target_size=size)
    assert found[ours].keys() == found[core].keys()
    reference.forget()
    with reference.configured({"spark.databricks.delta.optimize.maxFileSize": str(size)}):
        reference.sql(f"OPTIMIZE delta.`{theirs}`" + ("" if kind == "clustered" else " ZORDER BY (x, y)"))
    assert content(ours) == content(core) == content(theirs)
    files = {folder: len(DeltaTable(folder).files()) for folder in (ours, core, theirs)}
    quality = {folder: met(folder) for folder in (ours, core, theirs)}
    print(kind, files.values(), quality.values(), before)  # noqa: T201 - the measurement
    # The embedded Z-order cuts files by what is written, of which footers are most here.
    assert abs(files[ours] - files[core if kind == "clustered" else theirs]) <= 1
    assert quality[ours] <= 1.1 * min(quality[core], quality[theirs])
    words = [said(folder) for folder in (ours, core, theirs)]
    for one in words[1:]:
        for key in ("operation", "isolation", "tags", "cubes", "providers", "data_change", "rows", "names"):
            assert words[0][key] == one[key], key
    assert words[0]["parameters"] == words[1]["parameters"]
    assert words[0]["parameters"].keys() == words[2]["parameters"].keys()
    if kind == "clustered":
        assert found[ours]["clusteringStats"] == found[core]["clusteringStats"]
        # Neither finds anything left to do; what comes later is put together with what is there.
        for optimizer in (jobs.optimize(spark, DeltaTable(ours)), DeltaTable(ours).optimize):
            assert optimizer()["numFilesAdded"] == optimizer.cluster(full=True)["numFilesAdded"] == 0
        write_deltalake(ours, points(9, 1000), mode="append")
        DeltaTable(ours).alter.cluster_by(["s"])
        spark.conf.set("spark.deltafast.engine", "jobs")
        try:
            answer = deltafast.spark.sql(spark, f"OPTIMIZE delta.`{ours}` FULL").collect()[0]
        finally:
            spark.conf.unset("spark.deltafast.engine")
        assert answer.metrics.numFilesRemoved == files[ours] + 1
        assert said(ours)["tags"] == {'{"ZCUBE_ID": true, "ZCUBE_ZORDER_BY": "[\\"s\\"]"}'}
        assert said(ours)["parameters"]["isFull"] is True
        assert DeltaTable(ours).count() == 41_000
        reference.forget()
        assert reference._load(ours).count() == 41_000


@pytest.mark.proof
def test_columns_of_every_type_have_an_order(reference, spark, tmp_path):
    count = 600
    day, utc = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    values: dict[str, list[Any]] = {
        "a": [n % 2 == 0 for n in range(count)],
        "b": [n - 100 for n in range(count)],
        "c": [day + dt.timedelta(days=n - 300) for n in range(count)],
        "d": [utc + dt.timedelta(hours=n) for n in range(count)],
        "e": [dt.datetime(1960, 1, 1) + dt.timedelta(days=n * 40) for n in range(count)],  # noqa: DTZ001 - has no zone
        "f": [(float("nan"), -0.0, float("-inf"), n / 3)[n % 4] for n in range(count)],
        "g": [decimal.Decimal(n - 300).scaleb(-2) for n in range(count)],
        "h": [f"ü{n:03}" for n in range(count)],
        "i": [bytes([n % 256, 0]) for n in range(count)],
    }
    for column in values.values():
        column[17::50] = [None] * len(column[17::50])
    types = [
        pa.bool_(), pa.int16(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.float32(),
        pa.decimal128(20, 2), pa.string(), pa.binary(),
    ]  # fmt: skip
    table = pa.table({name: pa.array(values[name], kind) for name, kind in zip(values, types, strict=True)})
    order = pa.array([n * 101 % count for n in range(count)])
    core = str(tmp_path / "t")
    for n in range(3):
        write_deltalake(core, table.take(order).slice(n * 200, 200), mode="append")
    for name in values:
        ours = twin(core)
        jobs.optimize(spark, DeltaTable(ours)).z_order([name])
        assert content(ours) == content(core)
        (uri,) = DeltaTable(ours).file_uris()
        found = pa.parquet.read_table(uri, columns=[name])[name].to_pylist()
        assert found == sorted(found, key=_ascending) or name == "f"
        if name == "f":
            assert list(map(str, found)) == list(map(str, sorted(found, key=_ascending))) or [
                "0" if value == 0 else str(value) for value in found
            ] == ["0" if value == 0 else str(value) for value in sorted(found, key=_ascending)]
    ours = twin(core)
    with spark_settings(spark, {"spark.sql.session.timeZone": "America/St_Johns", "spark.sql.ansi.enabled": "false"}):
        jobs.optimize(spark, DeltaTable(ours)).z_order(list(values), target_size=4000)
    assert content(ours) == content(core)
    assert len(DeltaTable(ours).files()) > 1
    assert reference._load(ours).count() == count


def _ascending(value: Any) -> tuple[int, Any]:
    """Nulls first, `NaN` last."""
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


class spark_settings:  # noqa: N801 - reads as a function
    """Settings of a session for a while."""

    def __init__(self, spark: Any, settings: dict[str, str]) -> None:
        self._spark, self._settings = spark, settings
        self._before = {key: spark.conf.get(key, None) for key in settings}

    def __enter__(self) -> None:
        """Set them."""
        for key, value in self._settings.items():
            self._spark.conf.set(key, value)

    def __exit__(self, *error: object) -> None:
        """Set what was there before."""
        for key, value in self._before.items():
            self._spark.conf.unset(key) if value is None else self._spark.conf.set(key, value)


@pytest.mark.proof
def test_many_bins_are_one_job_and_conflicts_leave_nothing(spark, tmp_path):
    folder = str(tmp_path / "t")
    for n in range(2):
        table = table_of(n * 300, 300).append_column("q", pa.array([m % 150 for m in range(300)]))
        write_deltalake(folder, table, mode="append", partition_by=["q"], configuration=LAYOUTS["vectors"][0])
    core = twin(folder)
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("optimize", "")
    stale, lost, other = DeltaTable(folder), DeltaTable(folder), DeltaTable(folder)
    metrics = jobs.optimize(spark, stale).compact("q < 120")
    assert len(tracker.getJobIdsForGroup("optimize")) <= 2
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (120, 240)
    assert content(folder) == content(core)
    assert said(folder)["parameters"]["predicate"] == '["(q < 120)"]' or "q" in said(folder)["parameters"]["predicate"]
    # Another one that packs the same files comes too late; one that packs others does not, and nor does an append.
    write_deltalake(folder, table, mode="append")
    with pytest.raises(CommitFailedError):
        jobs.optimize(spark, lost).compact()
    assert not leftovers(folder)
    jobs.optimize(spark, other).compact("q >= 120")
    assert DeltaTable(folder).count() == 900
    for wrong in ({"min_commit_interval": 1}, {"partition_filters": "id = 3"}):
        with pytest.raises(InvalidArgumentError):
            jobs.optimize(spark, DeltaTable(folder)).compact(**wrong)


def noise(seed: int, count: int) -> pa.Table:
    """Rows that do not compress: about 8 MB for 20,000."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": random.integers(-(1 << 60), 1 << 60, count),
            "p": pa.array([seed % 2] * count, pa.int32()),
            "b": pa.array([None if n % 50 == 0 else random.bytes(400) for n in range(count)]),
            "s": pa.array([{"x": n, "l": [n % 7]} for n in range(count)]),
        }
    )


def shape(folder: str) -> list[list[int]]:
    """The rows of each row group of each file."""
    found = [pq.read_metadata(uri) for uri in DeltaTable(folder).file_uris()]
    return sorted([one.row_group(n).num_rows for n in range(one.num_row_groups)] for one in found)


def bounds(folder: str) -> list[str]:
    """The statistics of each file in the log."""
    return sorted(map(repr, DeltaTable(folder).get_add_actions(flatten=True).select(
        ["num_records", "null_count.b", "null_count.s.x", "min.id", "max.id", "min.s.x", "max.s.x"]
    ).to_pylist()))  # fmt: skip


@pytest.mark.proof
@pytest.mark.parametrize("by", [[], ["p"]], ids=["one file", "partitions"])
def test_row_groups_are_copied_where_they_are_large(reference, spark, tmp_path, by):
    folder = str(tmp_path / "t")
    for n in range(4):
        write_deltalake(folder, noise(n, 20_000), mode="append", partition_by=by)
    write_deltalake(folder, noise(4, 100), mode="append", partition_by=by)  # few small ones do not matter
    core, before = twin(folder), content(folder)
    with spark_settings(spark, {"spark.sql.files.maxRecordsPerFile": "1"}):
        assert jobs.optimize(spark, DeltaTable(folder)).compact()["numFilesRemoved"] == 5
    assert DeltaTable(core).optimize.compact()["numFilesRemoved"] == 5
    groups = [[20_000, 20_000, 20_000, 20_000, 100]]
    assert shape(folder) == (groups if not by else [[20_000, 20_000], [20_000, 20_000, 100]])
    assert content(folder) == content(core) == before
    assert bounds(folder) == bounds(core)
    assert said(folder)["metrics"] == said(core)["metrics"]
    assert rows(reference._load(folder)) == rows(deltafast.spark.read(spark, core))
    assert not leftovers(folder)
    for uri in DeltaTable(folder).file_uris():
        chunk = pq.read_metadata(uri).row_group(1).column(0)
        assert chunk.has_column_index
        assert chunk.has_offset_index
    found = [DeltaTable(one).to_pyarrow_table(filters="id > 1152000000000000000").num_rows for one in (folder, core)]
    assert found[0] == found[1] > 0


@pytest.mark.proof
def test_rows_are_written_where_files_differ_or_have_deleted_rows(spark, tmp_path):
    folder = str(tmp_path / "t")
    vectors = {"delta.enableDeletionVectors": "true"}
    for n in range(3):
        write_deltalake(folder, noise(n, 20_000), mode="append", configuration=vectors)
    DeltaTable(folder).delete("s.x = 3")
    before = content(folder)
    jobs.optimize(spark, DeltaTable(folder)).compact()
    assert (content(folder), len(shape(folder)[0])) == (before, 1)
    write_deltalake(folder, noise(5, 20_000).append_column("new", pa.array(range(20_000))), mode="append",
                    schema_mode="merge")  # fmt: skip
    before = content(folder)
    jobs.optimize(spark, DeltaTable(folder)).compact()
    assert (content(folder), len(shape(folder)[0])) == (before, 1)


@pytest.mark.parametrize("task", ["compact", "z_order"])
def test_cores_without_a_part_write_pieces(reference, spark, tmp_path, monkeypatch, task):
    folder = str(tmp_path / "t")
    for n in range(6):
        write_deltalake(folder, points(n, 3_000), mode="append", configuration=LAYOUTS["vectors"][0])
    DeltaTable(folder).delete("x = 4")
    monkeypatch.setattr("deltafast.spark._jobs.ranges._PIECE", 10_000)
    before, cores = content(folder), spark.sparkContext.defaultParallelism
    optimizer = jobs.optimize(spark, DeltaTable(folder))
    metrics = optimizer.compact() if task == "compact" else optimizer.z_order(["x", "y"])
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (6, 1)
    # Tasks that sort rows are smaller.
    assert len(shape(folder)[0]) == min(cores if task == "compact" else 3 * cores, 6)
    assert content(folder) == before
    assert rows(reference._load(folder)) == rows(deltafast.spark.read(spark, folder))
    assert not leftovers(folder)
    if task == "z_order":
        # The pieces are ranges of the curve, one after the other.
        (uri,) = DeltaTable(folder).file_uris()
        groups = pq.ParquetFile(uri)
        tops = [max(groups.read_row_group(n, ["x"])["x"].to_pylist()) for n in range(groups.num_row_groups)]
        assert tops[0] < tops[-1]


@pytest.mark.parametrize("width", [61, 62, 63, 64])
@pytest.mark.parametrize("by", [[], ["c1"]], ids=["one file", "partitions"])
def test_only_the_columns_of_the_table_are_written(spark, tmp_path, width, by):
    # Spark's rows begin with a bitmap of 64 bits for 64 columns, and the jobs add columns.
    folder = str(tmp_path / "t")
    for n in range(2):
        data = {
            f"c{column}": [(n * 50 + row) * 7919 % 101 % (column + 2) for row in range(50)] for column in range(width)
        }
        write_deltalake(folder, pa.table(data), mode="append", partition_by=by)
    before = content(folder)
    jobs.optimize(spark, DeltaTable(folder)).z_order(["c40", "c50"])
    assert content(folder) == before
    for uri in DeltaTable(folder).file_uris():
        assert pq.read_schema(uri).names == [f"c{column}" for column in range(width) if f"c{column}" not in by]


def test_files_that_are_not_named_after_their_task_are_not_joined(spark, tmp_path):
    write_deltalake(tmp_path, points(0, 10))
    (tmp_path / "pieces").mkdir()
    pq.write_table(points(1, 10), tmp_path / "pieces" / "some.parquet")
    version = Rows(Session(spark), DeltaTable(tmp_path), [])
    name = str(file_format(version.session, "RowGroupFormat"))
    with pytest.raises(Exception, match=r"cannot join .*some\.parquet: its name does not begin with its task"):
        copy_row_groups(version.session, name, version.place, "new", "p", [(0, [Source("pieces", 0)])], [100])
    (tmp_path / "pieces" / "some.parquet").rename(tmp_path / "pieces" / "part-00012-a.c000.parquet")
    copy_row_groups(
        version.session, name, version.place, "new", "p", [(7, [Source("pieces", n) for n in (1, 12)])], [100]
    )
    (found,) = (tmp_path / "new" / "p=7").glob("*.parquet")
    assert pq.read_table(found, partitioning=None).equals(points(1, 10))


def test_a_log_that_counts_other_rows_is_not_optimized(spark, tmp_path):
    folder = tmp_path / "t"
    for n in range(2):
        write_deltalake(folder, points(n, 100), mode="append")
    commit = folder / "_delta_log" / f"{1:020}.json"
    for crc in (folder / "_delta_log").glob("*.crc"):
        crc.unlink()
    commit.write_text(commit.read_text().replace('\\"numRecords\\":100', '\\"numRecords\\":99'))
    with pytest.raises(CorruptDataError, match="the log says that 2 files have 199 rows, and they have 200"):
        jobs.optimize(spark, DeltaTable(folder)).compact()
    assert (DeltaTable(folder).version(), leftovers(str(folder))) == (1, set())


def test_ranges():
    whole = Ranges([Bin(["a", "b"], 3, 1, 100), Bin(["c"], 7, 2, 1 << 30)], 8, is_packed=False)
    assert not Ranges([Bin(["a"], 3, 1, 100)], 1, is_packed=True).are_pieces
    assert whole.are_pieces
    # Three tasks would leave five cores idle: parts have three pieces, and twice as many as each is large enough.
    assert (whole.counts, whole.firsts) == ([1, 2 * 6], [0, 1])
    assert whole.of_parts() == [(3, range(1)), (7, range(1, 7)), (8, range(7, 13))]
    assert [len(keys) for keys in whole.keys] == whole.counts
    packed = Ranges([Bin(["a", "b", "c"], 0, 1, 1 << 30)], 100, is_packed=True)
    assert packed.of_files()[0] == [0, 1, 2]
    assert packed.counts == [3]
    assert Ranges([Bin(["a"], 5, 2, 1 << 30)], 2, is_packed=False).firsts == [5]
    most = [Ranges([Bin(["a"], 0, 1, size << 27)], 2, is_packed=False).counts for size in (1, 2, 3, 4, 8, 80)]
    assert most == [[1], [2], [2], [4], [6], [6]]


def test_tasks_get_what_is_theirs(spark):
    sizes = [1 << 20] * 100 + [1 << 30] * 3 + [1 << 10] * 200
    tasks = shared(sizes)
    assert tasks == sorted(tasks)
    assert max(tasks.count(task) for task in set(tasks)) == 64
    assert all(tasks.count(tasks[n]) == 1 for n in (100, 101, 102))
    keys = keys_of(37)
    found = spark.createDataFrame([(key,) for key in keys], "k int").repartition(37, "k")
    parts = found.selectExpr("k", "spark_partition_id() as p").collect()
    assert {row.p: row.k for row in parts} == dict(enumerate(keys))
