"""The text of syntax has the meaning of the syntax."""

import pytest

from deltafast._expr import bind_expression, bind_predicate
from deltafast._expr.constraints import bind_rows, bind_updates
from deltafast._expr.context import ExpressionContext
from deltafast._expr.parser import parse
from deltafast._expr.syntax import Binary, Case, Constant, Func, InList, Logical, Name, parts, without_positions
from deltafast._expr.syntax_sql import sql_text
from deltafast._expr.tree import Lit
from deltafast._expr.types import INTEGER
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError
from golden.expressions.decode import goldens, schema


def parsed(text: str):
    return without_positions(parse(text, dialect=Dialect.SPARK))


def bound(text: str) -> str | None:
    """The tree of an expression; None if it cannot be bound."""
    try:
        return repr(bind_expression(text, schema(), ExpressionContext(now=1)))
    except InvalidArgumentError:
        return None


def test_the_text_of_each_golden_expression_binds_to_the_same_tree():
    trees = [(golden.text, bound(golden.text)) for golden in goldens()]
    bindable = [(text, tree) for text, tree in trees if tree is not None]
    assert len(bindable) > 1200
    assert [text for text, tree in bindable if bound(sql_text(parsed(text))) != tree] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.`b c`[1].d", "`a`.`b c`[1].`d`"),
        ("a AND b AND NOT c OR d", "(((`a` AND `b`) AND (NOT `c`)) OR `d`)"),
        ("x IS NOT NULL AND y IS NOT TRUE", "((`x` IS NOT NULL) AND (NOT (`y` IS TRUE)))"),
        ("s LIKE ALL ('a%', 'b')", "(`s` LIKE ALL ('a%', 'b'))"),
        ("s NOT ILIKE 'a!%' ESCAPE '!'", "(`s` NOT ILIKE 'a!%' ESCAPE '!')"),
        ("CASE x WHEN 1 THEN 'a' END", "(CASE `x` WHEN 1 THEN 'a' END)"),
        ("d + INTERVAL 2 DAYS", "(`d` + INTERVAL '2' DAY)"),
        ("z - INTERVAL '1 02:03:04.5' DAY TO SECOND", "(`z` - INTERVAL '1 02:03:04.500000' DAY TO SECOND)"),
        ("d - INTERVAL 1 YEAR", "(`d` - INTERVAL '12' MONTH)"),
        ("extract(YEAR FROM d) DIV 2", "(extract(YEAR FROM `d`) DIV 2)"),
        ("try_cast(x AS MAP<STRING, INT>)", "try_cast(`x` AS MAP<STRING, INT>)"),
        (f"x IN ({', '.join(map(str, range(40)))})", f"(`x` IN ({', '.join(map(str, range(40)))}))"),
    ],
)
def test_syntax_is_written_as_spark_sql(text, expected):
    assert sql_text(parsed(text)) == expected


def test_text_is_its_own_text():
    assert sql_text("a>1") == "a>1"


def test_syntax_within_another_expression_has_no_positions():
    node = parse("CASE WHEN a.b[0] IN (1, 2) THEN f(x) ELSE date'2020-01-01' END", dialect=Dialect.SPARK)
    assert any(part.pos is not None for part in parts(node))
    assert all(part.pos is None for part in parts(without_positions(node)))
    assert isinstance(without_positions(node), Case)


def test_syntax_is_bound_like_sql(bind):
    node = Logical(
        "and", (Binary(">", Name(("I",)), Constant(Lit(1, INTEGER))), InList(Name(("S",)), (parsed("'a'"),)))
    )
    tree = bind_predicate("i > 1 and s in ('a')", bind.schema, ExpressionContext())
    assert bind_predicate(node, bind.schema, ExpressionContext()) == tree
    assert bind_rows(node, bind.schema, ExpressionContext()) == {
        "name": "predicate",
        "sql": "((`I` > 1) AND (`S` IN ('a')))",
        "tree": tree,
    }
    value = Func("upper", (Name(("s",)),))
    same = bind_updates({"s": "upper(s)"}, bind.schema, ExpressionContext())
    assert bind_updates({"s": value}, bind.schema, ExpressionContext()) == same


def test_messages_have_the_text_of_syntax(bind):
    with pytest.raises(InvalidArgumentError, match=r'no column \'nope\' in "\(`nope` = 1\)"'):
        bind_predicate(Binary("=", Name(("nope",)), Constant(Lit(1, INTEGER))), bind.schema, ExpressionContext())
    with pytest.raises(InvalidArgumentError, match="'`b`' is of type BOOLEAN, the column of type DATE"):
        bind_updates({"dt": Name(("b",))}, bind.schema, ExpressionContext())
