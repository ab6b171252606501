"""Writing tables: modes, schemas, replacement, rules, what the log says of it; deltalake reads what was written."""

import datetime as dt
import json
import re
import time
from decimal import Decimal

import deltalake
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import (
    BloomFilterProperties,
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltafast.exceptions import (
    CommitFailedError,
    ConcurrentAppendError,
    ConstraintViolatedError,
    CorruptLogError,
    DeltaProtocolError,
    DeltaWarning,
    InvalidArgumentError,
    MetadataChangedError,
    SchemaMismatchError,
)
from deltafast.transaction import RemoveAction

ROWS = pa.table({"id": [1, 2, 3], "p": ["x", "y", "x"]})


def rows(table, **options):
    found = (
        DeltaTable(table).to_pyarrow_table(**options) if not isinstance(table, DeltaTable) else table.to_pyarrow_table()
    )
    return sorted(found.to_pylist(), key=repr)


def theirs(path):
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist(), key=repr)


def actions(path, version):
    text = (path / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def of_kind(path, version, kind):
    return [action[kind] for action in actions(path, version) if kind in action]


def data_files(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*.parquet") if "_delta_log" not in file.parts)


# --- modes ------------------------------------------------------------------------------------------------------------


def test_each_mode_does_what_it_says(tmp_path):
    path = tmp_path / "t"
    write_deltalake(path, ROWS)
    with pytest.raises(InvalidArgumentError, match=r"there is a table at .* already; use the mode `append`"):
        write_deltalake(path, ROWS)
    write_deltalake(path, ROWS, mode="ignore")
    assert DeltaTable(path).version() == 0
    write_deltalake(path, ROWS, mode="append")
    assert rows(path) == theirs(path) == sorted(ROWS.to_pylist() * 2, key=repr)
    write_deltalake(path, ROWS.slice(0, 1), mode="overwrite")
    assert rows(path) == theirs(path) == [{"id": 1, "p": "x"}]
    assert DeltaTable(path, version=1).count() == 6


@pytest.mark.parametrize("mode", ["error", "append", "overwrite", "ignore"])
def test_every_mode_makes_a_table_where_there_is_none(tmp_path, mode):
    write_deltalake(tmp_path, ROWS, mode=mode, partition_by="p", name="n", description="d", configuration={"a": "b"})
    metadata = DeltaTable(tmp_path).metadata()
    assert (metadata.name, metadata.description, metadata.partition_columns) == ("n", "d", ["p"])
    assert metadata.configuration == {"a": "b"}
    assert rows(tmp_path) == theirs(tmp_path)


def test_a_handle_moves_with_what_it_writes_and_other_handles_stay(tmp_path):
    write_deltalake(tmp_path, ROWS)
    table, other = DeltaTable(tmp_path), DeltaTable(tmp_path)
    for version in range(1, 4):
        write_deltalake(table, ROWS, mode="append")
        assert (table.version(), table.count()) == (version, 3 * (version + 1))
    assert (other.version(), other.count()) == (0, 3)
    write_deltalake(other, ROWS, mode="append")
    assert (other.version(), other.count()) == (4, 15)


def test_unknown_words_are_refused(tmp_path):
    cases = [
        ({"mode": "upsert"}, "mode must be one of 'error', 'append', 'overwrite', 'ignore', not 'upsert'"),
        ({"schema_mode": "replace"}, "schema_mode must be one of None, 'merge', 'overwrite', not 'replace'"),
        ({"partition_overwrite_mode": "DYNAMIC"}, "partition_overwrite_mode must be 'static' or 'dynamic'"),
        ({"mode": "append", "schema_mode": "overwrite"}, 'which mode="append" cannot; use mode="overwrite"'),
        (
            {"mode": "append", "predicate": "id = 1"},
            '`predicate` says which rows are replaced and needs mode="overwrite"',
        ),
        (
            {"mode": "overwrite", "predicate": "id = 1", "partition_overwrite_mode": "dynamic"},
            "each says which rows are replaced",
        ),
        ({"target_file_size": 0}, "target_file_size must be between 1 and 9223372036854775807, not 0"),
        ({"configuration": {"delta.chekpointInterval": "3"}}, "no table property `delta.chekpointInterval`"),
        ({"configuration": {"delta.checkpointInterval": "no"}}, "whole number of at least 1"),
        ({"partition_by": ["q"]}, "the partition column `q` is not in the schema"),
        ({"partition_by": ["id", "p"]}, "cannot be partitioned by all of its columns"),
    ]
    for options, text in cases:
        with pytest.raises(InvalidArgumentError, match=re.escape(text)):
            write_deltalake(tmp_path / "t", ROWS, **options)
    assert not (tmp_path / "t").exists()


def test_a_schema_that_stays_may_be_overwritten_where_rows_stay(tmp_path):
    write_deltalake(tmp_path, ROWS)
    part = {"mode": "overwrite", "predicate": "id = 1", "schema_mode": "overwrite"}
    write_deltalake(tmp_path, ROWS.slice(0, 1), **part)
    assert rows(tmp_path) == theirs(tmp_path) == rows_of(ROWS)
    with pytest.raises(InvalidArgumentError, match="it cannot go with `predicate`"):
        write_deltalake(tmp_path, ROWS.slice(0, 1).append_column("more", pa.array([1])), **part)
    assert DeltaTable(tmp_path).version() == 1


def test_partitioning_of_a_table_cannot_be_written_away(tmp_path):
    write_deltalake(tmp_path, ROWS, partition_by="p")
    write_deltalake(tmp_path, ROWS, mode="append", partition_by="P")
    with pytest.raises(
        InvalidArgumentError,
        match=re.escape('does not match table partitioning: expected: ["p"], got: ["id"]; leave `partition_by`'),
    ):
        write_deltalake(tmp_path, ROWS, mode="append", partition_by="id")
    write_deltalake(tmp_path, ROWS, mode="overwrite", schema_mode="overwrite", partition_by="id")
    assert DeltaTable(tmp_path).metadata().partition_columns == ["id"]
    assert rows(tmp_path) == theirs(tmp_path) == rows_of(ROWS)


def rows_of(table):
    return sorted(table.to_pylist(), key=repr)


def test_settings_of_a_new_table_are_not_applied_to_an_old_one_silently(tmp_path):
    write_deltalake(tmp_path, ROWS, configuration={"a": "b"})
    with pytest.warns(DeltaWarning, match="`configuration` is for new tables and was not applied to this one \\(c\\)"):
        write_deltalake(tmp_path, ROWS, mode="append", configuration={"a": "b", "c": "d"})
    assert DeltaTable(tmp_path).metadata().configuration == {"a": "b"}


# --- data -------------------------------------------------------------------------------------------------------------


def sources():
    reader = ROWS.to_reader
    return {
        "table": ROWS,
        "reader": reader(),
        "record batch": ROWS.to_batches()[0],
        "list of batches": ROWS.slice(0, 1).to_batches() + ROWS.slice(1).to_batches(),
        "list of tables": [ROWS.slice(0, 2), ROWS.slice(2)],
        "generator": (ROWS.slice(n, 1).to_batches()[0] for n in range(3)),
        "pandas": ROWS.to_pandas(),
        "polars": pl.from_arrow(ROWS),
        "polars lazy": pl.from_arrow(ROWS).lazy().filter(pl.col("id") > 0),
        "duckdb": duckdb.from_arrow(ROWS),
        "dataset scanner": pa.RecordBatchReader.from_batches(ROWS.schema, iter(ROWS.to_batches())),
    }


@pytest.mark.parametrize("name", sorted(sources()))
def test_everything_that_speaks_arrow_is_data(tmp_path, name):
    write_deltalake(tmp_path, sources()[name])
    assert rows(tmp_path) == rows_of(ROWS)


@pytest.mark.parametrize("lazy", [False, True])
def test_columns_of_nulls_of_polars_are_data(tmp_path, lazy):
    frame = pl.DataFrame({"id": [1], "n": [None], "l": [[None]], "s": [{"x": None}]})
    write_deltalake(tmp_path / "t", {"id": [0], "n": ["a"], "l": [["b"]], "s": [{"x": "c"}]})
    write_deltalake(tmp_path / "t", frame.lazy() if lazy else frame, mode="append")
    assert rows(tmp_path / "t") == sorted(
        [{"id": 0, "n": "a", "l": ["b"], "s": {"x": "c"}}, {"id": 1, "n": None, "l": [None], "s": {"x": None}}],
        key=repr,
    )


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128, pl.Object, pl.List(pl.Int128), pl.Struct({"x": pl.Int128})])
def test_types_of_polars_without_an_equivalent_are_refused(tmp_path, kind, lazy):
    frame = pl.DataFrame({"id": [1], "x": pl.Series([None], dtype=kind)})
    name = re.search(r"Object|U?Int128", str(kind))[0]
    with pytest.raises(InvalidArgumentError, match=rf"no type for Polars' {name}; cast .* \(column `x`\)") as caught:
        write_deltalake(tmp_path / "t", frame.lazy() if lazy else frame)
    assert caught.value.column == "x"
    assert not (tmp_path / "t").exists()


def test_a_table_is_data_too(tmp_path):
    write_deltalake(tmp_path / "a", ROWS)
    write_deltalake(tmp_path / "b", DeltaTable(tmp_path / "a"), partition_by="p")
    write_deltalake(tmp_path / "b", DeltaTable(tmp_path / "a").scan(predicate="id = 1"), mode="append")
    assert rows(tmp_path / "b") == sorted([*ROWS.to_pylist(), {"id": 1, "p": "x"}], key=repr)


