"""A program on Spark Connect: no object of Java is within reach."""

from __future__ import annotations

import pathlib
import sys
import warnings
from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.functions import col, lit
from pyspark.sql.types import IntegerType, StructField, StructType

import deltafast.spark
from deltafast.exceptions import DeltaError, InvalidArgumentError
from deltafast.spark import DeltaTable, IdentityGenerator, register_view, sql

warnings.filterwarnings("ignore", category=FutureWarning)


def session(root: pathlib.Path) -> SparkSession:
    """Start a server and connect to it."""
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.warehouse.dir", str(root / "warehouse"))
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def ids(table: DeltaTable) -> list[int]:
    """The first column, sorted."""
    return sorted(row[0] for row in table.toDF().collect())


def commands(spark, folder: str) -> None:
    """Commands take columns of Connect, and answer frames."""
    frame = spark.range(20).selectExpr("id", "concat('v', id) v", "named_struct('x', id) s")
    assert deltafast.spark.write(frame, folder) == 0
    table = DeltaTable.forPath(spark, folder)
    assert ids(table) == list(range(20))
    assert table.delete(col("id") == 3).collect()[0].num_affected_rows == 1
    table.delete((col("id") > lit(17)) & col("v").isin("v18", "v19") & col("s.x").isNotNull())
    assert ids(table) == [n for n in range(18) if n != 3]
    assert table.update("id = 1", {"v": F.concat(col("v"), lit("!"))}).collect()[0].num_affected_rows == 1
    source = spark.range(15, 25).selectExpr("id", "'m' v", "named_struct('x', id) s")
    value = F.when(col("s.id") > 16, lit("w")).otherwise(col("s.v"))
    merge = table.alias("t").merge(source.alias("s"), col("t.id") == col("s.id"))
    found = merge.whenMatchedUpdate(set={"v": value}).whenNotMatchedInsertAll().execute()
    assert [tuple(row) for row in found.collect()] == [(10, 3, 0, 7)]
    by_frames = table.merge(source, table.toDF()["id"] == source["id"])
    by_frames.whenMatchedDelete(source["id"].cast("int") == 16).execute()
    words = {row[0]: row[1] for row in table.toDF().select("id", "v").collect()}
    assert (words[1], words[15], words[17], 16 in words) == ("v1!", "m", "w", False)
    with pytest.raises(DeltaError, match="cannot be written as SQL"):
        table.delete(F.udf(lambda x: x > 1, "boolean")(col("id")))


def upkeep(spark, folder: str) -> None:
    """What is known of a table, its files and versions."""
    table = DeltaTable.forPath(spark, folder)
    assert table.optimize().executeCompaction().first().metrics.numFilesAdded == 1
    operations = [row.operation for row in table.history().collect()]
    assert operations == ["OPTIMIZE", "MERGE", "MERGE", "UPDATE", "DELETE", "DELETE", "WRITE"]
    assert table.detail().first().numFiles == deltafast.spark.files(spark, folder).count() == 1
    table.restoreToVersion(0)
    assert table.vacuum().collect() == []
    assert ids(table) == list(range(20))


def statements(spark, folder: str) -> None:
    """Statements and queries, by path and by name."""
    assert sql(spark, f"select count(*) n from delta.`{folder}` version as of 1").first().n == 19
    register_view(spark, "seen", folder)
    assert sql(spark, "delete from seen where id = 5").first().num_affected_rows == 1
    assert sql(spark, "insert into seen select 100L, 'x', named_struct('x', 1L)").first().num_inserted_rows == 1
    merged = sql(spark, "merge into seen using (select 100L id) s on seen.id = s.id when matched then delete")
    assert merged.first().num_deleted_rows == 1
    assert sql(spark, "select count(*) n from seen").first().n == 19
    assert sql(spark, "select max(id) n from seen where id < :top", {"top": 7}).first().n == 6
    assert sql(spark, f"select count(*) n from delta_files('{folder}') where num_records > 0").first().n > 0
    assert sql(spark, "select operation from delta_history('seen', 1)").first().operation == "MERGE"
    assert sql(spark, "select d.format from delta_detail('seen') d").first().format == "delta"
    made = DeltaTable.create(spark).location(f"{folder}-made").addColumn("a", "int").execute()
    assert made.toDF().columns == ["a"]
    for call in (lambda: DeltaTable.forPath(spark, f"{folder}-none"), lambda: DeltaTable.forName(spark, "none")):
        with pytest.raises(AnalysisException, match="Delta table"):
            call()


