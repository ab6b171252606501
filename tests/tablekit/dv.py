"""Deletion vectors by hand: Roaring's portable format, the protocol's framing, Z85."""

from __future__ import annotations

import pathlib
import struct
import uuid
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC = 1681511377
_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_ARRAY_LIMIT = 4096
_WITHOUT_RUNS, _WITH_RUNS = 12346, 12347
#: Bitmaps with runs have offsets from so many containers on.
_OFFSETS_FROM = 4


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
        header = struct.pack("<I", _WITH_RUNS | (count - 1) << 16) + bytes(flags)
    else:
        header = struct.pack("<II", _WITHOUT_RUNS, count)
    header += b"".join(struct.pack("<HH", key, len(group) - 1) for key, group in groups.items())
    if not run or count >= _OFFSETS_FROM:
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


# --- the other way ------------------------------------------------------------------------------------


def from_z85(text: str) -> bytes:
    """Return the bytes of a Z85 text."""
    out = bytearray()
    for at in range(0, len(text), 5):
        word = 0
        for digit in text[at : at + 5].encode():
            word = word * 85 + _ALPHABET.index(digit)
        out += word.to_bytes(4, "big")
    return bytes(out)


def path_of(text: str) -> str:
    """Return the file, below the table, of the `pathOrInlineDv` of a vector beside the data."""
    prefix, identifier = text[:-20], text[-20:]
    return str(pathlib.PurePosixPath(prefix, file_name(uuid.UUID(bytes=from_z85(identifier)))))


def deleted(table: pathlib.Path, vector: dict[str, Any]) -> set[int]:
    """Return the rows that a descriptor deletes.

    Raises:
        ValueError: What is stored is not what the descriptor says.
        OSError: There is no such file.
    """
    size, kind = vector["sizeInBytes"], vector["storageType"]
    if kind == "i":
        data = from_z85(vector["pathOrInlineDv"])[:size]
    elif kind == "u":
        whole = (table / path_of(vector["pathOrInlineDv"])).read_bytes()
        at = vector.get("offset") or 0
        data = whole[at + 4 : at + 4 + size]
        if whole[at : at + 4] != struct.pack(">I", size) or whole[at + 4 + size :][:4] != struct.pack(
            ">I", zlib.crc32(data)
        ):
            message = f"size or CRC-32 at {at} is not that of {size} bytes"
            raise ValueError(message)
    else:
        message = f"a vector of the kind {kind}"
        raise ValueError(message)
    try:
        rows = _from_treemap(data)
    except (struct.error, IndexError) as error:
        message = f"the bitmap is not whole: {error}"
        raise ValueError(message) from error
    if len(rows) != vector["cardinality"]:
        message = f"the cardinality is {vector['cardinality']}, there are {len(rows)} rows"
        raise ValueError(message)
    return rows


def _from_treemap(data: bytes) -> set[int]:
    """Return the row indexes of the protocol's 64-bit bitmap."""
    magic, buckets = struct.unpack_from("<IQ", data)
    if magic != MAGIC:
        message = f"the magic number is {magic}"
        raise ValueError(message)
    rows: set[int] = set()
    at = 12
    for _ in range(buckets):
        (high,) = struct.unpack_from("<I", data, at)
        at, values = _from_roaring32(data, at + 4)
        rows |= {high << 32 | value for value in values}
    if at != len(data):
        message = f"{len(data) - at} bytes follow the bitmap"
        raise ValueError(message)
    return rows


def _from_roaring32(data: bytes, at: int) -> tuple[int, set[int]]:
    """Return where a 32-bit bitmap that begins at `at` ends, and its values."""
    (cookie,) = struct.unpack_from("<I", data, at)
    flags = 0
    if cookie & 0xFFFF == _WITH_RUNS:
        count, at = (cookie >> 16) + 1, at + 4
        flags = int.from_bytes(data[at : at + (count + 7) // 8], "little")
        at += (count + 7) // 8
    elif cookie == _WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, at + 4)
        at += 8
    else:
        message = f"the cookie is {cookie}"
        raise ValueError(message)
    heads = list(struct.iter_unpack("<HH", data[at : at + 4 * count]))
    at += 4 * count
    if cookie == _WITHOUT_RUNS or count >= _OFFSETS_FROM:
        at += 4 * count
    values: set[int] = set()
    for number, (key, last) in enumerate(heads):
        if flags >> number & 1:
            (runs,) = struct.unpack_from("<H", data, at)
            at += 2
            low = {
                v
                for start, more in struct.iter_unpack("<HH", data[at : at + 4 * runs])
                for v in range(start, start + more + 1)
            }
            at += 4 * runs
        elif last < _ARRAY_LIMIT:
            low = set(struct.unpack_from(f"<{last + 1}H", data, at))
            at += 2 * (last + 1)
        else:
            bits = int.from_bytes(data[at : at + 8192], "little")
            low = {v for v in range(1 << 16) if bits >> v & 1}
            at += 8192
        if len(low) != last + 1:
            message = f"a container has {len(low)} values, not {last + 1}"
            raise ValueError(message)
        values |= {key << 16 | value for value in low}
    return at, values