PLAIN = {
    "dict": lambda: {"id": [1, 2], "name": ["a", None]},
    "dict of arrays": lambda: {"id": pa.array([1, 2]), "name": pa.chunked_array([["a"], [None]])},
    "rows": lambda: [{"id": 1, "name": "a"}, {"id": 2}],
    "rows in any order": lambda: [{"id": 2}, {"name": "a", "id": 1}],
    "iterator of rows": lambda: iter([{"name": "a", "id": 1}, {"id": 2}]),
    "dataset": lambda: pads.dataset(pa.table({"id": [1, 2], "name": ["a", None]})),
    "scanner": lambda: pads.dataset(pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})).scanner(
        filter=pc.field("id") < 3
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_dicts_rows_and_datasets_are_data(tmp_path, name):
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    write_deltalake(tmp_path / "t", PLAIN[name]())
    table = DeltaTable(tmp_path / "t")
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == rows
    merger = table.merge(PLAIN[name](), "target.id = source.id - 1", "source", "target")
    merger.when_not_matched_insert_all().execute()
    assert sorted(row["id"] for row in table.to_pyarrow_table().to_pylist()) == [1, 1, 2]


def test_a_dataset_of_ours_is_data(tmp_path):
    write_deltalake(tmp_path / "t", {"id": [1, 2, 3]})
    source = DeltaTable(tmp_path / "t").to_pyarrow_dataset()
    write_deltalake(tmp_path / "u", source.filter(pc.field("id") > 1))
    assert DeltaTable(tmp_path / "u").to_pyarrow_table()["id"].to_pylist() == [2, 3]
    # Reading and overwriting the same table.
    write_deltalake(tmp_path / "t", source, mode="overwrite")
    assert DeltaTable(tmp_path / "t").count() == 3


def test_what_is_no_data_is_refused(tmp_path):
    for data, text in [
        ({"id": 1}, "column `id` of the data must be a list of values, not a int"),
        ({1: [1]}, "data has a column name that is not a string: 1"),
        ({"id": [1], "n": [1, 2]}, "columns of the data differ in their number of values: `id` has 1, `n` has 2"),
        ({"id": [1, "x"]}, "column `id` of the data cannot be converted to Arrow"),
        ("id", "data cannot be a str"),
        ([], "data holds no record batches"),
        ([{"id": 1}, 5], "data mixes dicts with a int"),
        ([5], "data must hold record batches or dicts, not int"),
        (None, "data cannot be a NoneType"),
    ]:
        with pytest.raises(InvalidArgumentError, match=re.escape(text)):
            write_deltalake(tmp_path / "t", data)


def test_a_source_that_fails_leaves_the_table_as_it_was(tmp_path):
    write_deltalake(tmp_path, ROWS)
    before = data_files(tmp_path)

    def broken():
        yield ROWS.to_batches()[0]
        message = "the source broke"
        raise RuntimeError(message)

    with pytest.raises(InvalidArgumentError, match="the source broke"):
        write_deltalake(tmp_path, pa.RecordBatchReader.from_batches(ROWS.schema, broken()), mode="append")
    assert (DeltaTable(tmp_path).version(), data_files(tmp_path)) == (0, before)


def test_no_rows_are_a_version_too(tmp_path):
    write_deltalake(tmp_path, ROWS.slice(0, 0))
    write_deltalake(tmp_path, ROWS.slice(0, 0), mode="append")
    table = DeltaTable(tmp_path)
    assert (table.version(), table.count(), table.file_uris()) == (1, 0, [])
    assert table.schema().to_arrow() == ROWS.schema


TYPES = {
    "byte": pa.array([-128, None, 127], pa.int8()),
    "short": pa.array([-32768, None, 32767], pa.int16()),
    "integer": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
    "long": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
    "float": pa.array([1.5, None, -0.0], pa.float32()),
    "double": pa.array([1e300, None, -1e-300], pa.float64()),
    "boolean": pa.array([True, None, False]),
    "string": pa.array(["", None, "straße 日本"]),
    "binary": pa.array([b"\x00\xff", None, b"q"], pa.binary()),
    "date": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "timestamp": pa.array([0, None, 253402300799999999], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([-1, None, 1], pa.timestamp("us")),
    "decimal(9,2)": pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal128(9, 2)),
    "decimal(38,10)": pa.array([Decimal(10) ** 27, None, Decimal("1e-10")], pa.decimal128(38, 10)),
    "array<long>": pa.array([[1, None], None, []], pa.list_(pa.int64())),
    "map<string,long>": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "struct<x:long>": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())])),
}


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("name", TYPES)
def test_values_of_every_type_come_back_whatever_the_mapping(tmp_path, name, mapping):
    data = pa.table({"id": [1, 2, 3], "v": TYPES[name]})
    write_deltalake(tmp_path, data, configuration={"delta.columnMapping.mode": mapping})
    write_deltalake(tmp_path, data, mode="append")
    assert rows(tmp_path) == sorted(data.to_pylist() * 2, key=repr)
    assert str(DeltaTable(tmp_path).schema().fields[1].type.to_json()).startswith(('"', "{"))
    if mapping == "none":
        assert theirs(tmp_path) == rows(tmp_path)


PARTITIONS = [name for name in TYPES if "<" not in name and name != "binary"]


@pytest.mark.parametrize("name", PARTITIONS)
def test_tables_are_partitioned_by_every_type(tmp_path, name):
    data = pa.table({"id": [1, 2, 3], "v": TYPES[name]})
    if name == "string":
        # An empty text is null in a partition column, to every implementation.
        data = data.set_column(1, "v", pa.array([" a=%/", None, "日"]))
    write_deltalake(tmp_path, data, partition_by="v")
    write_deltalake(tmp_path, data, mode="overwrite", partition_overwrite_mode="dynamic")
    assert rows(tmp_path) == rows_of(data)
    assert len(DeltaTable(tmp_path).file_uris()) == 3
    # deltalake itself spells a negative decimal below one wrongly when it reads it ("0.-1").
    if name != "decimal(9,2)":
        assert theirs(tmp_path) == rows_of(data)


def test_values_that_do_not_fit_are_refused(tmp_path):
    schema = Schema([Field("a", "integer"), Field("s", "string"), Field("d", "decimal(4,2)")])
    DeltaTable.create(tmp_path, schema)
    cases = [
        ({"a": pa.array([2**31], pa.int64())}, "column `a`"),
        ({"a": pa.array(["1"])}, "expected integer, found Utf8"),
        ({"s": pa.array([1])}, "expected string, found Int64"),
        ({"d": pa.array([Decimal("100.001")])}, "in row 1: 100.001"),
        ({"a": pa.array([None, 1.5])}, "in row 2: 1.5: expected integer, found Float64"),
    ]
    for columns, text in cases:
        with pytest.raises(SchemaMismatchError, match=re.escape(text)):
            write_deltalake(tmp_path, pa.table(columns), mode="append")
    write_deltalake(tmp_path, pa.table({"A": pa.array([1], pa.uint64()), "d": pa.array([1], pa.int8())}), mode="append")
    assert rows(tmp_path) == [{"a": 1, "s": None, "d": Decimal("1.00")}]


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_columns_are_added_only_when_asked(tmp_path):
    write_deltalake(tmp_path, ROWS)
    wider = pa.table({"z": [1.5], "ID": pa.array([4], pa.int32())})
    with pytest.raises(SchemaMismatchError, match=r'pass schema_mode="merge" to add it to the table.*`z`'):
        write_deltalake(tmp_path, wider, mode="append")
    write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")
    assert [field.name for field in DeltaTable(tmp_path).schema().fields] == ["id", "p", "z"]
    assert rows(tmp_path)[-1] == {"id": 4, "p": None, "z": 1.5}
    assert theirs(tmp_path) == rows(tmp_path)
    assert len(of_kind(tmp_path, 1, "metaData")) == 1
    write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")
    assert of_kind(tmp_path, 2, "metaData") == []


def test_nested_fields_are_merged(tmp_path):
    inner = pa.struct([("x", pa.int64())])
    old = pa.table({"s": pa.array([{"x": 1}], inner), "l": pa.array([[{"x": 1}]], pa.list_(inner))})
    new_inner = pa.struct([pa.field("y", pa.string(), nullable=False), ("x", pa.int64())])
    new = pa.table(
        {
            "l": pa.array([[{"y": "a", "x": 2}]], pa.list_(new_inner)),
            "s": pa.array([{"y": "b", "x": 3}], new_inner),
        }
    )
    write_deltalake(tmp_path, old)
    with pytest.raises(SchemaMismatchError, match=re.escape("`s.y`")):
        write_deltalake(tmp_path, new.select(["s"]), mode="append")
    write_deltalake(tmp_path, new, mode="append", schema_mode="merge")
    assert rows(tmp_path) == [
        {"s": {"x": 1, "y": None}, "l": [{"x": 1, "y": None}]},
        {"s": {"x": 3, "y": "b"}, "l": [{"x": 2, "y": "a"}]},
    ]
    assert DeltaTable(tmp_path).schema().fields[0].type.fields[1].nullable


def test_types_widen_only_where_the_table_says_so(tmp_path):
    narrow = pa.table({"a": pa.array([1], pa.int32())})
    wide = pa.table({"a": pa.array([2**40], pa.int64())})
    write_deltalake(tmp_path / "no", narrow)
    with pytest.raises(SchemaMismatchError, match="column `a`"):
        write_deltalake(tmp_path / "no", wide, mode="append", schema_mode="merge")
    write_deltalake(tmp_path / "yes", narrow, configuration={"delta.enableTypeWidening": "true"})
    write_deltalake(tmp_path / "yes", wide, mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path / "yes")
    assert sorted(row["a"] for row in rows(table)) == [1, 2**40]
    (field,) = table.schema().fields
    assert field.metadata == {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}


def test_a_schema_is_replaced_with_its_rows(tmp_path):
    write_deltalake(tmp_path, ROWS, configuration={"delta.columnMapping.mode": "name"})
    before = {f.name: f.metadata["delta.columnMapping.id"] for f in DeltaTable(tmp_path).schema().fields}
    write_deltalake(tmp_path, pa.table({"id": ["a"], "p": ["b"]}), mode="overwrite", schema_mode="overwrite")
    table = DeltaTable(tmp_path)
    after = {f.name: f.metadata["delta.columnMapping.id"] for f in table.schema().fields}
    assert after["p"] == before["p"]
    assert after["id"] > max(before.values())
    assert rows(table) == [{"id": "a", "p": "b"}]
    assert DeltaTable(tmp_path, version=0).to_pyarrow_table().num_rows == 3
    assert int(table.metadata().configuration["delta.columnMapping.maxColumnId"]) == after["id"]


