"""What Spark's own writer wrote and the core committed delta-spark reads; nothing is left of what failed."""

from __future__ import annotations

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast.spark
from deltafast import DeltaTable, Schema, write_deltalake
from deltafast.exceptions import (
    ConstraintViolatedError,
    DeltaError,
    DeltaProtocolError,
    DeltaWarning,
    InvalidArgumentError,
    SchemaMismatchError,
)
from deltafast.spark import _jobs as jobs

from .helpers import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

EVERY_TYPE = """
    cast(id as byte) b, cast(id as short) h, cast(id as int) i, id l, cast(id / 2 as float) f, id / 3D d,
    cast(id / 7 as decimal(20, 3)) n, if(id = 2, null, concat('é/=% ', id)) s, cast(concat('x', id) as binary) y, id % 2 = 0 o,
    date_add(date'1969-12-30', cast(id as int)) a, timestamp_micros(id * 86399999999 - 1) z,
    timestamp_ntz'1900-01-01 00:00:00.000001' w, if(id = 1, null, named_struct('q', id, 'r', array(named_struct('t', id)))) t,
    map('k', named_struct('v', id)) m
"""
PARTITIONS = ["b", "h", "f", "d", "n", "s", "o", "a", "z", "w"]


def parquet_files(folder) -> set[str]:
    return {str(file.relative_to(folder)) for file in pathlib.Path(folder).rglob("*.parquet")}


def live(folder) -> set[str]:
    return {str(pathlib.Path(uri).relative_to(folder)) for uri in DeltaTable(folder).file_uris()}


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("partition_by", [[], PARTITIONS])
def test_every_type_is_read_back_by_the_reference(reference, spark, tmp_path, mapping, partition_by):
    folder = str(tmp_path / "t")
    frame = spark.range(0, 4, 1, 2).selectExpr(*_split(EVERY_TYPE))
    configuration = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    made = deltafast.spark.write(frame, folder, partition_by=partition_by, configuration=configuration)
    assert made == 0
    assert rows(reference._load(folder)) == rows(frame) == rows(deltafast.spark.read(spark, folder))
    assert parquet_files(folder) == live(folder)
    stats = [json.loads(text) for text in _stats(folder)]
    assert sum(found["numRecords"] for found in stats) == 4
    if not partition_by:
        physical = DeltaTable(folder).schema().fields[3].metadata.get("delta.columnMapping.physicalName", "l")
        assert (min(s["minValues"][physical] for s in stats), max(s["maxValues"][physical] for s in stats)) == (0, 3)
    if mapping == "id":
        assert DeltaTable(folder)._handle.snapshot.ids_agree()


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    out, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            out.append("")
        else:
            out[-1] += character
    return [part.strip() for part in out]


def _stats(folder) -> list[str]:
    found = []
    for commit in sorted(pathlib.Path(folder).glob("_delta_log/*.json")):
        actions = map(json.loads, commit.read_text().splitlines())
        found += [action["add"]["stats"] for action in actions if "add" in action]
    return found


