"""Statements and the catalog."""

from __future__ import annotations

import pathlib
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions
from pyspark.sql.types import IntegerType, StructField, StructType

import deltafast.spark
from deltafast import DeltaTable
from spark.child_session import BOTH
from spark.helpers import ids, usual_and_proof

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=BOTH),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def test_views_and_tables_over_a_path(spark, replaced):
    path = replaced
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


def test_managed_tables(spark, tmp_path, warehouse):
    frame = spark.range(5).selectExpr("id", "id % 2 p")
    frame.write.format("delta").partitionBy("p").saveAsTable("managed")
    folder = str(warehouse / "managed")
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


def test_paths_as_table_names(spark, tmp_path):
    """``delta.`path` `` in statements of Spark's own, and as a name in its API."""
    path = str(tmp_path / "named")
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


def test_frames_and_parameters_of_statements(spark, tmp_path):
    path = str(tmp_path / "given")
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
    timestamps = str(tmp_path / "moments")
    spark.sql("SELECT TIMESTAMP'2024-07-01 10:00:00' a, TIMESTAMP_NTZ'2024-07-01 10:00:00' b").write.format(
        "delta"
    ).save(timestamps)
    for name in ("a", "b"):
        spark.sql(
            f"UPDATE delta.`{timestamps}` SET {name} = (SELECT max({name}) + INTERVAL '1' HOUR FROM delta.`{timestamps}`)"
        )
    timestamp = datetime(2024, 7, 1, 11, tzinfo=ZoneInfo("America/St_Johns"))
    spark.sql(
        f"UPDATE delta.`{timestamps}` SET a = :at WHERE a <> :at",
        args={"at": timestamp.astimezone().replace(tzinfo=None)},
    )
    shown = spark.read.format("delta").load(timestamps).selectExpr("CAST(a AS STRING)", "CAST(b AS STRING)").first()
    assert tuple(shown) == ("2024-07-01 11:00:00",) * 2
    assert ids(spark.table("given")) == [1, 3, 7, 8]
    for statement in ("DELETE FROM given", "UPDATE given SET id = 1"):
        with pytest.raises(AnalysisException, match="subqueries are not supported in the condition"):
            spark.sql(f"{statement} WHERE id IN (SELECT id FROM given)")
    merge = "MERGE INTO given t USING (SELECT id FROM range(8, 10)) s ON t.id = s.id WHEN MATCHED"
    spark.sql(
        f"{merge} THEN UPDATE SET id = CASE WHEN t.id > 0 THEN (SELECT max(id) + 10 FROM given) END "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES ((SELECT min(id) - 5 FROM given))"
    )
    assert ids(spark.table("given")) == [-4, 1, 3, 7, 18]
    with pytest.raises(AnalysisException, match="not supported in the condition of MERGE: join the query"):
        spark.sql(f"{merge} AND t.id = (SELECT 8) THEN DELETE")
    assert not [table for table in spark.catalog.listTables() if table.name.startswith("_pyspark")]


@pytest.mark.proof
def test_multi_insert_and_explain(spark, tmp_path):
    """EXPLAIN of a change runs nothing."""
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
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


@pytest.mark.proof
def test_changes_through_views(spark, tmp_path):
    path = str(tmp_path / "seen")
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


