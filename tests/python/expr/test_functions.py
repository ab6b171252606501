"""The table of functions is closed and complete."""

import re

import pytest

from deltafast._core import function_names
from deltafast._expr import bind_expression, bind_predicate, rules
from deltafast._expr.context import ExpressionContext
from deltafast._expr.functions import FUNCTIONS
from deltafast._expr.render import to_spark_sql
from deltafast._expr.tree import Bound, Call, walk
from deltafast.exceptions import InvalidArgumentError
from golden.expressions.decode import MODES, goldens, schema

#: What a tree can call.
EMITTED = set(function_names())
#: 2024-01-31 12:00:00 UTC.
NOW = 1_706_702_400_000_000
#: What depends on the time, which no file can hold: its value at `NOW` in a zone that is a day ahead by then.
CLOCK = {
    "curdate": "DATE '2024-02-01'",
    "current_date": "DATE '2024-02-01'",
    "current_timestamp": "TIMESTAMP '2024-01-31 12:00:00+00:00'",
    "localtimestamp": "TIMESTAMP_NTZ '2024-02-01 02:00:00'",
    "now": "TIMESTAMP '2024-01-31 12:00:00+00:00'",
}


def emitted_by_the_golden_file() -> set[str]:
    found = set()
    for golden in goldens():
        for ansi, zone in MODES:
            try:
                tree = Bound.from_tree(bind_expression(golden.text, schema(), ExpressionContext(ansi=ansi, zone=zone)))
            except InvalidArgumentError:
                continue
            found |= {n.f for n in walk(tree.expr) if isinstance(n, Call)}
    return found


def test_trees_hold_no_other_names_and_each_is_proven_against_spark():
    assert emitted_by_the_golden_file() == EMITTED


def test_every_function_is_called_in_the_golden_file_but_those_of_the_clock():
    called = {name for golden in goldens() for name in re.findall(r"(?<![\w`])([a-z_0-9]+)\(", golden.text)}
    assert set(FUNCTIONS) - called == set(CLOCK), "add the rest to dev/make_expression_golden.py"


@pytest.mark.parametrize("name", sorted(CLOCK))
def test_what_depends_on_the_time_has_the_value_of_one_timestamp(name):
    column = {"date": "dt", "timestamp": "ts", "timestamp_ntz": "ntz"}[CLOCK[name].split()[0].lower()]
    tree = bind_predicate(f"{column} = {name}()", schema(), ExpressionContext(zone="Pacific/Kiritimati", now=NOW))
    assert to_spark_sql(tree) == f"(`{column}` = {CLOCK[name]})"


def test_every_function_has_either_types_or_a_rule():
    for name, spec in FUNCTIONS.items():
        if spec.rule is not None:
            assert not spec.emit or spec.emit in EMITTED, name
        else:
            assert spec.emit in EMITTED, name
            assert spec.result is not None, name


def test_no_rule_is_left_over():
    names = {name for name, rule in vars(rules).items() if isinstance(rule, rules.Rule)}
    used = {name for name in names if any(spec.rule is vars(rules)[name] for spec in FUNCTIONS.values())}
    assert used == names
