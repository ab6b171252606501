"""Filters on base columns of generated columns."""

# Times without a zone are what is tested.
# ruff: noqa: DTZ001

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltafast._expr import bind_predicate
from deltafast._expr.context import ExpressionContext
from deltafast._expr.generated import add_generated_partition_filters
from deltafast._expr.render import to_spark_sql
from python.expr.conftest import field, table


def generated(name, kind, expression):
    return field(name, kind, **{"delta.generationExpression": expression})


SCHEMA = table(
    field("ts", "timestamp"),
    field("ntz", "timestamp_ntz"),
    field("d", "date"),
    field("s", "string"),
    field("n", "integer"),
    generated("day", "date", "CAST(ts AS DATE)"),
    generated("nday", "date", "CAST(ntz AS DATE)"),
    generated("dyear", "integer", "YEAR(d)"),
    generated("dmonth", "string", "date_format(d, 'yyyy-MM')"),
    generated("hour", "timestamp", "date_trunc('HOUR', ts)"),
    generated("prefix", "string", "SUBSTRING(s, 1, 2)"),
    generated("odd", "integer", "n % 7"),
    generated("strange", "integer", "unknown_function(n)"),
)
PARTS = table(
    field("ntz", "timestamp_ntz"),
    generated("y", "integer", "YEAR(ntz)"),
    generated("m", "integer", "MONTH(ntz)"),
    generated("d", "integer", "DAY(ntz)"),
    generated("h", "integer", "HOUR(ntz)"),
)


def implied(text, schema=SCHEMA, **settings_):
    tree = bind_predicate(text, schema, ExpressionContext())
    before, after = to_spark_sql(tree), to_spark_sql(add_generated_partition_filters(tree, schema, **settings_))
    if before == after:
        return ""
    assert after.startswith(f"({before} AND ")
    return after[len(before) + 6 : -1]


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("ntz >= '2024-03-10 12:00:00'", "(`nday` >= DATE '2024-03-10')"),
        ("ntz < '2024-03-10 12:00:00'", "(`nday` <= DATE '2024-03-10')"),
        ("ntz = '2024-03-10 12:00:00'", "(`nday` = DATE '2024-03-10')"),
        ("d = '2024-03-10'", "(`dyear` = 2024) AND (`dmonth` = '2024-03')"),
        ("d > '2024-03-10'", "(`dyear` >= 2024) AND (`dmonth` >= '2024-03')"),
        ("d is null", "(`dyear` IS NULL) AND (`dmonth` IS NULL)"),
        ("d in ('2024-03-10', '2023-01-01')", None),
        ("s = 'hello'", "(`prefix` = 'he')"),
        ("s < 'hello'", "(`prefix` <= 'he')"),
        ("n = 5", ""),
        ("s != 'hello'", ""),
        ("s = 'hello' or n = 5", ""),
        ("s = 'hello' or s = 'world'", "((`prefix` = 'he') OR (`prefix` = 'wo'))"),
        ("not (s = 'hello')", ""),
    ],
)
def test_a_filter_implies_bounds_on_what_is_made_from_its_column(text, added):
    found = implied(text)
    if added is None:
        assert "`dyear` >= 2023" in found
        assert "`dyear` <= 2024" in found
    else:
        assert found == added


def test_an_instant_is_widened_by_every_zone_a_writer_may_have_had():
    found = implied("ts >= '2024-03-10 12:00:00'")
    assert "(`day` >= DATE '2024-03-09')" in found
    assert "(`hour` >= TIMESTAMP '2024-03-09 04:00:00+00:00')" in found
    assert "(`day` <= DATE '2024-03-11')" in implied("ts < '2024-03-10 12:00:00'")


def test_only_the_partition_columns_get_conjuncts_when_they_are_named():
    assert implied("d = '2024-03-10'", partition_columns=["DYEAR"]) == "(`dyear` = 2024)"
    assert implied("d = '2024-03-10'", partition_columns=[]) == ""


def test_year_month_day_and_hour_are_read_as_one_number():
    found = implied("ntz > '2024-03-10 12:30:00'", PARTS)
    assert "((`y` > 2024) OR ((`y` = 2024) AND ((`m` > 3) OR ((`m` = 3) AND" in found
    assert "(`h` >= 12)" in found


def test_a_table_without_generated_columns_is_left_alone(bind):
    tree = bind_predicate("i > 1", bind.schema, ExpressionContext())
    assert repr(add_generated_partition_filters(tree, bind.schema)) == repr(tree)


def test_settings_of_the_envelope_are_kept():
    tree = bind_predicate("d > '2024-01-01'", SCHEMA, ExpressionContext(zone="Asia/Tokyo", ansi=False))
    envelope = add_generated_partition_filters(tree, SCHEMA)
    assert (envelope["zone"], envelope["ansi"]) == ("Asia/Tokyo", False)


def answers(row, *trees):
    """What the trees say of a row, on the core."""
    from deltafast._core import evaluate

    return [pa.table(evaluate(tree, row))["value"].to_pylist() for tree in trees]


TIMESTAMPS = st.datetimes(dt.datetime(1999, 12, 30), dt.datetime(2001, 1, 2)).map(lambda x: x.replace(microsecond=0))


@settings(max_examples=200, deadline=None)
@given(TIMESTAMPS, TIMESTAMPS, st.sampled_from(["<", "<=", "=", ">=", ">", "<=>"]))
def test_no_row_that_matches_is_lost(row, bound, op):
    tree = bind_predicate(f"ntz {op} timestamp_ntz'{bound}'", PARTS, ExpressionContext())
    both = add_generated_partition_filters(tree, PARTS)
    parts = zip("ymdh", (row.year, row.month, row.day, row.hour), strict=True)
    columns = {"ntz": pa.array([row], pa.timestamp("us"))} | {name: pa.array([n], pa.int32()) for name, n in parts}
    before, after = answers(pa.table(columns), tree, both)
    assert before == after


@settings(max_examples=200, deadline=None)
@given(
    st.text("ab é日\U0001f600", max_size=4),
    st.text("ab é日\U0001f600", max_size=4),
    st.sampled_from(["<", "<=", "=", ">=", ">"]),
)
def test_no_text_that_matches_is_lost(row, bound, op):
    tree = bind_predicate([("s", op, bound)], SCHEMA, ExpressionContext())
    both = add_generated_partition_filters(tree, SCHEMA)
    before, after = answers(pa.table({"s": [row], "prefix": [row[:2]]}), tree, both)
    assert before == after
