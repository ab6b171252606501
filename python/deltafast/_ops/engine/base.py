"""What a command asks of an engine.

The core makes the keys, in which rows are equal just where Spark says so, and takes the pairs: an engine never sees a
value of the table, a file or the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from deltafast._util.arrow import ArrowStreamExportable

__all__ = ["Engine"]


class Engine(Protocol):
    """Joins streams."""

    def join(
        self, source: ArrowStreamExportable, target: ArrowStreamExportable
    ) -> AbstractContextManager[ArrowStreamExportable]:
        """Find the rows with equal keys.

        Args:
            source: `key` (int64 or binary, never null) and `source_row` (int64). It is held, or spilled.
            target: `key` of the same type, `file` (int32) and `row` (int64). It may be far larger.

        Returns:
            A context in which the pairs can be read once: `file`, `row` and `source_row`, in any order.
        """
        ...
