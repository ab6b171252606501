"""Spark with its usual settings and without Delta's jar, on executors whose Python lacks everything."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructField, StructType

import deltafast.spark
from deltafast import DeltaTable, Schema, write_deltalake
from deltafast.exceptions import DeltaWarning, InvalidArgumentError
from deltafast.spark._scan import file_index
from spark.child_session import BOTH
from spark.helpers import ids, plan

from .started import Started, builder

if TYPE_CHECKING:
    import pathlib

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("without-jar", releases=BOTH),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture(scope="session")
def started():
    """Give the session; a task may fail twice."""

    def build():
        made = builder("local[2,3]").config("spark.log.level", "OFF")
        return made.config("spark.sql.session.timeZone", "America/St_Johns").getOrCreate()

    started = Started(build)
    yield started
    started.stop()


@pytest.fixture
def spark(started):
    """Give the session."""
    yield from started.isolated()


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Give the folder of a new table."""
    return tmp_path / "t"


def files(folder: pathlib.Path) -> set[str]:
    """Every Parquet file there is."""
    return {str(file) for file in folder.rglob("*.parquet")}


@pytest.mark.proof
def test_default_reader_and_writer_run_no_python_on_executors(spark, folder, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nonexistent/python")
    rows = (
        "id",
        "id % 3 p",
        "timestamp_micros(cast(id / 50 as int) * 3600000000) at",
        "if(id = 5, null, named_struct('x', id)) s",
    )
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    deltafast.spark.write(
        spark.range(0, 100, 1, 4).selectExpr(*rows), str(folder), partition_by=["p", "at"], configuration=properties
    )
    deltafast.spark.write(spark.range(100, 104).selectExpr(*rows), str(folder), "append")
    assert files(folder) == set(DeltaTable(folder).file_uris())
    DeltaTable(folder).delete("id % 10 = 7 or id = 101")
    expected = [n for n in range(104) if n % 10 != 7 and n != 101]
    for way in ("index", "paths"):
        frame = deltafast.spark.read(spark, str(folder), read_mode=way)
        assert ids(frame) == expected
        assert ids(frame.where("s.x > 90 and p = 1")) == [91, 94, 100, 103]
        assert ids(frame.where("s is null")) == [5]
        assert ids(frame.where("at = timestamp_micros(3600000000)")) == [n for n in expected if 50 <= n < 100]
        assert frame.groupBy().count().collect()[0][0] == len(expected)
    monkeypatch.undo()
    assert ids(deltafast.spark.read(spark, str(folder), read_mode="arrow")) == expected
    timestamps = {row[0]: row[1] for row in deltafast.spark.read(spark, str(folder)).select("id", "at").collect()}
    assert [timestamps[n].timestamp() for n in (42, 52, 102)] == [0, 3600, 7200]


def failing_rows(spark, attempts: int):
    """Rows whose tasks fail so often, once they have given all."""

    def rows(batches):
        yield from batches
        context = TaskContext.get()
        if context.partitionId() % 2 == 0 and context.attemptNumber() < attempts:
            raise RuntimeError("this attempt fails after its rows were written")

    return spark.range(0, 20_000, 1, 4).mapInArrow(rows, StructType([StructField("id", LongType())]))


def test_rows_of_failed_attempts_are_in_no_version(spark, folder):
    """A write that fails altogether leaves no file."""
    assert deltafast.spark.write(failing_rows(spark, 1), str(folder)) == 0
    assert ids(deltafast.spark.read(spark, str(folder))) == list(range(20_000))
    before = files(folder)
    assert before == set(DeltaTable(folder).file_uris())
    with pytest.raises(Exception, match="this attempt fails"):
        deltafast.spark.write(failing_rows(spark, 3), str(folder), "append")
    assert files(folder) == before
    assert DeltaTable(folder).version() == 0


def test_identity_values_are_unique_whichever_attempts_fail(spark, folder):
    metadata = {"delta.identity.start": 5, "delta.identity.step": -2, "delta.identity.allowExplicitInsert": False}
    fields = [
        {"name": "n", "type": "long", "nullable": False, "metadata": metadata},
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    ]
    DeltaTable.create(folder, Schema.from_json(json.dumps({"type": "struct", "fields": fields})))
    for optimized in (False, True):
        options = {"optimizeWrite": optimized}
        deltafast.spark.write(failing_rows(spark, 1), str(folder), "append", options=options)
    found = [row[0] for row in deltafast.spark.read(spark, str(folder)).select("n").collect()]
    assert len(found) == len(set(found)) == 40_000
    assert all(value <= 5 and value % 2 for value in found)
    assert DeltaTable(folder).schema().fields[0].metadata["delta.identity.highWaterMark"] == min(found)


@pytest.mark.proof
def test_commands_whose_tasks_fail_once_change_each_row_once(spark, folder):
    """Commands that fail altogether leave no file."""
    from deltafast.spark import _jobs as jobs
    from deltafast.spark._jobs import folders

    properties = {"delta.enableChangeDataFeed": "true"}
    deltafast.spark.write(spark.range(0, 1000, 1, 4).selectExpr("id", "id v"), str(folder), configuration=properties)
    whole = folders.write_folder
    attempts = 1

    def fails(batches):
        yield from batches
        if TaskContext.get().attemptNumber() < attempts:
            raise RuntimeError("this attempt fails after its rows were written")

    def broken(session, rows, *arguments):
        whole(session, rows.mapInArrow(fails, rows.schema), *arguments)

    def merge(table):
        source = spark.range(500, 1500, 1, 3).selectExpr("id", "-id v")
        builder = table.merge(pa.table({"id": [1], "v": [1]}), "t.id = s.id", "s", "t")
        return jobs.merge(spark, table, source, builder.when_matched_update_all().when_not_matched_insert_all())

    folders.write_folder = broken
    try:
        assert jobs.update(spark, DeltaTable(folder), {"v": "v + 1"}, "id % 2 = 0")["num_updated_rows"] == 500
        assert jobs.delete(spark, DeltaTable(folder), "id < 100 and id % 3 = 0")["num_deleted_rows"] == 34
        assert merge(DeltaTable(folder))["num_target_rows_inserted"] == 500
        attempts, before, version = 3, files(folder), DeltaTable(folder).version()
        for command in (
            lambda table: jobs.update(spark, table, {"v": "0"}, "id = 7"),
            lambda table: jobs.delete(spark, table, "id = 7"),
            merge,
        ):
            with pytest.raises(Exception, match="this attempt fails"):
                command(DeltaTable(folder))
        assert (files(folder), DeltaTable(folder).version()) == (before, version)
    finally:
        folders.write_folder = whole
    found = {row[0]: row[1] for row in deltafast.spark.read(spark, str(folder)).collect()}
    expected = {n: n + 1 - n % 2 for n in range(500) if n >= 100 or n % 3}
    assert found == expected | {n: -n for n in range(500, 1500)}
    reported = DeltaTable(folder).load_cdf(starting_version=1).read_all()
    kinds = reported.group_by("_change_type").aggregate([("id", "count")]).to_pydict()
    counted = dict(zip(kinds["_change_type"], kinds["id_count"], strict=True))
    assert counted == {"update_preimage": 1000, "update_postimage": 1000, "delete": 34, "insert": 500}


def test_overwriting_a_table_with_rows_read_from_it(spark, folder):
    deltafast.spark.write(spark.range(10), str(folder))
    frame = deltafast.spark.read(spark, str(folder))
    deltafast.spark.write(frame.where("id > 5"), str(folder), "overwrite")
    assert ids(deltafast.spark.read(spark, str(folder))) == [6, 7, 8, 9]
    assert ids(frame) == list(range(10))


def test_fallback_where_spark_refuses_the_file_index(spark, folder):
    write_deltalake(folder, pa.table({"id": [6, 7, 8, 9]}))
    whole = file_index._load_index

    def broken(_: object) -> None:
        raise file_index.IndexUnavailableError("no Janino here")

    file_index._load_index = broken
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert ids(deltafast.spark.read(spark, str(folder))) == [6, 7, 8, 9]
        assert any(
            isinstance(warning.message, DeltaWarning) and "explicit paths" in str(warning.message) for warning in heard
        )
    finally:
        file_index._load_index = whole


def test_files_of_a_large_table_cross_to_java_as_one_block(spark, folder):
    """One more call prunes them there."""
    from deltafast import create_table_with_add_actions
    from deltafast.transaction import AddAction

    adds = [
        AddAction(
            f"f-{n}.parquet",
            4,
            {},
            0,
            data_change=True,
            stats=f'{{"numRecords":1,"minValues":{{"id":{n}}},"maxValues":{{"id":{n}}},"nullCount":{{"id":0}}}}',
        )
        for n in range(20_000)
    ]
    folder.mkdir(exist_ok=True)
    for add in adds:
        (folder / add.path).write_bytes(b"PAR1")
    create_table_with_add_actions(str(folder), pa.schema([("id", pa.int64())]), adds)
    # What a session needs once does not count.
    write_deltalake(f"{folder}-first", pa.table({"id": [1]}))
    plan(deltafast.spark.read(spark, f"{folder}-first").where("id = 1"))
    client = spark.sparkContext._gateway._gateway_client
    calls, send = [], type(client).send_command

    def counted(self, command, *args, **kwargs):
        # Objects that Python no longer uses are released whenever it collects garbage.
        if not command.startswith(MEMORY_COMMAND_NAME):
            calls.append(command)
        return send(self, command, *args, **kwargs)

    type(client).send_command = counted
    try:
        frame = deltafast.spark.read(spark, str(folder)).where("id = 12345")
        made = len(calls)
        found = plan(frame)
    finally:
        type(client).send_command = send
    assert "SelectedFileIndex" in found
    assert made < 300, made


def test_a_stopped_session(spark, folder):
    write_deltalake(folder, pa.table({"id": [1]}))
    spark.stop()
    with pytest.raises(InvalidArgumentError, match="was stopped"):
        deltafast.spark.read(spark, str(folder))
