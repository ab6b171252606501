"""How many rows a table has is answered by its log, and by tasks where that does not tell."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast.spark
from deltafast import DeltaTable, Schema, create_table_with_add_actions
from deltafast.spark._scan import file_index
from deltafast.spark._session.session import Session
from deltafast.transaction import AddAction

from .helpers import plan

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

#: Tables of delta-spark, by what is set for them.
TABLES = {
    "plain": "",
    "vectors": "tblproperties ('delta.enableDeletionVectors' = 'true')",
    "partitions and names": "partitioned by (p) tblproperties ('delta.columnMapping.mode' = 'name')",
}


@pytest.fixture(params=["all files are listed", "files are listed when asked for"])
def listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be of few files or of many."""
    if request.param != "all files are listed":
        monkeypatch.setattr("deltafast.spark._scan.snapshot.MANY", 0)


@pytest.fixture(scope="module", params=TABLES)
def table(request: pytest.FixtureRequest, reference, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give a table with 1,000 rows of which 30 were deleted, every third `n` being null."""
    folder = tmp_path_factory.mktemp("counted") / "t"
    spark = reference._spark
    spark.sql(f"create table delta.`{folder}` (id bigint, p int, n bigint) using delta {TABLES[request.param]}")
    rows = spark.range(0, 1000, 1, 5).selectExpr("id", "cast(id % 3 as int) p", "if(id % 3 = 0, null, id) n")
    rows.write.format("delta").mode("append").save(str(folder))
    spark.sql(f"delete from delta.`{folder}` where id < 30")
    return str(folder)


@pytest.mark.usefixtures("listing")
def test_a_whole_table_is_counted_without_a_job(spark, table):
    frame = deltafast.spark.read(spark, table)
    assert frame.count() == 970 == spark.read.format("delta").load(table).count()
    asked = frame.withColumn("more", frame.id + 1).selectExpr("count(*) a", "count(1) b")
    assert "LocalTableScan" in plan(asked)
    assert "FileScan" not in plan(asked)
    assert asked.collect() == [(970, 970)]
    frame.createOrReplaceTempView("counted")
    both = spark.sql("select (select count(*) from counted) + 1 a, max(id) b from counted")
    assert both.collect() == [(971, 999)]
    assert deltafast.spark.read(spark, table, version=1).count() == 1000


@pytest.mark.usefixtures("listing")
def test_what_the_log_does_not_report_is_counted_by_tasks(spark, table):
    frame = deltafast.spark.read(spark, table)
    frame.createOrReplaceTempView("counted")
    for asked, expected in (
        ("count(n)", 646),
        ("count(distinct p)", 3),
        ("count(*) filter (where id > 500)", 499),
        ("count(null)", 0),
    ):
        assert spark.sql(f"select {asked} from counted").collect() == [(expected,)], asked
    assert spark.sql("select count(*), sum(p) from counted").collect() == [(970, frame.selectExpr("sum(p)").first()[0])]
    assert frame.where("id >= 900").count() == 100
    assert frame.where("p = 1").count() == 323
    assert sorted(frame.groupBy("p").count().collect()) == [(0, 324), (1, 323), (2, 323)]
    assert frame.limit(7).count() == 7
    assert frame.union(frame).count() == 1940
    assert frame.join(frame.select("id"), "id").count() == 970


@pytest.mark.usefixtures("listing")
def test_files_without_statistics_are_opened(spark, tmp_path):
    data = pa.table({"id": pa.array(range(40))})
    pq.write_table(data, tmp_path / "some.parquet")
    size = (tmp_path / "some.parquet").stat().st_size
    add = AddAction("some.parquet", size, {}, modification_time=0, data_change=True)
    create_table_with_add_actions(tmp_path, Schema.from_arrow(data.schema), [add])
    assert DeltaTable(tmp_path).get_add_actions(flatten=True)["num_records"].to_pylist() == [None]
    counted = deltafast.spark.read(spark, tmp_path).selectExpr("count(*)")
    assert "LocalTableScan" not in plan(counted)
    assert counted.collect() == [(40,)]


def test_a_table_without_files_has_no_rows(spark, tmp_path):
    DeltaTable.create(tmp_path, pa.schema([("id", pa.int64())]))
    assert deltafast.spark.read(spark, tmp_path).count() == 0


def test_a_session_has_the_rule_once_and_keeps_its_others(spark, table):
    rules = spark._jsparkSession.experimental().extraOptimizations
    deltafast.spark.read(spark, table)
    before = rules().size()
    assert before >= 1
    file_index._count_by_log(Session(spark))
    assert rules().size() == before


def test_tables_of_others_are_counted_as_before(spark, table, tmp_path):
    deltafast.spark.read(spark, table)
    spark.range(12).write.parquet(str(tmp_path / "plain"))
    counted = spark.read.parquet(str(tmp_path / "plain")).selectExpr("count(*)")
    assert "FileScan parquet" in plan(counted)
    assert counted.collect() == [(12,)]
