"""Literals: parsing, and casts of literals that can be evaluated during planning.

`fold_cast` evaluates a cast in the plan, so that pruning has a plain constant. It does so only if the result is certain
*and* equal to Spark's; everything else (invalid strings, overflow, lossy numbers) stays a cast node, so that an ANSI
error is raised if, and only if, Spark would raise it.

Dates are days and timestamps microseconds since 1970-01-01, in the proleptic Gregorian calendar.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
from functools import lru_cache
from typing import Final

from deltafast._expr import types
from deltafast._expr.decimals import from_unscaled, rescale, to_whole
from deltafast._expr.tree import Lit, Value
from deltafast._expr.types import DataType, Decimal
from deltafast.exceptions import InvalidArgumentError

__all__ = [
    "MAX_PRECISION",
    "exact_float32",
    "fold_cast",
    "format_date",
    "format_timestamp",
    "number",
    "parse_date",
    "parse_timestamp",
    "time_zone",
]

MAX_PRECISION: Final = 38
MICROS_PER_DAY: Final = 86_400_000_000
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MAX_DIGITS: Final = 400
_WHITE: Final = "".join(map(chr, range(33))) + "\x7f"  # Spark's trimAll: white space and ISO control characters
_INT: Final = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT: Final = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,5})?")
_DATE: Final = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP: Final = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?\s*([A-Za-z0-9:+/_-]*))?)?)?"
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::([0-9]{1,2}))?")
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_TRUE: Final = frozenset(("t", "true", "y", "yes", "1"))
_FALSE: Final = frozenset(("f", "false", "n", "no", "0"))
_FLOAT_MAX: Final = 3.4028234663852886e38
_FLOAT_MAX_BITS: Final = 0x7F7FFFFF
_EXACT_INT: Final = {"float": 1 << 24, "double": 1 << 53}


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
    if suffix == "F":
        single = exact_float32(decimal.Decimal(text))
        return None if math.isinf(single) else Lit(single, types.FLOAT)
    if suffix == "D" or (not suffix and exponent):
        double = float(text)
        return None if math.isinf(double) else Lit(double, types.DOUBLE)
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


def exact_float32(value: decimal.Decimal | float) -> float:
    """Return the nearest single-precision number, rounded once (through a double it could be rounded twice)."""
    as_double = float(value)
    if not math.isfinite(as_double):
        return as_double
    if abs(as_double) > _FLOAT_MAX * (1 + 2**-25):
        return math.copysign(math.inf, as_double)
    near = _single(max(-_FLOAT_MAX, min(_FLOAT_MAX, as_double)))
    if isinstance(value, float):
        return near
    from fractions import Fraction  # rarely needed, slow to load

    exact, best = Fraction(value), near
    for candidate in (_step(near, 1), _step(near, -1)):
        if math.isfinite(candidate) and abs(Fraction(candidate) - exact) < abs(Fraction(best) - exact):
            best = candidate
    return best


def _single(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def _step(value: float, by: int) -> float:
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<i", bits + by))[0] if 0 < abs(bits) < _FLOAT_MAX_BITS else value


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


# --- calendar


def days_from_civil(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01, or None for a day that does not exist."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not (1 <= month <= len(lengths) and 1 <= day <= lengths[month - 1]):
        return None
    y = year - (month <= 2)  # noqa: PLR2004 - the year starts in March here, so that the leap day is its last
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """The inverse of `days_from_civil`."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = (shifted_month + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day  # noqa: PLR2004 - see above


def parse_date(text: str) -> int | None:
    """Days for `[+-]yyyy*[-[m]m[-[d]d[( |T)...]]]`, None for anything else."""
    match = _DATE.fullmatch(text.strip(_WHITE))
    if match is None:
        return None
    year = int(match[2]) * (-1 if match[1] == "-" else 1)
    days = days_from_civil(year, int(match[3] or 1), int(match[4] or 1))
    return days if days is not None and _in_range(days, types.INTEGER) else None


