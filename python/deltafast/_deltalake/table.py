"""Subclasses of the classes of deltafast whose behaviour differs from `deltalake`, served under the name `deltalake`.

For `isinstance`, a handle of either class is an instance of the other, and both point at the same tables; only the
methods below return results as `deltalake` does. deltafast itself calls the methods through `deltafast.DeltaTable`,
where it depends on their own results.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABCMeta
from dataclasses import replace
from decimal import Decimal
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast
from urllib.parse import quote

from deltafast import _core
from deltafast._deltalake.errors import in_their_words, raises_their_errors
from deltafast._deltalake.fields import described_table
from deltafast._deltalake.install import (
    nanosecond_timestamps_enabled,
    served_attribute,
    without_lock_table,
)
from deltafast._interop.record_batch_reader import RecordBatchReader, stream_of
from deltafast._ops.add_actions import create_table_with_add_actions as plain_create
from deltafast._ops.alter import TableAlterer as PlainAlterer
from deltafast._ops.convert_parquet import convert_to_deltalake as plain_convert
from deltafast._types import fields_within, is_struct
from deltafast._util.arguments import COMMIT_ARGUMENTS, HOOKS_FIRST, also_by_position
from deltafast._util.arrow import as_stream
from deltafast._util.arrow_types import with_leaves
from deltafast._util.dialect import Dialect
from deltafast._util.locations import address, local_path, location
from deltafast._util.options import names
from deltafast.exceptions import (
    ConstraintViolatedError,
    InvalidArgumentError,
    VersionNotFoundError,
    warn,
)
from deltafast.schema import PrimitiveType
from deltafast.table import DeltaTable as PlainTable
from deltafast.table import DeltaTableConfig, pinned
from deltafast.writer import write_deltalake as plain_write
from deltafast.writer import writing_in

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Container, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.dataset as pads

    from deltafast._interop.raw_table import RawDeltaTable
    from deltafast._ops.merge import TableMerger
    from deltafast._util.arrow import Data
    from deltafast._util.filters import FilterType, Predicate
    from deltafast.progress import Progress
    from deltafast.transaction import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction

__all__ = [
    "DeltaTable",
    "TableAlterer",
    "convert_to_deltalake",
    "create_deltalake",
    "create_table_with_add_actions",
    "write_deltalake",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LONGEST_NAME = 255
_LONGEST_DESCRIPTION = 4000
#: Number of columns with statistics unless a property sets it.
_INDEXED = 32
#: Position of an argument after the first one.
_PRUNING_PLACE = 4
#: The release of DataFusion whose interface `deltalake` has.
_DATAFUSION = "55"
#: Columns of a change feed.
_VERSION, _TIMESTAMP = "_commit_version", "_commit_timestamp"
#: The property that names the columns with statistics.
_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_OPERATORS = {"=", "==", "!=", "<>", "<", "<=", ">", ">=", "in", "not in"}
#: A column in the list of columns with statistics.
_LISTED = re.compile(r"(?:`(?:[^`]|``)*`|[^`,])+")
#: A character that a URL encodes.
_ENCODED = re.compile(r"[^!-~]|[\"#%<>?\[\\\]^`{|}]")
#: Delta's types of numbers whose columns take strings, and Arrow's types of strings.
#: A timestamp of RFC 3339, with its zone.
_ZONED_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _called_as(plain: Callable[_P, _R]) -> Callable[[Callable[..., _R]], Callable[_P, _R]]:
    """Give a method the signature of the deltafast method that it replaces."""
    return lambda method: cast("Callable[_P, _R]", wraps(plain, assigned=())(method))


class _Both(ABCMeta):
    """Makes handles of `deltafast.DeltaTable` instances of the class below, so that either is accepted.

    It is an `ABCMeta`, so that the class can be combined with abstract base classes.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, PlainTable) if cls is DeltaTable else super().__instancecheck__(instance)


