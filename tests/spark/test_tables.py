"""`deltafast.spark.DeltaTable` does what delta-spark's does: the same statement on two copies of a table."""

from __future__ import annotations

import datetime as dt
import functools
import json
import operator
import pathlib
import pickle
import shutil
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException, UnsupportedOperationException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.functions import col, expr, lit
from pyspark.sql.types import IntegerType, StructField, StructType

import deltafast.spark
from deltafast import exceptions as ours
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.listed import listed
from deltafast._expr.syntax_sql import sql_text
from deltafast._util.dialect import Dialect
from deltafast.spark import DeltaTable, IdentityGenerator, exceptions
from deltafast.spark._commands.column_syntax import as_condition
from deltafast.spark._session.session import Session

from .columns import check_conditions
from .helpers import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

#: Figures that depend on how files are encoded and how many tasks write, or on the clock.
UNCOMPARED = ("Bytes", "Size", "Ms", "size", "AddedFiles", "FilesAdded", "ChangeFiles")


@pytest.fixture(scope="module")
def start(reference, spark, tmp_path_factory) -> pathlib.Path:
    """Make a table that has something of everything; tests change copies."""
    folder = tmp_path_factory.mktemp("start") / "t"
    spark.sql(
        f"create table delta.`{folder}` (id bigint, p string, v int, w string, s struct<x: int, y: string>) using delta "
        "partitioned by (p) tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true)"
    )
    for first in (0, 50):
        spark.sql(
            f"insert into delta.`{folder}` select id, if(id % 10 = 7, null, concat('p', id % 3)), cast(id as int) * 2, "
            f"concat('w', id), if(id % 5 = 0, null, named_struct('x', cast(id as int), 'y', 'y')) from range({first}, {first} + 50)"
        )
    return folder


def metrics(entry: Any) -> dict[str, Any]:
    """What an operation counted."""
    found = dict(entry["operationMetrics"])
    return {key: value for key, value in found.items() if not any(part in key for part in UNCOMPARED)}


def same_end(reference, theirs: str, ours_: str, *, counted: bool = True) -> None:
    """Both copies have the same rows, and their last commits say the same."""
    assert rows(reference._load(theirs)) == rows(reference._load(ours_))
    assert rows(reference._load(ours_)) == rows(deltafast.spark.read(reference._spark, ours_))
    left, right = reference.history(theirs)[0], reference.history(ours_)[0]
    assert left["operation"] == right["operation"]
    if counted:
        found, expected = metrics(right), metrics(left)
        both = found.keys() & expected.keys()
        assert len(both) >= 2
        assert {key: found[key] for key in both} == {key: expected[key] for key in both}


@pytest.mark.proof
def test_rows_are_deleted_and_updated(reference, spark, pair):
    theirs, mine = pair
    table = DeltaTable.forPath(spark, mine)
    wheres: list[Any] = [
        "id % 7 = 3 and p = 'p1'",
        (col("v") > 180) | col("p").isNull() & (col("s.x") < 40),
        'w = "w5" or id in (8, 9)',
    ]
    for where in wheres:
        text = where if isinstance(where, str) else "v > 180 or p is null and s.x < 40"
        spark.sql(f"delete from delta.`{theirs}` where {text}")
        assert table.delete(where) is None
        same_end(reference, theirs, mine)
    spark.sql(f"delete from delta.`{theirs}` as t where t.id = 12")
    table.alias("t").delete(col("t.id") == 12)
    same_end(reference, theirs, mine)
    spark.sql(f"update delta.`{theirs}` set v = v + 1, s.y = concat(w, '!') where p = 'p2'")
    table.update(col("p") == "p2", {"v": col("v") + 1, "s.y": F.concat("w", lit("!"))})
    same_end(reference, theirs, mine)
    spark.sql(f"update delta.`{theirs}` set w = 'new'")
    table.update(set={"`w`": "'new'"})
    same_end(reference, theirs, mine, counted=False)
    newest = reference.newest(mine)
    options = {"readChangeFeed": "true", "startingVersion": 3, "endingVersion": newest}
    feed = deltafast.spark.read(spark, mine, options=options).drop("_commit_timestamp")
    assert rows(feed) == rows(reference._load(theirs, **options).drop("_commit_timestamp"))
    spark.sql(f"delete from delta.`{theirs}`")
    table.delete()
    same_end(reference, theirs, mine, counted=False)
    assert table.toDF().count() == 0


