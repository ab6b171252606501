"""Long lists of IN are bound as a whole, with the trees, results and errors of one constant after the other."""

from __future__ import annotations

import datetime as dt
import math
import time
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltafast import DeltaTable, _core, write_deltalake
from deltafast._expr import bind_predicate, value_lists
from deltafast._expr.context import ExpressionContext
from deltafast._expr.listed import listed
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError

COLUMNS = {
    "byte": "byte",
    "short": "short",
    "integer": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "decimal": "decimal(20,4)",
    "wide": "decimal(38,0)",
    "string": "string",
    "binary": "binary",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
SCHEMA = {
    "type": "struct",
    "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in COLUMNS.items()]
    + [{"name": "char", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}}],
}
DAY = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
TIMESTAMP = st.datetimes(dt.datetime.fromisoformat("1900-01-01"), dt.datetime.fromisoformat("2100-01-01"))
ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30))])
VALUES = {
    "small integers": st.integers(-200, 200),
    "integers": st.integers(-(2**40), 2**40) | st.integers(-3, 3),
    "all integers": st.integers(-(2**63), 2**64),
    "floats": st.floats(allow_nan=False) | st.just(-0.0) | st.integers(-3, 3).map(float),
    "floats with NaN": st.floats(),
    "decimals": st.decimals(-(10**6), 10**6, places=3) | st.decimals(-(10**20), 10**20, places=0),
    "strings": st.text(max_size=6),
    "strings of numbers": st.integers(-999, 999).map(str),
    "strings of dates": DAY.map(str),
    "strings of timestamps": TIMESTAMP.map(str),
    "bytes": st.binary(max_size=5),
    "booleans": st.booleans(),
    "dates": DAY,
    "timestamps": TIMESTAMP,
    "timestamps in zones": st.builds(lambda timestamp, zone: timestamp.replace(tzinfo=zone), TIMESTAMP, ZONES),
    "several types": st.integers(-3, 3) | st.text(max_size=2) | st.none() | st.booleans(),
}


def lists(kind: str) -> st.SearchStrategy[list[Any]]:
    values = VALUES[kind] | st.none() if kind in ("integers", "strings", "dates", "decimals") else VALUES[kind]
    return st.lists(values, min_size=value_lists.LONG_LIST, max_size=value_lists.LONG_LIST + 8)


def outcome(predicate: Any, **options: Any) -> Any:
    """The tree of a predicate, or its error."""
    try:
        return bind_predicate(predicate, SCHEMA, ExpressionContext(Dialect.DELTAFAST, **options))
    except InvalidArgumentError as error:
        return type(error), str(error)


def both(monkeypatch_context: Any, predicate: Any, **options: Any) -> tuple[Any, Any]:
    """The outcomes of binding the list as a whole, and one constant after the other."""
    whole = outcome(predicate, **options)
    with monkeypatch_context() as patched:
        patched.setattr(value_lists, "LONG_LIST", 10**9)
        return whole, outcome(predicate, **options)


RELAXED = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = [*COLUMNS, "char"]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("op", ["in", "not in"])
@RELAXED
@given(data=st.data())
def test_tuples_bind_to_the_same_tree(kind, op, data, monkeypatch):
    items = data.draw(lists(kind))
    for name in NAMES:
        whole, single = both(monkeypatch.context, [(name, op, items)], zone="Europe/Paris")
        assert whole == single


def sql_literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


