"""Polars: tables as data frames, or as lazy frames that read only what a query needs; frames written to tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from deltafast._handle import handle_of
from deltafast._interop import polars_scan
from deltafast.exceptions import InvalidArgumentError
from deltafast.table import DeltaTable
from deltafast.writer import write_deltalake

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import polars as pl

    from deltafast._ops.merge import TableMerger
    from deltafast._util.filters import Predicate
    from deltafast.progress import Progress

__all__ = ["read", "scan", "write_delta"]


def read(
    table: DeltaTable,
    columns: Sequence[str] | None,
    predicate: Predicate | None,
    *,
    limit: int | None = None,
    progress: Progress = False,
) -> pl.DataFrame:
    """Return all rows of a scan as a data frame."""
    return polars_scan.read(handle_of(table), columns, predicate, limit=limit, progress=progress)


def scan(table: DeltaTable) -> pl.LazyFrame:
    """Return the version that the table points at now as a lazy frame."""
    return polars_scan.scan(handle_of(table))


def write_delta(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str | os.PathLike[str] | DeltaTable,
    *,
    mode: Literal["error", "append", "overwrite", "ignore", "merge"] = "error",
    storage_options: dict[str, str] | None = None,
    delta_write_options: Mapping[str, Any] | None = None,
    delta_merge_options: Mapping[str, Any] | None = None,
) -> TableMerger | None:
    """Write a frame to a table, as `polars.DataFrame.write_delta` does; a lazy frame is written batch by batch.

    Args:
        frame: The rows.
        target: The table, or the location of an existing or new one.
        mode: As for `write_deltalake`; `merge` returns the builder of a MERGE with the frame as its source.
        storage_options: As for `DeltaTable`.
        delta_write_options: Additional arguments of `write_deltalake`.
        delta_merge_options: Arguments of `DeltaTable.merge`; at least `predicate`.

    Returns:
        The builder of a MERGE for `mode="merge"`, else None.

    Raises:
        InvalidArgumentError: `delta_merge_options` is missing for a MERGE; or as `write_deltalake` and
            `DeltaTable.merge`.

    Example:
        >>> from deltafast.polars import write_delta                                    # doctest: +SKIP
        >>> write_delta(pl.scan_csv("events-*.csv"), "/data/events", mode="append")     # doctest: +SKIP
    """
    rows: Any = frame
    if mode != "merge":
        write_deltalake(target, rows, mode=mode, storage_options=storage_options, **(delta_write_options or {}))
        return None
    if not delta_merge_options:
        message = "a merge needs delta_merge_options with its predicate: {'predicate': 's.id = t.id', ...}"
        raise InvalidArgumentError(message)
    table = target if isinstance(target, DeltaTable) else DeltaTable(target, storage_options=storage_options)
    return table.merge(rows, **delta_merge_options)
