"""Type Widening: files keep the narrow type they were written with and are read as the wide one."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

import deltafast
from tablekit import log

from . import helpers

D = decimal.Decimal

WIDENINGS: list[tuple[str, str, pa.DataType, Any, Any]] = [
    ("byte", "short", pa.int8(), -128, -128),
    ("byte", "integer", pa.int8(), 127, 127),
    ("byte", "long", pa.int8(), -1, -1),
    ("short", "integer", pa.int16(), -32768, -32768),
    ("short", "long", pa.int16(), 32767, 32767),
    ("integer", "long", pa.int32(), -(2**31), -(2**31)),
    ("byte", "double", pa.int8(), -7, -7.0),
    ("short", "double", pa.int16(), 300, 300.0),
    ("integer", "double", pa.int32(), 2**31 - 1, float(2**31 - 1)),
    ("float", "double", pa.float32(), 1.5, 1.5),
    ("byte", "decimal(10,0)", pa.int8(), -128, D(-128)),
    ("short", "decimal(11,1)", pa.int16(), 300, D("300.0")),
    ("integer", "decimal(12,2)", pa.int32(), -(2**31), D("-2147483648.00")),
    ("long", "decimal(20,0)", pa.int64(), -(2**63), D(-(2**63))),
    ("long", "decimal(38,18)", pa.int64(), 2**63 - 1, D("9223372036854775807.000000000000000000")),
    ("decimal(5,2)", "decimal(9,2)", pa.decimal128(5, 2), D("-999.99"), D("-999.99")),
    ("decimal(5,2)", "decimal(10,2)", pa.decimal128(5, 2), D("999.99"), D("999.99")),
    ("decimal(5,2)", "decimal(8,5)", pa.decimal128(5, 2), D("1.25"), D("1.25000")),
    (
        "decimal(18,2)",
        "decimal(38,10)",
        pa.decimal128(18, 2),
        D("9999999999999999.99"),
        D("9999999999999999.9900000000"),
    ),
    ("date", "timestamp_ntz", pa.date32(), dt.date(1969, 12, 31), dt.datetime(1969, 12, 31)),  # noqa: DTZ001
]


def _changes(start: str, end: str, **more: Any) -> dict[str, Any]:
    return {"delta.typeChanges": [{"fromType": start, "toType": end, **more}]}


def _widened(
    table: log.Table, start: str, end: str, kind: pa.DataType, value: Any, *, feature: str = "typeWidening"
) -> None:
    """Write a file of the narrow type, then widen the column."""
    add = table.data("a.parquet", {"id": [1, 2], "v": pa.array([value, None], kind)}, store_decimal_as_integer=True)
    features = [feature, "timestampNtz"]
    table.commit(0, log.protocol(features=features), log.metadata([("id", "long"), ("v", start)]), add)
    table.commit(1, log.metadata([("id", "long"), ("v", end, _changes(start, end))]))


@pytest.mark.parametrize(
    ("start", "end", "kind", "value", "wide"), WIDENINGS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_narrow_value_is_read_as_the_wide_type(
    table: log.Table, start: str, end: str, kind: pa.DataType, value: Any, wide: Any
) -> None:
    _widened(table, start, end, kind, value)
    found = helpers.column(table, "v")
    assert found == [wide, None]
    assert type(found[0]) is type(wide)
    assert helpers.column(table, "v", version=0) == [value, None]


def test_the_preview_feature_reads_alike(table: log.Table) -> None:
    _widened(table, "integer", "long", pa.int32(), 5, feature="typeWidening-preview")
    assert helpers.column(table, "v") == [5, None]


@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_in_every_encoding_are_widened(table: log.Table, *, as_integer: bool) -> None:
    values = pa.array([D("12.34"), D("-0.01")], pa.decimal128(8, 2))
    add = table.data("a.parquet", {"id": [1, 2], "v": values}, store_decimal_as_integer=as_integer)
    table.commit(0, log.protocol(features=["typeWidening"]), log.metadata([("id", "long"), ("v", "decimal(8,2)")]), add)
    table.commit(1, log.metadata([("id", "long"), ("v", "decimal(30,4)", _changes("decimal(8,2)", "decimal(30,4)"))]))
    assert helpers.column(table, "v") == [D("12.3400"), D("-0.0100")]


@pytest.mark.parametrize("feature", ["typeWidening", "typeWidening-preview"])
@pytest.mark.parametrize(("start", "end"), [("string", "long"), ("long", "integer"), ("tiny", "huge")])
def test_an_unsupported_type_change_fails_reads(table: log.Table, start: str, end: str, feature: str) -> None:
    """Readers must validate all changes, whatever types the files have: so does delta-spark."""
    changes = {
        "delta.typeChanges": [
            *_changes("integer", "long")["delta.typeChanges"],
            *_changes(start, end)["delta.typeChanges"],
        ]
    }
    add = table.data("a.parquet", {"id": [1], "v": pa.array([5], pa.int64())})
    metadata = log.metadata([("id", "long"), ("v", "long", changes)])
    table.commit(0, log.protocol(features=[feature]), metadata, add)
    opened = helpers.open_table(table)
    assert opened.history()[0]["version"] == 0
    message = f"from {start} to {end}.*column `v`"
    for read in (opened.to_pyarrow_table, lambda: opened.to_pyarrow_table(columns=["id"]), opened.file_uris):
        with pytest.raises(deltafast.exceptions.DeltaProtocolError, match=message) as caught:
            read()
        assert caught.value.feature == feature
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match=message):
        deltafast.write_deltalake(opened, pa.table({"id": [1], "v": [1]}), mode="append")


def test_type_changes_count_only_with_their_feature(table: log.Table) -> None:
    add = table.data("a.parquet", {"id": [1], "v": pa.array([5], pa.int64())})
    columns = [("id", "long"), ("v", "long", _changes("string", "long"))]
    table.commit(0, log.protocol(), log.metadata(columns), add)
    assert helpers.column(table, "v") == [5]


def test_nested_fields_are_widened(table: log.Table) -> None:
    inner = {
        "type": "struct",
        "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": _changes("integer", "long")}],
    }
    elements = {"type": "array", "elementType": "long", "containsNull": True}
    entries = {"type": "map", "keyType": "long", "valueType": "double", "valueContainsNull": True}
    data = {
        "id": pa.array([1], pa.int64()),
        "s": pa.array([{"x": 7}], pa.struct([("x", pa.int32())])),
        "l": pa.array([[1, None]], pa.list_(pa.int16())),
        "m": pa.array([[(1, 2.5)]], pa.map_(pa.int32(), pa.float32())),
    }
    columns = [
        ("id", "long"),
        ("s", inner),
        ("l", elements, _changes("short", "long", fieldPath="element")),
        (
            "m",
            entries,
            {
                "delta.typeChanges": [
                    {"fromType": "integer", "toType": "long", "fieldPath": "key"},
                    {"fromType": "float", "toType": "double", "fieldPath": "value"},
                ]
            },
        ),
    ]
    table.commit(0, log.protocol(features=["typeWidening"]), log.metadata(columns), table.data("a.parquet", data))
    (row,) = helpers.read(table).to_pylist()
    assert row == {"id": 1, "s": {"x": 7}, "l": [1, None], "m": [(1, 2.5)]}


def test_files_of_both_types_in_one_read(table: log.Table) -> None:
    _widened(table, "integer", "long", pa.int32(), 5)
    table.commit(2, table.data("b.parquet", {"id": [3], "v": pa.array([2**40], pa.int64())}))
    assert helpers.column(table, "v") == [5, None, 2**40]


def test_predicates_compare_with_the_wide_type(table: log.Table) -> None:
    add = table.data(
        "a.parquet",
        {"id": [1, 2], "v": pa.array([5, 6], pa.int32())},
        add_stats=json.dumps({"numRecords": 2, "minValues": {"v": 5}, "maxValues": {"v": 6}, "nullCount": {"v": 0}}),
    )
    metadata = log.metadata([("id", "long"), ("v", "long", _changes("integer", "long"))])
    table.commit(0, log.protocol(features=["typeWidening"]), metadata, add)
    assert helpers.filtered(table, "v = 6") == [2]
    assert helpers.filtered(table, f"v < {2**40}") == [1, 2]
    assert helpers.filtered(table, f"v > {2**40}") == []


def test_partition_values_are_parsed_as_the_wide_type(table: log.Table) -> None:
    changes = _changes("integer", "long")
    add = table.data("a.parquet", {"id": [1]}, add_partitionValues={"p": "5"})
    wide = table.data("b.parquet", {"id": [2]}, add_partitionValues={"p": str(2**40)})
    metadata = log.metadata([("id", "long"), ("p", "long", changes)], ["p"])
    table.commit(0, log.protocol(features=["typeWidening"]), metadata, add, wide)
    assert helpers.column(table, "p") == [5, 2**40]
