"""Assignment of parts to the tasks of a shuffle: tasks of about the same size, each part in a single task.

Spark assigns a row to a task by the hash of a column, so each task has a key whose hash is the task's number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_PARTS", "keys_of", "shared"]

#: Approximate number of bytes of small parts that one task writes.
_SHARE = 64 << 20
#: Maximum number of parts of a task: as many files are open at the same time.
MOST_PARTS = 64

_WORD = (1 << 32) - 1


def shared(sizes: Sequence[int]) -> list[int]:
    """Return the task of each part, in order: a large part has a task of its own, small parts share one.

    Args:
        sizes: Bytes of the parts.
    """
    out: list[int] = []
    task, held, parts = 0, 0, 0
    for size in sizes:
        if parts and (held + size > _SHARE or parts == MOST_PARTS):
            task, held, parts = task + 1, 0, 0
        out.append(task)
        held, parts = held + size, parts + 1
    return out


def keys_of(tasks: int) -> list[int]:
    """Return a number for each task that `repartition(tasks, column)` sends to it."""
    keys: dict[int, int] = {}
    number = 0
    while len(keys) < tasks:
        keys.setdefault(_hash(number) % tasks, number)
        number += 1
    return [keys[task] for task in range(tasks)]


def _hash(number: int) -> int:
    """Return Spark's `hash` of an integer: Murmur3 with the seed 42."""
    word = _turned(number * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    out = (_turned(42 ^ word, 13) * 5 + 0xE6546B64) & _WORD
    out ^= 4
    out = (out ^ out >> 16) * 0x85EBCA6B & _WORD
    out = (out ^ out >> 13) * 0xC2B2AE35 & _WORD
    out ^= out >> 16
    return out - (1 << 32) if out >> 31 else out


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