def test_missing_columns_are_null_unless_they_cannot_be(tmp_path):
    DeltaTable.create(tmp_path, Schema([Field("a", "long"), Field("b", "long", nullable=False)]))
    with pytest.raises(SchemaMismatchError, match=r"lacks a column that is NOT NULL.*`b`"):
        write_deltalake(tmp_path, pa.table({"a": [1]}), mode="append")
    write_deltalake(tmp_path, pa.table({"b": [1]}), mode="append")
    with pytest.raises(ConstraintViolatedError, match="the column `b` is NOT NULL and null in row 2"):
        write_deltalake(tmp_path, pa.table({"b": [1, None]}), mode="append")
    assert rows(tmp_path) == [{"a": None, "b": 1}]


# --- replacing some rows ----------------------------------------------------------------------------------------------


@pytest.fixture
def hundred(tmp_path):
    data = pa.table({"id": range(100), "p": [n % 4 for n in range(100)], "s": [f"n{n}" for n in range(100)]})
    write_deltalake(tmp_path, data, partition_by="p")
    return tmp_path


def test_a_partition_is_replaced_without_being_read(hundred):
    new = pa.table({"id": [1000], "p": [1], "s": ["new"]})
    write_deltalake(hundred, new, mode="overwrite", predicate="p = 1")
    assert [row for row in rows(hundred) if row["p"] == 1] == new.to_pylist()
    assert DeltaTable(hundred).count() == 76
    assert theirs(hundred) == rows(hundred)
    assert [len(of_kind(hundred, 1, kind)) for kind in ("add", "remove")] == [1, 1]


@pytest.mark.parametrize(
    "predicate",
    [
        "id < 10",
        [("id", "<", 10)],
        pc.field("id") < 10,
        pl.col("id") < 10,
    ],
)
def test_rows_are_replaced_and_the_others_stay(hundred, predicate):
    new = pa.table({"id": [-1], "p": [7], "s": ["new"]})
    write_deltalake(hundred, new, mode="overwrite", predicate=predicate)
    assert sorted(row["id"] for row in rows(hundred)) == [-1, *range(10, 100)]
    assert theirs(hundred) == rows(hundred)
    (info,) = of_kind(hundred, 1, "commitInfo")
    assert info["operationMetrics"]["numDeletedRows"] == "10"
    assert info["operationMetrics"]["numCopiedRows"] == "90"


def test_files_without_matching_rows_stay_as_they_are(hundred):
    before = set(DeltaTable(hundred).files())
    write_deltalake(
        hundred, pa.table({"id": [3], "p": [3], "s": ["x"]}), mode="overwrite", predicate="s = 'n3' OR id = 3"
    )
    removed = {remove["path"] for remove in of_kind(hundred, 1, "remove")}
    assert len(removed) == 1
    assert before - removed <= set(DeltaTable(hundred).files())
    assert DeltaTable(hundred).count() == 100


def test_rows_for_which_the_predicate_is_null_stay(tmp_path):
    write_deltalake(tmp_path, pa.table({"a": [1, None, 3]}))
    write_deltalake(tmp_path, pa.table({"a": [5]}), mode="overwrite", predicate="a > 1")
    assert sorted(map(str, (row["a"] for row in rows(tmp_path)))) == ["1", "5", "None"]


def test_data_outside_of_the_predicate_is_refused(hundred):
    new = pa.table({"id": [5, 50, None], "p": [1, 1, 1], "s": ["a", "b", "c"]})
    with pytest.raises(ConstraintViolatedError) as caught:
        write_deltalake(hundred, new, mode="overwrite", predicate="id < 10")
    assert str(caught.value) == (
        "Invalid data found: 2 rows failed validation check. row 2 of the data does not match the predicate whose rows "
        "it replaces (id < 10): id = 50"
    )
    with pytest.raises(ConstraintViolatedError, match=r"row 1 of the data .*id = NULL"):
        write_deltalake(hundred, new.slice(2), mode="overwrite", predicate="id < 10")
    assert DeltaTable(hundred).version() == 0
    assert len(data_files(hundred)) == 4


def test_only_partitions_with_new_rows_are_replaced(hundred):
    new = pa.table({"id": [1000, 2000], "p": [1, 9], "s": ["a", None]})
    write_deltalake(hundred, new, mode="overwrite", partition_overwrite_mode="dynamic")
    counts = {p: sum(row["p"] == p for row in rows(hundred)) for p in (0, 1, 2, 3, 9)}
    assert counts == {0: 25, 1: 1, 2: 25, 3: 25, 9: 1}
    assert theirs(hundred) == rows(hundred)
    write_deltalake(hundred, new.slice(0, 0), mode="overwrite", partition_overwrite_mode="dynamic")
    assert DeltaTable(hundred).count() == 77


def test_a_replacement_of_no_rows_only_deletes(hundred):
    empty = pa.table({"id": [0], "p": [0], "s": ["a"]}).slice(0, 0)
    write_deltalake(hundred, empty, mode="overwrite", predicate="id >= 50 AND p < 2")
    assert sorted(row["id"] for row in rows(hundred)) == [n for n in range(100) if n < 50 or n % 4 >= 2]


def test_the_change_feed_distinguishes_replaced_rows_from_copied_ones(tmp_path):
    data = pa.table({"id": range(10), "p": [n % 2 for n in range(10)]})
    feed = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, data, partition_by="p", configuration=feed)
    new = pa.table({"id": [3, 100, 101], "p": [1, 1, 0]})
    write_deltalake(tmp_path, new, mode="overwrite", predicate="id >= 100 OR id IN (3, 4, 5)")
    assert sorted(row["id"] for row in rows(tmp_path)) == [0, 1, 2, 3, 6, 7, 8, 9, 100, 101]
    changes = DeltaTable(tmp_path).load_cdf(starting_version=1).read_all().to_pylist()
    found = sorted((row["_change_type"], row["id"], row["p"]) for row in changes)
    assert found == [
        ("delete", 3, 1),
        ("delete", 4, 0),
        ("delete", 5, 1),
        ("insert", 3, 1),
        ("insert", 100, 1),
        ("insert", 101, 0),
    ]
    write_deltalake(tmp_path, data.slice(0, 1), mode="overwrite", predicate="p = 0")
    assert of_kind(tmp_path, 2, "cdc") == []
    changes = DeltaTable(tmp_path).load_cdf(starting_version=2).read_all().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in changes) == [
        ("delete", 0),
        ("delete", 2),
        ("delete", 6),
        ("delete", 8),
        ("delete", 101),
        ("insert", 0),
    ]


@pytest.mark.parametrize("feed", [True, False])
def test_replaced_rows_are_marked_where_the_table_has_vectors(tmp_path, feed):
    configuration = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    if feed:
        configuration["delta.enableChangeDataFeed"] = "true"
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "s": ["a"] * 3}), configuration=configuration)
    write_deltalake(tmp_path, pa.table({"id": [4, 5], "s": ["b"] * 2}), mode="append")
    write_deltalake(tmp_path, pa.table({"id": [6, 7], "s": ["c"] * 2}), mode="append")
    table = DeltaTable(tmp_path)
    ids = metadata_of(table)
    table.delete("id = 6")
    stale = DeltaTable(tmp_path)
    new = pa.table({"id": [8, 3], "s": ["new", "new"], "more": [1, 2]})
    write_deltalake(table, new, mode="overwrite", predicate="id = 3 or id > 3", schema_mode="merge")
    found = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["s"], row["more"]) for row in found] == [
        (1, "a", None),
        (2, "a", None),
        (3, "new", 2),
        (8, "new", 1),
    ]
    assert {i: ids[i] for i in (1, 2)} == {i: metadata_of(table)[i] for i in (1, 2)}
    adds = of_kind(tmp_path, table.version(), "add")
    marked = [add for add in adds if "deletionVector" in add]
    assert [add["deletionVector"]["cardinality"] for add in marked] == [1]
    assert (len(adds), len(of_kind(tmp_path, table.version(), "remove"))) == (2, 3)
    assert not of_kind(tmp_path, table.version(), "cdc")
    metrics = table.history(1)[0]["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"], metrics["numOutputRows"]) == ("4", "0", "2")
    if feed:
        reported = pa.table(table.load_cdf(table.version())).to_pylist()
        assert sorted((row["_change_type"], row["id"]) for row in reported) == [
            *(("delete", i) for i in (3, 4, 5, 7)),
            *(("insert", i) for i in (3, 8)),
        ]
    with pytest.raises(CommitFailedError):
        write_deltalake(stale, new.drop_columns("more"), mode="overwrite", predicate="id = 3 or id = 8")
    assert len(list(tmp_path.glob("*.bin"))) == 2


def metadata_of(table):
    """Row ids by `id`."""
    found = pa.table(table.scan(columns=["id"], metadata_columns=["row_id"])).to_pylist()
    return {row["id"]: row["row_id"] for row in found}


def test_copied_rows_keep_their_ids(tmp_path):
    data = pa.table({"id": range(10)})
    write_deltalake(tmp_path, data, configuration={"delta.enableRowTracking": "true"})
    ids = {"metadata_columns": ["row_id", "row_commit_version"]}

    def ids_of(table):
        found = DeltaTable(table).scan(**ids).read_all().to_pylist()
        return {row["id"]: (row["row_id"], row["row_commit_version"]) for row in found}

    assert ids_of(tmp_path) == {n: (n, 0) for n in range(10)}
    write_deltalake(tmp_path, pa.table({"id": [4]}), mode="overwrite", predicate="id = 4")
    found = ids_of(tmp_path)
    assert {n: found[n] for n in range(10) if n != 4} == {n: (n, 0) for n in range(10) if n != 4}
    assert found[4][0] >= 10
    assert found[4][1] == 1
    (info,) = of_kind(tmp_path, 1, "commitInfo")
    assert info["tags"]["delta.rowTracking.preserved"] == "true"
    assert len({value[0] for value in found.values()}) == 10


# --- rules ------------------------------------------------------------------------------------------------------------


def table_with(path, fields, **configuration):
    return DeltaTable.create(path, Schema(fields), configuration=configuration)