@pytest.mark.proof
def test_data_frames_are_merged(reference, spark, pair):
    theirs, mine = pair
    source = spark.range(40, 130, 1, 3).selectExpr(
        "id", "'p1' p", "cast(id as int) v", "'s' w", "named_struct('x', 1, 'y', 'z') s"
    )
    source.createOrReplaceTempView("merge_source")
    table = DeltaTable.forPath(spark, mine)
    answer = reference.answer(
        f"merge into delta.`{theirs}` t using merge_source u on t.id = u.id when matched and u.id % 4 = 0 then delete "
        "when matched and u.id < 80 then update set v = t.v + u.v, w = u.w when matched then update set * "
        "when not matched and u.id < 110 then insert * when not matched then insert (id, w) values (u.id, 'late') "
        "when not matched by source and t.id < 10 then update set w = 'old' when not matched by source and t.id > 35 then delete"
    )
    builder = table.alias("t").merge(source.alias("u"), "t.id = u.id")
    assert builder.whenMatchedDelete() is not builder
    found = (
        builder.whenMatchedDelete("u.id % 4 = 0")
        .whenMatchedUpdate(col("u.id") < 80, {"v": col("t.v") + col("u.v"), "w": "u.w"})
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll(expr("u.id < 110"))
        .whenNotMatchedInsert(values={"id": "u.id", "w": lit("late")})
        .whenNotMatchedBySourceUpdate("t.id < 10", {"t.w": "'old'"})
        .whenNotMatchedBySourceDelete(col("t.id") > 35)
        .execute()
    )
    assert found.schema.names == answer.column_names
    assert found.toArrow().to_pylist() == answer.to_pylist()
    same_end(reference, theirs, mine)
    # By columns of the frames themselves, which have no alias.
    renamed = source.selectExpr("id k", "w other")
    spark.sql(
        f"merge into delta.`{theirs}` t using (select id k, w other from merge_source) u on t.id = u.k when matched then update set w = u.other"
    )
    table.merge(renamed, table.toDF()["id"] == renamed["k"]).whenMatchedUpdate(set={"w": renamed.other}).execute()
    same_end(reference, theirs, mine)
    # New columns.
    more = source.selectExpr("id", "'x' more", "w")
    more.createOrReplaceTempView("merge_more")
    spark.sql(
        f"merge with schema evolution into delta.`{theirs}` t using merge_more u on t.id = u.id when matched then update set * when not matched then insert *"
    )
    table.alias("t").merge(
        more.alias("u"), "t.id = u.id"
    ).withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    same_end(reference, theirs, mine)
    assert table.toDF().columns == reference._load(theirs).columns
    # What Spark cannot compute, as Spark says it; nothing is changed.
    version = reference.newest(mine)
    broken = spark.range(3).selectExpr("if(id = 2, raise_error('no such row'), id) id")
    with pytest.raises(Exception, match="no such row") as caught:
        table.alias("t").merge(broken.alias("u"), "t.id = u.id").whenMatchedDelete().execute()
    assert type(caught.value).__module__.startswith("pyspark")
    twice = source.select("id").unionByName(source.select("id"))
    with pytest.raises(AnalysisException):
        table.alias("t").merge(twice.alias("u"), "t.id = u.id").whenMatchedUpdate(set={"w": "'a'"}).execute()
    assert reference.newest(mine) == version


