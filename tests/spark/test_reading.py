"""Every way of reading gives delta-spark's rows, for every feature; what no way may do wrong has a test each."""

from __future__ import annotations

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

import deltafast
import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import (
    DeltaError,
    DeltaProtocolError,
    InvalidArgumentError,
    StorageError,
    VersionNotFoundError,
)
from deltafast.transaction import AddAction
from oracle.reference import arrow

from .helpers import ODD_NAMES, files_read, odd_table, plan, rows, scan_of

pytestmark = [
    pytest.mark.spark,
    # PySpark says so whenever a frame is collected.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

MAPPED = """
    create table delta.`{t}` (id long, s struct<a: int, b: struct<c: string, d: double>>, l array<struct<x: int, y: string>>,
        m map<string, struct<v: int>>, p date) using delta partitioned by (p)
        tblproperties ('delta.columnMapping.mode' = '{mode}', 'delta.enableDeletionVectors' = 'true');
    insert into delta.`{t}` select id, case when id % 3 = 0 then null else named_struct('a', cast(id as int), 'b',
        case when id % 2 = 0 then null else named_struct('c', concat('c', id), 'd', id / 2D) end) end,
        case when id % 4 = 0 then null else array(named_struct('x', cast(id as int), 'y', 'y'), null) end,
        case when id % 5 = 0 then null else map('k', named_struct('v', cast(id as int))) end, date'2020-01-01'
        from range(0, 40, 1, 1);
    alter table delta.`{t}` rename column s.b.c to `c c`;
    alter table delta.`{t}` rename column id to `the id`;
    alter table delta.`{t}` add columns (later struct<n: int>, s.e int);
    insert into delta.`{t}` select id, named_struct('a', 1, 'b', named_struct('c c', 'z', 'd', 1D), 'e', 7), null, null,
        if(id < 45, null, date'2021-02-03'), if(id = 44, null, named_struct('n', 9)) from range(40, 50, 1, 1);
    delete from delta.`{t}` where `the id` % 7 = 3;
    alter table delta.`{t}` drop column m
"""

PARTITIONED = """
    create table delta.`{t}` (v long, b byte, h short, i int, l long, f float, d double, n decimal(20, 3), s string, y binary,
        o boolean, a date, z timestamp, w timestamp_ntz) using delta partitioned by (b, h, i, l, f, d, n, s, y, o, a, z, w);
    insert into delta.`{t}` values
        (1, 1, 2, 3, 4, 1.5, -0.25, 12345.678, 'a/b=c %41 {{x}}', cast('bin' as binary), true, date'1969-12-31',
            timestamp'2020-06-01 12:34:56.789012', timestamp_ntz'1900-01-01 00:00:00.000001'),
        (2, null, null, null, null, null, null, null, null, null, null, null, null, null),
        (3, -128, -5, 7, 9223372036854775807, cast('NaN' as float), double('Infinity'), -0.001, 'ünï', cast('x' as binary), false,
            date'9999-12-31', timestamp'1970-01-01 00:00:00', timestamp_ntz'2038-01-19 03:14:08')
"""

WIDENED = """
    create table delta.`{t}` (a byte, b short, c int, d float, e decimal(6, 2), f date, g int, p byte, s struct<q: short>)
        using delta partitioned by (p) tblproperties ('delta.enableTypeWidening' = 'true',
        'delta.feature.timestampNtz' = 'supported');
    insert into delta.`{t}` values (1, 2, 3, 1.5, 12.25, date'2020-02-29', 5, 6, named_struct('q', 7)),
        (null, null, null, null, null, null, null, 7, null);
    alter table delta.`{t}` change column a type int;
    alter table delta.`{t}` change column b type long;
    alter table delta.`{t}` change column c type double;
    alter table delta.`{t}` change column d type double;
    alter table delta.`{t}` change column e type decimal(12, 4);
    alter table delta.`{t}` change column f type timestamp_ntz;
    alter table delta.`{t}` change column g type decimal(20, 2);
    alter table delta.`{t}` change column p type int;
    alter table delta.`{t}` change column s.q type long;
    insert into delta.`{t}` values (100000, 99999999999, 1e300, 1e300, 12345678.1234, timestamp_ntz'2020-02-29 01:02:03', 5.25,
        70000, named_struct('q', 99999999999))
"""

TRACKED = """
    create table delta.`{t}` (id long, v long) using delta tblproperties ('delta.enableRowTracking' = 'true',
        'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true');
    insert into delta.`{t}` select id, id from range(0, 20, 1, 2);
    update delta.`{t}` set v = -v where id % 4 = 1;
    delete from delta.`{t}` where id = 2;
    insert into delta.`{t}` values (100, 0)
"""


def make(reference, folder, script: str, **values: str) -> str:
    for statement in script.format(t=folder, **values).split(";\n"):
        # What needs no query is done in no time here.
        run = deltafast.sql if statement.strip().startswith(("alter", "delete", "update")) else reference.sql
        run(statement)
    return str(folder)


@pytest.fixture(scope="module")
def tables(reference, tmp_path_factory):
    root = tmp_path_factory.mktemp("read")
    return {
        "name": make(reference, root / "name", MAPPED, mode="name"),
        "id": make(reference, root / "id", MAPPED, mode="id"),
        "partitioned": make(reference, root / "par titioned%20", PARTITIONED),
        "widened": make(reference, root / "widened", WIDENED),
        "tracked": make(reference, root / "tracked", TRACKED),
    }


@pytest.mark.parametrize("name", ["name", "id", "partitioned", "widened", "tracked"])
def test_all_ways_read_what_the_reference_reads(reference, spark, tables, name, way):
    frame = deltafast.spark.read(spark, tables[name], read_mode=way)
    expected = reference._load(tables[name])
    assert frame.columns == expected.columns
    assert [field.dataType for field in frame.schema] == [field.dataType for field in expected.schema]
    if way == "index" and name not in ("name", "id"):
        assert frame.schema == expected.schema, "nulls and comments, too"
    assert rows(frame) == rows(expected)


def test_columns_are_null_where_the_table_says_so(reference, spark, tmp_path):
    folder = tmp_path / "t"
    spark.sql(
        f"create table delta.`{folder}` (id bigint not null comment 'the key', n int, s struct<x: int not null, y: string>, "
        "a array<int>, p string not null) using delta partitioned by (p)"
    )
    spark.sql(f"insert into delta.`{folder}` values (1, null, named_struct('x', 1, 'y', null), array(null), 'a')")
    frame = deltafast.spark.read(spark, str(folder))
    assert frame.schema == reference._load(folder).schema
    assert not frame.schema["id"].nullable
    assert rows(frame) == rows(reference._load(folder))
    assert frame.where("id is null or p is null").count() == 0


def test_filters_mean_the_same_on_every_way(reference, spark, tables, way):
    questions = {
        "name": [
            "`the id` > 30 and s.a > 31",
            "s.b.`c c` = 'c35'",
            "p is null",
            "p = '2020-01-01' and s is null",
            "later.n = 9",
        ],
        "partitioned": [
            "s like 'a/%'",
            "z = timestamp'2020-06-01 12:34:56.789012'",
            "isnan(f) or i = 3",
            "y = cast('x' as binary)",
        ],
        "widened": ["a = 1", "e > 12.2", "f = timestamp_ntz'2020-02-29 00:00:00'", "p > 6", "s.q = 7"],
    }
    for name, conditions in questions.items():
        frame, expected = deltafast.spark.read(spark, tables[name], read_mode=way), reference._load(tables[name])
        for condition in conditions:
            found = rows(frame.where(condition))
            assert found == rows(expected.where(condition)), condition
            assert found == rows(deltafast.spark.read(spark, tables[name], read_mode=way, filters=condition)), condition


def test_row_ids_are_those_of_the_reference(reference, spark, tables, way):
    frame = deltafast.spark.read(
        spark, tables["tracked"], read_mode=way, metadata_columns=["row_id", "row_commit_version"]
    )
    newest = DeltaTable(tables["tracked"]).version()
    assert rows(frame.select("id", "row_id", "row_commit_version")) == sorted(
        map(repr, reference.row_ids(tables["tracked"], newest).to_pylist())
    )


def test_row_ids_need_a_table_that_tracks_rows(spark, tables):
    with pytest.raises(DeltaProtocolError, match="rowTracking"):
        deltafast.spark.read(spark, tables["widened"], metadata_columns=["row_id"])
    with pytest.raises(InvalidArgumentError, match="there is no metadata column 'x'"):
        deltafast.spark.read(spark, tables["widened"], metadata_columns=["x"])


def test_versions_and_changes_are_those_of_the_reference(reference, spark, tables, way):
    for version in (1, 2, 3):
        found = rows(deltafast.spark.read(spark, tables["tracked"], version, read_mode=way))
        assert found == rows(reference._load(tables["tracked"], versionAsOf=version))
    timestamp = DeltaTable(tables["tracked"], version=2).timestamp()
    assert rows(deltafast.spark.read(spark, tables["tracked"], timestamp=timestamp, read_mode=way)) == rows(
        deltafast.spark.read(spark, DeltaTable(tables["tracked"], version=2), read_mode=way)
    )
    with pytest.raises(VersionNotFoundError):
        deltafast.spark.read(spark, tables["tracked"], options={"versionAsOf": 99}, read_mode=way)


def test_changes_are_those_of_the_reference(reference, spark, tables):
    options = {"readChangeFeed": "true", "startingVersion": 1, "endingVersion": 4}
    assert rows(deltafast.spark.read(spark, tables["tracked"], options=options)) == rows(
        reference._load(tables["tracked"], **options)
    )
    with pytest.raises(DeltaError):
        deltafast.spark.read(spark, tables["widened"], options=options)
    for wrong in ({"startingVersion": 1}, {"readChangeFeed": True}, {"mergeSchema": "true"}):
        with pytest.raises(InvalidArgumentError):
            deltafast.spark.read(spark, tables["tracked"], options=wrong)


@pytest.mark.parametrize("value", ["latest", "x", "1.5", "", "1_0", "9" * 30])
@pytest.mark.parametrize("name", ["startingVersion", "endingVersion", "versionAsOf"])
def test_an_option_that_is_no_version_is_named_with_its_value(spark, tables, name, value):
    options = {name: value}
    if name != "versionAsOf":
        options = {"readChangeFeed": "true", "startingVersion": "0"} | options
    with pytest.raises(InvalidArgumentError, match=f"^{name} must be the number of a version, not '{value}'$"):
        deltafast.spark.read(spark, tables["tracked"], options=options)


def test_a_feed_after_the_newest_version_is_an_error_or_empty(reference, spark, tables):
    setting = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
    starts = ({"startingVersion": 99}, {"startingTimestamp": "2999-01-01 00:00:00"})
    for start in starts:
        with pytest.raises(DeltaError):
            deltafast.spark.read(spark, tables["tracked"], options={"readChangeFeed": "true"} | start)
        with pytest.raises(Exception, match="DELTA_"):
            reference._load(tables["tracked"], readChangeFeed="true", **start).collect()
    with reference.configured({setting: "true"}):
        for start in (*starts, {"startingVersion": 2, "endingTimestamp": "2999-01-01 00:00:00"}):
            options = {"readChangeFeed": "true"} | start
            found = deltafast.spark.read(spark, tables["tracked"], options=options)
            wanted = reference._load(tables["tracked"], **options)
            assert found.columns == wanted.columns
            assert rows(found) == rows(wanted)
            assert (found.count() == 0) == (start in starts)
        # Other errors of ranges stay.
        backwards = {"readChangeFeed": "true", "startingVersion": 3, "endingVersion": 1}
        with pytest.raises(DeltaError):
            deltafast.spark.read(spark, tables["tracked"], options=backwards)
        with pytest.raises(Exception, match="DELTA_"):
            reference._load(tables["tracked"], **backwards).collect()


def test_changes_are_read_by_spark_and_filters_skip_their_files(spark, tables):
    feed = deltafast.spark.read(spark, tables["tracked"], options={"readChangeFeed": "true", "startingVersion": 1})
    assert "MapInArrow" not in plan(feed)
    assert "FileScan" in plan(feed)
    everything = arrow(feed).to_pylist()
    for condition, is_met in {
        "_commit_version = 2": lambda row: row["_commit_version"] == 2,
        "_change_type = 'insert'": lambda row: row["_change_type"] == "insert",
        "_change_type <> 'insert' and _commit_version > 2": lambda row: (
            row["_change_type"] != "insert" and row["_commit_version"] > 2
        ),
    }.items():
        found = feed.where(condition)
        assert files_read(found) < files_read(feed), condition
        assert rows(found) == sorted(repr(row) for row in everything if is_met(row)), condition
    assert feed.count() == len(everything)


@pytest.mark.proof
def test_changes_have_the_names_of_their_last_version(reference, spark, tmp_path):
    mode = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"
    mapped, plain = tmp_path / "mapped", tmp_path / "plain"
    on = "'delta.enableChangeDataFeed' = 'true'"
    for folder, more in ((mapped, ", 'delta.columnMapping.mode' = 'name'"), (plain, "")):
        reference.sql(
            f"create table delta.`{folder}` (id long, a int, b string) using delta tblproperties ({on}{more})"
        )
        reference.sql(f"insert into delta.`{folder}` values (1, 1, 'x'), (2, 2, 'y')")
        reference.sql(f"update delta.`{folder}` set a = 5 where id = 1")
        reference.sql(f"alter table delta.`{folder}` add column c int")
        reference.sql(f"insert into delta.`{folder}` values (3, 3, 'z', 3)")
    reference.sql(f"alter table delta.`{mapped}` rename column a to aa")
    reference.sql(f"insert into delta.`{mapped}` values (4, 4, 'u', 4)")
    reference.sql(f"alter table delta.`{mapped}` drop column b")
    reference.sql(f"insert into delta.`{mapped}` values (5, 5, 5)")

    def same(folder, start, end=None):
        options = {"readChangeFeed": "true", "startingVersion": start}
        options |= {} if end is None else {"endingVersion": end}
        found = deltafast.spark.read(spark, folder, options=options)
        wanted = reference._load(folder, **options)
        assert found.columns == wanted.columns
        assert rows(found) == rows(wanted)
        return found.columns[:-3]

    assert same(mapped, 1, 2) == ["id", "a", "b"]
    assert same(mapped, 1, 4) == ["id", "a", "b", "c"], "a column that was added within the range"
    assert same(mapped, 5, 6) == ["id", "aa", "b", "c"]
    assert same(mapped, 7) == ["id", "aa", "c"]
    assert same(plain, 1, 2) == ["id", "a", "b", "c"], "without column mapping the newest columns"
    # A renamed column is the same column, which delta-spark refuses.
    renamed = deltafast.spark.read(
        spark, mapped, options={"readChangeFeed": True, "startingVersion": 2, "endingVersion": 5}
    )
    assert [
        (row.id, row.aa) for row in renamed.where("_commit_version = 2 and _change_type = 'update_postimage'").collect()
    ] == [(1, 5)]
    for options in ({"startingVersion": 1}, {"startingVersion": 6, "endingVersion": 7}):
        options |= {"readChangeFeed": "true"}
        with pytest.raises(DeltaError, match="`b`"):
            deltafast.spark.read(spark, mapped, options=options)
        with pytest.raises(Exception, match="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"):
            reference._load(mapped, **options).collect()
    with reference.configured({mode: "latest"}):
        assert same(mapped, 8) == ["id", "aa", "c"]
        with pytest.raises(DeltaError, match="`b`"):
            same(mapped, 1, 2)


# --- pruning -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ten_files(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("ten") / "t")
    for n in range(10):
        ids = pa.array(range(n * 100, n * 100 + 100), pa.int64())
        table = pa.table(
            {
                "id": ids,
                "p": pa.array(["even", "odd"][n % 2 :][:1] * 100),
                "s": pa.StructArray.from_arrays([ids, ids], ["x", "y"]),
            }
        )
        write_deltalake(folder, table, mode="append", partition_by="p")
    return folder


def test_filters_of_the_frame_reach_the_files(spark, ten_files):
    frame = deltafast.spark.read(spark, ten_files)
    for condition, files in {
        "id = 250": 1,
        "id between 250 and 320": 2,
        "p = 'odd'": 5,
        "p = 'odd' and id > 800": 1,
        "s.x < 100": 1,
        "id in (5, 905) or s.x = 401": 3,
        "id = -1": 0,
        "cast(id as string) like '%'": 10,
    }.items():
        assert files_read(frame.where(condition)) == files, condition
    text = plan(frame.where("p = 'odd' and id = 350"))
    assert "SelectedFileIndex" in text
    assert "PartitionFilters: [isnotnull(p" in text
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,350)" in text
    assert files_read(deltafast.spark.read(spark, ten_files, read_mode="paths", filters="id = 250")) == 1


