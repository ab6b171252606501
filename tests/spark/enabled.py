"""A program that was written for delta-spark, in a session that has no jar of Delta's."""

from __future__ import annotations

import json
import pathlib
import re
import sys
import threading
import warnings
from datetime import datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, UnsupportedOperationException
from pyspark.sql import DataFrameWriter, SparkSession, functions
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import CommitFailedError
from deltafast.spark import exceptions, provider, snapshot

warnings.filterwarnings("ignore", category=FutureWarning)

EXTENSION, CATALOG = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def session(root: pathlib.Path) -> SparkSession:
    """Start Spark, with the settings of a program for delta-spark, whose classes are nowhere."""
    builder = SparkSession.builder.master("local[2]").config("spark.sql.extensions", EXTENSION)
    builder = builder.config("spark.sql.catalog.spark_catalog", CATALOG)
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.log.level", "OFF")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.session.timeZone", "America/St_Johns").config("spark.sql.shuffle.partitions", 1)
    return builder.config("spark.sql.warehouse.dir", str(root / "warehouse")).getOrCreate()


def ids(frame) -> list[int]:
    """The first column, sorted."""
    return sorted(row[0] for row in frame.collect())


def frames_follow(spark, root: pathlib.Path) -> None:
    """Frames and views that are kept see what is written later, those of one version do not."""
    path = str(root / "followed")
    rows = spark.range(10).selectExpr("id", "id % 2 p")
    rows.write.format("delta").partitionBy("p").option("delta.enableDeletionVectors", "true").save(path)
    kept, pinned = spark.read.format("delta").load(path), deltafast.spark.read(spark, path)
    old = spark.read.format("delta").option("versionAsOf", 0).load(path)
    kept.createOrReplaceTempView("followed")
    from delta.tables import DeltaTable as Tables

    table = Tables.forPath(spark, path)
    frame = table.toDF()

    def now() -> list[int]:
        counts = {kept.count(), frame.count(), spark.table("followed").count()}
        found = ids(kept.where("id >= 0"))
        assert counts == {len(found)}
        assert ids(frame.where("id >= 0")) == ids(spark.sql("SELECT id FROM followed WHERE p IN (0, 1)")) == found
        assert spark.sql("SELECT 1 FROM followed a JOIN followed b ON a.id = b.id").count() == len(found)
        return found

    assert now() == list(range(10))
    # Many files are not listed before a query asks for them.
    for many in (snapshot.MANY, 1):
        snapshot.MANY, before = many, snapshot.MANY
        try:
            start = 10 if many > 1 else 20
            rows.selectExpr(f"id + {start} id", "p").write.format("delta").mode("append").save(path)
            assert now()[-1] == start + 9
            table.delete(f"id = {start}")
            table.update(f"id = {start + 1}", {"id": f"{start}"})
            assert now() == [*range(start + 1), *range(start + 2, start + 10)] if many > 1 else len(now()) == 28
        finally:
            snapshot.MANY = before
    spark.range(99, 100).selectExpr("id", "id % 2 p", "'x' more").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(path)
    assert kept.columns == ["id", "p"]
    assert len(now()) == 29
    assert kept.inputFiles() == frame.inputFiles() != old.inputFiles()
    spark.range(3).write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    for gone in (kept, spark.table("followed")):
        with pytest.raises(AnalysisException, match="make it anew"):
            gone.where("id >= 0").collect()
    assert ids(pinned.where("id >= 0")) == ids(old.where("id >= 0")) == list(range(10))


def by_path(spark, root: pathlib.Path) -> None:
    """What programs do with paths."""
    path = str(root / "t")
    load = spark.read.format("delta").load
    with pytest.raises(AnalysisException, match="no Delta table"):
        load(path)
    spark.range(10).selectExpr("id", "id % 2 p").write.format("delta").partitionBy("p").save(path)
    with pytest.raises(AnalysisException, match="already"):
        spark.range(1).write.format("delta").save(path)
    spark.range(3).write.format("delta").mode("ignore").save(path)
    more = spark.range(10, 12).selectExpr("id", "id % 2 p", "'x' more").write.format("delta").mode("append")
    with pytest.raises(AnalysisException, match="more"):
        more.save(path)
    more.option("mergeSchema", "true").option("userMetadata", "mine").save(path)
    assert DeltaTable(path).history()[0]["userMetadata"] == "mine"
    assert DeltaTable(path).metadata().partition_columns == ["p"]
    frame = load(path)
    assert ids(frame) == list(range(12))
    plan = frame.where("id > 10")._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    assert "GreaterThan(id,10)" in plan
    rows = spark.range(70, 72).selectExpr("id", "1L p")
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "p = 1").save(path)
    assert ids(load(path)) == [0, 2, 4, 6, 8, 10, 70, 71]
    assert ids(spark.read.format("delta").option("versionAsOf", 0).load(path)) == list(range(10))
    assert ids(spark.read.format("delta").load(f"{path}@v1")) == list(range(12))
    with pytest.raises(AnalysisException, match="VersionNotFound"):
        spark.read.format("delta").option("versionAsOf", 9).load(path)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(load(path).count()))
    thread.start()
    thread.join()
    assert seen == [8]


