"""`write_deltalake`: rows from anything that speaks Arrow -> a version of a table; names are `deltalake`'s.

The core casts, checks, splits, encodes and commits; here the data becomes one Arrow stream and the table's expressions
are bound. Nothing is collected on the way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from deltafast import _core
from deltafast._util.locations import address
from deltafast._util.options import choices, names, property_strings, text_options
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError
from deltafast.progress import Progress, counted

if TYPE_CHECKING:
    from deltafast._util.filters import Predicate
    from deltafast.catalog import Committer
    from deltafast.table import DeltaTable
    from deltafast.transaction import CommitProperties, Mode, PostCommitHookProperties

__all__ = ["BloomFilterProperties", "ColumnProperties", "WriterProperties", "write_deltalake"]

Encoding: TypeAlias = Literal[
    "PLAIN", "RLE", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"
]
Compression: TypeAlias = Literal["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"]

#: Codecs that take a level: the lowest, the highest, the usual one.
LEVELS = {"GZIP": (0, 10, 6), "BROTLI": (0, 11, 1), "ZSTD": (1, 22, 1)}
_LARGEST = 2**63 - 1
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


class ArrowStreamExportable(Protocol):
    """Anything with an Arrow C stream: tables and readers of pyarrow, Polars, DuckDB, pandas, nanoarrow, arro3."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream capsule."""
        ...


class ArrowArrayExportable(Protocol):
    """One batch of rows with an Arrow C array, such as a pyarrow record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The schema and array capsules."""
        ...


class ArrowDataset(Protocol):
    """A dataset of pyarrow."""

    def scanner(self, columns: Any = None, filter: Any = None) -> Any:  # noqa: A002
        """A scanner of it."""
        ...


Data: TypeAlias = (
    ArrowStreamExportable
    | ArrowArrayExportable
    | Iterable[ArrowArrayExportable]
    | ArrowDataset
    | Mapping[str, Sequence[Any]]
    | Iterable[Mapping[str, Any]]
)


@dataclass
class BloomFilterProperties:
    """A bloom filter of a column.

    Raises:
        InvalidArgumentError: `fpp` is not between 0 and 1.
    """

    #: Whether there is one.
    set_bloom_filter_enabled: bool | None
    #: Share of false positives, between 0 and 1.
    fpp: float | None = None
    #: Distinct values to expect.
    ndv: int | None = None

    def __post_init__(self) -> None:
        if self.fpp is not None and not 0 < self.fpp < 1:
            message = "fpp must be between 0 and 1 exclusive"
            raise InvalidArgumentError(message)


@dataclass
class ColumnProperties:
    """How a column is encoded.

    Raises:
        InvalidArgumentError: A dictionary and an encoding exclude each other.
    """

    #: Whether a dictionary is tried.
    dictionary_enabled: bool | None = None
    #: Statistics inside of the file: NONE, CHUNK or PAGE. Those of the table do not depend on it.
    statistics_enabled: Literal["NONE", "CHUNK", "PAGE"] | None = None
    #: A bloom filter.
    bloom_filter_properties: BloomFilterProperties | None = None
    #: Encoding of values that are in no dictionary.
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None and self.dictionary_enabled:
            message = "Cannot specify dictionary_enabled=True and encoding"
            raise InvalidArgumentError(message)

    def _options(self) -> dict[str, Any]:
        out = asdict(self)
        # Who names an encoding wants it: with a dictionary it would only serve where that grows too large.
        if self.encoding is not None and self.dictionary_enabled is None:
            out["dictionary_enabled"] = False
        return out


