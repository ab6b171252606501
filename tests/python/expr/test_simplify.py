"""Moving casts to literals changes no answer: random comparisons, before and after, on the core."""

# Times without a zone are what is tested.
# ruff: noqa: DTZ001

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from deltafast._core import evaluate
from deltafast._expr import read_schema
from deltafast._expr.binder import Binder
from deltafast._expr.context import ExpressionContext
from deltafast._expr.parser import parse
from deltafast._expr.simplify import simplify
from deltafast._expr.tree import Bound
from deltafast._util.dialect import Dialect
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
# Some are numbers of FLOAT, some lie between two of them. Few digits: of many see `test_literals`.
doubles = st.integers(-12_800, 12_800).map(lambda n: f"{n / 64!r}D") | st.integers(-200_000, 200_000).map(
    lambda n: f"{n / 1000!r}D"
)
suffixed = whole.filter(lambda x: abs(x) < 2**63).map(lambda x: f"{x}L")
days = st.dates().filter(lambda x: x.year > 999).map(lambda x: f"date'{x}'")
timestamps = st.datetimes().filter(lambda x: x.year > 999).map(
    lambda x: f"timestamp_ntz'{x.isoformat(' ')}'"
) | st.dates().filter(lambda x: x.year > 999).map(lambda x: f"timestamp_ntz'{x} 00:00:00'")
numbers = whole.map(str) | fractional | doubles | suffixed
comparisons = st.one_of(
    st.tuples(st.sampled_from(["by", "i", "l", "f", "d", "dec"]), numbers),
    st.tuples(st.sampled_from(["dt", "ntz"]), days | timestamps),
)
ROW = {
    "by": pa.int8(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "dec": pa.decimal128(6, 2),
    "dt": pa.date32(),
    "ntz": pa.timestamp("us"),
}
DAY = 86_400_000_000  # microseconds


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
    plain = Binder(SCHEMA, text, ExpressionContext()).predicate(parse(text, dialect=Dialect.SPARK))
    moved = simplify(plain, "UTC")
    rows = pa.table({column: near(column, literal)})
    before, after = (
        pa.table(evaluate(Bound(tree).to_tree(), rows))["value"].to_pylist()
        for tree in (simplify_membership(plain), moved)
    )
    assert before == after, rows


def simplify_membership(node):
    """The internal `in` call is in no bound tree: as comparisons, still with the casts on the column."""
    from deltafast._expr.tree import Call, call, joined

    match node:
        case Call(f="in", args=(value, *items)):
            return joined("or", [call("=", value, i) for i in items])
        case Call(f=f, args=args, type=kind):
            return Call(f, tuple(simplify_membership(a) for a in args), kind)
        case _:
            return node


def near(column, literal):
    """Values of the column around the literal, where an answer would turn."""
    kind = ROW[column]
    if column in ("dt", "ntz"):
        timestamp = dt.datetime.fromisoformat(literal[literal.index("'") + 1 : -1]) - dt.datetime(1970, 1, 1)
        micro = timestamp // dt.timedelta(microseconds=1)
        around = [micro + n for n in (-DAY, -1, 0, 1, DAY)]
        if column == "dt":
            return pa.array([None, *(n // DAY for n in around)], pa.int32()).cast(kind)
        return pa.array([None, *around], pa.int64()).cast(kind)
    text = literal.rstrip("DL")
    if column in ("f", "d"):
        value = float(text)
        return pa.array([None, float("nan"), value, value + 1, value - 1], pa.float64()).cast(kind)
    value = Decimal(text)
    if column == "dec":
        value = min(max(value, Decimal("-9998.99")), Decimal("9998.99"))
        return pa.array([None, *(round(value + Decimal(n) / 100, 2) for n in (-100, -1, 0, 1, 100))], kind)
    limit = 2 ** (kind.bit_width - 1)
    return pa.array([None, *(min(max(int(value) + n, -limit), limit - 1) for n in (-1, 0, 1))], kind)
