"""Tables that deltafast writes, read and written on by delta-spark; tables of delta-spark, written on by deltafast."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from conformance import compare, corpus
from deltafast import DeltaTable, Field, Schema, write_deltalake
from deltafast.exceptions import ConstraintViolatedError, InvalidArgumentError

from .test_spark import check_changes, check_history, check_row_ids, check_version

if TYPE_CHECKING:
    import pathlib

    from .reference import Reference

pytestmark = [pytest.mark.spark, pytest.mark.proof, pytest.mark.timeout(600)]

READER = corpus.Reader()


def agreed(spark: Reference, folder: pathlib.Path, rows: list[dict[str, Any]] | None = None) -> None:
    """Both see the same newest version: protocol, metadata, files, rows; and the rows are these."""
    spark.forget()
    newest = spark.newest(folder)
    table = DeltaTable(folder)
    assert table.version() == newest
    check_version(spark, folder, newest)
    if rows is not None:
        fields = json.loads(table.schema().to_json())["fields"]
        found = READER.rows(folder, newest)
        expected = pa.Table.from_pylist(rows, found.schema)
        got, want = compare.row_strings(found, fields), compare.row_strings(expected, fields)
        assert sorted(got) == sorted(want)


# --- ours, read by the reference -------------------------------------------------------------------------------------

EVERYTHING = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "by": pa.array([-128, None, 127], pa.int8()),
        "sh": pa.array([-32768, None, 1], pa.int16()),
        "i": pa.array([1, None, -(2**31)], pa.int32()),
        "f": pa.array([1.5, None, float("nan")], pa.float32()),
        "d": pa.array([1e300, None, float("-inf")], pa.float64()),
        "b": pa.array([True, None, False]),
        "s": pa.array(["", None, "straße 日本 " * 20]),
        "bin": pa.array([b"\x00\xff", None, b""], pa.binary()),
        "day": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
        "ts": pa.array([-62135596800000000, None, 253402300799999999], pa.timestamp("us", "UTC")),
        "ntz": pa.array([-1, None, 1], pa.timestamp("us")),
        "small": pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal128(9, 2)),
        "large": pa.array([Decimal("123456.654321"), None, Decimal(0)], pa.decimal128(18, 6)),
        "huge": pa.array([Decimal(10) ** 27, None, Decimal("1e-10")], pa.decimal128(38, 10)),
        "l": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "m": pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64())),
        "st": pa.array(
            [{"x": 1, "y": ["q"]}, None, {"x": None, "y": None}],
            pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
        ),
        "p": pa.array(["a b/ü=%", None, "x"]),
    }
)

CONFIGURATIONS = {
    "plain": {},
    "change feed": {"delta.enableChangeDataFeed": "true"},
    "names": {"delta.columnMapping.mode": "name"},
    "ids": {"delta.columnMapping.mode": "id", "delta.enableChangeDataFeed": "true"},
    "vectors, row ids, times": {
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
    },
    "v2 checkpoints": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    "iceberg": {"delta.enableIcebergCompatV2": "true"},
    "named features": {"delta.feature.vacuumProtocolCheck": "supported", "delta.feature.typeWidening": "supported"},
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_reference_reads_what_is_written_in_every_mode(name: str, spark: Reference, tmp_path: pathlib.Path) -> None:
    configuration = CONFIGURATIONS[name]
    feed = "delta.enableChangeDataFeed" in configuration
    write_deltalake(
        tmp_path, EVERYTHING, partition_by=["p", "day"], configuration=configuration, name="n", description="d"
    )
    agreed(spark, tmp_path, EVERYTHING.to_pylist())
    write_deltalake(tmp_path, EVERYTHING.slice(0, 2), mode="append")
    one = EVERYTHING.slice(1, 1)
    write_deltalake(tmp_path, one, mode="overwrite", predicate="id = 2")
    agreed(spark, tmp_path, EVERYTHING.take([0, 0, 1, 2]).to_pylist())
    write_deltalake(tmp_path, EVERYTHING.slice(2), mode="overwrite", partition_overwrite_mode="dynamic")
    if feed:
        spark.forget()
        check_changes(spark, tmp_path, 0, 3)
    wider = one.append_column("extra", pa.array([{"k": 1}], pa.struct([("k", pa.int32())])))
    write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")
    agreed(spark, tmp_path)
    if configuration.get("delta.enableRowTracking"):
        check_row_ids(spark, tmp_path, 4)
    check_history(spark, tmp_path)
    spark.sql(f"insert into delta.`{tmp_path}` select * from delta.`{tmp_path}` where id = 3")
    spark.sql(f"update delta.`{tmp_path}` set s = 'new' where id = 1")
    spark.sql(f"delete from delta.`{tmp_path}` where id = 2")
    agreed(spark, tmp_path)
    other = ["i"]
    if "delta.enableIcebergCompatV2" in configuration:
        with pytest.raises(InvalidArgumentError, match=r"partition columns from p, day to i"):
            write_deltalake(tmp_path, EVERYTHING, mode="overwrite", schema_mode="overwrite", partition_by=other)
        name = f"delta.`{tmp_path}`"
        properties = "tblproperties ('delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name')"
        with pytest.raises(Exception, match="REPLACE_TABLE_CHANGE_PARTITION_NAMES"):
            spark.sql(f"replace table {name} using delta partitioned by (i) {properties} as select * from {name}")
        other = ["p", "day"]
    write_deltalake(tmp_path, EVERYTHING, mode="overwrite", schema_mode="overwrite", partition_by=other)
    agreed(spark, tmp_path, EVERYTHING.to_pylist())
    if configuration.get("delta.enableRowTracking"):
        check_row_ids(spark, tmp_path, spark.newest(tmp_path))


def test_the_reference_keeps_the_rules_of_our_tables(spark: Reference, tmp_path: pathlib.Path) -> None:
    fields = [
        Field(
            "id",
            "long",
            metadata={"delta.identity.start": 5, "delta.identity.step": 3, "delta.identity.allowExplicitInsert": False},
        ),
        Field("ts", "timestamp"),
        Field("day", "date", metadata={"delta.generationExpression": "CAST(ts AS DATE)"}),
        Field("n", "integer", nullable=False),
        Field("s", "string", metadata={"CURRENT_DEFAULT": "'none'", "comment": "what"}),
    ]
    configuration = {"delta.constraints.small": "n < 100", "delta.feature.allowColumnDefaults": "supported"}
    table = DeltaTable.create(tmp_path, Schema(fields), partition_by="day", configuration=configuration)
    agreed(spark, tmp_path, [])
    ts = [dt.datetime(2024, 2, day, 12, tzinfo=dt.UTC) for day in (28, 29)]
    write_deltalake(table, pa.table({"ts": ts, "n": [1, 2]}), mode="append")
    name = f"delta.`{tmp_path}`"
    spark.forget()
    spark.sql(f"insert into {name} (ts, n) values (timestamp'2024-03-01 01:00:00Z', 3)")
    spark.forget()
    for broken in (
        "(ts, n) values (null, 100)",
        "(ts, n, day) values (timestamp'2024-03-01 01:00:00Z', 3, date'2024-01-01')",
    ):
        with pytest.raises(Exception, match=r"DELTA_VIOLATE_CONSTRAINT|CHECK constraint|Generated Column"):
            spark.sql(f"insert into {name} {broken}")
    table.update_incremental()
    write_deltalake(table, pa.table({"ts": ts[:1], "n": [4]}), mode="append")
    agreed(spark, tmp_path)
    found = sorted(
        (row["n"], row["id"], str(row["day"]), row["s"]) for row in DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
    )
    ids = [row[1] for row in found]
    assert [(row[0], row[2], row[3]) for row in found] == [
        (1, "2024-02-28", "none"),
        (2, "2024-02-29", "none"),
        (3, "2024-03-01", "none"),
        (4, "2024-02-28", "none"),
    ]
    assert ids == sorted(set(ids))
    assert all((value - 5) % 3 == 0 for value in ids)


def test_the_reference_clusters_our_tables(spark: Reference, tmp_path: pathlib.Path) -> None:
    data = pa.table({"a": range(100), "b": [str(n) for n in range(100)]})
    write_deltalake(tmp_path, data, cluster_by=["b", "a"])
    write_deltalake(tmp_path, data, mode="append")
    spark.forget()
    spark.sql(f"optimize delta.`{tmp_path}`")
    agreed(spark, tmp_path)
    assert DeltaTable(tmp_path).detail()["clusteringColumns"] == ["b", "a"]


# --- the reference's, written on by us -------------------------------------------------------------------------------


def wall(text: str) -> dt.datetime:
    """Return a time without a zone."""
    return dt.datetime.fromisoformat(text)


def props(**given: str) -> str:
    return "tblproperties (" + ", ".join(f"'delta.{key}' = '{value}'" for key, value in given.items()) + ")"


#: For each: how it is made, what is appended, what is replaced where.
TABLES: dict[str, tuple[list[str], dict[str, list[Any]], str]] = {
    "partitioned": (
        [
            "create table {t} (id bigint, p string) using delta partitioned by (p)",
            "insert into {t} values (1, 'a'), (2, 'b')",
        ],
        {"id": [3, 4], "p": ["a", None]},
        "p = 'a'",
    ),
    "column mapping": (
        [
            "create table {t} (id bigint, s struct<x: int, `y z`: string>, p string) using delta partitioned by (p) "
            + props(**{"columnMapping.mode": "name"}),
            "insert into {t} values (1, named_struct('x', 1, 'y z', 'q'), 'a')",
            "alter table {t} rename column id to `the id`",
            "alter table {t} add column (more int)",
        ],
        {"the id": [3], "s": [{"x": 7, "y z": "r"}], "p": ["a"], "more": [5]},
        "`the id` = 1",
    ),
    "deletion vectors": (
        [
            "create table {t} (id bigint) using delta "
            + props(enableDeletionVectors="true", enableChangeDataFeed="true"),
            "insert into {t} select id from range(0, 100, 1, 2)",
            "delete from {t} where id % 7 = 0",
        ],
        {"id": [1000, 1001]},
        "id < 20",
    ),
    "change feed": (
        [
            "create table {t} (id bigint, s string) using delta " + props(enableChangeDataFeed="true"),
            "insert into {t} select id, 'a' from range(10)",
            "update {t} set s = 'b' where id = 4",
        ],
        {"id": [3, 4], "s": ["x", "y"]},
        "s = 'b' or id = 3",
    ),
    "row tracking": (
        [
            "create table {t} (id bigint, s string) using delta "
            + props(enableRowTracking="true", enableDeletionVectors="true"),
            "insert into {t} select id, 'a' from range(10)",
            "update {t} set s = 'b' where id = 4",
            "optimize {t}",
        ],
        {"id": [100], "s": ["new"]},
        "id in (2, 4)",
    ),
    "in-commit timestamps": (
        [
            "create table {t} (id bigint) using delta",
            "insert into {t} values (1)",
            "alter table {t} set tblproperties ('delta.enableInCommitTimestamps' = 'true')",
        ],
        {"id": [3]},
        "id = 1",
    ),
    "v2 checkpoints": (
        [
            "create table {t} (id bigint) using delta " + props(checkpointPolicy="v2", checkpointInterval="2"),
            "insert into {t} values (1)",
            "insert into {t} values (2)",
            "insert into {t} values (3)",
        ],
        {"id": [3]},
        "id = 1",
    ),
    "type widening": (
        [
            "create table {t} (id int, d decimal(5,2)) using delta " + props(enableTypeWidening="true"),
            "insert into {t} values (1, 1.25)",
            "alter table {t} alter column id type bigint",
            "alter table {t} alter column d type decimal(10,2)",
        ],
        {"id": [2**40], "d": [Decimal("12345678.25")]},
        "id = 1",
    ),
    "clustered": (
        [
            "create table {t} (id bigint, s string) using delta cluster by (s)",
            "insert into {t} values (1, 'a')",
            "optimize {t}",
        ],
        {"id": [2], "s": ["b"]},
        "id = 1",
    ),
    "timestamp_ntz": (
        [
            "create table {t} (id bigint, n timestamp_ntz) using delta partitioned by (n)",
            "insert into {t} values (1, timestamp_ntz'2024-01-01 00:00:01.5')",
        ],
        {"id": [2, 3], "n": [wall("2024-01-01 00:00:01.5"), wall("1969-12-31")]},
        "n = timestamp_ntz'2024-01-01 00:00:01.5'",
    ),
    "timestamp partitions": (
        [
            "create table {t} (id bigint, n timestamp) using delta partitioned by (n)",
            "insert into {t} values (1, timestamp'2024-01-01 00:00:01.5')",
        ],
        {
            "id": [2, 3],
            "n": [dt.datetime(2024, 1, 1, 0, 0, 1, 500000, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, tzinfo=dt.UTC)],
        },
        "n = timestamp'2024-01-01 00:00:01.5'",
    ),
    "constraints": (
        [
            "create table {t} (id bigint not null, s string) using delta",
            "alter table {t} add constraint c check (id > 0 and (s is null or length(s) < 5))",
            "insert into {t} values (1, 'a')",
        ],
        {"id": [2], "s": [None]},
        "id = 1",
    ),
    "generated": (
        [
            "GENERATED",
            "insert into {t} (id, ts) values (1, timestamp'2024-02-29 23:00:00')",
        ],
        {"id": [2], "ts": [dt.datetime(2024, 3, 1, 1, tzinfo=dt.UTC)]},
        "day = date'2024-02-29'",
    ),
    "defaults": (
        [
            "create table {t} (id bigint, n int default 7, s string default upper('abc'), "
            "t date default current_date()) using delta " + props(**{"feature.allowColumnDefaults": "supported"}),
            "insert into {t} (id) values (1)",
        ],
        {"id": [2]},
        "id = 1",
    ),
    "varchar": (
        ["create table {t} (id bigint, v varchar(4)) using delta", "insert into {t} values (1, 'abcd')"],
        {"id": [2], "v": ["wxyz"]},
        "id = 1",
    ),
    "checkpoint, no commits": (
        [
            "create table {t} (id bigint, p int) using delta partitioned by (p)",
            "insert into {t} select id, id % 3 from range(30)",
            "CHECKPOINT",
        ],
        {"id": [2], "p": [7]},
        "p = 1",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_the_reference_are_written_on(name: str, spark: Reference, tmp_path: pathlib.Path) -> None:
    steps, data, predicate = TABLES[name]
    folder = tmp_path / "table"
    for step in steps:
        if step == "CHECKPOINT":
            spark.checkpoint(folder)
        elif step == "GENERATED":
            generated(spark, folder)
        else:
            spark.sql(step.format(t=f"delta.`{folder}`"))
    spark.forget()
    table = DeltaTable(folder)
    before = table.to_pyarrow_table()
    types = {field.name: field.type for field in before.schema}
    rows = pa.table({key: pa.array(values, types[key]) for key, values in data.items()})
    write_deltalake(table, rows, mode="append")
    agreed(spark, folder)
    assert table.count() == before.num_rows + rows.num_rows
    first = next(iter(data))
    kept = DeltaTable(folder).to_pyarrow_table()
    matching = DeltaTable(folder).to_pyarrow_table(filters=predicate)
    assert 0 < matching.num_rows < kept.num_rows, "the predicate must choose some rows"
    empty = rows.slice(0, 0)
    write_deltalake(table, empty, mode="overwrite", predicate=predicate)
    agreed(spark, folder)
    left = sorted(map(repr, kept.column(first).to_pylist()))
    for value in map(repr, matching.column(first).to_pylist()):
        left.remove(value)
    assert sorted(map(repr, table.to_pyarrow_table().column(first).to_pylist())) == left
    if table.metadata().configuration.get("delta.enableChangeDataFeed") == "true":
        check_changes(spark, folder, 1, table.version())
    check_row_ids(spark, folder, table.version())
    # It goes on with what we wrote.
    spark.sql(
        f"insert into delta.`{folder}` select * from delta.`{folder}`"
        if name != "generated"
        else f"delete from delta.`{folder}` where id = 2"
    )
    spark.sql(f"optimize delta.`{folder}`")
    spark.checkpoint(folder)
    agreed(spark, folder)
    table.update_incremental()
    write_deltalake(table, rows, mode="append")
    agreed(spark, folder)


def generated(spark: Reference, folder: pathlib.Path) -> None:
    """Make a table with a generated column; SQL on paths cannot say that."""
    builder = spark._jvm.io.delta.tables.DeltaTable.create(spark._spark._jsparkSession).location(str(folder))
    column = spark._jvm.io.delta.tables.DeltaTable.columnBuilder(spark._spark._jsparkSession, "day").dataType("DATE")
    column = column.generatedAlwaysAs("CAST(ts AS DATE)").build()
    builder.addColumn("id", "BIGINT").addColumn("ts", "TIMESTAMP").addColumn(column).partitionedBy(
        spark._jvm.PythonUtils.toSeq(["day"])
    ).execute()


def test_rules_of_the_reference_are_kept(spark: Reference, tmp_path: pathlib.Path) -> None:
    name = f"delta.`{tmp_path}`"
    spark.sql(f"create table {name} (id bigint not null, s string) using delta")
    spark.sql(f"alter table {name} add constraint `c 1` check (id % 2 = 0 or s rlike '^a+$')")
    write_deltalake(tmp_path, pa.table({"id": [2, 3], "s": [None, "aaa"]}), mode="append")
    for data, text in [
        ({"id": [3], "s": ["b"]}, "`c 1`"),
        ({"id": pa.array([None], pa.int64()), "s": ["a"]}, "NOT NULL"),
    ]:
        with pytest.raises(ConstraintViolatedError, match=text):
            write_deltalake(tmp_path, pa.table(data), mode="append")
    agreed(spark, tmp_path, [{"id": 2, "s": None}, {"id": 3, "s": "aaa"}])


def test_variants_are_written(spark: Reference, tmp_path: pathlib.Path) -> None:
    name = f"delta.`{tmp_path}`"
    spark.sql(f"create table {name} (id bigint, v variant) using delta")
    spark.sql(f"""insert into {name} select 1, parse_json('{{"a": [1, null, "x"]}}')""")
    table = DeltaTable(tmp_path)
    again = table.scan().read_all()
    write_deltalake(table, again, mode="append")
    nulls = pa.table({"id": [7, 8], "v": pa.array([None, None], again.schema.field("v").type)})
    write_deltalake(table, pa.concat_tables([nulls.cast(again.schema), again]), mode="append")
    write_deltalake(table, pa.table({"id": [9]}), mode="append")
    agreed(spark, tmp_path)
    assert table.count() == 6


def test_identity_columns_of_the_reference_go_on(spark: Reference, tmp_path: pathlib.Path) -> None:
    tables = spark._jvm.io.delta.tables.DeltaTable
    session = spark._spark._jsparkSession
    column = tables.columnBuilder(session, "id").dataType("BIGINT").generatedAlwaysAsIdentity(10, 10).build()
    tables.create(session).location(str(tmp_path)).addColumn(column).addColumn("s", "STRING").execute()
    name = f"delta.`{tmp_path}`"
    spark.sql(f"insert into {name} (s) values ('a'), ('b')")
    write_deltalake(tmp_path, pa.table({"s": ["c", "d"]}), mode="append")
    spark.forget()
    spark.sql(f"insert into {name} (s) values ('e')")
    agreed(spark, tmp_path)
    found = sorted(DeltaTable(tmp_path).to_pyarrow_table().column("id").to_pylist())
    assert len(set(found)) == 5
    assert all(value % 10 == 0 for value in found)
