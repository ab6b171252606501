"""Polars: the table as a data frame, or as a lazy frame that reads only what a query needs; frames as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from polars.io.plugins import register_io_source

from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from deltafast._core import ArrowStream
    from deltafast._ops.merge import TableMerger
    from deltafast._util.filters import Predicate
    from deltafast.progress import Progress
    from deltafast.table import DeltaTable

__all__ = ["read", "scan", "write_delta"]


def read(
    table: DeltaTable,
    columns: Sequence[str] | None,
    predicate: Predicate | None,
    *,
    limit: int | None = None,
    progress: Progress = False,
) -> pl.DataFrame:
    """All rows of a scan as a data frame."""
    stream = table._scan(columns, predicate, limit, string_view=True)
    with RecordBatchReader(stream, progress):
        empty = pl.DataFrame(schema=_schema(stream))
        frames = list(_frames(stream))
    return pl.concat(frames, rechunk=False) if frames else empty


def scan(table: DeltaTable) -> pl.LazyFrame:
    """The version that the table points at now, as a lazy frame."""
    table = table._pinned()

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001  (a hint; the core's own size bounds its memory)
    ) -> Iterator[pl.DataFrame]:
        # Polars counts n_rows before the predicate, so with both the core may only do the counting.
        bound = None if predicate is None or n_rows is not None else _bound(table, predicate)
        left = predicate if bound is None else None
        needed = with_columns
        if with_columns is not None and left is not None:
            needed = list(dict.fromkeys([*with_columns, *left.meta.root_names()]))
        stream = table._snapshot.scan(columns=needed, predicate=bound, limit=n_rows, string_view=True)
        try:
            for frame in _frames(stream):
                kept = frame if left is None else frame.filter(left)
                yield kept if with_columns is None else kept.select(with_columns)
        finally:
            stream.close()

    return register_io_source(source, schema=lambda: _schema(table._snapshot.arrow_schema(True)), is_pure=True)


def write_delta(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str | os.PathLike[str] | DeltaTable,
    *,
    mode: Literal["error", "append", "overwrite", "ignore", "merge"] = "error",
    storage_options: dict[str, str] | None = None,
    delta_write_options: Mapping[str, Any] | None = None,
    delta_merge_options: Mapping[str, Any] | None = None,
) -> TableMerger | None:
    """Write a frame to a table, as `polars.DataFrame.write_delta` does; a lazy one batch by batch.

    Args:
        frame: The rows.
        target: The table, or where it is or is to be.
        mode: That of `write_deltalake`; `merge` gives the builder of a MERGE with the frame as its source.
        storage_options: As for `DeltaTable`.
        delta_write_options: Further arguments of `write_deltalake`.
        delta_merge_options: Arguments of `DeltaTable.merge`: `predicate` at least.

    Returns:
        The builder of a MERGE for `mode="merge"`, else nothing.

    Raises:
        InvalidArgumentError: A merge without options; whatever `write_deltalake` and `DeltaTable.merge` refuse.

    Example:
        >>> from deltafast.polars import write_delta                                    # doctest: +SKIP
        >>> write_delta(pl.scan_csv("events-*.csv"), "/data/events", mode="append")     # doctest: +SKIP
    """
    from deltafast.table import DeltaTable
    from deltafast.writer import write_deltalake

    rows: Any = frame
    if mode != "merge":
        write_deltalake(target, rows, mode=mode, storage_options=storage_options, **(delta_write_options or {}))
        return None
    if not delta_merge_options:
        message = "a merge needs delta_merge_options with its predicate: {'predicate': 's.id = t.id', ...}"
        raise InvalidArgumentError(message)
    table = target if isinstance(target, DeltaTable) else DeltaTable(target, storage_options=storage_options)
    return table.merge(rows, **delta_merge_options)


def _bound(table: DeltaTable, predicate: pl.Expr) -> str | None:
    """The predicate for the core, or None where Polars has to filter itself."""
    try:
        return table._bound(predicate)
    except InvalidArgumentError:
        return None


def _frames(stream: ArrowStream) -> Iterator[pl.DataFrame]:
    for batch in stream:
        yield pl.DataFrame(batch)


def _schema(exporter: Any) -> pl.Schema:
    return pl.Schema(exporter)