def as_the_writer_says(spark, root: pathlib.Path) -> None:
    """What `save` takes literally: partitions of a table that is replaced, types, properties of a new table."""
    path = str(root / "literal")
    rows = spark.range(6).selectExpr("cast(id as int) id", "id % 3 p", "cast(id as string) s")

    def to(mode: str, frame=rows, **options: str) -> DataFrameWriter:
        return frame.write.format("delta").mode(mode).options(**options)

    def known() -> tuple[list[str], dict[str, str]]:
        metadata = DeltaTable(path).metadata()
        return metadata.partition_columns, metadata.configuration

    made = {"delta.checkpointInterval": "7", "foo": "x"}
    to("error", **made).partitionBy("p").save(path)
    assert known() == (["p"], {"delta.checkpointInterval": "7"})
    to("append", **{"delta.checkpointInterval": "8"}).save(path)
    to("overwrite").save(path)
    assert known() == (["p"], {"delta.checkpointInterval": "7"})
    with pytest.raises(AnalysisException, match="does not match table partitioning"):
        to("overwrite").partitionBy("s").save(path)
    to("overwrite", overwriteSchema="true").partitionBy("s").save(path)
    assert known()[0] == ["s"]
    to("overwrite", rows.drop("s"), overwriteSchema="true", **{"delta.checkpointInterval": "9"}).save(path)
    assert known() == ([], {"delta.checkpointInterval": "7"})
    for kind in ("byte", "short"):
        to("append", rows.selectExpr(f"cast(id as {kind}) id", "p")).save(path)
    for wrong in ("cast(id as long) id", "s id", "true id", "cast(id as float) id"):
        for options in ({}, {"mergeSchema": "true"}):
            with pytest.raises(AnalysisException, match="DELTA_FAILED_TO_MERGE_FIELDS"):
                to("append", rows.selectExpr(wrong), **options).save(path)
    spark.sql(f"CREATE TABLE literal USING delta LOCATION '{path}'")
    to("append", rows.selectExpr("cast(id as long) id", "p")).saveAsTable("literal")
    assert spark.table("literal").count() == 24
    to("overwrite", overwriteSchema="true").partitionBy("p").saveAsTable("literal")
    to("overwrite", rows.drop("p"), overwriteSchema="true").saveAsTable("literal")
    assert known()[0] == []
    spark.sql("DROP TABLE literal")
    # Properties that the session wants new tables to have, however they are made.
    setting = "spark.databricks.delta.properties.defaults.appendOnly"
    spark.conf.set(setting, "true")
    spark.sql(f"CREATE TABLE delta.`{path}1` (id BIGINT) USING delta")
    builder = deltafast.spark.DeltaTable.create(spark).location(f"{path}2").addColumn("id", "BIGINT")
    builder.execute()
    to("error", **{"delta.appendOnly": "false"}).save(f"{path}3")
    spark.conf.unset(setting)
    said = [DeltaTable(f"{path}{number}").metadata().configuration["delta.appendOnly"] for number in (1, 2, 3)]
    assert said == ["true", "true", "false"]


def what_is_refused(spark, root: pathlib.Path) -> None:
    """What a table cannot be told is refused, not passed over; layouts are taken."""
    path, name = str(root / "refused"), "refused"
    rows = spark.range(3).selectExpr("id", "id * 2 v")
    rows.write.format("delta").clusterBy("id").saveAsTable(name)
    detail = deltafast.spark.DeltaTable.forName(spark, name).detail().first()
    assert detail.clusteringColumns == ["id"]
    assert detail.name == spark.sql(f"DESCRIBE DETAIL {name}").first().name == f"spark_catalog.default.{name}"
    rows.write.format("delta").clusterBy("v").save(path)
    detail = deltafast.spark.DeltaTable.forPath(spark, path).detail().first()
    assert (detail.clusteringColumns, detail.name) == (["v"], None)
    if hasattr(rows.writeTo(name), "clusterBy"):
        rows.writeTo("clustered").using("delta").clusterBy("v").create()
        assert deltafast.spark.DeltaTable.forName(spark, "clustered").detail().first().clusteringColumns == ["v"]
    with pytest.raises(AnalysisException, match="bucketBy"):
        rows.write.format("delta").bucketBy(2, "id").saveAsTable("buckets")
    read = spark.read.format("delta")
    assert read.schema("id bigint, v bigint").load(path).count() == 3
    streamed = spark.readStream.format("delta")
    for reader in (spark.read.format("delta"), streamed):
        with pytest.raises(UnsupportedOperationException, match="does not support user-specified schema"):
            reader.schema("zz bigint").load(path)
    odd = spark.range(1).toDF("a b")
    more = spark.sql("SELECT 1L id, named_struct('x=y', 1) s").write.format("delta").mode("append")
    for wrong in (
        lambda: odd.write.format("delta").save(f"{path}2"),
        lambda: odd.write.format("delta").saveAsTable("odd"),
        lambda: odd.writeTo("odd").using("delta").create(),
        lambda: spark.sql("CREATE TABLE odd (`a;b` INT) USING delta"),
        lambda: odd.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path),
        lambda: more.option("mergeSchema", "true").save(path),
        lambda: spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (`a b` INT)"),
        lambda: spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (s STRUCT<`x,y`: INT>)"),
    ):
        with pytest.raises(AnalysisException, match="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"):
            wrong()
    odd.write.format("delta").option("delta.columnMapping.mode", "name").save(f"{path}2")
    assert spark.read.format("delta").load(f"{path}2").columns == ["a b"]
    # What others made that way is written on.
    write_deltalake(f"{path}3", pa.table({"a b": pa.array([1], pa.int64())}))
    odd.write.format("delta").mode("append").save(f"{path}3")
    assert ids(spark.read.format("delta").load(f"{path}3")) == [0, 1]
    writer = spark.readStream.format("rate").load().writeStream.format("delta")
    for start in (lambda: writer.start(f"{path}4"), lambda: writer.toTable("streamed")):
        with pytest.raises(AnalysisException, match="checkpointLocation must be specified"):
            start()
    assert not spark.catalog.tableExists("streamed")


