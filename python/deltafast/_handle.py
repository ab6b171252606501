"""`TableHandle`: the snapshot pointer of a table, with everything that operations need.

A `DeltaTable` owns one. Operations and conversions take the handle, so that they do not depend on `DeltaTable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from deltafast import _core
from deltafast._delta_keys import GENERATION_EXPRESSION
from deltafast._logging import log_open, log_scan
from deltafast._util.dialect import Dialect
from deltafast._util.filters import either, spell_nulls, with_change_columns
from deltafast._util.fork_lock import ForkLock
from deltafast._util.locations import address, location
from deltafast._util.options import names, text_options
from deltafast._util.url_file_systems import file_system_of
from deltafast.exceptions import DeltaError, warn_of_commit
from deltafast.schema import Schema

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from deltafast import _core_types
    from deltafast._catalog.committer import Committer
    from deltafast._catalog.unity.client import UnityCatalog
    from deltafast._core_types import BoundTree
    from deltafast._expr.context import ExpressionContext
    from deltafast._util.filters import FilterType, Predicate

__all__ = [
    "CoreStorage",
    "DeltaTableConfig",
    "HandleOwner",
    "Metadata",
    "OpenOptions",
    "ProtocolVersions",
    "TableHandle",
    "core_storage",
    "handle_of",
]

_T = TypeVar("_T")


class OpenOptions(NamedTuple):
    """How a table is reached, read and committed to; the names are those of `DeltaTable`."""

    storage_options: Mapping[str, Any] | None = None
    log_tail: list[tuple[str, int, int]] | None = None
    max_table_version: int | None = None
    committer: Committer | None = None
    store: object | None = None
    time_zone: str = "UTC"
    allow_external_paths: bool | Sequence[str] = False
    catalog: UnityCatalog | None = None

    def core_options(self) -> _core_types.OpenOptions:
        """Return the options of opening a table for the core."""
        paths = self.allow_external_paths
        if isinstance(paths, str):
            paths = [paths]
        return {
            "time_zone": self.time_zone,
            "max_table_version": self.max_table_version,
            "allow_external_paths": paths if isinstance(paths, bool) else list(paths),
        }


class CoreStorage(NamedTuple):
    """How the core reaches a table."""

    options: dict[str, str] | None
    #: The Python store; None for the core's own.
    store: object | None


def core_storage(uri: str, storage_options: Mapping[str, Any] | None, store: object | None) -> CoreStorage:
    """Return storage options and a Python store for the core.

    A URL whose scheme the core does not have gets fsspec's file system, and the options are that one's arguments.

    Raises:
        InvalidArgumentError: An option is invalid, or the store is of no known kind.
        MissingLibraryError: The scheme needs a library that is not installed.
        StorageError: fsspec's file system cannot be reached.
    """
    if store is None:
        store = file_system_of(uri, storage_options)
        if store is None:
            return CoreStorage(text_options(storage_options, uri), None)
        storage_options = None
    from deltafast.stores import adapt_store

    return CoreStorage(text_options(storage_options, uri), adapt_store(store, uri))


@dataclass(frozen=True)
class Metadata:
    """A table's metadata.

    Examples:
        >>> from deltafast import DeltaTable
        >>> table = DeltaTable.create("cities", {"id": "long"}, name="cities", configuration={"owner": "sales"})
        >>> table.metadata().name, table.metadata().configuration
        ('cities', {'owner': 'sales'})
    """

    #: Unique identifier, which never changes.
    id: str
    #: Name given by the user.
    name: str | None
    #: Description given by the user.
    description: str | None
    #: Names of the partition columns, in order.
    partition_columns: list[str]
    #: Milliseconds since the Unix epoch.
    created_time: int | None
    #: Table properties.
    configuration: dict[str, str]


class ProtocolVersions(NamedTuple):
    """The protocol versions and table features that reading and writing need.

    Examples:
        >>> from deltafast import DeltaTable
        >>> DeltaTable.create("cities", {"id": "long"}).protocol()
        ProtocolVersions(min_reader_version=1, min_writer_version=2, writer_features=None, reader_features=None)
    """

    min_reader_version: int
    min_writer_version: int
    writer_features: list[str] | None
    reader_features: list[str] | None


class DeltaTableConfig(NamedTuple):
    """The loading options as given; they have no effect in deltafast.

    Examples:
        >>> from deltafast import DeltaTable
        >>> DeltaTable.create("cities", {"id": "long"}).table_config
        DeltaTableConfig(without_files=False, log_buffer_size=8, skip_stats=False)
    """

    without_files: bool
    log_buffer_size: int
    skip_stats: bool = False


_DEFAULT_CONFIG: Final = DeltaTableConfig(without_files=False, log_buffer_size=8)


class _Decoded(NamedTuple):
    """Metadata and schema of one snapshot."""

    snapshot: _core.Snapshot
    metadata: _core_types.Metadata
    schema: Schema


class TableHandle:
    """A pointer at one version of a table, which operations move to the version that they committed.

    Args:
        table_uri: Path or URL.
        options: The options of `DeltaTable`.
        version: The version to open; the newest if None.
        timestamp_ms: Open the version that was current then, instead.
        config: The loading options that were given.
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        options: OpenOptions,
        version: int | None = None,
        timestamp_ms: int | None = None,
        config: DeltaTableConfig = _DEFAULT_CONFIG,
    ) -> None:
        self.lock = ForkLock()
        self._decoded: _Decoded | None = None
        #: What opens the table elsewhere: its location or name, and options.
        self.origin = address(table_uri), options
        #: The location as it was given, or as the catalog has it, and the options for it.
        self.given_uri, self.options = self._located(*self.origin)
        self.config = config
        self.store = options.store
        #: Zone of timestamps without one, in partition values and predicates.
        self.time_zone = options.time_zone
        #: Spark's ANSI mode of expressions, which a session of Spark can switch off.
        self.ansi = True
        #: The meaning of double quotes in expressions.
        self.dialect = Dialect.DELTAFAST
        started = perf_counter()
        self.snapshot = self._open(version, timestamp_ms)
        given = self.options.storage_options
        self.storage_options = None if given is None else dict(given)
        log_open(self.snapshot, self.table_uri, (perf_counter() - started) * 1000)

    def _located(self, name: str, options: OpenOptions) -> tuple[str, OpenOptions]:
        """Return where a table is, and the options for this location."""
        return name, options

    def _open(self, version: int | None, timestamp_ms: int | None) -> _core.Snapshot:
        """Open the table."""
        options = self.options
        # A source of credentials lives as long as its options.
        self._storage = core_storage(self.given_uri, options.storage_options, options.store)
        return _core.Snapshot.open(
            self.given_uri,
            version=version,
            timestamp_ms=timestamp_ms,
            storage_options=self._storage.options,
            log_tail=options.log_tail,
            store=self._storage.store,
            options=options.core_options(),
            committer=options.committer,
        )

    def __repr__(self) -> str:
        return f"DeltaTable({self.table_uri!r}, version={self.version()})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Reopen at the same version elsewhere; the pickle holds the storage options."""
        opening = (*self.origin, self.version(), None, self.config)
        return type(self), opening, {"ansi": self.ansi, "dialect": self.dialect}

    @property
    def table_uri(self) -> str:
        """The table's location as a URL, without credentials."""
        return location(self.given_uri)

    def version(self) -> int:
        """The version this handle points at."""
        return self.snapshot.version

    # --- the pointer -----------------------------------------------------------------------------

    # No lock is held while the core works: it calls log handlers, signal handlers and stores in Python, and any of
    # them may use this handle, or wait for a thread that does.

    def move(self, snapshot: _core.Snapshot | None) -> None:
        """Point at the version that an operation committed, or at the newest if that could not be opened.

        The commit exists, so an error here must not look like a failed commit. A thread that shares the handle may
        call this late: a newer version is kept.
        """
        if snapshot is not None:
            self._advance(snapshot)
            return
        try:
            self._advance(self.snapshot.update())
        except DeltaError as error:
            warn_of_commit(f"the commit succeeded, but this handle stays at version {self.snapshot.version}: {error}")

    def update(self) -> None:
        """Point at the newest version, reading only the commits since."""
        before = self.snapshot
        self._advance(before.update(), before)

    def load(self, version: int | None, timestamp_ms: int | None = None) -> None:
        """Point at another version, or at the newest one that was committed at or before a timestamp."""
        if version is not None:
            self.snapshot = self.snapshot.at_version(version)
        else:
            self.snapshot = self.snapshot.at_timestamp(cast("int", timestamp_ms))

    def _advance(self, snapshot: _core.Snapshot, before: _core.Snapshot | None = None) -> None:
        """Point at a snapshot, unless the handle points at a newer one.

        Args:
            snapshot: The snapshot.
            before: What the handle pointed at when the snapshot was opened: if it still does, the snapshot may be
                older, since the table was created again.
        """
        with self.lock:
            if self.snapshot is before or snapshot.version >= self.snapshot.version:
                self.snapshot = snapshot

    def with_changes(
        self, start: int | None, end: int | None, start_ms: int | None, end_ms: int | None
    ) -> _core.Snapshot:
        """Return the snapshot whose log has the changes of a range (see `Snapshot.cdf`)."""
        del start, end, start_ms, end_ms
        return self.snapshot

    def require_log(self, what: str) -> None:
        """Check that the table's own log can be read, for what follows it."""

    def maintain(self, operation: Callable[[_core.Snapshot], _core.CommitResult[_T]]) -> _T:
        """Run an operation on the newest version and point at the version that it committed; returns its metrics."""
        done = operation(self.snapshot.update())
        if done.snapshot is not None:
            self.move(done.snapshot)
        return done.metrics

    def pinned(self) -> TableHandle:
        """Return another handle at this version, which does not move when this one does."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.lock = ForkLock()
        return twin

    def at_version(self, version: int) -> TableHandle:
        """Return another handle, at a version."""
        there = self.pinned()
        there.load(version)
        return there

    # --- metadata --------------------------------------------------------------------------------

    def _decode(self) -> _Decoded:
        snapshot = self.snapshot
        decoded = self._decoded
        if decoded is None or decoded.snapshot is not snapshot:
            metadata = snapshot.metadata()
            decoded = _Decoded(snapshot, metadata, Schema.from_json(metadata["schemaString"]))
            self._decoded = decoded
        return decoded

    def schema(self) -> Schema:
        """Return the table's schema, as in the log."""
        return self._decode().schema

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        import pyarrow as pa

        return pa.schema(cast("Any", self.snapshot.arrow_schema()))

    def metadata(self) -> Metadata:
        """Return the table's metadata."""
        raw = self._decode().metadata
        return Metadata(
            id=raw["id"],
            name=raw.get("name"),
            description=raw.get("description"),
            partition_columns=list(raw["partitionColumns"]),
            created_time=raw.get("createdTime"),
            configuration=dict(raw["configuration"]),
        )

    def protocol(self) -> ProtocolVersions:
        """Return the protocol versions and features that the table requires."""
        raw = self.snapshot.protocol()
        return ProtocolVersions(
            raw["minReaderVersion"],
            raw["minWriterVersion"],
            raw.get("writerFeatures"),
            raw.get("readerFeatures"),
        )

    # --- predicates ------------------------------------------------------------------------------

    @property
    def expression_context(self) -> ExpressionContext:
        """How the caller's expressions are read and evaluated."""
        from deltafast._expr.context import ExpressionContext

        return ExpressionContext(self.dialect, self.time_zone, self.ansi)

    def bind(self, predicate: Predicate | None, *, change_data: bool = False) -> BoundTree | None:
        """Return the typed tree that the core evaluates."""
        if predicate is None:
            return None
        from deltafast._expr import bind_predicate

        metadata = self._decode().metadata
        text = metadata["schemaString"]
        schema = with_change_columns(text) if change_data else text
        tree = bind_predicate(predicate, schema, self.expression_context)
        if change_data:
            return tree
        if GENERATION_EXPRESSION not in text:
            return tree
        from deltafast._expr.generated import add_generated_partition_filters

        # A filter on the base of a generated partition column prunes partitions, too.
        return add_generated_partition_filters(tree, text, metadata["partitionColumns"])

    def bind_pruning(self, filters: FilterType | None, predicate: Predicate | None) -> BoundTree | None:
        """Return the tree that selects files: tuple filters under their old name, or a predicate."""
        chosen = either(filters, predicate)
        if isinstance(chosen, list):
            chosen = spell_nulls(chosen, set(self.metadata().partition_columns))
        return self.bind(chosen)

    # --- rows ------------------------------------------------------------------------------------

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        limit: int | None = None,
        batch_size: int | None = None,
        metadata_columns: Sequence[str] | None = None,
        *,
        string_view: bool = False,
        files: list[str] | None = None,
    ) -> _core.ArrowStream:
        """Return the rows of `DeltaTable.scan`; with `files` (paths in the log), only those of these files."""
        tree = self.bind(predicate)
        if files is None:
            log_scan(self.snapshot, self.table_uri, tree)
        return self.snapshot.scan(
            columns=names(columns),
            predicate=tree,
            limit=limit,
            batch_size=batch_size,
            string_view=string_view,
            metadata_columns=None if metadata_columns is None else list(metadata_columns),
            files=files,
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: all rows, as a new stream at each call."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The Arrow PyCapsule interface."""
        return self.snapshot.arrow_schema().__arrow_c_schema__()


class HandleOwner:
    """The base of `DeltaTable`, for modules of lower rank."""

    _handle: TableHandle


def handle_of(table: HandleOwner) -> TableHandle:
    """Return the handle of a `DeltaTable`.

    Raises:
        TypeError: The argument of a public function is no table, but for example its path.
    """
    if not isinstance(table, HandleOwner):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"the table must be a DeltaTable, not a {type(table).__name__}"
        raise TypeError(message)
    return table._handle  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
