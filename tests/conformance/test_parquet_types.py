"""Delta Data Type to Parquet Type Mappings: every type in every encoding that writers use."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from tablekit import log, thrift

from . import helpers

if TYPE_CHECKING:
    import pathlib

D = decimal.Decimal


def _array_of(element: Any, *, nulls: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": nulls}


def _one(table: log.Table, kind: Any, array: pa.Array, **options: Any) -> log.Action:
    """Write a table of one file with a column `v`."""
    add = table.data("a.parquet", {"id": pa.array(range(len(array)), pa.int64()), "v": array}, **options)
    table.commit(0, log.protocol(features=["timestampNtz"]), log.metadata([("id", "long"), ("v", kind)]), add)
    return add


TYPES: list[tuple[str, pa.DataType, list[Any]]] = [
    ("boolean", pa.bool_(), [True, False, None]),
    ("byte", pa.int8(), [-128, 127, None]),
    ("short", pa.int16(), [-32768, 32767, None]),
    ("integer", pa.int32(), [-(2**31), 2**31 - 1, None]),
    ("long", pa.int64(), [-(2**63), 2**63 - 1, None]),
    ("float", pa.float32(), [1.5, float("-inf"), None]),
    ("double", pa.float64(), [1.7976931348623157e308, -0.0, None]),
    ("string", pa.string(), ["", "\N{SNOWMAN}", None]),
    ("binary", pa.binary(), [b"", b"\x00\xff", None]),
    ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    ("timestamp", pa.timestamp("us", "UTC"), [dt.datetime(1, 1, 1, tzinfo=dt.UTC), None]),
    ("timestamp_ntz", pa.timestamp("us"), [dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None]),  # noqa: DTZ001
    ("decimal(4,2)", pa.decimal128(4, 2), [D("-99.99"), D("0.01"), None]),
    ("decimal(18,9)", pa.decimal128(18, 9), [D("-999999999.999999999"), None]),
    ("decimal(38,0)", pa.decimal128(38, 0), [D("9" * 38), D("-" + "9" * 38), None]),
]


@pytest.mark.parametrize(("kind", "arrow", "values"), TYPES, ids=[t[0] for t in TYPES])
@pytest.mark.parametrize("encoding", ["dictionary", "plain", "version two", "delta"])
def test_a_column_of_each_type(
    table: log.Table, kind: str, arrow: pa.DataType, values: list[Any], encoding: str
) -> None:
    options: dict[str, Any] = {
        "dictionary": {"use_dictionary": True},
        "plain": {"use_dictionary": False, "compression": "none"},
        "version two": {"data_page_version": "2.0", "compression": "zstd"},
        "delta": {"use_dictionary": False, "column_encoding": {"v": _delta(arrow)}},
    }[encoding]
    _one(table, kind, pa.array(values, arrow), **options)
    assert helpers.column(table, "v") == values


def _delta(arrow: pa.DataType) -> str:
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return "DELTA_BYTE_ARRAY"
    if pa.types.is_boolean(arrow):
        return "RLE"
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return "BYTE_STREAM_SPLIT"
    return "DELTA_BINARY_PACKED"


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_every_codec(table: log.Table, codec: str) -> None:
    _one(table, "string", pa.array([f"value {i % 7}" for i in range(5000)]), compression=codec)
    assert helpers.column(table, "v") == [f"value {i % 7}" for i in range(5000)]


@pytest.mark.parametrize(("precision", "scale"), [(4, 2), (9, 0), (10, 3), (18, 18)])
def test_decimals_as_integers(table: log.Table, precision: int, scale: int) -> None:
    with decimal.localcontext(prec=50):
        values = [D(10**precision - 1).scaleb(-scale), D(-1).scaleb(-scale), None]
    _one(
        table,
        f"decimal({precision},{scale})",
        pa.array(values, pa.decimal128(precision, scale)),
        store_decimal_as_integer=True,
    )
    assert helpers.column(table, "v") == values


def test_decimals_as_binaries(table: log.Table) -> None:
    """Some writers store the unscaled number as bytes of any length."""
    values = [D("12345.67"), D("-0.01"), D("0.00")]
    raw = [(1234567).to_bytes(3, "big"), b"\xff", b"\x00"]
    add = _one(table, "decimal(20,2)", pa.array(raw, pa.binary()))
    file = table.folder / "a.parquet"
    data = file.read_bytes()
    footer = thrift.footer(data)
    element = footer[2][1][1][2]
    element[6] = (thrift.I32, 5)
    element[7] = (thrift.I32, 2)
    element[8] = (thrift.I32, 20)
    file.write_bytes(thrift.with_footer(data, footer))
    add["add"]["size"] = file.stat().st_size
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("v", "decimal(20,2)")]), add)
    assert helpers.column(table, "v") == values


NESTED: list[tuple[str, Any, pa.DataType, list[Any]]] = [
    ("array", _array_of("long"), pa.list_(pa.int64()), [[1, None, 3], [], None]),
    ("array of arrays", _array_of(_array_of("string")), pa.list_(pa.list_(pa.string())), [[["a"], [], None], [], None]),
    (
        "struct",
        {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]},
        pa.struct([("x", pa.int64())]),
        [{"x": 1}, {"x": None}, None],
    ),
    (
        "map",
        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        pa.map_(pa.string(), pa.int64()),
        [[("a", 1), ("b", None)], [], None],
    ),
    (
        "array of structs of maps",
        _array_of(
            {
                "type": "struct",
                "fields": [
                    {
                        "name": "m",
                        "type": {
                            "type": "map",
                            "keyType": "integer",
                            "valueType": _array_of("double"),
                            "valueContainsNull": True,
                        },
                        "nullable": True,
                        "metadata": {},
                    }
                ],
            }
        ),
        pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.float64())))])),
        [[{"m": [(1, [1.5, None]), (2, None)]}, {"m": None}, None], [], None],
    ),
]


@pytest.mark.parametrize(("kind", "arrow", "values"), [t[1:] for t in NESTED], ids=[t[0] for t in NESTED])
@pytest.mark.parametrize("compliant", [True, False])
def test_nested_types(table: log.Table, kind: Any, arrow: pa.DataType, values: list[Any], *, compliant: bool) -> None:
    """Lists of three levels, whatever the repeated group and the element are called."""
    _one(table, kind, pa.array(values, arrow), use_compliant_nested_type=compliant)
    assert helpers.column(table, "v") == values


def _edit_schema(table: log.Table, add: log.Action, edit: Any, kind: Any) -> None:
    """Rewrite the footer's schema, and the paths of the column chunks with it."""
    file = table.folder / "a.parquet"
    data = file.read_bytes()
    footer = thrift.footer(data)
    edit(footer)
    file.write_bytes(thrift.with_footer(data, footer))
    add["add"]["size"] = file.stat().st_size
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("v", kind)]), add)


