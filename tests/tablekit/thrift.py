"""Thrift's compact protocol, just enough to take a Parquet footer apart, change it and put it back.

A struct is a dictionary `field id -> (type, value)`; a list is `(element type, [values])`. What a test wants to lie
about is changed in place: number of rows, offsets, sizes, the schema's shape.
"""

from __future__ import annotations

import struct
from typing import Any

Struct = dict[int, tuple[int, Any]]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class _Reader:
    """Reads values from bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        out = shift = 0
        while True:
            byte = self.byte()
            out |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return out

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int) -> Any:  # noqa: PLR0911 - one line a type
        match kind:
            case 1 | 2:
                return kind == TRUE
            case 3:
                return self.byte()
            case 4 | 5 | 6:
                return self.zigzag()
            case 7:
                self.at += 8
                return struct.unpack_from("<d", self.data, self.at - 8)[0]
            case 8:
                size = self.varint()
                self.at += size
                return self.data[self.at - size : self.at]
            case 9 | 10:
                head = self.byte()
                size = head >> 4 if head >> 4 != 15 else self.varint()
                element = head & 15
                if element in {TRUE, FALSE}:
                    return element, [self.byte() == TRUE for _ in range(size)]
                return element, [self.value(element) for _ in range(size)]
            case 12:
                return self.struct()
            case _:
                message = f"thrift type {kind} does not occur in Parquet footers"
                raise ValueError(message)

    def struct(self) -> Struct:
        out: Struct = {}
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            out[field] = (head & 15, self.value(head & 15))
        return out


def decode(data: bytes) -> Struct:
    """Return the struct that `data` holds."""
    return _Reader(data).struct()


def decode_prefix(data: bytes) -> tuple[Struct, int]:
    """Return the struct that `data` begins with and its length in bytes."""
    reader = _Reader(data)
    return reader.struct(), reader.at


def varint(value: int) -> bytes:
    """Return an unsigned LEB128 number."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def _encode_value(kind: int, value: Any) -> bytes:  # noqa: PLR0911 - one line a type
    match kind:
        case 1 | 2:
            return b""
        case 3:
            return bytes([value])
        case 4 | 5 | 6:
            return _zigzag(value)
        case 7:
            return struct.pack("<d", value)
        case 8:
            return varint(len(value)) + value
        case 9 | 10:
            element, items = value
            size = len(items)
            head = bytes([size << 4 | element]) if size < 15 else bytes([0xF0 | element]) + varint(size)
            if element in {TRUE, FALSE}:
                return head + bytes(TRUE if i else FALSE for i in items)
            return head + b"".join(_encode_value(element, i) for i in items)
        case _:
            return encode(value)


def encode(fields: Struct) -> bytes:
    """Return the bytes of a struct."""
    out, last = bytearray(), 0
    for field, (kind, value) in sorted(fields.items()):
        if kind in {TRUE, FALSE}:
            kind = TRUE if value else FALSE  # noqa: PLW2901
        delta = field - last
        out += bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + _zigzag(field)
        out += _encode_value(kind, value)
        last = field
    return bytes(out) + b"\0"


def footer(parquet: bytes) -> Struct:
    """Return the FileMetaData of a Parquet file."""
    size = int.from_bytes(parquet[-8:-4], "little")
    return decode(parquet[-8 - size : -8])


def with_footer(parquet: bytes, changed: Struct) -> bytes:
    """Return the file with another FileMetaData."""
    size = int.from_bytes(parquet[-8:-4], "little")
    data = encode(changed)
    return parquet[: -8 - size] + data + struct.pack("<I", len(data)) + b"PAR1"
