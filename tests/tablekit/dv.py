"""Deletion vectors by hand: Roaring's portable format, the protocol's framing, Z85."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

MAGIC = 1681511377
_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_ARRAY_LIMIT = 4096


def z85(data: bytes) -> str:
    """Return the Z85 text of bytes whose length is a multiple of four."""
    out = bytearray()
    for (word,) in struct.iter_unpack(">I", data):
        rest, group = word, bytearray()
        for _ in range(5):
            rest, digit = divmod(rest, 85)
            group.append(_ALPHABET[digit])
        out += group[::-1]
    return out.decode()


def _runs(values: list[int]) -> list[tuple[int, int]]:
    """Return the runs of consecutive values as (start, length - 1)."""
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and runs[-1][0] + runs[-1][1] + 1 == value:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((value, 0))
    return runs


def _container(values: list[int], *, run: bool) -> bytes:
    """Return one container of 16-bit values: array, bitmap or runs."""
    if run:
        runs = _runs(values)
        return struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *r) for r in runs)
    if len(values) <= _ARRAY_LIMIT:
        return struct.pack(f"<{len(values)}H", *values)
    bits = bytearray(8192)
    for value in values:
        bits[value >> 3] |= 1 << (value & 7)
    return bytes(bits)


def roaring32(values: Iterable[int], *, run: bool = False) -> bytes:
    """Return 32-bit values in Roaring's portable format."""
    groups: dict[int, list[int]] = {}
    for value in sorted(set(values)):
        groups.setdefault(value >> 16, []).append(value & 0xFFFF)
    containers = [_container(group, run=run) for group in groups.values()]
    count = len(groups)
    if run:
        flags = bytearray((count + 7) // 8)
        for i in range(count):
            flags[i >> 3] |= 1 << (i & 7)
        header = struct.pack("<I", 12347 | (count - 1) << 16) + bytes(flags)
    else:
        header = struct.pack("<II", 12346, count)
    header += b"".join(struct.pack("<HH", key, len(group) - 1) for key, group in groups.items())
    if not run or count >= 4:
        at = len(header) + 4 * count
        for container in containers:
            header += struct.pack("<I", at)
            at += len(container)
    return header + b"".join(containers)


def treemap(rows: Iterable[int], *, run: bool = False) -> bytes:
    """Return row indexes as the protocol's 64-bit bitmap, with its magic number."""
    buckets: dict[int, list[int]] = {}
    for row in sorted(set(rows)):
        buckets.setdefault(row >> 32, []).append(row & 0xFFFFFFFF)
    out = struct.pack("<IQ", MAGIC, len(buckets))
    for key, values in buckets.items():
        out += struct.pack("<I", key) + roaring32(values, run=run)
    return out


def frame(data: bytes, *, size: int | None = None, crc: int | None = None) -> bytes:
    """Return a bitmap as it stands in a file: size, data, CRC-32 (both big-endian)."""
    size = len(data) if size is None else size
    crc = zlib.crc32(data) if crc is None else crc
    return struct.pack(">I", size & 0xFFFFFFFF) + data + struct.pack(">I", crc & 0xFFFFFFFF)


def file_name(identifier: uuid.UUID) -> str:
    """Return the name of the deletion vector file with this id."""
    return f"deletion_vector_{identifier}.bin"


def relative(identifier: uuid.UUID, prefix: str = "") -> str:
    """Return `pathOrInlineDv` for a file beside the table's data."""
    return prefix + z85(identifier.bytes)


def inline(rows: Iterable[int], cardinality: int | None = None) -> dict[str, object]:
    """Return the descriptor of an inline deletion vector."""
    rows = list(rows)
    data = treemap(rows)
    padded = data + b"\0" * (-len(data) % 4)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(padded),
        "sizeInBytes": len(data),
        "cardinality": len(set(rows)) if cardinality is None else cardinality,
    }
