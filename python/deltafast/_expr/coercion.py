"""Spark's type coercion: the common type of two operands, and the casts that exist.

Follows `AnsiTypeCoercion` (ANSI on) and `TypeCoercion` (off) of Spark 4.2, checked type pair by type pair against it
(`tests/golden/expressions`). Every answer is a type or None; the binder words the refusals.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from deltafast._expr import types
from deltafast._expr.tree import CastMode
from deltafast._expr.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL_RANK,
    LONG,
    NUMERIC_RANK,
    SHORT,
    STRING,
    TIMESTAMP,
    VOID,
    Array,
    Atomic,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
    is_datetime,
    is_integral,
    is_numeric,
    is_string,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "TypeClass",
    "arithmetic_decimal",
    "can_cast",
    "common",
    "comparison_type",
    "decimal_for",
    "is_ordered",
    "tightest",
    "wider",
    "wider_decimal",
]

_MAX: Final = 38
_MIN_ADJUSTED_SCALE: Final = 6
_INTEGRAL_DECIMAL: Final = {BYTE: Decimal(3, 0), SHORT: Decimal(5, 0), INTEGER: Decimal(10, 0), LONG: Decimal(20, 0)}
_BY_RANK: Final = (BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE)


class TypeClass(Enum):
    """A class of types that a function takes as an argument, and what other types are cast to."""

    ANY = "any"
    #: BINARY, or STRING.
    TEXT = "text"
    #: TIMESTAMP_NTZ, or TIMESTAMP.
    DATETIME = "datetime"
    #: A number of days: types up to INT and strings, as INT.
    DAYS = "days"
    #: Integers, as BIGINT.
    INTEGRAL = "integral"
    #: TIMESTAMP only.
    EXACT_TIMESTAMP = "exact timestamp"
    #: Numbers in their own type, or DOUBLE.
    NUMBER = "number"


def is_ordered(t: DataType) -> bool:
    """Whether values of the type compare; maps and variants don't."""
    return not any(isinstance(part, (Map, types.Interval)) or part == types.VARIANT for part in types.walk(t))


def decimal_for(t: DataType) -> Decimal:
    """The decimal that holds every value of an integer type."""
    return t if isinstance(t, Decimal) else _INTEGRAL_DECIMAL[t] if isinstance(t, Atomic) else Decimal(_MAX, 18)


def wider_decimal(a: Decimal, b: Decimal) -> Decimal:
    """The decimal that holds both; integer digits first, once 38 digits don't suffice."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return bounded(whole + scale, scale)


def bounded(precision: int, scale: int) -> Decimal:
    """Spark's `DecimalType.boundedPreferIntegralDigits`: cut the scale, not the digits before the point."""
    if precision <= _MAX:
        return Decimal(precision, scale)
    over = precision - _MAX
    return Decimal(_MAX, max(0, scale - over))


def adjusted(precision: int, scale: int) -> Decimal:
    """Spark's `adjustPrecisionScale`: cut the scale, but not below six digits."""
    if precision <= _MAX:
        return Decimal(precision, scale)
    whole = precision - scale
    least = min(scale, _MIN_ADJUSTED_SCALE)
    return Decimal(_MAX, max(_MAX - whole, least))


def arithmetic_decimal(op: str, a: Decimal, b: Decimal) -> Decimal:
    """The result of `+ - * / % pmod` on two decimals."""
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    if op in ("+", "-"):
        scale = max(s1, s2)
        return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if op == "*":
        return adjusted(p1 + p2 + 1, s1 + s2)
    if op == "/":
        scale = max(_MIN_ADJUSTED_SCALE, s1 + p2 + 1)
        return adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def tightest(a: DataType, b: DataType, *, ansi: bool) -> DataType | None:
    """Spark's `findTightestCommonType`: no strings, no decimals of unlike precision."""
    if a == b:
        return a
    if a == VOID:
        return b
    if b == VOID:
        return a
    if isinstance(a, Atomic) and isinstance(b, Atomic):
        if a.name in NUMERIC_RANK and b.name in NUMERIC_RANK:
            widest = _BY_RANK[max(NUMERIC_RANK[a.name], NUMERIC_RANK[b.name])]
            # An integer does not fit into a float; ANSI mode uses a double, into which it fits.
            return DOUBLE if ansi and widest == FLOAT else widest
        if is_datetime(a) and is_datetime(b):
            return types.timestamp_type(TIMESTAMP in (a, b))
    return _nested(a, b, lambda x, y: tightest(x, y, ansi=ansi))


