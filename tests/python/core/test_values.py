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
    return {"k": "lit", "v": value, "t": kind}


def answers(expr):
    tree = {"expr": expr, "ansi": True, "zone": "UTC"}
    return pa.table(_core.evaluate(tree, ROWS))["value"].to_pylist()


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda value: [value], "a node must be an object"),
        (lambda value: (value,), "a node must be an object"),
        (lambda value: {"k": value}, "a node has no text `k`"),
    ],
    ids=["list", "tuple", "dict"],
)
def test_values_nest_to_512_levels(wrap, message):
    def nested(levels):
        value = 1
        for _ in range(levels):
            value = wrap(value)
        return value

    with pytest.raises(InvalidArgumentError, match=message):
        answers(nested(511))
    for levels in (512, 513, 100_000):
        with pytest.raises(InvalidArgumentError, match="nested too deeply"):
            answers(nested(levels))


def test_expressions_nest_to_200_calls():
    def negated(times):
        expr = literal(True, "boolean")
        for _ in range(times):
            expr = {"k": "call", "f": "not", "a": [expr], "t": "boolean"}
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


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "the envelope must be an object"),
        ("", "the envelope must be an object"),
        ('{"expr":{"k":"lit","v":1,"t":"integer"},"ansi":true,"zone":"UTC"}', "the envelope must be an object"),
        ([], "the envelope must be an object"),
        (True, "the envelope must be an object"),
        ({}, "the envelope has no `expr`"),
        ({"expr": None}, "a node must be an object"),
        ({"expr": {}}, "a node has no text `k`"),
        ({"expr": {"k": "what"}}, "unknown kind `what`"),
        ({"expr": {"k": "col", "path": "i", "t": "integer"}}, "a column has no `path`"),
        ({"expr": {"k": "col", "path": [1], "t": "integer"}}, "must be a list of names"),
        ({"expr": {"k": "lit", "v": 1}}, "a node has no type `t`"),
        ({"expr": literal("1", "integer")}, "is not a literal of type"),
        ({"expr": literal(1, "boolean")}, "is not a literal of type"),
        ({"expr": literal(2**63, "long")}, "is not a literal of type"),
        ({"expr": literal(2**200, "long")}, "is not a literal of type"),
        ({"expr": {"k": "call", "f": "not", "a": {}, "t": "boolean"}}, "a call has no list `a`"),
        ({"expr": literal(1, "integer"), "zone": 1}, "`zone` must be a name"),
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
        ({"checks": [{"name": "c", "sql": "i > 0", "tree": "i > 0"}]}, "the envelope must be an object"),
        ({"generated": [["i", {"expr": []}]]}, "a node must be an object"),
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
