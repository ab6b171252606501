"""Data frames and tables by path."""

from __future__ import annotations

import json
import pathlib
import sys
import threading
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, UnsupportedOperationException
from pyspark.sql import DataFrameWriter, functions

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import CommitFailedError, DeltaWarning
from deltafast.spark import exceptions
from deltafast.spark._enable import ignored_settings, provider
from deltafast.spark._scan import snapshot
from spark.child_session import BOTH
from spark.helpers import ids

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=BOTH),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def test_tables_by_path(spark, tmp_path):
    path = str(tmp_path / "t")
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
    with pytest.raises(AnalysisException, match="DELTA_VERSION_NOT_FOUND"):
        spark.read.format("delta").option("versionAsOf", 9).load(path)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(load(path).count()))
    thread.start()
    thread.join()
    assert seen == [8]


def test_frames_and_views_follow_later_versions(spark, tmp_path):
    path = str(tmp_path / "followed")
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
        with pytest.raises(AnalysisException, match="create it again"):
            gone.where("id >= 0").collect()
    assert ids(pinned.where("id >= 0")) == ids(old.where("id >= 0")) == list(range(10))


def test_options_of_the_writer(spark, tmp_path):
    """Partitions of a table that is replaced, types, and properties of a new table."""
    path = str(tmp_path / "literal")
    rows = spark.range(6).selectExpr("cast(id as int) id", "id % 3 p", "cast(id as string) s")

    def to(mode: str, frame=rows, **options: str) -> DataFrameWriter:
        return frame.write.format("delta").mode(mode).options(**options)

    def known() -> tuple[list[str], dict[str, str]]:
        metadata = DeltaTable(path).metadata()
        return metadata.partition_columns, metadata.configuration

    made = {"delta.checkpointInterval": "7", "foo": "x"}
    to("error", **made).partitionBy("p").save(path)
    assert known() == (["p"], {"delta.checkpointInterval": "7"})
    with pytest.warns(DeltaWarning, match="`configuration` is for new tables"):
        to("append", **{"delta.checkpointInterval": "8"}).save(path)
    to("overwrite").save(path)
    assert known() == (["p"], {"delta.checkpointInterval": "7"})
    with pytest.raises(AnalysisException, match="does not match table partitioning"):
        to("overwrite").partitionBy("s").save(path)
    to("overwrite", overwriteSchema="true").partitionBy("s").save(path)
    assert known()[0] == ["s"]
    with pytest.warns(DeltaWarning, match="`configuration` is for new tables"):
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


def test_layouts_and_refused_options(spark, tmp_path):
    """Options and names that a table cannot have are refused rather than ignored."""
    path, name = str(tmp_path / "refused"), "refused"
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


def test_exceptions_are_those_of_spark(spark, tmp_path, warehouse):
    path = str(warehouse / "strict")
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


def test_table_features(spark, tmp_path):
    """Deletion vectors, column mapping and change data feed."""
    path = str(tmp_path / "special")
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


def test_write_to(spark, tmp_path, warehouse):
    """`writeTo`, of tables by name and by path."""
    rows = spark.range(4).selectExpr("id", "id % 2 p")
    for name, folder in (("wanted", warehouse / "wanted"), (f"delta.`{tmp_path}/wanted`", tmp_path / "wanted")):
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
    assert not DeltaTable.is_deltatable(str(warehouse / "bare_too"))
    spark.sql("DROP TABLE wanted")
    assert not (warehouse / "wanted").exists()


def test_conflicts_are_exceptions_of_delta_spark(spark, tmp_path):
    """Also where they come through Java."""
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
            spark.range(1).write.format("delta").mode("append").save(str(tmp_path / "t"))
    finally:
        provider.write_rows = whole


