"""Spark Connect: no object of Java is within reach."""

from __future__ import annotations

import pathlib
import sys
import warnings
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.functions import col, lit
from pyspark.sql.types import IntegerType, StructField, StructType

import deltafast.spark
from deltafast import DeltaTable as CoreTable
from deltafast import write_deltalake
from deltafast.exceptions import DeltaError, InvalidArgumentError
from deltafast.spark import DeltaTable, IdentityGenerator, register_view, sql
from spark.child_session import BOTH
from spark.columns import check_conditions

from .started import Started, builder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("connect", releases=BOTH),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """Start a server and connect to it."""
    warehouse = tmp_path_factory.mktemp("warehouse")

    def build() -> Any:
        with warnings.catch_warnings():
            # The server has the settings of its start from the builder, which then tries to set them in the session, too.
            warnings.filterwarnings("ignore", "Failed to set", UserWarning)
            return builder("remote").config("spark.sql.warehouse.dir", str(warehouse)).getOrCreate()

    started = Started(build)
    yield started
    started.stop()


@pytest.fixture
def spark(started):
    """Give the session."""
    assert type(started.session()).__module__.startswith("pyspark.sql.connect")
    yield from started.isolated()


@pytest.fixture
def enabled(spark):
    """Give the session with deltafast enabled, and disable it."""
    deltafast.spark.enable(spark)
    yield spark
    deltafast.spark.disable(spark)
    assert "delta.tables" not in sys.modules


@pytest.fixture
def folder(tmp_path) -> str:
    """Give the folder of a new table."""
    return str(tmp_path / "t")


def numbers(start: int, stop: int, word: str = "") -> pa.Table:
    """Rows with a number, a string and a structure."""
    found = range(start, stop)
    structures = pa.array([{"x": n} for n in found], pa.struct([("x", pa.int64())]))
    return pa.table({"id": pa.array(found, pa.int64()), "v": [word or f"v{n}" for n in found], "s": structures})


@pytest.fixture
def changed(spark, folder) -> str:
    """Give a table of six versions and several files."""
    deltafast.spark.write(spark.range(20).selectExpr("id", "concat('v', id) v", "named_struct('x', id) s"), folder)
    table = CoreTable(folder)
    table.delete("id = 3")
    table.delete("id > 17")
    table.update(updates={"v": "concat(v, '!')"}, predicate="id = 1")
    merge = table.merge(numbers(15, 25, "m"), "t.id = s.id", "s", "t")
    merge.when_matched_update({"v": "'w'"}).when_not_matched_insert_all().execute()
    table.merge(numbers(16, 17), "t.id = s.id", "s", "t").when_matched_delete().execute()
    return folder


@pytest.fixture
def followed(folder) -> str:
    """Give a partitioned table of some files and versions, for streams to read."""

    def rows(start: int, stop: int, sign: int = 1) -> pa.Table:
        found = range(start, stop)
        columns = {"id": list(found), "v": [sign * n for n in found], "p": [n % 2 for n in found]}
        return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})

    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_deltalake(folder, rows(0, 100), partition_by=["p"], configuration=properties)
    table = CoreTable(folder)
    table.delete("id < 10")
    table.update(updates={"v": "v + 1"}, predicate="id % 10 = 1")
    merge = table.merge(rows(90, 110, -1), "t.id = s.id", "s", "t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    return folder


def ids(table: DeltaTable) -> list[int]:
    """The first column, sorted."""
    return sorted(row[0] for row in table.toDF().collect())


def test_columns_mean_in_the_core_what_they_mean_in_spark(spark, folder):
    check_conditions(spark, folder)


def test_commands(spark, folder):
    """Commands take columns of Connect, and return frames."""
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


def test_maintenance(spark, changed):
    """Files and versions of a table."""
    table = DeltaTable.forPath(spark, changed)
    assert table.optimize().executeCompaction().first().metrics.numFilesAdded == 1
    operations = [row.operation for row in table.history().collect()]
    assert operations == ["OPTIMIZE", "MERGE", "MERGE", "UPDATE", "DELETE", "DELETE", "WRITE"]
    assert table.detail().first().numFiles == deltafast.spark.files(spark, changed).count() == 1
    table.restoreToVersion(0)
    assert table.vacuum().collect() == []
    assert ids(table) == list(range(20))


def test_statements(spark, changed):
    """Statements and queries, by path and by name."""
    CoreTable(changed).restore(0)
    assert sql(spark, f"select count(*) n from delta.`{changed}` version as of 1").first().n == 19
    register_view(spark, "seen", changed)
    assert sql(spark, "delete from seen where id = 5").first().num_affected_rows == 1
    assert sql(spark, "insert into seen select 100L, 'x', named_struct('x', 1L)").first().num_inserted_rows == 1
    merged = sql(spark, "merge into seen using (select 100L id) s on seen.id = s.id when matched then delete")
    assert merged.first().num_deleted_rows == 1
    assert sql(spark, "select count(*) n from seen").first().n == 19
    assert sql(spark, "select max(id) n from seen where id < :top", {"top": 7}).first().n == 6
    assert sql(spark, f"select count(*) n from delta_files('{changed}') where num_records > 0").first().n > 0
    assert sql(spark, "select operation from delta_history('seen', 1)").first().operation == "MERGE"
    assert sql(spark, "select d.format from delta_detail('seen') d").first().format == "delta"
    made = DeltaTable.create(spark).location(f"{changed}-made").addColumn("a", "int").execute()
    assert made.toDF().columns == ["a"]
    for call in (lambda: DeltaTable.forPath(spark, f"{changed}-none"), lambda: DeltaTable.forName(spark, "none")):
        with pytest.raises(AnalysisException, match="Delta table"):
            call()


@pytest.mark.proof
@pytest.mark.parametrize("by", [[], ["p"]], ids=["plain", "partitions"])
def test_columns_that_are_not_null_are_so_in_frames(spark, tmp_path, by):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("p", pa.int32())])
    for rows in ([], [{"id": 1, "p": 2}]):
        table = str(tmp_path / f"t{len(rows)}")
        write_deltalake(table, pa.Table.from_pylist(rows, schema), partition_by=by)
        for frame in (deltafast.spark.read(spark, table), DeltaTable.forPath(spark, table).toDF()):
            assert frame.columns == ["id", "p"]
            assert [field.nullable for field in frame.schema] == [False, True]
            assert [tuple(row) for row in frame.collect()] == [tuple(row.values()) for row in rows]


