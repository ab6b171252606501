"""Results of statements: Arrow streams, with the column names of delta-spark if it has any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["answer", "counts", "nothing"]


def nothing() -> pa.RecordBatchReader:
    """Return no rows and no columns, as CREATE, ALTER and similar statements."""
    return pa.RecordBatchReader.from_batches(pa.schema([]), [])


def answer(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatchReader:
    """Return rows as a stream."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema).to_reader()


def counts(**values: int | None) -> pa.RecordBatchReader:
    """Return one row of numbers."""
    return answer([values], pa.schema([(name, pa.int64()) for name in values]))
