"""Replacing some rows of files of a table with a change data feed: executors write the changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import ConstraintViolatedError

from .helpers import rows
from .test_writing import live, parquet_files

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

LAYOUTS = {
    "plain": ("", ""),
    "partitioned": ("partitioned by (p)", ""),
    "names": ("partitioned by (p)", ", 'delta.columnMapping.mode' = 'name'"),
    "ids": ("", ", 'delta.columnMapping.mode' = 'id'"),
    "tracked": ("", ", 'delta.enableRowTracking' = 'true'"),
    "vectors": ("", ", 'delta.enableDeletionVectors' = 'true'"),
}


def make(spark, folder: str, layout: str) -> None:
    partitioned, properties = LAYOUTS[layout]
    spark.sql(
        f"create table delta.`{folder}` (id bigint, p string, at timestamp, s struct<x: int, y: string>) using delta "
        f"{partitioned} tblproperties ('delta.enableChangeDataFeed' = 'true'{properties})"
    )
    frame_of(spark, 0, 30).write.format("delta").mode("append").save(folder)


def frame_of(spark, start: int, end: int, more: str = "id"):
    return spark.range(start, end, 1, 2).selectExpr(
        f"{more} id",
        "if(id % 5 = 0, null, concat('p /=', id % 3)) p",
        "timestamp_seconds(id / 4) at",
        "if(id % 4 = 0, null, named_struct('x', cast(id as int), 'y', concat('y', id))) s",
    )


def changes(reference, folder: str, version: int) -> list[str]:
    found = reference.changes(folder, version, version).drop_columns(["_commit_version", "_commit_timestamp"])
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.proof
@pytest.mark.parametrize("layout", ["partitioned", "vectors", "plain", "names", "ids", "tracked"])
@pytest.mark.parametrize("writer", ["jvm", "arrow"])
def test_the_feed_is_that_of_the_reference(reference, spark, tmp_path, layout, writer):
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for folder in (ours, theirs):
        make(spark, folder, layout)
    for condition, new in (
        ("id >= 7 and id < 20", frame_of(spark, 7, 12)),
        ("id >= 100", frame_of(spark, 100, 103)),
        ("id < 3", frame_of(spark, 0, 0)),
        ("p is null or id = 22", frame_of(spark, 5, 40).where("p is null")),
    ):
        version = deltafast.spark.write(new, ours, "overwrite", replace_where=condition, writer=writer)
        new.write.format("delta").mode("overwrite").option("replaceWhere", condition).save(theirs)
        reference.forget()
        assert rows(reference._load(ours)) == rows(reference._load(theirs)) == rows(deltafast.spark.read(spark, ours))
        assert version is not None
        assert changes(reference, ours, version) == changes(reference, theirs, version)
    # Change files are named by the log, and nothing else was left.
    named = {path for path in parquet_files(ours) if not path.startswith("_change_data")}
    assert live(ours) <= named
    before = parquet_files(ours)
    DeltaTable(ours).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert live(ours) <= parquet_files(ours) <= before


@pytest.mark.parametrize("writer", ["jvm", "arrow"])
def test_rows_that_come_out_otherwise_each_time_are_reported_as_they_are(reference, spark, tmp_path, writer):
    folder = str(tmp_path / "t")
    make(spark, folder, "plain")
    new = frame_of(spark, 10, 20).selectExpr("id", "uuid() p")
    version = deltafast.spark.write(
        new,
        folder,
        "overwrite",
        replace_where="id >= 10 and id < 20",
        writer=writer,
        options={"txnAppId": "a", "txnVersion": 1},
    )
    feed = reference.changes(folder, version, version).to_pylist()
    inserted = {row["id"]: row["p"] for row in feed if row["_change_type"] == "insert"}
    held = {row["id"]: row["p"] for row in DeltaTable(folder).to_pyarrow_table().to_pylist()}
    assert inserted == {number: held[number] for number in range(10, 20)}
    assert len(feed) == 20


@pytest.mark.parametrize("writer", ["jvm", "arrow"])
def test_columns_that_the_write_adds_are_null_in_rows_that_end(reference, spark, tmp_path, writer):
    folder = str(tmp_path / "t")
    make(spark, folder, "names")
    new = frame_of(spark, 1, 2).selectExpr("*", "'new' more")
    version = deltafast.spark.write(
        new, folder, "overwrite", replace_where="id < 3", writer=writer, options={"mergeSchema": True}
    )
    feed = reference.changes(folder, version, version).to_pylist()
    found = sorted((row["_change_type"], row["id"], row["more"]) for row in feed)
    assert found == [("delete", 0, None), ("delete", 1, None), ("delete", 2, None), ("insert", 1, "new")]


@pytest.mark.parametrize("writer", ["jvm", "arrow"])
def test_what_fails_leaves_nothing(spark, tmp_path, writer, monkeypatch):
    folder = str(tmp_path / "t")
    make(spark, folder, "partitioned")
    before = parquet_files(folder)
    with pytest.raises(ConstraintViolatedError, match="replaceWhere"):
        deltafast.spark.write(frame_of(spark, 3, 9), folder, "overwrite", replace_where="id = 3", writer=writer)

    def lost(*given):
        raise OSError("the disk is gone")

    monkeypatch.setattr("deltafast.spark._write.change_files.physical", lost)
    with pytest.raises(OSError, match="the disk is gone"):
        deltafast.spark.write(frame_of(spark, 3, 4), folder, "overwrite", replace_where="id = 3", writer=writer)
    assert DeltaTable(folder).version() == 1
    if writer == "jvm":
        assert parquet_files(folder) == before


def test_the_feed_of_versions_with_other_partition_columns_has_all_values(spark, tmp_path):
    old = pa.table({"id": [1, 2, 3], "a": ["x", "y", None], "b": [10, 20, 10]})
    new = pa.table({"id": [5, 6], "a": ["z", None], "b": [30, None]})
    folder = str(tmp_path)
    write_deltalake(folder, old, partition_by="a", configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(folder, new, mode="overwrite", schema_mode="overwrite", partition_by=["b"])
    table = DeltaTable(folder)
    table.update({"a": "'q'"}, predicate="id = 5")
    table.restore(0)
    columns = ["id", "a", "b", "_change_type", "_commit_version"]
    expected = sorted(
        (tuple(row[name] for name in columns) for row in pa.table(table.load_cdf()).to_pylist()), key=repr
    )
    options = {"readChangeFeed": True, "startingVersion": 0}
    feed = deltafast.spark.read(spark, folder, options=options).select(columns).collect()
    assert sorted(map(tuple, feed), key=repr) == expected
