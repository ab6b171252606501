"""The class behind the name `deltalake.QueryBuilder`; see `dropin_table`."""

from __future__ import annotations

from typing import Any

from deltafast.query import ViewQueryBuilder

__all__ = ["QueryBuilder"]


class QueryBuilder(ViewQueryBuilder):
    """`deltafast.QueryBuilder` whose strings are views and whose rows are arro3's where that is installed."""

    def execute(self, sql: str) -> Any:
        """Run one query; the rows are an `arro3.core.RecordBatchReader`, pyarrow's where there is no arro3."""
        rows = super().execute(sql)
        try:
            from arro3.core import RecordBatchReader
        except ImportError:
            return rows
        return RecordBatchReader.from_arrow(rows)
