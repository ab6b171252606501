"""delta-spark's table builder in Java, for programs that give it sequences of Scala."""

from __future__ import annotations

from typing import Any

__all__ = ["JavaTableBuilder"]


class JavaTableBuilder:
    """The attribute `_jbuilder` of a table builder: the methods that take a sequence of Scala in place of a list.

    Args:
        builder: The `DeltaTableBuilder` that is changed.
    """

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def partitionedBy(self, columns: Any) -> JavaTableBuilder:  # noqa: N802 - delta-spark's names
        """Set the partition columns."""
        self._builder.partitionedBy(*_strings(columns))
        return self

    def clusterBy(self, columns: Any) -> JavaTableBuilder:  # noqa: N802
        """Set the clustering columns."""
        self._builder.clusterBy(*_strings(columns))
        return self


def _strings(sequence: Any) -> list[str]:
    return [sequence.apply(index) for index in range(sequence.size())]