def exceptions_are_sparks(spark, root: pathlib.Path) -> None:
    """What a table or a feed refuses is PySpark's exception, whichever way was taken."""
    path = str(root / "warehouse" / "strict")
    spark.sql("CREATE TABLE strict (id BIGINT NOT NULL, v BIGINT) USING delta")
    spark.sql("ALTER TABLE strict ADD CONSTRAINT positive CHECK (v > 0)")
    for wrong, words in (("1L id, -1L v", "positive"), ("null id, 1L v", "NOT NULL"), ("1L id, 1L v, 3 x", "column")):
        writer = spark.sql(f"SELECT {wrong}").write.format("delta").mode("append")
        for write in (
            lambda writer=writer: writer.saveAsTable("strict"),
            lambda writer=writer: writer.save(path),
            lambda writer=writer: writer.insertInto("strict"),
            lambda wrong=wrong: spark.sql(f"INSERT INTO strict SELECT {wrong}"),
        ):
            with pytest.raises(AnalysisException, match=words):
                write()
    spark.sql("INSERT INTO strict VALUES (1, 1)")
    with pytest.raises(AnalysisException, match="positive"):
        spark.sql("UPDATE strict SET v = -1")
    with pytest.raises(AnalysisException, match="DELTA_MISSING_CHANGE_DATA"):
        spark.sql("SELECT * FROM table_changes('strict', 0)")
    with pytest.raises(AnalysisException, match="versionAsOf must be the number of a version"):
        spark.read.format("delta").option("versionAsOf", "x").load(path)
    table = deltafast.spark.DeltaTable.forName(spark, "strict")
    newest = DeltaTable(path).version()
    files = DeltaTable(path).file_uris()
    table.delete()
    for file in files:
        pathlib.Path(file).unlink()
    with pytest.raises(IllegalArgumentException, match=r"parquet"):
        table.restoreToVersion(newest)
    spark.sql("DROP TABLE strict")


def special_tables(spark, root: pathlib.Path) -> None:
    """Tables that are more than files: deletion vectors, other names of columns, a change feed."""
    path = str(root / "special")
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableChangeDataFeed": "true",
    }
    frame = spark.range(0, 20, 1, 2).selectExpr(
        "id", "named_struct('x', id) s", "timestamp_micros(id * 1000000) at", "cast(id as decimal(10, 2)) d", "id % 2 p"
    )
    deltafast.spark.write(frame, path, partition_by=["p"], configuration=properties)
    DeltaTable(path).delete("id = 3 or id = 4")
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    assert sorted((row["id"], row["_change_type"]) for row in feed.collect()) == [(3, "delete"), (4, "delete")]
    DeltaTable(path).alter.rename_column("d", "dec")
    found = spark.read.format("delta").load(path)
    expected = [n for n in range(20) if n not in (3, 4)]
    assert ids(found) == expected
    assert ids(found.where("dec = 5 or (id in (6, 7, 3) and p = 0)")) == [5, 6]
    assert ids(found.where("s.x > 17 and at > timestamp'1969-12-31 20:30:17'")) == [18, 19]
    assert found.groupBy("p").count().orderBy("p").collect() == [(0, 9), (1, 9)]
    assert found.select("p", "s", "id").where("s is not null and id = 19").collect() == [(1, (19,), 19)]
    spark.sql(f"CREATE TEMP VIEW special USING delta OPTIONS (path '{path}')")
    found = spark.table("special")
    assert ids(found) == expected
    assert ids(found.where("dec = 5 or (id in (6, 7, 3) and p = 0)")) == [5, 6]
    assert ids(found.where("s.x > 17 and at > timestamp'1969-12-31 20:30:17'")) == [18, 19]
    assert ids(found.where("at = timestamp_micros(7000000) or dec is null or p < 0")) == [7]
    assert found.groupBy("p").count().orderBy("p").collect() == [(0, 9), (1, 9)]
    assert found.select("p", "s", "id").where("s is not null and id = 19").collect() == [(1, (19,), 19)]


def by_sql(spark, root: pathlib.Path) -> None:
    """Views, tables of the catalog, and paths in SQL."""
    path = str(root / "t")
    spark.sql(f"CREATE TEMP VIEW v USING delta OPTIONS (path '{path}', versionAsOf '0')")
    assert spark.sql("SELECT count(*) FROM v WHERE id > 3").collect() == [(6,)]
    spark.sql(f"CREATE TABLE c USING delta LOCATION '{path}'")
    assert ids(spark.table("c")) == [0, 2, 4, 6, 8, 10, 70, 71]
    plan = spark.table("c").where("id > 10")._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    assert "GreaterThan(id,10)" in plan
    for text, is_batches in (("SELECT id, more, p FROM c", False), ("SELECT * FROM c WHERE id > 10", True)):
        plan = spark.sql(text)._jdf.queryExecution().executedPlan().toString()
        assert f"Batched: {str(is_batches).lower()}" in plan, plan
    # Somebody else's commit is seen.
    DeltaTable(path).delete("id > 8")
    assert ids(spark.sql("SELECT id FROM c")) == ids(spark.read.table("c")) == [0, 2, 4, 6, 8]
    spark.range(1).selectExpr("9L id", "1L p", "null more").write.insertInto("c")
    assert ids(spark.table("c")) == [0, 2, 4, 6, 8, 9]


def by_name(spark, root: pathlib.Path) -> None:
    """Tables that the catalog keeps."""
    frame = spark.range(5).selectExpr("id", "id % 2 p")
    frame.write.format("delta").partitionBy("p").saveAsTable("managed")
    folder = str(root / "warehouse" / "managed")
    assert DeltaTable(folder).metadata().partition_columns == ["p"]
    with pytest.raises(AnalysisException):
        frame.write.saveAsTable("managed", format="delta")
    frame.selectExpr("id + 5 id", "p", "'w' word").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).saveAsTable("managed")
    assert ids(spark.table("managed")) == list(range(10))
    assert spark.table("managed").columns == ["id", "p", "word"]
    frame.selectExpr("id + 90 id", "p", "'w' word").write.saveAsTable("managed", format="delta", mode="overwrite")
    assert ids(spark.table("managed")) == [90, 91, 92, 93, 94]
    assert DeltaTable(folder).version() == 2
    spark.range(3).write.saveAsTable("plain")
    assert ids(spark.table("plain")) == [0, 1, 2]
    spark.sql("DROP TABLE managed")
    assert not pathlib.Path(folder).exists()


