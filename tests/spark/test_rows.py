"""Whole tables come as the rows that Spark makes, to the byte, though Spark does not make them."""

from __future__ import annotations

import pathlib
from typing import Any

import pyarrow as pa
import pytest

import deltafast
import deltafast.spark
from deltafast import DeltaTable, convert_to_deltalake
from deltafast.spark._scan import file_index
from deltafast.spark._session.session import Session

from .helpers import plan, usual_and_proof

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

ROWS = 3000

#: Columns of every type that is one value; of each some without nulls, of dictionaries and not.
COLUMNS = (
    "id",
    "if(id % 2 = 0, null, id % 3 = 0) o",
    "id % 2 = 0 oo",
    "cast(id % 256 - 128 as tinyint) b",
    "if(id % 5 = 0, null, cast(id * 7 - 9000 as smallint)) h",
    "cast(if(id % 7 = 1, null, -id) as int) i",
    "cast(id % 9 as int) ii",
    "if(id % 5 = 0, null, id * -1000003) l",
    "if(id % 4 = 0, null, cast(id % 3 as bigint)) ll",
    "cast(if(id % 6 = 0, null, if(id % 6 = 1, 'NaN', -id / 3D)) as float) f",
    "if(id % 7 = 0, null, if(id % 7 = 1, double('-0.0'), id / -3D)) d",
    "if(id % 8 = 0, null, cast(id / -7 as decimal(9, 2))) n9",
    "cast(id % 5 / 7 as decimal(18, 4)) n18",
    "if(id % 3 = 0, null, cast(id / -7 as decimal(30, 6))) n30",
    "cast(case id % 4 when 0 then 0 when 1 then 127 when 2 then -128 else 99999999999999999999999999999999999 end as decimal(38, 0)) n38",
    "if(id % 11 = 0, null, repeat(char(97 + cast(id % 26 as int)), cast(id % 90 as int))) s",
    "if(id % 10 = 0, null, concat('ké', id % 17)) k",
    "if(id < 1500, null, concat('only later ', id)) q",
    "cast(null as string) e",
    "if(id % 12 = 0, null, cast(concat('y', id) as binary)) y",
    "cast(repeat('z', cast(id % 3 as int)) as binary) yy",
    "date_add(date'1890-01-01', cast(id % 400 as int)) a",
    "if(id % 9 = 0, null, timestamp_micros(id * -1000001)) z",
    "cast(timestamp_micros(id * 1000001) as timestamp_ntz) w",
)

#: What is set; whether Spark then reads vectors.
SETTINGS: dict[str, tuple[dict[str, str], bool]] = {
    "usual": ({}, True),
    "small batches": ({"spark.sql.parquet.columnarReaderBatchSize": "7"}, True),
    "off the heap": ({"spark.sql.columnVector.offheap.enabled": "true"}, True),
    "many small splits": (
        {"spark.sql.files.maxPartitionBytes": "100000", "spark.sql.files.openCostInBytes": "0"},
        True,
    ),
    "not adaptive": ({"spark.sql.adaptive.enabled": "false"}, True),
    "no vectors": ({"spark.sql.parquet.enableVectorizedReader": "false"}, False),
    "few fields": ({"spark.sql.codegen.maxFields": "10"}, False),
    "no compiled plans": ({"spark.sql.codegen.wholeStage": "false"}, False),
}
#: The settings of the spark tier.
USUAL_SETTINGS = ["usual", "small batches"]


def _conf(spark: Any, settings: dict[str, str]) -> Any:
    usual = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.adaptive.enabled": "true",
    }
    return Session(spark).set(usual | settings)


@pytest.fixture(scope="module")
def types(spark, tmp_path_factory) -> str:
    """Partitions of three values, one of them null, in small row groups and pages."""
    folder = str(tmp_path_factory.mktemp("types") / "t")
    parts = "if(id % 3 = 0, null, concat('p', id % 3)) p1", "if(id % 2 = 0, null, cast(id % 4 as int)) p2"
    write = spark.range(0, ROWS, 1, 2).selectExpr(*COLUMNS, *parts).write.partitionBy("p1", "p2")
    write.option("parquet.block.size", 100_000).option("parquet.page.size", 4000).parquet(folder)
    convert_to_deltalake(folder, partition_by=pa.schema([("p1", "string"), ("p2", "int32")]))
    deltafast.sql(f"ALTER TABLE delta.`{folder}` ADD COLUMNS (later string AFTER w, more decimal(30, 2) FIRST)")
    return folder


