"""Polars expressions: translated where both mean the same, refused where not."""

# Times without a zone, and comparisons with NaN, are what is tested.
# ruff: noqa: DTZ001, PLW0177

import datetime as dt
import decimal
import warnings

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltafast._expr import UnsupportedExpressionError, bind_predicate
from deltafast._expr.context import ExpressionContext
from deltafast.exceptions import InvalidArgumentError
from python.expr.conftest import field, table

C = pl.col


@pytest.mark.parametrize(
    ("expression", "bound"),
    [
        (C("i") == 1, "(`i` = 1)"),
        ((C("i") > 1) & (C("s") != "x"), "((`i` > 1) AND (NOT (`s` = 'x')))"),
        ((C("i") > 1) | C("b"), "((`i` > 1) OR `b`)"),
        (~C("b"), "(NOT `b`)"),
        (C("i").is_in([1, 2]), "(`i` IN (1, 2))"),
        (C("s").is_in(["x"]), "(`s` IN ('x'))"),
        (C("dt").is_in([dt.date(2024, 1, 31)]), "(`dt` IN (DATE '2024-01-31'))"),
        (C("i").is_in(pl.Series([1, 2], dtype=pl.Int8)), "(`i` IN (1, 2))"),
        (C("i").is_null(), "(`i` IS NULL)"),
        (C("i").is_not_null(), "(`i` IS NOT NULL)"),
        (C("i").is_between(1, 5), "((`i` >= 1) AND (`i` <= 5))"),
        (C("i").is_between(1, 5, closed="none"), "((`i` > 1) AND (`i` < 5))"),
        (C("i").eq_missing(3), "(`i` <=> 3)"),
        (C("i").ne_missing(3), "(NOT (`i` <=> 3))"),
        (C("s").str.starts_with("a"), "startswith(`s`, 'a')"),
        (C("s").str.ends_with("a"), "endswith(`s`, 'a')"),
        (C("s").str.contains("a.c", literal=True), "contains(`s`, 'a.c')"),
        (C("st").struct.field("X") == 1, "(`st`.`X` = 1)"),
        (C("dt") > dt.date(2024, 1, 31), "(`dt` > DATE '2024-01-31')"),
        (C("ntz") > dt.datetime(2024, 1, 31), "(`ntz` > TIMESTAMP_NTZ '2024-01-31 00:00:00')"),
        (C("ts") > dt.datetime(2024, 1, 31, tzinfo=dt.UTC), "(`ts` > TIMESTAMP '2024-01-31 00:00:00+00:00')"),
        (
            C("ts") > pl.lit(dt.datetime(2024, 1, 31), dtype=pl.Datetime("ms", "UTC")),
            "(`ts` > TIMESTAMP '2024-01-31 00:00:00+00:00')",
        ),
        (C("dt").dt.year() == 2024, "(year(`dt`) = 2024)"),
        (C("dec") == decimal.Decimal("1.5"), "(`dec` = CAST(1.50BD AS DECIMAL(10,2)))"),
        (C("bin") == b"ab", "(`bin` = X'6162')"),
        (C("d") == 1.5, "(`d` = 1.5D)"),
        (C("d") == 0.1, "(`d` = 0.1D)"),
        # Polars makes a number without a type a float32 beside a column of that type, and none with a type.
        (C("f") == 0.1, "(`f` = 0.10000000149011612F)"),
        (pl.lit(1) < C("f"), "(`f` > 1.0F)"),
        (C("f").is_between(0.1, 2), "((`f` >= 0.10000000149011612F) AND (`f` <= 2.0F))"),
        (C("f") == pl.lit(0.1, dtype=pl.Float64), "(CAST(`f` AS DOUBLE) = 0.1D)"),
        (C("by") == pl.lit(3, dtype=pl.Int16), "(`by` = 3Y)"),
        (pl.lit(True), "true"),
        (pl.all_horizontal(C("i") > 1, C("b")), "((`i` > 1) AND `b`)"),
        (pl.any_horizontal(C("i") > 1, C("b")), "((`i` > 1) OR `b`)"),
        ((C("i") == 1).alias("x"), "(`i` = 1)"),
    ],
    ids=lambda x: str(x)[:60],
)
def test_an_expression_is_read_node_by_node(bind, expression, bound):
    assert bind(expression) == bound


