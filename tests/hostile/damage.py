"""Ways to damage a Parquet file, whether it holds actions or rows."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tablekit import thrift

if TYPE_CHECKING:
    from collections.abc import Callable

    Damage = Callable[[bytes], bytes]


def footer(change: Callable[[thrift.Struct], object]) -> Damage:
    """Return a damage that changes the footer's content."""

    def damage(data: bytes) -> bytes:
        content = thrift.footer(data)
        change(content)
        return thrift.with_footer(data, content)

    return damage


def put(content: thrift.Struct, field: int, value: Any) -> None:
    """Replace the value of a field."""
    content[field] = (content[field][0], value)


def group(content: thrift.Struct) -> thrift.Struct:
    """Return the first row group."""
    return content[4][1][1][0]


def length(data: bytes) -> int:
    """Return the length of the footer."""
    return int.from_bytes(data[-8:-4], "little")


def damages(index: int) -> dict[str, Damage]:
    """Return the damages by name; those of a single column are done to the column `index`."""

    def column(content: thrift.Struct) -> thrift.Struct:
        return group(content)[1][1][1][index][3][1]

    def move(content: thrift.Struct, offset: int) -> None:
        """Put the column's first page elsewhere: that of the dictionary where it has one."""
        for field in {9, 11} & column(content).keys():
            put(column(content), field, offset)

    def change(field: int, value: int) -> Damage:
        return footer(lambda f: put(column(f), field, value))

    return {
        "empty": lambda _: b"",
        "one_byte": lambda d: d[:1],
        "only_magic": lambda _: b"PAR1",
        "magic_twice": lambda _: b"PAR1PAR1",
        "half": lambda d: d[: len(d) // 2],
        "without_end": lambda d: d[:-8],
        "without_start": lambda d: d[100:],
        "text": lambda _: b"not parquet at all" * 100,
        "zeros": lambda d: bytes(len(d)),
        "bad_end_magic": lambda d: d[:-4] + b"PAR2",
        "encrypted": lambda d: d[:-4] + b"PARE",
        "footer_length_huge": lambda d: d[:-8] + struct.pack("<I", 0xFFFFFFFF) + b"PAR1",
        "footer_length_negative": lambda d: d[:-8] + struct.pack("<i", -5) + b"PAR1",
        "footer_length_zero": lambda d: d[:-8] + struct.pack("<I", 0) + b"PAR1",
        "footer_length_of_file": lambda d: d[:-8] + struct.pack("<I", len(d) - 8) + b"PAR1",
        "footer_length_beyond_file": lambda d: d[:-8] + struct.pack("<I", len(d)) + b"PAR1",
        "footer_garbage": lambda d: d[: -8 - length(d)] + b"\xff" * length(d) + d[-8:],
        "footer_deep": lambda d: d + b"\x1c" * 200_000 + struct.pack("<I", 200_000) + b"PAR1",
        "footer_list_of_billions": lambda d: d + b"\x29\xfc\xff\xff\xff\xff\x07" + struct.pack("<I", 7) + b"PAR1",
        "footer_text_of_billions": lambda d: d + b"\x68\xff\xff\xff\xff\x07" + struct.pack("<I", 6) + b"PAR1",
        "rows_negative": footer(lambda f: put(group(f), 3, -5)),
        "rows_of_billions": footer(lambda f: put(group(f), 3, 1 << 60)),
        "pages_outside": footer(lambda f: move(f, 1 << 40)),
        "pages_negative": footer(lambda f: move(f, -100)),
        "pages_at_the_largest_offset": footer(lambda f: move(f, (1 << 63) - 1)),
        "data_pages_outside": change(9, 1 << 40),
        "chunk_size_huge": change(7, 1 << 50),
        "chunk_size_negative": change(7, -1),
        "chunk_size_overflows": change(7, (1 << 63) - 1),
        "values_of_billions": change(5, 1 << 60),
        "codec_unknown": change(4, 77),
        "codec_wrong": change(4, 2),
        "no_columns": footer(lambda f: put(f, 2, (thrift.STRUCT, f[2][1][1][:1]))),
        "children_of_billions": footer(lambda f: put(f[2][1][1][0], 5, 0x7FFFFFFF)),
        "children_negative": footer(lambda f: put(f[2][1][1][0], 5, -1)),
        "chunk_missing": footer(lambda f: put(group(f), 1, (thrift.STRUCT, group(f)[1][1][1][:-1]))),
        "pages_zeroed": lambda d: d[:4] + bytes(len(d) - 12 - length(d)) + d[-8 - length(d) :],
        "schema_deep": footer(_deep),
    }


def _deep(content: thrift.Struct) -> None:
    """Make the schema a chain of 100,000 groups."""
    nested = {3: (thrift.I32, 1), 4: (thrift.BINARY, b"g"), 5: (thrift.I32, 1)}
    elements = content[2][1][1]
    put(content, 2, (thrift.STRUCT, [elements[0], *[nested] * 100_000, elements[1]]))