def _bytes(frame: Any) -> list[bytes]:
    """The rows as Spark holds them, by their `id`."""
    at = frame.columns.index("id")
    made = frame._jdf.queryExecution().executedPlan().executeCollect()
    return [bytes(row.getBytes()) for row in sorted(made, key=lambda row: row.getLong(at))]


def _differences(ours: list[bytes], theirs: list[bytes], columns: int) -> list[Any]:
    """Rows and words in which bytes differ."""
    assert len(ours) == len(theirs)
    first = (columns + 63) // 64
    return [
        (row, n - first, a[n * 8 : n * 8 + 8], b[n * 8 : n * 8 + 8])
        for row, (a, b) in enumerate(zip(ours, theirs, strict=True))
        for n in range(max(len(a), len(b)) // 8)
        if a[n * 8 : n * 8 + 8] != b[n * 8 : n * 8 + 8]
    ]


def _is_ours(frame: Any) -> bool:
    """Whether Spark does nothing but to ask for rows."""
    text = plan(frame)
    return "Batched: false" in text and "Project" not in text and "Filter (" not in text


def _theirs(spark: Any, path: str) -> Any:
    """The same frame, read by Spark's own reader."""
    spark.conf.set(file_index.READER, "parquet")
    try:
        return deltafast.spark.read(spark, path)
    finally:
        spark.conf.unset(file_index.READER)


@pytest.mark.parametrize(
    "setting", usual_and_proof(USUAL_SETTINGS, [name for name in SETTINGS if name not in USUAL_SETTINGS])
)
def test_rows_are_sparks_to_the_byte(spark, types, setting):
    settings, has_vectors = SETTINGS[setting]
    with _conf(spark, {"spark.sql.codegen.maxFields": "200"}):
        theirs = _theirs(spark, types)
        assert "Batched: true" in plan(theirs)
        expected = _bytes(theirs)
    assert len(set(expected)) == ROWS
    with _conf(spark, settings):
        ours = deltafast.spark.read(spark, types)
        assert _differences(_bytes(ours), expected, len(ours.columns)) == []
        if has_vectors:
            assert _is_ours(ours)


@pytest.mark.proof
def test_rows_that_are_not_deleted(spark, tmp_path):
    path = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": "true"}
    frame = spark.range(0, ROWS, 1, 2).selectExpr(*COLUMNS)
    deltafast.spark.write(frame, path, configuration=properties)
    DeltaTable(path).delete("id % 10 = 3 or id between 100 and 700 or id > 2990")
    ids = [n for n in range(2991) if n % 10 != 3 and not 100 <= n <= 700]
    for setting in ("usual", "small batches", "off the heap", "many small splits"):
        with _conf(spark, SETTINGS[setting][0]):
            ours = deltafast.spark.read(spark, path)
            assert _is_ours(ours)
            assert _differences(_bytes(ours), _bytes(_theirs(spark, path)), len(frame.columns)) == []
            assert [row.id for row in ours.sort("id").collect()] == ids


@pytest.mark.proof
def test_long_values_and_many_of_them(spark, tmp_path):
    """Of rows that are larger than what is made together, and of which many fit in there."""
    path = str(tmp_path / "t")
    wide = "id", "repeat(char(97 + cast(id % 26 as int)), if(id % 50 = 3, 900000, cast(id % 300 as int))) s", "id n"
    deltafast.spark.write(spark.range(0, 9000, 1, 1).selectExpr(*wide), path)
    with _conf(spark, {}):
        ours = deltafast.spark.read(spark, path).where("id is not null").select("id", "s", "n")
        assert not _is_ours(ours)
        expected = ours.selectExpr("sum(xxhash64(id, s, n) % 1000000007)", "count(*)").collect()
        whole = deltafast.spark.read(spark, path)
        assert _is_ours(whole)
        # An exchange takes the rows as they are.
        shuffled = whole.repartition(3)
        assert "Batched: false" in plan(shuffled)
        assert shuffled.selectExpr("sum(xxhash64(id, s, n) % 1000000007)", "count(*)").collect() == expected
        lengths = sum(900_000 if n % 50 == 3 else n % 300 for n in range(9000))
        assert sum(len(row.s) for row in whole.toLocalIterator()) == lengths


#: What is asked of the table, and whether rows are all that Spark wants of the scan.
PLANS = {
    "*": ("select * from t", True),
    "some columns": ("select id, s, p1, p2 from t", True),
    "files of some partitions": ("select * from t where p1 = 'p1' and p2 is not null", True),
    "all of two": ("select id, p1, p2 from t union all select l, p1, p2 from t", True),
    "to other tasks": ("select /*+ REPARTITION(3) */ * from t", True),
    "another order": ("select s, id, p1, p2 from t", False),
    "no partition columns": ("select id, s from t", False),
    "something computed": ("select *, id + 1 x from t", False),
    "a filter": ("select * from t where id > 5", False),
    "a partition by chance": ("select * from t where p2 > rand()", False),
    "a group": ("select p1, max(id) from t group by p1", False),
    "a join": ("select * from t a join t b on a.id = b.id", False),
    "a few": ("select * from t limit 3", False),
}


@pytest.mark.parametrize("name", PLANS)
def test_only_where_nothing_but_rows_is_wanted(spark, types, name):
    text, wanted = PLANS[name]
    deltafast.spark.read(spark, types).createOrReplaceTempView("t")
    with _conf(spark, {"spark.sql.adaptive.enabled": "false"}):
        frame = spark.sql(text)
        assert ("Batched: false" in plan(frame)) == wanted, plan(frame)
        ours = sorted(map(repr, frame.collect()))
        if "rand" in text or "limit" in text:
            assert ours
            return
        _theirs(spark, types).createOrReplaceTempView("t")
        assert sorted(map(repr, spark.sql(text).collect())) == ours
        assert ours


def test_what_is_written_elsewhere_and_kept_in_memory(spark, types, tmp_path):
    with _conf(spark, {}):
        frame = deltafast.spark.read(spark, types)
        expected = _bytes(_theirs(spark, types))
        frame.write.parquet(str(tmp_path / "parquet"))
        assert sorted(map(repr, spark.read.parquet(str(tmp_path / "parquet")).collect())) == (
            sorted(map(repr, frame.collect()))
        )
        frame.write.format("noop").mode("overwrite").save()
        kept = frame.cache()
        try:
            assert _bytes(kept) == expected
        finally:
            kept.unpersist()
        assert frame.toArrow().num_rows == ROWS


def test_settings_that_change_behind_a_plan(spark, types):
    expected = _bytes(_theirs(spark, types))
    with _conf(spark, {}):
        frame = deltafast.spark.read(spark, types)
        assert _is_ours(frame)
    with _conf(spark, SETTINGS["no vectors"][0]):
        assert _bytes(frame) == expected


def test_nested_columns_are_left_to_spark(spark, tmp_path):
    path = str(tmp_path / "t")
    deltafast.spark.write(spark.range(5).selectExpr("id", "struct(id as x) s"), path)
    with _conf(spark, {}):
        assert "Batched: true" in plan(deltafast.spark.read(spark, path))
        assert "Batched: false" in plan(deltafast.spark.read(spark, path).select("id"))


def test_other_relations_stay_as_they_are(spark, types, tmp_path):
    with _conf(spark, {}):
        deltafast.spark.read(spark, types)
        spark.range(5).write.parquet(str(tmp_path / "p"))
        assert "Batched: true" in plan(spark.read.parquet(str(tmp_path / "p")))
        assert not pathlib.Path(tmp_path / "p" / "_delta_log").exists()