def _paths(footer: thrift.Struct) -> list[list[bytes]]:
    return [chunk[3][1][3][1][1] for chunk in footer[4][1][1][0][1][1][1]]


def test_legacy_lists_of_two_levels(table: log.Table) -> None:
    """`optional group v (LIST) { repeated int64 array; }`, as old writers have it."""
    kind = pa.list_(pa.field("element", pa.int64(), nullable=False))
    add = _one(table, _array_of("long"), pa.array([[1, 2], [], None, [3]], kind))

    def edit(footer: thrift.Struct) -> None:
        elements = footer[2][1][1]
        element = elements.pop(4) | {3: (thrift.I32, 2), 4: (thrift.BINARY, b"array")}
        elements[3] = element
        _paths(footer)[1][:] = [b"v", b"array"]

    _edit_schema(table, add, edit, _array_of("long"))
    assert helpers.column(table, "v") == [[1, 2], [], None, [3]]


def test_legacy_lists_named_bag_and_array_element(table: log.Table) -> None:
    """`optional group v (LIST) { repeated group bag { optional int64 array_element; } }`, as Hive has it."""
    add = _one(table, _array_of("long"), pa.array([[1, None], [], None, [3]], pa.list_(pa.int64())))

    def edit(footer: thrift.Struct) -> None:
        elements = footer[2][1][1]
        elements[3][4] = (thrift.BINARY, b"bag")
        elements[4][4] = (thrift.BINARY, b"array_element")
        _paths(footer)[1][:] = [b"v", b"bag", b"array_element"]

    _edit_schema(table, add, edit, _array_of("long"))
    assert helpers.column(table, "v") == [[1, None], [], None, [3]]