def test_only_what_is_asked_for_is_read(spark, tables, ten_files):
    frame = deltafast.spark.read(spark, tables["name"])
    assert len(scan_of(frame.select("the id")).requiredSchema().fields()) == 1
    schema = scan_of(frame.select("s.b.d")).requiredSchema().catalogString()
    assert ":array" not in schema, schema
    schema = scan_of(deltafast.spark.read(spark, ten_files).select("s.y")).requiredSchema().catalogString()
    assert schema == "struct<s:struct<y:bigint>>"


def test_the_metadata_column_is_there(spark, tables, ten_files):
    for path in (ten_files, tables["name"]):
        for way in ("index", "paths"):
            frame = deltafast.spark.read(spark, path, read_mode=way)
            names = {row[0] for row in frame.select("_metadata.file_name").distinct().collect()}
            assert names == {uri.rpartition("/")[2] for uri in DeltaTable(path).file_uris()}
            assert "_metadata" not in frame.columns


# --- traps ---------------------------------------------------------------------------------------


def test_odd_names_of_files_lose_no_row(spark, tmp_path, way):
    odd_table(tmp_path, pa.table({"id": [1, 2, 3]}), ODD_NAMES)
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    assert deltafast.spark.read(spark, str(tmp_path), read_mode=way).count() == 3 * len(ODD_NAMES)
    table.delete("id = 2")
    frame = deltafast.spark.read(spark, str(tmp_path), read_mode=way)
    assert sorted(row[0] for row in frame.collect()) == [1] * len(ODD_NAMES) + [3] * len(ODD_NAMES)


