"""The table as a pyarrow dataset, read by deltafast.

pyarrow's own Parquet reader does not support deletion vectors, column mapping, widened types, legacy
calendars or column names in another case; for such tables it silently returns wrong rows. So
`ScanDataset` is a pyarrow dataset whose scanners read through the core. DuckDB, Polars and pandas use
nothing else of a dataset. The dataset of plain Parquet files remains for callers who request pyarrow's
reader with a file system or read options, for tables that it reads correctly.
"""

# pyarrow's stubs know its types in part only, and its dataset methods take more than is needed here.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from deltafast._delta_keys import COLUMN_MAPPING_MODE
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._types import leaves
from deltafast._util.column_mapping import MappingMode
from deltafast._util.locations import local_path
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError
from deltafast.schema import tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from deltafast._core import ArrowStream
    from deltafast._core_types import BoundTree
    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate
    from deltafast.progress import Progress
    from deltafast.schema import StructType

#: Number of characters after which bounds of strings are truncated.
_CUT = 32

__all__ = ["ScanDataset", "as_expression", "parquet_dataset", "read_table"]


def read_table(
    table: TableHandle,
    columns: Sequence[str] | None,
    filters: Predicate | None,
    *,
    files: list[str] | None = None,
    limit: int | None = None,
    progress: Progress = False,
) -> pa.Table:
    """Return all rows of a scan as a pyarrow table."""
    try:
        stream = table.scan(_distinct(columns), filters, limit, files=files)
    except InvalidArgumentError:
        if not isinstance(filters, pc.Expression):
            raise
        found = ScanDataset(table, files=files).to_table(columns=columns, filter=filters)
        return found if limit is None else found.slice(0, limit)
    read = RecordBatchReader(stream, progress).read_all()
    return read if columns is None else read.select(list(columns))


def as_expression(filters: Any) -> pc.Expression | None:
    """Return filters for pyarrow's own reader."""
    if filters is None or isinstance(filters, pc.Expression):
        return filters
    if isinstance(filters, list):
        import pyarrow.parquet as pq

        return pq.filters_to_expression(filters)  # pyright: ignore[reportArgumentType]
    message = "with filesystem=, filters must be tuples or a pyarrow expression"
    raise InvalidArgumentError(message)


def _distinct(columns: Iterable[str] | None) -> list[str] | None:
    return None if columns is None else list(dict.fromkeys(columns))


class _Unread(pafs.FileSystemHandler):
    """The files of a `ScanDataset`; code that bypasses its scanner fails instead of reading wrong rows."""

    def __getattribute__(self, name: str) -> Any:
        if name == "get_type_name":
            return lambda: "deltafast"
        if name == "normalize_path":
            return _same
        if name.startswith("_"):
            return object.__getattribute__(self, name)
        return _refuse


def _same(path: str) -> str:
    return path


def _refuse(*_: Any, **__: Any) -> NoReturn:
    message = "this dataset is read by deltafast: use its scanner, to_table, to_batches or to_reader"
    raise OSError(message)


def _handler() -> pafs.PyFileSystem:
    abstract: dict[str, Any] = dict.fromkeys(pafs.FileSystemHandler.__abstractmethods__, _refuse)
    return pafs.PyFileSystem(type("_Unread", (_Unread,), abstract)())