@raises_their_errors
class DeltaTable(PlainTable, metaclass=_Both):
    """`deltafast.DeltaTable` with results as in `deltalake`."""

    @_called_as(PlainTable.__init__)
    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        without_files: bool = False,
        log_buffer_size: int | None = None,
        skip_stats: bool = False,
        **options: Any,
    ) -> None:
        """See `DeltaTable`; loading options and DynamoDB locks are ignored with a warning."""
        usual = DeltaTableConfig(without_files=False, log_buffer_size=8, skip_stats=False)
        given = DeltaTableConfig(without_files, log_buffer_size or usual.log_buffer_size, skip_stats)
        for name, value in given._asdict().items():
            if value != getattr(usual, name):
                warn(
                    f"The '{name}' parameter is deprecated and ignored: files are read when needed", DeprecationWarning
                )
        super().__init__(table_uri, version, without_lock_table(table_uri, storage_options), **options)
        self._handle.dialect = Dialect.DELTALAKE

    if not TYPE_CHECKING:

        @classmethod
        @also_by_position(*COMMIT_ARGUMENTS, "raise_if_key_not_exists")
        def create(
            cls,
            table_uri: str | os.PathLike[str],
            schema: Any,
            mode: str = "error",
            partition_by: Sequence[str] | str | None = None,
            name: str | None = None,
            description: str | None = None,
            configuration: Mapping[str, Any] | None = None,
            storage_options: Mapping[str, str] | None = None,
            *,
            commit_properties: CommitProperties | None = None,
            post_commithook_properties: PostCommitHookProperties | None = None,
            raise_if_key_not_exists: bool = True,
            **options: Any,
        ) -> DeltaTable:
            """See `DeltaTable.create`; a locking provider is ignored.

            The table is created by `deltalake.table._create_deltalake`, which programs replace in their tests.
            """
            storage_options = without_lock_table(table_uri, storage_options)
            created = served_attribute("deltalake.table", "_create_deltalake", create_deltalake)(
                table_uri,
                schema,
                names(partition_by) or [],
                mode,
                raise_if_key_not_exists,
                name,
                description,
                configuration,
                storage_options,
                commit_properties,
                post_commithook_properties,
                **options,
            )
            if type(created) is cls:
                return created
            opening = {key: options[key] for key in ("committer", "store", "time_zone") if key in options}
            return cls(table_uri, storage_options=storage_options, **opening)

    @property
    def table_config(self) -> DeltaTableConfig:
        """The loading options, which are deprecated."""
        warn("The 'table_config' property is deprecated: its options are ignored", DeprecationWarning)
        return super().table_config

    def __datafusion_table_provider__(self, session: Any = None) -> Any:
        """Raise an error: DataFusion's `register_table` takes the dataset instead.

        Raises:
            RuntimeError: Always; the message has the line that registers the table.
            ValueError: The session's context is not a DataFusion context.
        """
        from importlib import metadata

        try:
            version = metadata.version("datafusion")
        except metadata.PackageNotFoundError:
            message = "datafusion is not installed: pip install datafusion, or use QueryBuilder"
            raise RuntimeError(message) from None
        context = getattr(session, "__datafusion_task_context_provider__", None)
        if context is not None and version.partition(".")[0] == _DATAFUSION:
            _check_capsule(context(), b"datafusion_task_context_provider")
        message = (
            "deltafast has no provider of tables for DataFusion (deltalake's is for datafusion==55 alone; installed is "
            f"{version}): use session.register_table(name, table.to_pyarrow_dataset()), or QueryBuilder"
        )
        raise RuntimeError(message)

    @property
    def _table(self) -> RawDeltaTable:
        """The object behind the handle; methods set on it are called for the history and for a vacuum."""
        return vars(self).get("_inner") or super()._table

    @_table.setter
    def _table(self, inner: RawDeltaTable) -> None:
        self._inner = inner

    @property
    def alter(self) -> TableAlterer:
        """Changes of columns, constraints, properties and features."""
        return TableAlterer(self._handle)

    # --- time travel -----------------------------------------------------------------------------

    def load_as_version(self, version: int | str | datetime) -> None:
        """Point this handle at another version; at the first one for an earlier timestamp.

        Args:
            version: A number, a datetime (UTC where it has no zone), or a timestamp in RFC 3339 format.

        Raises:
            VersionNotFoundError: The version does not exist.
            InvalidArgumentError: The string is not a timestamp.
        """
        _check_timestamp(version)
        try:
            super().load_as_version(version)
        except VersionNotFoundError:
            if isinstance(version, int):
                raise
            try:
                first = int(self.history()[-1]["version"])
                super().load_as_version(first)
            except (IndexError, VersionNotFoundError):
                pass
            else:
                return
            raise

    def restore(
        self,
        target: int | datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """See `DeltaTable.restore`; a timestamp before the first version stands for that version."""
        _check_timestamp(target)
        options: dict[str, Any] = {
            "ignore_missing_files": ignore_missing_files,
            "protocol_downgrade_allowed": protocol_downgrade_allowed,
            "commit_properties": commit_properties,
            "post_commithook_properties": post_commithook_properties,
            "progress": progress,
        }
        try:
            return super().restore(target, **options)
        except VersionNotFoundError:
            if isinstance(target, int):
                raise
            there = pinned(self)
            there.update_incremental()
            there.load_as_version(target)
            return super().restore(there.version(), **options)

    # --- history and files -----------------------------------------------------------------------

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """See `DeltaTable.history`; the timestamps are those of the writers.

        The metrics of commits by deltafast are numbers, as in commits of `deltalake`.
        """
        entries = super().history(limit)
        for entry in entries:
            parameters: dict[str, Any] = entry.get("operationParameters") or {}
            if entry.get("operation") == "MERGE" and "predicate" in parameters:
                parameters.setdefault("mergePredicate", _conjunction(parameters["predicate"]))
            metrics = entry.get("operationMetrics")
            if isinstance(metrics, dict) and str(entry.get("engineInfo")).startswith("deltafast"):
                given = cast("dict[str, Any]", metrics).items()
                entry["operationMetrics"] = {name: _number(value) for name, value in given}
        return entries

    def file_uris(
        self,
        partition_filters: FilterType | None = None,
        *,
        file_pruning_predicate: Predicate | None = None,
    ) -> list[str]:
        """See `DeltaTable.file_uris`; invalid tuples are refused with the messages of `deltalake`."""
        _check_old(partition_filters, file_pruning_predicate, "partition_filters")
        self._check_pruning(file_pruning_predicate)
        try:
            return super().file_uris(partition_filters, file_pruning_predicate=file_pruning_predicate)
        except InvalidArgumentError as error:
            message = _wrong_filter(partition_filters, {field.name for field in self.schema().fields})
            if message is None:
                raise
            raise InvalidArgumentError(message) from error

    def partitions(
        self,
        partition_filters: FilterType | None = None,
        *,
        file_pruning_predicate: Predicate | None = None,
    ) -> list[dict[str, str | None]]:
        """See `DeltaTable.partitions`; floating-point numbers have the text of Rust."""
        _check_old(partition_filters, file_pruning_predicate, "partition_filters")
        self._check_pruning(file_pruning_predicate)
        found = super().partitions(partition_filters, file_pruning_predicate=file_pruning_predicate)
        real = {
            field.name
            for field in self.schema().fields
            if isinstance(field.type, PrimitiveType) and field.type.type in ("float", "double")
        }
        return [
            {name: _float_text(value) if name in real else value for name, value in values.items()} for values in found
        ]

    def _check_pruning(self, predicate: Predicate | None) -> None:
        """Refuse a predicate that `deltalake` does not evaluate on files.

        Raises:
            InvalidArgumentError: The predicate has such an operator or function.
        """
        if not isinstance(predicate, str):
            return
        from deltafast._deltalake.pruning import unsupported_in_pruning

        reason = unsupported_in_pruning(predicate)
        if reason is not None:
            message = f'Generic DeltaTable error: Cannot use predicate "{predicate}" for file skipping: {reason}'
            raise InvalidArgumentError(message)

    def deletion_vectors(self) -> RecordBatchReader:
        """See `DeltaTable.deletion_vectors`; local files are given as URLs.

        A path with characters that a URL would encode stays a path, so that it still equals the file's entry in
        `file_uris()` without `file://`: Polars finds the deletion vector of a file by that.
        """
        vectors = super().deletion_vectors()
        place = cast("Any", vectors.schema).get_field_index("filepath")

        def with_urls(batch: Any) -> Any:
            import pyarrow as pa

            urls = cast("Any", pa).array(
                [_plain_url(path) for path in batch.column(place).to_pylist()], batch.column(place).type
            )
            return batch.set_column(place, batch.schema.field(place), urls)

        return _changed(vectors, vectors.schema, with_urls)

    @_called_as(PlainTable.to_pyarrow_dataset)
    def to_pyarrow_dataset(self, partitions: FilterType | None = None, *arguments: Any, **options: Any) -> pads.Dataset:
        """See `DeltaTable.to_pyarrow_dataset`; it has Parquet files for Arrow's C++ if pyarrow's reader is correct."""
        from deltafast._interop.pyarrow_dataset import ScanDataset

        pruning = options.get(
            "file_pruning_predicate", arguments[_PRUNING_PLACE] if len(arguments) > _PRUNING_PLACE else None
        )
        _check_old(partitions, pruning, "partitions")
        found = super().to_pyarrow_dataset(partitions, *arguments, **options)
        return found.with_parquet() if isinstance(found, ScanDataset) else found

    @_called_as(PlainTable.to_pyarrow_table)
    def to_pyarrow_table(self, partitions: FilterType | None = None, *arguments: Any, **options: Any) -> pa.Table:
        """See `DeltaTable.to_pyarrow_table`; the schema has NOT NULL and the metadata of the table's fields."""
        if partitions is not None:
            warn("`partitions` is deprecated; use `filters` instead", DeprecationWarning)
        rows = super().to_pyarrow_table(partitions, *arguments, **options)
        fields: Any = self.schema().to_arrow()
        return described_table(rows, {field.name: field for field in fields})

    def get_add_actions(
        self,
        flatten: bool = False,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
    ) -> pa.Table:
        """See `DeltaTable.get_add_actions`; columns that have no statistics by the table's properties are left out.

        So are deletion vectors, and the partition of tables that have none. Infinite bounds are null.
        """
        files = super().get_add_actions(flatten, columns=columns, predicate=predicate)
        if columns is not None:
            return files
        lacks_partition = not self.metadata().partition_columns
        left_out = {"deletion_vector", "partition"} if lacks_partition else {"deletion_vector"}
        kept = [name for name in files.column_names if name.partition(".")[0] not in left_out]
        return _with_statistics_only(files.select(kept), self._with_statistics())

    def _with_statistics(self) -> set[str]:
        """Return the leaf columns of which files have statistics, with flattened names."""
        metadata = self.metadata()
        leaves = [
            ".".join(path)
            for path, field in fields_within(self.schema().json(), in_parts=False)
            if path[0] not in metadata.partition_columns and not is_struct(field["type"])
        ]
        named = metadata.configuration.get(_STATS_COLUMNS)
        if named is not None:
            chosen = _columns(named)
            return {leaf for leaf in leaves if any(f"{leaf.lower()}.".startswith(f"{name}.") for name in chosen)}
        count = int(metadata.configuration.get("delta.dataSkippingNumIndexedCols", _INDEXED))
        return set(leaves if count < 0 else leaves[:count])

    @_called_as(PlainTable.load_cdf)
    def load_cdf(self, *arguments: Any, **options: Any) -> RecordBatchReader:
        """See `DeltaTable.load_cdf`; versions are unsigned, times milliseconds (UTC) without a zone, strings views.

        `_commit_timestamp` is the commit's timestamp in `history()`, unless the predicate uses that column: predicates
        use the timestamp of time travel.
        """
        import pyarrow as pa

        given = signature(super().load_cdf).bind(*arguments, **options).arguments
        columns: list[str] | None = names(given.get("columns"))
        is_timed = (columns is None or _TIMESTAMP in columns) and _TIMESTAMP not in str(given.get("predicate"))
        is_hidden = is_timed and columns is not None and _VERSION not in columns
        if is_hidden:
            given["columns"] = [*cast("list[str]", columns), _VERSION]
        changes = super().load_cdf(**given)
        times = self._writers_times(given.get("starting_version", 0)) if is_timed else {}
        views = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}
        fields: list[Any] = list(cast("Any", changes.schema))
        kinds: dict[str, Any] = {field.name: views[field.type] for field in fields if field.type in views}
        kinds |= {_VERSION: pa.uint64(), _TIMESTAMP: pa.timestamp("ms")}
        whole = pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in fields])

        def timed_batch(batch: Any) -> Any:
            if is_timed:
                place = batch.schema.get_field_index(_TIMESTAMP)
                versions = batch.column(batch.schema.get_field_index(_VERSION)).to_pylist()
                shown = batch.column(place).cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()).to_pylist()
                found = [times.get(version, time) for version, time in zip(versions, shown, strict=True)]
                batch = batch.set_column(place, _TIMESTAMP, pa.array(found, pa.timestamp("ms")))
            return batch.select(cast("Any", whole).names) if is_hidden else batch

        if is_hidden:
            whole = pa.schema([field for field in cast("Any", whole) if field.name != _VERSION])
        return _changed(changes, whole, timed_batch)

    def _writers_times(self, first: int) -> dict[int, int]:
        """Return the timestamps in `history()` of this version and later ones, by version."""
        entries = self.history(max(self.version() - first + 1, 1))
        return {entry["version"]: entry["timestamp"] for entry in entries if entry.get("timestamp") is not None}

    # --- changes ---------------------------------------------------------------------------------

    @_called_as(PlainTable.update)
    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        *arguments: Any,
        **options: Any,
    ) -> dict[str, Any]:
        """See `DeltaTable.update`; a value that is a mapping is refused with the message of `deltalake`.

        Unknown columns are ignored with a warning, unless all are unknown.
        """
        if updates is None and any(isinstance(value, dict) for value in (new_values or {}).values()):
            message = (
                "Invalid datatype provided in new_values, only int, float, bool, list, str or datetime or accepted."
            )
            raise InvalidArgumentError(message)
        known = {field.name.lower() for field in self.schema().fields}
        return super().update(
            _of_known_columns(updates, known), _of_known_columns(new_values, known), *arguments, **options
        )

    @_called_as(PlainTable.merge)
    def merge(self, source: Data, *arguments: Any, **options: Any) -> TableMerger:
        """See `DeltaTable.merge`; timestamps of the source are truncated to microseconds."""
        return super().merge(_in_microseconds(source), *arguments, **options)

    @property
    def _merger(self) -> type[TableMerger]:
        from deltafast._deltalake.merge import TableMerger

        return TableMerger

    @_called_as(PlainTable.create_write_transaction)
    def create_write_transaction(
        self, actions: Sequence[AddAction | RemoveAction], *arguments: Any, **options: Any
    ) -> None:
        """See `DeltaTable.create_write_transaction`; paths are plain, and relative to the table if they begin with `/`.

        Plain means: not URI-encoded. They are encoded for the log.
        """
        super().create_write_transaction(_as_in_log(actions, self.table_uri), *arguments, **options)

    @also_by_position(*HOOKS_FIRST, "full", "keep_versions")
    @_called_as(PlainTable.vacuum)
    def vacuum(
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        **options: Any,
    ) -> list[str]:
        """See `DeltaTable.vacuum`."""
        commit, hooks = (options.pop(name, None) for name in COMMIT_ARGUMENTS)
        order = (dry_run, retention_hours, enforce_retention_duration, commit, hooks, options.pop("full", False))
        return self._table.vacuum(*order, options.pop("keep_versions", None), **options)

    def _commit_infos(self, limit: int | None) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._table.history(limit)]


