"""Parquet files byte by byte, for contents that no writer would produce: bombs and lies.

Every column is one optional leaf (or a leaf in one optional struct) holding one value, repeated by a run. That is how
a file of a few kilobytes comes to stand for gigabytes.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import pyarrow as pa

from . import thrift

INT32, INT64, BYTE_ARRAY = 1, 2, 6
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_CODECS = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6}


@dataclasses.dataclass
class Column:
    """One leaf: its path, physical type and the one value it repeats; None is null in every row."""

    path: str
    kind: int
    value: bytes | int | None
    codec: str = "zstd"
    plain: bool = False
    """Write the value itself in every row instead of a dictionary."""
    claimed_size: int | None = None
    """What the page header says about the uncompressed size of the value's page."""


def _run(count: int, value: int) -> bytes:
    """Return a run of the RLE hybrid, for values of at most eight bits."""
    return thrift.varint(count << 1) + bytes([value])


def _plain(column: Column) -> bytes:
    if isinstance(column.value, bytes):
        return struct.pack("<I", len(column.value)) + column.value
    return struct.pack("<i" if column.kind == INT32 else "<q", column.value or 0)


def _compressed(data: bytes, codec: str) -> bytes:
    return data if codec == "none" else pa.compress(data, codec=codec, asbytes=True)


def _page(kind: int, data: bytes, column: Column, header: thrift.Struct, claimed: int | None) -> bytes:
    """Return a page: header and compressed data."""
    packed = _compressed(data, column.codec)
    fields: thrift.Struct = {
        1: (thrift.I32, kind),
        2: (thrift.I32, len(data) if claimed is None else claimed),
        3: (thrift.I32, len(packed)),
    }
    return thrift.encode(fields | header) + packed


def _chunk(column: Column, rows: int, at: int) -> tuple[bytes, thrift.Struct]:
    """Return a column chunk's bytes, placed at offset `at`, and its metadata."""
    depth = column.path.count(".") + 1
    levels = _run(rows, 0 if column.value is None else depth)
    body = struct.pack("<I", len(levels)) + levels
    dictionary = b""
    if column.value is not None and not column.plain:
        head = {7: (thrift.STRUCT, {1: (thrift.I32, 1), 2: (thrift.I32, _PLAIN)})}
        dictionary = _page(2, _plain(column), column, head, column.claimed_size)
        body += b"\x01" + _run(rows, 0)
    elif column.value is not None:
        body += _plain(column) * rows
    encoding = _RLE_DICTIONARY if dictionary else _PLAIN
    head = {
        5: (
            thrift.STRUCT,
            {1: (thrift.I32, rows), 2: (thrift.I32, encoding), 3: (thrift.I32, _RLE), 4: (thrift.I32, _RLE)},
        )
    }
    claimed = column.claimed_size if column.plain else None
    data = _page(0, body, column, head, claimed)
    meta: thrift.Struct = {
        1: (thrift.I32, column.kind),
        2: (thrift.LIST, (thrift.I32, [_PLAIN, _RLE, encoding])),
        3: (thrift.LIST, (thrift.BINARY, [p.encode() for p in column.path.split(".")])),
        4: (thrift.I32, _CODECS[column.codec]),
        5: (thrift.I64, rows),
        6: (thrift.I64, len(dictionary) + len(data)),
        7: (thrift.I64, len(dictionary) + len(data)),
        9: (thrift.I64, at + len(dictionary)),
    }
    if dictionary:
        meta[11] = (thrift.I64, at)
    return dictionary + data, meta


def _element(name: str, kind: int | None, children: int = 0) -> thrift.Struct:
    """Return a schema element: optional, text if it is bytes."""
    out: thrift.Struct = {3: (thrift.I32, 1), 4: (thrift.BINARY, name.encode())}
    if kind is None:
        return out | {5: (thrift.I32, children)}
    out[1] = (thrift.I32, kind)
    if kind == BYTE_ARRAY:
        out[6] = (thrift.I32, 0)
    return out


def write(columns: list[Column], rows: int, **lies: Any) -> bytes:
    """Return the bytes of a file of one row group. `lies`: `num_rows` in the footer."""
    out, chunks = bytearray(b"PAR1"), []
    for column in columns:
        data, meta = _chunk(column, rows, len(out))
        chunks.append({2: (thrift.I64, len(out)), 3: (thrift.STRUCT, meta)})
        out += data
    groups: dict[str, list[Column]] = {}
    for column in columns:
        groups.setdefault(column.path.split(".")[0], []).append(column)
    elements: list[thrift.Struct] = [{4: (thrift.BINARY, b"root"), 5: (thrift.I32, len(groups))}]
    for name, leaves in groups.items():
        if "." in leaves[0].path:
            elements.append(_element(name, None, len(leaves)))
            elements += [_element(leaf.path.split(".")[1], leaf.kind) for leaf in leaves]
        else:
            elements.append(_element(name, leaves[0].kind))
    num_rows = lies.get("num_rows", rows)
    group: thrift.Struct = {
        1: (thrift.LIST, (thrift.STRUCT, chunks)),
        2: (thrift.I64, len(out)),
        3: (thrift.I64, num_rows),
    }
    footer = thrift.encode(
        {
            1: (thrift.I32, 2),
            2: (thrift.LIST, (thrift.STRUCT, elements)),
            3: (thrift.I64, num_rows),
            4: (thrift.LIST, (thrift.STRUCT, [group])),
        }
    )
    return bytes(out) + footer + struct.pack("<I", len(footer)) + b"PAR1"
