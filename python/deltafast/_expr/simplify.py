"""The typed tree -> an equivalent tree with comparisons of columns and literals, which pruning can use.

Two moves, bottom-up: a cast of a literal becomes the literal (when certain: `literals.fold_cast`), and a cast of a
column that only widens moves to the other side of a comparison: `CAST(i AS BIGINT) = 5L` is `i = 5`, `CAST(i AS
DECIMAL(11,1)) > 1.5` is `i > 1`, `CAST(dt AS TIMESTAMP) >= TIMESTAMP'2024-01-01'` is `dt >= DATE'2024-01-01'`.

Both preserve every result, null and ANSI error: only casts that cannot fail are removed. Nothing else is folded; a
constant `1/0` stays, since Spark would raise.
"""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING, Final

from deltafast._expr import literals, types
from deltafast._expr.decimals import floor_to_scale
from deltafast._expr.tree import Call, Cast, In, Lit, Node, SessionCall, Value, call, joined
from deltafast._expr.types import DATE, DOUBLE, FLOAT, DataType, Decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["simplify"]

_MIRROR: Final = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LAST_DAY: Final = types.integral_range(types.INTEGER)[1]
_EXACT_IN_DOUBLE: Final = frozenset((types.BYTE, types.SHORT, types.INTEGER))


def simplify(node: Node, zone: str) -> Node:  # noqa: PLR0911 - one line a kind of node
    """Fold and unwrap, from the leaves up."""
    match node:
        case Call(f="in", args=args):
            return _membership([simplify(a, zone) for a in args], zone)
        case Call(f=f, args=args, type=kind):
            nodes = tuple(simplify(a, zone) for a in args)
            if f in ("and", "or"):
                return joined(f, nodes)
            if f == "not":
                return _negation(nodes[0])
            if f in _MIRROR:
                return _comparison(f, nodes[0], nodes[1], zone)
            return Call(f, nodes, kind)
        case Cast(arg=arg, type=kind, mode=mode):
            inner = simplify(arg, zone)
            folded = literals.fold_cast(inner, kind, zone) if isinstance(inner, Lit) else None
            if isinstance(inner, Call) and inner.f in ("array", "map") and not inner.args:
                # An empty array or map has any type.
                folded = Call(inner.f, (), kind) if isinstance(kind, (types.Array, types.Map)) else None
            return folded or Cast(inner, kind, mode)
        case In(arg=arg, values=values):
            return _narrowed(simplify(arg, zone), values, zone)
        case SessionCall(f=f, args=args, type=kind):
            return SessionCall(f, tuple(simplify(a, zone) for a in args), kind)
        case _:
            return node


def _negation(node: Node) -> Node:
    """NOT, without the doubles that `IS NOT` and `<>` leave behind."""
    match node:
        case Call(f="not", args=(inner,)):
            return inner
        case Call(f="isnull", args=args):
            return call("isnotnull", *args)
        case Call(f="isnotnull", args=args):
            return call("isnull", *args)
        case _:
            return call("not", node)


def _membership(nodes: list[Node], zone: str) -> Node:
    """`IN`: constants become one node in the narrowest type, anything else a chain of comparisons."""
    value, items = nodes[0], nodes[1:]
    constants = [i.value for i in items if isinstance(i, Lit)]
    if len(constants) < len(items):
        return joined("or", [_comparison("=", value, i, zone) for i in items])
    return _narrowed(value, constants, zone)


def _narrowed(value: Node, values: Sequence[Value], zone: str) -> In:
    """`IN` with constants of the operand's type, in the narrowest type that has all of them."""
    if isinstance(value, Cast) and _widens(value.arg.type, value.type):
        narrow = _narrow_values(values, value.type, value.arg.type, zone)
        if narrow is not None:
            return In(value.arg, narrow)
    return In(value, tuple(_distinct(values)))


def _distinct(values: Sequence[Value]) -> list[Value]:
    if set(map(type, values)) <= {int} or set(map(type, values)) <= {str}:
        return list(dict.fromkeys(values))
    seen: dict[object, Value] = {}
    for v in values:
        # NaN equals itself here, and 0.0 equals -0.0.
        seen.setdefault("NaN" if isinstance(v, float) and math.isnan(v) else (type(v), v), v)
    return list(seen.values())


