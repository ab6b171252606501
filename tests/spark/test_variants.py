"""Variants that Spark's own writer writes are shredded only in tables that allow it."""

from __future__ import annotations

import pathlib

import deltalake
import pyarrow.parquet as pq
import pytest

import deltafast.spark
from deltafast import DeltaTable
from deltafast.spark import _jobs as jobs

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

#: Spark infers from these values that `$.a` and `$.b` can be shredded.
VALUE = """parse_json(concat('{"a": ', id, ', "b": "x"}'))"""
COLUMNS = ("id", f"{VALUE} v", f"named_struct('w', {VALUE}) s", f"array({VALUE}) l")
FORCED = {
    "spark.sql.variant.inferShreddingSchema": "false",
    "spark.sql.variant.forceShreddingSchemaForTest": "a int",
}


def shredded(folder: str) -> tuple[int, set[str]]:
    """Return the number of data files and change data files, and the children of their variants."""
    files = [file for file in pathlib.Path(folder).rglob("*.parquet") if "_delta_log" not in file.parts]
    children: set[str] = set()
    for file in files:
        schema = pq.ParquetFile(file).schema
        paths = [schema.column(n).path.split(".") for n in range(len(schema))]
        children |= {".".join(path[1:]) for path in paths if path[0] not in ("id", "_change_type")}
    return len(files), children


def answers(frame) -> list[str]:
    """Return the rows, with variants as JSON."""
    columns = ("id", "to_json(v) v", "to_json(s.w) w", "to_json(l[0]) l")
    return sorted(map(repr, frame.selectExpr(*columns).collect()))


def frame_of(spark, start: int, end: int):
    return spark.range(start, end, 1, 1).selectExpr(*COLUMNS)


UNSHREDDED = {f"{path}{child}" for path in ("", "w.", "list.element.") for child in ("value", "metadata")}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("properties", "settings"),
    [
        pytest.param({}, {}, id="inferred"),
        pytest.param({}, FORCED, id="forced"),
        pytest.param({"delta.enableDeletionVectors": "true"}, {}, id="vectors"),
    ],
)
def test_variants_are_not_shredded(reference, spark, tmp_path, properties, settings):
    folder = str(tmp_path / "t")
    before = spark.conf.get("spark.sql.variant.writeShredding.enabled")
    with reference.configured(settings):
        configuration = {"delta.enableChangeDataFeed": "true", **properties}
        deltafast.spark.write(frame_of(spark, 0, 20), folder, configuration=configuration)
        deltafast.spark.sql(spark, f"INSERT INTO delta.`{folder}` SELECT {', '.join(COLUMNS)} FROM range(20, 30)")
        deltafast.spark.sink(folder, "stream")(frame_of(spark, 30, 40), 0)
        new = frame_of(spark, 2, 3)
        deltafast.spark.write(new, folder, "overwrite", replace_where="id = 3 or id = 2")
        table = DeltaTable(folder)
        jobs.update(spark, table, {"v": "v"}, "id < 10")
        jobs.delete(spark, table, "id = 5")
        source = spark.range(38, 42)
        plan = table.merge(source.limit(0).toArrow(), "t.id = s.id", source_alias="s", target_alias="t")
        jobs.merge(spark, table, source, plan.when_matched_update({"v": "t.s.w"}).when_not_matched_insert_all())
        jobs.optimize(spark, table).compact()
    number, children = shredded(folder)
    assert number >= 8
    assert children == UNSHREDDED
    assert spark.conf.get("spark.sql.variant.writeShredding.enabled") == before
    assert {row.id for row in reference._load(folder).collect()} == {n for n in range(42) if n not in (3, 5)}
    agree(reference, spark, folder)
    if "delta.enableDeletionVectors" not in properties:
        theirs = deltalake.DeltaTable(folder).to_pyarrow_table().sort_by("id")
        ours = DeltaTable(folder).to_pyarrow_table().sort_by("id")
        assert theirs.column("v").to_pylist() == ours.column("v").to_pylist()


def agree(reference, spark, folder: str) -> None:
    """Compare the rows of delta-spark with those of deltafast, read by Spark's reader and by its own."""
    expected = answers(reference._load(folder))
    assert answers(deltafast.spark.read(spark, folder)) == expected
    assert answers(deltafast.spark.read(spark, folder, read_mode="arrow")) == expected


def test_variants_are_shredded_where_the_table_says_so(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    spark.sql(
        f"create table delta.`{folder}` (id bigint, v variant, s struct<w: variant>, l array<variant>) using delta "
        "tblproperties ('delta.enableVariantShredding' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    deltafast.spark.write(frame_of(spark, 0, 20), folder, "append")
    jobs.update(spark, DeltaTable(folder), {"v": "v"}, "id = 3")
    _, children = shredded(folder)
    assert {"typed_value.a.typed_value", "w.typed_value.b.typed_value"} < children
    agree(reference, spark, folder)
    # The feature alone allows nothing.
    spark.sql(f"alter table delta.`{folder}` set tblproperties ('delta.enableVariantShredding' = 'false')")
    there = set(pathlib.Path(folder).rglob("*.parquet"))
    deltafast.spark.write(frame_of(spark, 20, 30), folder, "append")
    (new,) = set(pathlib.Path(folder).rglob("*.parquet")) - there
    assert "typed_value" not in str(pq.ParquetFile(new).schema)
    agree(reference, spark, folder)