def test_constraints_hold_for_every_row(tmp_path):
    fields = [Field("id", "long"), Field("s", "string")]
    table = table_with(
        tmp_path, fields, **{"delta.constraints.positive": "id > 0", "delta.constraints.Short": "length(s) < 4"}
    )
    assert table.protocol().min_writer_version == 3
    write_deltalake(table, pa.table({"id": [1], "s": ["abc"]}), mode="append")
    for data, name, text in [
        (
            {"id": [1, -1], "s": ["a", "b"]},
            "positive",
            "the CHECK constraint `positive` (id > 0) does not hold for row 2: id = -1",
        ),
        (
            {"id": [1], "s": ["abcd"]},
            "Short",
            "the CHECK constraint `Short` (length(s) < 4) does not hold for row 1: s = abcd",
        ),
        (
            {"id": [None], "s": ["a"]},
            "positive",
            "the CHECK constraint `positive` (id > 0) does not hold for row 1: id = NULL",
        ),
    ]:
        with pytest.raises(ConstraintViolatedError) as caught:
            write_deltalake(
                table, pa.table(data, schema=pa.schema([("id", pa.int64()), ("s", pa.string())])), mode="append"
            )
        begins = "Invalid data found: 1 rows failed validation check. "
        assert (str(caught.value), caught.value.constraint) == (begins + text, name)
    assert (table.version(), len(data_files(tmp_path))) == (1, 1)