@pytest.mark.proof
def test_files_are_laid_out_and_versions_come_back(reference, spark, pair):
    theirs, mine = pair
    java = spark._jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, theirs)
    table = DeltaTable.forPath(spark, mine)

    def frame(of: Any) -> Any:
        from pyspark.sql import DataFrame

        return DataFrame(of, spark)

    expected = frame(java.optimize().where("p = 'p1'").executeCompaction())
    found = table.optimize().where("p = 'p1'").executeCompaction()
    names = ("numFilesAdded", "numFilesRemoved", "partitionsOptimized", "totalConsideredFiles", "totalFilesSkipped")
    assert found.schema.simpleString() == expected.schema.simpleString()
    chosen = [f"metrics.{name}" for name in names]
    assert rows(found.select(*chosen)) == rows(expected.select(*chosen))
    assert found.first().path == f"file:{mine}"
    same_end(reference, theirs, mine)
    said = [reference.history(folder)[0]["operationParameters"]["predicate"] for folder in (theirs, mine)]
    assert said[0] == said[1] == """["('p = p1)"]"""
    columns = spark._jvm.PythonUtils.toSeq(["id", "v"])
    expected = frame(java.optimize().executeZOrderBy(columns))
    found = table.optimize().executeZOrderBy(["id", "v"])
    stats = (
        "metrics.zOrderStats.strategyName",
        "metrics.zOrderStats.numOutputCubes",
        "metrics.zOrderStats.inputOtherFiles.num",
    )
    assert rows(found.select(*chosen, *stats)) == rows(expected.select(*chosen, *stats))
    expected, found = frame(java.restoreToVersion(1)), table.restoreToVersion(1)
    assert found.schema.names == expected.schema.names
    assert [row.num_restored_files for row in found.collect()] == [row.num_restored_files for row in expected.collect()]
    same_end(reference, theirs, mine)
    assert table.history().schema == frame(java.history()).schema
    assert (
        table.history(2).select("version", "operation").collect()
        == frame(java.history(2)).select("version", "operation").collect()
    )
    assert table.detail().schema == frame(java.detail()).schema
    same = [
        "format",
        "partitionColumns",
        "numFiles",
        "properties",
        "minReaderVersion",
        "minWriterVersion",
        "tableFeatures",
    ]
    assert table.detail().select(*same).collect() == frame(java.detail()).select(*same).collect()
    assert table.detail().first().location == f"file:{mine}"
    stamp = table.history().where("version = 2").first().timestamp
    table.restoreToTimestamp(stamp.strftime("%Y-%m-%d %H:%M:%S.%f"))
    assert table.toDF().count() == 100
    for late in (
        lambda: table.restoreToTimestamp("2200-01-01"),
        lambda: deltafast.spark.read(spark, mine, timestamp="2200-01-01"),
        lambda: spark.read.format("delta").option("timestampAsOf", "2200-01-01").load(mine),
    ):
        with pytest.raises((AnalysisException, ours.VersionNotFoundError), match="after the"):
            late()
    before = len(list(pathlib.Path(mine).rglob("*.parquet")))
    assert table.vacuum(0).schema == frame(java.vacuum(0.0)).schema == StructType([])
    assert len(list(pathlib.Path(mine).rglob("*.parquet"))) < before
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "true")
    try:
        with pytest.raises(ours.InvalidArgumentError, match=r"168.*set `spark\.databricks.*` to false"):
            table.vacuum(1)
    finally:
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")


def test_columns_mean_in_the_core_what_they_mean_in_spark(spark, tmp_path):
    check_conditions(spark, str(tmp_path / "t"))


def test_chains_of_conditions_may_be_long(spark):
    session = Session(spark)
    # Longer than Python's stack is deep.
    chain: Any = as_condition(functools.reduce(operator.or_, [col("i") == n for n in range(1200)]), session)
    assert len(chain.args) == 1200
    assert sql_text(chain).endswith("OR (`i` = 1199))")


