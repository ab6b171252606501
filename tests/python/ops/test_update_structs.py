"""UPDATE finds the fields of an assigned struct by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])
SCHEMA = pa.schema(
    [
        ("s", INNER),
        ("n", pa.struct([("s", INNER), ("i", pa.int64())])),
        ("a", pa.list_(INNER)),
        ("o", pa.struct([("y", pa.string()), ("x", pa.int64())])),
    ]
)
ROWS = [
    {
        "s": {"x": 1, "y": "a"},
        "n": {"s": {"x": 2, "y": "b"}, "i": 3},
        "a": [{"x": 4, "y": "c"}],
        "o": {"x": 5, "y": "d"},
    },
    {"s": None, "n": None, "a": None, "o": None},
]
UPDATES: dict[str, Callable[[pathlib.Path, str, str], Any]] = {
    "method": lambda path, column, value: DeltaTable(path).update({column: value}),
    "statement": lambda path, column, value: deltafast.sql(f"UPDATE delta.`{path}` SET {column} = {value}"),
}


@pytest.fixture(params=[{}, {"delta.enableDeletionVectors": "true"}], ids=["copied", "vectors"])
def path(request, tmp_path) -> pathlib.Path:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS, SCHEMA), configuration=request.param)
    return tmp_path


def column_of(path: pathlib.Path, column: str) -> list[Any]:
    return sorted(DeltaTable(path).to_pyarrow_table()[column].to_pylist(), key=repr)


@pytest.mark.parametrize("way", UPDATES)
@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("s", "named_struct('y', 'q', 'x', 9)", [{"x": 9, "y": "q"}] * 2),
        ("s", "named_struct('Y', 'q', 'X', 9)", [{"x": 9, "y": "q"}] * 2),
        ("s", "o", [None, {"x": 5, "y": "d"}]),
        ("s", "n.s", [None, {"x": 2, "y": "b"}]),
        ("n", "named_struct('i', 7, 's', o)", [{"s": None, "i": 7}, {"s": {"x": 5, "y": "d"}, "i": 7}]),
        ("n", "named_struct('s', named_struct('y', 'q', 'x', 9), 'i', 7)", [{"s": {"x": 9, "y": "q"}, "i": 7}] * 2),
        ("a", "array(named_struct('x', 9, 'y', 'q'))", [[{"x": 9, "y": "q"}]] * 2),
        ("s", "NULL", [None, None]),
    ],
)
def test_fields_are_found_by_name(path, way, column, value, expected):
    UPDATES[way](path, column, value)
    assert column_of(path, column) == sorted(expected, key=repr)


@pytest.mark.parametrize("way", UPDATES)
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("s", "named_struct('p', 9, 'q', 'q')"),
        ("s", "named_struct('x', 9)"),
        ("s", "named_struct('x', 9, 'y', 'q', 'z', 1)"),
        ("s", "struct(9, 'q')"),
        ("n", "named_struct('s', named_struct('p', 9, 'y', 'q'), 'i', 7)"),
        ("a", "array(named_struct('y', 'q', 'x', 9))"),
        ("a", "array(named_struct('p', 9, 'q', 'q'))"),
    ],
)
def test_other_names_are_refused(path, way, column, value):
    with pytest.raises(InvalidArgumentError, match="field"):
        UPDATES[way](path, column, value)
    assert DeltaTable(path).version() == 0