class WriterProperties:
    """How Parquet files are written; what is None is left to the writer.

    Args:
        data_page_size_limit: Bytes of a data page at most.
        dictionary_page_size_limit: Bytes of a dictionary page at most.
        data_page_row_count_limit: Rows of a data page at most.
        write_batch_size: Rows encoded at a time.
        max_row_group_size: Rows of a row group at most.
        compression: The codec; the table's `delta.parquet.compression.codec`, else ZSTD, if None.
        compression_level: The codec's level.
        statistics_truncate_length: Bytes of text that bounds inside of the file keep.
        default_column_properties: For all columns.
        column_properties: By column; a nested field is named with dots.

    Raises:
        InvalidArgumentError: The codec or its level does not exist.
    """

    def __init__(
        self,
        data_page_size_limit: int | None = None,
        dictionary_page_size_limit: int | None = None,
        data_page_row_count_limit: int | None = None,
        write_batch_size: int | None = None,
        max_row_group_size: int | None = None,
        compression: Compression | None = None,
        compression_level: int | None = None,
        statistics_truncate_length: int | None = None,
        default_column_properties: ColumnProperties | None = None,
        column_properties: dict[str, ColumnProperties] | None = None,
    ) -> None:
        self.data_page_size_limit = data_page_size_limit
        self.dictionary_page_size_limit = dictionary_page_size_limit
        self.data_page_row_count_limit = data_page_row_count_limit
        self.write_batch_size = write_batch_size
        self.max_row_group_size = max_row_group_size
        #: The codec with its level, `ZSTD(1)` for example.
        self.compression = _codec(compression, compression_level)
        self.statistics_truncate_length = statistics_truncate_length
        self.default_column_properties = default_column_properties
        self.column_properties = column_properties

    def __eq__(self, other: object) -> bool:
        return self._options() == other._options() if isinstance(other, WriterProperties) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # it can be changed

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if value is not None)
        return f"WriterProperties({given})"

    def _options(self) -> dict[str, Any]:
        """What the core takes."""
        out = {key: value for key, value in vars(self).items() if value is not None}
        if self.default_column_properties is not None:
            out["default_column_properties"] = self.default_column_properties._options()
        if self.column_properties is not None:
            columns = self.column_properties.items()
            out["column_properties"] = {column: properties._options() for column, properties in columns}
        return out


def _codec(compression: str | None, level: int | None) -> str | None:
    if compression is None:
        if level is not None:
            message = "a compression level needs a compression, give both"
            raise InvalidArgumentError(message)
        return None
    name = compression.upper()
    if name not in _CODECS:
        message = f"{compression} is not a valid Compression. Valid values are: {', '.join(_CODECS)}"
        raise InvalidArgumentError(message)
    if name not in LEVELS:
        return name
    lowest, highest, usual = LEVELS[name]
    if level is not None and not lowest <= level <= highest:
        message = f"Compression level for {name} should fall between {lowest}-{highest}"
        raise InvalidArgumentError(message)
    return f"{name}({usual if level is None else level})"