def parse_timestamp(text: str, zone: str | None) -> int | None:
    """Return the microseconds of a timestamp string; None if it is invalid or not certain.

    Args:
        text: A string as Spark casts it. A time without a date means today, so it is never certain.
        zone: The session zone, used if the string has none. None for a timestamp without zone: a zone in the string is
            ignored, as in Spark.
    """
    match = _TIMESTAMP.fullmatch(text.strip(_WHITE))
    if match is None:
        return None
    sign, year, month, day, hour, minute, second, fraction, named = match.groups(default="")
    days = days_from_civil(int(year) * (-1 if sign == "-" else 1), int(month or 1), int(day or 1))
    clock = (int(hour or 0), int(minute or 0), int(second or 0))
    if days is None or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:  # noqa: PLR2004 - the clock's limits
        return None
    seconds = clock[0] * 3600 + clock[1] * 60 + clock[2]
    local = days * MICROS_PER_DAY + seconds * 1_000_000 + int((fraction + "000000")[:6])
    if named and not _is_certain_zone(named):
        return None
    if zone is not None:
        shifted = local_to_utc(local, named or zone)
        if shifted is None:
            return None
        local = shifted
    return local if _in_range(local, types.LONG) else None


def _is_certain_zone(name: str) -> bool:
    """Return whether a zone in a string is the same here and in Java, which has its own short names (`EST`, `IST`)."""
    if "/" not in name and name.upper() not in ("Z", "UTC", "GMT", "UT") and not _OFFSET.fullmatch(name):
        return False
    try:
        time_zone(name)
    except InvalidArgumentError:
        return False
    return True


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


def local_to_utc(local: int, zone: str) -> int | None:
    """Local microseconds to an instant: in a gap later by its length, in an overlap the earlier one, as Java does."""
    tz = time_zone(zone)
    if tz is dt.UTC:
        return local
    if isinstance(tz, dt.timezone):
        offset = tz.utcoffset(None)
    else:
        try:
            naive = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=local)  # noqa: DTZ001 - local time is meant
        except OverflowError:
            return None
        offset = naive.replace(tzinfo=tz, fold=0).utcoffset()
    return None if offset is None else local - _micros(offset)


def utc_to_local(micros: int, zone: str) -> int | None:
    """An instant to local microseconds."""
    tz = time_zone(zone)
    if tz is dt.UTC:
        return micros
    try:
        offset = (_EPOCH + dt.timedelta(microseconds=micros)).astimezone(tz).utcoffset()
    except (OverflowError, ValueError):
        return None
    return None if offset is None else micros + _micros(offset)


def _micros(delta: dt.timedelta) -> int:
    return delta // dt.timedelta(microseconds=1)


