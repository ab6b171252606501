"""Positions of rows as bitmaps, by which the core marks rows as deleted or ends files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark._scan.row_positions import FILE, ROW
from deltafast.spark._session.session import quiet

if TYPE_CHECKING:
    import pyarrow as pa

    from deltafast.spark._scan.snapshot import Listing

__all__ = ["PLACE_OF", "WORD_OF", "MarkedRows", "marks", "marks_by_kind"]


class MarkedRows(NamedTuple):
    """The positions of rows of several kinds as bitmaps."""

    #: `file`, `word`, `bits` and `kind`; see `marks`.
    by_kind: pa.Table
    #: `file`, `word` and `bits` of all kinds together.
    every: pa.Table
    #: The paths of the files by their numbers.
    paths: dict[int, str]
    #: The number of rows, of which some may be the same, and the number of different ones.
    rows: int
    distinct: int


def marks(frame: Any, listing: Listing) -> tuple[pa.Table, dict[int, str]]:
    """Return the positions of rows as bitmaps; a row of the result covers 64 rows of a file.

    Args:
        frame: Rows with `FILE` and `ROW`.
        listing: The files that `FILE` refers to.

    Returns:
        `file`, `word` and `bits`: bit n of a word is row 64 * word + n; the paths of these files by their numbers.
    """
    from pyspark.sql import functions

    found = _words(frame, [functions.expr(f"bit_or({_BIT})").alias("bits")])
    return found, _paths(found, listing)


def marks_by_kind(frame: Any, listing: Listing, action: str, kinds: dict[int, list[int]]) -> MarkedRows:
    """Return the positions of rows of several kinds as bitmaps; see `marks`.

    Args:
        frame: Rows with `FILE` and `ROW`.
        listing: The files that `FILE` refers to.
        action: The column with the kind of a row.
        kinds: The values of that column by kind.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import functions

    compute: Any = pc
    asked = [functions.expr(f"bit_or({_BIT})").alias("bits"), functions.count("*").alias("rows")]
    for kind, numbers in kinds.items():
        among = ", ".join(map(str, numbers))
        asked.append(functions.expr(f"bit_or({_BIT}) filter (where {action} in ({among}))").alias(f"bits{kind}"))
    asked.append(functions.expr(f"bit_count(bit_or({_BIT}))").alias("distinct"))
    found = _words(frame, asked)
    parts: list[Any] = []
    for kind in kinds:
        some = found.filter(compute.is_valid(found.column(f"bits{kind}")))
        part: Any = {"file": some.column("file"), "word": some.column("word"), "bits": some.column(f"bits{kind}")}
        parts.append(pa.table(part | {"kind": pa.array([kind] * len(some), pa.int32())}))
    nothing = {"file": pa.int32(), "word": pa.int64(), "bits": pa.int64(), "kind": pa.int32()}
    table = pa.concat_tables(parts) if parts else pa.schema(nothing).empty_table()
    rows, distinct = (compute.sum(found.column(name)).as_py() or 0 for name in ("rows", "distinct"))
    return MarkedRows(table, found.select(["file", "word", "bits"]), _paths(found, listing), rows, distinct)


#: The number of the word of a row, the place of its bit in the word, and the word with this bit alone.
WORD_OF = f"shiftright({quoted(ROW)}, 6)"
PLACE_OF = f"cast({quoted(ROW)} & 63L as int)"
_BIT = f"shiftleft(1L, {PLACE_OF})"


def _words(frame: Any, asked: list[Any]) -> pa.Table:
    # Hash aggregation holds the words of a file one by one; Spark's bitmap functions would need a sort.
    from pyspark.sql import functions

    by = [functions.col(FILE).alias("file"), functions.expr(WORD_OF).alias("word")]
    with quiet():
        return frame.groupBy(*by).agg(*asked).toArrow()


def _paths(found: pa.Table, listing: Listing) -> dict[int, str]:
    import pyarrow.compute as pc

    compute: Any = pc
    places = compute.unique(found.column("file"))
    order = compute.index_in(places, listing.files.column(FILE).combine_chunks())
    paths = listing.files.column("path").combine_chunks().take(order)
    numbers: Any = places.to_pylist()
    names: Any = paths.to_pylist()
    return dict(zip(numbers, names, strict=True))