def write_deltalake(
    table_or_uri: str | os.PathLike[str] | DeltaTable,
    data: Data,
    *,
    partition_by: Sequence[str] | str | None = None,
    mode: Mode = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | bool | int | None] | None = None,
    schema_mode: Literal["merge", "overwrite"] | None = None,
    storage_options: dict[str, str] | None = None,
    predicate: Predicate | None = None,
    target_file_size: int | None = None,
    writer_properties: WriterProperties | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    partition_overwrite_mode: Literal["static", "dynamic"] = "static",
    cluster_by: Sequence[str] | str | None = None,
    committer: Committer | None = None,
    store: object | None = None,
    time_zone: str | None = None,
    replace_using: Sequence[str] | str | None = None,
    replace_on: str | None = None,
    progress: Progress = False,
) -> None:
    """Write rows to a table, which is made where there is none.

    Columns are found by name without case. Values are cast to the table's types where that loses nothing; what does not
    fit is refused. Columns that the data lacks get their default, are computed where they are generated, else are null.
    NOT NULL, CHECK constraints and generated columns are enforced; when a row breaks one, the table stays as it was.

    Args:
        table_or_uri: The table, by path or URL, or a handle, which then points at the new version.
        data: Anything with an Arrow C stream (pyarrow, Polars, DuckDB relations, pandas), a Polars lazy frame, a record
            batch, a list or iterator of record batches, a pyarrow dataset, a dict of columns, or a list of dicts, one a
            row (what a row lacks is null).
        partition_by: Partition columns of a new table.
        mode: What to do where there is a table: `error`, `append`, `overwrite` its rows, or `ignore` the write.
        name: Name of a new table.
        description: Description of a new table.
        configuration: Properties of a new table.
        schema_mode: `merge` adds columns and nested fields that the table lacks; `overwrite` (with mode overwrite)
            puts the data's schema in the place of the table's. Otherwise unknown columns are refused.
        storage_options: As for `DeltaTable`.
        predicate: With mode overwrite, only rows for which it is true are replaced, and the data must match it (Spark's
            replaceWhere). SQL text, tuples, a pyarrow or Polars expression.
        target_file_size: Bytes of a file after which a new one is begun; `delta.targetFileSize`, else 100 MiB, if None.
        writer_properties: How Parquet files are written.
        commit_properties: How to commit.
        post_commithook_properties: What follows the commit.
        partition_overwrite_mode: With mode overwrite, `dynamic` replaces only the partitions that the data has rows of.
        cluster_by: Columns by which a new table is clustered (liquid clustering), nested ones with dots.
        committer: Speaks for the catalog of a catalog-managed table; a new table becomes one (see
            `deltafast.catalog`). A handle has its own.
        store: A Python store, see `DeltaTable`.
        time_zone: Where timestamps without a zone are read when the column is an instant; UTC if None.
        replace_using: With mode overwrite, only rows are replaced that equal a row of the data in these columns; a null
            equals nothing. The distinct keys of the data are held in memory.
        replace_on: The same with columns of other names, and with nulls that equal each other: SQL such as
            `target.id = source.key AND target.day <=> source.day` (`t` and `s` for short).
        progress: True for a bar on standard error, a function of (done, all), or a tqdm-like bar; counts rows, of which
            it is not known how many they are where the data does not tell.

    Raises:
        InvalidArgumentError: The mode forbids it, or an argument is wrong.
        SchemaMismatchError: The data does not fit the schema.
        ConstraintViolatedError: A row breaks a constraint.
        DeltaProtocolError: The table needs a feature that this release does not have.
        CommitFailedError: Another writer's commit came in between; its subclasses say why this one cannot follow it.
        CommitUnknownError: Whether the commit was made cannot be found out.
        StorageError: The store failed.

    Example:
        >>> write_deltalake("/data/events", frame, mode="append")                         # doctest: +SKIP
        >>> write_deltalake("/data/events", day, mode="overwrite", predicate="day = '2026-01-01'")  # doctest: +SKIP
    """
    from deltafast.table import DeltaTable

    if partition_overwrite_mode not in ("static", "dynamic"):
        message = f"partition_overwrite_mode must be 'static' or 'dynamic', not {partition_overwrite_mode!r}"
        raise InvalidArgumentError(message)
    table = table_or_uri if isinstance(table_or_uri, DeltaTable) else None
    zone = time_zone or (table._time_zone if table is not None else "UTC")
    options = {
        "mode": _checked("mode", mode, ("error", "append", "overwrite", "ignore")),
        "partition_by": names(partition_by),
        "cluster_by": names(cluster_by) or [],
        "name": name,
        "description": description,
        "configuration": property_strings(configuration),
        "schema_mode": _checked("schema_mode", schema_mode, (None, "merge", "overwrite")),
        "has_predicate": predicate is not None,
        "dynamic_partitions": partition_overwrite_mode == "dynamic",
        "keys": _keys(replace_using, replace_on),
        "encoding": encoding(writer_properties, zone, target_file_size),
        "choices": choices(commit_properties, post_commithook_properties),
    }
    with counted(progress, "rows") as counter:
        if counter is not None:
            counter.expect(_rows_of(data))
        _run(table_or_uri, data, options, predicate, zone, storage_options, store, committer)