def test_generated_columns_are_computed_or_compared(tmp_path):
    day = {"delta.generationExpression": "CAST(ts AS DATE)"}
    size = {"delta.generationExpression": "length(s)"}
    fields = [
        Field("ts", "timestamp"),
        Field("s", "string"),
        Field("day", "date", metadata=day),
        Field("n", "long", metadata=size),
    ]
    table = DeltaTable.create(tmp_path, Schema(fields), partition_by="day")
    ts = pa.array([dt.datetime(2024, 2, 29, 23, 59, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC"))
    write_deltalake(table, pa.table({"ts": ts, "s": ["ab", None]}), mode="append")
    found = [(row["day"], row["n"]) for row in rows(table)]
    assert sorted(found, key=str) == [(None, None), (dt.date(2024, 2, 29), 2)] or set(found) == {
        (dt.date(2024, 2, 29), 2),
        (None, None),
    }
    given = pa.table({"ts": ts, "s": ["ab", None], "n": [2, None]})
    write_deltalake(table, given, mode="append")
    with pytest.raises(ConstraintViolatedError, match="the generated column `n` is 3 in row 1") as caught:
        write_deltalake(table, pa.table({"ts": ts, "s": ["ab", None], "n": [3, None]}), mode="append")
    assert caught.value.column == "n"
    assert table.plan("ts >= '2024-03-02'")["files"] < table.plan()["files"]


def test_what_generated_columns_are_made_of_is_null_where_nobody_gives_it(tmp_path):
    n = {"delta.generationExpression": "coalesce(length(s), -1)"}
    table = DeltaTable.create(
        tmp_path, Schema([Field("id", "long"), Field("s", "string"), Field("n", "integer", metadata=n)])
    )
    write_deltalake(table, pa.table({"id": [1]}), mode="append")
    table.merge(pa.table({"id": [2]}), "t.id = q.id", "q", "t").when_not_matched_insert({"id": "q.id"}).execute()
    assert sorted(rows(table), key=lambda row: row["id"]) == [{"id": n, "s": None, "n": -1} for n in (1, 2)]


def test_defaults_stand_for_missing_columns_only(tmp_path):
    fields = [
        Field("id", "long"),
        Field("n", "integer", metadata={"CURRENT_DEFAULT": "7"}),
        Field("d", "decimal(5,2)", metadata={"CURRENT_DEFAULT": "1.5"}),
        Field("t", "timestamp", metadata={"CURRENT_DEFAULT": "current_timestamp()"}),
    ]
    table = table_with(tmp_path, fields, **{"delta.feature.allowColumnDefaults": "supported"})
    before = dt.datetime.now(dt.UTC)
    write_deltalake(table, pa.table({"id": [1]}), mode="append")
    write_deltalake(table, pa.table({"id": [2], "n": pa.array([None], pa.int32())}), mode="append")
    first, second = rows(table)
    assert (first["n"], first["d"], second["n"]) == (7, Decimal("1.50"), None)
    assert before <= first["t"] <= dt.datetime.now(dt.UTC)


def test_identity_columns_count_on(tmp_path):
    identity = {"delta.identity.start": 10, "delta.identity.step": -2, "delta.identity.allowExplicitInsert": False}
    free = {"delta.identity.start": 1, "delta.identity.step": 5, "delta.identity.allowExplicitInsert": True}
    fields = [Field("a", "long", metadata=identity), Field("b", "long", metadata=free), Field("s", "string")]
    table = table_with(tmp_path, fields)
    assert table.protocol().min_writer_version == 6
    write_deltalake(table, pa.table({"s": ["x", "y"]}), mode="append")
    write_deltalake(table, pa.table({"s": ["z"], "b": [77]}), mode="append")
    assert sorted((row["s"], row["a"], row["b"]) for row in rows(table)) == [("x", 10, 1), ("y", 8, 6), ("z", 6, 77)]
    marks = {f.name: f.metadata.get("delta.identity.highWaterMark") for f in table.schema().fields}
    assert marks == {"a": 6, "b": 6, "s": None}
    assert of_kind(tmp_path, 1, "commitInfo")[0]["tags"] == {"delta.identity.schemaUpdate": "true"}
    with pytest.raises(InvalidArgumentError, match="GENERATED ALWAYS; leave the column out"):
        write_deltalake(table, pa.table({"s": ["z"], "a": [77]}), mode="append")


def test_strings_in_the_settings_of_an_identity_column_are_read_as_numbers(tmp_path):
    identity = {"delta.identity.start": "5", "delta.identity.step": "2", "delta.identity.allowExplicitInsert": "false"}
    field = pa.field("a", pa.int64(), metadata=identity)
    for name, schema in [
        ("ours", Schema([Field("a", "long", metadata=identity), Field("s", "string")])),
        ("arrow", pa.schema([field, ("s", pa.string())])),
    ]:
        table = DeltaTable.create(tmp_path / name, schema)
        assert table.schema().fields[0].metadata == {
            "delta.identity.start": 5,
            "delta.identity.step": 2,
            "delta.identity.allowExplicitInsert": False,
        }
        write_deltalake(table, pa.table({"s": ["x", "y"]}), mode="append")
        assert sorted(row["a"] for row in rows(table)) == [5, 7]
    wrong = Schema([Field("a", "long", metadata=identity | {"delta.identity.step": "two"}), Field("s", "string")])
    with pytest.raises(InvalidArgumentError, match=r"delta\.identity\.step must be a number or a flag, not 'two'"):
        DeltaTable.create(tmp_path / "wrong", wrong)


def test_a_file_is_not_older_than_its_write(tmp_path):
    for name in range(20):
        before = time.time_ns() // 1_000_000
        write_deltalake(tmp_path / str(name), ROWS)
        (add,) = of_kind(tmp_path / str(name), 0, "add")
        assert before <= add["modificationTime"] <= time.time_ns() // 1_000_000


def test_data_of_other_columns_is_refused_in_the_words_of_deltalake(tmp_path):
    write_deltalake(tmp_path, ROWS)
    for mode in ("append", "overwrite"):
        with pytest.raises(SchemaMismatchError, match=r"Cannot cast schema, number of fields does not match: .*`x`"):
            write_deltalake(tmp_path, pa.table({"x": [1]}), mode=mode)
    generated = pa.schema([pa.field("g", pa.int64(), metadata={"delta.generationExpression": "id"})])
    with pytest.raises(SchemaMismatchError, match="Schema evolved fields cannot have generated expressions"):
        write_deltalake(tmp_path, pa.table([[1]], generated), mode="append", schema_mode="merge")


def test_invariants_and_lengths_are_checked(tmp_path):
    invariant = {"delta.invariants": json.dumps({"expression": {"expression": "id < 10"}})}
    text = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    table = table_with(tmp_path, [Field("id", "long", metadata=invariant), Field("v", "string", metadata=text)])
    write_deltalake(table, pa.table({"id": [9], "v": ["abc"]}), mode="append")
    with pytest.raises(ConstraintViolatedError, match="the CHECK constraint `id` \\(id < 10\\)"):
        write_deltalake(table, pa.table({"id": [10], "v": ["a"]}), mode="append")
    with pytest.raises(ConstraintViolatedError, match="length of v"):
        write_deltalake(table, pa.table({"id": [1], "v": ["abcd"]}), mode="append")


NESTED_LENGTHS = [
    ("s", {"s": {"a": "abcd", "b": "x"}}, "s.a", "varchar(3)", 4),
    ("s", {"s": {"a": "ab", "b": "äöüß"}}, "s.b", "char(3)", 4),
    ("l", {"l": ["ab", None, "abcd"]}, "l.element", "varchar(3)", 4),
    ("m", {"m": [("abc", "b")]}, "m.key", "char(2)", 3),
    ("m", {"m": [("a", None), ("b", "bbbb")]}, "m.value", "varchar(3)", 4),
    ("d", {"d": [{"e": "ab"}, None, {"e": "abc"}]}, "d.element.e", "varchar(2)", 3),
]


def nested_lengths(path):
    text = deltafast.PrimitiveType("string")
    struct = deltafast.StructType([Field("a", text), Field("b", text)])
    inner = deltafast.StructType([Field("e", text, metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(2)"})])
    declared = {
        "s": (struct, "struct<a:varchar(3),b:char(3)>"),
        "l": (deltafast.ArrayType(text), "array<varchar(3)>"),
        "m": (deltafast.MapType(text, text), "map<char(2),varchar(3)>"),
    }
    fields = [Field(name, of, metadata={"__CHAR_VARCHAR_TYPE_STRING": said}) for name, (of, said) in declared.items()]
    # Other writers note the limit at the field itself.
    fields.append(Field("d", deltafast.ArrayType(inner)))
    return table_with(path, [Field("id", "long"), *fields])


@pytest.mark.parametrize(("column", "row", "path", "limit", "found"), NESTED_LENGTHS, ids=str)
def test_nested_lengths_are_checked_by_every_command(tmp_path, column, row, path, limit, found):
    table = nested_lengths(tmp_path)
    schema = pa.schema(table.schema().to_arrow())
    good = {
        "id": 1,
        "s": {"a": "abc", "b": "äöü"},
        "l": ["abc", None],
        "m": [("ab", "abc"), ("c", None)],
        "d": [{"e": "ab"}],
    }
    empty = {"id": 2, "s": None, "l": None, "m": None, "d": [None]}
    write_deltalake(table, pa.Table.from_pylist([good, empty], schema), mode="append")
    bad = pa.Table.from_pylist([good, {"id": 3, **row}], schema)
    message = re.escape(f"length of {path} is limited by its type {limit}, the string in row 2 has {found} characters")
    for options in ({"mode": "append"}, {"mode": "overwrite"}, {"mode": "overwrite", "predicate": "id > 0"}):
        with pytest.raises(ConstraintViolatedError, match=message) as caught:
            write_deltalake(table, bad, **options)
        assert caught.value.constraint == f"length of {path}"
    for number in (1, 9):
        source = pa.Table.from_pylist([{"id": number, **row}], schema)
        merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        with pytest.raises(ConstraintViolatedError, match=re.escape(f"length of {path}")):
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert DeltaTable(tmp_path).version() == 1


def test_nested_lengths_are_checked_by_updates_and_kept_by_copies(tmp_path):
    table = nested_lengths(tmp_path)
    row = {"id": [1, 2], "s": [{"a": "abc", "b": "abc"}, None]}
    write_deltalake(table, pa.table(row), mode="append")
    with pytest.raises(ConstraintViolatedError, match=r"length of s\.a"):
        table.update({"s.a": "'toolong'"}, predicate="id = 1")
    assert table.update({"id": "id + 10"}, predicate="id = 1")["num_updated_rows"] == 1
    table.optimize.compact()
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [2, 11]


def test_a_declared_type_that_cannot_be_read_stops_writes(tmp_path):
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": "array<varchar(3)"}
    with pytest.raises(CorruptLogError, match=r"`array<varchar\(3\)` cannot be read.*column `v`"):
        table_with(tmp_path, [Field("v", deltafast.ArrayType(deltafast.PrimitiveType("string")), metadata=metadata)])


def test_expressions_that_cannot_be_evaluated_are_refused_by_name(tmp_path):
    for fields, configuration, text in [
        ([Field("a", "long")], {"delta.constraints.c": "soundex(a) = 1"}, "the constraint `c` cannot be evaluated"),
        ([Field("a", "long")], {"delta.constraints.c": "b > 1"}, "the constraint `c` cannot be evaluated"),
        (
            [Field("a", "long"), Field("g", "date", metadata={"delta.generationExpression": "a + 1"})],
            {},
            "the generated column `g` cannot be evaluated",
        ),
        ([Field("a", "long", metadata={"CURRENT_DEFAULT": "b"})], {}, "the default of `a` cannot be evaluated"),
    ]:
        with pytest.raises((InvalidArgumentError, DeltaProtocolError), match=text):
            table_with(tmp_path / "t", fields, **configuration)
    assert not (tmp_path / "t").exists()


def test_append_only_tables_only_grow(tmp_path):
    write_deltalake(tmp_path, ROWS, configuration={"delta.appendOnly": "true"})
    write_deltalake(tmp_path, ROWS, mode="append")
    for options in ({}, {"predicate": "id = 1"}, {"partition_overwrite_mode": "dynamic"}):
        with pytest.raises(
            InvalidArgumentError, match=r"append-only \(`delta.appendOnly`\): rows can be added, not changed or deleted"
        ):
            write_deltalake(tmp_path, ROWS, mode="overwrite", **options)
    assert len(data_files(tmp_path)) == 2


def test_unknown_writer_features_are_refused_before_anything_is_written(tmp_path):
    write_deltalake(tmp_path, ROWS)
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["teleportation"]}
    log.write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(DeltaProtocolError, match=r"`teleportation`.*upgrade deltafast") as caught:
        write_deltalake(tmp_path, ROWS, mode="append")
    assert caught.value.feature == "teleportation"
    assert len(data_files(tmp_path)) == 1


# --- what the log says ------------------------------------------------------------------------------------------------


def test_commits_report_everything(tmp_path):
    properties = CommitProperties(
        custom_metadata={"userMetadata": "hello", "job": {"id": 7}},
        app_transactions=[Transaction("loader", 3), Transaction("other", 1, 99)],
    )
    write_deltalake(tmp_path, ROWS, partition_by=["p"])
    write_deltalake(tmp_path, ROWS, mode="append", commit_properties=properties)
    info = actions(tmp_path, 1)[0]["commitInfo"]
    assert info.pop("timestamp") > 1_700_000_000_000
    assert len(info.pop("txnId")) == 36
    assert info.pop("engineInfo").startswith("deltafast/")
    size = str(sum(add["size"] for add in of_kind(tmp_path, 1, "add")))
    assert info == {
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": '["p"]'},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "dataChange": True,
        "operationMetrics": {"numFiles": "2", "numOutputRows": "3", "numOutputBytes": size},
        "userMetadata": "hello",
        "job": {"id": 7},
    }
    table = DeltaTable(tmp_path)
    assert (table.transaction_version("loader"), table.transaction_version("other")) == (3, 1)
    assert [txn.get("lastUpdated") == 99 for txn in of_kind(tmp_path, 1, "txn")] == [False, True]
    assert ":null" not in (tmp_path / "_delta_log" / f"{1:020}.json").read_text()
    for metadata, text in [
        ({"operation": "X"}, "`operation`"),
        ({"userMetadata": 1}, "`userMetadata` in the custom commit metadata must be a text"),
        ({"userName": 123}, "`userName` in the custom commit metadata must be a text"),
        ({"operationParameters": "mine"}, "`operationParameters`"),
        ({"a": {1, 2}}, "JSON"),
        ({1: "a"}, "keys must be strings, not 1"),
    ]:
        with pytest.raises(InvalidArgumentError, match=text):
            write_deltalake(tmp_path, ROWS, mode="append", commit_properties=CommitProperties(custom_metadata=metadata))


def test_parameters_of_the_user_follow_those_of_the_operation(tmp_path):
    given = {"mode": "Mine", "job": {"id": 7}, "flag": True, "text": "a"}
    properties = CommitProperties(custom_metadata={"operationParameters": given})
    write_deltalake(tmp_path, ROWS, partition_by=["p"], commit_properties=properties)
    expected = {"mode": "ErrorIfExists", "partitionBy": '["p"]', "job": '{"id":7}', "flag": "true", "text": "a"}
    said = actions(tmp_path, 0)[0]["commitInfo"]["operationParameters"]
    assert {key: said[key] for key in expected} == expected
    assert DeltaTable(tmp_path).history(1)[0]["operationParameters"] == said


def test_changes_always_have_a_kind(tmp_path):
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3]}), configuration=feed)
    write_deltalake(tmp_path, pa.table({"id": [3]}), mode="overwrite", predicate="id = 3")
    table = DeltaTable(tmp_path)
    table.update({"id": "9"}, predicate="id = 1")
    table.merge(pa.table({"id": [2, 7]}), "t.id = s.id", "s", "t").when_matched_delete().execute()
    files = [tmp_path / cdc["path"] for version in (1, 2, 3) for cdc in of_kind(tmp_path, version, "cdc")]
    assert len(files) >= 3
    for file in files:
        schema = pq.read_schema(file)
        assert not schema.field("_change_type").nullable
        assert pq.read_table(file)["_change_type"].null_count == 0


def test_removes_repeat_what_adds_said(tmp_path):
    write_deltalake(tmp_path, ROWS, partition_by="p", configuration={"delta.feature.rowTracking": "supported"})
    adds = {add["path"]: add for add in of_kind(tmp_path, 0, "add")}
    write_deltalake(tmp_path, ROWS.slice(0, 1), mode="overwrite")
    removes = of_kind(tmp_path, 1, "remove")
    assert len(removes) == 2
    for remove in removes:
        add = adds[remove["path"]]
        assert remove.pop("deletionTimestamp") > 0
        same = ("path", "partitionValues", "size", "stats", "baseRowId", "defaultRowCommitVersion")
        assert remove == {key: add[key] for key in same} | {"dataChange": True, "extendedFileMetadata": True}


def test_in_commit_timestamps_come_first_and_grow(tmp_path):
    write_deltalake(tmp_path, ROWS, configuration={"delta.enableInCommitTimestamps": "true"})
    for _ in range(3):
        write_deltalake(tmp_path, ROWS, mode="append")
    firsts = [next(iter(actions(tmp_path, version)[0].values())) for version in range(4)]
    times = [info["inCommitTimestamp"] for info in firsts]
    assert times == sorted(set(times))


def test_checkpoints_checksums_and_cleanup_follow_commits(tmp_path):
    write_deltalake(tmp_path, ROWS, configuration={"delta.checkpointInterval": "3"})
    table = DeltaTable(tmp_path)
    none = PostCommitHookProperties(create_checkpoint=False)
    for version in range(1, 8):
        write_deltalake(table, ROWS, mode="append", post_commithook_properties=none if version == 6 else None)
    log = tmp_path / "_delta_log"
    assert sorted(file.name for file in log.glob("*.parquet")) == [f"{3:020}.checkpoint.parquet"]
    for version in range(8):
        checksum = json.loads((log / f"{version:020}.crc").read_text())
        assert (checksum["numFiles"], checksum["tableSizeBytes"] > 0) == (version + 1, True)
        assert checksum["txnId"] == actions(tmp_path, version)[0]["commitInfo"]["txnId"]
    (log / f"{0:020}.json").touch()
    import os

    for version in range(4):
        os.utime(log / f"{version:020}.json", (1_600_000_000, 1_600_000_000 + version))
    write_deltalake(
        table, ROWS, mode="append", post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False)
    )
    write_deltalake(
        table, ROWS, mode="append", post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False)
    )
    assert (log / f"{0:020}.json").exists()
    assert DeltaTable(tmp_path).count() == 30
    for _ in range(3):
        write_deltalake(table, ROWS, mode="append")
    assert not (log / f"{0:020}.json").exists()
    assert (log / f"{3:020}.json").exists()
    assert DeltaTable(tmp_path, version=4).count() == 15
    assert theirs(tmp_path) == rows(tmp_path)


