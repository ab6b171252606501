"""pyarrow expressions: read from their pickled form, with Arrow's meaning."""

# Times without a zone, and comparisons with NaN, are what is tested.
# ruff: noqa: DTZ001, PLW0177

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltafast._expr import UnsupportedExpressionError, bind_predicate
from deltafast._expr.context import ExpressionContext
from deltafast.exceptions import InvalidArgumentError
from python.expr.conftest import field, table

F = pc.field


@pytest.mark.parametrize(
    ("expression", "bound"),
    [
        (F("i") == 1, "(`i` = 1)"),
        (F("i") != 1, "(NOT (`i` = 1))"),
        ((F("i") > 1) & (F("l") <= 2), "((`i` > 1) AND (`l` <= 2L))"),
        ((F("i") > 1) | ~(F("s") == "x"), "((`i` > 1) OR (NOT (`s` = 'x')))"),
        (F("st", "X") == 1, "(`st`.`X` = 1)"),
        (F("i").isin([1, 2]), "((`i` IS NOT NULL) AND (`i` IN (1, 2)))"),
        (F("i").isin([1, None]), "((`i` IS NULL) OR ((`i` IS NOT NULL) AND (`i` IN (1))))"),
        (F("i").isin([]), "false"),
        (F("s").is_null(), "(`s` IS NULL)"),
        (F("s").is_valid(), "(`s` IS NOT NULL)"),
        (F("d").is_null(nan_is_null=True), "((`d` IS NULL) OR isnan(`d`))"),
        (pc.starts_with(F("s"), "a"), "startswith(`s`, 'a')"),
        (pc.ends_with(F("s"), "a"), "endswith(`s`, 'a')"),
        (pc.match_substring(F("s"), "a"), "contains(`s`, 'a')"),
        (pc.match_like(F("s"), "a%"), "(`s` LIKE 'a%')"),
        (F("dt") == dt.date(2024, 1, 31), "(`dt` = DATE '2024-01-31')"),
        (F("ts") > dt.datetime(2024, 1, 31, tzinfo=dt.UTC), "(`ts` > TIMESTAMP '2024-01-31 00:00:00+00:00')"),
        (F("ntz") > dt.datetime(2024, 1, 31), "(`ntz` > TIMESTAMP_NTZ '2024-01-31 00:00:00')"),
        (F("ts") > pa.scalar(1, pa.timestamp("s", "UTC")), "(`ts` > TIMESTAMP '1970-01-01 00:00:01+00:00')"),
        (F("ts") > pa.scalar(1000, pa.timestamp("ns", "UTC")), "(`ts` > TIMESTAMP '1970-01-01 00:00:00.000001+00:00')"),
        (F("dec") == decimal.Decimal("1.5"), "(`dec` = CAST(1.50BD AS DECIMAL(10,2)))"),
        (F("bin") == b"\x01", "(`bin` = X'01')"),
        (pc.scalar(True), "true"),
        (F("s") == 'it\'s "quoted" `and` odd \n', "(`s` = 'it\\'s \"quoted\" `and` odd \\n')"),
        (F("Mixed Case") == "x", "(`Mixed Case` = 'x')"),
    ],
    ids=str,
)
def test_an_expression_is_read_node_by_node(bind, expression, bound):
    assert bind(expression) == bound


@pytest.mark.parametrize(
    "expression",
    [
        F("i") + 1 > 2,
        F("i").cast(pa.int64()) == 1,
        pc.match_substring_regex(F("s"), "a.c"),
        pc.starts_with(F("s"), "a", ignore_case=True),
        F("d") == float("nan"),
        F("s") == 1,
        pc.if_else(F("b"), True, False),
        pc.xor(F("b"), F("b")),
        F("ntz") == pa.scalar(1, pa.timestamp("ns")),
        pc.is_in(F("i"), pa.array([1]), skip_nulls=True),
    ],
    ids=str,
)
def test_what_has_no_certain_equal_is_refused(bind, expression):
    with pytest.raises(UnsupportedExpressionError):
        bind(expression)


def test_a_missing_column_is_named(bind):
    with pytest.raises(InvalidArgumentError, match="no column 'nope'"):
        bind(F("nope") == 1)


def test_other_pyarrow_objects_are_no_predicates(bind):
    with pytest.raises(UnsupportedExpressionError, match="is not a predicate"):
        bind(pa.array([True]))


def test_a_deep_expression_is_refused_and_a_long_list_is_not(bind):
    deep = F("b")
    for _ in range(300):
        deep = ~deep
    with pytest.raises(UnsupportedExpressionError, match="nests more than 200"):
        bind(deep)
    assert bind(F("i").isin(list(range(10_000)))).count(",") == 9_999


ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 1], pa.int32()),
        "d": pa.array([1.0, float("nan"), None, 2.0]),
        "e": pa.array([float("nan"), float("nan"), 1.0, None]),
        "z": pa.array([0.0, -0.0, None, -1.0]),
        "s": pa.array(["a", "b", None, ""]),
    }
)
ROWS_SCHEMA = table(
    field("i", "integer"), field("d", "double"), field("e", "double"), field("z", "double"), field("s", "string")
)


@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(("left", "right"), [("d", 1.5), (1.5, "d"), ("d", "e"), ("e", "d"), ("d", "i"), ("i", "d")])
def test_comparisons_with_nan_and_null_are_arrows(op, negated, left, right):
    import operator

    from deltafast._core import evaluate

    ops = {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    sides = [F(x) if isinstance(x, str) else pc.scalar(x) for x in (left, right)]
    expression = ops[op](*sides)
    if negated:
        expression = ~expression
    found = pa.table(evaluate(bind_predicate(expression, ROWS_SCHEMA, ExpressionContext()), ROWS))["value"].to_pylist()
    assert found == arrow_values(expression)


@pytest.mark.parametrize(
    "expression",
    [
        F("d").isin([1.0]),
        ~F("d").isin([1.0, None]),
        *(F("z").isin(values) for values in ([0.0], [-0.0], [0.0, -0.0], [0, 1], [-0.0, -1.0], [None, -0.0])),
        ~F("z").isin([-0.0, 7.0]),
        pc.is_nan(F("d")),
        ~pc.is_nan(F("d")),
        ~F("d").is_null(nan_is_null=True),
    ],
    ids=str,
)
def test_functions_on_nan_and_null_are_arrows(expression):
    from deltafast._core import evaluate

    found = pa.table(evaluate(bind_predicate(expression, ROWS_SCHEMA, ExpressionContext()), ROWS))["value"].to_pylist()
    assert found == arrow_values(expression)


def arrow_values(expression):
    import pyarrow.dataset as ds

    return ds.dataset(ROWS).to_table(columns={"v": expression})["v"].to_pylist()
