"""Rendered Spark SQL binds back to the same tree."""

import pytest

from deltafast._expr import bind_predicate
from deltafast._expr.context import ExpressionContext
from deltafast._expr.render import to_spark_sql


@pytest.mark.parametrize(
    "text",
    [
        r"s = 'a\'b\\c\n\t' or s = '日本'",
        "st.`in ner`.z in (1, null)",
        "d in (double('NaN'), double('-Infinity'), -0.0D, 1e-300)",
        "f = double('NaN') or f = 0.1F",
        "bin = X'00FF'",
        "ts = timestamp'12345-01-01 00:00:00.000001Z' or dt = date'-0044-03-15'",
        "dec2 in (1.5, -0.0000000001)",
        "case i when 1 then 'x' end = s",
        "trim(both 'x' from s) = ltrim('y', s)",
        "s like 'a!%' escape '!' and s rlike '^a'",
        "element_at(arr, 1) = arr[0] and arr[i + 1] = 2",
        "by = -128Y and sh = 5S and l = 7L",
        "try_cast(s as decimal(5,2)) is null",
        "ts + interval '-1 02:03:04.5' day to second > ts - interval 13 months",
        "not (b <=> null)",
        "-i = -(-5) and -d < 0",
        "i & 3 | j ^ ~id = 1",
    ],
)
def test_spark_text_binds_to_the_same_tree(bind, text):
    tree = bind_predicate(text, bind.schema, ExpressionContext())
    # As text, since 0.0 equals -0.0, and 1 equals 1.0 and True.
    assert repr(bind_predicate(to_spark_sql(tree), bind.schema, ExpressionContext())) == repr(tree)


def test_names_are_quoted():
    from python.expr.conftest import field, table

    schema = table(field('a`b"c', "integer"))
    tree = bind_predicate([('a`b"c', "=", 1)], schema, ExpressionContext())
    assert to_spark_sql(tree) == '(`a``b"c` = 1)'