def _comparison(op: str, left: Node, right: Node, zone: str) -> Node:
    """A comparison with its literal on the right, in the narrowest type that loses nothing."""
    if isinstance(left, Lit) and not isinstance(right, Lit):
        op, left, right = _MIRROR[op], right, left
    if isinstance(left, Cast) and isinstance(right, Lit):
        return _unwrap(op, left, right, zone) or call(op, left, right)
    return call(op, left, right)


def _unwrap(op: str, cast: Cast, lit: Lit, zone: str) -> Node | None:
    """`CAST(x AS wide) op lit` in the type of `x`, or None if that is not equivalent."""
    source = cast.arg.type
    if lit.value is None or not _widens(source, cast.type):
        return None
    exact = _narrow_values((lit.value,), lit.type, source, zone)
    if exact is not None:
        return call(op, cast.arg, Lit(exact[0], source))
    if op in ("=", "<=>"):
        return None
    # Between two neighbours of the narrow type: everything above the literal is above its floor.
    floor = _floor(lit, source, zone)
    if floor is None:
        return None
    return call(">" if op in (">", ">=") else "<=", cast.arg, floor)


def _widens(source: DataType, to: DataType) -> bool:
    """Whether the cast keeps order and equality exactly and can never fail."""
    if types.is_integral(source) and types.is_integral(to):
        return types.integral_range(source)[1] < types.integral_range(to)[1]
    if isinstance(to, Decimal):
        if isinstance(source, Decimal):
            return source.scale <= to.scale and source.precision - source.scale <= to.precision - to.scale
        return types.is_integral(source) and types.integral_range(source)[1] < 10 ** (to.precision - to.scale)
    if to == DOUBLE:
        return source in _EXACT_IN_DOUBLE or source == FLOAT
    return source == DATE and types.is_timestamp(to)


def _narrow_values(values: Sequence[Value], source: DataType, to: DataType, zone: str) -> tuple[Value, ...] | None:
    """The constants in the narrow type when all of them are there exactly; null is everywhere."""
    if to == DATE:
        days = _date_floors(values, source, zone)
        exact = days if literals.cast_values(days, DATE, source, zone) == tuple(values) else None
    else:
        # -0.0 equals 0.0, which an integer has.
        plain = [0.0 if isinstance(value, float) and not value else value for value in values]
        exact = literals.cast_values(plain, source, to, zone, exact=True)
    if exact is None or any(new is None and old is not None for old, new in zip(values, exact, strict=True)):
        return None
    return exact


def _floor(lit: Lit, to: DataType, zone: str) -> Lit | None:
    """The greatest value of the narrow type below the literal."""
    if to == DATE:
        (day,) = _date_floors((lit.value,), lit.type, zone)
        return None if day is None else Lit(day, DATE)
    if not isinstance(lit.value, (int, float, decimal.Decimal)) or to == FLOAT:
        return None
    if isinstance(lit.value, float) and not math.isfinite(lit.value):
        return None
    floor = floor_to_scale(lit.value, to.scale if isinstance(to, Decimal) else 0)
    if floor is None:
        return None
    if isinstance(to, Decimal):
        fitted = literals.fits_decimal(floor, to)
        return None if fitted is None else Lit(fitted, to)
    low, high = types.integral_range(to)
    return Lit(int(floor), to) if low <= floor <= high else None


def _date_floors(values: Sequence[Value], source: DataType, zone: str) -> tuple[Value, ...]:
    """Return the days of timestamps, checked against the start of each day and of the next one; None in other cases."""
    days = literals.cast_values(values, source, DATE, zone)
    starts = literals.cast_values(days, DATE, source, zone)
    following = literals.cast_values(
        [day + 1 if isinstance(day, int) and day < _LAST_DAY else None for day in days], DATE, source, zone
    )
    return tuple(
        day
        if isinstance(value, int) and isinstance(low, int) and isinstance(high, int) and low <= value < high
        else None
        for value, day, low, high in zip(values, days, starts, following, strict=True)
    )
