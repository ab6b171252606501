"""`DeltaTable._table`: the methods that libraries call on the object behind `deltalake`'s handle, with its names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from deltafast._handle import Metadata, TableHandle
    from deltafast._util.filters import FilterType, Predicate
    from deltafast.schema import Schema
    from deltafast.transaction import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction

__all__ = ["RawDeltaTable"]


class RawDeltaTable:
    """The inner object of a `DeltaTable`, returned by `DeltaTable._table`.

    Args:
        table: The `DeltaTable` to which calls are forwarded.
        handle: Its handle.
        vacuum: `DeltaTable.vacuum`, even if a subclass overrides it.
    """

    def __init__(self, table: Any, handle: TableHandle, vacuum: Callable[..., list[str]]) -> None:
        self._table = table
        self.handle = handle
        self._vacuum = vacuum

    @property
    def schema(self) -> Schema:
        """Return the table's schema."""
        return self._table.schema()

    def table_uri(self) -> str:
        """Return the table's location."""
        return self._table.table_uri

    def version(self) -> int:
        """Return the version that the table points at."""
        return self._table.version()

    def get_latest_version(self) -> int:
        """Return the newest version."""
        return self.handle.snapshot.update().version

    def metadata(self) -> Metadata:
        """Return the table's metadata."""
        return self._table.metadata()

    def protocol_versions(self) -> tuple[int, int, list[str] | None, list[str] | None]:
        """Return the table's protocol."""
        return self._table.protocol()

    def table_config(self) -> tuple[bool, int, bool]:
        """Return the loading options."""
        return self.handle.config

    def load_version(self, version: int) -> None:
        """Point at another version."""
        self._table.load_as_version(version)

    def load_with_datetime(self, ds: str) -> None:
        """Point at the version that was current at a timestamp."""
        self._table.load_as_version(ds)

    def update_incremental(self) -> None:
        """Point at the newest version."""
        self._table.update_incremental()

    def files(self, file_pruning_predicate: Predicate | None = None) -> list[str]:
        """Return the absolute locations of the files."""
        return self._table.file_uris(file_pruning_predicate=file_pruning_predicate)

    def file_uris(self, file_pruning_predicate: Predicate | None = None) -> list[str]:
        """Return the absolute locations of the files."""
        return self._table.file_uris(file_pruning_predicate=file_pruning_predicate)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """Return the table's files."""
        return self._table.get_add_actions(flatten)

    def get_add_file_sizes(self) -> dict[str, int]:
        """Return the bytes of each file by its path in the log."""
        rows = self._table.get_add_actions(columns=["path", "size_bytes"])
        sizes = zip(rows.column("path").to_pylist(), rows.column("size_bytes").to_pylist(), strict=True)
        return dict(cast("Iterable[tuple[str, int]]", sizes))

    def get_active_partitions(
        self, file_pruning_predicate: Predicate | None = None
    ) -> frozenset[frozenset[tuple[str, str | None]]]:
        """Return the distinct partition values of the files."""
        found = self._table.partitions(file_pruning_predicate=file_pruning_predicate)
        return frozenset(frozenset(values.items()) for values in found)

    def history(self, limit: int | None = None) -> list[str]:
        """Return the commits as JSON, newest first, with the timestamps of their writers."""
        entries = self.handle.snapshot.history(limit, writers_time=True)
        return [json.dumps(entry, separators=(",", ":"), ensure_ascii=False) for entry in entries]

    def vacuum(
        self,
        dry_run: bool,
        retention_hours: float | None,
        enforce_retention_duration: bool,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        **options: Any,
    ) -> list[str]:
        """Run `DeltaTable.vacuum`; the arguments have another order."""
        return self._vacuum(
            retention_hours,
            dry_run,
            enforce_retention_duration,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
            full=full,
            keep_versions=keep_versions,
            **options,
        )

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version that an application has recorded."""
        return self._table.transaction_version(app_id)

    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        mode: str,
        partition_by: list[str],
        schema: Schema,
        partitions_filters: FilterType | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit existing data files; the arguments have another order than those of `DeltaTable`'s method."""
        self._table.create_write_transaction(
            actions,
            mode,
            schema,
            partition_by,
            partitions_filters,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )

    def __getattr__(self, name: str) -> Any:
        message = f"DeltaTable._table.{name} is not offered by deltafast: use the methods of DeltaTable"
        raise AttributeError(message, name=name, obj=self)
