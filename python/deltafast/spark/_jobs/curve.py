"""Position of a row on a space-filling curve through some columns, as Spark expressions.

Values are ranked by bounds that the core took from a sample. The interleaved bits of the ranks are a row's position in
Z-order; transformed before, they are its position on the Hilbert curve. Each step is a projection of its own, and Spark
compiles all of them into one loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast._types import INTEGERS
from deltafast.spark._scan.physical_columns import plain_type, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast.spark._scan.physical_columns import Columns

__all__ = ["OWN", "PLACE", "STEP", "placed", "ranked", "word"]

#: The position of a row on the curve.
PLACE = "__deltafast_place"
#: The number of range boundaries below a row: the number of its part within the bin.
STEP = "__deltafast_step"

#: Prefix of the names of columns that the table does not have.
OWN = "__deltafast_"
_WORD, _RANK = f"{OWN}word", f"{OWN}rank"


#: Conversions of values to numbers or bytes of the same order, by type.
_WORDS = {
    "date": "cast(unix_date({}) as bigint)",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {})",
    "string": "cast({} as binary)",
    "binary": "{}",
    "boolean": "cast(cast({} as int) as bigint)",
    **dict.fromkeys(INTEGERS, "cast({} as bigint)"),
}


def word(columns: Columns, path: Sequence[str]) -> str:
    """Return Spark SQL that converts a column's values to numbers or bytes of the same order.

    Args:
        columns: The table's columns.
        path: The names from the top-level column to the field.
    """
    of: Any = {"type": "struct", "fields": columns.fields}
    for name in path:
        of = plain_type(next(field for field in of["fields"] if field["name"] == name)["type"])
    name = ".".join(quoted(part) for part in path)
    return _WORDS.get(of, "cast({} as double)").format(name)


def placed(frame: Any, words: Sequence[str], bits: int, *, is_hilbert: bool) -> Any:
    """Return the rows with their position `PLACE`, a number; with one column, the value itself.

    Args:
        frame: Rows with bounds and bits of each column, as the core names them after the prefix `OWN`.
        words: The ranked expressions, as from `word`.
        bits: Bits of a rank.
        is_hilbert: Whether the curve is the Hilbert curve.
    """
    from pyspark.sql import functions

    if len(words) == 1:
        return frame.withColumn(PLACE, functions.expr(words[0]))
    frame = frame.withColumns({f"{_WORD}{n}": functions.expr(word) for n, word in enumerate(words)})
    named = {f"{_RANK}{n}": (f"{_WORD}{n}", f"{OWN}bounds{n}") for n in range(len(words))}
    frame = ranked(frame, named, (1 << bits) - 1)
    ranks = list(named)
    # A column with few values has few bits; they are spread, so that it weighs as much as the other columns.
    frame = frame.withColumns(
        {rank: functions.expr(f"shiftright(shiftleft({rank}, {bits}), {OWN}bits{n})") for n, rank in enumerate(ranks)}
    )
    if is_hilbert:
        frame = _untangled(frame, ranks, bits)
    parts = [
        f"shiftleft(cast(shiftright({rank}, {bit}) & 1 as bigint), {bit * len(ranks) + len(ranks) - 1 - n})"
        for n, rank in enumerate(ranks)
        for bit in range(bits)
    ]
    # The highest bit is inverted, so that signed numbers are ordered like unsigned ones.
    frame = frame.withColumn(PLACE, functions.expr(f"({' | '.join(parts)}) ^ shiftleft(1L, 63)"))
    return frame.drop(*ranks, *(f"{_WORD}{n}" for n in range(len(words))))


def ranked(frame: Any, named: dict[str, tuple[str, str]], most: int) -> Any:
    """Return the rows with the number of bounds that are not greater than a value; 0 for null.

    Args:
        frame: The rows.
        named: The columns of the value and of the ascending bounds, by the name of the rank.
        most: Maximum number of bounds.
    """
    from pyspark.sql import functions

    frame = frame.withColumns(dict.fromkeys(named, functions.lit(0)))
    for level in reversed(range(most.bit_length())):
        step = 1 << level
        frame = frame.withColumns(
            {
                # After the last bound there is null, which is not less. Bits are set, not added, as additions are
                # checked for overflows.
                rank: functions.expr(f"{rank} | if(get({bounds}, {rank} | {step - 1}) <= {value}, {step}, 0)")
                for rank, (value, bounds) in named.items()
            }
        )
    return frame


def _untangled(frame: Any, ranks: Sequence[str], bits: int) -> Any:
    """Return ranks whose interleaved bits are the Hilbert position, as in `src/write/space_filling_curve.rs`."""
    from pyspark.sql import functions

    def changed(frame: Any, **new: str) -> Any:
        return frame.withColumns({name: functions.expr(text) for name, text in new.items()})

    first, *others = ranks
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        frame = changed(frame, **{first: f"if({first} & {1 << bit} <> 0, {first} ^ {below}, {first})"})
        for other in others:
            differ = f"(({first} ^ {other}) & {below})"
            is_set = f"{other} & {1 << bit} <> 0"
            frame = changed(
                frame,
                **{
                    first: f"if({is_set}, {first} ^ {below}, {first} ^ {differ})",
                    other: f"if({is_set}, {other}, {other} ^ {differ})",
                },
            )
    for before, other in zip(ranks, others, strict=False):
        frame = changed(frame, **{other: f"{other} ^ {before}"})
    last = ranks[-1]
    mirrored = " ^ ".join([f"if({last} & {1 << bit} <> 0, {(1 << bit) - 1}, 0)" for bit in range(1, bits)] or ["0"])
    frame = changed(frame, __deltafast_mirrored=mirrored)
    return changed(frame, **{rank: f"{rank} ^ __deltafast_mirrored" for rank in ranks}).drop("__deltafast_mirrored")
