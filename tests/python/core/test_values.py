"""Trees and options given to the core as dicts: what is wrong in them is refused, however deep it is."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from deltafast import _core
from deltafast.exceptions import InvalidArgumentError

ROWS = pa.table({"i": pa.array([1, 2, None], pa.int32())})
SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "i", "type": "integer", "nullable": True, "metadata": {}}]})


def literal(value, kind):
    return {"literal": {"value": value, "data_type": kind}}


def answers(expr):
    tree = {"expr": expr, "ansi": True, "zone": "UTC"}
    return pa.table(_core.evaluate(tree, ROWS))["value"].to_pylist()


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda value: [value], "invalid type: sequence"),
        (lambda value: (value,), "invalid type: sequence"),
        (lambda value: {"k": value}, "unknown variant `k`"),
        (lambda value: {"call": value}, "unknown field `call`"),
    ],
    ids=["list", "tuple", "dict", "dict of a node"],
)
def test_values_nest_to_640_levels(wrap, message):
    def nested(levels):
        value = 1
        for _ in range(levels):
            value = wrap(value)
        return value

    with pytest.raises(InvalidArgumentError, match=message):
        answers(nested(639))
    for levels in (640, 641, 100_000):
        with pytest.raises(InvalidArgumentError, match="nested too deeply"):
            answers(nested(levels))


def test_expressions_nest_to_200_calls():
    def negated(times):
        expr = literal(True, "boolean")
        for _ in range(times):
            expr = {"call": {"function": "not", "arguments": [expr], "data_type": "boolean"}}
        return expr

    assert answers(negated(200)) == [True] * 3
    with pytest.raises(InvalidArgumentError, match="nested deeper than 200 calls"):
        answers(negated(201))


def test_a_value_within_itself_is_refused():
    inner, outer = [], {}
    inner.append(inner)
    outer["expr"] = outer
    for expr in (inner, outer):
        with pytest.raises(InvalidArgumentError, match="nested too deeply"):
            answers(expr)


def tree(expr, **settings):
    return {"expr": expr, "ansi": True, "zone": "UTC", **settings}


ONE = literal(1, "integer")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "expected struct BoundTree"),
        ("", "expected struct BoundTree"),
        (json.dumps(tree(ONE)), "expected struct BoundTree"),
        ([], "expected struct BoundTree"),
        (True, "expected struct BoundTree"),
        ({}, "missing field `expr`"),
        ({"expr": ONE, "ansi": True}, "missing field `zone`"),
        (tree(None), "expected string or map"),
        (tree({}), "expected map with a single key"),
        (tree({**ONE, "call": 1}), "expected map with a single key"),
        (tree({"what": 1}), "unknown variant `what`"),
        (tree({"column": {"path": "i", "data_type": "integer"}}), "expected a sequence"),
        (tree({"column": {"path": [1], "data_type": "integer"}}), "expected a string"),
        (tree({"column": {"path": [], "data_type": "integer"}}), "a column has no name"),
        (tree({"literal": {"value": 1}}), "missing field `data_type`"),
        (tree(literal("1", "integer")), "is not a literal of type"),
        (tree(literal(1, "boolean")), "is not a literal of type"),
        (tree(literal(2**63, "long")), "is not a literal of type"),
        (tree(literal(2**200, "long")), "is not a literal of type"),
        (tree({"call": {"function": "not", "arguments": {}, "data_type": "boolean"}}), "expected a sequence"),
        (tree({"cast": {"argument": ONE, "data_type": "long", "mode": "guess"}}), "unknown variant `guess`"),
        (tree(ONE, zone=1), "expected a string"),
        (tree(ONE, more=1), "unknown field `more`"),
    ],
)
def test_what_is_no_tree_is_refused(tree, message):
    with pytest.raises(InvalidArgumentError, match=message):
        _core.evaluate(tree, ROWS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(value):
    with pytest.raises(InvalidArgumentError, match="finite"):
        answers(literal(value, "double"))
    assert answers(literal(1.5, "double")) == [1.5] * 3


@pytest.mark.parametrize(
    "value", [object(), b"1", {1}, Decimal(1), dt.date(2024, 1, 1), literal], ids=lambda v: type(v).__name__
)
def test_objects_of_other_types_are_refused(value):
    with pytest.raises(TypeError, match="expected None, str, bool, int, float, dict, list or tuple"):
        answers(literal(value, "integer"))
    with pytest.raises(TypeError):
        answers({(1,): value})


def test_half_a_surrogate_pair_is_refused():
    for expr in (literal("\ud800", "string"), {"\udfff": 1}):
        with pytest.raises(InvalidArgumentError, match="UTF-8"):
            answers(expr)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nothing": 1}, "FileWriteOptions: unknown field `nothing`"),
        ({"partition_by": "i"}, "FileWriteOptions: invalid type"),
        ({"target_file_size": -1}, "FileWriteOptions: invalid value"),
        ({"most_rows": 1.5}, "FileWriteOptions: invalid type"),
        ({"checks": [{"name": "c", "sql": "i > 0"}]}, "FileWriteOptions: missing field `tree`"),
        ({"checks": [{"name": "c", "sql": "i > 0", "tree": "i > 0"}]}, "expected struct BoundTree"),
        ({"generated": [["i", {"expr": []}]]}, "expected string or map"),
        ("{}", "FileWriteOptions: invalid type"),
    ],
)
def test_wrong_options_of_a_write_are_refused(tmp_path, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        _core.write_files(str(tmp_path / "t"), SCHEMA, ROWS, options)
    assert not list(tmp_path.glob("t/**/*.parquet*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nothing": 1}, "OpenOptions: unknown field `nothing`"),
        ({"max_table_version": "1"}, "OpenOptions: invalid type"),
        ({"allow_external_paths": 1}, "OpenOptions: "),
        ({"allow_external_paths": "s3://bucket"}, "OpenOptions: "),
        ({"time_zone": 1}, "OpenOptions: invalid type"),
    ],
)
def test_wrong_options_of_opening_are_refused(events_path, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        _core.Snapshot.open(str(events_path), options=options)
    assert _core.Snapshot.open(str(events_path), options={}).version == 2
