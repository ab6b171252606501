"""Tables as Polars data frames, or as lazy frames that read only what a query needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltafast._core import ArrowStream
    from deltafast._core_types import BoundTree
    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate
    from deltafast.progress import Progress

__all__ = ["read", "scan"]


def read(
    table: TableHandle,
    columns: Sequence[str] | None,
    predicate: Predicate | None,
    *,
    limit: int | None = None,
    progress: Progress = False,
) -> pl.DataFrame:
    """Return all rows of a scan as a data frame."""
    stream = table.scan(columns, predicate, limit, string_view=True)
    with RecordBatchReader(stream, progress):
        empty = pl.DataFrame(schema=_schema(stream))
        frames = list(_frames(stream))
    return pl.concat(frames, rechunk=False) if frames else empty


def scan(table: TableHandle) -> pl.LazyFrame:
    """Return the version that the table points at now as a lazy frame."""
    table = table.pinned()

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001  (a hint; the core's own size bounds its memory)
    ) -> Iterator[pl.DataFrame]:
        # Polars applies n_rows before the predicate, so with both the core only applies n_rows.
        bound = None if predicate is None or n_rows is not None else _bound(table, predicate)
        left = predicate if bound is None else None
        needed = with_columns
        if with_columns is not None and left is not None:
            needed = list(dict.fromkeys([*with_columns, *left.meta.root_names()]))
        stream = table.snapshot.scan(columns=needed, predicate=bound, limit=n_rows, string_view=True)
        try:
            for frame in _frames(stream):
                kept = frame if left is None else frame.filter(left)
                yield kept if with_columns is None else kept.select(with_columns)
        finally:
            stream.close()

    return register_io_source(source, schema=lambda: _schema(table.snapshot.arrow_schema(True)), is_pure=True)


def _bound(table: TableHandle, predicate: pl.Expr) -> BoundTree | None:
    """Return the predicate for the core, or None if Polars has to filter itself."""
    try:
        return table.bind(predicate)
    except InvalidArgumentError:
        return None


def _frames(stream: ArrowStream) -> Iterator[pl.DataFrame]:
    for batch in stream:
        yield pl.DataFrame(batch)


def _schema(exporter: Any) -> pl.Schema:
    return pl.Schema(exporter)
