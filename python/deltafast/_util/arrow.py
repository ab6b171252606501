"""Conversion of data to one Arrow stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from deltafast._util.view_export import exportable
from deltafast.exceptions import InvalidArgumentError

__all__ = [
    "ArrowArrayExportable",
    "ArrowDataset",
    "ArrowStreamExportable",
    "Data",
    "as_stream",
    "is_dataset",
    "lazy_frame_stream",
]


class ArrowStreamExportable(Protocol):
    """Any producer of an Arrow C stream: tables and readers of pyarrow, Polars, DuckDB, pandas, nanoarrow, arro3."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream capsule."""
        ...


class ArrowArrayExportable(Protocol):
    """One batch of rows with an Arrow C array, such as a pyarrow record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return the schema and array capsules."""
        ...


class ArrowDataset(Protocol):
    """A dataset of pyarrow."""

    def scanner(self, columns: Any = None, filter: Any = None) -> Any:  # noqa: A002
        """Return a scanner of the dataset."""
        ...


Data: TypeAlias = (
    ArrowStreamExportable
    | ArrowArrayExportable
    | Iterable[ArrowArrayExportable]
    | ArrowDataset
    | Mapping[str, Sequence[Any]]
    | Iterable[Mapping[str, Any]]
)


def as_stream(data: object) -> ArrowStreamExportable:
    """Return data as one Arrow stream, without reading it.

    Raises:
        InvalidArgumentError: The data has an unsupported type, or no batches from which to take a schema.
    """
    return exportable(_stream_of(data))


def _stream_of(data: object) -> ArrowStreamExportable:
    """Return data as one Arrow stream, as its library exports it."""
    if type(data).__module__.partition(".")[0] == "polars" and hasattr(data, "lazy"):
        return _of_polars(data)
    if hasattr(data, "__arrow_c_stream__"):
        return cast("ArrowStreamExportable", data)
    if is_dataset(data):
        scanner = cast("Any", data).scanner() if hasattr(data, "scanner") else data
        return cast("ArrowStreamExportable", cast("Any", scanner).to_reader())
    if hasattr(data, "__arrow_c_array__"):
        return _batches(iter([data]))
    if isinstance(data, Mapping):
        return _of_columns(cast("Mapping[Any, Any]", data))
    if isinstance(data, (Sequence, Iterator)) and not isinstance(data, (str, bytes)):
        return _batches(iter(cast("Iterable[object]", data)))
    message = (
        f"data cannot be a {type(data).__name__}: give something with an Arrow C stream (pyarrow, Polars, DuckDB, "
        "pandas), a pyarrow dataset, record batches, a dict of columns or a list of dicts"
    )
    raise InvalidArgumentError(message)


def lazy_frame_stream(frame: Any, options: Mapping[str, Any]) -> ArrowStreamExportable:
    """Return a Polars lazy frame as a stream that runs its query when it is read.

    Args:
        frame: The lazy frame.
        options: Arguments of `LazyFrame.collect_batches`, which `LazyFrame.collect` has, too.
    """
    batches: Any = frame.collect_batches(lazy=True, **options) if hasattr(frame, "collect_batches") else None
    # Older releases of Polars have no such stream: the whole frame is collected in memory.
    return batches if hasattr(batches, "__arrow_c_stream__") else frame.collect(**options)


def _of_polars(frame: Any) -> ArrowStreamExportable:
    """Return a frame of Polars, lazy or not, as a stream.

    Raises:
        InvalidArgumentError: A column has a type that Arrow lacks.
    """
    has_null = False
    for name, dtype in frame.lazy().collect_schema().items():
        found = {str(part) for part in _parts_of_polars_type(dtype)}
        unknown = found & {"Object", "Int128", "UInt128"}
        if unknown:
            message = (
                f"Delta has no type for Polars' {min(unknown)}; cast the column before writing it (column `{name}`)"
            )
            raise InvalidArgumentError(message, column=name)
        has_null |= "Null" in found
    stream = lazy_frame_stream(frame, {"engine": "streaming"}) if hasattr(frame, "collect") else frame
    if not has_null:
        return stream
    import pyarrow as pa

    # Polars exports nulls without a type with a buffer that the Arrow C data interface does not have; pyarrow drops it.
    return pa.RecordBatchReader.from_stream(stream)


