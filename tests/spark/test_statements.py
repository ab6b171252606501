"""`deltafast.spark.sql` does what `spark.sql` does with Delta's jar: the same text for two copies of a table."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException

import deltafast.spark
from deltafast import DeltaTable as CoreTable
from deltafast import exceptions as ours
from deltafast.spark import register_view, sql

from .helpers import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture(scope="module")
def start(spark, tmp_path_factory):
    """Make a table of three versions; tests change copies."""
    folder = tmp_path_factory.mktemp("start") / "t"
    spark.sql(
        f"create table delta.`{folder}` (id bigint, p string, v int default 7) using delta partitioned by (p) tblproperties "
        "(delta.enableChangeDataFeed = true, delta.feature.allowColumnDefaults = 'supported', delta.enableDeletionVectors = true)"
    )
    for first in (0, 20):
        spark.sql(
            f"insert into delta.`{folder}` select id, concat('p', id % 2), cast(id as int) from range({first}, {first} + 20, 1, 1)"
        )
    return folder


CHANGES = [
    """delete from {t} as q where q.id = 3 or q.p = "p0" and id > 36""",
    "update {t} set v = v * 10, p = 'p1' where id between 4 and 6",
    "insert into {t} select id, 'p9', 1 from {t} version as of 1 where id < 3",
    "insert into {t} (id, p) values (100, 'it''s'), (101, default)",
    "insert into {t} by name select 'p5' p, 300L id",
    "insert into {t} replace where p = 'p9' select 400L, 'p9', 4",
    "insert overwrite {t} partition (p = 'p5') select 500L, 5",
    """merge into {t} as t using (select id, v + 1 v from {t} where id < 10) s on t.id = s.id
       when matched and s.id = 1 then delete when matched then update set v = s.v
       when not matched then insert (id) values (s.id) when not matched by source and t.id > 450 then delete""",
    """merge into {t} t using (select * from {t} version as of 1) as s on t.id = s.id + 1000
       when not matched and s.id > 18 then insert *""",
    "with q as (select id + 600 id from {t} where id < 2), r as (select * from q) insert into {t} (id) select * from r",
    "insert into {t} with q as (select 700L, 'p7', 7) select * from q",
    "insert with schema evolution into {t} select 800L, 'p8', 8, 'x' extra",
    "update {t} set v = v + 1 where {t}.id = 800",
    "delete from {t} where {t}.id = 700",
    """merge into {t} using (select 600L id) s on {t}.id = s.id
       when matched and {t}.p is null then update set {t}.v = s.id""",
    "alter table {t} alter v comment 'alone'",
    "alter table {t} alter column id comment 'key', p comment 'part', extra after id",
    "alter table {t} add columns (w string after id)",
    "alter table {t} add constraint positive check (id >= 0)",
    "alter table {t} change v v int comment 'of Hive' first",
    "alter table {t} replace columns (w string, id bigint, p string, v int, extra string comment 'e', l array<struct<x: int>>)",
    "alter table {t} add columns (l.element.y int first)",
    "alter table {t} alter column l.element.y comment 'y', l.element.x first",
    """merge with schema evolution into {t} t using (select 4L id, 5 fresh, named_struct('y', 1, 'z', 2) st) s
       on t.id = s.id when matched then update set fresh = s.fresh, st.z = s.st.z
       when not matched then insert (id, fresh) values (s.id, s.fresh)""",
    """merge with schema evolution into {t} t using (select 4L id, named_struct('y', 1) st) s on t.id = s.id
       when matched then update set st = s.st""",
    "update {t} set w = concat('{{', p, '}}') where p is not null",
    "restore table {t} to version as of 3",
    "truncate table {t}",
]


@pytest.mark.proof
def test_statements_change_tables_as_in_delta_spark(reference, spark, pair):
    theirs, mine = pair
    for change in CHANGES:
        expected = spark.sql(change.format(t=f"delta.`{theirs}`"))
        found = sql(spark, change.format(t=f"delta.`{mine}`"))
        if change.startswith(("delete", "update", "merge", "restore")):
            assert found.columns == expected.columns
            assert found.collect()[0][0] == expected.collect()[0][0], change
        found_rows = sorted(map(repr, deltafast.DeltaTable(mine).to_pyarrow_table().to_pylist()))
        assert found_rows == rows(reference._load(theirs)), change
        operations = [reference.history(folder)[0]["operation"] for folder in (theirs, mine)]
        assert operations[0] == operations[1] or operations == ["TRUNCATE", "DELETE"], change
        if change.startswith(("update", "merge")):
            assert rows(reference._load(mine)) == found_rows == rows(deltafast.spark.read(spark, mine)), change
    assert deltafast.DeltaTable(mine).version() == 2 + len(CHANGES)


def test_queries_name_tables_versions_and_changes(spark, start):
    t = f"delta.`{start}`"
    at = f" timestamp as of '{CoreTable(str(start)).timestamp().isoformat()}'"
    spark.range(5).createOrReplaceTempView("small")
    try:
        register_view(spark, "seen", start)
        register_view(spark, "past", str(start), version=1)
        for text in (
            f"select count(*), sum(v) from {t}",
            f"select p, count(*) n from {t} version as of 1 group by p having n > 3",
            f"with x as (select * from {t[:-1]}@v1` where p = 'p1') select x.id, s.id sid from x join small s on s.id = x.id",
            f"select a.id from {t} a join {t} version as of 1 b on a.id = b.id where b.p = 'p1' and '{{b}}' != \"{{\"",
            f"select /* {{ */ `id` from {t}{at} where id < 3 -- }}",
            "select id from small where id > 2",
        ):
            assert rows(sql(spark, text)) == rows(spark.sql(text.replace(at, ""))), text
        with pytest.raises(ours.VersionNotFoundError, match="after the newest version"):
            sql(spark, f"select * from {t} timestamp as of current_timestamp()")
        assert sql(spark, "select seen.id from seen left anti join past on seen.id = past.id").count() == 20
        assert sql(spark, "select seen.id from seen version as of 1 where seen.id < 5").count() == 5
        assert (
            sql(spark, f"select max(_commit_version) v from table_changes_by_path('{start}', 1, 1)").collect()[0].v == 1
        )
        assert sql(spark, "select count(*) n from table_changes('seen', 1)").collect()[0].n == 40
        for of in ("seen", start, f"delta.`{start}`"):
            found = sql(spark, f"select sum(num_records) n, max(delta_files.size_bytes) s from delta_files('{of}')")
            assert found.first().n == spark.read.format("delta").load(str(start)).count()
            assert found.first().s > 0
            history = sql(
                spark, f"select h.version, h.operation from delta_history('{of}', 2) h order by h.version desc"
            )
            wanted = spark.sql(f"describe history {t}").select("version", "operation").limit(2)
            assert history.collect() == wanted.collect()
            assert sql(spark, f"select numFiles from delta_detail('{of}')").first().numFiles == len(
                CoreTable(str(start)).files()
            )
        assert sql(spark, "select * from delta_history('seen')").count() == CoreTable(str(start)).version() + 1
        for wrong in ("delta_files()", "delta_detail('seen', 2)", "delta_history(seen)", "delta_files('none')"):
            with pytest.raises(AnalysisException):
                sql(spark, f"select * from {wrong}")
    finally:
        for name in ("small", "seen", "past"):
            spark.catalog.dropTempView(name)


def test_names_stand_for_tables(reference, spark, pair):
    theirs, mine = pair
    register_view(spark, "Events", mine)
    try:
        assert sql(spark, "delete from events where id < 10").collect()[0].num_affected_rows == 10
        assert spark.table("events").count() == 30
        deltafast.DeltaTable(mine).delete("id < 15")
        assert sql(spark, "select * from EVENTS").count() == 25
        merged = sql(
            spark,
            "merge into events using (select 99L id, 'p0' p) s on events.id = s.id when not matched then insert (id, p) values (s.id, s.p)",
        )
        assert merged.collect()[0].num_inserted_rows == 1
        history = sql(spark, "describe history events limit 2")
        assert [row.operation for row in history.collect()] == ["MERGE", "DELETE"]
        assert history.schema == spark.sql(f"describe history delta.`{theirs}`").schema
        assert sql(spark, "describe detail events").first().location == f"file:{mine}"
        assert [row.id for row in sql(spark, "select id from events where id > 50").collect()] == [99]
        assert deltafast.spark.files(spark, mine, "p = 'p0'").select("`partition.p`").distinct().collect()[0][0] == "p0"
    finally:
        spark.catalog.dropTempView("events")
    spark.sql(f"create table listed using delta location '{theirs}'")
    try:
        # By the core, though the session's catalog knows the name.
        sql(spark, "update default.listed set v = 1 where id = 0")
        assert deltafast.DeltaTable(theirs).history(1)[0]["engineInfo"].startswith("deltafast")
        assert sql(spark, "describe history spark_catalog.default.listed").first().operation == "UPDATE"
        assert rows(sql(spark, "select sum(v) s from default.listed version as of 1")) == ["{'s': 190}"]
    finally:
        spark.sql("drop table listed")


def test_tables_are_made(reference, spark, tmp_path):
    t, copy, cloned = (f"delta.`{tmp_path / name}`" for name in ("t", "copy", "cloned"))
    sql(
        spark,
        f"create table {t} (id bigint not null, day date comment 'd') using delta partitioned by (day) comment 'c'",
    )
    sql(spark, f"create table if not exists {t} (x int) using delta")
    sql(spark, f"insert into {t} select id, date'2026-01-01' + cast(id % 2 as int) from range(10)")
    assert spark.sql(f"select * from {t}").schema.fields[1].metadata == {"comment": "d"}
    sql(
        spark,
        f"create table {copy} using delta partitioned by (day) tblproperties (k = 'v') as select id * 2 as id, day from {t}",
    )
    assert rows(spark.sql(f"select * from {copy}")) == rows(spark.sql(f"select id * 2 as id, day from {t}"))
    sql(spark, f"create or replace table {copy} using delta as select 1 as one from {t} limit 1")
    assert rows(spark.sql(f"select * from {copy}")) == ["{'one': 1}"]
    assert [entry["operation"] for entry in reference.history(tmp_path / "copy")] == [
        "CREATE OR REPLACE TABLE AS SELECT",
        "CREATE TABLE AS SELECT",
    ]
    assert sql(spark, f"create table {cloned} shallow clone {t} version as of 1").first().source_num_of_files == 4
    sql(spark, f"create table made using delta location '{tmp_path / 'made'}' as select * from {t}")
    try:
        assert spark.table("made").count() == 10
    finally:
        spark.sql("drop table made")
    with pytest.raises(AnalysisException, match="already exists"):
        sql(spark, f"create table {t} (x int) using delta")
    found = sql(spark, f"vacuum {t} retain 0 hours dry run")
    assert found.columns == ["path"]


def test_the_rest_is_sparks(spark, start, tmp_path):
    sql(spark, f"create table plain_table (a int) using parquet location '{tmp_path / 'plain'}'")
    try:
        sql(spark, "insert into plain_table values (1), (2)")
        assert sql(spark, "select sum(a) s from plain_table").first().s == 3
        assert "plain_table" in [row.tableName for row in sql(spark, "show tables").collect()]
        assert sql(spark, "describe table plain_table").first().col_name == "a"
        with pytest.raises(ours.TableNotFoundError, match="no Delta table `plain_table`"):
            sql(spark, "optimize plain_table")
    finally:
        sql(spark, "drop table plain_table")
    wrong: list[tuple[type[Exception], str, str]] = [
        (ParseException, "nonsense", "nonsense text"),
        (AnalysisException, "no_such_column", f"select no_such_column from delta.`{start}`"),
        (AnalysisException, "expected", f"update delta.`{start}` sett v = 1"),
        (AnalysisException, "nope", f"update delta.`{start}` set nope = 1"),
        (NotImplementedError, "deep CLONE", f"create table delta.`{tmp_path / 'x'}` deep clone delta.`{start}`"),
        (AnalysisException, "no Delta table", f"select * from delta.`{tmp_path / 'x'}`"),
        (AnalysisException, "columns", f"insert into delta.`{start}` select 1"),
        (AnalysisException, "parameters are not supported", f"delete from delta.`{start}` where id = :missing"),
    ]
    for kind, words, text in wrong:
        args: Any = {"n": 1} if ":missing" in text else None
        with pytest.raises(kind, match=words):
            sql(spark, text, args)
    with pytest.raises(ours.InvalidArgumentError, match="name of a view"):
        register_view(spark, "a.b", start)
    assert deltafast.DeltaTable(start).version() == 2
