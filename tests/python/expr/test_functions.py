"""The table of functions is closed and complete."""

import pytest

from deltafast.exceptions import InvalidArgumentError
from deltafast.expr import bind_expression
from deltafast.expr.functions import EMITTED, FUNCTIONS
from deltafast.expr.rules import RULES
from deltafast.expr.tree import Bound, Call, walk
from golden.expressions.decode import MODES, goldens, schema


def emitted_by_the_golden_file() -> set[str]:
    found = set()
    for golden in goldens():
        for ansi, zone in MODES:
            try:
                tree = Bound.from_json(bind_expression(golden.text, schema(), ansi=ansi, zone=zone))
            except InvalidArgumentError:
                continue
            found |= {n.f for n in walk(tree.expr) if isinstance(n, Call)}
    return found


def test_trees_hold_no_other_names_and_each_is_proven_against_spark():
    assert emitted_by_the_golden_file() == set(EMITTED)


def test_every_function_has_either_types_or_a_rule():
    for name, spec in FUNCTIONS.items():
        if spec.rule:
            assert spec.rule in RULES, name
            assert not spec.emit or spec.emit in EMITTED, name
        else:
            assert spec.emit in EMITTED, name
            assert spec.result is not None, name


def test_no_rule_is_left_over():
    assert {f.rule for f in FUNCTIONS.values() if f.rule} == set(RULES)


@pytest.mark.parametrize("name", sorted(EMITTED))
def test_a_duckdb_template_names_only_arguments_it_has(name):
    template = EMITTED[name].duckdb
    if template and "{*" not in template:
        assert template.format(*("abc")[: template.count("{")])


def test_the_core_knows_every_name():
    from deltafast._core import evaluate
    from deltafast.exceptions import DeltaError

    missing = set()
    for name in EMITTED:
        tree = f'{{"expr":{{"k":"call","f":"{name}","a":[],"t":"boolean"}},"ansi":true,"zone":"UTC"}}'
        with pytest.raises(DeltaError) as caught:
            evaluate(tree, schema_rows())
        if f"the function `{name}` is not supported" in str(caught.value):
            missing.add(name)
    assert not missing


def schema_rows():
    from golden.expressions.decode import rows

    return rows()