def test_legacy_lists_of_structs_of_two_levels(table: log.Table) -> None:
    """`optional group v (LIST) { repeated group v_tuple { required int64 x; } }`: the group is the element itself."""
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    arrow = pa.list_(pa.field("element", inner, nullable=False))
    kind = _array_of({"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]})
    add = _one(table, kind, pa.array([[{"x": 1}, {"x": 2}], [], None], arrow))

    def edit(footer: thrift.Struct) -> None:
        elements = footer[2][1][1]
        group = elements.pop(4)
        elements[3] = group | {3: (thrift.I32, 2), 4: (thrift.BINARY, b"v_tuple")}
        _paths(footer)[1][:] = [b"v", b"v_tuple", b"x"]

    _edit_schema(table, add, edit, kind)
    assert helpers.column(table, "v") == [[{"x": 1}, {"x": 2}], [], None]


def test_legacy_maps(table: log.Table) -> None:
    """`optional group v (MAP_KEY_VALUE) { repeated group map { required binary key; optional int64 value; } }`."""
    kind = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    add = _one(table, kind, pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())))

    def edit(footer: thrift.Struct) -> None:
        elements = footer[2][1][1]
        elements[2].pop(10, None)
        elements[2][6] = (thrift.I32, 2)
        elements[3][4] = (thrift.BINARY, b"map")
        elements[3].pop(6, None)
        for path, leaf in zip(_paths(footer)[1:], [b"key", b"value"], strict=True):
            path[:] = [b"v", b"map", leaf]

    _edit_schema(table, add, edit, kind)
    assert helpers.column(table, "v") == [[("a", 1), ("b", None)], [], None]


def test_fields_missing_in_nested_types_are_null(table: log.Table) -> None:
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in ("x", "new")]
    kind = {"type": "struct", "fields": fields}
    _one(table, kind, pa.array([{"x": 1}, None], pa.struct([("x", pa.int64())])))
    assert helpers.column(table, "v") == [{"x": 1, "new": None}, None]


def test_fields_of_nested_types_are_ordered_as_in_the_schema(table: log.Table) -> None:
    fields = [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in (("x", "long"), ("y", "string"))]
    arrow = pa.struct([("y", pa.string()), ("extra", pa.int32()), ("x", pa.int64())])
    _one(table, {"type": "struct", "fields": fields}, pa.array([{"x": 1, "y": "a", "extra": 5}], arrow))
    assert helpers.column(table, "v") == [{"x": 1, "y": "a"}]


def test_new_columns_are_null_in_old_files(table: log.Table) -> None:
    table.commit(0, log.protocol(), log.metadata([("id", "long")]), table.data("a.parquet", {"id": [1]}))
    table.commit(
        1, log.metadata([("new", "string"), ("id", "long")]), table.data("b.parquet", {"id": [2], "new": ["x"]})
    )
    assert helpers.read(table).sort_by("id").to_pydict() == {"new": [None, "x"], "id": [1, 2]}


def test_columns_match_whatever_their_case(table: log.Table) -> None:
    """Names are kept with the table's case."""
    table.commit(
        0,
        log.protocol(),
        log.metadata([("Id", "long"), ("nAme", "string")]),
        table.data("a", {"ID": [1], "name": ["x"]}),
    )
    assert helpers.read(table).to_pydict() == {"Id": [1], "nAme": ["x"]}
    assert helpers.open_table(table).to_pyarrow_table(columns=["Id"]).to_pydict() == {"Id": [1]}


def test_the_arrow_schema_of_the_footer_is_ignored(table: log.Table) -> None:
    """What the table's schema says counts: large and dictionary types of the writer's Arrow schema do not show."""
    data = pa.table({"id": pa.array([1], pa.int64()), "name": pa.array(["x"], pa.large_string()).dictionary_encode()})
    table.commit(0, log.protocol(), log.metadata(), table.data("a.parquet", data))
    assert helpers.read(table).schema.field("name").type == pa.string()


def test_many_row_groups_and_pages(table: log.Table) -> None:
    values = [None if i % 11 == 0 else f"v{i}" for i in range(20_000)]
    _one(table, "string", pa.array(values), row_group_size=1_234, data_page_size=512, write_page_index=True)
    assert helpers.column(table, "v") == values
    assert helpers.filtered(table, "id in (0, 7777, 19999)") == [0, 7777, 19999]
    assert helpers.filtered(table, "v = 'v7778'") == [7778]


def test_bloom_filters_drop_no_row(table: log.Table) -> None:
    values = [f"v{i * 7}" for i in range(5_000)]
    try:
        _one(table, "string", pa.array(values), row_group_size=500, bloom_filter_options={"v": True})
    except TypeError:
        pytest.skip("this pyarrow writes no bloom filters")
    assert helpers.filtered(table, "v = 'v7000'") == [1000]
    assert helpers.filtered(table, "v = 'v7001'") == []


def test_void_columns_are_left_out(table: log.Table) -> None:
    """The protocol recommends to drop them on reads, as the reference does; a null column is as good."""
    columns = [("id", "long"), ("nothing", "void"), ("name", "string")]
    table.commit(0, log.protocol(), log.metadata(columns), table.ids("a.parquet", 0, 2))
    found = helpers.read(table)
    assert helpers.ids(table) == [0, 1]
    assert "nothing" not in found.column_names or found.column("nothing").null_count == 2