def by_executors(spark, folder: str) -> None:
    """DELETE, UPDATE and MERGE as Spark jobs, with deletion vectors and without."""
    spark.conf.set("spark.deltafast.engine", "jobs")
    for vectors in ("true", "false"):
        place = f"{folder}-jobs-{vectors}"
        properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"}
        frame = spark.range(0, 100, 1, 2).selectExpr("id", "id v", "id % 2 p")
        deltafast.spark.write(frame, place, partition_by=["p"], configuration=properties)
        table = DeltaTable.forPath(spark, place)
        assert table.delete("id < 10").collect()[0].num_affected_rows == 10
        assert table.update(col("id") % 10 == 1, {"v": col("v") + 1}).collect()[0].num_affected_rows == 9
        source = spark.range(90, 110).selectExpr("id", "-id v", "id % 2 p")
        merge = (
            table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        )
        assert [tuple(row) for row in merge.execute().collect()] == [(20, 10, 0, 10)]
        now = {n: n + (n % 10 == 1) for n in range(10, 90)} | {n: -n for n in range(90, 110)}
        assert {row.id: row.v for row in table.toDF().collect()} == now
        for way in ("paths", "arrow"):
            assert {row.id: row.v for row in deltafast.spark.read(spark, place, way=way).collect()} == now
        feed = deltafast.spark.read(spark, place, options={"readChangeFeed": True, "startingVersion": 1})
        assert {row[0]: row[1] for row in feed.groupBy("_change_type").count().collect()} == {
            "delete": 10,
            "update_preimage": 19,
            "update_postimage": 19,
            "insert": 10,
        }
    spark.conf.unset("spark.deltafast.engine")


def counted(spark, folder: str) -> None:
    """Values of identity columns, and the changes of a replacement."""
    made = DeltaTable.create(spark).location(f"{folder}-counted").property("delta.enableChangeDataFeed", "true")
    made = made.addColumn("id", "bigint").addColumn(
        "n", "bigint", generatedAlwaysAs=IdentityGenerator(start=-(2**40), step=-3)
    )
    made.execute()
    frame, place = spark.range(0, 40, 1, 4), f"{folder}-counted"
    deltafast.spark.write(frame, place, "append")
    deltafast.spark.write(
        frame.where("id > 30"), place, "overwrite", replace_where="id > 20", options={"optimizeWrite": True}
    )
    spark.conf.set("spark.deltafast.engine", "jobs")
    table = DeltaTable.forPath(spark, place)
    source = spark.range(30, 50).alias("s")
    table.alias("t").merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute()
    spark.conf.unset("spark.deltafast.engine")
    found = {row.id: row.n for row in table.toDF().collect()}
    assert sorted(found) == [*range(21), *range(30, 50)]
    assert len(set(found.values())) == len(found)
    assert all(value <= -(2**40) and (value + 2**40) % 3 == 0 for value in found.values())
    feed = deltafast.spark.read(spark, place, options={"readChangeFeed": True, "startingVersion": 2})
    told = [(row._change_type, row.id, row.n) for row in feed.collect()]
    inserted = {number: value for kind, number, value in told if kind == "insert"}
    assert inserted == {number: found[number] for number in range(30, 50)}
    assert sorted(number for kind, number, _ in told if kind == "delete") == list(range(21, 40))


