"""What a run has covered, as tables."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from .operations import OPERATIONS
from .readers import READERS
from .types import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .plan import Cell


class Coverage:
    """Counts of checks by type, operation and reader, and of predicates by type and surface."""

    def __init__(self) -> None:
        self.reads: collections.Counter[Cell] = collections.Counter()
        self.predicates: collections.Counter[tuple[str, str]] = collections.Counter()

    def add_read(self, families: Iterable[str], operation: str, reader: str) -> None:
        """Note that a reader read a table of these types right after an operation."""
        self.reads.update((family, operation, reader) for family in families)

    def add_predicate(self, family: str, surface: str) -> None:
        """Note that a predicate over a column of this type was right on a surface."""
        self.predicates[family, surface] += 1

    def report(self, applicable: set[Cell]) -> str:
        """Return a table for each reader: types by operations; `-` where a reader lacks a feature."""
        lines: list[str] = []
        operations = [name for name in OPERATIONS if any(cell[1] == name for cell in applicable)]
        for reader in READERS:
            lines.append(f"{reader}: {', '.join(f'{n + 1} {name}' for n, name in enumerate(operations))}")
            lines.append(" " * 14 + "".join(f"{n + 1:6}" for n in range(len(operations))))
            for family in FAMILIES:
                cells = [(family, operation, reader) for operation in operations]
                counts = [str(self.reads[cell]) if cell in applicable or self.reads[cell] else "-" for cell in cells]
                lines.append(f"{family:14}" + "".join(f"{count:>6}" for count in counts))
        surfaces = sorted({surface for _, surface in self.predicates})
        lines.append("predicates: " + ", ".join(f"{n + 1} {name}" for n, name in enumerate(surfaces)))
        lines.append(" " * 14 + "".join(f"{n + 1:6}" for n in range(len(surfaces))))
        for family in FAMILIES:
            counts = [self.predicates[family, surface] for surface in surfaces]
            lines.append(f"{family:14}" + "".join(f"{count:6}" for count in counts))
        return "\n".join(lines)
