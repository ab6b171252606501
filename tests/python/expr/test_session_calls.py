"""Expressions with functions that only a Spark session has, and what the core gets of them."""

from __future__ import annotations

import pytest

from deltafast import Schema, _core, write_deltalake
from deltafast._expr import UnsupportedExpressionError, bind_predicate, types
from deltafast._expr.constraints import bind_rows, bind_updates
from deltafast._expr.context import ExpressionContext
from deltafast._expr.render import to_spark_sql
from deltafast._expr.session_calls import core_condition, core_expression, core_value, uses_session
from deltafast._expr.tree import Bound
from deltafast._handle import handle_of
from deltafast.exceptions import DeltaProtocolError
from deltafast.table import DeltaTable

SCHEMA = Schema.from_json(
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"name","type":"string","nullable":true,"metadata":{}}]}'
).to_json()


class Functions:
    """A session in which every function returns a string, and the core has no `rlike`."""

    def core_evaluates(self, call) -> bool:
        return call.f != "rlike"

    def result_type(self, name, args) -> types.DataType:
        return types.STRING


def bound(predicate: str):
    """The tree of a predicate."""
    return bind_predicate(predicate, SCHEMA, ExpressionContext(functions=Functions()))


@pytest.mark.parametrize(
    ("predicate", "sql", "kept"),
    [
        ("id > 3 and soundex(name) = 'x'", "((`id` > 3L) AND (soundex(`name`) = 'x'))", "(`id` > 3L)"),
        ("soundex(name) = 'x'", "(soundex(`name`) = 'x')", None),
        ("id > 3 or soundex(name) = 'x'", "((`id` > 3L) OR (soundex(`name`) = 'x'))", None),
        ("not (id > 3 and soundex(upper(name)) = 'x')", None, None),
        ("name rlike 'a' and id = 1", "((`name` RLIKE 'a') AND (`id` = 1L))", "(`id` = 1L)"),
        ("id in (1, 2) and name = 'x'", None, "((`id` IN (1L, 2L)) AND (`name` = 'x'))"),
    ],
)
def test_the_core_gets_the_other_conjuncts(predicate, sql, kept):
    tree = bound(predicate)
    assert sql is None or to_spark_sql(tree) == sql
    core = core_condition(tree)
    assert (None if core is None else to_spark_sql(core)) == kept
    assert Bound.from_tree(tree).to_tree() == tree
    assert uses_session(tree) == ("soundex" in predicate or "rlike" in predicate)


def test_without_a_session_they_are_refused():
    with pytest.raises(UnsupportedExpressionError, match=r"the function soundex\(\) is not supported"):
        bind_predicate("soundex(name) = 'x'", SCHEMA, ExpressionContext())


def test_the_core_refuses_their_node(tmp_path):
    write_deltalake(tmp_path, {"id": [1], "name": ["a"]})
    snapshot = handle_of(DeltaTable(tmp_path)).snapshot
    rows = bind_rows("soundex(name) = 'x'", SCHEMA, ExpressionContext(functions=Functions()))
    with pytest.raises(Exception, match="the function `soundex` is not supported by the core"):
        _core.ChangeJob(snapshot, "delete", {}, rows).requirements()
    allowed = core_expression(rows)
    assert (allowed["sql"], to_spark_sql(allowed["tree"])) == ("soundex(name) = 'x'", "true")
    assert not _core.ChangeJob(snapshot, "delete", {}, allowed).requirements()["selects_whole_files"]


def test_values_for_the_core_have_only_a_type():
    plain, session = bind_updates(
        {"id": "id + 1", "name": "soundex(name)"}, SCHEMA, ExpressionContext(functions=Functions())
    )
    assert core_value(plain["tree"]) == plain["tree"]
    assert to_spark_sql(core_value(session["tree"])) == "CAST(NULL AS STRING)"


def test_the_core_names_patterns_that_it_does_not_have(tmp_path):
    write_deltalake(tmp_path, {"id": [1], "name": ["a"]})
    with pytest.raises(DeltaProtocolError, match="is not supported by the core"):
        DeltaTable(tmp_path).delete("name rlike '(?<=n)3'")
