"""The data of a layout."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

__all__ = ["LayoutData", "Overlap", "Part", "Ranges", "Size", "State"]


@dataclass(frozen=True)
class Size:
    """The files of less than `below` and at least `below / 2` bytes."""

    below: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Part:
    """One partition; a table without partition columns is one partition with an empty name."""

    name: str
    files: int
    bytes: int
    rows: int | None
    small_files: int


@dataclass(frozen=True)
class Overlap:
    """Overlap of the file bounds in one column."""

    name: str
    clustered: bool
    #: Number of files that have bounds.
    files: int
    #: Number of files whose bounds overlap those of a file, itself included: on average and at most; 1 is ideal.
    depth: float
    max_depth: int

    @property
    def share(self) -> float:
        """The share of the files that the average file overlaps, itself included."""
        return self.depth / self.files if self.files else 0.0


class Scale(StrEnum):
    """How the bounds of a column became numbers."""

    NUMBER = "number"
    #: Days since 1970-01-01, UTC.
    TIME = "time"
    #: The position among all bounds.
    RANK = "rank"

    __repr__ = str.__repr__


@dataclass(frozen=True)
class Ranges:
    """The bounds of files in one column, ordered by the lower bound; of many files an even sample."""

    name: str
    scale: Scale
    #: The least and the greatest bound, as text.
    least: str
    greatest: str
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class State:
    """One version."""

    version: int
    operation: str | None
    files: int
    bytes: int
    rows: int | None
    deleted_rows: int


@dataclass(frozen=True)
class LayoutData:
    """The layout of one version of a table, as plain data."""

    uri: str
    #: The table's name; without one, the last part of its location.
    name: str
    version: int
    files: int
    bytes: int
    #: Number of stored rows, deleted ones included; None if it is unknown for a file.
    rows: int | None
    deleted_rows: int
    files_with_vectors: int
    files_without_rows: int
    sizes: list[Size]
    #: By size, the largest first.
    partitions: list[Part]
    columns: list[Overlap]
    #: Of the clustering columns, and then of those whose bounds overlap least.
    ranges: list[Ranges]
    #: The oldest first.
    versions: list[State]

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as plain values."""
        return asdict(self)