@pytest.mark.parametrize(
    "expression",
    [
        C("i") + 1 > 2,
        C("i").cast(pl.Int64) == 1,
        C("s").str.contains("a.c"),
        C("s") == 1,
        C("ts") > dt.datetime(2024, 1, 31),
        C("dec") == 1.5,
        C("d") == float("nan"),
        C("d").is_in([float("nan")]),
        C("i") & C("j") == 1,
        C("b") ^ C("b"),
        C("i", "j") == 1,
        pl.col("^i.*$") == 1,
        C("ts").dt.year() == 2024,
        C("i").map_elements(lambda x: x, return_dtype=pl.Int64) == 1,
        pl.when(C("b")).then(1).otherwise(2) == 1,
        C("i").sum() == 1,
        C("i").is_in(C("j").implode()),
        C("dt") == dt.time(1, 2),
        C("d").is_between(1, float("nan")),
    ],
    ids=lambda x: str(x)[:60],
)
def test_what_has_no_certain_equal_is_refused(bind, expression):
    with pytest.raises(UnsupportedExpressionError):
        bind(expression)


def test_a_missing_column_is_named(bind):
    with pytest.raises(InvalidArgumentError, match="no column 'nope'"):
        bind(C("nope") == 1)


def test_other_polars_objects_are_no_predicates(bind):
    with pytest.raises(UnsupportedExpressionError, match="is not a predicate"):
        bind(pl.Series([True]))


FRAME = pl.DataFrame(
    {
        "i": pl.Series([1, 2, None, -1], dtype=pl.Int32),
        "d": [1.0, float("nan"), None, -0.0],
        "e": [float("nan"), float("nan"), 1.0, None],
        "s": ["a", "b", None, ""],
        "b": [True, False, None, True],
    }
)
FRAME_SCHEMA = table(
    field("i", "integer"), field("d", "double"), field("e", "double"), field("s", "string"), field("b", "boolean")
)

numbers = st.sampled_from([C("i"), C("d"), C("e"), pl.lit(1), pl.lit(-0.5), pl.lit(0)])
atoms = st.one_of(
    st.tuples(numbers, numbers, st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing"])).map(
        lambda t: getattr(t[0], t[2])(t[1])
    ),
    st.sampled_from(
        [
            C("b"),
            C("s") == "a",
            C("s") > "",
            C("i").is_null(),
            C("d").is_nan(),
            C("d").is_not_nan(),
            C("i").is_in([1, -1]),
            C("i").is_in([1, None]),
            C("i").is_in([1, None], nulls_equal=True),
            C("i").is_in([1], nulls_equal=True),
            C("i").is_in(pl.Series([], dtype=pl.Int32)),
            C("s").is_in(["a", None]),
            C("d").is_in([1.0, 0.0]),
            C("i").is_between(0, 1),
            C("s").str.starts_with("a"),
        ]
    ),
)
trees = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(lambda x: ~x),
        st.tuples(inner, inner).map(lambda t: t[0] & t[1]),
        st.tuples(inner, inner).map(lambda t: t[0] | t[1]),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(trees)
def test_every_translated_expression_has_polars_values(expression):
    from deltafast._core import evaluate

    try:
        tree = bind_predicate(expression, FRAME_SCHEMA, ExpressionContext())
    except UnsupportedExpressionError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = FRAME.select(v=expression).to_series()
    found = pa.table(evaluate(tree, FRAME.to_arrow()))["value"].to_pylist()
    assert found == (expected.to_list() if len(expected) > 1 else expected.to_list() * len(found))
