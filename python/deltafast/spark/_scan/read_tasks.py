"""Parts of a version's rows, one for each task of an executor that reads with the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Piece", "cut"]

#: Bytes of files that one task reads.
_TASK_BYTES = 128 << 20


class Piece(NamedTuple):
    """Rows to be read at one version: those of some files, or its changes if `files` is None."""

    version: int
    #: Paths as in the log.
    files: tuple[str, ...] | None
    #: Whether the rows belong to the initial snapshot of a stream.
    snapshot: bool


def cut(files: Iterable[tuple[str, int | None]]) -> list[tuple[str, ...]]:
    """Split files, given with their bytes, into parts of the size of a task."""
    out: list[list[str]] = []
    held = 0
    for path, size in files:
        if not out or held + (size or 0) > _TASK_BYTES:
            out.append([])
            held = 0
        out[-1].append(path)
        held += size or 0
    return [tuple(part) for part in out]