def format_date(days: int) -> str:
    """`yyyy-MM-dd`, with a sign beyond four digits, as a literal takes it."""
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""  # noqa: PLR2004 - four digits
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def format_timestamp(micros: int) -> str:
    """`yyyy-MM-dd HH:mm:ss.ffffff` without trailing zeros of the fraction."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{format_date(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


# --- casts


def fold_cast(lit: Lit, to: DataType, zone: str) -> Lit | None:
    """Return the literal in another type if the cast is certain and lossless, else None.

    The result is the same in ANSI, legacy and TRY mode.
    """
    if isinstance(to, (types.Array, types.Map, types.Struct, types.Interval)):
        return Lit(None, to) if lit.value is None else None
    if lit.value is None:
        return Lit(None, to)
    if lit.type == to:
        return lit
    value = _fold(lit.value, lit.type, to, zone)
    return None if value is None else Lit(value, to)


def _fold(value: Value, source: DataType, to: DataType, zone: str) -> Value:  # noqa: PLR0911 - one line a type
    if isinstance(value, bool):
        return _fold_bool(value, to)
    if types.is_string(source) and isinstance(value, str):
        return _fold_string(value, to, zone)
    if types.is_integral(source) and isinstance(value, int):
        return _fold_int(value, to)
    if isinstance(value, decimal.Decimal):
        return _fold_decimal(value, to)
    if source in (types.FLOAT, types.DOUBLE) and isinstance(value, float):
        return _fold_double(value, to)
    if types.is_datetime(source) and isinstance(value, int):
        return _fold_datetime(value, source, to, zone)
    return None


def _fold_bool(value: bool, to: DataType) -> Value:
    if to == types.STRING:
        return "true" if value else "false"
    if types.is_integral(to):
        return int(value)
    return float(value) if to in (types.FLOAT, types.DOUBLE) else None


def _fold_int(value: int, to: DataType) -> Value:
    if types.is_integral(to):
        return value if _in_range(value, to) else None
    if isinstance(to, Decimal):
        return fits_decimal(decimal.Decimal(value), to)
    if to == types.STRING:
        return str(value)
    if to == types.BOOLEAN:
        return value != 0
    if to in (types.FLOAT, types.DOUBLE):
        exact = abs(value) <= _EXACT_INT["float" if to == types.FLOAT else "double"]
        return float(value) if exact or to == types.DOUBLE else None
    return None


def _fold_decimal(value: decimal.Decimal, to: DataType) -> Value:
    if isinstance(to, Decimal):
        return fits_decimal(value, to)
    if to == types.DOUBLE:
        return float(value)
    whole = to_whole(value) if types.is_integral(to) else None
    return whole if whole is not None and _in_range(whole, to) else None


def _fold_double(value: float, to: DataType) -> Value:
    if to == types.DOUBLE:
        return value
    if to == types.FLOAT:
        near = exact_float32(value)
        return near if near == value or math.isnan(value) else None
    if types.is_integral(to) and math.isfinite(value) and value == int(value):
        return int(value) if _in_range(int(value), to) else None
    return None


def _fold_datetime(value: int, source: DataType, to: DataType, zone: str) -> Value:  # noqa: PLR0911
    if source == types.DATE:
        micros = value * MICROS_PER_DAY
        if to == types.TIMESTAMP_NTZ:
            return micros if _in_range(micros, types.LONG) else None
        if to == types.TIMESTAMP:
            return local_to_utc(micros, zone) if _in_range(micros, types.LONG) else None
        if to == types.STRING and 0 <= civil_from_days(value)[0] <= 9999:  # noqa: PLR2004 - four digits
            return format_date(value)
        return None
    if source == types.TIMESTAMP_NTZ:
        if to == types.DATE:
            return value // MICROS_PER_DAY
        return local_to_utc(value, zone) if to == types.TIMESTAMP else None
    local = utc_to_local(value, zone)
    if local is None:
        return None
    if to == types.DATE:
        return local // MICROS_PER_DAY
    return local if to == types.TIMESTAMP_NTZ else None


def _fold_string(value: str, to: DataType, zone: str) -> Value:  # noqa: PLR0911 - one line a type
    text = value.strip(_WHITE)
    if to == types.STRING:
        return value
    if to == types.BINARY:
        return value.encode("utf-8", "surrogatepass")
    if types.is_integral(to):
        return int(text) if _INT.fullmatch(text) and _in_range(int(text), to) else None
    if isinstance(to, Decimal):
        return fits_decimal(decimal.Decimal(text), to) if _FLOAT.fullmatch(text) else None
    if to == types.DOUBLE:
        return float(text) if _FLOAT.fullmatch(text) else _named_double(text)
    if to == types.FLOAT:
        single = exact_float32(decimal.Decimal(text)) if _FLOAT.fullmatch(text) else None
        return _named_double(text) if single is None else single
    if to == types.BOOLEAN:
        lower = text.lower()
        return True if lower in _TRUE else False if lower in _FALSE else None
    if to == types.DATE:
        return parse_date(value)
    if to == types.TIMESTAMP:
        return parse_timestamp(value, zone)
    return parse_timestamp(value, None) if to == types.TIMESTAMP_NTZ else None


def _named_double(text: str) -> float | None:
    """Return the special double for a word, as Spark parses it."""
    lower = text.lower()
    if lower == "nan":
        return math.nan
    if lower in ("inf", "+inf", "infinity", "+infinity"):
        return math.inf
    return -math.inf if lower in ("-inf", "-infinity") else None
