"""`writer="arrow"`: executors write by the core; what Spark's own writer refuses, too."""

from __future__ import annotations

import pathlib
import re

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, Schema
from deltafast.exceptions import ConstraintViolatedError

from .helpers import rows
from .test_writing import EVERY_TYPE, PARTITIONS, _split, live, parquet_files

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.mark.parametrize(("mapping", "partition_by"), [("none", []), ("name", [*PARTITIONS, "y"]), ("id", ["s"])])
def test_every_type_is_read_back_by_the_reference(reference, spark, tmp_path, mapping, partition_by):
    folder = str(tmp_path / "t")
    frame = spark.range(0, 4, 1, 2).selectExpr(*_split(EVERY_TYPE))
    configuration = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    options = {"partition_by": partition_by, "configuration": configuration, "writer": "arrow"}
    assert deltafast.spark.write(frame, folder, **options) == 0
    assert rows(reference._load(folder)) == rows(frame) == rows(deltafast.spark.read(spark, folder))
    assert parquet_files(folder) == live(folder)
    # Floating point columns have bounds here.
    found = DeltaTable(folder).get_add_actions()
    assert (
        found.column("num_records").to_pylist() == [2, 2]
        if not partition_by
        else sum(found["num_records"].to_pylist()) == 4
    )
    if not partition_by:
        assert [value["d"] for value in found["max"].to_pylist()] == [pytest.approx(1 / 3), 1.0]


def test_modes_rules_and_transactions_are_those_of_the_other_writer(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64())]))
    table = DeltaTable.create(folder, schema, partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"})
    table.alter.add_constraint({"positive": "v >= 0"})
    frame = spark.range(0, 40, 1, 4).selectExpr("id", "concat('p', id % 2) p", "id / 2D v")

    def write(frame, **more):
        return deltafast.spark.write(frame, folder, writer="arrow", **more)

    assert write(frame, mode="append", options={"txnAppId": "a", "txnVersion": 1}) == 2
    assert write(frame, mode="append", options={"txnAppId": "a", "txnVersion": 1}) is None
    before = parquet_files(folder)
    with pytest.raises(ConstraintViolatedError, match="positive"):
        write(frame.withColumn("v", -frame.v), mode="append")
    assert DeltaTable(folder).version() == 2
    # What other tasks had written by then is of no version, and a vacuum takes it.
    DeltaTable(folder).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert parquet_files(folder) == before
    assert write(frame.where("p = 'p1'").limit(3), mode="overwrite", replace_where="p = 'p1'") == 3
    assert DeltaTable(folder).count() == 23
    write(frame.where("p = 'p0'").limit(1), mode="overwrite", options={"partitionOverwriteMode": "dynamic"})
    assert DeltaTable(folder).count() == 4
    changed = frame.selectExpr("id", "p", "v", "id more")
    write(changed, mode="append", options={"mergeSchema": True, "optimizeWrite": True, "compression": "gzip"})
    assert len(DeltaTable(folder).file_uris()) == 4
    assert rows(reference._load(folder)) == rows(deltafast.spark.read(spark, folder))
    assert reference._load(folder).where("more is not null").count() == 40
    assert write(spark.range(0), mode="append") is not None
    write(frame.selectExpr("id + 100 id", "'many' p", "0D v"), mode="append", options={"maxRecordsPerFile": 3})
    made = DeltaTable(folder).get_add_actions().to_pylist()
    assert sorted(file["num_records"] for file in made if file["partition"]["p"] == "many") == [1, 1, 1, 1] + [3] * 12


def test_attempts_that_fail_leave_their_rows_in_no_version(spark, tmp_path):
    """Tasks fail once after they have written everything: with two attempts each counts once."""
    folder, marks = str(tmp_path / "t"), tmp_path / "marks"
    marks.mkdir()
    source = spark.range(0, 3000, 1, 3)
    from deltafast.spark._write import core_writer

    made = core_writer._writer

    def failing(*given):
        write = made(*given)
        root = str(marks)

        def once(batches):
            from pyspark import TaskContext

            answers = list(write(batches))
            mark = pathlib.Path(root) / str(TaskContext.get().partitionId())
            if not mark.exists():
                mark.touch()
                raise RuntimeError("this attempt is lost")
            yield from answers

        return once

    core_writer._writer = failing
    try:
        # A local master tries a task once: what counts is then that nothing is committed.
        with pytest.raises(Exception, match="this attempt is lost"):
            deltafast.spark.write(source, folder, writer="arrow")
        assert not DeltaTable.is_deltatable(folder)
        left = parquet_files(folder)
        assert left
        while len(list(marks.iterdir())) < 3:
            with pytest.raises(Exception, match="this attempt is lost"):
                deltafast.spark.write(source, folder, writer="arrow")
        assert deltafast.spark.write(source, folder, writer="arrow") == 0
    finally:
        core_writer._writer = made
    assert sorted(DeltaTable(folder).to_pyarrow_table()["id"].to_pylist()) == list(range(3000))
    assert live(folder) < parquet_files(folder), "what the other attempts left"
    DeltaTable(folder).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert parquet_files(folder) == live(folder)


def test_executors_of_another_release_are_reported(spark, tmp_path, monkeypatch):
    there = deltafast.__version__
    monkeypatch.setattr(deltafast, "__version__", "0.0.1")
    found = rf"deltafast 0.0.1 is needed in the Python of Spark's executors .*where it is {re.escape(there)}"
    with pytest.raises(Exception, match=found):
        deltafast.spark.write(spark.range(3), str(tmp_path / "t"), writer="arrow")
    assert not DeltaTable.is_deltatable(str(tmp_path / "t"))