def by_deltas_names(spark, root: pathlib.Path) -> None:
    """The Python API and SQL of delta-spark."""
    from delta import configure_spark_with_delta_pip
    from delta.exceptions import DeltaConcurrentModificationException
    from delta.tables import DeltaTable as Table

    assert issubclass(DeltaConcurrentModificationException, Exception)
    builder = SparkSession.builder
    assert configure_spark_with_delta_pip(builder) is builder
    path = str(root / "letters")
    letters = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3)], ["key", "value"])
    letters.write.format("delta").save(path)
    Table.forPath(spark, path).delete("key = 'a'")
    assert sorted(map(tuple, Table.forPath(spark, path).toDF().collect())) == [("b", 2), ("c", 3)]
    assert Table.isDeltaTable(spark, path)
    assert not Table.isDeltaTable(spark, str(root))
    letters.write.format("delta").saveAsTable("letters")
    table = Table.forName(spark, "letters")
    source = spark.createDataFrame([("a", -1), ("e", 5)], ["k", "v"])
    merge = table.merge(source, "key = k").whenMatchedUpdate(set={"value": "v"})
    merge.whenNotMatchedInsert(values={"key": "k", "value": "v"}).execute()
    assert sorted(map(tuple, spark.table("letters").collect())) == [("a", -1), ("b", 2), ("c", 3), ("e", 5)]
    spark.range(5).write.parquet(str(root / "parquet"))
    Table.convertToDelta(spark, f"parquet.`{root}/parquet`")
    assert spark.read.format("delta").load(str(root / "parquet")).count() == 5
    spark.sql("CREATE TABLE made (a INT, b STRING) USING delta PARTITIONED BY (b)")
    spark.sql("INSERT INTO made VALUES (1, 'x'), (2, 'y')")
    spark.sql("UPDATE made SET a = a + 10 WHERE b = 'x'")
    assert ids(spark.table("made")) == [2, 11]
    assert ids(spark.sql("SELECT * FROM made VERSION AS OF 1")) == [1, 2]
    assert ids(spark.sql(f"SELECT value FROM delta.`{path}` WHERE value > 2")) == [3]
    assert [row.operation for row in spark.sql("DESCRIBE HISTORY made").collect()] == [
        "UPDATE",
        "WRITE",
        "CREATE TABLE",
    ]
    Table.create(spark).tableName("built").addColumn("x", "INT").addColumn("y", "INT").partitionedBy("x").execute()
    assert Table.forName(spark, "built").detail().collect()[0].partitionColumns == ["x"]
    for name in ("made", "built"):
        spark.sql(f"DROP TABLE {name}")
        assert not (root / "warehouse" / name).exists()
    spark.sql("CREATE TABLE made (c INT) USING delta")
    assert spark.table("made").columns == ["c"]
    # What was given a place stays there.
    spark.sql(f"CREATE TABLE placed (c INT) USING delta LOCATION '{root}/placed'")
    spark.sql("DROP TABLE placed")
    assert DeltaTable(str(root / "placed")).version() == 0
    spark.range(3).writeTo("written").using("delta").create()
    assert ids(spark.table("written")) == [0, 1, 2]
    assert DeltaTable(str(root / "warehouse" / "written")).version() == 0


def paths_in_sparks_sql(spark, root: pathlib.Path) -> None:
    """``delta.`path` `` in statements of Spark's own, and as a name in its API."""
    path = str(root / "named")
    name = f"delta.`{path}`"
    spark.range(5).write.format("delta").saveAsTable(name)
    assert spark.catalog.tableExists(name)
    assert not spark.catalog.tableExists(f"delta.`{path}nowhere`")
    spark.sql(f"CREATE VIEW lasting AS SELECT id FROM {name}")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW short AS WITH q AS (SELECT * FROM {name} WHERE id > 2) SELECT * FROM q")
    spark.range(5, 6).write.insertInto(name)
    spark.range(6, 7).write.format("delta").mode("append").saveAsTable(name)
    assert (
        ids(spark.table(name)) == ids(spark.read.table(name)) == ids(spark.sql("SELECT * FROM lasting")) == [*range(7)]
    )
    assert ids(spark.table("short")) == [3, 4, 5, 6]
    spark.sql(f"CREATE TABLE of_parquet USING parquet AS SELECT * FROM {name} VERSION AS OF 0")
    spark.sql(f"INSERT INTO of_parquet SELECT `{path}`.id + 10 FROM {name} WHERE `{path}`.id > 4")
    assert ids(spark.table("of_parquet")) == [0, 1, 2, 3, 4, 15, 16]
    spark.sql(f"CACHE TABLE kept AS SELECT * FROM {name}")
    assert ids(spark.table("kept")) == ids(spark.sql(f"TABLE {name}")) == [*range(7)]
    assert "FileScan parquet" in spark.sql(f"EXPLAIN SELECT * FROM {name}").first()[0]
    assert spark.sql(f"SELECT `{path}`.id FROM {name} WHERE `{path}`.id = 4").collect() == [(4,)]
    with pytest.raises(AnalysisException, match="no Delta table"):
        spark.sql(f"CREATE TEMP VIEW none AS SELECT * FROM delta.`{path}nowhere`")
    # As in delta-spark: no catalog has it, and the files stay.
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE has_path USING delta LOCATION '{path}'")
    assert ids(spark.read.format("delta").option("versionAsOf", 0).table("has_path")) == [*range(5)]
    spark.sql("CREATE VIEW at_first AS SELECT * FROM has_path VERSION AS OF 0")
    assert ids(spark.table("at_first")) == [*range(5)]
    other = spark.newSession()
    assert other.sql(f"SELECT id FROM {name}").count() == other.read.format("delta").load(path).count() == 7


