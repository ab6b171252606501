"""`write_deltalake`: writes the rows of any Arrow producer to a table; names are those of `deltalake`.

This module converts the data to one Arrow stream, without collecting it, and binds the table's expressions; the core
casts, checks, splits, encodes and commits.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from deltafast import _core
from deltafast._catalog_tables.table_handle import is_catalog_name, refuse_share
from deltafast._catalog_tables.write_target import catalog_target
from deltafast._credentials.provider import with_provider
from deltafast._handle import CoreStorage, HandleOwner, OpenOptions, core_storage, handle_of
from deltafast._libraries import names_missing
from deltafast._util.arrow import Data, as_stream
from deltafast._util.dialect import Dialect
from deltafast._util.locations import address
from deltafast._util.options import commit_options, names, property_strings, text_options
from deltafast._util.write_modes import AS_SELECT_MODES, OverwriteScope, WriteMode
from deltafast._util.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties, encoding
from deltafast.exceptions import InvalidArgumentError
from deltafast.progress import Progress, counted

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Mapping, Sequence

    from deltafast._core_types import AsSelect, CommitOptions, ReplaceKey, SaveMode, WriteOptions
    from deltafast._util.filters import Predicate
    from deltafast.catalog import Committer, UnityCatalog
    from deltafast.credentials import CredentialProvider
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["BloomFilterProperties", "ColumnProperties", "Data", "WriterProperties", "write_deltalake"]

_T = TypeVar("_T")

#: The dialect of writes to a location, where no handle has one.
_DIALECT: ContextVar[Dialect] = ContextVar("dialect", default=Dialect.DELTAFAST)


@names_missing
def write_deltalake(
    table_or_uri: str | os.PathLike[str] | HandleOwner,
    data: Data,
    *,
    partition_by: Sequence[str] | str | None = None,
    mode: SaveMode = "error",
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
    credential_provider: CredentialProvider | None = None,
    catalog: UnityCatalog | None = None,
) -> None:
    """Write rows to a table, which is created if it does not exist.

    Columns are matched by name, ignoring case. Values are cast to the table's types if the cast is lossless; other
    values are refused. Columns that are missing in the data get their default value, are computed if they are generated
    columns, or are null. NOT NULL, CHECK constraints and generated columns are enforced; if a row violates one, nothing
    is written.

    Args:
        table_or_uri: The table: a path or URL, or a handle, which afterwards points at the new version.
        data: Any Arrow C stream (pyarrow, Polars, DuckDB relations, pandas), a Polars lazy frame, a record
            batch, a list or iterator of record batches, a pyarrow dataset, a dict of columns, or a list of dicts, one
            for each row (missing keys are null).
        partition_by: Partition columns of a new table.
        mode: Handling of an existing table: `error`, `append`, `overwrite` its rows, or `ignore` (nothing is written).
        name: Name of a new table.
        description: Description of a new table.
        configuration: Properties of a new table.
        schema_mode: `merge` adds new columns and nested fields to the table; `overwrite` (with mode overwrite)
            replaces the table's schema with the data's. Otherwise unknown columns are refused.
        storage_options: As for `DeltaTable`.
        predicate: With mode overwrite, replace only the rows for which it is true; the data must match it, too (Spark's
            replaceWhere). A SQL string, tuples, a pyarrow or Polars expression.
        target_file_size: Target size of data files in bytes; `delta.targetFileSize`, else 100 MiB, if None.
        writer_properties: Encoding of Parquet files.
        commit_properties: Options of the commit.
        post_commithook_properties: Maintenance after the commit.
        partition_overwrite_mode: With mode overwrite, `dynamic` replaces only the partitions of which the data has
            rows.
        cluster_by: Clustering columns of a new table (liquid clustering), nested ones with dots.
        committer: The catalog of a catalog-managed table; a new table becomes catalog-managed (see
            `deltafast.catalog`). A handle has its own.
        store: A Python store, see `DeltaTable`.
        time_zone: Time zone of timestamps without one, for columns of type timestamp; UTC if None.
        replace_using: With mode overwrite, replace only the rows that equal a row of the data in these columns; a null
            equals nothing. The distinct keys of the data are buffered in memory.
        replace_on: As `replace_using`, for columns with different names, and with null-safe equality: SQL such as
            `target.id = source.key AND target.day <=> source.day` (or `t` and `s`).
        progress: True for a bar on standard error, a function of (done, total), or a tqdm-like bar; counts rows, of
            which the total is known only if the data has a length.
        credential_provider: As for `DeltaTable`; a handle has its own.
        catalog: As for `DeltaTable`; a new table of Unity Catalog becomes a managed one.

    Raises:
        InvalidArgumentError: The mode forbids the write, or an argument is invalid.
        SchemaMismatchError: The data does not match the table's schema.
        ConstraintViolatedError: A row violates a constraint.
        DeltaProtocolError: The table needs a feature that this release does not support.
        CommitFailedError: A concurrent commit conflicts with this one; the subclasses give the reason.
        CommitUnknownError: The outcome of the commit is unknown.
        StorageError: A request to the store failed.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("sales", {"day": ["mon", "tue"], "sold": [1, 2]}, partition_by="day")
        >>> write_deltalake("sales", {"day": ["wed"], "sold": [3]}, mode="append")
        >>> write_deltalake("sales", {"day": ["mon"], "sold": [9]}, mode="overwrite", predicate="day = 'mon'")
        >>> sorted(DeltaTable("sales").to_pyarrow_table()["sold"].to_pylist())
        [2, 3, 9]
    """
    if partition_overwrite_mode not in tuple(OverwriteScope):
        message = f"partition_overwrite_mode must be 'static' or 'dynamic', not {partition_overwrite_mode!r}"
        raise InvalidArgumentError(message)
    table = handle_of(table_or_uri) if isinstance(table_or_uri, HandleOwner) else None
    zone = time_zone or (table.time_zone if table is not None else "UTC")
    options: WriteOptions = {
        "mode": _checked("mode", mode, tuple(known.value for known in WriteMode)),
        "partition_by": names(partition_by),
        "cluster_by": names(cluster_by) or [],
        "name": name,
        "description": description,
        "configuration": property_strings(configuration),
        "schema_mode": _checked("schema_mode", schema_mode, (None, "merge", "overwrite")),
        "has_predicate": predicate is not None,
        "dynamic_partitions": partition_overwrite_mode == OverwriteScope.DYNAMIC,
        "keys": replace_keys(replace_using, replace_on),
        "encoding": encoding(writer_properties, zone, target_file_size),
        "commit_options": commit_options(commit_properties, post_commithook_properties),
    }
    storage = with_provider(storage_options, credential_provider)
    opening = OpenOptions(storage, committer=committer, store=store, time_zone=zone, catalog=catalog)
    run_write(table_or_uri, data, options, opening, predicate, progress)


@contextmanager
def writing_in(dialect: Dialect) -> Generator[None]:
    """Read the predicates of writes to a location in a dialect."""
    token = _DIALECT.set(dialect)
    try:
        yield
    finally:
        _DIALECT.reset(token)


def append_rows(
    table: HandleOwner,
    data: Data,
    *,
    schema_mode: Literal["merge"] | None,
    target_file_size: int | None,
    writer_properties: WriterProperties | None,
    commit: CommitOptions,
    progress: Progress,
) -> dict[str, int]:
    """See `DeltaTable.append`."""
    zone = handle_of(table).time_zone
    options: WriteOptions = {
        "mode": "append",
        "schema_mode": _checked("schema_mode", schema_mode, (None, "merge")),
        "encoding": encoding(writer_properties, zone, target_file_size),
        "commit_options": commit,
    }
    metrics = run_write(table, data, options, OpenOptions(time_zone=zone), progress=progress)
    names = {"num_added_files": "numFiles", "num_added_rows": "numOutputRows", "num_added_bytes": "numOutputBytes"}
    return {name: int(metrics[key]) for name, key in names.items()}


def _rows_of(data: object) -> int:
    """Return the number of rows if the data has it, else 0."""
    rows = getattr(data, "num_rows", None)
    if isinstance(rows, int):
        return rows
    shape: Any = getattr(data, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else 0


def write_as_select(
    place: str | HandleOwner,
    data: Data,
    statement: AsSelect,
    definition: WriteOptions,
    opening: OpenOptions,
) -> None:
    """Create a table from rows as CREATE TABLE AS SELECT does; an existing table is replaced, metadata included.

    Args:
        place: The location, or the existing table.
        data: The rows.
        statement: The statement.
        definition: The definition of the table, and options of the commit.
        opening: How the table is reached.

    Raises:
        DeltaError: As `write_deltalake`.
    """
    options: WriteOptions = {
        **definition,
        "mode": AS_SELECT_MODES[statement],
        "as_select": statement,
        "encoding": encoding(None, opening.time_zone),
    }
    run_write(place, data, options, opening)


def run_write(
    table_or_uri: str | os.PathLike[str] | HandleOwner,
    data: Data,
    options: WriteOptions,
    opening: OpenOptions,
    predicate: Predicate | None = None,
    progress: Progress = False,
    dialect: Dialect | None = None,
) -> dict[str, str]:
    """Plan the write, bind its expressions and run it; the options are those of the core.

    `dialect` is the meaning of double quotes in the predicate; by default that of the handle, or of the API.

    Returns:
        The metrics, as in the history; empty if there was nothing to write.
    """
    from deltafast._expr.constraints import bind_constraints, bind_rows
    from deltafast._expr.context import ExpressionContext

    data, options = _with_stored_constraints(data, options, opening.time_zone)
    table = target = None
    if isinstance(table_or_uri, HandleOwner):
        table = handle_of(table_or_uri)
        uri = table.given_uri
    elif is_catalog_name(table_or_uri):
        target = catalog_target(table_or_uri, opening)
        uri, table, opening = target.uri, target.handle, target.options
        options = {**options, "configuration": {**target.properties, **options.get("configuration", {})}}
    else:
        refuse_share(table_or_uri)
        uri = address(table_or_uri)
    if dialect is None:
        dialect = _DIALECT.get() if table is None else table.dialect
    encoding = options.get("encoding", {})
    options = {**options, "encoding": {**encoding, "store_assignment": dialect.store_assignment}}
    with counted(progress, "rows") as counter:
        if counter is not None:
            counter.expect(_rows_of(data))
        if table is None or opening.store is not None:
            storage = core_storage(uri, opening.storage_options, opening.store)
        else:
            # The handle has its store; a URL of fsspec needs no second file system.
            storage = CoreStorage(text_options(opening.storage_options, uri), None)
        write = _core.TableWrite.plan(
            uri,
            options,
            data=as_stream(data),
            snapshot=None if table is None else table.snapshot,
            storage_options=storage.options,
            store=storage.store,
            open_options=opening.core_options(),
            committer=opening.committer,
        )
        if write is None:
            return {}
        context = ExpressionContext(dialect, opening.time_zone, ansi=table is None or table.ansi)
        rows = None if predicate is None else bind_rows(predicate, write.schema, context)
        done = write.run(bind_constraints(write.constraints, write.schema, context, rows))
    if target is not None:
        target.finish()
    if table is not None:
        table.move(done.snapshot)
    return done.metrics


def _with_stored_constraints(data: Data, options: WriteOptions, zone: str) -> tuple[Data, WriteOptions]:
    """Return the data, and the options with the constraints of a new table as they are stored."""
    configuration = options.get("configuration")
    if not configuration or not any('"' in (value or "") for value in configuration.values()):
        return data, options
    import pyarrow as pa

    from deltafast._expr.context import ExpressionContext
    from deltafast._expr.stored import table_to_store
    from deltafast.schema import Schema

    reader = pa.RecordBatchReader.from_stream(as_stream(data))
    schema_string = Schema.from_arrow(reader.schema).to_json()
    _, stored = table_to_store(schema_string, configuration, ExpressionContext(Dialect.DELTAFAST, zone))
    return reader, {**options, "configuration": stored}


def replace_keys(
    replace_using: Sequence[str] | str | None, replace_on: str | None, dialect: Dialect = Dialect.DELTAFAST
) -> list[ReplaceKey]:
    """Return the columns by which rows are replaced, for the core."""
    from deltafast._expr.constraints import bind_keys

    if replace_using is not None and replace_on is not None:
        message = "give either `replace_using` or `replace_on`, not both"
        raise InvalidArgumentError(message)
    if replace_on is not None:
        return bind_keys(replace_on, dialect)
    using = names(replace_using)
    if using is None:
        return []
    if not using:
        message = "`replace_using` names no column"
        raise InvalidArgumentError(message)
    return [{"target": name, "source": name} for name in using]


def _checked(what: str, value: _T, known: Sequence[_T]) -> _T:
    if value not in known:
        message = f"{what} must be one of {', '.join(map(repr, known))}, not {value!r}"
        raise InvalidArgumentError(message)
    return value