# The overrides list the parameters that are used here and accept the others.
class ScanDataset(pads.FileSystemDataset):
    """A pyarrow dataset over one version of a table, with projection and filters pushed down.

    Args:
        table: The table, at the version that it points at now.
        schema: Cast the columns to these types; the table's own if None.
        files: Only these files.
        filters: Filters that always apply.
        parquet: The same rows as a dataset of Parquet files, for libraries that pass the dataset to Arrow's C++ without
            calling its methods. None if pyarrow's reader would return wrong rows: these libraries then get an error.
    """

    def __init__(
        self,
        table: TableHandle,
        *,
        schema: pa.Schema | None = None,
        files: list[str] | None = None,
        filters: tuple[pc.Expression, ...] = (),
        parquet: pads.FileSystemDataset | None = None,
    ) -> None:
        self._table = table.pinned()
        self._cast = schema
        self._files = files
        self._filters = filters
        self._parquet = parquet
        own = table.arrow_schema()
        full = own if schema is None else schema
        #: Predicates are pushed down only for columns with the table's types; otherwise they may select other rows.
        self._pushes = schema is None or all(_same_values(field, own) for field in schema)
        if parquet is None:
            fmt, below = pads.ParquetFileFormat(), cast("pafs.FileSystem", _handler())
            fragments: list[Any] = [fmt.make_fragment("deltafast", filesystem=below)]
        else:
            fmt, below = parquet.format, parquet.filesystem
            fragments = list(cast("Any", parquet).get_fragments())
        super().__init__(fragments, full, fmt, below)
        if filters:
            # As `pyarrow.dataset.Dataset.filter` does.
            self._scan_options = {"filter": reduce(and_, filters)}

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (self._table, self._cast, self._files, self._filters, self._parquet is not None)

    def __repr__(self) -> str:
        return f"<deltafast dataset of {self._table!r}>"

    @property
    def files(self) -> list[str]:
        """The files that are read: paths below `filesystem` if it has them, else as in `DeltaTable.file_uris`."""
        if self._parquet is not None:
            return self._parquet.files
        snapshot = self._table.snapshot
        uris = [local_path(uri) for uri in _listed(snapshot.file_uris(None), "uri")]
        if self._files is None:
            return uris
        chosen = set(self._files)
        paths = _listed(snapshot.files(columns=["path"]), "path")
        return [uri for uri, path in zip(uris, paths, strict=True) if path in chosen]

    def scanner(self, columns: Any = None, filter: Any = None, batch_size: int | None = None, **_: Any) -> pads.Scanner:  # noqa: A002
        """Return a scanner that can be read once. pyarrow's options for readahead and threads are accepted.

        Args:
            columns: Names, or a dictionary of expressions by name.
            filter: A pyarrow expression.
            batch_size: Largest number of rows in a batch.
        """
        return self._scan(columns, filter, batch_size)[0]

    def _scan(
        self,
        columns: Any,
        filter: pc.Expression | None,  # noqa: A002
        batch_size: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> tuple[pads.Scanner, ArrowStream]:
        """Return a scanner with the stream that it reads, which has the typed error of a failed read."""
        stream, names, residual = self._stream(columns, filter, batch_size, limit)
        chosen = list(columns) if isinstance(columns, (list, tuple)) else columns
        return pads.Scanner.from_batches(self._typed(stream, names), columns=chosen, filter=residual), stream

    def _stream(
        self,
        columns: Any,
        filter: pc.Expression | None,  # noqa: A002
        batch_size: int | None,
        limit: int | None,
    ) -> tuple[ArrowStream, list[str] | None, pc.Expression | None]:
        """Return a stream with pushed-down filters, its columns, and the filter that the core cannot evaluate."""
        asked = (*self._filters, *(() if filter is None else (filter,)))
        bound, left = self._split(asked)
        names = self._names(columns) if left is None else None
        own = self._table.schema()
        stream = self._table.snapshot.scan(
            columns=names if self._cast is None else _known_of(self._cast.names if names is None else names, own),
            predicate=bound,
            limit=limit if left is None else None,
            batch_size=batch_size,
            string_view=False,
            files=self._files,
        )
        return stream, names, left

    def _typed(self, stream: ArrowStream, names: list[str] | None) -> pa.RecordBatchReader:
        reader = pa.RecordBatchReader.from_stream(stream)
        if self._cast is None:
            return reader
        target = pa.schema([self._cast.field(name) for name in (self._cast.names if names is None else names)])
        if target.names == reader.schema.names:
            return reader.cast(target)
        return pa.RecordBatchReader.from_batches(target, _fitted(reader, target))

    def _split(self, asked: Sequence[pc.Expression]) -> tuple[BoundTree | None, pc.Expression | None]:
        trees: list[BoundTree] = []
        left: pc.Expression | None = None
        for expression in asked:
            if not self._pushes:
                left = expression if left is None else left & expression
                continue
            try:
                tree = self._table.bind(expression)
            except InvalidArgumentError:
                left = expression if left is None else left & expression
            else:
                trees.append(cast("BoundTree", tree))
        return _all_of(trees), left

    def _names(self, columns: Any) -> list[str] | None:
        """Return the columns to read; all if expressions do not reveal the columns that they use."""
        if columns is None:
            return None
        if isinstance(columns, dict):
            plain = [str(expression) for expression in cast("dict[str, Any]", columns).values()]
            return _distinct(plain) if set(plain) <= set(self.schema.names) else None
        return _distinct(columns)

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:  # noqa: A002
        """Return all rows as a pyarrow table."""
        scanner, stream = self._scan(columns, filter, **options)
        with _typed_errors(stream):
            return scanner.to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
        """Return all rows as record batches."""
        scanner, stream = self._scan(columns, filter, **options)
        return _batches(scanner, stream)

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:  # noqa: A002
        """Return any `num_rows` rows."""
        scanner, stream = self._scan(columns, filter, options.get("batch_size"), num_rows)
        with _typed_errors(stream):
            return scanner.head(num_rows)

    def count_rows(self, filter: Any = None, **options: Any) -> int:  # noqa: A002
        """Return the number of rows."""
        asked = (*self._filters, *(() if filter is None else (filter,)))
        bound, left = self._split(asked)
        if left is None and self._files is None:
            return self._table.snapshot.count(bound)
        scanner, stream = self._scan(None, filter, **options)
        with _typed_errors(stream):
            return scanner.count_rows()

    def filter(self, expression: pc.Expression) -> ScanDataset:
        """Return this dataset with an additional filter."""
        filters = (*self._filters, expression)
        return ScanDataset(self._table, schema=self._cast, files=self._files, filters=filters, parquet=self._parquet)

    def replace_schema(self, schema: pa.Schema) -> ScanDataset:
        """Return this dataset with these columns: cast to other types, null if the table does not have them."""
        parquet = self._parquet
        if parquet is not None and not schema.equals(self.schema):
            parquet = _parquet_of(self._table, schema, self._files)
        return ScanDataset(self._table, schema=schema, files=self._files, filters=self._filters, parquet=parquet)

    def with_parquet(self) -> ScanDataset:
        """Return this dataset for libraries that use Arrow's C++ directly, if pyarrow's reader is correct for it.

        The files and their statistics are listed immediately. Otherwise the dataset itself is returned.
        """
        parquet = _parquet_of(self._table, self._cast, self._files)
        if parquet is None:
            return self
        return ScanDataset(self._table, schema=self._cast, files=self._files, filters=self._filters, parquet=parquet)

    def get_fragments(self, filter: Any = None) -> Any:  # noqa: A002
        """Return the Parquet files as pyarrow fragments, for tables that pyarrow's reader reads correctly.

        Raises:
            DeltaProtocolError: pyarrow's reader would return wrong rows.
        """
        pruning: pc.Expression | None = None
        for expression in (*self._filters, *(() if filter is None else (filter,))):
            if self._split([expression])[1] is None:
                pruning = expression if pruning is None else pruning & expression
        if self._parquet is not None:
            every = [*self._filters, *([] if filter is None else [filter])]
            return cast("Any", self._parquet).get_fragments(reduce(and_, every) if every else None)
        plain = parquet_dataset(self._table, None, None, self._cast, False, pruning, self._files)
        return cast("Any", plain).get_fragments(filter)

    def take(self, indices: Any, **options: Any) -> pa.Table:
        """Return rows by position, in the order of a full read."""
        return _in_memory(self).take(indices, **options)

    def sort_by(self, sorting: Any, **options: Any) -> pads.InMemoryDataset:
        """Return the rows, sorted in memory."""
        return _in_memory(self).sort_by(sorting, **options)

    def join(self, right_dataset: Any, *args: Any, **options: Any) -> pads.InMemoryDataset:
        """Join in memory, see `pyarrow.dataset.Dataset.join`."""
        return _in_memory(self).join(_in_memory(right_dataset), *args, **options)

    def join_asof(self, right_dataset: Any, *args: Any, **options: Any) -> pads.InMemoryDataset:
        """Run an as-of join in memory, see `pyarrow.dataset.Dataset.join_asof`."""
        return _in_memory(self).join_asof(_in_memory(right_dataset), *args, **options)


def _batches(scanner: pads.Scanner, stream: ArrowStream) -> Iterator[pa.RecordBatch]:
    with _typed_errors(stream):
        yield from scanner.to_batches()


@contextmanager
def _typed_errors(stream: ArrowStream) -> Generator[None]:
    """Raise the typed error of a stream in place of pyarrow's, which has only its message."""
    try:
        yield
    except (pa.ArrowException, OSError):
        stream.check()
        raise


def _in_memory(dataset: Any) -> Any:
    return cast("Any", pads.InMemoryDataset)(dataset.to_table()) if isinstance(dataset, ScanDataset) else dataset


def _listed(stream: ArrowStream, column: str) -> list[str]:
    return cast("list[str]", RecordBatchReader(stream).read_all().column(column).to_pylist())


def _remake(
    table: TableHandle,
    schema: pa.Schema | None,
    files: list[str] | None,
    filters: tuple[pc.Expression, ...],
    is_parquet: bool,
) -> ScanDataset:
    made = ScanDataset(table, schema=schema, files=files, filters=filters)
    return made.with_parquet() if is_parquet else made


def _same_values(field: pa.Field[Any], own: pa.Schema) -> bool:
    """Return whether a type has the same values as the table's column; large types have."""
    place = own.get_field_index(field.name)
    return place >= 0 and str(field.type).replace("large_", "") == str(own.field(place).type).replace("large_", "")


def _known_of(names: Iterable[str], schema: StructType) -> list[str]:
    """Return the names that are columns of the table."""
    known = {field.name for field in schema.fields}
    return [name for name in names if name in known]


def _fitted(reader: pa.RecordBatchReader, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield batches with these columns; columns that the reader lacks are null."""
    for batch in reader:
        places = [batch.schema.get_field_index(field.name) for field in target]
        columns: list[Any] = [
            batch.column(place).cast(field.type) if place >= 0 else pa.nulls(batch.num_rows, field.type)
            for place, field in zip(places, target, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=target)


def _parquet_of(table: TableHandle, schema: pa.Schema | None, files: list[str] | None) -> pads.FileSystemDataset | None:
    """Return the table's Parquet files as a dataset; None if pyarrow's reader would be wrong or cannot reach them."""
    if table.store is not None:
        return None
    try:
        return parquet_dataset(table, None, None, schema, False, None, files)
    except DeltaProtocolError:
        return None


def _all_of(trees: list[BoundTree]) -> BoundTree | None:
    """Return the conjunction of bound trees."""
    if len(trees) < 2:  # noqa: PLR2004
        return trees[0] if trees else None
    arguments = [tree["expr"] for tree in trees]
    return {**trees[0], "expr": {"call": {"function": "and", "arguments": arguments, "data_type": "boolean"}}}


# --- plain Parquet files -------------------------------------------------------------------------


def parquet_dataset(
    table: TableHandle,
    filesystem: Any,
    read_options: pads.ParquetReadOptions | None,
    schema: pa.Schema | None,
    as_large_types: bool,
    pruning: Predicate | None,
    files: list[str] | None = None,
) -> pads.FileSystemDataset:
    """Return the table's Parquet files as a pyarrow dataset, each with the guarantees of the log about its rows.

    Raises:
        DeltaProtocolError: pyarrow's reader would return wrong rows for this table.
    """
    columns = ["path", "deletion_vector"]
    if table.metadata().partition_columns:
        columns.append("partition")
    # For columns with given types, the statistics may have other types.
    if schema is None:
        columns += ["num_records", "null_count", "min", "max"]
    actions = RecordBatchReader(
        table.snapshot.files(columns=columns, predicate=table.bind_pruning(None, pruning))
    ).read_all()
    if files is not None:
        actions = actions.filter(pc.is_in(actions.column("path"), pa.array(files, pa.string())))
    _require_plain(table, actions)
    below = _filesystem(table, filesystem)
    fmt = pads.ParquetFileFormat(
        read_options=read_options,
        default_fragment_scan_options=pads.ParquetFragmentScanOptions(pre_buffer=True),
    )
    if schema is None:
        schema = table.schema().to_arrow(as_large_types=as_large_types)
    encoded = cast("Any", fmt.read_options).dictionary_columns or ()
    bounds = _bounds(actions, [field for field in schema if field.name not in encoded])
    places = actions.select([name for name in ("path", "partition") if name in actions.column_names]).to_pylist()
    fragments = [
        fmt.make_fragment(
            _relative_path(place["path"]),
            filesystem=below,
            partition_expression=_guarantee(place, schema, [bound for of in bounds for bound in of(row)]),
        )
        for row, place in enumerate(places)
    ]
    for name in encoded:
        if (index := schema.get_field_index(name)) >= 0:
            field = schema.field(index)
            schema = schema.set(index, field.with_type(pa.dictionary(pa.int32(), field.type)))
    return pads.FileSystemDataset(fragments, schema, fmt, below)


def _require_plain(table: TableHandle, actions: pa.Table) -> None:
    feature = None
    mode = table.metadata().configuration.get(COLUMN_MAPPING_MODE, MappingMode.NONE)
    if mode != MappingMode.NONE and table.protocol().min_reader_version > 1:
        feature = "columnMapping"
    elif actions.column("deletion_vector").null_count < actions.num_rows:
        feature = "deletionVectors"
    elif (
        any(_changed(field.metadata) for field in table.schema().fields)
        or '"delta.typeChanges"' in table.schema().to_json()
    ):
        feature = "typeWidening"
    elif any(leaf == "variant" for _, leaf in leaves(tree_of(table.schema()))):
        feature = "variantType"
    if feature is not None:
        message = (
            f"pyarrow's own Parquet reader would give wrong rows, since the table uses {feature}: leave out filesystem "
            "and parquet_read_options to read it with deltafast"
        )
        raise DeltaProtocolError(message, feature=feature, path=table.table_uri)


def _changed(metadata: dict[str, Any]) -> bool:
    return "delta.typeChanges" in metadata


def _filesystem(table: TableHandle, filesystem: Any) -> pafs.FileSystem:
    if isinstance(filesystem, pafs.FileSystem):
        return filesystem
    if filesystem is None and not table.table_uri.startswith("file://"):
        # It uses the table's storage options, which pyarrow's own file systems do not accept.
        from deltafast.filesystem import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(table.given_uri, table.storage_options))
    if filesystem is None:
        return pafs.SubTreeFileSystem(local_path(table.table_uri), pafs.LocalFileSystem())
    if isinstance(filesystem, str):
        found, path = pafs.FileSystem.from_uri(filesystem)
        return pafs.SubTreeFileSystem(path, found)
    return pafs.PyFileSystem(pafs.FSSpecHandler(filesystem))  # pyright: ignore[reportAbstractUsage]


def _relative_path(path: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|/", path):
        message = "pyarrow's own Parquet reader cannot read files outside the table's folder"
        raise DeltaProtocolError(message, file=path)
    return unquote(path)


def _guarantee(row: dict[str, Any], schema: pa.Schema, terms: list[pc.Expression]) -> pc.Expression | None:
    """Return the guarantees for all rows of a file: its partition values, and further known ones."""
    for name, value in (row.get("partition") or {}).items():
        field = pc.field(name)
        place = schema.get_field_index(name)
        known = pa.scalar(value) if place < 0 else pa.scalar(value, schema.field(place).type)
        terms.append(field.is_null() if value is None else field == known)
    return reduce(and_, terms) if terms else None


def _bounds(actions: pa.Table, fields: Iterable[pa.Field[Any]]) -> list[Callable[[int], Iterator[pc.Expression]]]:
    """Return, for each column with statistics, the guarantees for all rows of each file, in the order of the files."""
    if "min" not in actions.column_names:
        return []
    records, nulls, low, high = (actions.column(of) for of in ("num_records", "null_count", "min", "max"))
    out: list[Callable[[int], Iterator[pc.Expression]]] = []
    for field in fields:
        if _is_ordered(field.type) and all(of.type.get_field_index(field.name) >= 0 for of in (nulls, low, high)):
            counts = pc.struct_field(nulls, field.name)
            ends = [
                _widened(pc.struct_field(of, field.name), field.type, by) for of, by in ((low, -1000), (high, 1000))
            ]
            out.append(partial(_known, field.name, records, counts, *ends))
    return out


def _known(name: str, records: Any, counts: Any, low: Any, high: Any, row: int) -> Iterator[pc.Expression]:
    """Return the guarantees of a file's statistics for a column; missing statistics guarantee nothing."""
    field: Any = pc.field(name)
    count = counts[row].as_py()
    if count and count == records[row].as_py():
        yield field.is_null()
        return
    if count == 0:
        yield field.is_valid()
    for is_low, ends in ((True, low), (False, high)):
        end = ends[row]
        # Bounds of longer strings may be prefixes.
        if end.is_valid and not (_is_text(end.type) and len(end.as_py()) >= _CUT):
            term = field >= end if is_low else field <= end
            yield term if count == 0 else term | field.is_null()


def _is_ordered(kind: Any) -> bool:
    """Return whether pyarrow orders values of a type as the log does; it does not for types with NaN."""
    is_: Any = pa.types
    tests = (is_.is_integer, is_.is_date, is_.is_decimal, is_.is_timestamp, is_.is_string, is_.is_large_string)
    return any(test(kind) for test in tests)


def _is_text(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _widened(ends: Any, kind: Any, micros: int) -> Any:
    """Widen bounds of timestamps, which may be truncated to milliseconds; other bounds stay."""
    if not pa.types.is_timestamp(kind):
        return ends.cast(kind)
    return pc.add(ends.cast(pa.int64()), micros).cast(kind)