def streams(spark, folder: str) -> None:
    """The format as source and as sink, and batches that the server's Python writes."""
    source, copy = f"{folder}-jobs-true", f"{folder}-copy"
    wanted = ids(DeltaTable.forPath(spark, source))
    deltafast.spark.register(spark)
    assert sorted(row.id for row in spark.read.format("deltafast").load(source).collect()) == wanted
    spark.range(5).write.format("deltafast").mode("append").save(f"{folder}-appended")
    assert ids(DeltaTable.forPath(spark, f"{folder}-appended")) == [0, 1, 2, 3, 4]
    if pyspark.__version__.startswith(("4.0", "4.1")):
        return
    rows = spark.readStream.format("deltafast").option("ignoreChanges", "true").option("maxFilesPerTrigger", 1)
    for _ in range(2):
        writer = rows.load(source).writeStream.format("deltafast").option("checkpointLocation", f"{folder}-checkpoint")
        writer.trigger(availableNow=True).start(copy).awaitTermination()
    assert ids(DeltaTable.forPath(spark, copy)) == wanted
    followed = deltafast.spark.sink(f"{folder}-followed", "follows over connect")
    options: dict[str, Any] = {"trigger": {"availableNow": True}, "ignoreChanges": True, "maxFilesPerTrigger": 1}
    for _ in range(2):
        deltafast.spark.stream(spark, source, followed, f"{folder}-followed-checkpoint", **options).awaitTermination()
    assert ids(DeltaTable.forPath(spark, f"{folder}-followed")) == wanted
    assert DeltaTable.forPath(spark, f"{folder}-followed").history().count() > 1
    sink = deltafast.spark.sink(f"{folder}-batches", "copy over connect")
    for _ in range(2):
        writer = (
            rows.load(source)
            .writeStream.foreachBatch(sink)
            .option("checkpointLocation", f"{folder}-batches-checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()
    assert ids(DeltaTable.forPath(spark, f"{folder}-batches")) == wanted


def refusals(spark, folder: str) -> None:
    """What needs the driver's Java says so."""
    with pytest.raises(InvalidArgumentError, match="way='index' needs a classic session"):
        deltafast.spark.read(spark, folder, way="index")


def enabled(spark, folder: str) -> None:
    """Programs for delta-spark as they are: paths, tables of the server's catalog, statements, Python's names."""
    deltafast.spark.enable(spark)
    from delta.connect.exceptions import ConcurrentAppendException
    from delta.exceptions import DeltaConcurrentModificationException
    from delta.tables import DeltaTable as Table

    assert issubclass(ConcurrentAppendException, DeltaConcurrentModificationException)
    path = f"{folder}-enabled"
    letters = spark.createDataFrame([("a", 1), ("b", 2)], ["key", "value"])
    letters.write.format("delta").partitionBy("value").save(path)
    with pytest.raises(AnalysisException, match="already"):
        letters.write.format("delta").save(path)
    letters.write.save(path, format="delta", mode="append")
    assert spark.read.format("delta").load(path).count() == 4
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).count() == 2
    with pytest.raises(AnalysisException, match="no Delta table"):
        spark.read.format("delta").load(f"{path}-none")
    letters.write.format("delta").saveAsTable("letters")
    with pytest.raises(AnalysisException, match="already exists"):
        letters.write.format("delta").saveAsTable("letters")
    letters.write.format("delta").mode("append").saveAsTable("letters")
    letters.write.insertInto("letters")
    assert spark.table("letters").count() == spark.read.table("letters").count() == 6
    joined = "WITH b AS (SELECT 1 n) SELECT letters.key FROM letters JOIN b ON b.n = letters.value"
    assert [row.key for row in spark.sql(joined).collect()] == ["a"] * 3
    assert Table.forName(spark, "letters").delete("key = 'a'").collect()[0].num_affected_rows == 3
    builder = Table.createOrReplace(spark).tableName("made").addColumn("n", "INT", nullable=False, comment="counted")
    fields = builder.addColumn("m", "INT", generatedAlwaysAs="n + 1").execute().toDF().schema
    assert fields == StructType(
        [
            StructField("n", IntegerType(), nullable=False, metadata={"comment": "counted"}),
            StructField("m", IntegerType()),
        ]
    )
    spark.sql("INSERT INTO made (n) VALUES (1)")
    spark.sql("ALTER TABLE made ADD COLUMNS (more STRING)")
    assert [tuple(row) for row in spark.sql("SELECT * FROM made m WHERE m.n = 1").collect()] == [(1, 2, None)]
    spark.sql("ALTER TABLE made RENAME TO renamed")
    assert spark.table("renamed").columns == ["n", "m", "more"]
    spark.sql("DROP TABLE renamed")
    write_to(spark, path)
    if not pyspark.__version__.startswith(("4.0", "4.1")):
        enabled_streams(spark, path)
    deltafast.spark.disable(spark)
    assert "delta.tables" not in sys.modules


def write_to(spark, path: str) -> None:
    """`writeTo`, of tables by name and by path."""
    rows = spark.range(4).selectExpr("id", "id % 2 p")
    for name in ("wanted", f"delta.`{path}-wanted`"):
        rows.writeTo(name).using("delta").partitionedBy("p").tableProperty("delta.appendOnly", "false").create()
        with pytest.raises(AnalysisException, match="already exists"):
            rows.writeTo(name).using("delta").create()
        spark.range(4, 6).selectExpr("0L p", "id").writeTo(name).append()
        spark.range(7, 8).selectExpr("id", "1L p").writeTo(name).overwrite(col("p") == 1)
        assert sorted(row.id for row in spark.sql(f"SELECT * FROM {name}").collect()) == [0, 2, 4, 5, 7]
        spark.range(8, 9).selectExpr("id", "0L p").writeTo(name).overwritePartitions()
        assert sorted(row.id for row in spark.sql(f"SELECT * FROM {name}").collect()) == [7, 8]
        spark.range(3).writeTo(name).using("delta").createOrReplace()
        assert spark.sql(f"SELECT * FROM {name}").columns == ["id"]


def enabled_streams(spark, path: str) -> None:
    """Streams by the name that programs for delta-spark give."""
    spark.range(6).selectExpr("id", "id % 2 p").write.format("delta").saveAsTable("followed")
    wanted = [(number, number % 2) for number in range(6)]
    for _ in range(2):
        rows = spark.readStream.table("followed")
        writer = rows.writeStream.format("delta").partitionBy("p").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{path}-checkpoint").start(f"{path}-copy").awaitTermination()
    assert sorted(map(tuple, spark.read.format("delta").load(f"{path}-copy").collect())) == wanted
    assert DeltaTable.forPath(spark, f"{path}-copy").detail().collect()[0].partitionColumns == ["p"]
    for n in range(2):
        rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{path}-copy")
        writer = rows.writeStream.option("checkpointLocation", f"{path}-checkpoint-{n}").trigger(availableNow=True)
        writer.toTable("copied", format="delta", partitionBy="p").awaitTermination()
    assert sorted(map(tuple, spark.table("copied").collect())) == sorted(wanted * 2)


def main(root: pathlib.Path) -> None:
    """Run everything."""
    spark = session(root)
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    for part in (commands, upkeep, statements, by_executors, counted, streams, refusals, enabled):
        part(spark, str(root / "t"))
    spark.stop()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
    sys.stdout.write(f"on PySpark {pyspark.__version__}: all is well\n")