def test_names_that_spark_hides_lose_no_row(spark, tmp_path):
    odd_table(tmp_path, pa.table({"id": [1, 2, 3]}), ("_a.parquet", ".b.parquet", "c.parquet"))
    for way in ("auto", "index", "arrow"):
        assert deltafast.spark.read(spark, str(tmp_path), read_mode=way).count() == 9
    with pytest.raises(InvalidArgumentError, match="silently skips"):
        deltafast.spark.read(spark, str(tmp_path), read_mode="paths")


def test_nothing_is_inserted_behind_the_log(spark, ten_files):
    frame = deltafast.spark.read(spark, ten_files)
    before = sorted(DeltaTable(ten_files).file_uris())
    frame.createOrReplaceTempView("ours")
    frame._jdf.queryExecution()
    with pytest.raises(Exception, match=r"(?i)not allowed|multiple|insert"):
        spark.sql("insert into ours select * from ours where id = 1").collect()
    with pytest.raises(Exception, match=r"(?i)multiple|not allowed|insert"):
        spark.sql("insert overwrite ours select * from ours where id = 1").collect()
    assert sorted(map(str, pathlib.Path(ten_files).rglob("*.parquet"))) == before
    assert deltafast.spark.read(spark, ten_files).count() == 1000


def test_ids_that_disagree_with_names_are_read_by_id(spark, tmp_path):
    DeltaTable.create(
        tmp_path, pa.schema([("a", pa.int64()), ("b", pa.int64())]), configuration={"delta.columnMapping.mode": "id"}
    )
    schema = DeltaTable(tmp_path).schema()
    ids = {field.name: field.metadata["delta.columnMapping.id"] for field in schema.fields}
    physical = {field.name: field.metadata["delta.columnMapping.physicalName"] for field in schema.fields}

    def column(name: str, of: str) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(ids[of])})

    # Names that say the opposite of the ids.
    crossed = pa.schema([column(physical["b"], "a"), column(physical["a"], "b")])
    pq.write_table(pa.table([[1], [2]], schema=crossed), tmp_path / "f.parquet")
    add = AddAction("f.parquet", (tmp_path / "f.parquet").stat().st_size, {}, 0, data_change=True)
    DeltaTable(tmp_path).create_write_transaction([add], "append", schema)
    assert deltafast.spark.read(spark, str(tmp_path)).collect() == [(1, 2)]
    with pytest.raises(InvalidArgumentError, match="disagree"):
        deltafast.spark.read(spark, str(tmp_path), read_mode="index")


