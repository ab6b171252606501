"""Variant bytes -> Python values, for comparing variants with the JSON text that the corpus stores.

Follows the Parquet "Variant Binary Encoding": a metadata dictionary of field names and a value, whose first byte
holds the basic type in its two low bits. Only reading, and only what JSON can show: the result is what a JSON parser
would give for the variant's text form.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import struct
import uuid
from typing import Any

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _uint(data: bytes, at: int, width: int) -> int:
    """Return the little-endian unsigned integer of `width` bytes at offset `at`."""
    return int.from_bytes(data[at : at + width], "little")


def _names(metadata: bytes) -> list[str]:
    """Return the dictionary of field names."""
    width = (metadata[0] >> 6) + 1
    count = _uint(metadata, 1, width)
    offsets = [_uint(metadata, 1 + width * (1 + i), width) for i in range(count + 1)]
    start = 1 + width * (2 + count)
    return [metadata[start + offsets[i] : start + offsets[i + 1]].decode() for i in range(count)]


def _decimal(value: bytes, at: int, width: int) -> decimal.Decimal:
    """Return the decimal at `at`: a scale byte, then `width` bytes of unscaled value."""
    unscaled = int.from_bytes(value[at + 1 : at + 1 + width], "little", signed=True)
    with decimal.localcontext(prec=60):
        return decimal.Decimal(unscaled).scaleb(-value[at])


def _timestamp(value: bytes, at: int, *, utc: bool) -> str:
    """Return the text of a timestamp in microseconds, as Spark writes it into JSON."""
    micros = int.from_bytes(value[at : at + 8], "little", signed=True)
    timestamp = _EPOCH + dt.timedelta(microseconds=micros)
    text = timestamp.strftime("%Y-%m-%d %H:%M:%S")
    fraction = f"{micros % 1_000_000:06d}".rstrip("0")
    return text + (f".{fraction}" if fraction else "") + ("+00:00" if utc else "")


def _primitive(kind: int, value: bytes, at: int) -> Any:  # noqa: PLR0911, PLR0912, C901 - one branch a type
    """Return the primitive of type id `kind` whose bytes start at `at`."""
    match kind:
        case 0:
            return None
        case 1:
            return True
        case 2:
            return False
        case 3 | 4 | 5 | 6:
            return int.from_bytes(value[at : at + (1 << (kind - 3))], "little", signed=True)
        case 7:
            return struct.unpack_from("<d", value, at)[0]
        case 8 | 9 | 10:
            return _decimal(value, at, 4 << (kind - 8))
        case 11:
            return str(
                dt.date(1970, 1, 1) + dt.timedelta(days=int.from_bytes(value[at : at + 4], "little", signed=True))
            )
        case 12:
            return _timestamp(value, at, utc=True)
        case 13:
            return _timestamp(value, at, utc=False)
        case 14:
            return struct.unpack_from("<f", value, at)[0]
        case 15:
            return base64.b64encode(value[at + 4 : at + 4 + _uint(value, at, 4)]).decode()
        case 16:
            return value[at + 4 : at + 4 + _uint(value, at, 4)].decode()
        case 20:
            return str(uuid.UUID(bytes=value[at : at + 16]))
        case _:
            message = f"variant primitive type {kind} is not known here"
            raise ValueError(message)


def _value(names: list[str], value: bytes, at: int) -> Any:
    """Return the value that starts at offset `at`."""
    header = value[at]
    basic, info = header & 3, header >> 2
    if basic == 0:
        return _primitive(info, value, at + 1)
    if basic == 1:
        return value[at + 1 : at + 1 + info].decode()
    if basic == 2:
        offset_width, id_width, count_width = (info & 3) + 1, ((info >> 2) & 3) + 1, 4 if info & 16 else 1
        count = _uint(value, at + 1, count_width)
        ids = at + 1 + count_width
        offsets = ids + count * id_width
        data = offsets + (count + 1) * offset_width
        return {
            names[_uint(value, ids + i * id_width, id_width)]: _value(
                names, value, data + _uint(value, offsets + i * offset_width, offset_width)
            )
            for i in range(count)
        }
    offset_width, count_width = (info & 3) + 1, 4 if info & 4 else 1
    count = _uint(value, at + 1, count_width)
    offsets = at + 1 + count_width
    data = offsets + (count + 1) * offset_width
    return [_value(names, value, data + _uint(value, offsets + i * offset_width, offset_width)) for i in range(count)]


def decode(metadata: bytes, value: bytes) -> Any:
    """Return the variant as the Python value that its JSON text would parse to."""
    return _value(_names(metadata), value, 0)
