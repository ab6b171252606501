"""Rendered SQL: Spark's binds back, DuckDB's is certain or refused."""

import pytest

from deltafast.expr import UnsupportedExpressionError, bind_expression, bind_predicate
from deltafast.expr.render import to_duckdb_sql, to_spark_sql


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
    tree = bind_predicate(text, bind.schema)
    assert bind_predicate(to_spark_sql(tree), bind.schema) == tree


def test_names_are_quoted_for_both():
    from python.expr.conftest import field, table

    schema = table(field('a`b"c', "integer"))
    tree = bind_predicate([('a`b"c', "=", 1)], schema)
    assert to_spark_sql(tree) == '(`a``b"c` = 1)'
    assert to_duckdb_sql(tree) == '("a`b""c" = CAST(\'1\' AS INTEGER))'


def test_duckdb_text_cannot_be_broken_out_of(bind):
    tree = bind_predicate([("s", "=", "x' OR '1'='1")], bind.schema)
    assert to_duckdb_sql(tree) == "(\"s\" = 'x'' OR ''1''=''1')"


@pytest.mark.parametrize(
    "text",
    [
        "upper(s) = 'A'",
        "s like p",
        r"s like 'a\\b'",
        "cast(d as int) = 1",
        "cast(s as int) = 1",
        "cast(ts as date) = dt",
        "dec / 3 = 1",
        "dec2 * dec2 = 1",
        "s rlike 'a'",
        r"s = 'a\0b'",
        "date_trunc('HOUR', ts) = ts",
        "round(d) = 1",
    ],
)
def test_what_has_no_certain_duckdb_form_is_refused(bind, text):
    with pytest.raises(UnsupportedExpressionError, match="no certain form in DuckDB"):
        to_duckdb_sql(bind_predicate(text, bind.schema))


def test_arithmetic_without_ansi_errors_has_no_duckdb_form(bind):
    assert to_duckdb_sql(bind_expression("i + 1", bind.schema))
    with pytest.raises(UnsupportedExpressionError, match="without ANSI errors"):
        to_duckdb_sql(bind_expression("i + 1", bind.schema, ansi=False))
