"""Tuple filters, as deltalake and pyarrow take them."""

# Times without a zone are what is tested.
# ruff: noqa: DTZ001

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltafast._expr.context import ExpressionContext
from deltafast.exceptions import InvalidArgumentError


@pytest.mark.parametrize(
    ("filters", "bound"),
    [
        ([("i", "=", 1)], "(`i` = 1)"),
        ([("i", "==", 1)], "(`i` = 1)"),
        (("i", "=", 1), "(`i` = 1)"),
        ([("i", "!=", 1)], "(NOT (`i` = 1))"),
        ([("i", "<>", 1)], "(NOT (`i` = 1))"),
        ([("i", "<", 1), ("l", ">=", 2)], "((`i` < 1) AND (`l` >= 2L))"),
        ([[("i", "<=", 1)], [("i", ">", 5)]], "((`i` <= 1) OR (`i` > 5))"),
        ([[("i", "=", 1), ("b", "=", True)], [("s", "=", "x")]], "(((`i` = 1) AND (`b` = true)) OR (`s` = 'x'))"),
        ([], "true"),
        ([("I", "=", 1)], "(`i` = 1)"),
        ([("st.x", "=", 1)], "(`st`.`X` = 1)"),
        ([("i", "=", None)], "(`i` IS NULL)"),
        ([("i", "!=", None)], "(`i` IS NOT NULL)"),
        ([("i", " NOT  IN ", [])], "(NOT false)"),
        ([("i", "in", {1})], "((`i` IS NOT NULL) AND (`i` IN (1)))"),
        ([("i", "in", [1, None])], "((`i` IS NULL) OR ((`i` IS NOT NULL) AND (`i` IN (1))))"),
        ([("i", "in", [None])], "(`i` IS NULL)"),
        ([("i", "in", np.array([1, 2]))], "((`i` IS NOT NULL) AND (`i` IN (1, 2)))"),
        # texts are read in the column's type
        ([("dt", "=", "2024-01-31")], "(`dt` = DATE '2024-01-31')"),
        ([("i", ">", "5")], "(`i` > 5)"),
        ([("dec", "=", "2.5")], "(`dec` = CAST(2.50BD AS DECIMAL(10,2)))"),
        ([("b", "=", "true")], "(`b` = true)"),
        ([("ts", "=", "2024-01-31 12:00:00")], "(`ts` = TIMESTAMP '2024-01-31 12:00:00+00:00')"),
        ([("dt", "in", ["2024-01-31"])], "((`dt` IS NOT NULL) AND (`dt` IN (DATE '2024-01-31')))"),
        # Python's values
        ([("dt", "=", dt.date(2024, 1, 31))], "(`dt` = DATE '2024-01-31')"),
        ([("ntz", "=", dt.datetime(2024, 1, 31, 12))], "(`ntz` = TIMESTAMP_NTZ '2024-01-31 12:00:00')"),
        ([("ts", "=", dt.datetime(2024, 1, 31, 12))], "(`ts` = TIMESTAMP '2024-01-31 12:00:00+00:00')"),
        ([("ts", "=", dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC))], "(`ts` = TIMESTAMP '2024-01-31 12:00:00+00:00')"),
        (
            [("ts", "=", pd.Timestamp("2024-01-31 12:00", tz="Europe/Paris"))],
            "(`ts` = TIMESTAMP '2024-01-31 11:00:00+00:00')",
        ),
        ([("dt", "=", np.datetime64("2024-01-31"))], "(`dt` = DATE '2024-01-31')"),
        ([("ntz", "=", np.datetime64("2024-01-31T12:00", "ns"))], "(`ntz` = TIMESTAMP_NTZ '2024-01-31 12:00:00')"),
        ([("dec", "=", decimal.Decimal("2.50"))], "(`dec` = CAST(2.50BD AS DECIMAL(10,2)))"),
        ([("bin", "=", b"\x01")], "(`bin` = X'01')"),
        ([("i", "=", np.int64(3))], "(`i` = 3)"),
        ([("d", "<", np.float32(1.5))], "(`d` < 1.5D)"),
        ([("i", "=", 2**40)], "(CAST(`i` AS BIGINT) = 1099511627776L)"),
    ],
)
def test_tuples_are_a_conjunction_and_lists_of_them_a_disjunction(bind, filters, bound):
    assert bind(filters) == bound


def test_a_timestamp_without_zone_is_read_in_the_session_zone(bind):
    for value in ("2024-07-01 00:00:00", dt.datetime(2024, 7, 1)):
        bound = bind([("ts", ">=", value)], zone="America/New_York")
        assert bound == "(`ts` >= TIMESTAMP '2024-07-01 04:00:00+00:00')"


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([("i", "~", 1)], "unknown operator '~'"),
        ([("nope", "=", 1)], "no column 'nope'"),
        ([("dt", "=", "yesterday")], "'yesterday' is not of type DATE, which the column 'dt' has"),
        ([("i", "=", "1.5")], "'1.5' is not of type INT"),
        ([("i", "<", None)], "None cannot be ordered"),
        ([("i", "in", "abc")], r"'in' takes a list of values"),
        ([("i", "in", 5)], r"'in' takes a list of values"),
        ([("d", "=", float("nan"))], "cannot compare with NaN"),
        ([("i", "=", object())], "no SQL literal for <object"),
        ([("i", "=", 10**40)], "more than 38 digits"),
        ([("ntz", "=", pd.Timestamp("2024-01-01 00:00:00.000000001"))], "nanoseconds"),
        ([("i", "=")], "not a filter"),
        (["i = 1"], "not a filter"),
        ([1], "not a filter"),
    ],
)
def test_a_wrong_filter_is_one_clear_error(bind, filters, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bind(filters)


@pytest.mark.parametrize(
    "filters",
    [
        [("d", ">", 1.0)],
        [("d", ">=", 1.0)],
        [("d", "<", 1.0)],
        [("d", "!=", 1.0)],
        [("d", "in", [1.0, 2.0])],
        [("d", "not in", [1.0])],
        [("i", "not in", [1])],
        [("i", "in", [1, None])],
        [("i", "!=", 1)],
        [[("i", "=", 1)], [("s", "=", "b")]],
    ],
)
def test_rows_are_those_that_pyarrow_keeps(filters):
    from deltafast._core import evaluate
    from deltafast._expr import bind_predicate
    from python.expr.conftest import field, table

    rows = pa.table(
        {
            "i": pa.array([1, 2, None, 1], pa.int32()),
            "d": pa.array([1.0, float("nan"), None, 2.0]),
            "s": pa.array(["a", "b", None, ""]),
        }
    )
    schema = table(field("i", "integer"), field("d", "double"), field("s", "string"))
    kept = pa.table(evaluate(bind_predicate(filters, schema, ExpressionContext()), rows))["value"].to_pylist()
    expected = rows.filter(pq.filters_to_expression(filters))
    assert repr(rows.filter(pa.array(kept)).to_pylist()) == repr(expected.to_pylist())