@pytest.mark.proof
def test_commands_as_jobs(spark, folder):
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
            assert {row.id: row.v for row in deltafast.spark.read(spark, place, read_mode=way).collect()} == now
        feed = deltafast.spark.read(spark, place, options={"readChangeFeed": True, "startingVersion": 1})
        assert {row[0]: row[1] for row in feed.groupBy("_change_type").count().collect()} == {
            "delete": 10,
            "update_preimage": 19,
            "update_postimage": 19,
            "insert": 10,
        }
    spark.conf.unset("spark.deltafast.engine")


def test_functions_that_only_the_server_has(spark, folder):
    frame = spark.range(0, 20, 1, 2).selectExpr("id", "concat('n', id) name")
    deltafast.spark.write(frame, folder)
    table = DeltaTable.forPath(spark, folder)
    assert table.delete("regexp_extract(name, '[0-9]+', 0) = '3'").collect()[0].num_affected_rows == 1
    table.update(col("id") == 4, {"name": F.regexp_replace("name", "n", "m")})
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        table.delete("nosuch(id) = 1")
    with pytest.raises(Exception, match="INVALID_NON_DETERMINISTIC_EXPRESSIONS"):
        table.delete("rand() > 2")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        table.update("id = 5", {"id": "cast(name as bigint)"})
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    found = {row.name: row.id for row in table.toDF().collect()}
    assert found == {("m4" if n == 4 else f"n{n}"): (None if n == 5 else n) for n in range(20) if n != 3}


@pytest.mark.proof
def test_identity_columns_and_changes_of_a_replacement(spark, folder):
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
    reported = [(row._change_type, row.id, row.n) for row in feed.collect()]
    inserted = {number: value for kind, number, value in reported if kind == "insert"}
    assert inserted == {number: found[number] for number in range(30, 50)}
    assert sorted(number for kind, number, _ in reported if kind == "delete") == list(range(21, 40))


@pytest.mark.proof
def test_streams(spark, folder, followed):
    """The format as source and as sink, and batches that the server's Python writes."""
    source, copy = followed, f"{folder}-copy"
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
    streamed = deltafast.spark.sink(f"{folder}-followed", "follows over connect")
    options: dict[str, Any] = {"trigger": {"availableNow": True}, "ignoreChanges": True, "maxFilesPerTrigger": 1}
    for _ in range(2):
        deltafast.spark.stream(spark, source, streamed, f"{folder}-followed-checkpoint", **options).awaitTermination()
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


def test_what_needs_the_java_of_the_driver_is_refused(spark, folder):
    write_deltalake(folder, numbers(0, 1))
    with pytest.raises(InvalidArgumentError, match="read_mode='index' needs a classic session"):
        deltafast.spark.read(spark, folder, read_mode="index")


def test_programs_for_delta_spark(spark, enabled, folder):
    """Paths, tables of the server's catalog, statements, and Python's names."""
    from delta.connect.exceptions import ConcurrentAppendException
    from delta.exceptions import DeltaConcurrentModificationException
    from delta.tables import DeltaTable as Table

    assert issubclass(ConcurrentAppendException, DeltaConcurrentModificationException)
    path = folder
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
    source = spark.sql("SELECT 1 n, 'merged' more").alias("source")
    matched = source.mergeInto("made", F.expr("made.n = source.n")).whenMatched()
    matched.update({"more": col("source.more")}).merge()
    assert [tuple(row) for row in spark.table("made").collect()] == [(1, 2, "merged")]
    assert spark.sql("VACUUM made DRY RUN").collect() == []
    with pytest.raises(AnalysisException, match="TEMPORARY VIEW"):
        spark.sql("CREATE VIEW shown AS SELECT n FROM made")
    spark.sql("ALTER TABLE made RENAME TO renamed")
    assert spark.table("renamed").columns == ["n", "m", "more"]
    spark.sql("DROP TABLE renamed")


