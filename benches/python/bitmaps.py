"""Deletion vectors, written: sorted row numbers -> bytes as Delta stores them.

The 64-bit portable Roaring format with Delta's magic number, each 16-bit block as
an array, a bitmap or runs, whichever is smallest (what the JVM writer's
`runOptimize` picks), framed with size and CRC-32 as in a deletion vector file.
Python writes only the few bytes of headers; each block's data is one NumPy call.
Protocol: "Deletion Vector Format". A benchmark must not write its input with the
library that it measures, hence this second, independent writer.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import uuid

_MAGIC = 1681511377
_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM = 4  # with runs, fewer blocks than this have no offset header
_BITMAP_BYTES = 8192
_FILE_VERSION = b"\x01"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def serialize(rows: Any) -> bytes:
    """Serialise a deletion vector.

    Args:
        rows: Strictly ascending row numbers, at least one.

    Returns:
        The magic number and the 64-bit bitmap.
    """
    values = np.asarray(rows, dtype=np.uint64)
    high = values >> np.uint64(32)
    starts = _starts(high)
    out = [struct.pack("<IQ", _MAGIC, len(starts))]
    for start, stop in zip(starts, [*starts[1:], len(values)], strict=True):
        out.append(struct.pack("<I", int(high[start])))
        out.append(_bitmap32((values[start:stop] & np.uint64(0xFFFFFFFF)).astype(np.uint32)))
    return b"".join(out)


def _starts(keys: Any) -> list[int]:
    return [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()]


def _bitmap32(values: Any) -> bytes:
    keys = values >> np.uint32(16)
    lows = (values & np.uint32(0xFFFF)).astype("<u2")
    starts = _starts(keys)
    descriptions: list[bytes] = []
    blocks: list[bytes] = []
    run_flags: list[bool] = []
    for start, stop in zip(starts, [*starts[1:], len(values)], strict=True):
        low = lows[start:stop]
        descriptions.append(struct.pack("<HH", int(keys[start]), stop - start - 1))
        is_run, block = _block(low)
        run_flags.append(is_run)
        blocks.append(block)
    count = len(blocks)
    if any(run_flags):
        flags = np.packbits(np.array(run_flags), bitorder="little").tobytes()
        header = struct.pack("<I", _COOKIE_WITH_RUNS | (count - 1) << 16) + flags
        with_offsets = count >= _OFFSETS_FROM
    else:
        header = struct.pack("<II", _COOKIE, count)
        with_offsets = True
    header += b"".join(descriptions)
    if with_offsets:
        sizes = np.array([len(block) for block in blocks], dtype=np.int64)
        offsets = len(header) + 4 * count + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        header += offsets.astype("<u4").tobytes()
    return header + b"".join(blocks)


def _block(low: Any) -> tuple[bool, bytes]:
    wide = low.astype(np.int32)
    breaks = np.flatnonzero(np.diff(wide) != 1)
    runs = len(breaks) + 1
    plain = min(2 * len(low), _BITMAP_BYTES)
    if 2 + 4 * runs < plain:
        first = np.concatenate([[0], breaks + 1])
        last = np.concatenate([breaks, [len(low) - 1]])
        pairs = np.empty(2 * runs, dtype="<u2")
        pairs[0::2] = low[first]
        pairs[1::2] = wide[last] - wide[first]
        return True, struct.pack("<H", runs) + pairs.tobytes()
    if 2 * len(low) <= _BITMAP_BYTES:
        return False, low.tobytes()
    bits = np.zeros(65536, dtype=bool)
    bits[low] = True
    return False, np.packbits(bits, bitorder="little").tobytes()


def z85(data: bytes) -> str:
    """Encode bytes as Z85 text.

    Args:
        data: Bytes, a multiple of four.

    Returns:
        Five characters for each four bytes.
    """
    out: list[str] = []
    for (word,) in struct.iter_unpack(">I", data):
        out.extend(_Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return "".join(out)


class VectorFile:
    """The content of one deletion vector file, built vector by vector."""

    def __init__(self, identifier: uuid.UUID) -> None:
        """Begin a file.

        Args:
            identifier: The UUID in the file's name.
        """
        self.name = f"deletion_vector_{identifier}.bin"
        self._encoded = z85(identifier.bytes)
        self._parts = [_FILE_VERSION]
        self._size = len(_FILE_VERSION)

    def add(self, rows: Any) -> dict[str, int | str]:
        """Append a vector.

        Args:
            rows: Strictly ascending row numbers, at least one.

        Returns:
            The descriptor that goes into the add action.
        """
        data = serialize(rows)
        descriptor: dict[str, int | str] = {
            "storageType": "u",
            "pathOrInlineDv": self._encoded,
            "offset": self._size,
            "sizeInBytes": len(data),
            "cardinality": len(rows),
        }
        framed = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        self._parts.append(framed)
        self._size += len(framed)
        return descriptor

    def content(self) -> bytes:
        """Give the whole file.

        Returns:
            The bytes to write.
        """
        return b"".join(self._parts)
