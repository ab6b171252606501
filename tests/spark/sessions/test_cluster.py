"""A cluster whose executors are other processes, with addresses of their own and a Python that lacks deltafast."""

from __future__ import annotations

import datetime as dt
import os
import pathlib
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import LongType, StructField, StructType

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import ConstraintViolatedError, DeltaProtocolError, DeltaWarning
from deltafast.spark import DeltaTable as SparkTable
from deltafast.spark._commands import dml
from deltafast.spark._session import java_library
from deltafast.spark._streaming.data_source import DeltafastDataSource
from deltafast.spark._streaming.source_sink import _Settings
from spark import cluster
from spark.helpers import ids, plan

from .started import Started, builder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("cluster"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

HOME = pathlib.Path(os.environ["SPARK_HOME"])
NOTHING_THERE = r"deltafast .* is needed in the Python of Spark's executors .*where it is not there"


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """Give the cluster."""
    with cluster.running(tmp_path_factory.mktemp("cluster"), HOME) as found:
        yield found


@pytest.fixture(scope="session")
def started(running, tmp_path_factory):
    """Give the session: a task may fail twice, and slow ones are run a second time."""
    # The executors' own path says where their packages are; the driver's would reach them, too.
    os.environ.pop("PYTHONPATH", None)
    os.environ |= {"PYSPARK_PYTHON": running.bare, "SPARK_LOCAL_IP": "127.0.0.1"}
    warehouse = tmp_path_factory.mktemp("warehouse")

    def build():
        made = builder(running.master).config("spark.executor.memory", "600m").config("spark.log.level", "OFF")
        made = made.config("spark.executorEnv.PYTHONPATH", running.packages)
        made = made.config("spark.task.maxFailures", 3).config("spark.speculation", "true")
        made = made.config("spark.speculation.interval", "50ms").config("spark.speculation.multiplier", 2)
        made = made.config("spark.speculation.minTaskRuntime", "2s").config("spark.speculation.quantile", 0.5)
        made = made.config("spark.sql.shuffle.partitions", 2).config("spark.sql.session.timeZone", "Asia/Kolkata")
        return made.config("spark.sql.warehouse.dir", str(warehouse)).getOrCreate()

    started = Started(build)
    yield started
    started.stop()


@pytest.fixture
def spark(started):
    """Give the session."""
    yield from started.isolated()


@pytest.fixture
def source(tmp_path) -> pathlib.Path:
    """Give a table with many files, deletion vectors and column mapping."""
    folder = tmp_path / "source"

    def rows(start: int, stop: int) -> pa.Table:
        found = range(start, stop)
        at = [dt.datetime(1970, 1, 1, n // 50, tzinfo=dt.UTC) for n in found]
        return pa.table({"id": list(found), "p": [n % 3 for n in found], "at": pa.array(at, pa.timestamp("us", "UTC"))})

    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    write_deltalake(folder, rows(0, 30), partition_by=["p", "at"], configuration=properties)
    for start, stop in ((30, 60), (60, 100), (100, 104)):
        write_deltalake(folder, rows(start, stop), mode="append")
    DeltaTable(folder).delete("id % 10 = 7 or id = 101")
    return folder


@pytest.fixture
def vectors(tmp_path) -> tuple[str, list[int]]:
    """Give a table of four files with deletion vectors, and its values."""
    path = str(tmp_path / "vectors")
    for n in range(4):
        values = range(n * 2500, (n + 1) * 2500)
        properties = None if n else {"delta.enableDeletionVectors": "true"}
        write_deltalake(path, pa.table({"id": values, "v": values}), mode="append", configuration=properties)
    DeltaTable(path).delete("id % 10 = 3")
    return path, [n for n in range(10_000) if n % 10 != 3]


def rows(frame) -> list[tuple]:
    """Rows in order."""
    return sorted(tuple(row) for row in frame.collect())


def files(folder: pathlib.Path) -> set[str]:
    """Every file with rows or changes that there is."""
    return {str(file) for file in folder.rglob("*.parquet")}


@pytest.mark.proof
def test_executors_lack_deltafast(spark):
    """There are two executors, each a Java of its own; their Python has Arrow, and no deltafast."""

    def look(_):
        import importlib.util

        import pyarrow as pa  # noqa: F401

        time.sleep(0.5)
        return os.getppid(), importlib.util.find_spec("deltafast") is None, sys.executable

    found = set(spark.sparkContext.parallelize(range(4), 4).map(look).collect())
    assert len({parent for parent, _, _ in found}) == 2
    assert {(lacks, python) for _, lacks, python in found} == {(True, os.environ["PYSPARK_PYTHON"])}
    assert sys.executable != os.environ["PYSPARK_PYTHON"]


@pytest.mark.proof
def test_reading(spark, tmp_path):
    """The rows of the default writer are read by index and by paths."""
    folder = tmp_path / "reading"
    columns = (
        "id",
        "id % 3 p",
        "timestamp_micros(cast(id / 50 as int) * 3600000000) at",
        "if(id = 5, null, named_struct('x', id)) s",
        "cast(id as decimal(20, 2)) d",
    )
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    frame = spark.range(0, 100, 1, 4).selectExpr(*columns)
    deltafast.spark.write(frame, folder, partition_by=["p", "at"], configuration=properties)
    deltafast.spark.write(spark.range(100, 104).selectExpr(*columns), folder, "append")
    assert files(folder) == set(DeltaTable(folder).file_uris())
    table = DeltaTable(folder)
    table.delete("id % 10 = 7 or id = 101")
    table.alter.rename_column("d", "dec")
    expected = [n for n in range(104) if n % 10 != 7 and n != 101]
    for way in ("index", "paths"):
        frame = deltafast.spark.read(spark, folder, read_mode=way)
        assert ids(frame) == expected
        assert ids(frame.where("s.x > 90 and p = 1")) == [91, 94, 100, 103]
        assert ids(frame.where("s is null")) == [5]
        assert ids(frame.where("at = timestamp_micros(3600000000)")) == [n for n in expected if 50 <= n < 100]
        assert [(row.p, row.n) for row in frame.groupBy("p").agg(F.count("*").alias("n")).orderBy("p").collect()] == [
            (remainder, sum(n % 3 == remainder for n in expected)) for remainder in range(3)
        ]
        joined = frame.join(spark.range(0, 104, 2), "id").agg(F.sum("dec")).first()[0]
        assert joined == sum(n for n in expected if n % 2 == 0)
        assert ids(deltafast.spark.read(spark, folder, version=0, read_mode=way)) == list(range(100))


def test_writing(spark, tmp_path):
    """Modes of the default writer, rules of the table, and its change data feed."""
    folder = tmp_path / "writing"
    made = SparkTable.create(spark).location(str(folder)).addColumn("id", "bigint").addColumn("p", "bigint")
    made = made.addColumn("twice", "bigint", generatedAlwaysAs="id * 2").partitionedBy("p")
    made.property("delta.enableChangeDataFeed", "true").property("delta.enableDeletionVectors", "true").execute()
    DeltaTable(folder).alter.add_constraint({"positive": "id >= 0"})
    frame = spark.range(0, 40, 1, 4).selectExpr("id", "id % 4 p")
    deltafast.spark.write(frame, folder, "append")
    assert rows(deltafast.spark.read(spark, folder)) == [(n, n % 4, 2 * n) for n in range(40)]
    before = files(folder)
    with pytest.raises(ConstraintViolatedError, match="positive"):
        deltafast.spark.write(spark.range(-1, 3).selectExpr("id", "0L p"), folder, "append")
    assert files(folder) == before
    deltafast.spark.write(
        spark.range(40, 44).selectExpr("id", "1L p"), folder, "overwrite", replace_where="p = 1 and id < 1000"
    )
    expected = sorted([n for n in range(40) if n % 4 != 1] + [40, 41, 42, 43])
    assert ids(deltafast.spark.read(spark, folder)) == expected
    more = spark.range(2).selectExpr("id", "2L p")
    deltafast.spark.write(more, folder, "overwrite", options={"partitionOverwriteMode": "dynamic"})
    expected = sorted([n for n in expected if n % 4 != 2 or n == 42] + [0, 1])
    assert ids(deltafast.spark.read(spark, folder)) == expected
    deltafast.spark.write(more, folder, "overwrite")
    assert rows(deltafast.spark.read(spark, folder)) == [(0, 2, 0), (1, 2, 2)]
    reported = DeltaTable(folder).load_cdf(starting_version=3).read_all().to_pydict()["_change_type"]
    assert set(reported) == {"insert", "delete"}


@pytest.mark.proof
def test_commands_as_jobs(spark, tmp_path):
    """DELETE, UPDATE and MERGE as jobs do what the embedded ones do, and SQL too."""
    spark.conf.set("spark.deltafast.engine", "jobs")
    for vectors in ("true", "false"):
        folder = tmp_path / f"commands-{vectors}"
        properties = {
            "delta.enableChangeDataFeed": "true",
            "delta.enableDeletionVectors": vectors,
            "delta.columnMapping.mode": "name",
        }
        frame = spark.range(0, 1000, 1, 4).selectExpr("id", "id v", "id % 2 p")
        deltafast.spark.write(frame, folder, partition_by=["p"], configuration=properties)
        table = SparkTable.forPath(spark, str(folder))
        table.delete("id < 100 and v % 3 = 0")
        table.update("id % 10 = 1", {"v": "v + 1"})
        source = spark.range(900, 1100, 1, 3).selectExpr("id", "-id v", "id % 2 p")
        merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        path = f"delta.`{folder}`"
        assert deltafast.spark.sql(spark, f"DELETE FROM {path} WHERE id = 950").first().num_affected_rows == 1
        assert deltafast.spark.sql(spark, f"SELECT count(*) n FROM {path} VERSION AS OF 0").first().n == 1000
        now = {n: n + (n % 10 == 1) for n in range(900) if n >= 100 or n % 3}
        now |= {n: -n for n in range(900, 1100) if n != 950}
        assert {row.id: row.v for row in table.toDF().collect()} == now
        reported = DeltaTable(folder).load_cdf(starting_version=1).read_all()
        kinds = reported.group_by("_change_type").aggregate([("id", "count")]).to_pydict()
        assert dict(zip(kinds["_change_type"], kinds["id_count"], strict=True)) == {
            "update_preimage": 197,
            "update_postimage": 197,
            "delete": 35,
            "insert": 100,
        }
        assert table.optimize().executeCompaction().first().metrics.numFilesRemoved > 1
        assert {row.id: row.v for row in table.toDF().collect()} == now
    spark.conf.unset("spark.deltafast.engine")


@pytest.mark.proof
def test_large_tables_that_jobs_refuse_are_changed_in_the_driver(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(dml, "_LARGE", 0)
    folder = tmp_path / "binary"
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "b": pa.array([b"x", b"y", b"y"])})
    write_deltalake(folder, rows, partition_by=["b"])
    table = SparkTable.forPath(spark, str(folder))
    with pytest.warns(
        DeltaWarning, match=r"in the driver's process, not as Spark jobs: 'b' is a binary partition column"
    ):
        table.update("id = 1", {"id": "id + 10"})
    source = spark.range(2, 4).selectExpr("id", "binary('z') b")
    with pytest.warns(DeltaWarning, match="in the driver's process"):
        table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()
    expected = [(2, b"z"), (3, b"z"), (11, b"x")]
    assert sorted((row.id, bytes(row.b)) for row in table.toDF().collect()) == expected
    folder = tmp_path / "materialized"
    properties = {"delta.feature.materializePartitionColumns": "supported"}
    write_deltalake(folder, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"], configuration=properties)
    write_deltalake(folder, pa.table({"id": [2], "p": ["a"]}), mode="append")
    with pytest.warns(DeltaWarning, match=r"in the driver's process.*hold the partition columns"):
        removed = SparkTable.forPath(spark, str(folder)).optimize().executeCompaction().first().metrics.numFilesRemoved
    assert removed == 2
    spark.conf.set("spark.deltafast.engine", "jobs")
    with pytest.raises(DeltaProtocolError, match="binary partition column"):
        table.update("id = 11", {"id": "1L"})


@pytest.mark.proof
def test_streams(spark, tmp_path, source):
    """From table to table, with batches at native speed."""
    copy = tmp_path / "copy"
    for _ in range(2):
        query = deltafast.spark.stream(
            spark,
            source,
            deltafast.spark.sink(copy),
            tmp_path / "checkpoint",
            trigger={"availableNow": True},
            maxFilesPerTrigger=3,
        )
        query.awaitTermination()
    assert ids(deltafast.spark.read(spark, copy)) == ids(deltafast.spark.read(spark, source))
    assert DeltaTable(copy).version() > 2
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 2).load()
    writer = rate.select("value").writeStream.foreachBatch(deltafast.spark.sink(tmp_path / "rate"))
    query = writer.option("checkpointLocation", str(tmp_path / "rate-checkpoint")).start()
    end = time.monotonic() + 60
    while not (DeltaTable.is_deltatable(tmp_path / "rate") and DeltaTable(tmp_path / "rate").version()):
        assert query.exception() is None
        assert time.monotonic() < end
        time.sleep(0.2)
    query.stop()
    found = ids(deltafast.spark.read(spark, tmp_path / "rate"))
    assert found == list(range(len(found)))


def test_change_data_feeds(spark, tmp_path):
    """Change data files, added and removed files, and what deletion vectors differ by, in a batch and as streams."""
    folder = tmp_path / "feed"
    properties = {
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
    }
    frame = spark.range(0, 100, 1, 4).selectExpr("id", "id % 2 p")
    deltafast.spark.write(frame, folder, partition_by=["p"], configuration=properties)
    table = DeltaTable(folder)
    table.delete("id < 10")
    table.update({"id": "id + 1000"}, predicate="id >= 90 and p = 1")
    table.delete("p = 0")
    expected = {
        (row["id"], row["p"], row["_change_type"], row["_commit_version"])
        for row in table.load_cdf(starting_version=0).read_all().to_pylist()
    }
    assert {kind for _, _, kind, _ in expected} == {"insert", "delete", "update_preimage", "update_postimage"}
    columns = ["id", "p", "_change_type", "_commit_version"]
    options = {"readChangeFeed": "true", "startingVersion": "0"}
    feed = deltafast.spark.read(spark, folder, options=options)
    assert {tuple(row) for row in feed.select(columns).collect()} == expected
    deltafast.spark.enable(spark)
    try:
        stream = spark.readStream.format("delta").options(**options).load(str(folder)).select(columns)
        found: list[Row] = []
        query = stream.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
        query = query.option("checkpointLocation", str(tmp_path / "feed-checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination()
        assert {tuple(row) for row in found} == expected
        found.clear()
        stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(folder))
        query = stream.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
        query = query.option("checkpointLocation", str(tmp_path / "rows-checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination()
        assert sorted(row.id for row in found) == ids(deltafast.spark.read(spark, folder))
    finally:
        deltafast.spark.disable(spark)


def _fails(spark, attempts: int):
    """Rows whose tasks fail after all of them were given, some times."""

    def given(batches):
        yield from batches
        context = TaskContext.get()
        if context.partitionId() % 2 == 0 and context.attemptNumber() < attempts:
            raise RuntimeError("this attempt fails after its rows were written")

    return spark.range(0, 20_000, 1, 4).mapInArrow(given, "id bigint")


def test_rows_of_failed_attempts_are_in_no_version(spark, tmp_path):
    """A write that fails altogether leaves no file."""
    folder = tmp_path / "failing"
    assert deltafast.spark.write(_fails(spark, 1), folder) == 0
    assert ids(deltafast.spark.read(spark, folder)) == list(range(20_000))
    before = files(folder)
    assert before == set(DeltaTable(folder).file_uris())
    with pytest.raises(Exception, match="this attempt fails"):
        deltafast.spark.write(_fails(spark, 3), folder, "append")
    assert (files(folder), DeltaTable(folder).version()) == (before, 0)


def test_speculation(spark, tmp_path):
    """Two attempts of one task run at a time, each writes its rows, one counts."""
    folder = tmp_path / "speculation"
    marks = tmp_path / "marks"
    marks.mkdir()

    def slow(batches):
        yield from batches
        context = TaskContext.get()
        (marks / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        # The first attempt goes on when the second is about to end, too.
        if context.partitionId() == 3 and context.attemptNumber() == 0:
            end = time.monotonic() + 60
            while not (marks / "3-1").exists() and time.monotonic() < end:
                time.sleep(0.05)

    frame = spark.range(0, 8_000, 1, 4).mapInArrow(slow, "id bigint")
    assert deltafast.spark.write(frame, folder) == 0
    assert {mark.name for mark in marks.iterdir()} >= {"3-0", "3-1"}
    assert ids(deltafast.spark.read(spark, folder)) == list(range(8_000))
    live = set(DeltaTable(folder).file_uris())
    # What a slower attempt still leaves, a vacuum takes.
    DeltaTable(folder).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert files(folder) == live
    assert ids(deltafast.spark.read(spark, folder)) == list(range(8_000))


def test_what_runs_in_the_python_of_executors_says_what_is_missing(spark, tmp_path, source):
    """It also says what to do."""
    source = str(source)
    deltafast.spark.register(spark)
    for call in (
        lambda: deltafast.spark.read(spark, source, read_mode="arrow").collect(),
        lambda: spark.read.format("deltafast").load(source).collect(),
        lambda: spark.range(3).write.format("deltafast").mode("append").save(str(tmp_path / "none")),
        lambda: deltafast.spark.write(spark.range(3), tmp_path / "none", writer="arrow"),
    ):
        with pytest.raises(Exception, match=NOTHING_THERE) as found:
            call()
        reported = "read_mode='arrow', writer='arrow', format('deltafast') and, over Connect, change data feeds run there. Install"
        assert reported in str(found.value), str(found.value)
        assert "No module named" not in str(found.value)
    assert not (tmp_path / "none").exists()


def test_programs_for_delta_spark(spark, tmp_path):
    """`enable`: the format's classes are needed by the driver alone."""
    deltafast.spark.enable(spark)
    try:
        path = str(tmp_path / "enabled")
        frame = spark.range(0, 100, 1, 4).selectExpr("id", "id % 2 p")
        frame.write.format("delta").partitionBy("p").option("delta.enableDeletionVectors", "true").save(path)
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
        load = spark.read.format("delta").load
        assert ids(load(path).where("id > 90 and p = 1")) == [91, 93, 95, 97, 99]
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 91")
        # A frame with deletion vectors is a plan of its own.
        assert ids(load(path).where("id > 90 and p = 1")) == [93, 95, 97, 99]
        spark.sql(f"CREATE TABLE named USING delta LOCATION '{path}'")
        assert spark.table("named").groupBy("p").count().orderBy("p").collect() == [Row(0, 50), Row(1, 49)]
        spark.range(200, 204).selectExpr("id", "0L p").write.insertInto("named")
        assert spark.sql("SELECT count(*) n FROM named WHERE id >= 200").first().n == 4
        frame.write.format("delta").saveAsTable("managed")
        assert spark.sql("SELECT sum(a.id) n FROM managed a JOIN named b ON a.id = b.id").first().n == 4950 - 91
        for name in ("named", "managed"):
            spark.sql(f"DROP TABLE {name}")
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().select("value")
        writer = rate.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "enabled-checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "enabled-stream"))
        query.awaitTermination()
        found = ids(load(str(tmp_path / "enabled-stream")))
        assert found == list(range(len(found)))
    finally:
        deltafast.spark.disable(spark)


OPENS = """
import pickle, sys
try:
    pickle.loads(sys.stdin.buffer.read())
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_what_the_driver_plans_says_that_an_executor_lacks_deltafast(running, tmp_path):
    """As `format("deltafast")` does where the Python of the driver is another than that of the executors."""
    schema = StructType([StructField("id", LongType())])
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    session: Any = SimpleNamespace(hadoop=lambda _: {}, via_hadoop=False, home=lambda: None, is_connect=True)
    kind = type("Registered", (DeltafastDataSource,), {"settings": _Settings(session), "zone": "UTC"})
    source = kind({"path": str(tmp_path / "t"), "checkpointLocation": str(tmp_path / "c")})
    zips = [str(file) for file in (HOME / "python" / "lib").glob("*.zip")]
    for what in (
        source,
        source.writer(schema, overwrite=False),
        source.streamWriter(schema, overwrite=False),
        kind({"path": str(tmp_path / "t")}).reader(schema),
        kind({"path": str(tmp_path / "t")}).streamReader(schema),
    ):
        shipped = cloudpickle.dumps(what)
        assert type(cloudpickle.loads(shipped)).__name__ == type(what).__name__
        ran = subprocess.run(
            [running.bare, "-c", OPENS],
            input=shipped,
            capture_output=True,
            check=True,
            env={"PYTHONPATH": os.pathsep.join([running.packages, *zips])},
        )
        assert ran.stdout.startswith(b"RuntimeError: deltafast "), ran.stdout
        assert b"where it is not there: read_mode='arrow'" in ran.stdout


def counted(spark, path: str) -> tuple[int, int, bool]:
    """How many rows there are, their sum, and whether a join is needed."""
    frame = deltafast.spark.read(spark, path)
    row = frame.selectExpr("count(v)", "sum(v)").collect()[0]
    return row[0], row[1], "Join" in plan(frame)


def test_executors_get_the_reader_of_deletion_vectors_by_a_jar(spark, started, vectors):
    path, values = vectors
    assert counted(spark, path) == (9000, sum(values), False)
    assert deltafast.spark.read(spark, path).count() == 9000
    # Another context in the same Java has executors of its own.
    spark.stop()
    assert counted(started.session(), path) == (9000, sum(values), False)


def test_deletion_vectors_where_tasks_fail_once(spark, vectors):
    path, values = vectors

    def fails(rows):
        found = [row.id for row in rows]
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("this attempt fails after its rows were read")
        return found

    assert sorted(deltafast.spark.read(spark, path).rdd.mapPartitions(fails).collect()) == values


def test_a_join_replaces_the_reader_of_deletion_vectors_where_no_jar_may_be_added(spark, vectors, monkeypatch):
    path, values = vectors
    sent: dict[Any, Any] = {}
    monkeypatch.setattr(java_library, "_SENT", sent)
    context = type(spark.sparkContext._jsc)
    whole = context.__getattr__

    def refused(this, name):
        if name == "addJar":
            raise PermissionError("no jars here")
        return whole(this, name)

    monkeypatch.setattr(context, "__getattr__", refused)
    with pytest.warns(DeltaWarning, match="no jars here"):
        assert counted(spark, path) == (9000, sum(values), True)
    assert {failure for failure in sent.values() if failure} == {"no jars here"}
