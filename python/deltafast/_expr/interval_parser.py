"""Parser of `INTERVAL` literals at a token cursor."""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltafast._expr import token_kind
from deltafast._expr.syntax import IntervalLit

if TYPE_CHECKING:
    from deltafast._expr.cursor import TokenCursor

__all__ = ["read_interval"]

_MONTHS: Final = {"YEAR": 12, "MONTH": 1}
_MICROS: Final = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_UNITS: Final = {u: u for u in (*_MONTHS, *_MICROS)} | {u + "S": u for u in (*_MONTHS, *_MICROS)}
_RANGES: Final = {
    ("YEAR", "MONTH"): r"(?P<YEAR>\d+)-(?P<MONTH>\d+)",
    ("DAY", "HOUR"): r"(?P<DAY>\d+) +(?P<HOUR>\d+)",
    ("DAY", "MINUTE"): r"(?P<DAY>\d+) +(?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("DAY", "SECOND"): r"(?P<DAY>\d+) +(?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
    ("HOUR", "MINUTE"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("HOUR", "SECOND"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
    ("MINUTE", "SECOND"): r"(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
}
#: Characters of a number of units; Python does not convert thousands of digits.
_MAX_LENGTH: Final = 60
_LIMITS: Final = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}


def read_interval(cursor: TokenCursor, pos: int) -> IntervalLit:
    """Parse the part after INTERVAL: `1 DAY`, `'1-2' YEAR TO MONTH`, `1 DAY 2 HOURS`, `'1 day'`.

    Args:
        cursor: The tokens.
        pos: Position of INTERVAL, for errors.
    """
    if cursor.token.kind is token_kind.STRING and cursor.ahead().upper not in _UNITS:
        return _interval_in_string(cursor, pos)
    months, micros, units = 0, 0, set[str]()
    while True:
        negative = False
        if (
            cursor.is_op("-", "+")
            and (cursor.ahead().kind in (token_kind.NUMBER, token_kind.STRING))
            and cursor.ahead(2).upper in _UNITS
        ):
            negative = cursor.advance().text == "-"
        if cursor.token.kind not in (token_kind.NUMBER, token_kind.STRING) or cursor.ahead().upper not in _UNITS:
            break
        body = cursor.advance().text.strip()
        unit = _UNITS[cursor.advance().upper]
        if cursor.token.upper == "TO" and not units:
            cursor.advance()
            return _range(cursor, body, unit, negative=negative, pos=pos)
        add_months, add_micros = _part(cursor, body, unit, pos)
        months += -add_months if negative else add_months
        micros += -add_micros if negative else add_micros
        units.add(unit)
    return _interval_of(cursor, months, micros, units, pos)


def _interval_of(cursor: TokenCursor, months: int, micros: int, units: set[str], pos: int) -> IntervalLit:
    if not units:
        raise cursor.error("an INTERVAL without a unit", pos, "write INTERVAL 1 DAY or INTERVAL '2' MONTH")
    if units <= set(_MONTHS):
        return IntervalLit(months, 0, day_only=False, pos=pos)
    if units & set(_MONTHS):
        raise cursor.error("an INTERVAL cannot mix months and days", pos, "add two intervals one after another")
    return IntervalLit(None, micros, day_only=units <= {"DAY", "WEEK"}, pos=pos)


def _part(cursor: TokenCursor, body: str, unit: str, pos: int) -> tuple[int, int]:
    pattern = r"[+-]?\d+(\.\d{1,9})?" if unit == "SECOND" else r"[+-]?\d+"
    if len(body) > _MAX_LENGTH or not re.fullmatch(pattern, body):
        raise cursor.error(f"{body[:20]!r} is not a number of {unit}s", pos, "write a whole number")
    if unit in _MONTHS:
        return int(body) * _MONTHS[unit], 0
    return 0, _micros(body, unit)


def _micros(number: str, unit: str) -> int:
    """Return the microseconds of a number of units; digits after the sixth of a fraction of a second are cut off."""
    whole, _, fraction = number.partition(".")
    # Only seconds have a fraction, so it is a number of microseconds.
    cut = int((fraction + "000000")[:6])
    return int(whole) * _MICROS[unit] + (-cut if whole.startswith("-") else cut)


def _interval_in_string(cursor: TokenCursor, pos: int) -> IntervalLit:
    """`INTERVAL '1 day 2 hours'`: the same list of numbers and units, inside the quotes."""
    words = cursor.advance().text.split()
    months, micros, units = 0, 0, set[str]()
    if words and words[0].lower() == "interval":
        words = words[1:]
    if len(words) % 2:
        words = []
    for body, word in zip(words[::2], words[1::2], strict=True):
        unit = _UNITS.get(word.upper())
        if unit is None:
            raise cursor.error(f"{word[:20]!r} is not a unit of an INTERVAL", pos, "use YEAR to MICROSECOND")
        add_months, add_micros = _part(cursor, body, unit, pos)
        months, micros = months + add_months, micros + add_micros
        units.add(unit)
    return _interval_of(cursor, months, micros, units, pos)


def _range(cursor: TokenCursor, body: str, start: str, *, negative: bool, pos: int) -> IntervalLit:
    end = _UNITS.get(cursor.advance().upper, "")
    pattern = _RANGES.get((start, end))
    match = re.fullmatch(r"(?P<sign>[+-]?)" + pattern, body) if pattern and len(body) <= _MAX_LENGTH else None
    if match is None:
        hint = "write INTERVAL '1-2' YEAR TO MONTH or INTERVAL '1 02:03:04' DAY TO SECOND"
        raise cursor.error(f"{body[:30]!r} is not an INTERVAL {start} TO {end}", pos, hint)
    total = 0
    for unit, value in match.groupdict().items():
        if unit == "sign":
            continue
        if unit != start and int(value.partition(".")[0]) > _LIMITS[unit]:
            raise cursor.error(f"{value} {unit}s are too many", pos, f"at most {_LIMITS[unit]} may follow")
        total += int(value) * _MONTHS[unit] if start == "YEAR" else _micros(value, unit)
    amount = -total if (match["sign"] == "-") != negative else total
    if start == "YEAR":
        return IntervalLit(amount, 0, day_only=False, pos=pos)
    return IntervalLit(None, amount, day_only=False, pos=pos)