def test_names_with_blanks_need_column_mapping(spark, tmp_path):
    with pytest.raises(ours.InvalidArgumentError, match="odd name"):
        deltafast.spark.write(spark.sql("select 1 `odd name`"), tmp_path / "t")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (lambda frame: frame["id"] > 1, "(`id` > 1)"),
        (lambda frame: frame.alias("q")["id"] > 1, "(`q`.`id` > 1)"),
        (lambda _: col("a.b") != lit("it's"), r"(NOT (`a`.`b` = 'it\'s'))"),
        (lambda _: expr('id > 1 or x = "a"'), "(id > 1 or x = 'a')"),
        (lambda _: expr("id > 1") & col("x").isNotNull(), "((`id` > 1) AND (`x` IS NOT NULL))"),
        (lambda _: F.when(col("x"), 1).otherwise(2.5), "(CASE WHEN `x` THEN 1 ELSE 2.5D END)"),
        (lambda _: (col("x") & col("y")) & col("z"), "((`x` AND `y`) AND `z`)"),
        (lambda _: col("x") & (col("y") & col("z")), "(`x` AND (`y` AND `z`))"),
        (lambda _: col("x").try_cast("decimal(3, 2)")["k"], "try_cast(`x` AS DECIMAL(3,2))['k']"),
        (lambda _: col("x").isin(1, None), "(`x` IN (1, NULL))"),
    ],
)
def test_the_text_of_a_column_is_spark_sql(spark, column, text):
    assert sql_text(as_condition(column(spark.range(1)), Session(spark))) == text


@pytest.mark.parametrize(
    "column",
    [
        lambda: F.udf(lambda x: x)(col("i")),
        lambda: F.transform("m", lambda x: x),
        lambda: F.exists("m", lambda x: x),
        lambda: F.count_distinct("m"),
        lambda: col("*"),
        lambda: col("s").withField("x", lit(1)),
        lambda: lit(dt.timedelta(days=1)),
        lambda: F.call_function("a.b", col("i")),
    ],
)
def test_columns_that_sql_does_not_have_are_refused(spark, column):
    with pytest.raises(UnsupportedExpressionError, match="of a Column cannot be written as SQL; give the"):
        as_condition(column(), Session(spark))


def test_columns_change_rows_as_in_delta_spark(reference, spark, pair):
    theirs, mine = pair
    java = spark._jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, theirs)
    table = DeltaTable.forPath(spark, mine)
    values = {
        "v": F.when(col("v") > 100, lit(None)).otherwise(col("s.x") + 1),
        "w": F.concat_ws("-", lit("a\nb'\\"), col("p").cast("string"), expr("w")),
        "s": F.named_struct(lit("y"), col("w"), lit("x"), col("v").cast("short")),
    }
    where = (col("t.id") % 3 == 0) & expr('t.id > 10 or t.w = "w3"') & ~col("t.p").isin(*map(str, range(50)))
    java.alias("t").update(where._jc, {name: value._jc for name, value in values.items()})
    table.alias("t").update(where, values)
    same_end(reference, theirs, mine)
    java.delete((col("id").cast("string").like("%4") | (col("s")["x"] == 20))._jc)
    table.delete(col("id").cast("string").like("%4") | (col("s")["x"] == 20))
    # The files that an update leaves are not the same.
    same_end(reference, theirs, mine, counted=False)
    source = spark.range(40, 60, 1, 1).selectExpr("id", "named_struct('n', id) u")
    on = (table.toDF()["id"] == source["id"]) & (source["u"]["n"] < 55) & expr("target.v is null or source.u.n > 1")
    table.merge(source, on).whenMatchedUpdate(source["u"]["n"] > 45, {"w": source["id"].cast("string")}).execute()
    spark.sql(
        f"merge into delta.`{theirs}` t using (select id, id n from range(40, 60)) u on t.id = u.id and n < 55 "
        "when matched and n > 45 then update set w = cast(u.id as string)"
    )
    same_end(reference, theirs, mine, counted=False)


