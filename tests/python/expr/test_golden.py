"""Every expression of the golden file, against Spark's answers: its type and its values."""

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from deltafast._core_types import BoundTree
from deltafast._expr import UnsupportedExpressionError, bind_expression, types
from deltafast._expr.context import ExpressionContext
from deltafast._expr.render import to_spark_sql
from deltafast._expr.tree import Bound
from deltafast.exceptions import InvalidArgumentError
from golden.expressions.decode import (
    MODES,
    Golden,
    Outcome,
    Raised,
    array,
    arrow_type,
    comparable,
    goldens,
    rows,
    schema,
)

HERE = Path(__file__).parent


def listed() -> dict[str, set[str]]:
    """`refused.txt`: who refuses an expression, and the expression."""
    out: dict[str, set[str]] = defaultdict(set)
    for line in (HERE / "refused.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            who, _, text = line.partition(": ")
            out[who].add(text)
    return out


REFUSED = listed()
BINDABLE = [g for g in goldens() if g.text not in REFUSED["binder"]]


def bound(golden: Golden):
    """The tree and Spark's outcome for each mode in which both have the expression."""
    for (ansi, zone), outcome in zip(MODES, golden.outcomes, strict=True):
        try:
            tree = Bound.from_tree(bind_expression(golden.text, schema(), ExpressionContext(ansi=ansi, zone=zone)))
        except UnsupportedExpressionError:
            raise
        except InvalidArgumentError:
            # What is wrong for both needs no list; what is wrong only for us is a failure.
            assert isinstance(outcome.rows, Raised), f"Spark evaluates it: {golden.text}"
            continue
        assert not isinstance(outcome.rows, Raised), f"Spark refuses it with {outcome.rows}: {golden.text}"
        yield tree, zone, outcome


def test_the_golden_file_is_as_large_as_promised():
    assert len(goldens()) >= 1300
    assert all(len(g.outcomes) == len(MODES) for g in goldens())
    assert rows().num_rows == 12


@pytest.mark.parametrize("golden", BINDABLE, ids=lambda g: g.text)
def test_the_bound_type_is_sparks_type(golden: Golden):
    for tree, _, outcome in bound(golden):
        found = types.sql_name(tree.expr.type).lower().replace(" ", "")
        assert found == outcome.type.replace("string collate utf8_binary", "string")


@pytest.mark.parametrize("golden", BINDABLE, ids=lambda g: g.text)
def test_rendered_spark_sql_binds_to_the_same_tree(golden: Golden):
    for tree, zone, _ in bound(golden):
        again = bind_expression(to_spark_sql(tree), schema(), ExpressionContext(ansi=tree.ansi, zone=zone))
        if not tree.ansi and "size(" in to_spark_sql(tree):
            continue  # without ANSI errors size() itself becomes coalesce(size(), -1), each time it is bound
        assert repr(again) == repr(tree.to_tree())  # 0.0 equals -0.0, and 1 equals 1.0 and True


def test_only_listed_expressions_are_refused():
    refused = set()
    for golden in goldens():
        try:
            list(bound(golden))
        except UnsupportedExpressionError:
            refused.add(golden.text)
    assert refused == REFUSED["binder"], "refused.txt of tests/python/expr lists exactly what the binder refuses"


@pytest.mark.parametrize(
    "golden", [g for g in BINDABLE if g.text not in REFUSED["core"] | REFUSED["early"]], ids=lambda g: g.text
)
def test_the_core_gives_sparks_answers(golden: Golden):
    from deltafast._core import evaluate

    for tree, _, outcome in bound(golden):
        bound_tree = tree.to_tree()

        def run(row: int | None = None, bound_tree: BoundTree = bound_tree):
            table = rows() if row is None else rows().slice(row, 1)
            try:
                return pa.table(evaluate(bound_tree, table))["value"]
            except (InvalidArgumentError, pa.ArrowInvalid) as error:
                return error  # raised while the tree is read, or handed through the Arrow stream

        same(outcome, run, Exception)


def test_what_is_listed_as_refused_by_the_core_is_refused():
    from deltafast._core import evaluate
    from deltafast.exceptions import DeltaError

    for golden in (g for g in goldens() if g.text in REFUSED["core"]):
        for tree, _, _ in bound(golden):
            with pytest.raises(DeltaError, match="not supported"):
                evaluate(tree.to_tree(), rows())


@pytest.mark.parametrize("text", sorted(REFUSED["early"]))
def test_what_is_listed_as_raising_early_raises_without_a_row(text: str):
    from deltafast._core import evaluate

    golden = next(g for g in goldens() if g.text == text)
    for tree, _, outcome in bound(golden):
        assert any(isinstance(v, Raised) for v in outcome.rows)
        with pytest.raises(InvalidArgumentError):
            evaluate(tree.to_tree(), rows().slice(0, 0))


def same(outcome: Outcome, run, error: type[Exception]) -> None:
    """The values and errors of every row are Spark's; `run` takes a row or nothing."""
    expected = outcome.rows
    assert not isinstance(expected, Raised)
    if not any(isinstance(v, Raised) for v in expected):
        found = run()
        assert not isinstance(found, Exception), found
        same_type(found.type, arrow_type(outcome.type))
        assert comparable(found) == comparable(array(expected, arrow_type(outcome.type)))
        return
    for row, value in enumerate(expected):
        found = run(row=row)
        if isinstance(value, Raised):
            assert isinstance(found, error), f"row {row + 1}: {found} instead of {value.condition}"
            continue
        assert not isinstance(found, Exception), f"row {row + 1}: {found}"
        assert comparable(found) == comparable(array([value], arrow_type(outcome.type))), f"row {row + 1}"


def same_type(found: pa.DataType, expected: pa.DataType) -> None:
    """Equal, but for the zone's name, views and nested field names, which mean nothing."""
    if pa.types.is_timestamp(expected):
        assert pa.types.is_timestamp(found)
        assert (found.tz is None) == (expected.tz is None)
    elif pa.types.is_nested(expected):
        assert pa.types.is_nested(found)
    elif pa.types.is_string(expected):
        assert pa.types.is_string(found) or pa.types.is_string_view(found)
    elif pa.types.is_binary(expected):
        assert pa.types.is_binary(found) or pa.types.is_binary_view(found)
    else:
        assert found == expected
