"""Arithmetic on Python decimals that does not depend on the program's decimal context.

The operators and methods of `decimal.Decimal` round to the precision of the current context (28 digits by default, less
than a column has) and raise or not by its traps, so a program's `decimal.setcontext` would change which rows match.
Only the functions of this module compute with decimals: each has a context of its own, in which a result that would be
rounded raises. Constructors from strings, comparisons between decimals, `format` with `f`, `int` and `float` are exact
in every context.
"""

from __future__ import annotations

import decimal
from typing import Final

__all__ = ["floor_to_scale", "from_unscaled", "rescale", "to_whole"]

#: A double has at most 767 significant digits and 1,074 of them after the point; literals have at most 400 characters.
_PRECISION: Final = 2000
_EXACT: Final = decimal.Context(
    prec=_PRECISION,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    clamp=0,
    flags=[],
    traps=[decimal.Inexact, decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
_FLOOR: Final = decimal.Context(
    prec=_PRECISION,
    rounding=decimal.ROUND_FLOOR,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    clamp=0,
    flags=[],
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)


def from_unscaled(unscaled: int, scale: int) -> decimal.Decimal:
    """Return `unscaled * 10 ** -scale`."""
    return decimal.Decimal(f"{unscaled}E{-scale}")


def rescale(value: decimal.Decimal, scale: int) -> decimal.Decimal | None:
    """Return the value with so many digits after the point; None if a digit would be lost."""
    try:
        return _EXACT.copy().quantize(value, from_unscaled(1, scale))
    except decimal.DecimalException:
        return None


def floor_to_scale(value: decimal.Decimal | float, scale: int) -> decimal.Decimal | None:
    """Return the greatest value with so many digits after the point that is not above; None if it has too many."""
    exact = value if isinstance(value, decimal.Decimal) else decimal.Decimal.from_float(value)  # noqa: FURB164 - the constructor obeys a trap of the context
    try:
        return _FLOOR.copy().quantize(exact, from_unscaled(1, scale))
    except decimal.DecimalException:
        return None


def to_whole(value: decimal.Decimal) -> int | None:
    """Return the integer that equals the value; None if there is none."""
    if not value.is_finite() or value.adjusted() > _PRECISION:
        return None
    whole = int(value)
    return whole if value == whole else None