@raises_their_errors
class TableAlterer(PlainAlterer):
    """`deltafast.TableAlterer` with the limits of `deltalake`."""

    @_called_as(PlainAlterer.set_table_name)
    def set_table_name(self, name: str, *arguments: Any, **options: Any) -> None:
        """Set the name of the table, with 1 to 255 characters."""
        if not name or len(name) > _LONGEST_NAME:
            message = (
                "Table metadata is invalid: name: Table name cannot be empty and cannot exceed "
                f"{_LONGEST_NAME} characters"
            )
            raise InvalidArgumentError(message)
        super().set_table_name(name, *arguments, **options)

    @_called_as(PlainAlterer.set_table_description)
    def set_table_description(self, description: str, *arguments: Any, **options: Any) -> None:
        """Set the description of the table, with at most 4,000 characters."""
        if len(description) > _LONGEST_DESCRIPTION:
            message = (
                "Table metadata is invalid: description: Table description cannot exceed "
                f"{_LONGEST_DESCRIPTION} characters"
            )
            raise InvalidArgumentError(message)
        super().set_table_description(description, *arguments, **options)

    @_called_as(PlainAlterer.drop_column_not_null)
    def drop_column_not_null(self, column_name: str, *arguments: Any, **options: Any) -> None:
        """See `TableAlterer.drop_column_not_null`; refused for a column that is already nullable."""
        known = {field.name.lower(): field for field in self.table.schema().fields}
        field = known.get(column_name.lower())
        if field is not None and field.nullable:
            message = f"Generic DeltaTable error: column `{field.name}` is nullable already"
            raise InvalidArgumentError(message, column=field.name)
        super().drop_column_not_null(column_name, *arguments, **options)

    @_called_as(PlainAlterer.set_table_properties)
    def set_table_properties(self, properties: Mapping[str, Any], *arguments: Any, **options: Any) -> None:
        """See `TableAlterer.set_table_properties`; the list of columns with statistics loses partition columns."""
        partition_by = self.table.metadata().partition_columns
        given = cast("Any", _without_partition_columns(properties, partition_by))
        super().set_table_properties(given, *arguments, **options)