def _parts_of_polars_type(dtype: Any) -> Iterator[Any]:
    """Yield a type of Polars and the types within it."""
    yield dtype
    inner = [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]
    for part in filter(None, inner):
        yield from _parts_of_polars_type(part)


def is_dataset(data: object) -> bool:
    """Return whether data is a dataset or scanner of pyarrow, without importing pyarrow."""
    return any(kind.__module__ == "pyarrow._dataset" for kind in type(data).__mro__)


def _of_columns(columns: Mapping[Any, Any]) -> ArrowStreamExportable:
    """Return a dict of columns as a table.

    Raises:
        InvalidArgumentError: A name is not a string, values of a column have no common type, or lengths differ.
    """
    for name, values in columns.items():
        if not isinstance(name, str):
            message = f"data has a column name that is not a string: {name!r:.50}"
            raise InvalidArgumentError(message)
        kind = type(values).__name__
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            message = f"column `{name}` of the data must be a list of values, not a {kind}"
            raise InvalidArgumentError(message, column=name)
    build = _column_builder()
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        try:
            arrays[name] = build.column(values)
        except build.errors as error:
            message = f"column `{name}` of the data cannot be converted to Arrow: {error}"
            raise InvalidArgumentError(message, column=name) from None
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"`{name}` has {length:,}" for name, length in lengths.items())
        message = f"columns of the data differ in their number of values: {said}"
        raise InvalidArgumentError(message)
    return cast("ArrowStreamExportable", build.table(arrays))


class _ColumnBuilder(NamedTuple):
    """How a library makes columns of lists."""

    column: Callable[[Any], Any]
    table: Callable[[dict[str, Any]], Any]
    errors: tuple[type[Exception], ...]


def _column_builder() -> _ColumnBuilder:
    """Return the functions of pyarrow, or of Polars where pyarrow is not installed."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as missing:
        try:
            import polars as pl
        except ModuleNotFoundError:
            raise missing from None
        errors = (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError)

        def series(values: Any) -> Any:
            return pl.Series(values=values)

        return _ColumnBuilder(series, pl.DataFrame, errors)

    def column(values: Any) -> Any:
        return cast("Any", values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values))

    return _ColumnBuilder(column, pa.table, (pa.ArrowException, TypeError, ValueError, OverflowError))


def _of_rows(rows: Iterable[object]) -> ArrowStreamExportable:
    """Return dicts as a table with the columns of all of them; missing values are null."""
    collected = list(rows)
    for row in collected:
        if not isinstance(row, Mapping):
            message = f"data mixes dicts with a {type(row).__name__}"
            raise InvalidArgumentError(message)
    given = cast("list[Mapping[Any, Any]]", collected)
    names = dict.fromkeys(name for row in given for name in row)
    return _of_columns({name: [row.get(name) for row in given] for name in names})


def _batches(batches: Iterator[object]) -> ArrowStreamExportable:
    first = next(batches, None)
    if first is None:
        message = "data holds no record batches or rows, so its schema is unknown; give an empty table instead"
        raise InvalidArgumentError(message)
    if isinstance(first, Mapping):
        return _of_rows(chain([cast("object", first)], batches))
    import pyarrow as pa

    if hasattr(first, "__arrow_c_stream__"):
        tables = (cast("Any", pa.table(exportable(item))) for item in chain([first], batches))
        head = next(tables)
        source = chain.from_iterable(table.cast(head.schema).to_batches() for table in chain([head], tables))
        return cast("ArrowStreamExportable", pa.RecordBatchReader.from_batches(head.schema, source))
    if not hasattr(first, "__arrow_c_array__"):
        message = f"data must hold record batches or dicts, not {type(first).__name__}"
        raise InvalidArgumentError(message)
    # A batch of pyarrow is not exported here: not every release can export views.
    every = chain([first], batches)
    rest = (item if isinstance(item, pa.RecordBatch) else pa.record_batch(cast("Any", item)) for item in every)
    one = next(rest)
    return cast("ArrowStreamExportable", pa.RecordBatchReader.from_batches(one.schema, chain([one], rest)))