def test_tables_over_existing_data(spark, tmp_path, warehouse):
    from delta.tables import DeltaTable as Table

    path = str(tmp_path / "there")
    spark.range(3).write.format("delta").save(path)
    spark.sql(f"CREATE TABLE there (id BIGINT) USING delta LOCATION '{path}'")
    assert ids(spark.table("there")) == [0, 1, 2]
    with pytest.raises(AnalysisException, match="does not match the existing schema"):
        spark.sql(f"CREATE TABLE unlike (id INT) USING delta LOCATION '{path}'")
    spark.sql(
        f"CREATE EXTERNAL TABLE outside (a INT, b STRING) USING delta PARTITIONED BY (b) LOCATION '{tmp_path}/outside'"
    )
    spark.sql("CREATE TABLE alike LIKE outside")
    spark.sql("INSERT INTO alike VALUES (1, 'x')")
    assert spark.sql("SELECT a, b FROM alike").collect() == [(1, "x")]
    assert DeltaTable(str(warehouse / "alike")).metadata().partition_columns == ["b"]
    spark.sql("CREATE TABLE old (id BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql("INSERT INTO old SELECT id, 1 FROM range(3)")
    spark.sql("CONVERT TO DELTA old")
    spark.sql("INSERT INTO old VALUES (7, 2)")
    spark.sql("DELETE FROM old WHERE id = 0")
    assert sorted(map(tuple, spark.table("old").collect())) == [(1, 1), (2, 1), (7, 2)]
    spark.sql("CREATE TABLE older USING parquet AS SELECT 1 a")
    assert Table.convertToDelta(spark, "older").toDF().collect() == [(1,)]
    spark.sql("DROP TABLE older")
    assert not (warehouse / "older").exists()
    spark.conf.set("spark.sql.sources.default", "delta")
    spark.sql("CREATE TABLE usual (a INT)")
    spark.conf.unset("spark.sql.sources.default")
    spark.catalog.createTable("by_catalog", schema=StructType([StructField("a", IntegerType())]), source="delta")
    for name in ("usual", "by_catalog"):
        spark.sql(f"INSERT INTO {name} VALUES (1)")
        assert spark.sql(f"DESCRIBE HISTORY {name}").count() == 2


def test_alter_table(spark, tmp_path):
    spark.sql("CREATE TABLE moving (a LONG, b STRING NOT NULL) USING delta")
    spark.sql("ALTER TABLE moving CHANGE COLUMN a a LONG AFTER b")
    spark.sql("ALTER TABLE moving ALTER COLUMN b DROP NOT NULL")
    spark.sql("ALTER TABLE moving ADD COLUMNS (x LONG)")
    assert spark.table("moving").schema.simpleString() == "struct<b:string,a:bigint,x:bigint>"
    spark.sql("ALTER TABLE moving REPLACE COLUMNS (b STRING, a LONG COMMENT 'first', x LONG, l ARRAY<STRUCT<y: INT>>)")
    spark.sql("ALTER TABLE moving ADD COLUMN l.element.z INT FIRST")
    spark.sql("ALTER TABLE moving CHANGE COLUMN l.element.z z INT COMMENT 'last' AFTER y")
    schema = spark.table("moving").schema
    assert schema.simpleString() == "struct<b:string,a:bigint,x:bigint,l:array<struct<y:int,z:int>>>"
    assert schema["a"].metadata == {"comment": "first"}
    with pytest.raises(AnalysisException, match="REPLACE COLUMNS cannot drop `l`"):
        spark.sql("ALTER TABLE moving REPLACE COLUMNS (b STRING, a LONG, x LONG)")
    spark.sql("ALTER TABLE moving SET TBLPROPERTIES ('k' = 'v')")
    known = {row.key: row.value for row in spark.sql("SHOW TBLPROPERTIES moving").collect()}
    assert known == {"k": "v", "delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
    spark.sql("INSERT INTO moving VALUES ('z', 1, 2, NULL)")
    spark.sql("ALTER TABLE moving SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql("ALTER TABLE moving REPLACE COLUMNS (b STRING, a LONG, x LONG)")
    spark.sql("ALTER TABLE moving RENAME TO moved")
    assert spark.sql("SELECT * FROM moved").collect() == [("z", 1, 2)]
    assert not spark.catalog.tableExists("moving")
    elsewhere = str(tmp_path / "elsewhere")
    spark.sql("SELECT 'y' b, 3L a, 4L x").write.format("delta").save(elsewhere)
    spark.sql(f"ALTER TABLE moved SET LOCATION '{elsewhere}'")
    assert spark.sql("SELECT * FROM moved").collect() == [("y", 3, 4)]
    spark.sql("DROP TABLE moved")


@pytest.mark.parametrize("engine", usual_and_proof(["driver"], ["jobs"]))
def test_merge_adds_columns_that_a_clause_names(spark, tmp_path, engine):
    from delta.tables import DeltaTable as Table

    place = str(tmp_path / "t")
    spark.sql("SELECT 1L id, named_struct('a', 1, 'b', 2) s").write.format("delta").save(place)
    source = "SELECT id, id + 1 fresh, named_struct('a', 7, 'c', 8) s, 'x' other FROM range(1, 3)"
    spark.conf.set("spark.deltafast.engine", engine)
    try:
        spark.sql(
            f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{place}` t USING ({source}) src ON t.id = src.id "
            "WHEN MATCHED THEN UPDATE SET s = src.s, fresh = src.fresh "
            "WHEN NOT MATCHED THEN INSERT (id, fresh) VALUES (src.id, src.fresh)"
        )
        frame = spark.read.format("delta").load(place)
        assert frame.schema.simpleString() == "struct<id:bigint,s:struct<a:int,b:int,c:int>,fresh:bigint>"
        assert sorted(frame.collect()) == [(1, (7, None, 8), 2), (2, None, 3)]
        rows = spark.sql(source).alias("src")
        merge = Table.forPath(spark, place).alias("t").merge(rows, "t.id = src.id")
        with pytest.raises(AnalysisException, match="no column `other`"):
            merge.whenMatchedUpdate(set={"other": "src.other"}).execute()
        merge = Table.forPath(spark, place).alias("t").merge(rows, "t.id = src.id")
        merge = merge.withSchemaEvolution().whenMatchedUpdate(
            set={"other": functions.col("src.other"), "s.b": "src.s.c"}
        )
        merge.whenNotMatchedInsert(values={"id": "src.id", "other": "src.other"}).execute()
        frame = spark.read.format("delta").load(place)
        assert sorted(frame.collect()) == [(1, (7, 8, 8), 2, "x"), (2, (None, 8, None), 3, "x")]
    finally:
        spark.conf.unset("spark.deltafast.engine")


def test_schema_evolution_and_row_tracking(spark):
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
    selected = "id", "_metadata.row_id", "_metadata.row_commit_version"
    assert sorted(spark.table("grows").select(*selected).collect()) == expected
    assert sorted(frame.select(*selected).collect()) == expected
    assert sorted(spark.sql(f"SELECT {', '.join(selected)} FROM grows").collect()) == expected
    spark.sql("DROP TABLE grows")


def test_values_are_what_spark_evaluates(spark):
    spark.sql("CREATE TABLE evaluated (k INT, s STRING, d DATE) USING delta")
    spark.sql("DECLARE OR REPLACE VARIABLE wanted INT DEFAULT 7")
    for values in (
        "(1, uuid(), NULL)",
        "(2, regexp_replace('abc', 'b', 'x'), to_date('03/02/2020', 'dd/MM/yyyy')), (3, 'plain', NULL)",
        "(wanted, overlay('abc' PLACING '_' FROM 2), date'2020-01-01')",
    ):
        spark.sql(f"INSERT INTO evaluated VALUES {values}")
    spark.sql("INSERT INTO evaluated (s, k) VALUES (upper(regexp_extract('a1', '[0-9]', 0)), wanted + 1)")
    spark.sql("INSERT OVERWRITE evaluated SELECT * FROM evaluated WHERE k > 1")
    rows = {row.k: (row.s, str(row.d)) for row in spark.table("evaluated").collect()}
    assert rows == {
        2: ("axc", "2020-02-03"),
        3: ("plain", "None"),
        7: ("a_c", "2020-01-01"),
        8: ("1", "None"),
    }
    with pytest.raises(AnalysisException, match="nowhere"):
        spark.sql("INSERT INTO evaluated (k) VALUES (nowhere)")
    with pytest.raises(AnalysisException, match="uuid"):
        spark.sql("INSERT INTO evaluated (k, s) VALUES (DEFAULT, uuid())")


def test_statements_that_are_not_read_say_why(spark):
    spark.sql("CREATE TABLE unread (k INT, l ARRAY<INT>) USING delta")
    spark.sql("INSERT INTO unread VALUES (1, array(1))")
    for statement, reason in (
        ("UPDATE unread SET l = transform(l, x -> x + 1)", "lambda functions"),
        ("WITH c AS (SELECT 1 k) DELETE FROM unread WHERE k IN (SELECT k FROM c)", "WITH before DELETE"),
        ("CREATE TABLE other (k INT, i INTERVAL DAY) USING delta", "the type INTERVAL"),
        ("CREATE TABLE other (k INT, i TIME) USING delta", "the type TIME"),
        ("CREATE TABLE other (k INT) USING delta CLUSTERED BY (k) INTO 4 BUCKETS", "buckets are not supported"),
    ):
        with pytest.raises(Exception, match=reason) as raised:
            spark.sql(statement)
        assert "needs the path" not in str(raised.value)
    assert spark.table("unread").collect() == [(1, [1])]
    spark.sql("CREATE TABLE plain_parquet (k INT) USING parquet")
    with pytest.raises(Exception, match="does not support UPDATE TABLE"):
        spark.sql("UPDATE plain_parquet SET k = transform(array(k), x -> x + 1)[0]")


def test_an_append_without_a_format_has_that_of_the_table(spark):
    spark.range(3).write.format("delta").saveAsTable("appended")
    spark.range(3, 5).write.mode("append").saveAsTable("appended")
    assert ids(spark.table("appended")) == [0, 1, 2, 3, 4]
    spark.range(1).write.mode("append").saveAsTable("appended_parquet")
    assert spark.sql("DESCRIBE EXTENDED appended_parquet").where("col_name = 'Provider'").first().data_type == "parquet"


@pytest.fixture
def three(spark):
    spark.sql("CREATE TABLE three (id INT, v STRING, p INT) USING delta PARTITIONED BY (p)")
    spark.sql("INSERT INTO three VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', NULL)")
    yield "three"
    spark.sql("DROP TABLE three")


def rows(spark, name):
    return [tuple(row) for row in spark.table(name).orderBy("id").collect()]


def test_variables_of_the_session(spark, three):
    spark.sql("DECLARE OR REPLACE VARIABLE wanted INT DEFAULT 2")
    spark.sql("DECLARE OR REPLACE VARIABLE word STRING DEFAULT 'it''s'")
    # A column of the name comes first.
    spark.sql("DECLARE OR REPLACE VARIABLE p INT DEFAULT 99")
    spark.sql(f"UPDATE {three} SET v = word WHERE id = wanted AND p <> 99")
    assert rows(spark, three) == [(1, "a", 1), (2, "it's", 2), (3, "c", None)]
    spark.sql(f"DELETE FROM {three} WHERE id = session.wanted OR v = 'word'")
    assert rows(spark, three) == [(1, "a", 1), (3, "c", None)]
    spark.sql(
        f"MERGE INTO {three} t USING (SELECT wanted id, word v) s ON t.id = s.id "
        "WHEN NOT MATCHED AND wanted = 2 THEN INSERT (id, v, p) VALUES (s.id, word, wanted)"
    )
    assert rows(spark, three) == [(1, "a", 1), (2, "it's", 2), (3, "c", None)]
    with pytest.raises(AnalysisException, match="`unheard_of`"):
        spark.sql(f"UPDATE {three} SET v = unheard_of")


def test_merge_into(spark, three):
    source = spark.createDataFrame([(1, "new", 1), (9, "nine", 9)], ["id", "v", "p"]).alias("source")
    merged = source.mergeInto(three, functions.expr("three.id = source.id"))
    merged = merged.whenMatched().update({"v": functions.col("source.v")})
    assert merged.whenNotMatched(functions.expr("source.id > 5")).insertAll().merge() is None
    assert rows(spark, three) == [(1, "new", 1), (2, "b", 2), (3, "c", None), (9, "nine", 9)]
    merged = source.mergeInto(three, functions.col("three.id") == functions.col("source.id"))
    merged = merged.whenMatched(functions.col("source.id") == 9).delete()
    merged.whenNotMatchedBySource(functions.col("three.p").isNull()).update({"v": functions.lit("gone")}).merge()
    assert rows(spark, three) == [(1, "new", 1), (2, "b", 2), (3, "gone", None)]


def test_the_folder_of_a_partition(spark, three, warehouse):
    def load(folder):
        return [row.id for row in spark.read.format("delta").load(f"{warehouse}/three/{folder}").collect()]

    assert (load("p=1"), load("p=2/"), load("p=77"), load("p=__HIVE_DEFAULT_PARTITION__")) == ([1], [2], [], [3])
    with pytest.raises(AnalysisException, match="not that of a partition"):
        load("q=1")


def test_a_script_that_changes_a_table_is_refused(spark, three):
    with pytest.raises(AnalysisException, match="SQL script"):
        spark.sql(f"BEGIN DECLARE k INT = 1; UPDATE {three} SET v = 'x' WHERE id = k; END")
    assert spark.sql(f"BEGIN SELECT count(*) FROM {three}; END").collect() == [(3,)]


def test_default_and_external_tables_as_in_delta_spark(spark, three):
    spark.sql(f"INSERT INTO {three} (id) VALUES (DEFAULT)")
    assert (None, None, None) in rows(spark, three)
    spark.sql("CREATE EXTERNAL TABLE outside (a INT) USING delta")
    assert spark.table("outside").columns == ["a"]
    spark.sql("DROP TABLE outside")
    with pytest.raises(AnalysisException, match="allowColumnDefaults"):
        spark.sql(f"ALTER TABLE {three} ALTER COLUMN v SET DEFAULT 'x'")


def test_the_operation_of_a_table_that_is_replaced_or_new(spark, warehouse):
    for text, operation in (("CREATE OR REPLACE TABLE made (a INT) USING delta", "CREATE OR REPLACE TABLE"),) * 2:
        spark.sql(text)
        assert DeltaTable(str(warehouse / "made")).history(1)[0]["operation"] == operation
    spark.sql("DROP TABLE made")