def test_modes_replace_what_they_say(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    ids = spark.range(0, 10, 1, 1)
    days = ids.selectExpr("id", "id % 2 p")
    deltafast.spark.write(days, folder, partition_by="p", options={"userMetadata": "first"})
    assert DeltaTable(folder).history(1)[0]["userMetadata"] == "first"
    with pytest.raises(DeltaError, match="already"):
        deltafast.spark.write(days, folder)
    assert deltafast.spark.write(days, folder, "ignore") is None
    assert deltafast.spark.write(days.where("id < 2"), folder, "append") == 1
    some = ids.where("id = 3").selectExpr("id + 100 id", "1L p")
    deltafast.spark.write(some, folder, "overwrite", replace_where="p = 1")
    assert sorted(row[0] for row in reference._load(folder).collect()) == [0, 0, 2, 4, 6, 8, 103]
    deltafast.spark.write(
        some.selectExpr("id + 1 id", "p"), folder, "overwrite", options={"partitionOverwriteMode": "dynamic"}
    )
    assert sorted(row[0] for row in reference._load(folder).collect()) == [0, 0, 2, 4, 6, 8, 104]
    # Some rows of a file.
    deltafast.spark.write(
        ids.selectExpr("50L id", "0L p").limit(1), folder, "overwrite", replace_where="id > 5 and id < 60"
    )
    assert sorted(row[0] for row in reference._load(folder).collect()) == [0, 0, 2, 4, 50, 104]
    with pytest.raises(ConstraintViolatedError, match="replaceWhere"):
        deltafast.spark.write(days, folder, "overwrite", replace_where="p = 1")
    version = DeltaTable(folder).version()
    deltafast.spark.write(days.where("id = 7"), folder, "overwrite")
    assert [row[0] for row in reference._load(folder).collect()] == [7]
    assert deltafast.spark.read(spark, folder, version).count() == 6
    assert live(folder) <= parquet_files(folder)


def test_schemas_grow_and_are_replaced(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    deltafast.spark.write(spark.range(2), folder)
    wider = spark.range(1).selectExpr("cast(9 as int) ID", "'x' more", "named_struct('a', 1) s")
    with pytest.raises(SchemaMismatchError, match="more"):
        deltafast.spark.write(wider, folder, "append")
    deltafast.spark.write(wider, folder, "append", options={"mergeSchema": "true"})
    nested = spark.range(1).selectExpr("8L id", "named_struct('b', 2L) s")
    deltafast.spark.write(nested, folder, "append", options={"mergeSchema": True})
    frame = reference._load(folder)
    assert frame.columns == ["id", "more", "s"]
    assert rows(frame) == sorted(
        map(
            repr,
            [
                {"id": 0, "more": None, "s": None},
                {"id": 1, "more": None, "s": None},
                {"id": 9, "more": "x", "s": {"a": 1, "b": None}},
                {"id": 8, "more": None, "s": {"a": None, "b": 2}},
            ],
        )
    )
    deltafast.spark.write(spark.sql("select 'new' other"), folder, "overwrite", options={"overwriteSchema": "true"})
    assert rows(reference._load(folder)) == ["{'other': 'new'}"]
    with pytest.raises(InvalidArgumentError, match="no option 'dataChanged'"):
        deltafast.spark.write(frame, folder, "append", options={"dataChanged": "false"})


def test_rules_hold_and_what_breaks_them_leaves_nothing(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    fields = [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "twice", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "id * 2"}},
        {"name": "word", "type": "string", "nullable": True, "metadata": {"CURRENT_DEFAULT": "concat('a', 'b')"}},
        {
            "name": "s",
            "type": {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": False, "metadata": {}}]},
            "nullable": True,
            "metadata": {},
        },
    ]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
    table = DeltaTable.create(folder, schema, configuration={"delta.feature.allowColumnDefaults": "supported"})
    table.alter.add_constraint({"small": "id < 100"})
    ids = spark.range(0, 3, 1, 2)
    deltafast.spark.write(ids, folder, "append")
    deltafast.spark.write(ids.selectExpr("id", "id * 2 twice", "'w' word", "named_struct('x', 5) s"), folder, "append")
    found = [tuple(row) for row in reference._load(folder).orderBy("word", "id").collect()]
    assert found[:3] == [(0, 0, "ab", None), (1, 2, "ab", None), (2, 4, "ab", None)]
    assert [row[:3] for row in found[3:]] == [(0, 0, "w"), (1, 2, "w"), (2, 4, "w")]
    before, version = parquet_files(folder), DeltaTable(folder).version()
    for broken, rule in {
        "id + 98 id": "small",
        "if(id = 1, null, id) id": "NOT NULL id|id",
        "id, id twice": "Generated Column twice",
        "id, named_struct('x', if(id = 2, null, 1)) s": "NOT NULL s.x",
    }.items():
        with pytest.raises(ConstraintViolatedError, match=rule):
            deltafast.spark.write(ids.selectExpr(*_split(broken)), folder, "append")
    with pytest.raises(SchemaMismatchError):
        deltafast.spark.write(spark.range(1).selectExpr("array(1) id"), folder, "append")
    assert (parquet_files(folder), DeltaTable(folder).version()) == (before, version)
    assert not [path for path in pathlib.Path(folder).iterdir() if path.is_dir() and not any(path.iterdir())]


def test_a_transaction_is_written_once(spark, tmp_path):
    folder = str(tmp_path / "t")
    options = {"txnAppId": "job", "txnVersion": 3}
    assert deltafast.spark.write(spark.range(2), folder, "append", options=options) == 0
    assert deltafast.spark.write(spark.range(2), folder, "append", options=options) is None
    assert deltafast.spark.write(spark.range(2), folder, "append", options={"txnAppId": "job", "txnVersion": 4}) == 1
    assert DeltaTable(folder).count() == 4
    with pytest.raises(InvalidArgumentError, match="must be specified"):
        deltafast.spark.write(spark.range(2), folder, "append", options={"txnAppId": "job"})


def test_features_follow_the_rows(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
    }
    deltafast.spark.write(spark.range(0, 10, 1, 1), folder, configuration=properties)
    deltafast.spark.write(spark.range(100, 101, 1, 1), folder, "overwrite", replace_where="id >= 7 and id < 200")
    version = DeltaTable(folder).version()
    assert DeltaTable(folder)._handle.snapshot.num_files() == 2
    assert sorted(reference.row_ids(folder, version).column("row_id").to_pylist()) == [0, 1, 2, 3, 4, 5, 6, 10]
    feed = reference.changes(folder, 1, 1).to_pylist()
    assert sorted((row["id"], row["_change_type"]) for row in feed) == [
        (7, "delete"),
        (8, "delete"),
        (9, "delete"),
        (100, "insert"),
    ]


def test_what_only_the_core_can_do_is_refused_by_name_and_done_by_the_driver(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    write_deltalake(folder, pa.table({"id": [1], "b": pa.array([b"x"])}), partition_by=["b"])
    before = parquet_files(folder)
    rows_of = spark.range(2, 4).selectExpr("id", "cast('y' as binary) b")
    with pytest.raises(DeltaProtocolError, match="binary partition column `b`: write with writer='arrow'"):
        deltafast.spark.write(rows_of, folder, "append", writer="jvm")
    assert parquet_files(folder) == before
    assert deltafast.spark.write(rows_of, folder, "append", writer="driver") == 1
    with pytest.warns(DeltaWarning, match="the driver collects the rows and writes them: .*binary partition column"):
        assert deltafast.spark.write(rows_of, folder, "append") == 2
    assert sorted(row[0] for row in reference._load(folder).collect()) == [1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "by", ["write", *(pytest.param(by, marks=pytest.mark.proof) for by in ("insert", "replace", "create as select"))]
)
def test_files_that_hold_partition_columns_are_written_by_the_core(reference, spark, tmp_path, by):
    folder = tmp_path / "t"
    properties = {"delta.feature.materializePartitionColumns": "supported"}
    write_deltalake(folder, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"], configuration=properties)
    new = spark.range(2, 4).selectExpr("id", "'b' p")
    new.createOrReplaceTempView("new_rows")
    create = (
        f"CREATE OR REPLACE TABLE delta.`{folder}` PARTITIONED BY (p) TBLPROPERTIES "
        "('delta.feature.materializePartitionColumns' = 'supported') AS SELECT 1L id, 'a' p UNION ALL TABLE new_rows"
    )
    write = {
        "write": lambda: deltafast.spark.write(new, folder, "append"),
        "insert": lambda: deltafast.spark.sql(spark, f"INSERT INTO delta.`{folder}` SELECT * FROM new_rows"),
        "replace": lambda: deltafast.spark.write(new, folder, "overwrite", replace_where="p = 'b'"),
        "create as select": lambda: deltafast.spark.sql(spark, create),
    }[by]
    with pytest.warns(DeltaWarning, match="the driver collects the rows and writes them: .*hold the partition columns"):
        write()
    assert sorted(row.id for row in reference._load(str(folder)).collect()) == [1, 2, 3]
    for file in DeltaTable(folder).file_uris():
        assert pq.read_schema(file).names == ["id", "p"]


def test_an_empty_frame_adds_no_file(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    assert deltafast.spark.write(spark.range(0), folder) == 0
    assert (parquet_files(folder), reference._load(folder).count()) == (set(), 0)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_optimized_writes_leave_few_files(reference, spark, tmp_path):
    """As delta-spark's: by option, by the session, by the table, in this order; and in jobs."""
    frame = spark.range(0, 400, 1, 6).selectExpr("id", "cast(id % 3 as string) p", "if(id % 3 = 0, null, 'x') q")
    on, setting = {"delta.autoOptimize.optimizeWrite": "true"}, "spark.databricks.delta.optimizeWrite.enabled"
    cases = [({}, {}, None), ({}, {"optimizeWrite": "true"}, None), (on, {}, None), ({}, {}, "true")]
    cases += [(on, {"optimizeWrite": "false"}, None), (on, {}, "false"), ({}, {"optimizeWrite": "true"}, "false")]
    for number, (properties, options, session) in enumerate(cases):
        ours, theirs = str(tmp_path / f"ours{number}"), str(tmp_path / f"theirs{number}")
        for folder in (ours, theirs):
            schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.string())]))
            DeltaTable.create(folder, schema, partition_by=["p", "q"], configuration=properties)
        with reference.configured({} if session is None else {setting: session}):
            deltafast.spark.write(frame, ours, mode="append", options=options)
            frame.write.format("delta").mode("append").options(**options).save(theirs)
        files = [len(DeltaTable(folder).files()) for folder in (ours, theirs)]
        assert files[0] == files[1] == (3 if number in (1, 2, 3, 6) else 18), (number, files)
        assert rows(reference._load(ours)) == rows(reference._load(theirs))
    # Without partitions a file, and of a small size as many as that makes.
    one, some = str(tmp_path / "one"), str(tmp_path / "some")
    deltafast.spark.write(frame, one, options={"optimizeWrite": True})
    assert len(DeltaTable(one).files()) == 1
    with reference.configured({"spark.databricks.delta.optimizeWrite.binSize": "2"}):
        large = spark.range(0, 150_000, 1, 20).selectExpr("id", "uuid() u")
        deltafast.spark.write(large, some, options={"optimizeWrite": True})
    assert 1 < len(DeltaTable(some).files()) < 20
    before = spark.conf.get("spark.sql.adaptive.enabled")
    table = DeltaTable(ours)
    table.alter.set_table_properties(on)
    jobs.update(spark, table, {"id": "id + 1"}, "p = '1'")
    assert spark.conf.get("spark.sql.adaptive.enabled") == before
    assert len(table.files()) == 3


def test_small_files_are_packed_after_a_write(reference, spark, tmp_path):
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    properties = {"delta.autoOptimize.autoCompact": "true"}
    for folder in (ours, theirs):
        DeltaTable.create(folder, Schema.from_arrow(pa.schema([("id", pa.int64())])), configuration=properties)
    frame = spark.range(0, 600, 1, 60)
    assert deltafast.spark.write(frame, ours, mode="append") == 1
    frame.write.format("delta").mode("append").save(theirs)
    for folder in (ours, theirs):
        table = DeltaTable(folder)
        assert (table.version(), len(table.files()), table.count()) == (2, 1, 600)
        assert table.history(1)[0]["operation"] == "OPTIMIZE"
        assert table.history(1)[0]["operationParameters"]["auto"] in (True, "true")


#: Too long strings, by the limited column.
TOO_LONG = {
    "v": "'abcd' v",
    "s": "named_struct('a', 'abc', 'b', 'abcd') s",
    "l": "array('ab', 'abcd') l",
    "m": "map('abcd', 'a') m",
    "n": "map('a', 'abcd') n",
    "ls": "array(null, named_struct('x', map('a', array('abcd')))) ls",
}


@pytest.mark.proof
def test_lengths_of_strings_are_limited_at_any_depth(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    name = f"delta.`{folder}`"
    reference.sql(
        f"create table {name} (id bigint, v varchar(3), s struct<a: varchar(3), b: char(3)>, l array<varchar(3)>, "
        "m map<char(3), string>, n map<string, varchar(3)>, ls array<struct<x: map<string, array<char(3)>>>>) using delta"
    )
    fits = """
        2L id, 'abc' v, named_struct('a', null, 'b', 'äöü') s, array('ab', null) l, map('a', 'abcd') m,
        map('abcd', 'a') n, array(null, named_struct('x', map('abcd', array('abc', null)))) ls
    """
    for made in ("1L id", fits):
        deltafast.spark.write(spark.sql(f"select {made}"), folder, "append")
    table = DeltaTable(folder)
    before = parquet_files(folder)
    for column, value in TOO_LONG.items():
        wrong = spark.sql(f"select 1L id, {value}")
        for writer in ("jvm", "arrow"):
            with pytest.raises(ConstraintViolatedError, match=f"length of {column}"):
                deltafast.spark.write(wrong, folder, "append", writer=writer)
        with pytest.raises(Exception, match=r"DELTA_EXCEED_CHAR_VARCHAR_LIMIT|DATA_SOURCE_EXTERNAL_ERROR"):
            wrong.write.format("delta").mode("append").save(folder)
        with pytest.raises(ConstraintViolatedError, match=f"length of {column}"):
            jobs.update(spark, table, {column: value.rsplit(" ", 1)[0]}, "id = 2")
    source = spark.sql(f"select 2L id, {TOO_LONG['s']}")
    plan = table.merge(source.limit(0).toArrow(), "t.id = s.id", source_alias="s", target_alias="t")
    with pytest.raises(ConstraintViolatedError, match="length of s"):
        jobs.merge(spark, table, source, plan.when_matched_update({"s": "s.s"}))
    assert {file for file in parquet_files(folder) if "spark-" in file} <= before
    assert table.count() == 2


def test_the_text_for_null_in_folder_names_is_refused_by_every_writer(spark, tmp_path):
    folder = str(tmp_path / "t")
    hive_null = "__HIVE_DEFAULT_PARTITION__"
    deltafast.spark.write(spark.sql("select 1L id, 'a' p, 1 n"), folder, "append", partition_by=["p", "n"])
    table = DeltaTable(folder)
    wrong = spark.sql(f"select 1L id, '{hive_null}' p, 1 n")
    for writer in ("jvm", "arrow", "driver"):
        with pytest.raises(InvalidArgumentError, match="stands for null"):
            deltafast.spark.write(wrong, folder, "append", writer=writer)
    with pytest.raises(InvalidArgumentError, match="stands for null"):
        jobs.update(spark, table, {"p": f"'{hive_null}'"}, "id = 1")
    assert DeltaTable(folder).version() == 0
    deltafast.spark.write(spark.sql("select 2L id, cast(null as string) p, 1 n"), folder, "append")
    assert DeltaTable(folder).count("p IS NULL") == 1
