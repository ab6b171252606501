"""`DeltaTable`: a handle that points at one immutable version of a table.

Names, parameters and defaults are those of the `deltalake` package (1.6) where it has an equivalent;
extensions are keyword-only. Opening reads protocol and metadata, not the list of files. `load_as_version`
and `update_incremental` point the handle at another snapshot; readers that were started before keep
theirs, so a table can be shared between threads.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from deltafast import _core
from deltafast._catalog_tables.table_handle import (
    handle_class,
    is_catalog_name,
    is_table_of_catalog,
    refuse_name,
    refuse_share,
)
from deltafast._catalog_tables.write_target import catalog_target
from deltafast._credentials.provider import KEY, with_provider
from deltafast._delta_keys import CLUSTERING_DOMAIN, COLUMN_MAPPING_PHYSICAL_NAME
from deltafast._display import DetailDict, HistoryList, size_text, summary_html
from deltafast._handle import (
    DeltaTableConfig,
    HandleOwner,
    Metadata,
    OpenOptions,
    ProtocolVersions,
    core_storage,
    handle_of,
)
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._libraries import names_missing
from deltafast._util.arguments import COMMIT_ARGUMENTS, HOOKS_FIRST, also_by_position
from deltafast._util.checkpoint_manifest import ManifestFormat
from deltafast._util.column_path import column_text
from deltafast._util.dialect import Dialect
from deltafast._util.filters import either
from deltafast._util.locations import address, local_path
from deltafast._util.options import commit_options, names, property_strings, text_options
from deltafast._util.values import from_epoch_ms, partition_text, to_epoch_ms
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.progress import Progress, counted
from deltafast.schema import Schema, as_schema, for_the_log

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as pads
    import pyarrow.fs as pafs

    from deltafast._core_types import (
        CheckpointOptions,
        CleanupOptions,
        CloneOptions,
        CreateOptions,
        MergeOptions,
        RepairOptions,
        RestoreOptions,
        SaveMode,
        ScanPlan,
        VacuumOptions,
    )
    from deltafast._interop.raw_table import RawDeltaTable
    from deltafast._ops.alter import TableAlterer
    from deltafast._ops.change_stream import ChangeBatch
    from deltafast._ops.merge import TableMerger
    from deltafast._ops.optimize import TableOptimizer
    from deltafast._ops.scan_explanation import ScanExplanation
    from deltafast._util.arrow import Data
    from deltafast._util.filters import FilterType, Predicate
    from deltafast._util.writer_properties import WriterProperties
    from deltafast.catalog import Committer, UnityCatalog
    from deltafast.credentials import CredentialProvider
    from deltafast.schema import ArrowSchemaExportable
    from deltafast.transaction import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction

__all__ = ["DeltaTable", "DeltaTableConfig", "Metadata", "ProtocolVersions", "pinned"]

_Table = TypeVar("_Table", bound="DeltaTable")

MetadataColumn: TypeAlias = Literal["file_path", "row_index", "row_id", "row_commit_version", "base_row_id"]


class DeltaTable(HandleOwner):
    """A Delta table at one version.

    Args:
        table_uri: Location of the table: a path, a URL of S3, Azure, GCS, HTTP(S) or memory, or its name in Unity
            Catalog (`uc://catalog.schema.table`), AWS Glue (`glue://database.table`) or Delta Sharing
            (`profile#share.schema.table`).
        version: The version to open; the newest if None.
        storage_options: Keys as for `deltalake` and the `object_store` crate. They are part of pickles.
        without_files: Accepted without effect: files are always loaded on demand.
        log_buffer_size: Accepted without effect: the core chooses the size.
        skip_stats: Accepted without effect: statistics are always parsed on demand.
        timestamp: Open the version that was current at this timestamp (instead of `version`).
        log_tail: Newest commits as given by a catalog: (path or URL, version, size) of each.
        max_table_version: Newest version that the catalog has ratified.
        committer: The catalog of a catalog-managed table, used to read and to commit (see `deltafast.catalog`).
        store: A Python store: fsspec, obstore or pyarrow file system (see `deltafast.stores`).
        time_zone: Time zone of timestamps without one, in partition values and predicates.
        allow_external_paths: Allow paths in the log that lead outside the table's own store: True, or a list of
            allowed folders.
        credential_provider: Function that returns short-lived credentials, called again before they expire (see
            `deltafast.credentials`).
        catalog: The server of a table that is named `uc://catalog.schema.table`; the one of the environment if None.

    Raises:
        TableNotFoundError: There is no table at the location.
        VersionNotFoundError: The version does not exist.
        CorruptLogError: The log violates the protocol.
        DeltaProtocolError: The table needs a feature that this release does not support.
        StorageError: A request to the store failed.

    Examples:
        The examples of the methods continue this one.

        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> table = DeltaTable("cities")
        >>> table.version(), table.count()
        (0, 3)
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        without_files: bool = False,
        log_buffer_size: int | None = None,
        skip_stats: bool = False,
        *,
        timestamp: str | datetime | None = None,
        log_tail: Iterable[tuple[str, int, int]] | None = None,
        max_table_version: int | None = None,
        committer: Committer | None = None,
        store: object | None = None,
        time_zone: str = "UTC",
        allow_external_paths: bool | Sequence[str] = False,
        credential_provider: CredentialProvider | None = None,
        catalog: UnityCatalog | None = None,
    ) -> None:
        if version is not None and timestamp is not None:
            message = "give either version or timestamp, not both"
            raise InvalidArgumentError(message, code=ErrorCode.VERSION_AND_TIMESTAMP)
        if committer is not None and (log_tail is not None or max_table_version is not None):
            message = "give either committer, or log_tail and max_table_version: a committer is asked for both"
            raise InvalidArgumentError(message)
        timestamp_ms = None if timestamp is None else to_epoch_ms(timestamp)
        config = DeltaTableConfig(without_files, log_buffer_size or 8, skip_stats)
        options = OpenOptions(
            with_provider(storage_options, credential_provider),
            None if log_tail is None else list(log_tail),
            max_table_version,
            committer,
            store,
            time_zone,
            allow_external_paths,
            catalog,
        )
        self._handle = handle_class(table_uri)(table_uri, options, version, timestamp_ms, config)

    @property
    def _storage_options(self) -> dict[str, str] | None:
        # Polars and dask read this member of deltalake's class, which has no provider.
        options = self._handle.storage_options
        return options and {key: value for key, value in options.items() if key != KEY}

    # --- the handle ------------------------------------------------------------------------------

    @staticmethod
    def is_deltatable(
        table_uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        *,
        credential_provider: CredentialProvider | None = None,
    ) -> bool:
        """Return whether there is a Delta table at the location.

        Args:
            table_uri: Path or URL.
            storage_options: As for `DeltaTable`.
            credential_provider: As for `DeltaTable`.

        Examples:
            >>> DeltaTable.is_deltatable("cities"), DeltaTable.is_deltatable("elsewhere")
            (True, False)
        """
        is_named = is_table_of_catalog(table_uri, storage_options)
        if is_named is not None:
            return is_named
        uri, options = address(table_uri), with_provider(storage_options, credential_provider)
        storage = core_storage(uri, options, None)
        return _core.is_deltatable(uri, storage.options, storage.store)

    @classmethod
    @also_by_position(*COMMIT_ARGUMENTS, "raise_if_key_not_exists")
    def create(
        cls,
        table_uri: str | os.PathLike[str],
        schema: Schema | ArrowSchemaExportable | Mapping[str, Any],
        mode: SaveMode = "error",
        partition_by: Sequence[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | bool | int | None] | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        raise_if_key_not_exists: bool = True,
        cluster_by: Sequence[str] | str | None = None,
        committer: Committer | None = None,
        store: object | None = None,
        time_zone: str = "UTC",
        credential_provider: CredentialProvider | None = None,
        catalog: UnityCatalog | None = None,
    ) -> DeltaTable:
        """Create a table without rows.

        Field metadata of the schema follows the protocol: `delta.generationExpression`, `CURRENT_DEFAULT`,
        `delta.identity.start` and related keys define generated columns, defaults and identity columns. Properties are
        validated and enable the table features that they need; `delta.feature.NAME` set to `supported` adds a feature
        by name.

        Args:
            table_uri: Path or URL.
            schema: Schema of the table; a dict of column names and types (`{"id": "long"}`) is accepted, too.
            mode: Handling of an existing table: `error`, `overwrite` (the new table replaces it: its rows are removed,
                its history stays), or `ignore`.
            partition_by: Partition columns.
            name: Name of the table.
            description: Description of the table.
            configuration: Table properties, as strings, booleans or integers; those that are None are left out.
            storage_options: As for `DeltaTable`.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.
            raise_if_key_not_exists: Whether unknown `delta.` properties are refused.
            cluster_by: Clustering columns (liquid clustering), nested ones with dots.
            committer: Creates a catalog-managed table, whose commits it ratifies (see `deltafast.catalog`).
            store: A Python store, see `DeltaTable`.
            time_zone: As for `DeltaTable`.
            credential_provider: As for `DeltaTable`.
            catalog: As for `DeltaTable`; the table becomes a managed one.

        Returns:
            A handle of the new table.

        Raises:
            InvalidArgumentError: The table exists already, or the schema, a property or an expression is invalid.
            DeltaProtocolError: The table would need a feature that this release does not support.
            StorageError: A request to the store failed.

        Examples:
            >>> orders = DeltaTable.create("orders", {"id": "long", "day": "date"}, partition_by="day")
            >>> orders.metadata().partition_columns
            ['day']
        """
        from deltafast._expr.constraints import bind_constraints
        from deltafast._expr.context import ExpressionContext
        from deltafast._expr.stored import table_to_store

        refuse_share(table_uri)
        storage_options = with_provider(storage_options, credential_provider)
        text = for_the_log(as_schema(schema)).to_json()
        properties, target = property_strings(configuration), None
        opening = OpenOptions(storage_options, committer=committer, store=store, time_zone=time_zone, catalog=catalog)
        if is_catalog_name(table_uri):
            target = catalog_target(table_uri, opening)
            uri, opening = target.uri, target.options
            properties = {**target.properties, **properties}
        else:
            uri = address(table_uri)
        context = ExpressionContext(Dialect.DELTAFAST, time_zone)
        text, properties = table_to_store(text, properties, context)
        given = {key: value for key, value in properties.items() if value is not None}
        # No row could be written to a table whose expressions cannot be evaluated.
        bound = bind_constraints(_core.new_table_constraints(text, given), text, context)
        options: CreateOptions = {
            "mode": mode,
            "partition_by": names(partition_by) or [],
            "cluster_by": names(cluster_by) or [],
            "name": name,
            "description": description,
            "configuration": properties,
            "allow_unknown": not raise_if_key_not_exists,
            "commit_options": commit_options(commit_properties, post_commithook_properties),
        }
        storage = core_storage(uri, opening.storage_options, opening.store)
        _core.create_table(
            uri,
            text,
            bound,
            options,
            storage_options=storage.options,
            store=storage.store,
            open_options=opening.core_options(),
            committer=opening.committer,
        )
        if target is not None:
            target.finish()
        with _made_before():
            return cls(
                uri if target is None else table_uri,
                storage_options=storage_options,
                committer=committer if target is None else None,
                store=store,
                time_zone=time_zone,
                catalog=catalog,
            )

    @property
    def _table(self) -> RawDeltaTable:
        """The methods that libraries call on the object behind `deltalake`'s handle."""
        from deltafast._interop.raw_table import RawDeltaTable

        return RawDeltaTable(self, self._handle, partial(DeltaTable.vacuum, self))

    @property
    def alter(self) -> TableAlterer:
        """Changes of columns, constraints, properties and features.

        Examples:
            >>> table.alter.set_table_properties({"delta.logRetentionDuration": "interval 90 days"})
            >>> table.metadata().configuration
            {'delta.logRetentionDuration': 'interval 90 days'}
        """
        from deltafast._ops.alter import TableAlterer

        return TableAlterer(self._handle)

    @also_by_position(*COMMIT_ARGUMENTS)
    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        mode: str,
        schema: Schema | ArrowSchemaExportable,
        partition_by: list[str] | str | None = None,
        partition_filters: FilterType | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit existing data files. Their rows are not checked against the schema.

        Args:
            actions: The files to add, which must exist below the table's folder, and those to remove, which the table
                must have. Paths are URI-encoded, as in `files`.
            mode: `append`, or `overwrite` to remove the previous files.
            schema: The schema of the files; with `overwrite` it becomes the table's.
            partition_by: Partition columns; with `overwrite` they become the table's.
            partition_filters: With `overwrite`, only files of these partitions are removed.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Raises:
            InvalidArgumentError: An action or the filter is invalid.
            DataFileNotFoundError: A file to add does not exist.
            SchemaMismatchError: The schema does not match the table's.
            CommitFailedError: A concurrent commit conflicts with this one.

        Examples:
            >>> import pyarrow as pa
            >>> import pyarrow.parquet as pq
            >>> from deltafast.transaction import AddAction
            >>> with open("cities/new.parquet", "wb") as file:
            ...     pq.write_table(pa.table({"id": [4], "city": ["Bonn"]}), file)
            ...     size = file.tell()
            >>> new = AddAction("new.parquet", size, {}, 1_790_000_000_000, True, '{"numRecords": 1}')
            >>> table.create_write_transaction([new], "append", table.schema())
            >>> table.count()
            4
        """
        from deltafast._ops.add_actions import commit_actions

        properties = commit_options(commit_properties, post_commithook_properties)
        moved = commit_actions(
            self._handle, actions, cast("SaveMode", mode), schema, partition_by, partition_filters, properties
        )
        self._handle.move(moved)

    @property
    def table_uri(self) -> str:
        """The table's location as a URL, without credentials.

        Examples:
            >>> table.table_uri
            'file://.../cities/'
        """
        return self._handle.table_uri

    @property
    def table_config(self) -> DeltaTableConfig:
        """The loading options that were given.

        Examples:
            >>> table.table_config
            DeltaTableConfig(without_files=False, log_buffer_size=8, skip_stats=False)
        """
        return self._handle.config

    def version(self) -> int:
        """Return the version that this handle points at.

        Examples:
            >>> table.version()
            0
        """
        return self._handle.version()

    def timestamp(self) -> datetime:
        """Return the time at which that version was committed.

        Examples:
            >>> table.timestamp().tzinfo
            datetime.timezone.utc
        """
        return from_epoch_ms(self._handle.snapshot.timestamp_ms)

    def load_as_version(self, version: int | str | datetime) -> None:
        """Point this handle at another version.

        Args:
            version: A version number, or a timestamp (a datetime, UTC where it has no zone, or an ISO 8601
                string): the newest version that was committed at or before it.

        Raises:
            VersionNotFoundError: The version does not exist.
            InvalidArgumentError: The string is not a timestamp.

        Examples:
            >>> table.append({"id": [4], "city": ["Bonn"]})["num_added_rows"]
            1
            >>> table.load_as_version(0)
            >>> table.count()
            3
        """
        # True is an int, but surely a mistake.
        if isinstance(version, int) and not isinstance(version, bool):
            self._handle.load(version)
        elif isinstance(version, (str, datetime)):
            self._handle.load(None, to_epoch_ms(version))
        else:
            message = "version must be an int, a str or a datetime"
            raise TypeError(message)

    def update_incremental(self) -> None:
        """Point this handle at the newest version, reading only the commits since.

        Examples:
            >>> write_deltalake("cities", {"id": [4], "city": ["Bonn"]}, mode="append")
            >>> table.update_incremental()
            >>> table.version(), table.count()
            (1, 4)
        """
        self._handle.update()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeltaTable):
            return NotImplemented
        return (self.table_uri, self.version()) == (other.table_uri, other.version())

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # a handle moves between versions

    def __repr__(self) -> str:
        return repr(self._handle)

    def _repr_html_(self) -> str:
        detail = self.detail()
        facts = {
            "version": self.version(),
            "last modified": detail["lastModified"],
            "files": f"{detail['numFiles']:,}",
            "size": size_text(detail["sizeInBytes"]),
            "partition columns": detail["partitionColumns"],
            "clustering columns": detail["clusteringColumns"],
            "table features": detail["tableFeatures"],
            "properties": detail["properties"],
        }
        known = {name: value for name, value in facts.items() if value not in ([], {})}
        return summary_html(self.table_uri, known, self.schema().json(), self.history(5))

    def __reduce__(self) -> tuple[Any, ...]:
        """Reopen at the same version elsewhere; the pickle holds the storage options."""
        handle = self._handle
        uri, options = handle.origin
        return _reopen, (type(self), uri, handle.version(), handle.config, options)

    # --- metadata and history --------------------------------------------------------------------

    def schema(self) -> Schema:
        """Return the table's schema, as in the log.

        Protocol: "Schema Serialization Format".

        Examples:
            >>> table.schema().fields[0]
            Field(id, PrimitiveType("long"), nullable=True)
        """
        return self._handle.schema()

    def metadata(self) -> Metadata:
        """Return the table's metadata.

        Protocol: "Change Metadata".

        Examples:
            >>> table.metadata().name, table.metadata().partition_columns
            (None, [])
        """
        return self._handle.metadata()

    def protocol(self) -> ProtocolVersions:
        """Return the protocol versions and features that the table requires.

        Protocol: "Protocol Evolution", "Table Features".

        Examples:
            >>> table.protocol()
            ProtocolVersions(min_reader_version=1, min_writer_version=2, writer_features=None, reader_features=None)
        """
        return self._handle.protocol()

    def detail(self) -> dict[str, Any]:
        """Return the columns of Spark's DESCRIBE DETAIL; counting the files reads all file actions once.

        Examples:
            >>> detail = table.detail()
            >>> detail["numFiles"], detail["partitionColumns"]
            (1, [])
        """
        metadata, protocol = self.metadata(), self.protocol()
        snapshot = self._handle.snapshot
        clustering = self.domain_metadata().get(CLUSTERING_DOMAIN)
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        found = {
            "format": "delta",
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "location": self.table_uri,
            "createdAt": None if metadata.created_time is None else from_epoch_ms(metadata.created_time),
            "lastModified": from_epoch_ms(snapshot.timestamp_ms),
            "partitionColumns": metadata.partition_columns,
            "clusteringColumns": _clustering_columns(clustering, self.schema()),
            "numFiles": snapshot.num_files(),
            "sizeInBytes": snapshot.size_in_bytes(),
            "properties": metadata.configuration,
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "tableFeatures": sorted(features),
        }
        return DetailDict(found)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the operations on the table, newest first.

        Protocol: "Commit Provenance Information", "In-Commit Timestamps".

        Args:
            limit: At most this many commits.

        Returns:
            The `commitInfo` of each commit with its `version` and `timestamp` (ms). Time travel uses the same
            timestamp: the in-commit timestamp where the table has them, else the modification time of the commit
            file, as in delta-spark. The values of `operationParameters` are strings, as in Spark's DESCRIBE HISTORY.

        Examples:
            >>> table.append({"id": [4], "city": ["Bonn"]})["num_added_rows"]
            1
            >>> [(commit["version"], commit["operation"]) for commit in table.history()]
            [(1, 'WRITE'), (0, 'WRITE')]
        """
        entries = self._commit_infos(limit)
        for entry in entries:
            parameters = entry.get("operationParameters")
            if isinstance(parameters, dict):
                given = cast("dict[str, Any]", parameters).items()
                entry["operationParameters"] = {
                    key: value if isinstance(value, str) or value is None else json.dumps(value, separators=(",", ":"))
                    for key, value in given
                }
        return HistoryList(entries)

    def _commit_infos(self, limit: int | None) -> list[dict[str, Any]]:
        return self._handle.snapshot.history(limit)

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version that the application `app_id` has recorded, or None.

        Protocol: "Transaction Identifiers".

        Examples:
            >>> from deltafast import CommitProperties, Transaction
            >>> recorded = CommitProperties(app_transactions=[Transaction("import", 7)])
            >>> metrics = table.append({"id": [4], "city": ["Bonn"]}, commit_properties=recorded)
            >>> table.transaction_version("import"), table.transaction_version("other")
            (7, None)
        """
        found = self._handle.snapshot.transactions().get(app_id)
        return None if found is None else found["version"]

    def domain_metadata(self) -> dict[str, str]:
        """Return the configuration string of each metadata domain.

        Protocol: "Domain Metadata".

        Examples:
            >>> table.alter.add_feature("domainMetadata", allow_protocol_versions_increase=True)
            >>> table.alter.set_domain_metadata("import", '{"offset": 7}')
            >>> table.domain_metadata()
            {'import': '{"offset": 7}'}
        """
        return self._handle.snapshot.domain_metadata()

    # --- files -----------------------------------------------------------------------------------

    def files(
        self,
        partition_filters: FilterType | None = None,
        *,
        file_pruning_predicate: Predicate | None = None,
    ) -> list[str]:
        """Return the paths of the table's files as in the log (percent-encoded).

        Args:
            partition_filters: The same as `file_pruning_predicate`.
            file_pruning_predicate: See `file_uris`.

        Examples:
            >>> len(table.files()), table.files(file_pruning_predicate="id > 3")
            (1, [])
        """
        tree = self._handle.bind_pruning(partition_filters, file_pruning_predicate)
        stream = self._handle.snapshot.files(columns=["path"], predicate=tree)
        return stream.strings("path")

    def file_uris(
        self,
        partition_filters: FilterType | None = None,
        *,
        file_pruning_predicate: Predicate | None = None,
    ) -> list[str]:
        """Return the table's files as absolute URLs; local files as plain absolute paths.

        Args:
            partition_filters: Older name of `file_pruning_predicate`.
            file_pruning_predicate: Excludes files that cannot contain a matching row, by partition values
                and statistics. A SQL string, or tuples `(column, op, value)` with the operators =, !=, <,
                <=, >, >=, in and not in: a list of tuples means AND, a list of such lists OR. The value
                '' stands for a null partition value.

        Examples:
            >>> len(table.file_uris(file_pruning_predicate=[("id", ">", 1)]))
            1
        """
        tree = self._handle.bind_pruning(partition_filters, file_pruning_predicate)
        return [local_path(uri) for uri in self._handle.snapshot.file_uris(tree).strings("uri")]

    @names_missing
    def partitions(
        self,
        partition_filters: FilterType | None = None,
        *,
        file_pruning_predicate: Predicate | None = None,
    ) -> list[dict[str, str | None]]:
        """Return the distinct partition values of the table's files, as strings; empty for a table without partitions.

        Args:
            partition_filters: The same as `file_pruning_predicate`.
            file_pruning_predicate: See `file_uris`.

        Examples:
            >>> write_deltalake("sales", {"day": ["mon", "tue"], "sold": [1, 2]}, partition_by="day")
            >>> sorted(partition["day"] for partition in DeltaTable("sales").partitions())
            ['mon', 'tue']
        """
        tree = self._handle.bind_pruning(partition_filters, file_pruning_predicate)
        if not self.metadata().partition_columns:
            return []
        rows = RecordBatchReader(self._handle.snapshot.partitions(tree)).read_all().to_pylist()
        return [{name: partition_text(value) for name, value in row.items()} for row in rows]

    def get_add_actions(
        self,
        flatten: bool = False,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
    ) -> pa.Table:
        """Return the table's files with partition values and statistics, one row each; an `ArrowTable` without pyarrow.

        Protocol: "Add File and Remove File", "Per-file Statistics".

        Args:
            flatten: Return partition values and statistics as columns of their own, named `partition.x`,
                `null_count.x`, `min.x` and `max.x`, instead of as structs.
            columns: Only these columns (with `flatten`, the dotted names); statistics of other columns are
                not parsed.
            predicate: Exclude files that cannot contain a matching row.

        Returns:
            `path` string, as in the log; `size_bytes` int64; `modification_time` int64, milliseconds since the epoch;
            `num_records` int64; `null_count`, a struct of int64; `min`, `max` and `partition`, structs with the types
            of the columns; `deletion_vector`, a struct of `storageType` string, `pathOrInlineDv` string, `offset`
            int32, `sizeInBytes` int32 and `cardinality` int64.

        Examples:
            >>> table.get_add_actions(flatten=True, columns=["num_records", "min.id", "max.id"]).to_pylist()
            [{'num_records': 3, 'min.id': 1, 'max.id': 3}]
        """
        return self.add_actions_stream(flatten, columns=columns, predicate=predicate).read_all()

    def add_actions_stream(
        self,
        flatten: bool = False,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
    ) -> RecordBatchReader:
        """Return `get_add_actions` as a stream, for tables with more files than fit in memory.

        Examples:
            >>> sum(batch.num_rows for batch in table.add_actions_stream(columns=["path"]))
            1
        """
        tree = self._handle.bind_pruning(None, predicate)
        chosen = names(columns)
        return RecordBatchReader(self._handle.snapshot.files(columns=chosen, predicate=tree, flatten=flatten))

    def deletion_vectors(self) -> RecordBatchReader:
        """Return the rows that are deleted by deletion vectors.

        Protocol: "Deletion Vectors".

        Returns:
            A stream of `filepath` and `selection_vector` (list of bool, True for rows that are kept), one
            row for each file that has a deletion vector.

        Examples:
            >>> properties = {"delta.enableDeletionVectors": "true"}
            >>> write_deltalake("marked", {"id": [1, 2, 3]}, configuration=properties)
            >>> marked = DeltaTable("marked")
            >>> marked.delete("id = 2")["num_deleted_rows"]
            1
            >>> marked.deletion_vectors().read_all()["selection_vector"].to_pylist()
            [[True, False, True]]
        """
        return RecordBatchReader(self._handle.snapshot.deletion_vectors())

    def tombstones(self) -> RecordBatchReader:
        """Return the removed files that the log still lists.

        Protocol: "Add File and Remove File".

        Returns:
            A stream of `path` string, `deletion_timestamp` timestamp[ms, UTC] and `size_bytes` int64.

        Examples:
            >>> table.delete()["num_removed_files"]
            1
            >>> table.tombstones().read_all().num_rows
            1
        """
        return RecordBatchReader(self._handle.snapshot.tombstones())

    def plan(self, predicate: Predicate | None = None) -> ScanPlan:
        """Return how much a scan would read: files in total, after partition pruning and after data skipping.

        Protocol: "Partition Value Serialization", "Per-file Statistics".

        Examples:
            >>> table.plan("id > 3")
            {'files': 0, 'files_after_partition': 1, 'files_total': 1}
        """
        return self._handle.snapshot.plan(self._handle.bind(predicate))

    def explain(
        self, predicate: Predicate | None = None, columns: Sequence[str] | None = None, *, row_groups: bool = True
    ) -> ScanExplanation:
        """Return which files and row groups a scan reads, and what excludes the others; no rows are read.

        Files are excluded by partition values and by statistics of the log ("Per-file Statistics"), row groups by
        statistics, bloom filters and the page index of their files. The result also has what each condition of a
        conjunction excludes on its own, and advice on what would exclude more.

        Args:
            predicate: As for `scan`.
            columns: The columns that the scan needs; all if None.
            row_groups: Read the footers (and the indexes that the predicate needs) of the files that remain.

        Returns:
            The numbers as attributes; `print` shows them as text, a notebook as tables, `to_dict()` as JSON types.

        Raises:
            InvalidArgumentError: The predicate or a column is invalid.
            DataFileNotFoundError: A file that remains is missing.

        Examples:
            >>> explanation = table.explain("id > 3")
            >>> explanation.pruning
            1.0
        """
        from deltafast._ops.scan_explanation import explain_scan

        return explain_scan(self._handle, predicate, columns, row_groups=row_groups)

    # --- rows ------------------------------------------------------------------------------------

    def count(self, predicate: Predicate | None = None) -> int:
        """Return the exact number of rows; computed from statistics where they suffice.

        Args:
            predicate: Count only rows for which it is true.

        Examples:
            >>> table.count("city = 'Rome'")
            1
        """
        return self._handle.snapshot.count(self._handle.bind(predicate))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        limit: int | None = None,
        batch_size: int | None = None,
        metadata_columns: Sequence[MetadataColumn] | None = None,
        string_view: bool = False,
        progress: Progress = False,
    ) -> RecordBatchReader:
        """Read rows as a stream of Arrow batches, in no particular order.

        Args:
            columns: The columns, in this order; all if None.
            predicate: Only rows for which it is true: a Spark SQL string, tuples in disjunctive normal form, a
                pyarrow expression or a Polars expression. Files, row groups and pages that cannot match
                are not read.
            limit: Stop after this many rows.
            batch_size: Largest number of rows in a batch; if None, between 32,768 and 131,072 so that a batch has
                about 4 MiB.
            metadata_columns: Columns to add: file_path, row_index (in the file), row_id and
                row_commit_version (of tables with row tracking), base_row_id. If the table has a column of
                such a name, `columns` must be given without it.
            string_view: Return strings and binaries as Arrow views. That is faster and suits Polars and
                DuckDB; most of pyarrow's functions do not support them.
            progress: True for a progress bar, a function of (done, total) files, or a tqdm-like bar.

        Returns:
            A stream with the columns of the table in Arrow's types (see `Schema.to_arrow`), then the metadata columns:
            `file_path` string; `row_index`, `row_id`, `row_commit_version` and `base_row_id` int64.

        Raises:
            InvalidArgumentError: A column does not exist, or the predicate is invalid.

        Examples:
            >>> table.scan(["city"], "id > 1").read_all().to_pylist()
            [{'city': 'Rome'}, {'city': 'Lima'}]
            >>> sum(batch.num_rows for batch in table.scan())
            3
        """
        stream = self._handle.scan(columns, predicate, limit, batch_size, metadata_columns, string_view=string_view)
        return RecordBatchReader(stream, progress)

    def load_cdf(
        self,
        starting_version: int = 0,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        allow_out_of_range: bool = False,
        *,
        string_view: bool = False,
        progress: Progress = False,
    ) -> RecordBatchReader:
        """Read the change data feed as a stream.

        Protocol: "Change Data Files".

        Args:
            starting_version: First version, included.
            ending_version: Last version, included; the newest if None.
            starting_timestamp: Start with the first commit at or after this timestamp; used when
                `starting_version` is left at 0.
            ending_timestamp: End with the last commit at or before this timestamp; used when
                `ending_version` is None.
            columns: Only these columns; `_change_type`, `_commit_version` and `_commit_timestamp` may be
                among them.
            predicate: Only changes for which it is true; it may use the same three columns.
            allow_out_of_range: Return no rows, instead of an error, if the range starts after the newest
                version.
            string_view: Return strings and binaries as Arrow views, as `deltalake` does: see `scan`.
            progress: As for `scan`.

        Returns:
            A stream with the columns of the table, `_change_type` string (`insert`, `delete`, `update_preimage` or
            `update_postimage`), `_commit_version` int64 and `_commit_timestamp` timestamp[us, UTC].

        Raises:
            ChangeDataNotRecordedError: The change data feed was disabled in one of the versions.
            VersionNotFoundError: A version of the range does not exist, or its commit was deleted.

        Examples:
            >>> properties = {"delta.enableChangeDataFeed": "true"}
            >>> write_deltalake("watched", {"id": [1, 2]}, configuration=properties)
            >>> watched = DeltaTable("watched")
            >>> watched.delete("id = 2")["num_deleted_rows"]
            1
            >>> watched.load_cdf(1, columns=["id", "_change_type"]).read_all().to_pylist()
            [{'id': 2, '_change_type': 'delete'}]
        """
        by_time = starting_timestamp is not None and starting_version == 0
        until_time = ending_timestamp is not None and ending_version is None
        bounds = (
            None if by_time else starting_version,
            ending_version,
            to_epoch_ms(cast("str", starting_timestamp)) if by_time else None,
            to_epoch_ms(cast("str", ending_timestamp)) if until_time else None,
        )
        stream = self._handle.with_changes(*bounds).cdf(
            *bounds,
            names(columns),
            self._handle.bind(predicate, change_data=True),
            allow_out_of_range,
            string_view,
        )
        return RecordBatchReader(stream, progress)

    def stream_changes(
        self,
        cursor: Mapping[str, Any] | None = None,
        *,
        change_data_feed: bool = False,
        max_files: int | None = 1000,
        max_bytes: int | None = None,
        starting_version: int | Literal["latest"] | None = None,
        on_change: Literal["error", "skip", "rows"] = "error",
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
    ) -> Iterator[ChangeBatch]:
        """Read the rows that were added since a cursor, in batches, up to the newest version.

        Without a cursor the stream begins with the rows of this handle's version, then continues with later commits.
        Each batch has a cursor that points after it. Storing that cursor in the same transaction as the result of the
        batch (for a target table, in the commit's `custom_metadata`) processes each row exactly once;
        `docs/writing.md` shows how. A batch never spans a schema change. Commits that only rearrange files produce no
        rows.

        Protocol: "Change Data Files", "Add File and Remove File" (`dataChange`).

        Args:
            cursor: The cursor of the last batch; None starts over.
            change_data_feed: Read the change data feed: changed and deleted rows too, with `_change_type`,
                `_commit_version` and `_commit_timestamp`. Otherwise only rows of new files.
            max_files: Largest number of files of a batch; with `change_data_feed`, a batch has whole commits.
            max_bytes: Largest total size of these files; a batch has at least one file (or commit) of any size.
            starting_version: Without a cursor, begin with the changes of this version, or after the newest one
                (`latest`), instead of with all rows of the table.
            on_change: Without `change_data_feed`, the handling of a commit that deletes or changes rows: raise an error
                (`error`), ignore it (`skip`), or return all rows of its new files (`rows`), copied ones included.
            columns: Only these columns.
            predicate: Only rows for which it is true; it may use the three columns of the change data feed only with a
                `starting_version`.

        Returns:
            Batches: `rows`, a pyarrow RecordBatchReader, and `cursor`, plain JSON. A batch without rows reports
            progress of the stream.

        Raises:
            InvalidArgumentError: The cursor belongs to another table or stream, or an argument is invalid.
            VersionNotFoundError: Commits after the cursor were deleted from the log.
            DeltaProtocolError: A commit changes rows and `on_change` is `error`.
            ChangeDataNotRecordedError: The change data feed was disabled in one of the versions.

        Examples:
            >>> cursor = None
            >>> for batch in table.stream_changes(cursor):
            ...     print(batch.rows.read_all().num_rows)
            ...     cursor = batch.cursor
            3
            >>> table.append({"id": [4], "city": ["Bonn"]})["num_added_rows"]
            1
            >>> for batch in table.stream_changes(cursor):
            ...     print(batch.rows.read_all().to_pylist())
            [{'id': 4, 'city': 'Bonn'}]
        """
        from deltafast._ops.change_stream import RemovalPolicy, StreamSettings, stream_changes

        self._handle.require_log("stream_changes")
        if on_change not in tuple(RemovalPolicy):
            message = f"on_change must be error, skip or rows, not {on_change!r}"
            raise InvalidArgumentError(message)
        policy = RemovalPolicy(on_change)
        settings = StreamSettings(change_data_feed, policy, max_files, max_bytes, columns, predicate)
        return stream_changes(self._handle, cursor, starting_version, settings)

    # --- other libraries -------------------------------------------------------------------------

    @names_missing
    def to_pyarrow_dataset(
        self,
        partitions: FilterType | None = None,
        filesystem: str | pafs.FileSystem | None = None,
        parquet_read_options: pads.ParquetReadOptions | None = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,
        file_pruning_predicate: Predicate | None = None,
    ) -> pads.Dataset:
        """Return the table as a pyarrow dataset.

        deltafast reads the rows, with projection and filters pushed down, for all supported table features. With
        `filesystem` or `parquet_read_options`, pyarrow's own Parquet reader is used: the dataset then consists of the
        Parquet files themselves, which is impossible for tables with deletion vectors, column mapping, widened types
        or variants.

        Args:
            partitions: The same as `file_pruning_predicate`.
            filesystem: Read the files with pyarrow, from this file system rooted at the table.
            parquet_read_options: Read the files with pyarrow, with these options.
            schema: Return the columns with the types of this schema.
            as_large_types: Use string, binary and list types with 64-bit offsets.
            file_pruning_predicate: Exclude files, see `file_uris`.

        Raises:
            DeltaProtocolError: pyarrow's own reader was requested, and would return wrong rows.

        Examples:
            >>> import pyarrow.compute as pc
            >>> table.to_pyarrow_dataset().count_rows(filter=pc.field("id") > 1)
            2
        """
        from deltafast._interop import pyarrow_dataset

        pruning = either(partitions, file_pruning_predicate)
        if filesystem is not None or parquet_read_options is not None:
            return pyarrow_dataset.parquet_dataset(
                self._handle, filesystem, parquet_read_options, schema, as_large_types, pruning
            )
        if schema is None and as_large_types:
            schema = self.schema().to_arrow(as_large_types=True)
        files = None if pruning is None else self.files(file_pruning_predicate=pruning)
        return pyarrow_dataset.ScanDataset(self._handle, schema=schema, files=files)

    @names_missing
    def to_pyarrow_table(
        self,
        partitions: FilterType | None = None,
        columns: Sequence[str] | None = None,
        filesystem: str | pafs.FileSystem | None = None,
        filters: Predicate | None = None,
        *,
        limit: int | None = None,
        progress: Progress = False,
    ) -> pa.Table:
        """Return the table's rows as a pyarrow table.

        Args:
            partitions: Exclude files, see `file_uris`.
            columns: The columns, in this order.
            filesystem: Read the files with pyarrow, from this file system rooted at the table.
            filters: Only rows for which it is true; any predicate that `scan` accepts.
            limit: At most this many rows.
            progress: See `scan`.

        Examples:
            >>> table.to_pyarrow_table(columns=["city"], filters=[("id", "<", 3)]).to_pydict()
            {'city': ['Oslo', 'Rome']}
        """
        from deltafast._interop import pyarrow_dataset

        if filesystem is not None:
            source = self.to_pyarrow_dataset(partitions, filesystem)
            found = source.to_table(columns=names(columns), filter=pyarrow_dataset.as_expression(filters))
            return found if limit is None else found.slice(0, limit)
        files = None if partitions is None else self.files(partitions)
        return pyarrow_dataset.read_table(
            self._handle, names(columns), filters, files=files, limit=limit, progress=progress
        )

    @names_missing
    def to_pandas(
        self,
        partitions: FilterType | None = None,
        columns: Sequence[str] | None = None,
        filesystem: str | pafs.FileSystem | None = None,
        filters: Predicate | None = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
        *,
        limit: int | None = None,
        progress: Progress = False,
    ) -> pd.DataFrame:
        """Return the table's rows as a pandas data frame.

        Args:
            partitions: Exclude files, see `file_uris`.
            columns: The columns, in this order.
            filesystem: Read the files with pyarrow, from this file system rooted at the table.
            filters: Only rows for which it is true; any predicate that `scan` accepts.
            types_mapper: Maps a pyarrow type to a pandas extension type, as for `pyarrow.Table.to_pandas`.
            limit: At most this many rows.
            progress: See `scan`.

        Examples:
            >>> table.to_pandas(filters="id = 3")
               id  city
            0   3  Lima
        """
        table = self.to_pyarrow_table(partitions, columns, filesystem, filters, limit=limit, progress=progress)
        return cast("Any", table).to_pandas(types_mapper=types_mapper)

    @names_missing
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        limit: int | None = None,
        progress: Progress = False,
    ) -> pl.DataFrame:
        """Return the table's rows as a Polars data frame; parameters as for `scan`.

        Examples:
            >>> table.to_polars(["city"], "id = 3").item()
            'Lima'
        """
        from deltafast._interop import polars_scan

        return polars_scan.read(self._handle, columns, predicate, limit=limit, progress=progress)

    @names_missing
    def scan_polars(self) -> pl.LazyFrame:
        """Return the table as a Polars lazy frame: projection, filters and row limits are pushed into the scan.

        Examples:
            >>> import polars as pl
            >>> table.scan_polars().filter(pl.col("id") == 3).select("city").collect().item()
            'Lima'
        """
        from deltafast._interop import polars_scan

        return polars_scan.scan(self._handle)

    @names_missing
    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None, *, external_access: bool = False
    ) -> duckdb.DuckDBPyRelation:
        """Return the table as a DuckDB relation: projection and filters are pushed into the scan.

        Args:
            connection: Create the relation on this connection; on a new one if None.
            external_access: Allow a new connection to access files (`write_parquet` of the relation, for example), the
                network and extensions.

        Examples:
            >>> table.to_duckdb().filter("id = 3").fetchall()
            [(3, 'Lima')]
        """
        from deltafast._interop import duckdb_query

        return duckdb_query.relation(self._handle, connection, external_access=external_access)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: all rows, as a new stream at each call."""
        return self._handle.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The Arrow PyCapsule interface."""
        return self._handle.__arrow_c_schema__()

    # --- layout ----------------------------------------------------------------------------------

    @property
    def optimize(self) -> TableOptimizer:
        """Compaction and clustering of the table's files: `table.optimize.compact()`.

        Examples:
            >>> table.append({"id": [4], "city": ["Bonn"]})["num_added_rows"]
            1
            >>> metrics = table.optimize.compact()
            >>> metrics["numFilesRemoved"], metrics["numFilesAdded"]
            (2, 1)
        """
        from deltafast._ops.optimize import TableOptimizer

        return TableOptimizer(self._handle)

    # --- changing rows ---------------------------------------------------------------------------

    def append(
        self,
        data: Data,
        *,
        schema_mode: Literal["merge"] | None = None,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, int]:
        """Append rows: `write_deltalake(table, data, mode="append")`, with the metrics.

        Args:
            data: Any data that `write_deltalake` accepts.
            schema_mode: `merge` adds new columns and nested fields to the table; otherwise they are refused.
            target_file_size: Target size of data files in bytes; `delta.targetFileSize`, else 100 MiB, if None.
            writer_properties: Encoding of Parquet files.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `write_deltalake`.

        Returns:
            `num_added_files`, `num_added_rows`, `num_added_bytes`.

        Raises:
            DeltaError: As `write_deltalake`.

        Examples:
            >>> metrics = table.append({"id": [4], "city": ["Bonn"]})
            >>> metrics["num_added_files"], metrics["num_added_rows"]
            (1, 1)
        """
        from deltafast.writer import append_rows

        return append_rows(
            self,
            data,
            schema_mode=schema_mode,
            target_file_size=target_file_size,
            writer_properties=writer_properties,
            commit=commit_options(commit_properties, post_commithook_properties),
            progress=progress,
        )

    def upsert(
        self,
        source: Data | str,
        keys: Sequence[str] | str,
        *,
        merge_schema: bool = False,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        max_conflict_retries: int = 0,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Update the rows that have the keys of a row of the source, and insert the other rows of the source.

        This is `merge` by equality of the keys, with `when_matched_update_all` and `when_not_matched_insert_all`. A
        null equals nothing, so a row with a null key is inserted. The source has at most one row for each key.

        Args:
            source: Any data that `write_deltalake` accepts, including another table; or a query, as for
                `deltafast.sql`.
            keys: Columns of the table and of the source.
            merge_schema: Add new columns and nested fields of the source to the table.
            writer_properties: Encoding of new files.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            max_conflict_retries: As for `merge`.
            progress: As for `merge`.

        Returns:
            The metrics of `merge`.

        Raises:
            InvalidArgumentError: There are no keys, or several rows of the source have the keys of one row.
            DeltaError: As the `execute` of `merge`.

        Examples:
            >>> metrics = table.upsert({"id": [3, 4], "city": ["Quito", "Bonn"]}, keys="id")
            >>> metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]
            (1, 1)
        """
        chosen = names(keys) or []
        if not chosen:
            message = "`keys` names no column"
            raise InvalidArgumentError(message)
        quoted = [f"`{key.replace('`', '``')}`" for key in chosen]
        merger = self.merge(
            source,
            " AND ".join(f"target.{key} = source.{key}" for key in quoted),
            source_alias="source",
            target_alias="target",
            merge_schema=merge_schema,
            writer_properties=writer_properties,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
            max_conflict_retries=max_conflict_retries,
            progress=progress,
        )
        return merger.when_matched_update_all().when_not_matched_insert_all().execute()

    @also_by_position(*HOOKS_FIRST)
    def delete(
        self,
        predicate: Predicate | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        max_conflict_retries: int = 0,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Delete the rows for which a predicate is true; all rows without one.

        Files of which all rows match, by partition values and statistics, are removed without being read. In other
        files rows are deleted by deletion vectors if `delta.enableDeletionVectors` is set; otherwise the files are
        rewritten without these rows.

        Protocol: "Deletion Vectors", "Change Data Files".

        Args:
            predicate: A Spark SQL string, DNF tuples, a pyarrow or a Polars expression.
            writer_properties: Encoding of rewritten files.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            max_conflict_retries: Number of retries on the newest version after a conflict with another writer that
                changed the same rows. From the first retry on, the writers of one machine wait for each other in a
                queue.
            progress: As for `scan`; counts files each time they are read.

        Returns:
            `num_added_files`, `num_removed_files`, `num_deleted_rows` (left out where the log does
            not have the number), `num_copied_rows`, `execution_time_ms`, `scan_time_ms`, `rewrite_time_ms`.

        Raises:
            InvalidArgumentError: The predicate is invalid, or the table is append-only.
            UnsupportedExpressionError: The predicate cannot be evaluated with exactly Spark's semantics.
            CommitFailedError: A concurrent commit changed the same rows, also on each retry.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed.

        Examples:
            >>> table.delete("city = 'Rome'")["num_deleted_rows"]
            1
        """
        from deltafast._ops.delete_update import delete, dml_options

        commit = commit_options(commit_properties, post_commithook_properties)
        options = dml_options(self._handle, writer_properties, commit, max_conflict_retries)
        with counted(progress):
            return delete(self._handle, predicate, options)

    @also_by_position(*HOOKS_FIRST)
    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: Predicate | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        max_conflict_retries: int = 0,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Set columns to new values in the rows for which a predicate is true; in all rows without one.

        If `delta.enableDeletionVectors` is set, the rows are deleted by deletion vectors and their new values are added
        in new files; otherwise the files with such rows are rewritten. Generated columns are recomputed, and
        constraints are enforced.

        Protocol: "Deletion Vectors", "Change Data Files", "Generated Columns".

        Args:
            updates: A Spark SQL expression over the old row for each column, cast to the column's type by Spark's
                store assignment. A field of a struct column is named with dots; a null struct is replaced by one whose
                other fields are null.
            new_values: Python values by column, instead of `updates`.
            predicate: A Spark SQL string, DNF tuples, a pyarrow or a Polars expression.
            writer_properties: Encoding of new files.
            error_on_type_mismatch: Whether a value that cannot be cast to its column's type is an error; otherwise it
                becomes null.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            max_conflict_retries: Number of retries on the newest version after a conflict with another writer that
                changed the same rows. From the first retry on, the writers of one machine wait for each other in a
                queue.
            progress: As for `scan`; counts files each time they are read.

        Returns:
            `num_added_files`, `num_removed_files`, `num_updated_rows` (None where the log does not have the number),
            `num_copied_rows`, `execution_time_ms`, `scan_time_ms`.

        Raises:
            InvalidArgumentError: A column or an expression is invalid, or the table is append-only.
            UnsupportedExpressionError: An expression cannot be evaluated with exactly Spark's semantics.
            ConstraintViolatedError: A new value violates a constraint.
            CommitFailedError: A concurrent commit changed the same rows, also on each retry.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed.

        Examples:
            >>> table.update({"city": "upper(city)"}, predicate="id = 1")["num_updated_rows"]
            1
        """
        from deltafast._expr.tree import CastMode
        from deltafast._ops.delete_update import dml_options, update

        commit = commit_options(commit_properties, post_commithook_properties)
        options = dml_options(self._handle, writer_properties, commit, max_conflict_retries)
        mode = CastMode.ANSI if error_on_type_mismatch else CastMode.TRY
        with counted(progress):
            return update(self._handle, updates, new_values, predicate, mode, options)

    @also_by_position(*HOOKS_FIRST)
    def merge(
        self,
        source: Data | str,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        max_conflict_retries: int = 0,
        progress: Progress = False,
    ) -> TableMerger:
        """Match rows of a source with rows of the table, then update, delete and insert rows by clauses.

        The source is read once and buffered in memory, beyond `max_spill_size` in a temporary file. Files of the table
        that cannot match the keys of the source are not read. If `delta.enableDeletionVectors` is set, rows are deleted
        by deletion vectors and their new values are added in new files; otherwise files with changed rows are
        rewritten. It is an error if several rows of the source match one row of the table and a clause applies to more
        than one of them, unless the only clause for matched rows deletes all of them.

        Protocol: "Deletion Vectors", "Change Data Files", "Generated Columns", "Identity Columns", "Row Tracking".

        Args:
            source: Any data that `write_deltalake` accepts, including another table; or a query, as for
                `deltafast.sql`.
            predicate: Spark SQL over both sides: `target.id = source.id AND target.day = source.day`. Equalities
                between both sides become join keys; without any, all pairs of rows are compared.
            source_alias: Alias of the source in expressions; `source` if None.
            target_alias: Alias of the table in expressions; `target` if None.
            merge_schema: Add columns and nested fields of the source to the table if a clause assigns them.
            error_on_type_mismatch: Whether a value that cannot be cast to its column's type is an error; otherwise it
                is null.
            writer_properties: Encoding of new files.
            streamed_exec: Accepted for compatibility with `deltalake`, without effect: the source is always streamed
                and always used for pruning.
            max_spill_size: Bytes of memory for the source, and the same for the join of the keys; an eighth of the
                process's memory limit if None.
            max_temp_directory_size: Bytes of temporary files for each of the two.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            max_conflict_retries: Number of retries on the newest version after a conflict with another writer that
                changed the same rows; the source is not read again.
            progress: As for `scan`; counts files of the table each time they are read.

        Returns:
            A builder for the clauses; its `execute` runs the MERGE.

        Examples:
            >>> changes = {"id": [2, 3, 4], "city": ["Roma", None, "Bonn"], "deleted": [False, True, False]}
            >>> metrics = (
            ...     table.merge(changes, "t.id = s.id", source_alias="s", target_alias="t")
            ...     .when_matched_delete("s.deleted")
            ...     .when_matched_update({"city": "s.city"})
            ...     .when_not_matched_insert({"id": "s.id", "city": "s.city"}, "not s.deleted")
            ...     .execute()
            ... )
            >>> sorted(table.to_pyarrow_table()["city"].to_pylist())
            ['Bonn', 'Oslo', 'Roma']
        """
        from deltafast._expr.tree import CastMode
        from deltafast._ops.delete_update import dml_options
        from deltafast._ops.merge import MergeSettings

        del streamed_exec
        cast_mode = CastMode.ANSI if error_on_type_mismatch else CastMode.TRY
        commit = commit_options(commit_properties, post_commithook_properties)
        options: MergeOptions = {
            **dml_options(self._handle, writer_properties, commit, max_conflict_retries),
            "max_spill_size": max_spill_size,
            "max_temp_directory_size": max_temp_directory_size,
        }
        settings = MergeSettings(target_alias, source_alias, merge_schema, cast_mode)
        return self._merger(self._handle, source, predicate, settings, options, progress)

    @property
    def _merger(self) -> type[TableMerger]:
        from deltafast._ops.merge import TableMerger

        return TableMerger

    # --- maintenance of the log ------------------------------------------------------------------

    def create_checkpoint(
        self,
        *,
        form: Literal["auto", "v1", "v2"] = "auto",
        parts: int = 1,
        manifest: Literal["json", "parquet"] = "json",
        sidecars: bool = True,
        classic_name: bool = False,
        progress: Progress = False,
    ) -> None:
        """Write a checkpoint of this handle's version, so that readers need no older commits.

        Protocol: "Checkpoints", "V2 Spec".

        Args:
            form: `v1`, which every reader supports; `v2`, for tables with the feature `v2Checkpoint`; `auto`
                follows the table's `delta.checkpointPolicy`.
            parts: Number of files of a V1 checkpoint. More than one is deprecated by the protocol, and forbidden with
                `v2Checkpoint`.
            manifest: Format of the top-level file of a V2 checkpoint.
            sidecars: Whether a V2 checkpoint lists the table's files in sidecar files, or in its top-level file.
            classic_name: Use the file name of a V1 checkpoint for a V2 one: readers without V2 support find it and
                report the missing feature.
            progress: As for `scan`; counts the table's files, of which the total is not known in advance.

        Raises:
            DeltaProtocolError: This release cannot write the table, or the table's protocol does not support the form.
            InvalidArgumentError: The version is not published, or the arguments contradict each other.
            StorageError: A request to the store failed.

        Examples:
            >>> from pathlib import Path
            >>> table.create_checkpoint()
            >>> [path.name for path in Path("cities/_delta_log").glob("*.checkpoint.parquet")]
            ['00000000000000000000.checkpoint.parquet']
        """
        options: CheckpointOptions = {
            "form": form,
            "parts": parts,
            "json": manifest == ManifestFormat.JSON,
            "sidecars": sidecars,
            "classic_name": classic_name,
        }
        with counted(progress):
            _core.create_checkpoint(self._handle.snapshot, options)

    def cleanup_metadata(self, *, retention: timedelta | None = None, dry_run: bool = False) -> list[str]:
        """Delete commits, checkpoints and checksums that have expired.

        Protocol: "Metadata Cleanup".

        The newest expired checkpoint is kept, and so is everything after it: its version and later ones stay
        readable, older versions do not.

        Args:
            retention: Retention of commits; the table's `delta.logRetentionDuration` (30 days where it is not
                set) if None. Counted from midnight (UTC).
            dry_run: Only return the files that would be deleted.

        Returns:
            Paths below the table, in the order in which they are deleted.

        Raises:
            DeltaProtocolError: This release cannot write the table, or a catalog manages it.
            StorageError: A request to the store failed.

        Examples:
            >>> table.cleanup_metadata(dry_run=True)
            []
        """
        options: CleanupOptions = {"dry_run": dry_run}
        if retention is not None:
            options["retention_ms"] = int(retention.total_seconds() * 1000)
        # The newest version decides, wherever this handle points.
        newest = self._handle.snapshot.update()
        return _core.cleanup_metadata(newest, options)["files"]

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write a log compaction file for a range of commits, so that readers open fewer files.

        Protocol: "Log Compaction Files".

        Args:
            starting_version: The first version.
            ending_version: The last version; included.

        Raises:
            InvalidArgumentError: The range is not valid, or some of its commits do not exist.
            DeltaProtocolError: This release cannot write the table.
            StorageError: A request to the store failed.

        Examples:
            >>> from pathlib import Path
            >>> table.append({"id": [4], "city": ["Bonn"]})["num_added_rows"]
            1
            >>> table.compact_logs(0, 1)
            >>> [path.name for path in Path("cities/_delta_log").glob("*.compacted.json")]
            ['00000000000000000000.00000000000000000001.compacted.json']
        """
        _core.compact_logs(self._handle.snapshot, starting_version, ending_version)

    # --- maintenance of the files ----------------------------------------------------------------

    @also_by_position(*HOOKS_FIRST, "full", "keep_versions")
    def vacuum(
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: object | None = None,
        progress: Progress = False,
    ) -> list[str]:
        """Delete files that no version within the retention period needs.

        Kept are the files of the newest version, files that were removed less than `retention_hours` ago, and those
        of `keep_versions`, with their deletion vectors. Other files are deleted if they were written before the
        retention period. Hidden files and the targets of links are never deleted. If there are files to delete, two
        commits (`VACUUM START` and `VACUUM END`) record the operation.

        Protocol: "Vacuum Protocol Check", "Deletion Vectors".

        Args:
            retention_hours: Retention in hours; the table's `delta.deletedFileRetentionDuration` (168 where it is not
                set) if None.
            dry_run: Only return the files that would be deleted; this is the default.
            enforce_retention_duration: Refuse a shorter retention than the table's.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            full: Consider all files below the table, not only those that the log lists as removed.
            keep_versions: Versions that stay readable regardless of their age.
            inventory: The table's files, to use instead of a listing: any Arrow stream of
                `path` (below the table or absolute), `length` (bytes), `isDir` and `modificationTime` (ms).
            progress: As for `scan`; counts files that are deleted.

        Returns:
            Paths below the table, sorted.

        Raises:
            InvalidArgumentError: The retention is too short.
            DeltaProtocolError: This release cannot write the table, or a catalog manages it.
            StorageError: A request to the store failed; files that were deleted before that were not needed.

        Examples:
            >>> table.delete()["num_removed_files"]
            1
            >>> table.vacuum()
            []
            >>> len(table.vacuum(retention_hours=0, enforce_retention_duration=False))
            1
        """
        from deltafast._ops.vacuum import vacuum

        options: VacuumOptions = {
            "dry_run": dry_run,
            "enforce_retention": enforce_retention_duration,
            "full": full,
            "keep_versions": list(keep_versions or ()),
            "commit_options": commit_options(commit_properties, post_commithook_properties),
        }
        return vacuum(self._handle, retention_hours, options, inventory, progress)

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
        """Commit a new version with the contents of an older one.

        Files, schema and properties are restored. The protocol stays the higher one (see `protocol_downgrade_allowed`),
        and the high-water marks of row ids, column ids and identity columns never decrease.

        Protocol: "Requirements for Writers", "Row Tracking", "Column Mapping".

        Args:
            target: A version, or a timestamp (a datetime, UTC where it has no zone, or an ISO 8601 string): the version
                that was current then.
            ignore_missing_files: Leave out files that were vacuumed, instead of raising an error.
            protocol_downgrade_allowed: Restore the older version's protocol even if it is lower.
            commit_properties: See `CommitProperties`.
            post_commithook_properties: See `PostCommitHookProperties`.
            progress: As for `scan`; counts restored files, each of which is looked up in the store.

        Returns:
            `num_restored_file`, `num_removed_file`, `restored_files_size`, `removed_files_size` (bytes),
            `num_of_files_after_restore` and `table_size_after_restore`.

        Raises:
            VersionNotFoundError: The version is not readable any more.
            DataFileNotFoundError: Files of the version were deleted.
            CommitFailedError: A concurrent commit conflicts with the restore.

        Examples:
            >>> table.delete("id = 1")["num_deleted_rows"]
            1
            >>> table.restore(0)["num_restored_file"]
            1
            >>> table.version(), table.count()
            (2, 3)
        """
        if isinstance(target, int) and not isinstance(target, bool):
            version, timestamp_ms = target, None
        elif isinstance(target, (str, datetime)):
            version, timestamp_ms = None, to_epoch_ms(target)
        else:
            message = "target must be an int, a str or a datetime"
            raise TypeError(message)
        options: RestoreOptions = {
            "version": version,
            "timestamp_ms": timestamp_ms,
            "ignore_missing_files": ignore_missing_files,
            "protocol_downgrade_allowed": protocol_downgrade_allowed,
            "commit_options": commit_options(commit_properties, post_commithook_properties),
        }
        with counted(progress):
            metrics = self._handle.maintain(lambda newest: _core.restore(newest, options))
        return {**metrics}

    @also_by_position(*HOOKS_FIRST)
    def repair(
        self,
        dry_run: bool = False,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> dict[str, Any]:
        """Remove files from the log that are missing in the store, so that the others can be read.

        Args:
            dry_run: Only report the missing files.
            post_commithook_properties: See `PostCommitHookProperties`.
            commit_properties: See `CommitProperties`.
            progress: As for `scan`; counts files that are looked up in the store.

        Returns:
            `dry_run`, and `files_removed`: paths as in the log. If deletion vectors are missing, too,
            `vectors_missing` lists them; their data files stay, since it is unknown which rows were deleted.

        Raises:
            DeltaProtocolError: This release cannot write the table.
            StorageError: The store cannot be listed.

        Examples:
            >>> table.repair(dry_run=True)
            {'dry_run': True, 'files_removed': []}
        """
        options: RepairOptions = {
            "dry_run": dry_run,
            "commit_options": commit_options(commit_properties, post_commithook_properties),
        }
        with counted(progress):
            metrics = self._handle.maintain(lambda newest: _core.repair(newest, options))
        return {**metrics}

    def generate(self, *, progress: Progress = False) -> None:
        """Write symlink manifests of the newest version, for readers without Delta such as Presto and Athena.

        Each partition has one manifest below `_symlink_format_manifest`, with the URL of a data file in each line.

        Args:
            progress: As for `scan`; counts manifests.

        Raises:
            DeltaProtocolError: The table has column mapping or deletion vectors, which manifests cannot express.
            StorageError: A request to the store failed.

        Examples:
            >>> from pathlib import Path
            >>> table.generate()
            >>> [path.name for path in Path("cities/_symlink_format_manifest").iterdir()]
            ['manifest']
        """
        with counted(progress, "manifests"):
            _core.generate(self._handle.snapshot.update())

    def clone(
        self,
        target: str | os.PathLike[str],
        *,
        properties: Mapping[str, str] | None = None,
        replace: bool = False,
        storage_options: Mapping[str, str] | None = None,
        commit_properties: CommitProperties | None = None,
        progress: Progress = False,
    ) -> DeltaTable:
        """Create a shallow clone: a table that shares the files of this handle's version.

        No file is copied, so the clone is readable only as long as this table keeps the files: a vacuum of this table
        may delete them. With row tracking, rows get new ids in the clone.

        Protocol: "Add File and Remove File" (absolute paths).

        Args:
            target: Location of the new table, in the same store.
            properties: Properties of the new table, in addition to this table's.
            replace: Replace a table at `target` if it has no rows: its id, name, description and history
                stay, its columns and properties become those of this table.
            storage_options: As for `DeltaTable`; this handle's if None.
            commit_properties: See `CommitProperties`.
            progress: As for `scan`; counts files, of which the total is not known in advance.

        Returns:
            The new table.

        Raises:
            InvalidArgumentError: There is a table at `target` (with `replace`: one with rows), or it is a name in a
                catalog.
            DeltaProtocolError: This release cannot write such a table, or `target` is in another store.

        Examples:
            >>> table.clone("copy").count()
            3
        """
        chosen = self._handle.storage_options if storage_options is None else storage_options
        options: CloneOptions = {
            "properties": dict(properties or {}),
            "replace": replace,
            "commit_options": commit_options(commit_properties),
        }
        refuse_name(target, "clone")
        with counted(progress):
            place = address(target)
            _core.clone_table(self._handle.snapshot, place, options, text_options(chosen, place))
        with _made_before():
            return type(self)(target, storage_options=chosen)


def pinned(table: _Table) -> _Table:
    """Return another `DeltaTable` at the same version, which does not move when the first one does."""
    twin = object.__new__(type(table))
    twin.__dict__.update(table.__dict__, _handle=handle_of(table).pinned())
    return twin


@contextmanager
def _made_before() -> Generator[None]:
    """Add a note to a Ctrl-C that interrupts the opening of a new table: the table exists."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("the table was created before the interrupt: it is done, and is kept")
        raise


def _reopen(
    cls: type[DeltaTable], uri: str, version: int, config: DeltaTableConfig, options: OpenOptions
) -> DeltaTable:
    storage_options, *_ = options
    keyword_options = {name: value for name, value in options._asdict().items() if name != "storage_options"}
    return cls(uri, version, storage_options, *config, **keyword_options)


def _clustering_columns(configuration: str | None, schema: Schema) -> list[str]:
    """Logical names of the clustering columns, which the log keeps as lists of physical names."""
    if configuration is None:
        return []
    paths = cast("list[list[str]]", json.loads(configuration).get("clusteringColumns") or [])
    return [column_text(_logical_path(path, schema)) for path in paths]


def _logical_path(path: list[str], schema: Schema) -> list[str]:
    names: list[str] = []
    fields = schema.fields
    for part in path:
        field = next(
            (f for f in fields if part == f.metadata.get(COLUMN_MAPPING_PHYSICAL_NAME, f.name)),
            None,
        )
        names.append(part if field is None else field.name)
        fields = getattr(field and field.type, "fields", [])
    return names
