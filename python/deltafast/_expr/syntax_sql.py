"""Syntax -> Spark SQL: the text in messages and in the table's history of an expression that was not given as text."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from deltafast._expr import types
from deltafast._expr.literals import MICROS_PER_DAY
from deltafast._expr.python_values import expression
from deltafast._expr.render import interval_sql, literal_sql, path_sql, string_literal
from deltafast._expr.syntax import (
    Between,
    Binary,
    Case,
    CastTo,
    Constant,
    FieldOf,
    Func,
    InList,
    IntervalLit,
    InValues,
    Item,
    Like,
    Logical,
    Name,
    Test,
    TestKind,
    Unary,
)
from deltafast._expr.value_lists import constants_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltafast._expr.syntax import Syntax

__all__ = ["literal", "sql_text"]


def sql_text(expression: str | Syntax) -> str:
    """Return an expression, which is text or syntax, as text."""
    return expression if isinstance(expression, str) else _sql(expression)


def literal(value: object) -> str:
    """Return a Python value, or a list of them, as Spark SQL.

    Raises:
        InvalidArgumentError: A value has no Spark type.
    """
    return _sql(expression(value))


def _sql(node: Syntax) -> str:  # noqa: C901, PLR0911, PLR0912 - one line a kind of node
    match node:
        case Name(parts=parts):
            return path_sql(parts)
        case Constant(lit=lit):
            return literal_sql(*lit)
        case IntervalLit(months=months, micros=micros, day_only=day_only):
            return f"INTERVAL '{micros // MICROS_PER_DAY}' DAY" if day_only else interval_sql(months, micros)
        case Unary("not", Test(TestKind.NULL, arg)):
            return f"({_sql(arg)} IS NOT NULL)"
        case Unary(op=op, arg=arg):
            return f"({op.upper()} {_sql(arg)})"
        case Binary(op=op, left=left, right=right):
            return f"({_sql(left)} {op.upper()} {_sql(right)})"
        case Logical(op=op, args=args):
            return reduce(lambda left, right: f"({left} {op.upper()} {right})", map(_sql, args))
        case Between(arg=arg, low=low, high=high):
            return f"({_sql(arg)} BETWEEN {_sql(low)} AND {_sql(high)})"
        case InList(arg=arg, items=items):
            return f"({_sql(arg)} IN ({_list(items)}))"
        case InValues(arg=arg, listed=listed):
            return f"({_sql(arg)} IN ({_list(map(Constant, constants_of(listed)))}))"
        case Like():
            return _like(node)
        case Test(kind=kind, arg=arg):
            return f"({_sql(arg)} IS {kind.name})"
        case Case(operand=operand, whens=whens, otherwise=otherwise):
            pairs = "".join(f" WHEN {_sql(condition)} THEN {_sql(value)}" for condition, value in whens)
            end = "" if otherwise is None else f" ELSE {_sql(otherwise)}"
            return f"(CASE{'' if operand is None else f' {_sql(operand)}'}{pairs}{end} END)"
        case CastTo(arg=arg, type=to, safe=safe):
            return f"{'try_cast' if safe else 'CAST'}({_sql(arg)} AS {types.sql_name(to)})"
        case Func("extract", (Constant(lit), arg)):
            return f"extract({lit.value} FROM {_sql(arg)})"
        case Func(name=name, args=args):
            return f"{name}({_list(args)})"
        case FieldOf(arg=arg, name=name):
            return f"{_sql(arg)}.{path_sql((name,))}"
        case Item(arg=arg, at=index):
            return f"{_sql(arg)}[{_sql(index)}]"


def _list(nodes: Iterable[Syntax]) -> str:
    return ", ".join(map(_sql, nodes))


def _like(node: Like) -> str:
    operator = f"{'NOT ' if node.negated else ''}{node.kind.name}"
    if len(node.patterns) > 1 or node.every:
        return f"({_sql(node.arg)} {operator} {'ALL' if node.every else 'ANY'} ({_list(node.patterns)}))"
    escape = "" if node.escape == "\\" else f" ESCAPE {string_literal(node.escape)}"
    return f"({_sql(node.arg)} {operator} {_list(node.patterns)}{escape})"