@wraps(plain_write, assigned=("__doc__",))
def write_deltalake(table_or_uri: Any, data: Data, **options: Any) -> None:
    """See `deltafast.write_deltalake`; values are cast to the columns' types, timestamps truncated to microseconds."""
    if not isinstance(table_or_uri, PlainTable):
        options["storage_options"] = without_lock_table(table_or_uri, options.get("storage_options"))
    if options.get("configuration") is not None:
        partition_by = names(options.get("partition_by")) or []
        options["configuration"] = _without_partition_columns(options["configuration"], partition_by)
    with in_their_words(), writing_in(Dialect.DELTALAKE):
        try:
            plain_write(table_or_uri, _in_microseconds(data), **options)
        except ConstraintViolatedError as error:
            # Other data may be readable only once.
            if not (hasattr(data, "num_rows") or hasattr(data, "shape")):
                raise
            from deltafast._deltalake.preview import with_preview

            raise with_preview(error, lambda: _handle_of(table_or_uri, options), data) from error


def _conjunction(predicate: Any) -> Any:
    """Return the condition that the history has as a list of its parts, in JSON."""
    try:
        parts = json.loads(predicate)
    except (TypeError, ValueError):
        return predicate
    return " AND ".join(map(str, cast("list[object]", parts))) if isinstance(parts, list) else predicate


