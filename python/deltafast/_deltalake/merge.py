"""The class with the name `deltalake.table.TableMerger`; see `table`."""

from __future__ import annotations

from typing import Any

from deltafast._deltalake.errors import in_their_words
from deltafast._ops.merge import TableMerger as PlainMerger

__all__ = ["TableMerger"]


class TableMerger(PlainMerger):
    """The clauses of a MERGE, with the errors of `deltalake`."""

    def execute(self) -> dict[str, Any]:
        """See `TableMerger.execute`."""
        with in_their_words():
            return super().execute()