def _rows_of(data: object) -> int:
    """How many rows there are, where the data tells; else 0."""
    rows = getattr(data, "num_rows", None)
    if isinstance(rows, int):
        return rows
    shape: Any = getattr(data, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else 0


def write_as_select(
    place: str | DeltaTable,
    data: Data,
    statement: Literal["create", "create_or_replace", "replace"],
    *,
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    description: str | None,
    configuration: Mapping[str, str],
    storage_options: Mapping[str, str] | None,
    commit_properties: CommitProperties | None,
    zone: str,
) -> None:
    """Make a table of rows as CREATE TABLE AS SELECT does; one that is there is replaced with all that it is.

    Raises:
        DeltaError: As `write_deltalake`.
    """
    options = {
        "mode": "error" if statement == "create" else "overwrite",
        "partition_by": list(partition_by),
        "cluster_by": list(cluster_by),
        "description": description,
        "configuration": dict(configuration),
        "as_select": statement,
        "encoding": encoding(None, zone),
        "choices": choices(commit_properties, None),
    }
    _run(place, data, options, None, zone, storage_options, None, None)


def _run(
    table_or_uri: str | os.PathLike[str] | DeltaTable,
    data: Data,
    options: dict[str, Any],
    predicate: Predicate | None,
    zone: str,
    storage_options: Mapping[str, str] | None,
    store: object | None,
    committer: Committer | None,
) -> None:
    """Plan the write, bind what it asks for, do it."""
    from deltafast._expr.demands import bind_demands
    from deltafast.table import DeltaTable, _adapted, _core_options

    table = table_or_uri if isinstance(table_or_uri, DeltaTable) else None
    if isinstance(table_or_uri, DeltaTable):
        uri, snapshot = table_or_uri._given_uri, table_or_uri._snapshot
    else:
        uri, snapshot = address(table_or_uri), None
    write = _core.TableWrite.plan(
        uri,
        json.dumps(options),
        data=as_stream(data),
        snapshot=snapshot,
        storage_options=text_options(storage_options),
        store=None if store is None else _adapted(store, uri),
        open_options=_core_options(zone, None, False),
        committer=committer,
    )
    if write is None:
        return
    moved, _ = write.run(bind_demands(write.demands, write.schema, predicate, zone=zone))
    if table is not None:
        table._move(moved)


def encoding(properties: WriterProperties | None, zone: str, target_file_size: int | None = None) -> dict[str, Any]:
    """How files are made, as the core takes it: `Encoding` in `src/ops/target.rs`."""
    if target_file_size is not None and not 1 <= target_file_size <= _LARGEST:
        message = f"target_file_size must be between 1 and {_LARGEST}, not {target_file_size}"
        raise InvalidArgumentError(message)
    written = {} if properties is None else properties._options()
    return {"target_file_size": target_file_size, "writer_properties": written, "time_zone": zone}


def _keys(replace_using: Sequence[str] | str | None, replace_on: str | None) -> list[dict[str, Any]]:
    from deltafast._expr.demands import bind_keys

    if replace_using is not None and replace_on is not None:
        message = "give either `replace_using` or `replace_on`, not both"
        raise InvalidArgumentError(message)
    if replace_on is not None:
        return bind_keys(replace_on)
    using = names(replace_using)
    if using is None:
        return []
    if not using:
        message = "`replace_using` names no column"
        raise InvalidArgumentError(message)
    return [{"target": name, "source": name} for name in using]


def _checked(what: str, value: str | None, known: Sequence[str | None]) -> str | None:
    if value not in known:
        message = f"{what} must be one of {', '.join(map(repr, known))}, not {value!r}"
        raise InvalidArgumentError(message)
    return value


def try_get_table_and_table_uri(
    table_or_uri: str | os.PathLike[str] | DeltaTable,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[DeltaTable | None, str]:
    """The table, None where there is none, and its place; a helper of `deltalake` that other libraries import.

    Raises:
        InvalidArgumentError: It is neither a place nor a table.
    """
    from deltafast.table import DeltaTable

    if isinstance(table_or_uri, DeltaTable):
        return table_or_uri, table_or_uri.table_uri
    if not isinstance(table_or_uri, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = "table_or_uri must be a str, Path or DeltaTable"
        raise InvalidArgumentError(message)
    return try_get_deltatable(table_or_uri, storage_options), address(table_or_uri)


def try_get_deltatable(
    table_uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
) -> DeltaTable | None:
    """The table, None where there is none."""
    from deltafast.table import DeltaTable

    try:
        return DeltaTable(table_uri, storage_options=storage_options)
    except TableNotFoundError:
        return None


def as_stream(data: object) -> ArrowStreamExportable:
    """Data of any kind as one Arrow stream, without reading it.

    Raises:
        InvalidArgumentError: It is none, or holds no batches to take a schema from.
    """
    if hasattr(data, "__arrow_c_stream__"):
        return cast("ArrowStreamExportable", data)
    module = type(data).__module__
    if is_dataset(data):
        scanner = cast("Any", data).scanner() if hasattr(data, "scanner") else data
        return cast("ArrowStreamExportable", cast("Any", scanner).to_reader())
    if module.partition(".")[0] == "polars" and hasattr(data, "collect"):
        frame = cast("Any", data)
        batches: Any = frame.collect_batches(lazy=True) if hasattr(frame, "collect_batches") else None
        # Older releases of Polars have no such stream: the frame is held as a whole.
        return batches if hasattr(batches, "__arrow_c_stream__") else frame.collect(engine="streaming")
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


def is_dataset(data: object) -> bool:
    """Whether it is a dataset or scanner of pyarrow, without importing that."""
    return any(kind.__module__ == "pyarrow._dataset" for kind in type(data).__mro__)


def _of_columns(columns: Mapping[Any, Any]) -> ArrowStreamExportable:
    """A dict of columns as a table.

    Raises:
        InvalidArgumentError: A name is not a string, values of a column have no common type, or lengths differ.
    """
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            message = f"data has a column name that is not a string: {name!r:.50}"
            raise InvalidArgumentError(message)
        kind = type(values).__name__
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            message = f"column `{name}` of the data must be a list of values, not a {kind}"
            raise InvalidArgumentError(message, column=name)
        try:
            arrays[name] = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            message = f"column `{name}` of the data cannot be converted to Arrow: {error}"
            raise InvalidArgumentError(message, column=name) from None
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"`{name}` has {length:,}" for name, length in lengths.items())
        message = f"columns of the data differ in their number of values: {said}"
        raise InvalidArgumentError(message)
    return cast("ArrowStreamExportable", pa.table(arrays))


def _of_rows(rows: Iterable[object]) -> ArrowStreamExportable:
    """Dicts as a table with all columns that one of them has; what a row lacks is null."""
    collected = list(rows)
    for row in collected:
        if not isinstance(row, Mapping):
            message = f"data mixes dicts with a {type(row).__name__}"
            raise InvalidArgumentError(message)
    given = cast("list[Mapping[Any, Any]]", collected)
    names = dict.fromkeys(name for row in given for name in row)
    return _of_columns({name: [row.get(name) for row in given] for name in names})


def _batches(batches: Iterator[object]) -> ArrowStreamExportable:
    import pyarrow as pa

    first = next(batches, None)
    if first is None:
        message = "data holds no record batches or rows, so its schema is unknown; give an empty table instead"
        raise InvalidArgumentError(message)
    if isinstance(first, Mapping):
        return _of_rows(chain([cast("object", first)], batches))
    if hasattr(first, "__arrow_c_stream__"):
        tables = (cast("Any", pa.table(cast("Any", item))) for item in chain([first], batches))
        head = next(tables)
        source = chain.from_iterable(table.cast(head.schema).to_batches() for table in chain([head], tables))
        return cast("ArrowStreamExportable", pa.RecordBatchReader.from_batches(head.schema, source))
    if not hasattr(first, "__arrow_c_array__"):
        message = f"data must hold record batches or dicts, not {type(first).__name__}"
        raise InvalidArgumentError(message)
    rest = (pa.record_batch(cast("Any", item)) for item in chain([first], batches))
    one = next(rest)
    return cast("ArrowStreamExportable", pa.RecordBatchReader.from_batches(one.schema, chain([one], rest)))