def _float_text(value: str | None) -> str | None:
    """Return the text of a floating-point number as Rust writes it, without an exponent: `1`, `1.5`, `NaN`, `inf`."""
    if value is None:
        return None
    number = float(value)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else str(number)
    return f"{Decimal(repr(number)):f}".removesuffix(".0")


def _handle_of(table_or_uri: Any, options: Mapping[str, Any]) -> PlainTable:
    """Return the table of a write."""
    if isinstance(table_or_uri, PlainTable):
        return table_or_uri
    opening = {key: options[key] for key in ("storage_options", "store", "committer") if key in options}
    return PlainTable(table_or_uri, **opening)


def create_deltalake(
    table_uri: str | os.PathLike[str],
    schema: Any,
    partition_by: Sequence[str],
    mode: Any,
    raise_if_key_not_exists: bool,
    name: str | None,
    description: str | None,
    configuration: Mapping[str, str | bool | int | None] | None,
    storage_options: Mapping[str, str] | None,
    commit_properties: CommitProperties | None,
    post_commithook_properties: PostCommitHookProperties | None,
    **options: Any,
) -> DeltaTable:
    """Create a table; the arguments are those of the private function of this name in `deltalake.table`."""
    return cast(
        "DeltaTable",
        _plain_method(PlainTable.create)(
            DeltaTable,
            table_uri,
            schema,
            mode,
            partition_by,
            name,
            description,
            _without_partition_columns(configuration, partition_by),
            storage_options,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
            raise_if_key_not_exists=raise_if_key_not_exists,
            **options,
        ),
    )