def test_the_log_is_compacted_every_so_many_versions(tmp_path):
    hooks = PostCommitHookProperties(log_compaction_interval=3)
    for version in range(8):
        write_deltalake(
            tmp_path,
            ROWS,
            mode="append",
            configuration={"delta.checkpointInterval": "5"} if version == 0 else None,
            post_commithook_properties=hooks,
        )
    log = tmp_path / "_delta_log"
    assert sorted(file.name for file in log.glob("*.checkpoint.parquet")) == [f"{5:020}.checkpoint.parquet"]
    # Version 5 has a checkpoint.
    assert sorted(file.name for file in log.glob("*.compacted.json")) == [f"{0:020}.{2:020}.compacted.json"]
    lines = (log / f"{0:020}.{2:020}.compacted.json").read_text().splitlines()
    assert sorted(next(iter(json.loads(line))) for line in lines) == ["add"] * 3 + ["metaData", "protocol"]
    assert DeltaTable(tmp_path, version=3).count() == 4 * ROWS.num_rows
    DeltaTable(tmp_path).create_checkpoint()
    (log / f"{6:020}.json").unlink()
    with pytest.warns(DeltaWarning, match="version 8 is committed, but its log could not be compacted: .*version 6"):
        write_deltalake(tmp_path, ROWS, mode="append", post_commithook_properties=hooks)
    assert DeltaTable(tmp_path).count() == 9 * ROWS.num_rows
    hooks = PostCommitHookProperties(log_compaction_interval=1)
    with pytest.raises(InvalidArgumentError, match="at least 2 versions"):
        write_deltalake(tmp_path, ROWS, mode="append", post_commithook_properties=hooks)


def test_a_hook_that_fails_is_a_warning(tmp_path):
    write_deltalake(tmp_path, ROWS, configuration={"delta.checkpointInterval": "1"})
    # A folder where the hint should be cannot be replaced by a file.
    (tmp_path / "_delta_log" / "_last_checkpoint" / "x").mkdir(parents=True)
    with pytest.warns(DeltaWarning, match="version 1 is committed, but its checkpoint could not be written"):
        write_deltalake(tmp_path, ROWS, mode="append")
    assert (DeltaTable(tmp_path).version(), rows(tmp_path)) == (1, rows_of(pa.concat_tables([ROWS, ROWS])))


def test_writer_properties_reach_the_files(tmp_path):
    import pyarrow.parquet as pq

    columns = {"id": ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")}
    bloom = ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, 0.01, 100))
    properties = WriterProperties(
        compression="GZIP",
        compression_level=3,
        max_row_group_size=2,
        default_column_properties=bloom,
        column_properties=columns,
    )
    write_deltalake(tmp_path, ROWS, writer_properties=properties)
    (file,) = data_files(tmp_path)
    metadata = pq.read_metadata(tmp_path / file)
    assert metadata.num_row_groups == 2
    assert "DELTA_BINARY_PACKED" in metadata.row_group(0).column(0).encodings
    assert metadata.row_group(0).column(1).compression == "GZIP"
    assert properties == WriterProperties(
        compression="GZIP",
        compression_level=3,
        max_row_group_size=2,
        default_column_properties=bloom,
        column_properties=columns,
    )
    for make, text in [
        (lambda: WriterProperties(compression="ZIP"), "ZIP is not a valid Compression"),
        (lambda: WriterProperties(compression="ZSTD", compression_level=40), "should fall between 1-22"),
        (lambda: WriterProperties(compression_level=3), "needs a compression"),
        (lambda: BloomFilterProperties(True, fpp=1.0), "fpp must be between 0 and 1"),
        (lambda: ColumnProperties(dictionary_enabled=True, encoding="PLAIN"), "Cannot specify dictionary_enabled"),
    ]:
        with pytest.raises(ValueError, match=text):
            make()


def test_files_end_at_their_target_size(tmp_path):
    data = pa.table({"id": range(400_000), "x": [n * 7919 % 1_000_003 for n in range(400_000)]})
    write_deltalake(tmp_path / "asked", data, target_file_size=200_000)
    write_deltalake(tmp_path / "table", data, configuration={"delta.targetFileSize": "200kb"})
    assert len(data_files(tmp_path / "asked")) > 3
    assert len(data_files(tmp_path / "table")) > 3


# --- making tables ----------------------------------------------------------------------------------------------------

SCHEMA = Schema([Field("id", "long"), Field("p", "string", metadata={"comment": "c"})])


def test_tables_are_made_without_rows(tmp_path):
    table = DeltaTable.create(
        tmp_path, SCHEMA, partition_by="p", name="n", description="d", configuration={"k": "v", "x": None}
    )
    assert (table.version(), table.count(), table.schema()) == (0, 0, SCHEMA)
    metadata = table.metadata()
    assert (metadata.name, metadata.description, metadata.partition_columns, metadata.configuration) == (
        "n",
        "d",
        ["p"],
        {"k": "v"},
    )
    assert table.protocol()[:2] == (1, 2)
    info = actions(tmp_path, 0)[0]["commitInfo"]
    assert info["operation"] == "CREATE TABLE"
    assert info["operationParameters"] == {
        "isManaged": "false",
        "description": "d",
        "partitionBy": '["p"]',
        "clusterBy": "[]",
        "properties": '{"k":"v"}',
    }
    assert deltalake.DeltaTable(str(tmp_path)).metadata().name == "n"
    arrow = DeltaTable.create(tmp_path / "arrow", ROWS.schema)
    assert arrow.schema().to_arrow() == ROWS.schema


def test_a_table_is_made_once(tmp_path):
    DeltaTable.create(tmp_path, SCHEMA, configuration={"delta.columnMapping.mode": "name"})
    write_deltalake(tmp_path, ROWS, mode="append")
    with pytest.raises(InvalidArgumentError, match="there is a table"):
        DeltaTable.create(tmp_path, SCHEMA)
    with pytest.raises(InvalidArgumentError, match="cannot be created in the mode `append`"):
        DeltaTable.create(tmp_path, SCHEMA, mode="append")
    assert DeltaTable.create(tmp_path, SCHEMA, mode="ignore").version() == 1
    first = DeltaTable(tmp_path)
    other = Schema([Field("z", "date")])
    replaced = DeltaTable.create(
        tmp_path, other, mode="overwrite", description="new", configuration={"delta.columnMapping.mode": "name"}
    )
    assert (replaced.version(), replaced.count()) == (2, 0)
    assert replaced.metadata().id == first.metadata().id
    assert replaced.schema().fields[0].metadata["delta.columnMapping.id"] == 3
    assert of_kind(tmp_path, 2, "commitInfo")[0]["operation"] == "CREATE OR REPLACE TABLE"
    assert DeltaTable(tmp_path, version=1).count() == 3


@pytest.mark.parametrize(
    ("configuration", "readers", "writers"),
    [
        ({}, 1, 2),
        ({"delta.enableChangeDataFeed": "true"}, 1, 4),
        ({"delta.columnMapping.mode": "id"}, 2, 5),
        ({"delta.enableDeletionVectors": "true"}, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"]),
        ({"delta.enableRowTracking": "true"}, 1, ["appendOnly", "domainMetadata", "invariants", "rowTracking"]),
        ({"delta.checkpointPolicy": "v2"}, ["v2Checkpoint"], ["appendOnly", "invariants", "v2Checkpoint"]),
        (
            {"delta.feature.vacuumProtocolCheck": "supported"},
            ["vacuumProtocolCheck"],
            ["appendOnly", "invariants", "vacuumProtocolCheck"],
        ),
        ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, 2, 5),
    ],
)
def test_properties_bring_the_lowest_protocol(tmp_path, configuration, readers, writers):
    protocol = DeltaTable.create(tmp_path, SCHEMA, configuration=configuration).protocol()
    assert readers == (protocol.reader_features or protocol.min_reader_version)
    assert writers == (protocol.writer_features or protocol.min_writer_version)


@pytest.mark.parametrize("metadata", [{"__COLLATIONS": {"c": "icu.UNICODE_CI"}}], ids=["UNICODE_CI"])
def test_collated_columns_are_not_compared_as_bytes(tmp_path, metadata):
    fields = [Field("id", "long"), Field("c", "string", metadata=metadata)]
    inner = deltafast.StructType([Field("c", "string", metadata=metadata)])
    fields.append(Field("s", inner))
    rows = pa.table({"id": [1], "c": ["a"], "s": [{"c": "a"}]})
    for place, partition_by in (("plain", []), ("parts", ["c"])):
        path = tmp_path / place
        DeltaTable.create(
            path, Schema(fields), partition_by=partition_by, configuration={"delta.feature.collations": "supported"}
        )
        write_deltalake(path, rows, mode="append")
    message = "is not supported: its strings compare by the collation icu.UNICODE_CI"
    plain = DeltaTable(tmp_path / "plain")
    refused = [
        lambda: write_deltalake(plain, rows, mode="overwrite", replace_using=["c"]),
        lambda: write_deltalake(plain, rows, mode="overwrite", replace_on="target.c = source.c"),
        lambda: write_deltalake(tmp_path / "parts", rows, mode="overwrite", partition_overwrite_mode="dynamic"),
        lambda: plain.optimize.z_order(["c"]),
        lambda: plain.optimize.z_order(["id", "s.c"]),
        lambda: plain.alter.cluster_by(["c"]),
    ]
    for command in refused:
        with pytest.raises(DeltaProtocolError, match=f"`c` {message}") as caught:
            command()
        assert caught.value.feature == "collations"
    write_deltalake(plain, rows, mode="overwrite", replace_using=["id"])
    assert plain.optimize.z_order(["id"])["numFilesAdded"] >= 0


def test_byte_order_under_the_name_of_a_collation_is_compared(tmp_path):
    metadata = {"__COLLATIONS": {"c": "spark.UTF8_BINARY"}}
    DeltaTable.create(tmp_path, Schema([Field("id", "long"), Field("c", "string", metadata=metadata)]))
    rows = pa.table({"id": [1, 2], "c": ["a", "A"]})
    write_deltalake(tmp_path, rows, mode="append")
    write_deltalake(tmp_path, pa.table({"id": [3], "c": ["a"]}), mode="overwrite", replace_using=["c"])
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table().column("id").to_pylist()) == [2, 3]


