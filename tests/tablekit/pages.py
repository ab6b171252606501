"""Parquet files of one column whose pages are given byte by byte, and a walk over the pages of any file."""

from __future__ import annotations

import itertools
import struct
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from . import thrift

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INT32, INT64, FLOAT, DOUBLE, BYTE_ARRAY = 1, 2, 4, 5, 6
PLAIN, RLE, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, RLE_DICTIONARY, BYTE_STREAM_SPLIT = 0, 3, 6, 7, 8, 9


def levels(encoded: bytes) -> bytes:
    """Return runs of levels with their length before them, as in a data page V1."""
    return struct.pack("<I", len(encoded)) + encoded


def data_page(body: bytes, count: int, encoding: int = PLAIN, *, checksum: int | None = None) -> bytes:
    """Return a data page V1 that is not compressed."""
    head = {1: (thrift.I32, count), 2: (thrift.I32, encoding), 3: (thrift.I32, RLE), 4: (thrift.I32, RLE)}
    return _page(0, body, {5: (thrift.STRUCT, head)}, checksum)


def data_page_v2(
    body: bytes, count: int, encoding: int = PLAIN, *, nulls: int = 0, definition: int = 0, checksum: int | None = None
) -> bytes:
    """Return a data page V2 that is not compressed; its first `definition` bytes are levels."""
    head = {
        1: (thrift.I32, count),
        2: (thrift.I32, nulls),
        3: (thrift.I32, count),
        4: (thrift.I32, encoding),
        5: (thrift.I32, definition),
        6: (thrift.I32, 0),
        7: (thrift.FALSE, False),
    }
    return _page(3, body, {8: (thrift.STRUCT, head)}, checksum)


def dictionary_page(body: bytes, count: int, *, checksum: int | None = None) -> bytes:
    """Return a dictionary page that is not compressed."""
    return _page(2, body, {7: (thrift.STRUCT, {1: (thrift.I32, count), 2: (thrift.I32, PLAIN)})}, checksum)


def _page(kind: int, body: bytes, head: thrift.Struct, checksum: int | None) -> bytes:
    sizes: thrift.Struct = {1: (thrift.I32, kind), 2: (thrift.I32, len(body)), 3: (thrift.I32, len(body))}
    if checksum is not None:
        signed = checksum - (1 << 32) if checksum >= 1 << 31 else checksum
        sizes[4] = (thrift.I32, signed)
    return thrift.encode(sizes | head) + body


def write(
    kind: int,
    pages: Sequence[bytes],
    rows: int,
    *,
    optional: bool = False,
    struct_of: bool = False,
    encodings: Sequence[int] = (PLAIN, RLE),
    statistics: thrift.Struct | None = None,
) -> bytes:
    """Return a file of one column `v` with these pages; the first is the dictionary if it is one.

    `struct_of` makes `v` an optional struct with an optional field `v`.
    """
    path = [b"v", b"v"] if struct_of else [b"v"]
    out = b"PAR1" + b"".join(pages)
    has_dictionary = thrift.decode_prefix(pages[0])[0][1][1] == 2
    meta: thrift.Struct = {
        1: (thrift.I32, kind),
        2: (thrift.LIST, (thrift.I32, list(encodings))),
        3: (thrift.LIST, (thrift.BINARY, path)),
        4: (thrift.I32, 0),
        5: (thrift.I64, rows),
        6: (thrift.I64, len(out) - 4),
        7: (thrift.I64, len(out) - 4),
        9: (thrift.I64, 4 + (len(pages[0]) if has_dictionary else 0)),
    }
    if has_dictionary:
        meta[11] = (thrift.I64, 4)
    if statistics:
        meta[12] = (thrift.STRUCT, statistics)
    leaf: thrift.Struct = {
        1: (thrift.I32, kind),
        3: (thrift.I32, int(optional or struct_of)),
        4: (thrift.BINARY, b"v"),
    }
    if kind == BYTE_ARRAY:
        leaf[6] = (thrift.I32, 0)
    elements: list[thrift.Struct] = [{4: (thrift.BINARY, b"root"), 5: (thrift.I32, 1)}]
    if struct_of:
        elements.append({3: (thrift.I32, 1), 4: (thrift.BINARY, b"v"), 5: (thrift.I32, 1)})
    elements.append(leaf)
    group: thrift.Struct = {
        1: (thrift.LIST, (thrift.STRUCT, [{2: (thrift.I64, 4), 3: (thrift.STRUCT, meta)}])),
        2: (thrift.I64, len(out) - 4),
        3: (thrift.I64, rows),
    }
    footer = thrift.encode(
        {
            1: (thrift.I32, 2),
            2: (thrift.LIST, (thrift.STRUCT, elements)),
            3: (thrift.I64, rows),
            4: (thrift.LIST, (thrift.STRUCT, [group])),
        }
    )
    return out + footer + struct.pack("<I", len(footer)) + b"PAR1"


class Page(NamedTuple):
    """Where a page is in its file, and its header."""

    start: int
    body: int
    end: int
    header: thrift.Struct

    def checksum(self) -> int | None:
        """Return the checksum that the header holds."""
        return self.header[4][1] & 0xFFFFFFFF if 4 in self.header else None


def chunks(data: bytes) -> Iterator[thrift.Struct]:
    """Give the metadata of each column chunk."""
    for group in thrift.footer(data)[4][1][1]:
        for chunk in group[1][1][1]:
            yield chunk[3][1]


def pages(data: bytes) -> Iterator[Page]:
    """Give every page of a file."""
    for column in chunks(data):
        at = min(column[k][1] for k in (9, 11) if k in column)
        end = at + column[7][1]
        while at < end:
            header, length = thrift.decode_prefix(data[at:end])
            page = Page(at, at + length, at + length + header[3][1], header)
            yield page
            at = page.end


def crc(data: bytes, page: Page) -> int:
    """Return the checksum that a page should have."""
    return zlib.crc32(data[page.body : page.end])


def delta_packed(numbers: Sequence[int]) -> bytes:
    """Return integers as DELTA_BINARY_PACKED, every delta in 32 bits."""
    deltas = [b - a for a, b in itertools.pairwise(numbers)]
    zigzag = lambda n: thrift.varint((n << 1) ^ (n >> 63))  # noqa: E731 - one line
    out = thrift.varint(128) + thrift.varint(4) + thrift.varint(len(numbers)) + zigzag(numbers[0] if numbers else 0)
    for begin in range(0, len(deltas), 128):
        block = deltas[begin : begin + 128]
        parts = [block[n : n + 32] for n in range(0, len(block), 32)]
        out += zigzag(min(block)) + bytes([32] * len(parts)).ljust(4, b"\0")
        for part in parts:
            out += b"".join(struct.pack("<I", delta - min(block)) for delta in part).ljust(128, b"\0")
    return out


def change_header(data: bytes, page: Page, changes: dict[int, Any]) -> bytes | None:
    """Return the file with other fields in a page's own header; None where that needs another number of bytes."""
    kind = next(field for field in (5, 7, 8) if field in page.header)
    inner = dict(page.header[kind][1])
    inner.update(
        {field: (inner[field][0], value) for field, value in changes.items() if inner.get(field, (0,))[0] == thrift.I32}
    )
    header = thrift.encode(page.header | {kind: (thrift.STRUCT, inner)})
    if len(header) != page.body - page.start:
        return None
    return data[: page.start] + header + data[page.body :]
