"""A program on a cluster whose executors are other processes, with a Python that lacks deltafast."""

from __future__ import annotations

import os
import pathlib
import sys
import time
import warnings

import pyspark
import pytest
from pyspark import TaskContext
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import deltafast.spark
from deltafast import DeltaTable
from deltafast.exceptions import ConstraintViolatedError
from deltafast.spark import DeltaTable as SparkTable

warnings.filterwarnings("ignore", category=FutureWarning)

NOTHING_THERE = r"deltafast .* is needed in the Python of Spark's executors .*where it is not there"


def session(master: str, packages: str, root: pathlib.Path) -> SparkSession:
    """Start Spark: a task may fail twice, and slow ones are run a second time."""
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.executor.memory", "600m")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.executorEnv.PYTHONPATH", packages).config("spark.log.level", "OFF")
    builder = builder.config("spark.task.maxFailures", 3).config("spark.speculation", "true")
    builder = builder.config("spark.speculation.interval", "50ms").config("spark.speculation.multiplier", 2)
    builder = builder.config("spark.speculation.minTaskRuntime", "2s").config("spark.speculation.quantile", 0.5)
    builder = builder.config("spark.sql.shuffle.partitions", 2).config("spark.sql.session.timeZone", "Asia/Kolkata")
    return builder.config("spark.sql.warehouse.dir", str(root / "warehouse")).getOrCreate()


def rows(frame) -> list[tuple]:
    """Rows in order."""
    return sorted(tuple(row) for row in frame.collect())


def ids(frame) -> list[int]:
    """The first column, sorted."""
    return sorted(row[0] for row in frame.collect())


def files(folder: pathlib.Path) -> set[str]:
    """Every file with rows or changes that there is."""
    return {str(file) for file in folder.rglob("*.parquet")}


def executors_lack_deltafast(spark, root: pathlib.Path) -> None:
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


def reading(spark, root: pathlib.Path) -> None:
    """What the default writer wrote is read by index and by paths."""
    folder = root / "reading"
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
        frame = deltafast.spark.read(spark, folder, way=way)
        assert ids(frame) == expected
        assert ids(frame.where("s.x > 90 and p = 1")) == [91, 94, 100, 103]
        assert ids(frame.where("s is null")) == [5]
        assert ids(frame.where("at = timestamp_micros(3600000000)")) == [n for n in expected if 50 <= n < 100]
        assert [(row.p, row.n) for row in frame.groupBy("p").agg(F.count("*").alias("n")).orderBy("p").collect()] == [
            (remainder, sum(n % 3 == remainder for n in expected)) for remainder in range(3)
        ]
        joined = frame.join(spark.range(0, 104, 2), "id").agg(F.sum("dec")).first()[0]
        assert joined == sum(n for n in expected if n % 2 == 0)
        assert ids(deltafast.spark.read(spark, folder, version=0, way=way)) == list(range(100))


def writing(spark, root: pathlib.Path) -> None:
    """The default writer: modes, rules of the table, and what its feed tells."""
    folder = root / "writing"
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
    told = DeltaTable(folder).load_cdf(starting_version=3).read_all().to_pydict()["_change_type"]
    assert set(told) == {"insert", "delete"}


def commands(spark, root: pathlib.Path) -> None:
    """DELETE, UPDATE and MERGE as jobs do what the embedded ones do, and SQL too."""
    spark.conf.set("spark.deltafast.engine", "jobs")
    for vectors in ("true", "false"):
        folder = root / f"commands-{vectors}"
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
        told = DeltaTable(folder).load_cdf(starting_version=1).read_all()
        kinds = told.group_by("_change_type").aggregate([("id", "count")]).to_pydict()
        assert dict(zip(kinds["_change_type"], kinds["id_count"], strict=True)) == {
            "update_preimage": 197,
            "update_postimage": 197,
            "delete": 35,
            "insert": 100,
        }
        assert table.optimize().executeCompaction().first().metrics.numFilesRemoved > 1
        assert {row.id: row.v for row in table.toDF().collect()} == now
    spark.conf.unset("spark.deltafast.engine")