def test_identity_columns_are_not_partition_columns(tmp_path):
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = Schema([Field("id", "long", metadata=identity), Field("v", "long")])
    with pytest.raises(InvalidArgumentError, match="partitioned by the identity column `id`"):
        DeltaTable.create(tmp_path, schema, partition_by=["id"])
    table = DeltaTable.create(tmp_path, schema, cluster_by=["id"])
    write_deltalake(table, pa.table({"v": [5]}), mode="append")
    assert table.to_pyarrow_table().to_pylist() == [{"id": 1, "v": 5}]


def test_brotli_is_no_table_property(tmp_path):
    """Spark reads no such files; a single write may still ask for it."""
    key = "delta.parquet.compression.codec"
    with pytest.raises(InvalidArgumentError, match=f"{key}` takes one of .*not `brotli`"):
        write_deltalake(tmp_path, ROWS, configuration={key: "brotli"})
    write_deltalake(tmp_path, ROWS, writer_properties=WriterProperties(compression="BROTLI"))
    with pytest.raises(InvalidArgumentError, match="not `brotli`"):
        DeltaTable(tmp_path).alter.set_table_properties({key: "brotli"})


def test_tables_are_clustered(tmp_path):
    schema = Schema([Field("a", "long"), Field("s", deltafast.StructType([Field("b", "date")])), Field("m", "binary")])
    table = DeltaTable.create(
        tmp_path, schema, cluster_by=["a", "s.b"], configuration={"delta.columnMapping.mode": "name"}
    )
    physical = [f.metadata["delta.columnMapping.physicalName"] for f in table.schema().fields[:2]]
    clustering = json.loads(table.domain_metadata()["delta.clustering"])
    assert clustering["clusteringColumns"][0] == [physical[0]]
    assert clustering["clusteringColumns"][1][0] == physical[1]
    assert table.detail()["clusteringColumns"] == ["a", "s.b"]
    write_deltalake(tmp_path / "w", ROWS, cluster_by="id")
    write_deltalake(tmp_path / "w", ROWS, mode="append", cluster_by="id")
    assert DeltaTable(tmp_path / "w").detail()["clusteringColumns"] == ["id"]
    for options, text in [
        ({"cluster_by": "m"}, "by `m` of type binary"),
        ({"cluster_by": "q"}, "has no column `q`"),
        ({"cluster_by": ["a", "a"]}, "named twice"),
        ({"cluster_by": "a", "partition_by": "a"}, "both partitioned and clustered"),
        ({"cluster_by": "a", "configuration": {"delta.dataSkippingNumIndexedCols": "0"}}, "has no statistics"),
    ]:
        with pytest.raises(InvalidArgumentError, match=text):
            DeltaTable.create(tmp_path / "no", schema, **options)


def test_unknown_properties_are_allowed_by_who_asks(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"delta.future"):
        DeltaTable.create(tmp_path, SCHEMA, configuration={"delta.future": "1"})
    table = DeltaTable.create(tmp_path, SCHEMA, configuration={"delta.future": "1"}, raise_if_key_not_exists=False)
    assert table.metadata().configuration == {"delta.future": "1"}


HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def _merge_text(table):
    source = pa.table({"id": pa.array([1], pa.int64()), "p": [HIVE_NULL]})
    merger = table.merge(source, "t.id = s.id", "s", "t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
@pytest.mark.parametrize(
    "write",
    [
        lambda table, data: write_deltalake(table, data, mode="append"),
        lambda table, data: write_deltalake(table, data, mode="overwrite"),
        lambda table, data: write_deltalake(table, data, mode="overwrite", partition_overwrite_mode="dynamic"),
        lambda table, data: write_deltalake(table, data, mode="overwrite", predicate="id = 2"),
        lambda table, _: table.update({"p": f"'{HIVE_NULL}'"}),
        lambda table, _: _merge_text(table),
        lambda table, data: table.upsert(data, "id"),
    ],
)
def test_the_text_for_null_in_folder_names_is_no_partition_value(write, kind, tmp_path):
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "p": pa.array(["a", None], kind)})
    write_deltalake(tmp_path, rows, partition_by="p")
    table = DeltaTable(tmp_path)
    data = pa.table({"id": pa.array([2], pa.int64()), "p": pa.array([HIVE_NULL], kind)})
    with pytest.raises(InvalidArgumentError, match="stands for null"):
        write(table, data)
    assert DeltaTable(tmp_path).version() == 0
    with pytest.raises(InvalidArgumentError, match="stands for null"):
        write_deltalake(tmp_path / "new", data, partition_by="p")
    write_deltalake(tmp_path / "unpartitioned", data)


def test_the_text_for_null_that_a_log_has_can_be_read_and_replaced(tmp_path):
    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["a"]}), partition_by="p")
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text("utf-8").replace('{"p":"a"}', f'{{"p":"{HIVE_NULL}"}}'))
    for file in (tmp_path / "_delta_log").glob("*.crc"):
        file.unlink()
    table = DeltaTable(tmp_path)
    assert table.count(f"p = '{HIVE_NULL}'") == 1
    assert table.count("p IS NULL") == 0
    table.update({"p": "NULL"}, predicate=f"p = '{HIVE_NULL}'")
    assert rows(table) == [{"id": 1, "p": None}]


# --- ready files ------------------------------------------------------------------------------------------------------


def test_ready_files_become_a_table(tmp_path):
    from deltafast import create_table_with_add_actions
    from deltafast.transaction import AddAction, RemoveAction

    donor = tmp_path / "donor"
    write_deltalake(donor, ROWS, partition_by="p")

    def add(action):
        values = action["partitionValues"]
        return AddAction(action["path"], action["size"], values, action["modificationTime"], True, action["stats"])

    adds = [add(action) for action in of_kind(donor, 0, "add")]
    log = donor / "_delta_log"
    for file in log.iterdir():
        file.unlink()
    create_table_with_add_actions(donor, Schema.from_arrow(ROWS.schema), adds[:1], partition_by="p", name="ready")
    table = DeltaTable(donor)
    assert table.metadata().name == "ready"
    table.create_write_transaction(adds[1:], "append", ROWS.schema, partition_by="p")
    assert (table.version(), rows(table)) == (1, rows_of(ROWS))
    table.create_write_transaction(adds[1:], "overwrite", ROWS.schema, ["p"], [("p", "=", "x")])
    assert {row["p"] for row in rows(table)} == {"y"}
    table.create_write_transaction([RemoveAction(adds[1].path)], "append", ROWS.schema)
    assert table.count() == 0
    with pytest.raises(SchemaMismatchError):
        table.create_write_transaction(adds[:1], "append", pa.schema([("other", pa.int64())]))
    pq.write_table(ROWS, donor / "x.parquet")
    size = (donor / "x.parquet").stat().st_size
    with pytest.raises(InvalidArgumentError, match="partition values"):
        table.create_write_transaction([AddAction("x.parquet", size, {}, 1, True, "{}")], "append", ROWS.schema)


# --- writers beside each other ----------------------------------------------------------------------------------------


def test_appends_follow_whatever_others_commit(tmp_path):
    write_deltalake(tmp_path, ROWS, partition_by="p")
    stale = [DeltaTable(tmp_path) for _ in range(3)]
    write_deltalake(tmp_path, ROWS.slice(0, 1), mode="overwrite", predicate="p = 'x'")
    for table in stale:
        write_deltalake(table, ROWS, mode="append")
    assert [table.version() for table in stale] == [2, 3, 4]
    assert DeltaTable(tmp_path).count() == 2 + 9


def test_replacements_conflict_by_what_they_read(tmp_path):
    write_deltalake(tmp_path, ROWS, partition_by="p")
    one, two, three = (DeltaTable(tmp_path) for _ in range(3))
    x = ROWS.filter(pc.equal(ROWS["p"], "x"))
    write_deltalake(one, x, mode="append")
    with pytest.raises(ConcurrentAppendError, match="version 1 \\(WRITE\\)") as caught:
        write_deltalake(two, x, mode="overwrite", predicate="p = 'x'")
    assert isinstance(caught.value, CommitFailedError)
    assert caught.value.version == 1
    write_deltalake(three, ROWS.filter(pc.equal(ROWS["p"], "y")), mode="overwrite", predicate="p = 'y'")
    assert three.version() == 2
    assert sorted(path for path in data_files(tmp_path)) == sorted(
        {*DeltaTable(tmp_path).files(), *removed(tmp_path, 2)}
    )


def test_a_conflict_of_two_overwrites_says_that_read_files_are_gone(tmp_path):
    write_deltalake(tmp_path, ROWS)
    one, two, three = (DeltaTable(tmp_path) for _ in range(3))
    write_deltalake(one, ROWS, mode="overwrite")
    with pytest.raises(ConcurrentAppendError, match="should have read, and removed files that it read; nothing was"):
        write_deltalake(two, ROWS, mode="overwrite")
    three.update_incremental()
    write_deltalake(tmp_path, ROWS, mode="append")
    with pytest.raises(ConcurrentAppendError, match="should have read; nothing was committed"):
        write_deltalake(three, ROWS, mode="overwrite")


def removed(path, version):
    return [remove["path"] for remove in of_kind(path, version, "remove")]


def test_a_changed_schema_stops_whoever_read_the_old_one(tmp_path):
    write_deltalake(tmp_path, ROWS)
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, pa.table({"z": [1]}), mode="append", schema_mode="merge")
    with pytest.raises(MetadataChangedError, match="nothing was committed, run the operation again"):
        write_deltalake(stale, ROWS, mode="append")
    assert len(data_files(tmp_path)) == 2


def test_the_same_application_version_is_not_written_by_two(tmp_path):
    from deltafast.exceptions import ConcurrentTransactionError

    write_deltalake(tmp_path, ROWS)
    one, two = DeltaTable(tmp_path), DeltaTable(tmp_path)
    properties = CommitProperties(app_transactions=[Transaction("app", 1)])
    write_deltalake(one, ROWS, mode="append", commit_properties=properties)
    with pytest.raises(ConcurrentTransactionError):
        write_deltalake(two, ROWS, mode="append", commit_properties=properties)


