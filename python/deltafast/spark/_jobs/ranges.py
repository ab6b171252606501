"""The ranges of rows that tasks write: new files, or where there are too few for all cores, pieces of new files."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from deltafast.spark._jobs.tasks import keys_of, shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._core_types import OptimizeRequirements

__all__ = ["Bin", "Ranges", "bins_of"]

#: Minimum size of a piece in bytes: it is at least one row group of the usual size.
_PIECE = 128 << 20

#: Maximum number of tasks of a core, which sort one after the other: small ones need not spill rows.
_SORTS = 3


class Bin(NamedTuple):
    """Files that are rewritten together, into parts of equal size."""

    #: The paths of the files in the log.
    files: list[str]
    #: The number of the first part; the numbers of the others follow.
    first: int
    #: The number of parts.
    parts: int
    #: Bytes of a part.
    size: int


def bins_of(requirements: OptimizeRequirements) -> list[Bin]:
    """Return the bins of an OPTIMIZE."""
    parts = requirements["parts"]
    firsts = [0, *accumulate(parts)][:-1]
    sizes = [size // count for size, count in zip(requirements["bytes"], parts, strict=True)]
    return [Bin(*fields) for fields in zip(requirements["bins"], firsts, parts, sizes, strict=True)]


def _pieces(of: Bin, tasks: int, cores: int, *, is_packed: bool) -> int:
    """Return the number of pieces of each part of a bin.

    Args:
        of: The bin.
        tasks: The number of tasks of all bins, if parts have no pieces.
        cores: As for `Ranges`.
        is_packed: As for `Ranges`.
    """
    least, most = -(-cores // tasks), of.size // _PIECE
    if is_packed:
        return max(1, min(least, most, len(of.files)))
    if least == 1 or most < least:
        return max(1, min(least, most))
    return least * min(_SORTS, most // least)


class Ranges:
    """The ranges of some bins.

    Args:
        bins: The bins.
        cores: The number of tasks that run at the same time; 1 where pieces cannot be joined.
        is_packed: Whether the rows of a file stay together.
    """

    def __init__(self, bins: Sequence[Bin], cores: int, *, is_packed: bool) -> None:
        self.bins = bins
        sizes = [each.size for each in bins for _ in range(each.parts)]
        tasks = shared(sizes)[-1] + 1
        #: The number of pieces of each part, by bin.
        self._pieces = [_pieces(each, tasks, cores, is_packed=is_packed) for each in bins]
        #: Whether the ranges are pieces of parts.
        self.are_pieces = max(self._pieces) > 1
        #: The number of ranges of each bin.
        self.counts = [each.parts * pieces for each, pieces in zip(bins, self._pieces, strict=True)]
        #: The number of the first range of each bin; the numbers of the others follow. A part has its own number.
        self.firsts = [0, *accumulate(self.counts)][:-1] if self.are_pieces else [each.first for each in bins]
        # The task of a piece has its number.
        of_ranges = list(range(sum(self.counts))) if self.are_pieces else shared(sizes)
        #: The number of tasks.
        self.tasks = of_ranges[-1] + 1
        keys = keys_of(self.tasks)
        ends = accumulate(self.counts)
        #: The key of each range that sends its rows to its task, by bin.
        self.keys = [
            [keys[task] for task in of_ranges[end - count : end]] for end, count in zip(ends, self.counts, strict=True)
        ]

    def of_files(self) -> tuple[list[int], list[int]]:
        """Return the range and the key of each file, where the rows of a file stay together."""
        numbers: list[int] = []
        keys: list[int] = []
        for each, first, count, of_bin in zip(self.bins, self.firsts, self.counts, self.keys, strict=True):
            places = [place * count // len(each.files) for place in range(len(each.files))]
            numbers += [first + place for place in places]
            keys += [of_bin[place] for place in places]
        return numbers, keys

    def of_parts(self) -> list[tuple[int, range]]:
        """Return the number of each part and the ranges that it consists of, which are also their tasks."""
        return [
            (each.first + part, range(first + part * pieces, first + (part + 1) * pieces))
            for each, first, pieces in zip(self.bins, self.firsts, self._pieces, strict=True)
            for part in range(each.parts)
        ]
