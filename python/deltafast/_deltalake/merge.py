"""The class with the name `deltalake.table.TableMerger`; see `table`."""

from __future__ import annotations

from deltafast._deltalake.errors import raises_their_errors
from deltafast._ops.merge import TableMerger as PlainMerger

__all__ = ["TableMerger"]


@raises_their_errors
class TableMerger(PlainMerger):
    """The clauses of a MERGE, with the errors of `deltalake`."""