def frames_in_statements(spark, root: pathlib.Path) -> None:
    """Frames, values and parameters of statements."""
    path = str(root / "given")
    spark.range(3).write.format("delta").save(path)
    spark.sql(f"CREATE TABLE given USING delta LOCATION '{path}'")
    source = spark.range(2, 5)
    merge = "MERGE INTO given t USING {source} s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    spark.sql(merge, source=source)
    assert ids(spark.table("given")) == [0, 1, 3, 4]
    spark.sql("INSERT INTO given SELECT id + {more} FROM {source} WHERE id > 3", source=source, more=10)
    assert ids(spark.sql("SELECT * FROM {t} WHERE id > {least}", t=spark.table("given"), least=3)) == [4, 14]
    assert ids(spark.sql(f"SELECT * FROM delta.`{path}` WHERE id > :least", {"least": 3})) == [4, 14]
    spark.sql("DELETE FROM given WHERE id = :gone /* :id */", {"gone": 4})
    spark.sql("UPDATE given SET id = ? WHERE id = ?", [7, 14])
    assert ids(spark.table("given")) == [0, 1, 3, 7]
    spark.sql("UPDATE given SET id = (SELECT max(id) + 1 FROM given) WHERE id = 0")
    moments = str(root / "moments")
    spark.sql("SELECT TIMESTAMP'2024-07-01 10:00:00' a, TIMESTAMP_NTZ'2024-07-01 10:00:00' b").write.format(
        "delta"
    ).save(moments)
    for name in ("a", "b"):
        spark.sql(
            f"UPDATE delta.`{moments}` SET {name} = (SELECT max({name}) + INTERVAL '1' HOUR FROM delta.`{moments}`)"
        )
    moment = datetime(2024, 7, 1, 11, tzinfo=ZoneInfo("America/St_Johns"))
    spark.sql(
        f"UPDATE delta.`{moments}` SET a = :at WHERE a <> :at", args={"at": moment.astimezone().replace(tzinfo=None)}
    )
    shown = spark.read.format("delta").load(moments).selectExpr("CAST(a AS STRING)", "CAST(b AS STRING)").first()
    assert tuple(shown) == ("2024-07-01 11:00:00",) * 2
    assert ids(spark.table("given")) == [1, 3, 7, 8]
    for statement in ("DELETE FROM given", "UPDATE given SET id = 1"):
        with pytest.raises(AnalysisException, match="subqueries are not supported in the condition"):
            spark.sql(f"{statement} WHERE id IN (SELECT id FROM given)")
    assert not [table for table in spark.catalog.listTables() if table.name.startswith("_pyspark")]


def several_inserts(spark, root: pathlib.Path) -> None:
    """One statement with several INSERTs, and EXPLAIN of changes, which runs nothing."""
    one, two = str(root / "one"), str(root / "two")
    for path in (one, two):
        spark.range(2).write.format("delta").save(path)
    spark.sql(f"CREATE TABLE one USING delta LOCATION '{one}'")
    spark.sql("CREATE TABLE pairs (id BIGINT, s STRING) USING delta")
    spark.sql("CREATE TABLE parquets (id BIGINT) USING parquet")
    spark.sql(
        f"FROM delta.`{one}` INSERT INTO delta.`{two}` SELECT id + 10 INSERT OVERWRITE one SELECT id WHERE id > 0"
    )
    assert ids(spark.table("one")) == [1]
    assert ids(spark.read.format("delta").load(two)) == [0, 1, 10, 11]
    # As in delta-spark the second one sees what the first one wrote.
    spark.sql(
        "WITH w AS (SELECT * FROM one) FROM w INSERT INTO one SELECT id + 1 INSERT INTO pairs (s, id) SELECT 's', id"
    )
    assert sorted(map(tuple, spark.table("pairs").collect())) == [(1, "s"), (2, "s")]
    spark.sql(
        "FROM one INSERT INTO parquets SELECT id INSERT INTO pairs SELECT id, :s WHERE id > :n", {"s": "t", "n": 1}
    )
    assert ids(spark.table("parquets")) == [1, 2]
    assert ids(spark.table("pairs").where("s = 't'")) == [2]
    with pytest.raises(AnalysisException):
        spark.sql("FROM one INSERT INTO pairs SELECT id INSERT INTO one SELECT id")
    for path in (one, two):
        files = {str(file) for file in pathlib.Path(path).rglob("*.parquet")}
        assert {DeltaTable(path).version(), len(files)} == ({2, 4} if path == one else {1, 4})
    for changed in (
        "DELETE FROM {t} WHERE id = 1",
        "UPDATE {t} SET id = 7",
        "MERGE INTO {t} t USING (SELECT 1L id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO {t} SELECT 5L",
        "INSERT OVERWRITE {t} VALUES (5)",
        "FROM range(3) INSERT INTO {t} SELECT id INSERT INTO pairs SELECT id, 'x'",
    ):
        for name in ("one", f"delta.`{one}`"):
            for mode in ("", "EXTENDED ", "FORMATTED "):
                plan = spark.sql(f"EXPLAIN {mode}{changed.format(t=name)}").first().plan
                assert f"of deltafast: file:{one}, version 2" in plan
                assert ("Project" in plan or "Scan" in plan or "Range" in plan) == ("SELECT" in changed)
    with pytest.raises(AnalysisException, match="expected"):
        spark.sql(f"EXPLAIN DELETE FORM delta.`{one}`")
    assert "== Physical Plan ==" in spark.sql(f"EXPLAIN SELECT * FROM delta.`{one}` WHERE 'delete' = 'x'").first().plan
    assert "parquets" in spark.sql("EXPLAIN INSERT INTO parquets SELECT 1L").first().plan
    assert ids(spark.table("one")) == [1, 2]
    assert DeltaTable(one).version() == 2
    # Rows that are appended replace none, whatever the writer is told.
    spark.range(5, 6).write.format("delta").mode("append").option("replaceWhere", "id = 1").save(one)
    spark.range(6, 7).write.option("replaceWhere", "id = 1").format("delta").mode("append").saveAsTable("one")
    assert ids(spark.table("one")) == [1, 2, 5, 6]
    for name in ("one", "pairs", "parquets"):
        spark.sql(f"DROP TABLE {name}")