def test_the_history_has_the_text_of_columns(spark, pair):
    _, mine = pair
    table = DeltaTable.forPath(spark, mine)

    def predicate() -> str:
        return table.history(1).first().operationParameters["predicate"]

    table.alias("t").delete((col("t.id") == 5) | col("t.p").isNull())
    assert predicate() == json.dumps(["((`id` = 5) OR (`p` IS NULL))"])
    table.update(expr('w = "w9"'), {"v": lit(1)})
    assert predicate() in ("(w = 'w9')", json.dumps(["(w = 'w9')"]))
    source = spark.range(20).alias("u")
    table.alias("t").merge(source, col("t.id") == col("u.id")).whenMatchedDelete(col("t.v") == 2).execute()
    assert predicate() in ("(`t`.`id` = `u`.`id`)", json.dumps(["(`t`.`id` = `u`.`id`)"]))


def test_arguments_of_other_types_are_refused_as_by_delta_spark(spark, start):
    table = DeltaTable.forPath(spark, str(start))
    source = spark.createDataFrame([("a", 1)], "k string, n int")
    merge = table.merge(source, "w = k")
    wrong: list[tuple[type[Exception], str, Any]] = [
        (TypeError, "must be a Spark SQL Column or a string", lambda: table.delete(1)),
        (ValueError, "'set' cannot be None", lambda: table.update({"v": "200"})),
        (TypeError, "must be a dict", lambda: table.update(set=1)),
        (TypeError, "must be a Spark SQL Column or a string", lambda: table.update(1, {})),
        (TypeError, "Values of dict in .* must contain only", lambda: table.update(set={"v": 1})),
        (TypeError, "Keys of dict in .* must contain only", lambda: table.update(set={1: ""})),
        (TypeError, "must be DataFrame", lambda: table.merge(1, "a = b")),
        (ValueError, "'source' in merge cannot be None", lambda: table.merge(None, "a = b")),
        (ValueError, "'condition' in merge cannot be None", lambda: table.merge(source, None)),
        (TypeError, "must be a Spark SQL Column or a string", lambda: table.merge(source, 1)),
        (ValueError, "cannot be None", lambda: merge.whenMatchedUpdate({"v": "n"})),
        (TypeError, "must be a Spark SQL Column or a string", lambda: merge.whenMatchedDelete(1)),
        (TypeError, "must be a dict", lambda: merge.whenNotMatchedInsert("k = 'a'", 1)),
        (ValueError, "whenNotMatchedInsert", lambda: merge.whenNotMatchedInsert("k = 'a'")),
        (AnalysisException, "needs at least one", merge.execute),
        (AnalysisException, "only the last MATCHED clause", lambda: merge.whenMatchedDelete().whenMatchedDelete().execute()),
        (AnalysisException, "nope", lambda: table.delete("nope = 1")),
        (AnalysisException, "nope", lambda: merge.whenMatchedUpdate(set={"nope": "1"}).execute()),
        (ValueError, "version needs to be an int but got", lambda: table.restoreToVersion("0")),
        (ValueError, "timestamp needs to be a string but got", lambda: table.restoreToTimestamp(1)),
        (AnalysisException, r"\('05/04/1999'\) cannot be converted to a valid timestamp", lambda: table.restoreToTimestamp("05/04/1999")),
        (AnalysisException, "77", lambda: table.restoreToVersion(77)),
        (ValueError, "readerVersion needs to be an integer", lambda: table.upgradeTableProtocol("a", 3)),
        (ValueError, "featureName needs to be a string", lambda: table.addFeatureSupport(1)),
        (ValueError, "isShallow needs to be a boolean", lambda: table.clone("/tmp/x", 1)),
        (NotImplementedError, "deep clone", lambda: table.clone("/tmp/x")),
        (AnalysisException, "no mode", lambda: table.generate("other")),
        (TypeError, "Z-order column must be str", lambda: table.optimize().executeZOrderBy(1)),
        (AnalysisException, "no Delta table", lambda: DeltaTable.forPath(spark, "/nonexistent/folder")),
        (AnalysisException, "file systems", lambda: DeltaTable.forPath(spark, str(start), {"spark.x": "1"})),
        (AnalysisException, "not a Delta table", lambda: DeltaTable.forName(spark, "no_such_table")),
    ]  # fmt: skip
    for kind, text, call in wrong:
        with pytest.raises(kind, match=text):
            call()
    assert reference_version(start) == 2