@pytest.mark.proof
def test_the_files_of_managed_tables_are_dropped_with_their_name(spark, enabled, folder):
    def place(name: str) -> pathlib.Path:
        row = spark.sql(f"SHOW TABLE EXTENDED LIKE '{name}'").first()
        facts = dict(line.split(": ", 1) for line in row.information.splitlines() if ": " in line)
        assert facts["Type"] == ("EXTERNAL" if "outside" in facts["Location"] else "MANAGED")
        return pathlib.Path(urlsplit(facts["Location"]).path)

    makes = {
        "saved": lambda: spark.range(3).write.format("delta").saveAsTable("saved"),
        "stated": lambda: spark.sql("CREATE TABLE stated (id BIGINT) USING delta"),
        "selected": lambda: spark.sql("CREATE TABLE selected USING delta AS SELECT * FROM range(3)"),
        "built": lambda: DeltaTable.create(spark).tableName("built").addColumn("id", "bigint").execute(),
        "written": lambda: spark.range(3).writeTo("written").using("delta").create(),
        "cloned": lambda: spark.sql("CREATE TABLE cloned SHALLOW CLONE outside"),
        "liked": lambda: spark.sql("CREATE TABLE liked LIKE outside"),
        "listed": lambda: spark.catalog.createTable("listed", source="delta", schema=spark.range(1).schema),
    }
    outside = folder + "outside"
    spark.sql(f"CREATE TABLE outside (id BIGINT) USING delta LOCATION '{outside}'")
    for name, make in makes.items():
        for _ in range(2):
            make()
            spark.sql(f"INSERT INTO {name} VALUES (7)")
            assert 7 in [row.id for row in spark.table(name).collect()]
            there = place(name)
            assert spark.catalog.tableExists(name)
            assert spark.catalog.tableExists(f"delta.`{there}`")
            assert (there / "_delta_log").is_dir()
            spark.sql(f"DROP TABLE {name}")
            assert not there.exists()
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (other STRING) USING delta")
        assert (spark.table(name).columns, spark.table(name).count()) == (["other"], 0)
    with pytest.raises(DeltaError, match="already exists"):
        spark.range(3).write.format("delta").saveAsTable("saved")
    assert place("saved").is_dir()
    place("outside")
    spark.sql("DROP TABLE outside")
    assert CoreTable(outside).version() == 0


def test_a_table_that_could_not_be_written_is_not_in_the_catalog(spark, enabled):
    with pytest.raises(PySparkException, match="broken"):
        spark.range(3).select(F.raise_error(lit("broken")).cast("int").alias("a")).write.format("delta").saveAsTable(
            "broken"
        )
    assert not spark.catalog.tableExists("broken")
    spark.range(3).write.format("delta").saveAsTable("broken")
    assert spark.table("broken").count() == 3


def test_a_second_session_leaves_the_first_one_enabled(spark, enabled):
    spark.range(3).write.format("delta").saveAsTable("shared")
    second = pyspark.sql.connect.session.SparkSession.builder.remote("sc://localhost").create()
    deltafast.spark.enable(second)
    assert second.sql("SELECT * FROM shared").count() == spark.sql("SELECT * FROM shared").count() == 3
    deltafast.spark._enable.enable.enable_once(spark)
    assert spark.table("shared").count() == 3


@pytest.mark.proof
def test_write_to(spark, enabled, folder):
    """`writeTo`, of tables by name and by path."""
    rows = spark.range(4).selectExpr("id", "id % 2 p")
    for name in ("wanted", f"delta.`{folder}-wanted`"):
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


@pytest.mark.proof
def test_streams_of_programs_for_delta_spark(spark, enabled, folder):
    spark.range(6).selectExpr("id", "id % 2 p").write.format("delta").saveAsTable("followed")
    wanted = [(number, number % 2) for number in range(6)]
    for _ in range(2):
        rows = spark.readStream.table("followed")
        writer = rows.writeStream.format("delta").partitionBy("p").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{folder}-checkpoint").start(f"{folder}-copy").awaitTermination()
    assert sorted(map(tuple, spark.read.format("delta").load(f"{folder}-copy").collect())) == wanted
    assert DeltaTable.forPath(spark, f"{folder}-copy").detail().collect()[0].partitionColumns == ["p"]
    for n in range(2):
        rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{folder}-copy")
        writer = rows.writeStream.option("checkpointLocation", f"{folder}-checkpoint-{n}").trigger(availableNow=True)
        writer.toTable("copied", format="delta", partitionBy="p").awaitTermination()
    assert sorted(map(tuple, spark.table("copied").collect())) == sorted(wanted * 2)