def test_retries_end_at_their_limit(tmp_path):
    from deltafast.exceptions import ConcurrentWriteError

    write_deltalake(tmp_path, ROWS)
    stale = DeltaTable(tmp_path)
    write_deltalake(tmp_path, ROWS, mode="append")
    with pytest.raises(ConcurrentWriteError, match="`max_commit_retries` is 0"):
        write_deltalake(stale, ROWS, mode="append", commit_properties=CommitProperties(max_commit_retries=0))
    with pytest.raises(InvalidArgumentError, match="max_commit_retries must not be negative"):
        write_deltalake(stale, ROWS, mode="append", commit_properties=CommitProperties(max_commit_retries=-1))


WORKER = """
import sys
import pyarrow as pa
from deltafast import write_deltalake
path, worker = sys.argv[1], int(sys.argv[2])
for n in range(10):
    write_deltalake(path, pa.table({"worker": [worker] * 3, "n": [n] * 3}), mode="append", partition_by=["worker"])
"""


@pytest.mark.slow
def test_processes_append_without_losing_or_doubling_rows(tmp_path):
    """Four of them, from nothing: even making the table is a race that each of them survives."""
    import subprocess
    import sys

    workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path / "t"), str(n)]) for n in range(4)]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * 4
    table = DeltaTable(tmp_path / "t")
    assert table.version() == 39
    expected = sorted(({"worker": w, "n": n} for w in range(4) for n in range(10) for _ in range(3)), key=repr)
    assert rows(table) == expected
    assert theirs(tmp_path / "t") == expected
    assert len(data_files(tmp_path / "t")) == 40


def test_pandas_index_and_missing_values(tmp_path):
    frame = pd.DataFrame({"a": [1.0, None], "s": ["x", None]})
    write_deltalake(tmp_path, frame)
    assert rows(tmp_path) == [{"a": 1.0, "s": "x"}, {"a": None, "s": None}]


# --- what deltalake writes, and scripts for it ---------------------------------------------------


def test_column_names_may_hold_anything(tmp_path):
    data = pa.table({"high price": [1, 2], "x(y)=z;": [1.5, None], "p q": ["a b", "c=d"], "a.b": [1, 2]})
    ours, deltalakes = tmp_path / "ours", tmp_path / "theirs"
    write_deltalake(ours, data, partition_by=["p q"])
    deltalake.write_deltalake(deltalakes, data, partition_by=["p q"])
    for place in (ours, deltalakes):
        assert rows(place) == theirs(place) == rows_of(data)
        assert DeltaTable(place).to_pyarrow_table(filters='"high price" > 1').num_rows == 1
        assert DeltaTable(place).count("`x(y)=z;` = 1.5 AND `p q` = 'a b'") == 1
        assert len(DeltaTable(place).file_uris([("p q", "=", "c=d")])) == 1
    DeltaTable(ours).alter.add_columns(Field("one more", "long"))
    write_deltalake(ours, data.append_column("one more", pa.array([5, 6])), mode="append")
    assert DeltaTable(ours).count('"one more" = 5') == 1


def test_names_in_double_quotes_are_columns(tmp_path):
    data = pa.table({"Price": [1, 2], "s": ["a", "Price"]})
    write_deltalake(tmp_path, data)
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table(filters='"Price" = 1')["s"].to_pylist() == ["a"]
    # Only single quotes enclose a string.
    with pytest.raises(InvalidArgumentError, match=r"no column 'a' .*single quotes a string"):
        table.to_pyarrow_table(filters='s = "a"')
    assert table.to_pyarrow_table(filters="s = 'Price'").num_rows == 1
    write_deltalake(table, data.slice(0, 1), mode="overwrite", predicate='"Price" = 1')
    assert table.history(1)[0]["operationParameters"]["predicate"] == "`Price` = 1"
    assert table.count() == 2
    table.alter.add_constraint({"positive": '"Price" > 0 AND "s" <> \'x\''})
    assert table.metadata().configuration["delta.constraints.positive"] == "`Price` > 0 AND `s` <> 'x'"
    with pytest.raises(ConstraintViolatedError, match="positive"):
        write_deltalake(table, pa.table({"Price": [-1], "s": ["a"]}), mode="append")
    with pytest.raises(ConstraintViolatedError, match="positive"):
        write_deltalake(table, pa.table({"Price": [1], "s": ["x"]}), mode="append")


def test_constraints_of_deltalake_hold(tmp_path):
    good = {"Price": [1], "two words": [2], "kind": ["a"]}
    deltalake.write_deltalake(tmp_path, pa.table(good))
    made = deltalake.DeltaTable(tmp_path)
    made.alter.add_constraint({"a": "Price >= 0"})
    made.alter.add_constraint({"b": "\"two words\" < 9 AND kind <> 'z'"})
    # deltalake quotes names as other dialects do.
    assert DeltaTable(tmp_path).metadata().configuration["delta.constraints.a"] == '"Price" >= 0'
    write_deltalake(tmp_path, pa.table(good), mode="append")
    for bad in ({"Price": [-1]}, {"two words": [9]}, {"kind": ["z"]}):
        with pytest.raises(ConstraintViolatedError):
            write_deltalake(tmp_path, pa.table(good | bad), mode="append")
    assert DeltaTable(tmp_path).count() == 2


def test_metadata_of_arrow_fields_makes_generated_columns(tmp_path):
    notes = {"delta.generationExpression": "id * 2", "comment": "twice", "PARQUET:field_id": "7", "other": "x"}
    schema = pa.schema([("id", pa.int64()), pa.field("twice", pa.int64(), metadata=notes)])
    write_deltalake(tmp_path, pa.table({"id": [1], "twice": [2]}, schema=schema))
    table = DeltaTable(tmp_path)
    kept = {"delta.generationExpression": "id * 2", "comment": "twice"}
    assert table.schema().fields[1].metadata == kept
    assert table.protocol().min_writer_version == deltalake.DeltaTable(tmp_path).protocol().min_writer_version == 4
    write_deltalake(table, pa.table({"id": [5]}), mode="append")
    assert rows(tmp_path) == [{"id": 1, "twice": 2}, {"id": 5, "twice": 10}]
    with pytest.raises(ConstraintViolatedError, match="twice"):
        write_deltalake(tmp_path, pa.table({"id": [1], "twice": [3]}), mode="append")
    write_deltalake(tmp_path / "plain", pa.table({"id": [1]}))
    with pytest.raises(SchemaMismatchError, match=re.escape("delta.generationExpression")):
        write_deltalake(
            tmp_path / "plain", pa.table({"id": [1], "twice": [2]}, schema=schema), mode="append", schema_mode="merge"
        )


def test_an_encoding_that_is_named_is_used(tmp_path):
    for place, properties in [
        ("all", WriterProperties(default_column_properties=ColumnProperties(encoding="DELTA_BINARY_PACKED"))),
        ("one", WriterProperties(column_properties={"id": ColumnProperties(encoding="DELTA_BINARY_PACKED")})),
    ]:
        write_deltalake(tmp_path / place, pa.table({"id": [1, 2, 3]}), writer_properties=properties)
        (file,) = DeltaTable(tmp_path / place).file_uris()
        encodings = pq.read_metadata(file).row_group(0).column(0).encodings
        assert "DELTA_BINARY_PACKED" in encodings
        assert "RLE_DICTIONARY" not in encodings


def test_actions_and_commit_metadata_are_looked_at(tmp_path):
    write_deltalake(tmp_path, ROWS)
    table = DeltaTable(tmp_path)
    with pytest.raises(TypeError, match="an action must be an AddAction or a RemoveAction, not a dict"):
        table.create_write_transaction([{"path": "x"}], "append", table.schema())
    with pytest.raises(InvalidArgumentError, match="custom_metadata must be a mapping, not a list"):
        write_deltalake(table, ROWS, mode="append", commit_properties=CommitProperties(["x"]))
    path = table.files()[0]
    table.create_write_transaction([RemoveAction(path, True, 1)], "append", table.schema())
    commit = (tmp_path / "_delta_log" / f"{1:020}.json").read_text("utf-8").splitlines()
    (removed,) = [json.loads(line)["remove"] for line in commit if '"remove"' in line]
    assert removed["extendedFileMetadata"] is True
    assert (removed["size"], removed["partitionValues"]) == ((tmp_path / path).stat().st_size, {})
    assert DeltaTable(tmp_path).count() == 0


def test_a_commit_says_whether_it_changes_rows(tmp_path):
    for n in range(3):
        write_deltalake(tmp_path, pa.table({"id": [n]}), mode="append")
    table = DeltaTable(tmp_path)
    table.delete("id = 0")
    table.alter.set_table_properties({"custom": "x"})
    table.optimize.compact()
    table.restore(0)
    said = [(entry["operation"], entry["dataChange"]) for entry in table.history()]
    assert said == [
        ("RESTORE", True),
        ("OPTIMIZE", False),
        ("SET TBLPROPERTIES", False),
        ("DELETE", True),
        ("WRITE", True),
        ("WRITE", True),
        ("WRITE", True),
    ]
    with pytest.raises(InvalidArgumentError, match="`dataChange`, which is the protocol's"):
        write_deltalake(
            table, pa.table({"id": [9]}), mode="append", commit_properties=CommitProperties({"dataChange": False})
        )


# --- input that fails ----------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["append", "merge", "insert"])
def test_the_error_of_a_reader_is_the_message_of_its_producer(tmp_path, write):
    path = str(tmp_path / "t")
    write_deltalake(path, ROWS)

    def batches():
        yield ROWS.to_batches()[0]
        raise ValueError("the sensor is off")

    reader = pa.RecordBatchReader.from_batches(ROWS.schema, batches())
    merger = DeltaTable(path).merge(reader, "t.id = s.id", "s", "t").when_not_matched_insert_all()
    fail = {
        "append": lambda: write_deltalake(path, reader, mode="append"),
        "merge": merger.execute,
        "insert": lambda: deltafast.sql(f"INSERT INTO delta.`{path}` SELECT 'x', 'y'"),
    }[write]
    with pytest.raises(InvalidArgumentError) as raised:
        fail()
    message = str(raised.value)
    wanted = "[CAST_INVALID_INPUT] the value 'x'" if write == "insert" else "the sensor is off"
    assert re.match(rf"the (data|source) cannot be read: (\w+: )?{re.escape(wanted)}", message)
    assert not re.search("Traceback|C Data interface|Producer", message)
    assert DeltaTable(path).version() == 0