def test_a_stream_counts_the_rows_of_all_its_batches(spark, tmp_path):
    """The count of a whole table comes from the log; that of a stream is kept from batch to batch."""
    path = str(tmp_path / "t")
    frame = spark.range(100).selectExpr("id", "id % 2 p")
    counts = []
    for _ in range(3):
        frame.write.format("delta").mode("append").save(path)
        stream = spark.readStream.format("delta").load(path).groupBy().count().writeStream.outputMode("complete")
        stream = stream.foreachBatch(lambda batch, _: counts.extend(row[0] for row in batch.collect()))
        query = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        query.awaitTermination()
    assert counts == [100, 200, 300]
    assert spark.read.format("delta").load(path).count() == 300


def test_settings_without_an_effect_are_named_once(spark, monkeypatch):
    monkeypatch.setattr(ignored_settings, "_reported", set())
    conf = "spark.databricks.delta."
    with pytest.warns(
        DeltaWarning, match=r"checkpoint\.partSize has no effect with deltafast: a checkpoint is one file"
    ):
        spark.conf.set(conf + "checkpoint.partSize", 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spark.conf.set(conf + "checkpoint.partSize", 2000)
        spark.conf.set(conf + "replaceWhere.constraintCheck.enabled", value=True)
        spark.conf.set(conf + "schema.autoMerge.enabled", value=True)
    monkeypatch.setattr(ignored_settings, "_reported", set())
    with pytest.warns(DeltaWarning, match=r"checkpoint\.partSize"):
        deltafast.spark.enable(spark)
    for name in ("checkpoint.partSize", "replaceWhere.constraintCheck.enabled", "schema.autoMerge.enabled"):
        spark.conf.unset(conf + name)


def test_a_log_store_of_dynamodb_is_named_once(spark, monkeypatch):
    monkeypatch.setattr(ignored_settings, "_reported", set())
    name = "spark.delta.logStore.s3a.impl"
    spark.conf.set(name, "io.delta.storage.S3DynamoDBLogStore")
    try:
        with pytest.warns(DeltaWarning, match=r"s3a\.impl has no effect .* must not write to the same tables"):
            deltafast.spark.enable(spark)
        deltafast.spark.enable(spark)
    finally:
        spark.conf.unset(name)


def test_restore_lowers_the_protocol_if_the_session_allows_it(spark, tmp_path):
    setting, path = "spark.databricks.delta.restore.protocolDowngradeAllowed", str(tmp_path / "t")
    spark.range(3).write.format("delta").save(path)
    before = DeltaTable(path).protocol()
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    raised = DeltaTable(path).protocol()
    assert raised != before
    spark.sql(f"RESTORE delta.`{path}` TO VERSION AS OF 0")
    assert DeltaTable(path).protocol() == raised
    spark.conf.set(setting, "true")
    try:
        spark.sql(f"RESTORE delta.`{path}` TO VERSION AS OF 0")
    finally:
        spark.conf.unset(setting)
    assert DeltaTable(path).protocol() == before


def test_a_function_for_each_batch_replaces_the_format(spark, tmp_path):
    """As in Delta's own examples: `format("delta")` before `foreachBatch`, in mode update, without a path."""
    path = str(tmp_path / "counts")
    spark.range(3).selectExpr("id", "0L n").write.format("delta").save(path)

    def upsert(batch, _):
        table = deltafast.spark.DeltaTable.forPath(batch.sparkSession, path).alias("t")
        table.merge(batch.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = rate.selectExpr("value % 5 id").groupBy("id").count().selectExpr("id", "count n")
    writer = counts.writeStream.format("delta").foreachBatch(upsert).outputMode("update")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(once=True).start()
    query.awaitTermination()
    assert {row.id for row in spark.read.format("delta").load(path).collect()} == set(range(5))


def test_streams(spark, tmp_path, replaced):
    path, out = replaced, str(tmp_path / "out")
    DeltaTable(path).delete("id > 8")
    spark.sql(f"CREATE TABLE c USING delta LOCATION '{path}'")
    spark.range(1).selectExpr("9L id", "1L p", "null more").write.insertInto("c")
    now = {"availableNow": True}
    read = spark.readStream.format("delta").option("maxFilesPerTrigger", "1").option("ignoreChanges", "true").load(path)
    for _ in range(2):
        query = read.select("id", "p").writeStream.format("delta").outputMode("append").partitionBy("p")
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(**now).start(out).awaitTermination()
    assert ids(spark.read.format("delta").load(out)) == ids(spark.read.format("delta").load(path))
    assert DeltaTable(out).metadata().partition_columns == ["p"]
    said = DeltaTable(out).history()[-1]
    known = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    assert said["operation"] == "STREAMING UPDATE"
    assert said["operationParameters"] == {"outputMode": "Append", "queryId": known, "epochId": "0"}
    names = {"numRemovedFiles", "numAddedFiles", "numOutputRows", "numOutputBytes"}
    assert set(said["operationMetrics"]) == names
    whole = spark.readStream.table("c").groupBy("p").count().writeStream.outputMode("complete").format("delta")
    whole.option("checkpointLocation", str(tmp_path / "counts")).trigger(**now).toTable("counts").awaitTermination()
    assert sorted(tuple(row) for row in spark.table("counts").collect()) == [(0, 5), (1, 1)]
    plain = read.select("id").writeStream.format("parquet").option("path", str(tmp_path / "plain"))
    plain.option("checkpointLocation", str(tmp_path / "plain-checkpoint")).trigger(**now).start().awaitTermination()
    assert ids(spark.read.parquet(str(tmp_path / "plain"))) == ids(spark.read.format("delta").load(path))


def test_disabling(spark, replaced):
    before = DataFrameWriter.saveAsTable
    deltafast.spark.disable(spark)
    assert DataFrameWriter.saveAsTable is not before
    assert "delta" not in sys.modules
    with pytest.raises(AnalysisException, match="was taken back"):
        spark.read.format("delta").load(replaced)
    deltafast.spark.disable(spark)
    deltafast.spark.enable(spark)
    deltafast.spark.enable(spark)
    assert spark.read.format("delta").load(replaced).count() == 8
    deltafast.spark.disable(spark)
    assert "deltafast" not in DataFrameWriter.saveAsTable.__module__


def test_variants_are_not_shredded(spark, tmp_path):
    path = str(tmp_path / "t")
    frame = spark.sql("""SELECT id, parse_json('{"a": 1}') v FROM range(4)""")
    frame.write.format("delta").option("path", path).saveAsTable("variants")
    spark.sql("""INSERT INTO variants SELECT id, parse_json('{"a": 2}') FROM range(4)""")
    files = list(pathlib.Path(path).rglob("*.parquet"))
    assert len(files) > 1
    for file in files:
        assert {column.path for column in pq.ParquetFile(file).schema} == {"id", "v.value", "v.metadata"}
    values = [row[0] for row in spark.sql("SELECT variant_get(v, '$.a', 'int') FROM variants").collect()]
    assert sorted(values) == [1] * 4 + [2] * 4


def test_rows_replaced_by_keys_are_not_cast(spark, replaced):
    rows = spark.range(1).selectExpr("'70' id", "1L p", "'z' more")
    writer = rows.write.format("delta").mode("overwrite").option("replaceUsing", "id")
    with pytest.raises(AnalysisException, match="Failed to merge fields"):
        writer.save(replaced)
    assert DeltaTable(replaced).version() == 2
    rows.selectExpr("CAST(id AS BIGINT) id", "p", "more").write.format("delta").mode("overwrite").option(
        "replaceUsing", "id"
    ).save(replaced)
    assert spark.read.format("delta").load(replaced).where("more = 'z'").count() == 1


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_strings_with_a_collation_or_a_length(spark, tmp_path, mapping):
    path = str(tmp_path / "t")
    collated, char = {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}, {"__CHAR_VARCHAR_TYPE_STRING": "array<char(3)>"}
    fields = [
        deltafast.Field("id", deltafast.PrimitiveType("integer")),
        deltafast.Field("s", deltafast.PrimitiveType("string"), metadata=collated),
        deltafast.Field("l", deltafast.ArrayType(deltafast.PrimitiveType("string")), metadata=char),
    ]
    properties = {"delta.feature.collations": "supported", "delta.columnMapping.mode": mapping}
    DeltaTable.create(path, deltafast.Schema(fields), configuration=properties)
    spark.sql(f"CREATE TABLE collated USING delta LOCATION '{path}'")
    spark.sql("INSERT INTO collated SELECT id, x, array(x) FROM VALUES (1, 'ABC'), (2, 'abc'), (3, 'b') t(id, x)")
    with pytest.raises(AnalysisException, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        spark.sql("SELECT 4 id, 'x' s").write.format("delta").mode("append").save(path)
    for frame in (spark.read.format("delta").load(path), spark.table("collated"), spark.sql(f"FROM delta.`{path}`")):
        assert ids(frame.where("s = 'aBc'")) == ids(frame.where("s IN ('x', 'abC')")) == [1, 2]
        assert ids(frame.where("s LIKE 'aB%' AND s > 'AA'")) == [1, 2]
        assert frame.select("s").distinct().count() == 2
        assert [row.l for row in frame.where("l[0] = 'b  '").collect()] == [["b  "]]
    with pytest.raises(AnalysisException, match="the column `s` has the collation"):
        spark.sql("DELETE FROM collated WHERE s = 'abc'")
    spark.sql("DELETE FROM collated WHERE id = 1")
    assert ids(spark.table("collated").where("s = 'ABC'")) == [2]


def test_estimates_are_those_of_the_selected_files(spark):
    """Spark chooses by them how to join: they are those of the files that a filter leaves."""
    spark.sql(
        "CREATE TABLE sold USING delta PARTITIONED BY (day) AS SELECT id, id % 6 day, CAST(id AS STRING) v FROM range(60)"
    )
    more = spark.range(60, 70).selectExpr("id", "id % 6 day", "CAST(id AS STRING) v")
    more.coalesce(1).write.format("delta").mode("append").saveAsTable("sold")
    sold = spark.table("sold")
    sizes = {
        row.path: row.size for row in sold.selectExpr("_metadata.file_path path", "_metadata.file_size size").collect()
    }
    for condition, rows in (
        ("day = 3", 12),
        ("id > 62", 7),
        ("day = 3 AND id > 62", 2),
        ("day IN (1, 2)", 24),
        ("day = 77", 0),
        ("v LIKE '%3' AND day = 3", 3),
        ("length(v) < 0", 0),
    ):
        chosen = sold.where(condition)
        reading = {row.path for row in chosen.selectExpr("_metadata.file_path path").collect()}
        files = {path.replace("file:///", "file:/") for path in chosen.inputFiles()}
        assert {path.replace("file:///", "file:/") for path in reading} <= files
        assert len(files) < len(sizes) or "length" in condition
        estimate = chosen._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
        total = sum(size for path, size in sizes.items() if path.replace("file:///", "file:/") in files)
        assert estimate <= max(total, 1) * 2, condition
        assert chosen.count() == rows
    # As without the rule, each query of a frame reads the newest version.
    chosen = sold.where("day = 3")
    assert chosen.count() == 12
    spark.sql("INSERT INTO sold VALUES (100, 3, 'x')")
    assert chosen.count() == len(chosen.where("true").collect()) == 13
    spark.sql("DELETE FROM sold WHERE id = 3")
    assert chosen.count() == len(chosen.where("true").collect()) == 12
    # Spark sends the small side to all tasks, though the table is larger than its limit.
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", sum(sizes.values()) // 2)
    other = spark.range(1000).selectExpr("id", "uuid() u")
    plan = other.join(chosen, "id")._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in plan
    spark.sql("DROP TABLE sold")