def _plain_method(bound: Any) -> Callable[..., Any]:
    """Return the function of a class method, to be called with another class."""
    return bound.__func__


@wraps(plain_convert, assigned=("__doc__",))
def convert_to_deltalake(uri: Any, *arguments: Any, **options: Any) -> None:
    """See `deltafast.convert_to_deltalake`."""
    given = signature(plain_convert).bind(uri, *arguments, **options).arguments
    if given.get("partition_by") is not None and given.get("partition_strategy") is None:
        message = "Partition strategy has to be provided with partition_by"
        raise InvalidArgumentError(message)
    with in_their_words():
        plain_convert(uri, *arguments, **_unlocked(plain_convert, uri, arguments, options))


@wraps(plain_create, assigned=("__doc__",))
def create_table_with_add_actions(table_uri: Any, *arguments: Any, **options: Any) -> None:
    """See `deltafast.create_table_with_add_actions`; paths are plain, and are encoded for the log."""
    given = signature(plain_create).bind(table_uri, *arguments, **options).arguments
    given["add_actions"] = _as_in_log(given["add_actions"], location(address(table_uri)))
    given["storage_options"] = without_lock_table(table_uri, given.get("storage_options"))
    with in_their_words():
        plain_create(**given)


def _unlocked(
    called: Callable[..., Any], uri: object, arguments: Sequence[Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of a call without a locking provider, unless storage options are given by position."""
    if "storage_options" in list(signature(called).parameters)[: 1 + len(arguments)]:
        return options
    return options | {"storage_options": without_lock_table(uri, options.get("storage_options"))}


# --- messages ------------------------------------------------------------------------------------


# --- arguments -----------------------------------------------------------------------------------


def _check_capsule(capsule: Any, name: bytes) -> None:
    """Refuse a capsule with another name.

    Raises:
        ValueError: The object has another name, or is not a capsule.
    """
    import ctypes

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer(capsule, name)


def _check_timestamp(when: object) -> None:
    if isinstance(when, str) and not _ZONED_TIMESTAMP.fullmatch(when):
        example = "2026-01-31T12:00:00Z"
        message = f"Failed to parse datetime string: {when!r:.60} is not an RFC 3339 timestamp, such as {example}"
        raise InvalidArgumentError(message)


def _check_old(filters: FilterType | None, predicate: Predicate | None, name: str) -> None:
    """Warn about filters under their old name.

    Raises:
        InvalidArgumentError: Filters are given under both names.
    """
    if filters is None:
        return
    if predicate is not None:
        message = f"`{name}` is deprecated; pass only `file_pruning_predicate`"
        raise InvalidArgumentError(message)
    warn(f"`{name}` is deprecated; pass the filters to `file_pruning_predicate` instead", DeprecationWarning)
    groups: list[Any] = [group for group in cast("list[Any]", filters) if isinstance(group, list)]
    if groups and len(groups) < len(filters):
        message = f"`{name}` must be a list of tuples, or a list of lists of tuples, not a mix of both"
        raise InvalidArgumentError(message)
    if [] in groups:
        message = f"`{name}` has an empty conjunction, which is true of all files; leave out the filters for all files"
        raise InvalidArgumentError(message)


def _wrong_filter(filters: FilterType | None, columns: set[str]) -> str | None:
    """Return `deltalake`'s message for the first tuple with an unknown column or an unsuitable operator, else None."""
    groups = cast("list[Any]", filters if filters and isinstance(filters[0], list) else [filters or []])
    for clause in (clause for group in groups for clause in group):
        column, op, value = clause
        several = isinstance(value, (list, tuple, set, frozenset))
        operator = str(op).strip().lower()
        if operator not in _OPERATORS or (several and operator not in {"in", "not in"}):
            shown = cast("list[Any]", sorted(cast("Any", value)) if isinstance(value, (set, frozenset)) else value)
            parts = (json.dumps(part, default=str) for part in (column, op, shown))
            return f"Invalid partition filter found: ({', '.join(parts)})."
        if column not in columns:
            return (
                "Data does not match the schema or partitions of the table: "
                f"Field '{column}' is not a root table field."
            )
    return None


_A = TypeVar("_A", bound="AddAction | RemoveAction")


#: Characters of a path that `deltalake` does not encode in the log, besides letters, digits and `_.-~`.
_UNENCODED = "!$&'()+,/:;=@~"


def _as_in_log(actions: Sequence[_A], table_uri: str) -> list[_A]:
    """Return the actions with paths as in the log: URI-encoded, and relative to the table if they begin with `/`."""
    root = local_path(table_uri).rstrip("/") + "/"

    def encoded(action: _A) -> _A:
        path = getattr(action, "path", None)
        if not isinstance(path, str):
            return action
        return replace(action, path=quote(path.removeprefix(root).lstrip("/"), safe=_UNENCODED))

    return [encoded(action) for action in actions]


def _of_known_columns(values: Mapping[str, Any] | None, known: Container[str]) -> Mapping[str, Any] | None:
    """Return the values of an update without those of unknown columns, unless none would remain."""
    # Other names may be quoted, or name a field.
    unknown = [name for name in values or () if name.isidentifier() and name.lower() not in known]
    if values is None or len(unknown) in {0, len(values)}:
        return values
    warn(f"the update ignores {', '.join(f'`{name}`' for name in unknown)}: the table has no such column")
    return {name: value for name, value in values.items() if name not in unknown}


def _without_partition_columns(
    configuration: Mapping[str, Any] | None, partition_by: Sequence[str]
) -> Mapping[str, Any] | None:
    """Return the properties without partition columns in the list of columns with statistics, unless none would remain.

    Partition columns have no statistics, and Spark refuses them in the list.
    """
    listed = (configuration or {}).get(_STATS_COLUMNS)
    if configuration is None or not isinstance(listed, str):
        return configuration
    given = _LISTED.findall(listed)
    partition = {name.lower() for name in partition_by}
    kept = [text for text in given if _columns(text) and _columns(text)[0] not in partition]
    if not kept or len(kept) == len(given):
        return configuration
    warn(f"`{_STATS_COLUMNS}` is set without the partition columns, which have no statistics: {','.join(kept)}")
    return {**configuration, _STATS_COLUMNS: ",".join(kept)}


def _plain_url(path: str) -> str:
    """Return the URL of a local file, or the path itself if the URL would encode characters of it."""
    return f"file://{path}" if path.startswith("/") and _ENCODED.search(path) is None else path


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value) else value


def _in_microseconds(data: Data) -> Data:
    """Return the data with timestamps truncated from nanoseconds to microseconds, unless they are to be refused."""
    if isinstance(data, PlainTable) or nanosecond_timestamps_enabled():
        return data
    import pyarrow as pa

    known = getattr(data, "schema", None)
    if isinstance(known, pa.Schema) and _coarse(known) is known:
        return data
    rows = pa.RecordBatchReader.from_stream(cast("Any", as_stream(data)))
    target = _coarse(rows.schema)
    if target is rows.schema:
        return rows
    # Nothing else is cast, so that nothing else is lost.
    batches = (cast("Any", batch).cast(target, safe=False) for batch in rows)
    return pa.RecordBatchReader.from_batches(target, batches)


def _coarse(schema: pa.Schema) -> pa.Schema:
    """Return the schema with microseconds instead of nanoseconds; the same object if it has none."""
    import pyarrow as pa

    def leaf(kind: Any) -> Any:
        is_nanos = pa.types.is_timestamp(kind) and kind.unit == "ns"
        return cast("Any", pa).timestamp("us", kind.tz) if is_nanos else kind

    fields: list[Any] = list(cast("Any", schema))
    found = pa.schema(
        [field.with_type(with_leaves(field.type, leaf)) for field in fields], cast("Any", schema.metadata)
    )
    return schema if found == schema else found


# --- statistics ----------------------------------------------------------------------------------


def _columns(text: str) -> list[str]:
    """Return the columns of a list in a property, in lower case."""
    out = [""]
    for quoted, plain, mark in re.findall(r"`((?:[^`]|``)*)`|([\w-]+)|([.,])", text):
        if mark == ",":
            out.append("")
        else:
            out[-1] += mark or plain or quoted.replace("``", "`")
    return [name.lower() for name in out if name]


def _with_statistics_only(files: pa.Table, leaves: set[str]) -> pa.Table:
    """Return the files without statistics of other columns, and without infinite bounds."""
    for index in reversed(range(files.num_columns)):
        field: Any = cast("Any", files.schema).field(index)
        statistic, _, leaf = field.name.partition(".")
        if statistic not in {"null_count", "min", "max"}:
            continue
        column: Any = cast("Any", files.column(index)).combine_chunks()
        kept = _kept(column, leaves, "") if not leaf else _finite(column) if leaf in leaves else None
        if kept is None:
            files = files.remove_column(index)
        elif kept is not column:
            files = files.set_column(index, field.with_type(kept.type), kept)
    return files


def _kept(array: Any, leaves: set[str], above: str) -> Any:
    """Return a struct with these leaves only; None if none remains."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fields: list[Any] = []
    arrays: list[Any] = []
    for place, field in enumerate(array.type):
        child: Any = cast("Any", pc).struct_field(array, [place])
        path = above + field.name
        if pa.types.is_struct(field.type):
            child = _kept(child, leaves, f"{path}.")
        else:
            child = _finite(child) if path in leaves else None
        if child is not None:
            fields.append(field.with_type(child.type))
            arrays.append(child)
    return cast("Any", pa.StructArray).from_arrays(arrays, fields=fields, mask=array.is_null()) if arrays else None


def _finite(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    return compute.if_else(compute.is_inf(array), None, array) if pa.types.is_floating(array.type) else array


# --- streams -------------------------------------------------------------------------------------


def _changed(reader: RecordBatchReader, schema: pa.Schema, change: Callable[[Any], Any]) -> RecordBatchReader:
    """Return the rows changed batch by batch, and cast to the types of a schema by the core.

    pyarrow before 25 makes views that it cannot export, and ends the process if the interpreter ends while its reader
    calls a generator.
    """
    batches = (change(batch) for batch in reader)
    return RecordBatchReader(_core.python_batches(batches, schema, stream_of(reader)))
