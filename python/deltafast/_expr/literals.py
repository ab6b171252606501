"""Literals: numbers, time zones, and casts of constants.

The core casts constants, by the same functions that cast the values of columns: a predicate has plain constants, by
which files are pruned, and what cannot be cast stays a cast node, so that an error is raised if, and only if, Spark
would raise it. Dates are days and timestamps microseconds since 1970-01-01.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from deltafast import _core
from deltafast._expr import types
from deltafast._expr.decimals import from_unscaled, rescale
from deltafast._expr.tree import Lit, decode_values, encode_values
from deltafast._expr.types import DataType, Decimal
from deltafast.exceptions import DeltaError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.tree import Value

__all__ = [
    "MAX_PRECISION",
    "calendar_date",
    "cast_values",
    "fold_cast",
    "format_date",
    "format_timestamp",
    "number",
    "time_zone",
]

MAX_PRECISION: Final = 38
MICROS_PER_DAY: Final = 86_400_000_000
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of local time
_MAX_DIGITS: Final = 400
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::([0-9]{1,2}))?")
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


def number(text: str, suffix: str) -> Lit | None:  # noqa: PLR0911 - one line a kind
    """A numeric literal with its Spark type; None when it does not fit."""
    exponent = "e" in text.lower()
    plain = not exponent and "." not in text
    if len(text) > _MAX_DIGITS:
        return None
    if suffix in ("L", "S", "Y") or (not suffix and plain):
        if not plain:
            return None
        value = int(text)
        if suffix:
            kind = {"L": types.LONG, "S": types.SHORT, "Y": types.BYTE}[suffix]
            return Lit(value, kind) if _in_range(value, kind) else None
        for kind in (types.INTEGER, types.LONG):
            if _in_range(value, kind):
                return Lit(value, kind)
        return decimal_literal(decimal.Decimal(text))
    if suffix in ("F", "D") or (not suffix and exponent):
        kind = types.FLOAT if suffix == "F" else types.DOUBLE
        (real,) = cast_values((text,), types.STRING, kind, "UTC")
        return Lit(real, kind) if isinstance(real, float) and math.isfinite(real) else None
    return decimal_literal(decimal.Decimal(text))


def decimal_literal(value: decimal.Decimal) -> Lit | None:
    """The narrowest decimal that holds the value as written (`1.50` is a `DECIMAL(3,2)`)."""
    if not value.is_finite():
        return None
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > MAX_PRECISION:
        return None
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_PRECISION:
        return None
    scaled = rescale(value, scale)
    return None if scaled is None else Lit(scaled, Decimal(precision, scale))


def _in_range(value: int, kind: DataType) -> bool:
    low, high = types.integral_range(kind)
    return low <= value <= high


def fits_decimal(value: decimal.Decimal, t: Decimal) -> decimal.Decimal | None:
    """The value at the type's scale, or None when digits would be lost."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or value.adjusted() > MAX_PRECISION or exponent < -2 * MAX_PRECISION:
        return None
    scaled = rescale(value, t.scale) if value else from_unscaled(0, t.scale)
    if scaled is None or (value and scaled.adjusted() >= t.precision - t.scale):
        return None
    return scaled


@lru_cache(maxsize=64)
def time_zone(name: str) -> dt.tzinfo:
    """Return the zone with a name (`UTC`, `+01:00`, `Europe/Paris`).

    Raises:
        InvalidArgumentError: The zone does not exist.
    """
    if name.upper() in ("Z", "UTC", "GMT", "UT", "ETC/UTC"):
        return dt.UTC
    if match := _OFFSET.fullmatch(name):
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        if minutes <= 18 * 60:
            return dt.timezone(dt.timedelta(minutes=-minutes if match[1] == "-" else minutes))
    elif _ZONE.fullmatch(name):
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # most zones are UTC or an offset

        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    msg = f"unknown time zone {name[:60]!r}; name it like 'UTC', '+01:00' or 'Europe/Paris'"
    raise InvalidArgumentError(msg)


# --- casts


def fold_cast(lit: Lit, to: DataType, zone: str, *, exact: bool = False) -> Lit | None:
    """Return the literal in another type as the core casts it, in ANSI and legacy mode alike; None if it cannot.

    Args:
        lit: The literal.
        to: The type to cast to.
        zone: The session's time zone.
        exact: Whether the result must be the same value; else it may be rounded.
    """
    if isinstance(to, (*types.NESTED, types.Interval)):
        return Lit(None, to) if lit.value is None else None
    if lit.value is None:
        return Lit(None, to)
    if lit.type == to:
        return lit
    (value,) = cast_values((lit.value,), lit.type, to, zone, exact=exact)
    return None if value is None else Lit(value, to)


def cast_values(
    values: Sequence[Value], source: DataType, to: DataType, zone: str, *, exact: bool = False
) -> tuple[Value, ...]:
    """Return constants in another type, as `fold_cast` does; None in place of those that cannot be cast."""
    if types.is_integral(source) and types.is_integral(to):
        # The most frequent cast: numbers as written, to a column's type.
        low, high = types.integral_range(to)
        return tuple(value if isinstance(value, int) and low <= value <= high else None for value in values)
    try:
        cast = _core.cast_constants(
            encode_values(values, source), types.to_json(source), types.to_json(to), zone, exact=exact
        )
    except DeltaError:
        # For example a time without a date, which means today.
        return (None,) * len(values)
    return decode_values(cast, to)


def calendar_date(days: int) -> dt.date | None:
    """Return the date of a day since 1970; None outside of the years 1 to 9999."""
    ordinal = days + _EPOCH.toordinal()
    return dt.date.fromordinal(ordinal) if 1 <= ordinal <= dt.date.max.toordinal() else None


def format_date(days: int) -> str:
    """Return a date as a literal takes it: `yyyy-MM-dd`, with a sign beyond four digits."""
    date = calendar_date(days)
    return str(date or cast_values((days,), types.DATE, types.STRING, "UTC")[0])


def format_timestamp(micros: int) -> str:
    """Return `yyyy-MM-dd HH:mm:ss.ffffff` without trailing zeros of the fraction."""
    try:
        text = str(_EPOCH + dt.timedelta(microseconds=micros))
    except OverflowError:
        return str(cast_values((micros,), types.TIMESTAMP, types.STRING, "UTC")[0])
    return text.rstrip("0") if "." in text else text