_SPARK_TYPES = [
    ("interval year to month", pa.int32(), pa.int32()),
    ("interval month", pa.int32(), pa.int32()),
    ("interval day to second", pa.int64(), pa.int64()),
    ("interval hour", pa.int64(), pa.int64()),
    ("time(6)", pa.int64(), pa.int64()),
    ("time(6)", pa.time64("us"), pa.int64()),
]


@pytest.mark.parametrize(("kind", "stored", "read"), _SPARK_TYPES, ids=str)
def test_types_of_spark_are_read_as_integers(
    table: log.Table, kind: str, stored: pa.DataType, read: pa.DataType
) -> None:
    values = pa.array([14, None, -3 if stored != pa.time64("us") else 3], read)
    nested = {"type": "struct", "fields": [{"name": "x", "type": kind, "nullable": True, "metadata": {}}]}
    data = {"id": [1, 2, 3], "v": values.cast(stored), "s": pa.StructArray.from_arrays([values.cast(stored)], ["x"])}
    columns = [("id", "long"), ("v", kind), ("s", nested)]
    stats = json.dumps({"numRecords": 3, "minValues": {"v": 100}, "maxValues": {"v": 200}, "nullCount": {"v": 1}})
    table.commit(0, log.protocol(), log.metadata(columns), table.data("a.parquet", data, add_stats=stats))
    opened = helpers.open_table(table)
    assert helpers.ids(table) == [1, 2, 3]
    found = helpers.read(table)
    assert found.schema.field("v").type == read
    assert found.column("v").to_pylist() == values.to_pylist()
    assert found.column("s").to_pylist() == [{"x": value} for value in values.to_pylist()]
    assert helpers.filtered(table, "v is null") == [2]
    assert helpers.filtered(table, "v = 14") == [1]
    assert json.loads(opened.schema().to_json())["fields"][1]["type"] == kind
    assert opened.schema().to_arrow().field("v").type == read
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match=re.escape(f"columns of type {kind}")):
        deltafast.write_deltalake(opened, found, mode="append")
    # The name stays where the schema is written again.
    opened.alter.set_table_properties({"delta.columnMapping.mode": "name"})
    assert json.loads(opened.schema().to_json())["fields"][1]["type"] == kind
    opened.alter.drop_columns(["v", "s"])
    deltafast.write_deltalake(opened, pa.table({"id": [4]}), mode="append")
    assert opened.count() == 4


def test_calendar_intervals_leave_the_other_columns_readable(table: log.Table) -> None:
    columns = [("id", "long"), ("v", "interval")]
    data = {"id": [1, 2], "v": pa.array([b"x" * 12, None], pa.binary(12))}
    table.commit(0, log.protocol(), log.metadata(columns), table.data("a.parquet", data))
    opened = helpers.open_table(table)
    assert opened.to_pyarrow_table(columns=["id"]).column("id").to_pylist() == [1, 2]
    with pytest.raises(deltafast.exceptions.DeltaError, match=r"type interval cannot be read.*column `v`"):
        helpers.column(table, "v")


def test_types_of_spark_are_not_created(tmp_path: pathlib.Path) -> None:
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match=r"no columns of type .*time\(6\).*column `v`"):
        deltafast.DeltaTable.create(tmp_path, deltafast.Schema([deltafast.Field("v", "time(6)")]))
    table = deltafast.DeltaTable.create(tmp_path, deltafast.Schema([deltafast.Field("id", "long")]))
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match="interval day"):
        table.alter.add_columns([deltafast.Field("v", "interval day")])


@pytest.mark.parametrize(
    "metadata",
    [
        {"__CHAR_VARCHAR_TYPE_STRING": "varchar(10)"},
        {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"},
        {"CURRENT_DEFAULT": "'x'", "EXISTS_DEFAULT": "'x'"},
        {"delta.generationExpression": "cast(id as string)"},
        {"delta.invariants": '{"expression":{"expression":"name is not null"}}'},
        {"comment": "any\ntext"},
        {"__COLLATIONS": {"name": "icu.UNICODE_CI"}},
        {"unknown": [1, {"deep": None}]},
    ],
    ids=str,
)
def test_column_metadata_changes_no_read(table: log.Table, metadata: dict[str, Any]) -> None:
    columns = [("id", "long"), ("name", "string", metadata)]
    table.commit(
        0, log.protocol(1, 7, writer_only=["generatedColumns"]), log.metadata(columns), table.ids("a.parquet", 0, 3)
    )
    assert helpers.column(table, "name") == ["n0", "n1", "n2"]