def streams(spark, root: pathlib.Path) -> None:
    """From table to table, with batches at native speed."""
    source, copy = root / "reading", root / "copy"
    for _ in range(2):
        query = deltafast.spark.stream(
            spark,
            source,
            deltafast.spark.sink(copy),
            root / "checkpoint",
            trigger={"availableNow": True},
            maxFilesPerTrigger=3,
        )
        query.awaitTermination()
    assert ids(deltafast.spark.read(spark, copy)) == ids(deltafast.spark.read(spark, source))
    assert DeltaTable(copy).version() > 2
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 2).load()
    writer = rate.select("value").writeStream.foreachBatch(deltafast.spark.sink(root / "rate"))
    query = writer.option("checkpointLocation", str(root / "rate-checkpoint")).start()
    end = time.monotonic() + 60
    while not (DeltaTable.is_deltatable(root / "rate") and DeltaTable(root / "rate").version()):
        assert query.exception() is None
        assert time.monotonic() < end
        time.sleep(0.2)
    query.stop()
    found = ids(deltafast.spark.read(spark, root / "rate"))
    assert found == list(range(len(found)))


def _fails(spark, attempts: int):
    """Rows whose tasks fail after all of them were given, some times."""

    def given(batches):
        yield from batches
        context = TaskContext.get()
        if context.partitionId() % 2 == 0 and context.attemptNumber() < attempts:
            raise RuntimeError("this attempt fails after its rows were written")

    return spark.range(0, 20_000, 1, 4).mapInArrow(given, "id bigint")


def failing_attempts(spark, root: pathlib.Path) -> None:
    """Rows of attempts that failed are in no version; what fails altogether, or was slower, leaves no file."""
    folder = root / "failing"
    assert deltafast.spark.write(_fails(spark, 1), folder) == 0
    assert ids(deltafast.spark.read(spark, folder)) == list(range(20_000))
    before = files(folder)
    assert before == set(DeltaTable(folder).file_uris())
    with pytest.raises(Exception, match="this attempt fails"):
        deltafast.spark.write(_fails(spark, 3), folder, "append")
    assert (files(folder), DeltaTable(folder).version()) == (before, 0)


def speculation(spark, root: pathlib.Path) -> None:
    """Two attempts of one task run at a time, each writes its rows, one counts."""
    folder = root / "speculation"
    marks = root / "marks"
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


def what_needs_deltafast(spark, root: pathlib.Path) -> None:
    """What runs in the executors' Python says what is missing, and what to do."""
    source = str(root / "reading")
    feed = {"readChangeFeed": True, "startingVersion": 0}
    deltafast.spark.write(spark.range(3), root / "feed", configuration={"delta.enableChangeDataFeed": "true"})
    deltafast.spark.register(spark)
    for call in (
        lambda: deltafast.spark.read(spark, source, way="arrow").collect(),
        lambda: deltafast.spark.read(spark, str(root / "feed"), options=feed).collect(),
        lambda: spark.read.format("deltafast").load(source).collect(),
        lambda: spark.range(3).write.format("deltafast").mode("append").save(str(root / "none")),
        lambda: deltafast.spark.write(spark.range(3), root / "none", writer="arrow"),
    ):
        with pytest.raises(Exception, match=NOTHING_THERE) as found:
            call()
        told = "way='arrow', writer='arrow', change data feeds and format('deltafast') run there. Install"
        assert told in str(found.value), str(found.value)
        assert "No module named" not in str(found.value)
    assert not (root / "none").exists()


def programs_for_delta_spark(spark, root: pathlib.Path) -> None:
    """`enable`: the format's classes are needed by the driver alone."""
    deltafast.spark.enable(spark)
    try:
        path = str(root / "enabled")
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
        writer = rate.writeStream.format("delta").option("checkpointLocation", str(root / "enabled-checkpoint"))
        query = writer.trigger(availableNow=True).start(str(root / "enabled-stream"))
        query.awaitTermination()
        found = ids(load(str(root / "enabled-stream")))
        assert found == list(range(len(found)))
    finally:
        deltafast.spark.disable(spark)


PARTS = (
    executors_lack_deltafast,
    reading,
    writing,
    commands,
    streams,
    failing_attempts,
    speculation,
    what_needs_deltafast,
    programs_for_delta_spark,
)


def main(master: str, packages: str, root: pathlib.Path, names: list[str]) -> None:
    """Run everything, or parts by name."""
    spark = session(master, packages, root)
    for part in PARTS:
        if not names or part.__name__ in names:
            start = time.monotonic()
            part(spark, root)
            sys.stderr.write(f"{part.__name__}: {time.monotonic() - start:.1f} s\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:])
    sys.stdout.write(f"on PySpark {pyspark.__version__}: all is well\n")