def reference_version(folder: pathlib.Path) -> int:
    return deltafast.DeltaTable(folder).version()


def test_conflicts_have_delta_sparks_names(spark, pair, monkeypatch):
    _, mine = pair
    table = DeltaTable.forPath(spark, mine)
    monkeypatch.setattr(DeltaTable, "_newest", lambda self: self._handle)
    other = deltafast.DeltaTable(mine)
    other.delete("id = 1 and p = 'p1'")
    with pytest.raises(exceptions.ConcurrentAppendException) as caught:
        table.delete("id < 5 and p = 'p1'")
    assert isinstance(caught.value, exceptions.DeltaConcurrentModificationException)
    assert isinstance(caught.value, ours.ConcurrentAppendError)
    assert (caught.value.getCondition(), caught.value.getSqlState()) == (
        "DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
        "2D521",
    )
    assert str(caught.value).startswith("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected")
    table = DeltaTable.forPath(spark, mine)
    other.alter.set_table_properties({"delta.logRetentionDuration": "interval 20 days"})
    with pytest.raises(exceptions.MetadataChangedException, match="metadata"):
        table.update(set={"v": "1"})
    assert exceptions.__all__[-1] == "translated"


def fields(frame: Any) -> list[tuple[str, str, Any]]:
    return [(field.name, field.dataType.simpleString(), field.metadata.get("comment")) for field in frame.schema.fields]


def test_tables_are_built(reference, spark, tmp_path):
    folder = str(tmp_path / "t")

    def described(builder: Any) -> Any:
        return (
            builder.addColumn("a", "int", comment="foo", nullable=False)
            .addColumn("b", IntegerType(), generatedAlwaysAs="a + 10")
            .addColumns(StructType([StructField("c", IntegerType())]))
            .addColumn("n", "bigint", generatedByDefaultAs=IdentityGenerator(5, 2))
            .property("foo", "bar")
            .comment("comment")
            .partitionedBy("a")
        )

    made = described(DeltaTable.create(spark).location(folder)).execute()
    assert type(made) is DeltaTable
    expected = tmp_path / "expected"
    spark.sql(
        f"create table delta.`{expected}` (a int not null comment 'foo', b int generated always as (a + 10), c int, "
        "n bigint generated by default as identity (start with 5 increment by 2)) using delta partitioned by (a) "
        "comment 'comment' tblproperties (foo = 'bar')"
    )
    left, right = reference.facts(expected, 0), reference.facts(folder, 0)
    assert json.loads(right["metadata"]["schemaString"]) == json.loads(left["metadata"]["schemaString"])
    assert right["metadata"]["description"] == "comment"
    assert (right["metadata"]["configuration"], right["metadata"]["partitionColumns"]) == ({"foo": "bar"}, ["a"])
    spark.sql(f"insert into delta.`{folder}` (a, c) values (1, 11)")
    made.update(expr("c = 11"), {"a": lit(2)})
    assert [tuple(row) for row in made.toDF().collect()] == [(2, 12, 11, 5)]
    with pytest.raises(AnalysisException, match="already exists"):
        described(DeltaTable.create(spark).location(folder)).execute()
    kept = DeltaTable.createIfNotExists(spark).location(folder).addColumn("x", "int").execute()
    assert kept.toDF().columns == ["a", "b", "c", "n"]
    clustered = DeltaTable.replace(spark).location(folder).addColumn("x", "decimal(10, 2)").clusterBy("x").execute()
    assert (clustered.toDF().columns, clustered.detail().first().clusteringColumns) == (["x"], ["x"])
    with pytest.raises(AnalysisException, match="cannot be found"):
        DeltaTable.replace(spark).location(str(tmp_path / "none")).addColumn("x", "int").execute()
    named = DeltaTable.createOrReplace(spark).tableName("built").addColumn("x", "int").execute()
    try:
        spark.sql("insert into built values (3)")
        assert [row.x for row in DeltaTable.forName(spark, "built").toDF().collect()] == [3]
        assert DeltaTable.forName(spark, f"delta.`{folder}`").toDF().columns == ["x"]
        with pytest.raises(AnalysisException, match="built already exists"):
            DeltaTable.create(spark).tableName("built").addColumn("x", "int").execute()
    finally:
        spark.sql("drop table built")
        shutil.rmtree(named._place.uri, ignore_errors=True)
    builder = DeltaTable.create(spark)
    wrong: list[tuple[type[Exception], Any]] = [
        (TypeError, lambda: builder.tableName(1)),
        (TypeError, lambda: builder.location(1)),
        (TypeError, lambda: builder.comment(1)),
        (TypeError, lambda: builder.addColumn(1, "int")),
        (TypeError, lambda: builder.addColumn("a", 1)),
        (ParseException, lambda: builder.addColumn("a", "1")),
        (TypeError, lambda: builder.addColumn("a", "int", comment=1)),
        (TypeError, lambda: builder.addColumn("a", "int", generatedAlwaysAs=1)),
        (TypeError, lambda: builder.addColumn("a", "int", nullable=1)),
        (ValueError, lambda: builder.addColumn("a", "int", generatedAlwaysAs=IdentityGenerator(1, 0))),
        (TypeError, lambda: builder.addColumns(1)),
        (TypeError, lambda: builder.addColumns([StructField("1", IntegerType()), 1])),
        (TypeError, lambda: builder.partitionedBy(1, "1")),
        (TypeError, lambda: builder.clusterBy([1])),
        (TypeError, lambda: builder.property("1", 1)),
        (AnalysisException, lambda: builder.addColumn("a", "int").execute()),
    ]
    for kind, call in wrong:
        with pytest.raises(kind):
            call()