SQL_KINDS = ["small integers", "integers", "all integers", "decimals", "strings", "strings of numbers"]
SQL_KINDS += ["strings of dates", "strings of timestamps"]


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("kind", SQL_KINDS)
@RELAXED
@given(data=st.data())
def test_sql_binds_to_the_same_tree(kind, ansi, data, monkeypatch):
    items = data.draw(st.lists(VALUES[kind], min_size=value_lists.LONG_LIST, max_size=value_lists.LONG_LIST + 4))
    comma = data.draw(st.sampled_from([",", " , ", ",\n"]))
    inside = comma.join(map(sql_literal, items))
    for name in NAMES:
        text = f"NOT `{name}` IN ({inside}) AND 'a IN (1, 2)' <> `string`"
        whole, single = both(monkeypatch.context, text, ansi=ansi, zone="Europe/Paris")
        assert whole == single
    with monkeypatch.context() as patched:
        text = f"`long` IN ({inside})"
        whole = listed(text, Dialect.STATEMENT)
        patched.setattr(value_lists, "LONG_LIST", 10**9)
        assert whole == listed(text, Dialect.STATEMENT)


ARROW_TYPES = {
    "small integers": [pa.int16(), pa.int64()],
    "integers": [pa.int64()],
    "floats": [pa.float64()],
    "floats with NaN": [pa.float64()],
    "strings": [pa.string(), pa.large_string()],
    "bytes": [pa.binary()],
    "booleans": [pa.bool_()],
    "dates": [pa.date32(), pa.date64()],
    "timestamps": [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s")],
    "timestamps in zones": [pa.timestamp("us", "UTC")],
}
POLARS_KINDS = ["small integers", "integers", "floats", "floats with NaN", "strings", "booleans", "dates", "timestamps"]


@pytest.mark.parametrize("kind", ARROW_TYPES)
@RELAXED
@given(data=st.data())
def test_arrow_expressions_bind_to_the_same_tree(kind, data, monkeypatch):
    for arrow_type in ARROW_TYPES[kind]:
        items = data.draw(lists(kind))
        try:
            array = pa.array(items, arrow_type)
        except pa.ArrowInvalid:  # timestamps with parts of a second
            array = pa.array([item and item.replace(microsecond=0) for item in items], arrow_type)
        for name in NAMES:
            whole, single = both(monkeypatch.context, pc.field(name).isin(array))
            assert whole == single


@pytest.mark.parametrize("nulls_equal", [False, True])
@pytest.mark.parametrize("kind", POLARS_KINDS)
@RELAXED
@given(data=st.data())
def test_polars_expressions_bind_to_the_same_tree(kind, nulls_equal, data, monkeypatch):
    items = pl.Series(data.draw(lists(kind)))
    for name in ("short", "long", "double", "string", "date", "timestamp_ntz", "decimal"):
        whole, single = both(monkeypatch.context, pl.col(name).is_in(items, nulls_equal=nulls_equal))
        assert whole == single


def test_an_empty_list_of_polars_has_no_null():
    tree = bind_predicate(pl.col("long").is_in([], nulls_equal=True), SCHEMA, ExpressionContext(Dialect.DELTAFAST))
    assert tree == bind_predicate([("long", "in", [])], SCHEMA, ExpressionContext(Dialect.DELTAFAST))
    with pytest.raises(InvalidArgumentError):
        bind_predicate(pl.col("long").is_in([[1], [2]]), SCHEMA, ExpressionContext(Dialect.DELTAFAST))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(40),
        np.arange(40, dtype=np.uint8),
        np.arange(40, dtype=np.float32),
        np.array([f"s{n}" for n in range(40)]),
        np.arange(40) % 2 == 0,
        np.arange("2026-01-01", "2026-03-01", dtype="datetime64[D]"),
        np.array(["2026-01-01", "NaT"] * 20, dtype="datetime64[us]"),
        np.array([None, 1] * 20),
        np.array([math.nan] * 40),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_numpy_bind_to_the_tree_of_their_scalars(array, monkeypatch):
    for name in NAMES:
        whole, single = both(monkeypatch.context, [(name, "in", array)])
        assert whole == single == outcome([(name, "in", list(array))])


@pytest.fixture(scope="module")
def location(tmp_path_factory):
    """A table of many files, whose bounds exclude most of them."""
    path = tmp_path_factory.mktemp("tables") / "t"
    for start in range(0, 1000, 100):
        numbers = [None if n % 17 == 0 else n for n in range(start, start + 100)]
        rows = pa.table(
            {
                "n": pa.array(numbers, pa.int64()),
                "s": [None if n is None else f"s{n:04}" for n in numbers],
                "f": pa.array([None if n is None else math.nan if n % 13 == 0 else n / 4 for n in numbers]),
                "d": pa.array([None if n is None else Decimal(n) / 4 for n in numbers], pa.decimal128(12, 2)),
                "day": pa.array([None if n is None else dt.date(2020, 1, 1) + dt.timedelta(n) for n in numbers]),
            }
        )
        write_deltalake(path, rows, mode="append")
    return path


@settings(max_examples=15, deadline=None)
@given(
    numbers=st.lists(st.integers(-50, 1100) | st.none(), min_size=40, max_size=80),
    column=st.sampled_from(["n", "s", "f", "d", "day"]),
    op=st.sampled_from(["in", "not in"]),
)
def test_a_long_list_selects_the_rows_that_its_values_select(location, numbers, column, op):
    def value(number: int | None) -> Any:
        if number is None:
            return None
        day = dt.date(2020, 1, 1) + dt.timedelta(number)
        return {"n": number, "s": f"s{number:04}", "f": number / 4, "d": Decimal(number) / 4, "day": day}[column]

    table = DeltaTable(location)
    chosen = {value(number) for number in numbers}
    rows = table.to_pyarrow_table().to_pylist()
    expected = sum((row[column] in chosen) == (op == "in") for row in rows)
    assert table.count([(column, op, [value(number) for number in numbers])]) == expected
    if op == "in" and None not in chosen:
        assert table.scan_polars().filter(pl.col(column).is_in(list(chosen))).collect().height == expected
        dataset = table.to_pyarrow_dataset()
        kind = dataset.schema.field(column).type
        assert dataset.count_rows(pc.field(column).isin(pa.array(list(chosen), kind))) == expected
        if column in ("n", "s", "d"):
            assert table.count(f"{column} in ({', '.join(sql_literal(item) for item in chosen)})") == expected


@pytest.mark.parametrize("kind", ["integers", "strings", "sql", "numpy", "arrow"])
def test_binding_a_list_of_100_000_values_takes_no_node_for_each(kind):
    numbers = [n * 7 % 1_000_003 for n in range(100_000)]
    predicate: Any = {
        "integers": [("long", "in", numbers)],
        "strings": [("string", "in", [f"s{n}" for n in numbers])],
        "sql": f"`long` in ({', '.join(map(str, numbers))})",
        "numpy": [("long", "in", np.array(numbers))],
        "arrow": pc.field("long").isin(pa.array(numbers)),
    }[kind]
    begun = time.process_time()
    tree = bind_predicate(predicate, SCHEMA, ExpressionContext(Dialect.DELTAFAST))
    # 0.05 to 0.1 seconds; one node for each value took 5.
    assert time.process_time() - begun < 1.5
    assert "in" in str(tree)[:200]


#: Each fits into a byte, so that no cast stays one for each value.
NUMBERS = range(1, 101)
DATES = [dt.date(2000, 1, 1) + dt.timedelta(days=n) for n in NUMBERS]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    "values",
    [
        list(NUMBERS),
        [float(n) for n in NUMBERS],
        [Decimal(n) for n in NUMBERS],
        [Decimal(n) / 4 for n in NUMBERS],
        [str(n) for n in NUMBERS],
        [str(date) for date in DATES],
        DATES,
        [dt.datetime.combine(date, dt.time()) for date in DATES],
    ],
    ids=["integers", "floats", "whole decimals", "decimals", "strings", "strings of dates", "dates", "timestamps"],
)
def test_the_core_casts_a_list_as_a_whole(column, values, monkeypatch):
    calls = []
    cast = _core.cast_constants
    monkeypatch.setattr(_core, "cast_constants", lambda *args, **options: calls.append(args) or cast(*args, **options))
    outcome([(column, "in", values)])
    assert len(calls) < 10
