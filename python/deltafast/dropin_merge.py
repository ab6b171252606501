"""What the name `deltalake.table.TableMerger` stands for; see `dropin_table`."""

from __future__ import annotations

from typing import Any

from deltafast.commands.merge import TableMerger as PlainMerger
from deltafast.dropin_table import in_their_words

__all__ = ["TableMerger"]


class TableMerger(PlainMerger):
    """The clauses of a MERGE, with the errors of `deltalake`."""

    def execute(self) -> dict[str, Any]:
        """`TableMerger.execute`."""
        with in_their_words():
            return super().execute()