def test_a_vacuumed_version_says_so(spark, tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1]}))
    write_deltalake(path, pa.table({"id": [2]}), mode="overwrite")
    old = deltafast.spark.read(spark, path, 0)
    assert [row[0] for row in old.collect()] == [1]
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(AnalysisException, match=r"^version 0 of the Delta table at .* cannot be read any more"):
        deltafast.spark.read(spark, path, 0).collect()
    assert [row[0] for row in deltafast.spark.read(spark, path).collect()] == [2]


def test_files_outside_of_the_table_are_refused(spark, tmp_path):
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"id": [1]}), secret)
    path = tmp_path / "t"
    write_deltalake(str(path), pa.table({"id": [2]}))
    log = path / "_delta_log" / "00000000000000000001.json"
    size = secret.stat().st_size
    add = {"path": "../secret.parquet", "size": size, "partitionValues": {}, "modificationTime": 0, "dataChange": True}
    log.write_text(json.dumps({"add": add}))
    for way in ("index", "paths"):
        with pytest.raises(DeltaError, match="secret"):
            deltafast.spark.read(spark, str(path), read_mode=way)


def test_what_is_no_session_or_table_is_refused(spark, tmp_path):
    with pytest.raises(InvalidArgumentError, match="SparkSession"):
        deltafast.spark.read("spark", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        deltafast.spark.read(spark, str(tmp_path / "nothing"))
    with pytest.raises(InvalidArgumentError, match="read_mode must be"):
        deltafast.spark.read(spark, str(tmp_path), read_mode="fast")
    with pytest.raises(StorageError, match=r"cannot list hdfs://host\.invalid/t/_delta_log.*UnknownHostException"):
        deltafast.spark.read(spark, "hdfs://host.invalid/t")


def test_a_table_without_files_has_columns(spark, tmp_path, way):
    DeltaTable.create(tmp_path, pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_by="p")
    frame = deltafast.spark.read(spark, str(tmp_path), read_mode=way)
    assert (frame.columns, frame.count(), frame.where("id = 1").count()) == (["id", "p"], 0, 0)