def views_of_tables(spark, root: pathlib.Path) -> None:
    """Temporary views that show a table are changed as the table is."""
    path = str(root / "seen")
    spark.range(3).write.format("delta").save(path)
    spark.read.format("delta").load(path).createOrReplaceTempView("loaded")
    spark.sql(f"CREATE TEMP VIEW of_options USING delta OPTIONS (path '{path}')")
    spark.sql(f"CREATE TEMP VIEW selected AS SELECT * FROM delta.`{path}`")
    names = ("loaded", "of_options", "selected")
    for number, name in enumerate(names):
        spark.sql(f"INSERT INTO {name} VALUES (10)")
        spark.range(11, 12).write.insertInto(name)
        spark.sql(f"UPDATE {name} SET id = 20 WHERE id = 10")
        spark.sql(f"DELETE FROM {name} WHERE id = {number}")
        merge = f"MERGE INTO {name} t USING (SELECT 30L id) s ON t.id = s.id"
        spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")
        now = ids(spark.read.format("delta").load(path))
        assert [ids(spark.table(name)) for name in names] == [now, now, now]
    deltafast.DeltaTable(path).delete("id = 30")
    assert [ids(spark.table(name)) for name in names] == [[11, 11, 11, 20, 20, 20]] * 3
    assert ids(spark.read.format("delta").load(path)) == [11, 11, 11, 20, 20, 20]
    spark.sql(f"CREATE TEMP VIEW part AS SELECT * FROM delta.`{path}` WHERE id > 11")
    for statement in ("DELETE FROM part", "UPDATE part SET id = 1"):
        with pytest.raises(AnalysisException, match="does not show the whole of one Delta table"):
            spark.sql(statement)
    spark.sql("INSERT OVERWRITE loaded VALUES (9)")
    assert ids(spark.table("loaded")) == [9]


