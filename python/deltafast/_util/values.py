"""Conversion of timestamps and partition values between Python and the log."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from deltafast.exceptions import InvalidArgumentError

__all__ = ["from_epoch_ms", "partition_text", "to_epoch_ms"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_epoch_ms(when: str | datetime) -> int:
    """Convert a timestamp to milliseconds since the epoch, rounded down; without a zone it is in UTC."""
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            message = f"not an ISO 8601 date and time: {when!r:.60}"
            raise InvalidArgumentError(message) from None
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND


def partition_text(value: object) -> str | None:
    """Return a partition value as a string, as Delta serializes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def from_epoch_ms(milliseconds: int) -> datetime:
    """Convert milliseconds since the epoch to a timestamp in UTC: the inverse of `to_epoch_ms`."""
    return _EPOCH + milliseconds * _MILLISECOND