def _nested(
    a: DataType, b: DataType, meet: Callable[[DataType, DataType], DataType | None]
) -> Array | Map | Struct | None:
    """Return the common type of two arrays, maps, or structs with the same names, part by part."""
    match a, b:
        case Array(), Array():
            element = meet(a.element, b.element)
            return None if element is None else Array(element, a.contains_null or b.contains_null)
        case Map(), Map():
            key, value = meet(a.key, b.key), meet(a.value, b.value)
            if key is None or value is None:
                return None
            return Map(key, value, a.value_contains_null or b.value_contains_null)
        case Struct(), Struct() if [f.name.lower() for f in a.fields] == [f.name.lower() for f in b.fields]:
            pairs = list(zip(a.fields, b.fields, strict=True))
            kinds = [meet(f.type, g.type) for f, g in pairs]
            fields = [
                Field(f.name, kind, nullable=f.nullable or g.nullable)
                for (f, g), kind in zip(pairs, kinds, strict=True)
                if kind is not None
            ]
            return Struct(tuple(fields)) if len(fields) == len(pairs) else None
        case _:
            return None


def _with_decimal(a: DataType, b: DataType) -> DataType | None:
    """The common type of a decimal and a number."""
    if not (isinstance(a, Decimal) or isinstance(b, Decimal)) or not (is_numeric(a) and is_numeric(b)):
        return None
    if a in (FLOAT, DOUBLE) or b in (FLOAT, DOUBLE):
        return DOUBLE
    return wider_decimal(decimal_for(a), decimal_for(b))


def _with_string(a: DataType, b: DataType, *, ansi: bool) -> DataType | None:
    """Return the common type of a string and another type: ANSI casts the string, the old mode the other side."""
    other = b if is_string(a) else a if is_string(b) else None
    if other is None or is_string(other):
        return None
    if not ansi:
        return STRING if isinstance(other, (Atomic, Decimal)) and other not in (BOOLEAN, BINARY) else None
    if is_integral(other):
        return LONG
    if is_numeric(other):
        return DOUBLE
    return other if isinstance(other, Atomic) and other.name != "variant" else None


def wider(a: DataType, b: DataType, *, ansi: bool, strings: bool = True) -> DataType | None:
    """Return the common type of two branches, list items or arguments (`CASE`, `IN`, `coalesce`)."""
    found = tightest(a, b, ansi=ansi) or _with_decimal(a, b)
    if found is None and strings:
        found = _with_string(a, b, ansi=ansi)
    return found or _nested(a, b, lambda x, y: wider(x, y, ansi=ansi, strings=strings))


def common(kinds: list[DataType], *, ansi: bool, strings: bool = True) -> DataType | None:
    """Return the common type of a list. Strings come first, as in Spark; the others keep their order."""
    found: DataType | None = VOID
    for kind in sorted(kinds, key=lambda t: not is_string(t)):
        if found is None:
            return None
        found = wider(found, kind, ansi=ansi, strings=strings)
    return found


def comparison_type(a: DataType, b: DataType, *, ansi: bool) -> DataType | None:
    """The type in which `= <=> < <= > >=` compare."""
    found = tightest(a, b, ansi=ansi) or _with_decimal(a, b)
    if found is not None:
        return found
    if ansi:
        return _with_string(a, b, ansi=True)
    other = b if is_string(a) else a if is_string(b) else None
    if other is not None and isinstance(other, Atomic):
        return other if other.name != "variant" else None
    if isinstance(other, Decimal):
        return DOUBLE
    # In the old mode a boolean compared with a number is 0 or 1.
    if BOOLEAN in (a, b):
        number = b if a == BOOLEAN else a
        return number if is_numeric(number) else None
    return None


_NUMBERS: Final = frozenset(NUMERIC_RANK)
_FROM: Final[dict[str, frozenset[str]]] = {
    # source -> targets that both modes have; decimals are written "decimal"
    "boolean": _NUMBERS | {"decimal", "string"},
    **{n: _NUMBERS | {"decimal", "string", "boolean", "timestamp"} for n in (*_NUMBERS, "decimal")},
    "string": _NUMBERS | {"decimal", "boolean", "date", "timestamp", "timestamp_ntz", "binary"},
    "date": frozenset({"string", "timestamp", "timestamp_ntz"}),
    "timestamp": _NUMBERS | {"decimal", "string", "date", "timestamp_ntz"},
    "timestamp_ntz": frozenset({"string", "date", "timestamp"}),
    "binary": frozenset({"string"}),
}
_LEGACY_ONLY: Final = {
    **{n: frozenset({"binary"}) for n in INTEGRAL_RANK},
    "boolean": frozenset({"timestamp"}),
    "timestamp": frozenset({"boolean"}),
    "date": _NUMBERS | {"decimal", "boolean"},
}


def _kind(t: DataType) -> str:
    return t.name if isinstance(t, Atomic) else "decimal" if isinstance(t, Decimal) else ""


def can_cast(source: DataType, to: DataType, mode: CastMode) -> bool:
    """Whether Spark has this cast at all in the mode."""
    if source in (to, VOID):
        return True
    if isinstance(source, types.NESTED):
        pairs = types.paired_types(source, to)
        return is_string(to) if pairs is None else all(can_cast(a, b, mode) for a, b in pairs)
    a, b = _kind(source), _kind(to)
    if a == b or b in _FROM.get(a, ()):
        return bool(b)
    return mode is CastMode.LEGACY and b in _LEGACY_ONLY.get(a, ())