def test_folders_are_converted_and_tables_cloned(reference, spark, tmp_path):
    plain, parted, clone = (str(tmp_path / name) for name in ("plain", "parted", "clone"))
    frame = spark.range(0, 6, 1, 2).selectExpr("id", "cast(id % 2 as int) v")
    frame.write.parquet(plain)
    frame.write.partitionBy("v").parquet(parted)
    assert not DeltaTable.isDeltaTable(spark, plain)
    table = DeltaTable.convertToDelta(spark, f"parquet.`{plain}`")
    assert DeltaTable.isDeltaTable(spark, plain)
    assert rows(reference._load(plain)) == rows(table.toDF()) == rows(frame)
    again = DeltaTable.convertToDelta(spark, f"parquet.`{parted}`", StructType([StructField("v", IntegerType())]))
    assert rows(again.toDF()) == rows(frame)
    table.delete("id = 5")
    copied = table.cloneAtVersion(0, clone, isShallow=True, properties={"a": "b"})
    assert rows(copied.toDF()) == rows(reference._load(clone)) == rows(frame)
    assert copied.detail().first().properties["a"] == "b"
    with pytest.raises(ValueError, match="empty table only"):
        table.clone(clone, isShallow=True, replace=True)
    copied.delete()
    replaced = table.clone(clone, isShallow=True, replace=True, properties={"c": "d"})
    assert rows(replaced.toDF()) == rows(reference._load(clone)) == rows(table.toDF())
    assert "a" not in replaced.detail().first().properties
    again.generate("symlink_format_manifest")
    assert len(list(pathlib.Path(parted).glob("_symlink_format_manifest/*/manifest"))) == 2
    table.upgradeTableProtocol(1, 3)
    version = table.history(1).first().version
    table.upgradeTableProtocol(1, 2)
    assert table.history(1).first().version == version, "what is lower stays as it is"
    assert (table.detail().first().minReaderVersion, table.detail().first().minWriterVersion) == (1, 3)
    table.addFeatureSupport("deletionVectors")
    assert "deletionVectors" in table.detail().first().tableFeatures
    table.dropFeatureSupport("deletionVectors")
    assert "deletionVectors" not in table.detail().first().tableFeatures
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "who")
    try:
        table.delete("id = 4")
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    assert table.history(1).first().userMetadata == "who"


