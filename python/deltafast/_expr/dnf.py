"""DNF filters, `[("a", "=", 1), ("b", "in", [1, 2])]` or a list of such lists, -> syntax.

A list of tuples is a conjunction, a list of lists a disjunction of conjunctions, as in `deltalake` and
`pyarrow.parquet`. A string compared with a column of another type is parsed as that type (`("day", "=",
"2024-01-31")`); if that fails, an error is raised immediately. In two cases pyarrow's semantics apply instead of
Spark's: NaN is neither greater than nor equal to anything, and `not in` keeps nulls. `("a", "=", None)` selects nulls,
as in `deltalake`'s partition filters.
"""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._expr import literals, types
from deltafast._expr.python_values import constant
from deltafast._expr.syntax import (
    Binary,
    Constant,
    Func,
    InList,
    InValues,
    Logical,
    Name,
    Syntax,
    Test,
    TestKind,
    Unary,
)
from deltafast._expr.tree import Lit
from deltafast._expr.value_lists import column_values, list_items
from deltafast._util.values import partition_text
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.binder import Binder

__all__ = ["check_not_empty", "from_dnf"]

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
    """Translate a filter; the binder is needed to parse strings as the columns' types.

    Raises:
        InvalidArgumentError: A clause is not a (column, op, value), or its value does not match the column's type.
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


def _is_clause_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) and not _is_clause(cast("object", value))


def check_not_empty(filters: Sequence[Any]) -> None:
    """Refuse a filter for all rows: whoever collects conditions and finds none does not mean to change every row.

    Raises:
        InvalidArgumentError: The filter, or one of its alternatives, has no clause that excludes a row.
    """
    groups = [filters] if _is_clause(filters) or all(_is_clause(f) for f in filters) else filters
    for group in groups:
        if all(map(_excludes_nothing, group if _is_clause_list(group) else [group])):
            message = f"an empty condition selects all rows: {filters!r:.200}; pass None if that is meant"
            raise InvalidArgumentError(message)


def _excludes_nothing(clause: Any) -> bool:
    if not _is_clause(clause) or _OPS.get(" ".join(clause[1].lower().split())) != "not in":
        return False
    values = clause[2]
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes)) and len(values) == 0


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
        missing = Test(TestKind.NULL, column)
        return Unary("not", missing) if known == "!=" else missing
    return without_nan(known, column, _constant(value, kind, name), kind)


def without_nan(op: str, left: Syntax, right: Syntax, kind: types.DataType) -> Syntax:
    """Return a comparison in which NaN is greater than nothing, as in Arrow; in Spark it is greater than everything."""
    test = Binary(op, left, right)
    if op not in (">", ">=") or kind not in (types.FLOAT, types.DOUBLE):
        return test
    return Logical("and", (test, Unary("not", nan_with_value(left, right))))


def nan_with_value(left: Syntax, right: Syntax) -> Syntax:
    """Return a test for NaN on the left and no null on the right; with a null the comparison stays null."""
    nan = Func("isnan", (left,))
    return nan if isinstance(right, Constant) else Logical("and", (nan, Unary("not", Test(TestKind.NULL, right))))


def null_or(value: Syntax, found: Syntax) -> Syntax:
    """Return the result, but null for null, as in Arrow and Polars; in Spark such a test is false for null."""
    return Func("if", (Test(TestKind.NULL, value), Constant(Lit(None, types.VOID)), found))


def _column(name: str, binder: Binder) -> Name:
    """Return the column with the whole name, or, if it does not exist, the path of dotted names."""
    if "." in name and binder.schema.find(name) is None:
        return Name(tuple(name.split(".")))
    return Name((name,))


def _membership(op: str, column: Name, kind: types.DataType, values: object, name: str) -> Syntax:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        msg = f"'{op}' takes a list of values, not {values!r}; write ('{name}', '{op}', [...])"
        raise InvalidArgumentError(msg)
    items = list_items(values, kind)
    present = [v for v in items if v is not None]
    found: Syntax = Constant(Lit(value=False, type=types.BOOLEAN))
    if present:
        listed = column_values(present, kind)
        test = (
            InList(column, tuple(_constant(v, kind, name) for v in present))
            if listed is None
            else InValues(column, listed)
        )
        found = Logical("and", (Unary("not", Test(TestKind.NULL, column)), test))
    if len(present) < len(items):
        found = Logical("or", (Test(TestKind.NULL, column), found)) if present else Test(TestKind.NULL, column)
    return Unary("not", found) if op == "not in" else found


def _constant(value: object, kind: types.DataType, name: str) -> Constant:
    """Return a Python value as a literal; a string is parsed as the column's type."""
    found = constant(value)
    lit = found.lit
    if types.is_string(kind) and isinstance(value, (bool, int, float, Decimal, date)):
        # Delta's serialization of the value: partition columns of type string contain such strings.
        return constant(partition_text(value))
    if isinstance(lit.value, float) and math.isnan(lit.value):
        msg = f"a filter on {name!r} cannot compare with NaN; write isnan({name}) as SQL"
        raise InvalidArgumentError(msg)
    if not isinstance(lit.value, str) or types.is_string(kind):
        return found
    read = literals.fold_cast(lit, kind, "UTC", exact=True)
    if read is None:
        expected = types.sql_name(kind)
        msg = f"{lit.value!r} is not of type {expected}, which the column {name!r} has; pass a value of that type"
        raise InvalidArgumentError(msg, column=name)
    # A timestamp without a zone is in the session's zone: the binder parses the string again, in that zone.
    return found if kind == types.TIMESTAMP else Constant(read)
