"""Moving casts to literals changes no answer: random comparisons, before and after, on DuckDB."""

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from deltafast.expr import UnsupportedExpressionError, read_schema
from deltafast.expr.binder import Binder
from deltafast.expr.parser import parse
from deltafast.expr.render import to_duckdb_sql
from deltafast.expr.simplify import simplify
from python.expr.conftest import field, table

SCHEMA = read_schema(
    table(
        field("by", "byte"),
        field("i", "integer"),
        field("l", "long"),
        field("f", "float"),
        field("d", "double"),
        field("dec", "decimal(6,2)"),
        field("dt", "date"),
        field("ntz", "timestamp_ntz"),
    )
)

whole = st.integers(-130, 130) | st.sampled_from([2**31 - 1, -(2**31), 2**31, 2**63 - 1, 2**53 + 1, 10**20])
fractional = st.decimals(-200, 200, places=3).map(str)
doubles = st.floats(-200, 200, width=32).map(lambda x: f"{x!r}D") | st.floats(-200, 200).map(lambda x: f"{x!r}D")
suffixed = whole.filter(lambda x: abs(x) < 2**63).map(lambda x: f"{x}L")
days = st.dates().filter(lambda x: x.year > 999).map(lambda x: f"date'{x}'")
moments = st.datetimes().filter(lambda x: x.year > 999).map(
    lambda x: f"timestamp_ntz'{x.isoformat(' ')}'"
) | st.dates().filter(lambda x: x.year > 999).map(lambda x: f"timestamp_ntz'{x} 00:00:00'")
numbers = whole.map(str) | fractional | doubles | suffixed
comparisons = st.one_of(
    st.tuples(st.sampled_from(["by", "i", "l", "f", "d", "dec"]), numbers),
    st.tuples(st.sampled_from(["dt", "ntz"]), days | moments),
)
ROW = {
    "by": "TINYINT",
    "i": "INTEGER",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "dec": "DECIMAL(6,2)",
    "dt": "DATE",
    "ntz": "TIMESTAMP",
}


@settings(max_examples=400, deadline=None)
@given(comparisons, st.sampled_from(["=", "<=>", "<", "<=", ">", ">=", "!=", "in", "flipped"]), st.data())
def test_a_comparison_keeps_its_answer(pair, op, data):
    column, literal = pair
    if op == "in":
        text = f"{column} in ({literal}, null, {data.draw(st.just(literal))})"
    elif op == "flipped":
        text = f"{literal} < {column}"
    else:
        text = f"{column} {op} {literal}"
    plain = Binder(SCHEMA, text).predicate(parse(text))
    moved = simplify(plain, "UTC")
    try:
        before, after = to_duckdb_sql(simplify_membership(plain)), to_duckdb_sql(moved)
    except UnsupportedExpressionError:
        return
    for value in near(column, literal):
        row = f"SELECT CAST({value} AS {ROW[column]}) AS {column}"
        assert duckdb.sql(f"SELECT ({before}) IS NOT DISTINCT FROM ({after}) FROM ({row})").fetchall() == [(True,)], (
            value
        )


def simplify_membership(node):
    """The internal `in` call has no rendering: as comparisons, still with the casts on the column."""
    from deltafast.expr.tree import Call, call, joined

    match node:
        case Call(f="in", args=(value, *items)):
            return joined("or", [call("=", value, i) for i in items])
        case Call(f=f, args=args, type=kind):
            return Call(f, tuple(simplify_membership(a) for a in args), kind)
        case _:
            return node


def near(column, literal):
    """Values of the column around the literal, where an answer would turn."""
    if column in ("dt", "ntz"):
        text = literal[literal.index("'") + 1 : -1]
        steps = ("-1", "0", "1")
        return [
            "NULL",
            *(f"(TIMESTAMP '{text}' + INTERVAL ({n}) {unit})" for n in steps for unit in ("DAY", "MICROSECOND")),
        ]
    text = literal.rstrip("DL")
    limits = {"by": 127, "i": 2**31 - 1, "l": 2**63 - 1, "dec": 9999}
    value = float(text)
    limit = limits.get(column, 10**30)
    clipped = min(max(value, -limit), limit)
    if column in ("f", "d"):
        return ["NULL", "'NaN'::DOUBLE", repr(value), repr(value + 1), repr(value - 1)]
    base = int(clipped)
    return ["NULL", *(str(min(max(base + n, -limit), limit)) for n in (-1, 0, 1))]