def test_features_that_cannot_come_or_go_are_errors_by_delta_sparks_names(spark, tmp_path):
    folder = str(tmp_path / "t")
    deltafast.spark.write(spark.range(3), folder)
    table = DeltaTable.forPath(spark, folder)
    table.addFeatureSupport("checkConstraints")
    for condition, call in (
        ("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", lambda: table.addFeatureSupport("none")),
        ("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", lambda: table.dropFeatureSupport("none")),
        ("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", lambda: table.dropFeatureSupport("rowTracking")),
        ("DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", lambda: table.dropFeatureSupport("appendOnly")),
        (
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            lambda: table.dropFeatureSupport("checkConstraints", truncateHistory=True),
        ),
    ):
        with pytest.raises(ours.DeltaError, match=condition) as found:
            call()
        assert isinstance(found.value, PySparkException)
        assert found.value.getCondition() == condition
        again = pickle.loads(pickle.dumps(found.value))
        assert (str(again), again.getCondition()) == (str(found.value), condition)
    table.dropFeatureSupport("checkConstraints")


def test_only_bigint_counts(spark):
    builder = DeltaTable.create(spark)
    for given in ({"generatedAlwaysAs": IdentityGenerator()}, {"generatedByDefaultAs": IdentityGenerator(2, 2)}):
        with pytest.raises(UnsupportedOperationException, match="must be BIGINT, not INT"):
            builder.addColumn("n", "int", **given)


def test_predicates_are_listed_as_spark_prints_them(spark):
    parser = spark._jsparkSession.sessionState().sqlParser()
    for text in (
        "p = 'a b'",
        "a.b <=> `c d` AND NOT `e.f`",
        "a = 1 or b >= 2.50 or c != 'x' or d is null or e is not null",
        "n IN (1, 2, -3) AND day > DATE'2026-02-03'",
        "s NOT IN ('x', NULL) AND t = TRUE",
        "a + 1 < b * 2",
    ):
        assert listed(text, dialect=Dialect.SPARK) == parser.parseExpression(text).toString()
    assert listed("a BETWEEN 1 AND 2", dialect=Dialect.SPARK) is None


@pytest.mark.proof
def test_executors_change_rows_where_the_session_wants_it(reference, spark, pair):
    theirs, mine = pair
    source = spark.range(90, 110).selectExpr("id", "'p1' as p", "7 as v")
    source.createOrReplaceTempView("changes")
    spark.sql(f"delete from delta.`{theirs}` where id % 4 = 1")
    spark.sql(f"update delta.`{theirs}` set v = v + 1 where id % 4 = 2")
    spark.sql(
        f"merge into delta.`{theirs}` t using changes s on t.id = s.id when matched then update set v = s.v "
        "when not matched then insert (id, p, v) values (s.id, s.p, s.v)"
    )
    spark.conf.set("spark.deltafast.engine", "jobs")
    try:
        table = DeltaTable.forPath(spark, mine)
        table.delete("id % 4 = 1")
        table.update("id % 4 = 2", {"v": "v + 1"})
        merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"})
        merge.whenNotMatchedInsert(values={"id": "s.id", "p": "s.p", "v": "s.v"}).execute()
        spark.conf.set("spark.deltafast.engine", "cluster")
        with pytest.raises(ours.InvalidArgumentError, match="auto, driver or jobs"):
            table.delete()
    finally:
        spark.conf.unset("spark.deltafast.engine")
    paths = deltafast.DeltaTable(mine).get_add_actions()["path"].to_pylist()
    assert any(path.startswith("spark-") for path in paths), "by executors"
    same_end(reference, theirs, mine)
