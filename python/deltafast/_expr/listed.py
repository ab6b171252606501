"""Predicates in the form of delta-spark's operation parameters: Spark's string form of a parsed expression.

Only some parameters of operations have this form (`["('day = 2026-01-01)"]`); no reader evaluates them.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

from deltafast._expr import literals, syntax, types
from deltafast._expr.parser import parse
from deltafast._expr.value_lists import constants_of

if TYPE_CHECKING:
    from deltafast._expr.tree import Lit
    from deltafast._util.dialect import Dialect

__all__ = ["listed"]

_COMPARISONS = frozenset(["=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"])
_INTEGERS = (types.BYTE, types.SHORT, types.INTEGER, types.LONG)


def listed(text: str, dialect: Dialect, zone: str = "UTC") -> str | None:
    """Return Spark's string form of an unresolved expression; None if it is not known here.

    Args:
        text: Spark SQL that was already bound.
        dialect: The meaning of double quotes.
        zone: The session's time zone.
    """
    return _shown(parse(text, dialect=dialect, zone=zone))


def _shown(node: syntax.Syntax) -> str | None:  # noqa: C901, PLR0911 - one line a kind
    match node:
        case syntax.Name(parts):
            return "'" + ".".join(f"`{part}`" if "." in part else part for part in parts)
        case syntax.Constant(lit):
            return _literal(lit)
        case syntax.Binary("!=", left, right):
            return _joined("NOT ({} = {})", left, right)
        case syntax.Binary(op, left, right) if op in _COMPARISONS:
            return _joined(f"({{}} {op} {{}})", left, right)
        case syntax.Unary("not", syntax.Test(syntax.TestKind.NULL, arg)):
            return _joined("isnotnull({})", arg)
        case syntax.Unary("not", arg):
            return _joined("NOT {}", arg)
        case syntax.Logical(op, args):
            return _chain(op.upper(), [_shown(arg) for arg in args])
        case syntax.Test(syntax.TestKind.NULL, arg):
            return _joined("isnull({})", arg)
        case syntax.InList(arg, items):
            return _joined("{} IN (" + ",".join(["{}"] * len(items)) + ")", arg, *items)
        case syntax.InValues(arg, values):
            return _joined(
                "{} IN (" + ",".join(["{}"] * len(values.values)) + ")",
                arg,
                *map(syntax.Constant, constants_of(values)),
            )
        case _:
            return None


def _joined(form: str, *parts: syntax.Syntax) -> str | None:
    shown = [_shown(part) for part in parts]
    return None if None in shown else form.format(*shown)


def _chain(op: str, parts: list[str | None]) -> str | None:
    """A chain as Spark's parser builds it: halved, and each half halved."""
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    left, right = _chain(op, parts[:middle]), _chain(op, parts[middle:])
    return None if left is None or right is None else f"({left} {op} {right})"


def _literal(lit: Lit) -> str | None:
    value = lit.value
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if lit.type == types.DATE and isinstance(value, int):
        return literals.format_date(value)
    is_plain = isinstance(value, str | decimal.Decimal) or lit.type in _INTEGERS
    return str(value) if is_plain else None
