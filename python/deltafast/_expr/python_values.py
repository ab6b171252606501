"""Python values -> literals with Spark's types: of DNF tuples and of `new_values`, scalars of pyarrow and Polars."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import TYPE_CHECKING, Any, cast

from deltafast._expr import literals, types
from deltafast._expr.syntax import Constant, Func
from deltafast._expr.tree import Lit
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from deltafast._expr.syntax import Syntax

__all__ = ["constant", "expression"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)


def expression(value: object) -> Syntax:
    """Return a value, or a list of them, as an expression.

    Raises:
        InvalidArgumentError: A value has no Spark type.
    """
    if isinstance(value, list):
        return Func("array", tuple(map(expression, cast("list[object]", value))))
    return constant(value)


def constant(value: object) -> Constant:  # noqa: C901, PLR0911, PLR0912 - one line a type
    """Return the literal of a value.

    A `datetime` without a zone is a TIMESTAMP_NTZ; compared with a TIMESTAMP column it is in the session's zone.

    Raises:
        InvalidArgumentError: The value has no Spark type.
    """
    item = getattr(value, "item", None)
    if callable(item) and not isinstance(value, (int, float, str, bytes)):
        # A NumPy scalar. np.datetime64 in nanoseconds gives an int here, which would be a silent error.
        if type(value).__name__ in ("datetime64", "timedelta64"):
            value = cast("Any", value).astype("datetime64[us]").item()
        else:
            value = item()
    if value is None:
        return Constant(Lit(None, types.VOID))
    if isinstance(value, bool):
        return Constant(Lit(value, types.BOOLEAN))
    if isinstance(value, int):
        return Constant(_int(value))
    if isinstance(value, float):
        return Constant(Lit(float(value), types.DOUBLE))
    if isinstance(value, decimal.Decimal):
        lit = literals.decimal_literal(value)
        if lit is not None:
            return Constant(lit)
    if isinstance(value, str):
        return Constant(Lit(str(value), types.STRING))
    if isinstance(value, (bytes, bytearray)):
        return Constant(Lit(bytes(value), types.BINARY))
    if isinstance(value, dt.datetime):
        return Constant(_datetime(value))
    if isinstance(value, dt.date):
        return Constant(Lit(value.toordinal() - _EPOCH.toordinal(), types.DATE))
    if isinstance(value, uuid.UUID):
        return Constant(Lit(str(value), types.STRING))
    msg = (
        f"there is no SQL literal for {value!r} of type {type(value).__name__}; pass a number, text, date or timestamp"
    )
    raise InvalidArgumentError(msg)


def _int(value: int) -> Lit:
    lit = literals.number(str(value), "")
    if lit is None:
        msg = f"the number {str(value)[:50]} has more than 38 digits; no column holds such a value"
        raise InvalidArgumentError(msg)
    return lit


def _datetime(value: dt.datetime) -> Lit:
    nanosecond = getattr(value, "nanosecond", 0)
    if nanosecond:
        msg = f"{value!r} has nanoseconds, and Delta's timestamps have microseconds; round it first"
        raise InvalidArgumentError(msg)
    plain = dt.datetime(  # noqa: DTZ001 - the zone is handled below; this strips pandas' subclass
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
    )
    micros = (plain - _EPOCH.replace(tzinfo=None)) // _MICRO
    offset = value.utcoffset()
    return Lit(micros if offset is None else micros - offset // _MICRO, types.timestamp_type(offset is not None))