def made_of_others(spark, root: pathlib.Path) -> None:
    """Tables of the catalog that are made of what is there."""
    from delta.tables import DeltaTable as Table

    path = str(root / "there")
    spark.range(3).write.format("delta").save(path)
    spark.sql(f"CREATE TABLE there (id BIGINT) USING delta LOCATION '{path}'")
    assert ids(spark.table("there")) == [0, 1, 2]
    with pytest.raises(AnalysisException, match="does not match the existing schema"):
        spark.sql(f"CREATE TABLE unlike (id INT) USING delta LOCATION '{path}'")
    spark.sql(
        f"CREATE EXTERNAL TABLE outside (a INT, b STRING) USING delta PARTITIONED BY (b) LOCATION '{root}/outside'"
    )
    spark.sql("CREATE TABLE alike LIKE outside")
    spark.sql("INSERT INTO alike VALUES (1, 'x')")
    assert spark.sql("SELECT a, b FROM alike").collect() == [(1, "x")]
    assert DeltaTable(str(root / "warehouse" / "alike")).metadata().partition_columns == ["b"]
    spark.sql("CREATE TABLE old (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql("INSERT INTO old SELECT id, 1 FROM range(3)")
    spark.sql("CONVERT TO DELTA old")
    spark.sql("INSERT INTO old VALUES (7, 2)")
    spark.sql("DELETE FROM old WHERE id = 0")
    assert sorted(map(tuple, spark.table("old").collect())) == [(1, 1), (2, 1), (7, 2)]
    spark.sql("CREATE TABLE older USING parquet AS SELECT 1 a")
    assert Table.convertToDelta(spark, "older").toDF().collect() == [(1,)]
    spark.sql("DROP TABLE older")
    assert not (root / "warehouse" / "older").exists()
    spark.conf.set("spark.sql.sources.default", "delta")
    spark.sql("CREATE TABLE usual (a INT)")
    spark.conf.unset("spark.sql.sources.default")
    spark.catalog.createTable("by_catalog", schema=StructType([StructField("a", IntegerType())]), source="delta")
    for name in ("usual", "by_catalog"):
        spark.sql(f"INSERT INTO {name} VALUES (1)")
        assert spark.sql(f"DESCRIBE HISTORY {name}").count() == 2


def write_to(spark, root: pathlib.Path) -> None:
    """`writeTo`, of tables by name and by path."""
    rows = spark.range(4).selectExpr("id", "id % 2 p")
    for name, folder in (("wanted", root / "warehouse" / "wanted"), (f"delta.`{root}/wanted`", root / "wanted")):
        made = rows.writeTo(name).using("delta").partitionedBy(functions.col("p"))
        made.tableProperty("delta.enableChangeDataFeed", "true").option("delta.checkpointInterval", "7").create()
        with pytest.raises(AnalysisException, match="already exists"):
            rows.writeTo(name).using("delta").create()
        table = DeltaTable(str(folder))
        assert table.metadata().partition_columns == ["p"]
        assert table.metadata().configuration["delta.enableChangeDataFeed"] == "true"
        assert table.metadata().configuration["delta.checkpointInterval"] == "7"
        spark.range(4, 6).selectExpr("0L p", "id").writeTo(name).append()
        with pytest.raises(AnalysisException, match="more"):
            rows.selectExpr("*", "'x' more").writeTo(name).append()
        rows.limit(0).selectExpr("*", "'x' more").writeTo(name).option("mergeSchema", "true").append()
        assert ids(spark.sql(f"SELECT * FROM {name}")) == [0, 1, 2, 3, 4, 5]
        spark.range(7, 8).selectExpr("id", "1L p").writeTo(name).overwrite(functions.col("p") == 1)
        assert ids(spark.sql(f"SELECT * FROM {name}")) == [0, 2, 4, 5, 7]
        spark.range(8, 9).selectExpr("id", "0L p").writeTo(name).overwritePartitions()
        assert ids(spark.sql(f"SELECT * FROM {name}")) == [7, 8]
        spark.range(2).writeTo(name).using("delta").replace()
        spark.range(3).writeTo(name).using("delta").createOrReplace()
        assert DeltaTable(str(folder)).schema().to_arrow().names == ["id"]
        assert ids(spark.sql(f"SELECT * FROM {name}")) == [0, 1, 2]
    with pytest.raises(AnalysisException, match="cannot be found"):
        rows.writeTo("unheard").using("delta").replace()
    spark.range(1).write.saveAsTable("bare")
    with pytest.raises(AnalysisException, match="of the format parquet"):
        rows.writeTo("bare").using("delta").create()
    rows.writeTo("bare_too").using("parquet").create()
    assert not DeltaTable.is_deltatable(str(root / "warehouse" / "bare_too"))
    spark.sql("DROP TABLE wanted")
    assert not (root / "warehouse" / "wanted").exists()


def what_programs_look_for(spark) -> None:
    """Schemas with nulls and comments, words of errors, and a log without lines for names that are not there."""
    from delta.tables import DeltaTable as Table

    builder = Table.createOrReplace(spark).tableName("sensors").comment("readings").property("owner", "me")
    builder = builder.addColumn("day", "INT", nullable=False, comment="since 1970").addColumn("level", "BIGINT")
    table = builder.addColumn("next", "INT", generatedAlwaysAs="day + 1").partitionedBy("day").execute()
    expected = StructType(
        [
            StructField("day", IntegerType(), nullable=False, metadata={"comment": "since 1970"}),
            StructField("level", LongType()),
            StructField("next", IntegerType()),
        ]
    )
    assert table.toDF().schema == spark.read.table("sensors").schema == expected
    for day in (1, 2, 2):
        spark.sql(f"INSERT INTO sensors (day, level) VALUES ({day}, {day * 10})")
    assert sorted(map(tuple, table.toDF().collect())) == [(1, 10, 2), (2, 20, 3), (2, 20, 3)]
    words = "Predicate references non-partition column 'level'. Only the partition columns may be referenced: [day]"
    with pytest.raises(AnalysisException, match=re.escape(words)):
        table.optimize().where("level = 10").executeCompaction()
    with pytest.raises(
        AnalysisException, match=r"day is a partition column\. Z-Ordering can only be performed on data columns"
    ):
        table.optimize().executeZOrderBy("day")
    assert table.optimize().where("day = 2").executeCompaction().first().metrics.numFilesRemoved == 2
    with pytest.raises(AnalysisException, match="already exists") as found:
        Table.create(spark).tableName("sensors").addColumn("day", "INT").execute()
    assert "sensors" in str(found.value)
    with pytest.raises(AnalysisException, match=r"cannot be found|did not exist"):
        Table.replace(spark).tableName("nobody").addColumn("day", "INT").execute()
    spark.sql("DROP TABLE sensors")


def changed_tables(spark, root: pathlib.Path) -> None:
    """Statements about tables of the catalog, by the log and by the catalog."""
    spark.sql("CREATE TABLE moving (a LONG, b STRING NOT NULL) USING delta")
    spark.sql("ALTER TABLE moving CHANGE COLUMN a a LONG AFTER b")
    spark.sql("ALTER TABLE moving ALTER COLUMN b DROP NOT NULL")
    spark.sql("ALTER TABLE moving ADD COLUMNS (x LONG)")
    assert spark.table("moving").schema.simpleString() == "struct<b:string,a:bigint,x:bigint>"
    spark.sql("ALTER TABLE moving SET TBLPROPERTIES ('k' = 'v')")
    known = {row.key: row.value for row in spark.sql("SHOW TBLPROPERTIES moving").collect()}
    assert known == {"k": "v", "delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
    spark.sql("INSERT INTO moving VALUES ('z', 1, 2)")
    spark.sql("ALTER TABLE moving RENAME TO moved")
    assert spark.sql("SELECT * FROM moved").collect() == [("z", 1, 2)]
    assert not spark.catalog.tableExists("moving")
    elsewhere = str(root / "elsewhere")
    spark.sql("SELECT 'y' b, 3L a, 4L x").write.format("delta").save(elsewhere)
    spark.sql(f"ALTER TABLE moved SET LOCATION '{elsewhere}'")
    assert spark.sql("SELECT * FROM moved").collect() == [("y", 3, 4)]
    spark.sql("DROP TABLE moved")


def tables_that_grow(spark, root: pathlib.Path) -> None:
    """What the session says of new columns, and ids of rows."""
    spark.sql("CREATE TABLE grows (id BIGINT, p STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    spark.sql("INSERT INTO grows VALUES (1, 'a')")
    with pytest.raises(AnalysisException, match="columns"):
        spark.sql("INSERT INTO grows SELECT 2L, 'b', true fresh")
    frame = spark.table("grows")
    merging = "spark.databricks.delta.schema.autoMerge.enabled"
    spark.conf.set(merging, "true")
    spark.sql("INSERT INTO grows SELECT 2L, 'b', true fresh")
    spark.sql("INSERT INTO grows VALUES (3, 'c', false)")
    spark.sql("SELECT 4L x, 'd' y, true z, 4.5D more").write.insertInto("grows")
    with pytest.raises(AnalysisException, match="columns"):
        spark.range(1).write.insertInto("grows")
    with pytest.raises(AnalysisException, match="no column `other`"):
        spark.sql("INSERT INTO grows (id, other) SELECT 5L, 'e'")
    spark.conf.unset(merging)
    assert sorted(spark.table("grows").collect()) == [
        (1, "a", None, None),
        (2, "b", True, None),
        (3, "c", False, None),
        (4, "d", True, 4.5),
    ]
    spark.sql("UPDATE grows SET p = 'z' WHERE id = 2")
    expected = [(1, 0, 1), (2, 1, 5), (3, 2, 3), (4, 3, 4)]
    told = "id", "_metadata.row_id", "_metadata.row_commit_version"
    assert sorted(spark.table("grows").select(*told).collect()) == expected
    assert sorted(frame.select(*told).collect()) == expected
    assert sorted(spark.sql(f"SELECT {', '.join(told)} FROM grows").collect()) == expected
    spark.sql("DROP TABLE grows")


def conflicts(spark, root: pathlib.Path) -> None:
    """Conflicts are delta-spark's exceptions, also where they come through Java."""
    import delta.exceptions
    from delta.exceptions.base import ConcurrentAppendException

    jvm = spark._jvm
    for name in ("ConcurrentWriteException", "MetadataChangedException", "ConcurrentTransactionException"):
        thrown = getattr(jvm.io.delta.exceptions, name)("it changed")
        with pytest.raises(getattr(delta.exceptions, name), match="it changed") as found:
            jvm.scala.util.Failure(thrown).get()
        assert isinstance(found.value, CommitFailedError)
    whole = provider.write_rows

    def loses(*_: object, **__: object) -> None:
        raise exceptions.ConcurrentAppendException("version 7: came in between")

    provider.write_rows = loses
    try:
        with pytest.raises(ConcurrentAppendException, match="version 7: came in between"):
            spark.range(1).write.format("delta").mode("append").save(str(root / "t"))
    finally:
        provider.write_rows = whole


def streams(spark, root: pathlib.Path) -> None:
    """Streams of the format."""
    path, out = str(root / "t"), str(root / "out")
    now = {"availableNow": True}
    if pyspark.__version__.startswith(("4.0", "4.1")):
        read = spark.readStream.format("delta").load(path).writeStream.format("delta")
        with pytest.raises(Exception, match=r"following a table needs PySpark 4\.2 or newer"):
            read.option("checkpointLocation", str(root / "checkpoint")).start(out).awaitTermination()
        return
    read = spark.readStream.format("delta").option("maxFilesPerTrigger", "1").option("ignoreChanges", "true").load(path)
    for _ in range(2):
        query = read.select("id", "p").writeStream.format("delta").outputMode("append").partitionBy("p")
        query.option("checkpointLocation", str(root / "checkpoint")).trigger(**now).start(out).awaitTermination()
    assert ids(spark.read.format("delta").load(out)) == ids(spark.read.format("delta").load(path))
    assert DeltaTable(out).metadata().partition_columns == ["p"]
    said = DeltaTable(out).history()[-1]
    known = json.loads((root / "checkpoint" / "metadata").read_text())["id"]
    assert said["operation"] == "STREAMING UPDATE"
    assert said["operationParameters"] == {"outputMode": "Append", "queryId": known, "epochId": "0"}
    names = {"numRemovedFiles", "numAddedFiles", "numOutputRows", "numOutputBytes"}
    assert set(said["operationMetrics"]) == names
    whole = spark.readStream.table("c").groupBy("p").count().writeStream.outputMode("complete").format("delta")
    whole.option("checkpointLocation", str(root / "counts")).trigger(**now).toTable("counts").awaitTermination()
    assert sorted(tuple(row) for row in spark.table("counts").collect()) == [(0, 5), (1, 1)]
    plain = read.select("id").writeStream.format("parquet").option("path", str(root / "plain"))
    plain.option("checkpointLocation", str(root / "plain-checkpoint")).trigger(**now).start().awaitTermination()
    assert ids(spark.read.parquet(str(root / "plain"))) == ids(spark.read.format("delta").load(path))


def taken_back(spark, root: pathlib.Path) -> None:
    """Nothing is left of it."""
    before = DataFrameWriter.saveAsTable
    deltafast.spark.disable(spark)
    assert DataFrameWriter.saveAsTable is not before
    assert "delta" not in sys.modules
    with pytest.raises(AnalysisException, match="was taken back"):
        spark.read.format("delta").load(str(root / "t"))
    deltafast.spark.disable(spark)
    deltafast.spark.enable(spark)
    deltafast.spark.enable(spark)
    assert spark.read.format("delta").load(str(root / "t")).count() == 6
    deltafast.spark.disable(spark)
    assert "deltafast" not in DataFrameWriter.saveAsTable.__module__


def main(root: pathlib.Path) -> None:
    """Run everything."""
    spark = session(root)
    deltafast.spark.enable(spark)
    by_path(spark, root)
    frames_follow(spark, root)
    as_the_writer_says(spark, root)
    what_is_refused(spark, root)
    exceptions_are_sparks(spark, root)
    special_tables(spark, root)
    by_sql(spark, root)
    by_name(spark, root)
    paths_in_sparks_sql(spark, root)
    frames_in_statements(spark, root)
    several_inserts(spark, root)
    views_of_tables(spark, root)
    made_of_others(spark, root)
    write_to(spark, root)
    by_deltas_names(spark, root)
    what_programs_look_for(spark)
    changed_tables(spark, root)
    tables_that_grow(spark, root)
    conflicts(spark, root)
    streams(spark, root)
    taken_back(spark, root)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
    sys.stdout.write(f"on PySpark {pyspark.__version__}: all is well\n")
