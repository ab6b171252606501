"""The interface of an engine.

The core encodes the keys so that they are equal exactly if Spark considers the rows equal, and takes the resulting
pairs: an engine never sees a value of the table, a file or the log.
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
            source: `key` (int64 or binary, never null) and `source_row` (int64). The build side: buffered or spilled.
            target: `key` of the same type, `file` (int32) and `row` (int64). The probe side: it may be far larger.

        Returns:
            A context in which the pairs can be read once: `file`, `row` and `source_row`, in any order.
        """
        ...
