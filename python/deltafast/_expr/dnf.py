"""DNF filters, `[("a", "=", 1), ("b", "in", [1, 2])]` or a list of such lists, -> syntax.

A list of tuples is a conjunction, a list of lists a disjunction of them, as `deltalake` and `pyarrow.parquet` take
them. A text compared with a column of another type is read as that type (`("day", "=", "2024-01-31")`), and one that
cannot be is an error at once. Two meanings are pyarrow's and not Spark's: NaN is neither above nor equal to anything,
and `not in` keeps nulls. `("a", "=", None)` asks for nulls, as in `deltalake`'s partition filters.
"""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._expr import literals, types
from deltafast._expr.python_values import constant
from deltafast._expr.syntax import Binary, Constant, Func, InList, Logical, Name, Syntax, Test, Unary
from deltafast._expr.tree import Lit
from deltafast._util.values import partition_text
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.binder import Binder

__all__ = ["from_dnf"]

_OPS: Final = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "in": "in",
    "not in": "not in",
}
_TRIPLE: Final = 3


def from_dnf(filters: Sequence[Any], binder: Binder) -> Syntax:
    """Translate; the binder is needed to read texts in the columns' types.

    Raises:
        InvalidArgumentError: A clause is no (column, op, value), or its value does not fit the column.
    """
    if not filters:
        return Constant(Lit(value=True, type=types.BOOLEAN))
    if _is_clause(filters):
        return _clause(filters, binder)
    if all(_is_clause(f) for f in filters):
        return _join("and", [_clause(f, binder) for f in filters])
    groups: list[Syntax] = []
    for group in filters:
        if not isinstance(group, (list, tuple)) or not all(_is_clause(c) for c in cast("Sequence[Any]", group)):
            msg = f"not a filter: {group!r}; write [('column', '=', value), ...] or a list of such lists"
            raise InvalidArgumentError(msg)
        groups.append(_join("and", [_clause(c, binder) for c in cast("Sequence[Any]", group)]))
    return _join("or", groups)


def _is_clause(value: object) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    items = cast("Sequence[Any]", value)
    return len(items) == _TRIPLE and isinstance(items[0], str) and isinstance(items[1], str)


def _join(op: str, parts: list[Syntax]) -> Syntax:
    if not parts:
        return Constant(Lit(value=True, type=types.BOOLEAN))
    return parts[0] if len(parts) == 1 else Logical(op, tuple(parts))


def _clause(clause: Sequence[Any], binder: Binder) -> Syntax:
    name, op, value = clause
    known = _OPS.get(" ".join(op.lower().split()))
    if known is None:
        msg = f"unknown operator {op!r} in {tuple(clause)!r}; use one of {', '.join(_OPS)}"
        raise InvalidArgumentError(msg)
    column = _column(name, binder)
    kind = binder.bind(column).type
    if known in ("in", "not in"):
        return _membership(known, column, kind, value, name)
    if value is None:
        if known not in ("=", "!="):
            msg = f"None cannot be ordered: {tuple(clause)!r}; use '=' or '!='"
            raise InvalidArgumentError(msg)
        missing = Test("null", column)
        return Unary("not", missing) if known == "!=" else missing
    return without_nan(known, column, _constant(value, kind, name), kind)


def without_nan(op: str, left: Syntax, right: Syntax, kind: types.DataType) -> Syntax:
    """A comparison in which NaN is above nothing, as in Arrow; in Spark it is above everything."""
    test = Binary(op, left, right)
    if op not in (">", ">=") or kind not in (types.FLOAT, types.DOUBLE):
        return test
    return Logical("and", (test, Unary("not", nan_beside_value(left, right))))


def nan_beside_value(left: Syntax, right: Syntax) -> Syntax:
    """NaN on the left, and no null on the right, beside which the comparison stays null."""
    nan = Func("isnan", (left,))
    return nan if isinstance(right, Constant) else Logical("and", (nan, Unary("not", Test("null", right))))


def null_or(value: Syntax, found: Syntax) -> Syntax:
    """What was found, but null for null: Arrow's and Polars' tests of one value are so, Spark's are false."""
    return Func("if", (Test("null", value), Constant(Lit(None, types.VOID)), found))


def _column(name: str, binder: Binder) -> Name:
    """The whole name first; only when there is no such column, a path of dotted names."""
    lower = name.lower()
    if "." in name and not any(f.name.lower() == lower for f in binder.schema.fields):
        return Name(tuple(name.split(".")))
    return Name((name,))


def _membership(op: str, column: Name, kind: types.DataType, values: object, name: str) -> Syntax:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        msg = f"'{op}' takes a list of values, not {values!r}; write ('{name}', '{op}', [...])"
        raise InvalidArgumentError(msg)
    items = list(cast("Any", values))
    present = [_constant(v, kind, name) for v in items if v is not None]
    found: Syntax = Constant(Lit(value=False, type=types.BOOLEAN))
    if present:
        found = Logical("and", (Unary("not", Test("null", column)), InList(column, tuple(present))))
    if len(present) < len(items):
        found = Logical("or", (Test("null", column), found)) if present else Test("null", column)
    return Unary("not", found) if op == "not in" else found


def _constant(value: object, kind: types.DataType, name: str) -> Constant:
    """A Python value as a literal; a text in the column's own type."""
    found = constant(value)
    lit = found.lit
    if types.is_string(kind) and isinstance(value, (bool, int, float, Decimal, date)):
        # The text that Delta has for it: partition columns of type string hold such.
        return constant(partition_text(value))
    if isinstance(lit.value, float) and math.isnan(lit.value):
        msg = f"a filter on {name!r} cannot compare with NaN; write isnan({name}) as SQL"
        raise InvalidArgumentError(msg)
    if not isinstance(lit.value, str) or types.is_string(kind):
        return found
    read = literals.fold_cast(lit, kind, "UTC")
    if read is None:
        msg = f"{lit.value!r} is no {types.sql_name(kind)}, which the column {name!r} is; pass a value of that type"
        raise InvalidArgumentError(msg, column=name)
    # A timestamp without a zone is one of the session's zone: the binder reads the text again, in that zone.
    return found if kind == types.TIMESTAMP else Constant(read)
