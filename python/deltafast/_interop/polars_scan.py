"""Tables as Polars data frames, or as lazy frames that read only what a query needs."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import polars as pl
from polars.io.plugins import register_io_source

from deltafast._delta_keys import COLUMN_MAPPING_MODE
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltafast._core import ArrowStream
    from deltafast._core_types import BoundTree
    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate
    from deltafast.progress import Progress

__all__ = ["read", "scan", "scan_changes"]

#: Columns that the change data feed adds to those of the table.
_CHANGE_COLUMNS = {
    "_change_type": pl.String(),
    "_commit_version": pl.Int64(),
    "_commit_timestamp": pl.Datetime("us", "UTC"),
}


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

    # The functions refer to the handle, which can be pickled with the lazy frame, and not to its snapshot.
    def open_stream(columns: list[str] | None, predicate: BoundTree | None, limit: int | None) -> ArrowStream:
        return table.snapshot.scan(columns=columns, predicate=predicate, limit=limit, string_view=True)

    def schema() -> pl.Schema:
        return _schema(table.snapshot.arrow_schema(True))

    return _lazy_frame(open_stream, table.bind, schema, f"{table.table_uri}, version {table.version()}")


def scan_changes(
    table: TableHandle,
    starting_version: int | None,
    ending_version: int | None,
    starting_timestamp_ms: int | None,
    ending_timestamp_ms: int | None,
) -> pl.LazyFrame:
    """Return the change data feed of a range, up to the version that the table points at now, as a lazy frame."""
    table = table.pinned()
    bounds = (starting_version, ending_version, starting_timestamp_ms, ending_timestamp_ms)
    table.snapshot = table.with_changes(*bounds)
    # An empty range is an error here, never None.
    first, last = cast("tuple[int, int]", table.snapshot.cdf_range(*bounds))
    if table.metadata().configuration.get(COLUMN_MAPPING_MODE, "none") != "none" and table.version() != last:
        # The feed then has the column names of the last version, by which predicates are to be bound.
        table = table.at_version(last)

    def open_stream(columns: list[str] | None, predicate: BoundTree | None, _limit: int | None) -> ArrowStream:
        return table.snapshot.cdf(first, last, columns=columns, predicate=predicate, string_view=True)

    def bind(predicate: pl.Expr) -> BoundTree | None:
        return table.bind(predicate, change_data=True)

    def schema() -> pl.Schema:
        return pl.Schema({**_schema(table.snapshot.arrow_schema(True)), **_CHANGE_COLUMNS})

    return _lazy_frame(open_stream, bind, schema, f"{table.table_uri}, changes of versions {first} to {last}")


class _OpenStream(Protocol):
    """Opens a stream of these columns and of the rows that match; it may have more rows than the limit."""

    def __call__(self, columns: list[str] | None, predicate: BoundTree | None, limit: int | None, /) -> ArrowStream: ...


def _lazy_frame(
    open_stream: _OpenStream,
    bind: Callable[[pl.Expr], BoundTree | None],
    schema: Callable[[], pl.Schema],
    detail: str,
) -> pl.LazyFrame:
    """Return a lazy frame whose projection, predicate and row limit are pushed into the stream.

    Args:
        open_stream: Opens the stream.
        bind: Binds a predicate, or raises an `InvalidArgumentError`.
        schema: Returns the schema of all columns.
        detail: The line about the source in `LazyFrame.explain`.
    """

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001  (a hint; the core's own size bounds its memory)
    ) -> Iterator[pl.DataFrame]:
        # Polars applies n_rows before the predicate, so with both the core only applies n_rows.
        split = _Split(None, predicate) if n_rows is not None else _split(bind, predicate)
        needed = with_columns
        if with_columns is not None and split.residual is not None:
            needed = list(dict.fromkeys([*with_columns, *split.residual.meta.root_names()]))
        stream = open_stream(needed, split.bound, n_rows)
        left = n_rows
        try:
            for batch in _frames(stream):
                frame = batch if left is None else batch.head(left)
                left = None if left is None else left - frame.height
                matching_rows = frame if split.residual is None else frame.filter(split.residual)
                yield matching_rows if with_columns is None else _project(matching_rows, with_columns)
                if left == 0:
                    return
        finally:
            stream.close()

    # Releases of Polars before 2.1 have no names of sources.
    named = {"explain_name": "deltafast", "explain_detail": detail}
    known = signature(register_io_source).parameters
    shown: Any = {name: value for name, value in named.items() if name in known}
    return register_io_source(source, schema=schema, is_pure=True, **shown)


class _Split(NamedTuple):
    """A predicate as the part that the core evaluates, and the rest, which Polars evaluates."""

    bound: BoundTree | None
    residual: pl.Expr | None


def _split(bind: Callable[[pl.Expr], BoundTree | None], predicate: pl.Expr | None) -> _Split:
    """Split a predicate into the operands of AND that the core can evaluate, and the other ones."""
    if predicate is None:
        return _Split(None, None)
    pushed: pl.Expr | None = None
    residual: pl.Expr | None = None
    bound: BoundTree | None = None
    pending = [predicate]
    while pending:
        part = pending.pop()
        try:
            joined = part if pushed is None else pushed & part
            bound = bind(joined)
            pushed = joined
        except InvalidArgumentError:
            operands = _operands(part)
            if operands:
                pending += operands
            else:
                residual = part if residual is None else residual & part
    return _Split(bound, residual)


def _operands(predicate: pl.Expr) -> list[pl.Expr]:
    """Return the two operands of an AND, else nothing."""
    operands = predicate.meta.pop()
    if len(operands) == 2:  # noqa: PLR2004
        right, left = operands
        if (left & right).meta.eq(predicate):
            return operands
    return []


def _project(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Return the columns of a frame; a query that only counts or numbers rows projects none."""
    # `select([])` has no rows, whereas a frame without its columns keeps its height.
    # `select` takes the name `*` for all columns, and `^a$` for a pattern.
    projected = frame[columns] if columns else frame.drop(frame.columns)
    return _require_height(projected, frame.height)


def _require_height(frame: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Refuse a frame that lost its rows: before Polars 2.0 a frame without columns has a height of 0.

    Raises:
        InvalidArgumentError: The frame has another number of rows.
    """
    if frame.height != rows:
        message = (
            f"Polars {pl.__version__} has no data frames with rows but without columns, which this query needs: "
            "select a column of the table, or install Polars 2.0 or newer"
        )
        raise InvalidArgumentError(message)
    return frame


def _frames(stream: ArrowStream) -> Iterator[pl.DataFrame]:
    for batch in stream:
        yield _require_height(pl.DataFrame(batch), batch.num_rows)


def _schema(exporter: Any) -> pl.Schema:
    return pl.Schema(exporter)
