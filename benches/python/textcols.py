"""Text columns built a whole column at a time, for writing logs quickly.

A generated log is hundreds of megabytes of text. Formatting it line by line in
Python takes minutes; here each piece of a line is a column (an Arrow array or a
constant) and the pieces are joined by one Arrow kernel, about a microsecond a
line. Fixed-width pieces (dates, timestamps, UUIDs) are laid out as a matrix of
bytes first, because Arrow's own formatting of timestamps is much slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HEX_PAIRS = np.frombuffer(
    "".join(f"{byte:02x}" for byte in range(256)).encode(),
    dtype=np.uint8,
).reshape(256, 2)
# Where the 16 bytes of a UUID begin in its 36 characters of text.
_UUID_STARTS = (0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34)
_UUID_DASHES = (8, 13, 18, 23)
_DAY_MS = 86_400_000


def digits(values: Any, width: int) -> Any:
    """Write non-negative integers with leading zeros.

    Args:
        values: Integers below ``10 ** width``.
        width: The number of characters.

    Returns:
        A matrix of bytes, one row a value.
    """
    rest = np.asarray(values, dtype=np.int64)
    out = np.empty((len(rest), width), dtype=np.uint8)
    for column in range(width - 1, -1, -1):
        higher = rest // 10
        out[:, column] = rest - higher * 10 + ord("0")
        rest = higher
    return out


def constant(text: str, rows: int) -> Any:
    """Repeat a text in every row of a matrix of bytes.

    Args:
        text: ASCII text.
        rows: The number of rows.

    Returns:
        A matrix of bytes.
    """
    return np.broadcast_to(np.frombuffer(text.encode(), dtype=np.uint8), (rows, len(text)))


def fixed(*parts: Any) -> pa.StringArray:
    """Join matrices of bytes side by side into a column of strings.

    Args:
        *parts: Matrices of bytes with the same number of rows.

    Returns:
        A column of strings of one width.
    """
    matrix = np.concatenate(parts, axis=1)
    rows, width = matrix.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(matrix))]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def _date_bytes(days: Any) -> Any:
    date = np.asarray(days).astype("datetime64[D]")
    month = date.astype("datetime64[M]").astype(np.int64)
    day = date.astype(np.int64) - date.astype("datetime64[M]").astype("datetime64[D]").astype(
        np.int64,
    )
    dash = constant("-", len(date))
    return np.concatenate(
        [digits(month // 12 + 1970, 4), dash, digits(month % 12 + 1, 2), dash, digits(day + 1, 2)],
        axis=1,
    )


def dates(days: Any) -> pa.StringArray:
    """Write days since 1970 as ``YYYY-MM-DD``.

    Args:
        days: Days since 1970-01-01.

    Returns:
        A column of strings.
    """
    return fixed(_date_bytes(days))


def timestamps(milliseconds: Any) -> pa.StringArray:
    """Write milliseconds since 1970 as Delta's statistics do, in UTC.

    Args:
        milliseconds: Milliseconds since 1970-01-01, not negative.

    Returns:
        A column like ``2024-03-01T12:00:00.123Z``.
    """
    value = np.asarray(milliseconds, dtype=np.int64)
    in_day = value % _DAY_MS
    rows = len(value)
    colon = constant(":", rows)
    return fixed(
        _date_bytes(value // _DAY_MS),
        constant("T", rows),
        digits(in_day // 3_600_000, 2),
        colon,
        digits(in_day // 60_000 % 60, 2),
        colon,
        digits(in_day // 1000 % 60, 2),
        constant(".", rows),
        digits(in_day % 1000, 3),
        constant("Z", rows),
    )


def uuids(rng: np.random.Generator, rows: int) -> Any:
    """Make random (version 4) UUIDs.

    Args:
        rng: The source of randomness.
        rows: How many.

    Returns:
        A matrix of bytes, 36 characters a row.
    """
    raw = np.frombuffer(rng.bytes(16 * rows), dtype=np.uint8).reshape(rows, 16).copy()
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    out = np.empty((rows, 36), dtype=np.uint8)
    for byte, start in enumerate(_UUID_STARTS):
        out[:, start : start + 2] = _HEX_PAIRS[raw[:, byte]]
    for dash in _UUID_DASHES:
        out[:, dash] = ord("-")
    return out


def hundredths(values: Any) -> pa.Array:
    """Write non-negative integers of hundredths as decimals with two places.

    Args:
        values: Hundredths.

    Returns:
        A column like ``1234.50``.
    """
    value = np.asarray(values, dtype=np.int64)
    return join(numbers(value // 100), ".", fixed(digits(value % 100, 2)))


def numbers(values: Any) -> pa.Array:
    """Write numbers as JSON numbers.

    Args:
        values: Integers or finite doubles.

    Returns:
        A column of strings.
    """
    return pc.cast(pa.array(values), pa.string())


def join(*pieces: pa.Array | str) -> pa.Array:
    """Join columns and constants row by row.

    Args:
        *pieces: Columns of one length, or text repeated in every row.

    Returns:
        A column of strings.
    """
    scalars = [pa.scalar(piece) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, "")


def text_of(lines: pa.Array) -> memoryview:
    """View the bytes of a column of strings as one run of text.

    Args:
        lines: A column of strings without nulls.

    Returns:
        The bytes of all rows, one after another.
    """
    offsets = line_offsets(lines)
    return memoryview(lines.buffers()[2])[offsets[0] : offsets[-1]]


def line_offsets(lines: pa.Array) -> Any:
    """Find where each string of a column begins.

    Args:
        lines: A column of strings without nulls.

    Returns:
        One offset more than there are rows.
    """
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)
    return offsets[lines.offset : lines.offset + len(lines) + 1]
