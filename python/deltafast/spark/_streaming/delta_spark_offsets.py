"""Offsets of delta-spark's streams, which a position in a checkpoint also contains: delta-spark continues from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AFTER_CHANGE", "BARRIER", "CHANGE", "offset_of", "without_offset"]

#: The key of a position in front of a change of the metadata; its value is one of the two indices below.
BARRIER: Final = "barrier"
#: The index of an offset that ends a batch in front of a change of the metadata, and of the next one, with which Spark
#: reports that this batch is complete.
CHANGE, AFTER_CHANGE = -20, -19
#: The index before the first file.
_FIRST = -1

_KEYS: Final = ("sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion")


def without_offset(position: Mapping[str, Any]) -> dict[str, Any]:
    """Return a position from a checkpoint without the offset that it contains."""
    return {key: value for key, value in position.items() if key not in _KEYS}


def offset_of(position: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offset of a position whose files are counted as delta-spark counts them."""
    at, barrier = position["at"], position.get(BARRIER)
    index = at["index"] - 1 if at["index"] else _FIRST
    return {
        "sourceVersion": 1 if barrier is None else 3,
        "reservoirId": at["table"],
        "reservoirVersion": at["version"],
        "index": index if barrier is None else barrier,
        "isStartingVersion": at["snapshot"],
    }
