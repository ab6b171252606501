"""Variant columns: plain and shredded, both read back as the variant."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tablekit import log

from . import compare, helpers

EMPTY = b"\x01\x00\x00"
ONE_NAME = b"\x01\x01\x00\x01a"


def _int8(value: int) -> bytes:
    return bytes([3 << 2, value & 0xFF])


def _text(value: str) -> bytes:
    return bytes([len(value) << 2 | 1]) + value.encode()


def _object(value: bytes) -> bytes:
    """Return an object of the one field `a`."""
    return bytes([2, 1, 0, 0, len(value)]) + value


VALUES = [
    (EMPTY, _int8(5), 5),
    (EMPTY, _text("hello"), "hello"),
    (EMPTY, b"\x00", None),
    (ONE_NAME, _object(_int8(-1)), {"a": -1}),
    (EMPTY, b"\x04", True),
]


def _json(table: log.Table, name: str = "v") -> list[str]:
    rows = helpers.read(table).sort_by("id")
    return compare.json_strings(rows.column(name).combine_chunks(), "variant")


def _write(table: log.Table, column: pa.Array, feature: str = "variantType", *more: str) -> None:
    add = table.data("a.parquet", {"id": pa.array(range(len(column)), pa.int64()), "v": column})
    table.commit(0, log.protocol(features=[feature, *more]), log.metadata([("id", "long"), ("v", "variant")]), add)


@pytest.mark.parametrize("feature", ["variantType", "variantType-preview"])
def test_variants_are_read(table: log.Table, feature: str) -> None:
    kind = pa.struct(
        [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
    )
    _write(table, pa.array([{"metadata": m, "value": v} for m, v, _ in VALUES] + [None], kind), feature)
    assert _json(table) == [compare.canonical_json(v) for *_, v in VALUES] + ["null"]


def test_the_order_of_metadata_and_value_in_the_file_does_not_matter(table: log.Table) -> None:
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    _write(table, pa.array([{"metadata": m, "value": v} for m, v, _ in VALUES], kind))
    assert _json(table) == [compare.canonical_json(v) for *_, v in VALUES]


def _shredded(typed: pa.DataType, rows: list[Any]) -> pa.Array:
    kind = pa.struct(
        [pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary()), ("typed_value", typed)]
    )
    return pa.array(rows, kind)


@pytest.mark.parametrize("feature", ["variantShredding", "variantShredding-preview"])
def test_shredded_scalars_are_put_together(table: log.Table, feature: str) -> None:
    rows = [
        {"metadata": EMPTY, "value": None, "typed_value": 2**40},
        {"metadata": EMPTY, "value": _text("no number"), "typed_value": None},
        {"metadata": EMPTY, "value": b"\x00", "typed_value": None},
        None,
    ]
    _write(table, _shredded(pa.int64(), rows), "variantType", feature)
    assert _json(table) == [str(2**40), '"no number"', "null", "null"]


def test_shredded_objects_are_put_together(table: log.Table) -> None:
    field = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    rows = [
        {"metadata": ONE_NAME, "value": None, "typed_value": {"a": {"value": None, "typed_value": 7}}},
        {"metadata": ONE_NAME, "value": None, "typed_value": {"a": {"value": _text("x"), "typed_value": None}}},
        {"metadata": ONE_NAME, "value": None, "typed_value": {"a": {"value": None, "typed_value": None}}},
        {"metadata": EMPTY, "value": _int8(3), "typed_value": None},
    ]
    _write(table, _shredded(pa.struct([pa.field("a", field, nullable=False)]), rows), "variantType", "variantShredding")
    assert _json(table) == ['{"a": 7}', '{"a": "x"}', "{}", "3"]


def test_shredded_lists_are_put_together(table: log.Table) -> None:
    element = pa.struct([("value", pa.binary()), ("typed_value", pa.string())])
    rows = [
        {
            "metadata": EMPTY,
            "value": None,
            "typed_value": [{"value": None, "typed_value": "x"}, {"value": _int8(1), "typed_value": None}],
        },
        {"metadata": EMPTY, "value": None, "typed_value": []},
        {"metadata": EMPTY, "value": _text("no list"), "typed_value": None},
    ]
    _write(table, _shredded(pa.list_(element), rows), "variantType", "variantShredding")
    assert _json(table) == ['["x", 1]', "[]", '"no list"']


def test_variants_inside_other_types(table: log.Table) -> None:
    kind = pa.struct(
        [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
    )
    one = {"metadata": EMPTY, "value": _int8(5)}
    array = {"type": "array", "elementType": "variant", "containsNull": True}
    data = {"id": pa.array([1], pa.int64()), "l": pa.array([[one, None]], pa.list_(kind))}
    table.commit(
        0, log.protocol(features=["variantType"]), log.metadata([("id", "long"), ("l", array)]), table.data("a", data)
    )
    rows = helpers.read(table)
    assert compare.json_strings(rows.column("l").combine_chunks(), array) == ["[5, null]"]
