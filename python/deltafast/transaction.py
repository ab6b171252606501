"""Commit options and the actions of transactions; the names are those of `deltalake.transaction`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltafast.exceptions import printable

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = [
    "AddAction",
    "CommitProperties",
    "PostCommitHookProperties",
    "RemoveAction",
    "Transaction",
]


@dataclass(frozen=True)
class Transaction:
    """An application transaction: the version that a commit records, so that the application writes it only once.

    Examples:
        >>> from deltafast import CommitProperties, DeltaTable, Transaction, write_deltalake
        >>> recorded = CommitProperties(app_transactions=[Transaction("import", 7)])
        >>> write_deltalake("cities", {"id": [1]}, commit_properties=recorded)
        >>> DeltaTable("cities").transaction_version("import")
        7
    """

    #: Identifies the application.
    app_id: str
    #: Version of the application.
    version: int
    #: Milliseconds since the epoch; the time of the commit if None.
    last_updated: int | None = None


@dataclass
class CommitProperties:
    """Options of a commit.

    Examples:
        >>> from deltafast import CommitProperties, DeltaTable, write_deltalake
        >>> properties = CommitProperties(custom_metadata={"job": "import"})
        >>> write_deltalake("cities", {"id": [1]}, commit_properties=properties)
        >>> DeltaTable("cities").history()[0]["job"]
        'import'
    """

    #: Additional keys of the commit's `commitInfo`. `userMetadata`, `userId` and `userName` must be strings.
    custom_metadata: dict[str, Any] | None = None
    #: Number of retries when another writer creates the version first; 10,000 if None.
    max_commit_retries: int | None = None
    #: Application transactions to record.
    app_transactions: list[Transaction] | None = None


@dataclass
class PostCommitHookProperties:
    """Maintenance after a commit.

    Examples:
        >>> from deltafast import PostCommitHookProperties, write_deltalake
        >>> hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
        >>> write_deltalake("cities", {"id": [1]}, post_commithook_properties=hooks)
    """

    #: Whether to write a checkpoint when one is due by `delta.checkpointInterval`.
    create_checkpoint: bool = True
    #: Whether to delete expired log files after a checkpoint; the table's
    #: `delta.enableExpiredLogCleanup` if None.
    cleanup_expired_logs: bool | None = None
    #: Number of versions, at least 2, after which their commits are compacted into one additional file; versions with
    #: a checkpoint are left out. Never if None.
    log_compaction_interval: int | None = None
    #: Whether small files are compacted if the version left many of them in a partition; the table's
    #: `delta.autoOptimize.autoCompact` if None.
    auto_compact: bool | None = None
    #: Number of small files in a partition from which they are compacted; 50 if None.
    auto_compact_min_files: int | None = None
    #: Bytes of a new file of auto compaction; 128 MiB if None.
    auto_compact_max_file_size: int | None = None
    #: Bytes below which a file is small; half of `auto_compact_max_file_size` if None.
    auto_compact_min_file_size: int | None = None


@dataclass
class AddAction:
    """A data file to add to a table.

    deltafast's functions take the path as it is in the log, URI-encoded: the file `day=mon 1/a.parquet` has the path
    `day=mon%201/a.parquet`. The functions of the name `deltalake` take the plain path and encode it, as `deltalake`
    does. The commit is refused unless the path is that of an existing file of this size below the table's folder.

    Examples:
        >>> from urllib.parse import quote
        >>> from deltafast.transaction import AddAction
        >>> path = quote("day=mon 1/a.parquet", safe="/=")
        >>> file = AddAction(path, 1_024, {"day": "mon 1"}, 1_790_000_000_000, data_change=True)
        >>> file.path, file.partition_values
        ('day=mon%201/a.parquet', {'day': 'mon 1'})
    """

    #: Path below the table: URI-encoded for deltafast's functions, plain for those of the name `deltalake`.
    path: str
    #: Bytes; exactly those of the file.
    size: int
    #: Value of each partition column as a string, None for null.
    partition_values: Mapping[str, str | None]
    #: Milliseconds since the epoch.
    modification_time: int
    #: Whether the file changes the rows of the table.
    data_change: bool
    #: Statistics as a JSON string.
    stats: str = ""


@dataclass
class RemoveAction:
    """A data file to remove from a table.

    The commit is refused unless the table has the file. Its partition values, size, statistics and deletion vector are
    taken from the log.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> from deltafast.transaction import RemoveAction
        >>> write_deltalake("cities", {"id": [1]})
        >>> table = DeltaTable("cities")
        >>> table.create_write_transaction([RemoveAction(table.files()[0])], "append", table.schema())
        >>> table.count()
        0
    """

    #: Path as in the log and in `DeltaTable.files`; for the functions of the name `deltalake` the plain path.
    path: str
    #: Whether the removal changes the rows of the table.
    data_change: bool = True
    #: Milliseconds since the epoch; the time of the commit if None.
    deletion_timestamp: int | None = None
    #: Without effect: those of the log are used.
    partition_values: Mapping[str, str | None] | None = None
    #: Without effect: that of the log is used.
    size: int | None = None
    #: Those of the log if None.
    tags: dict[str, str | None] | None = field(default=None)

    def __repr__(self) -> str:
        tags = "" if self.tags is None else f", tags={self.tags}"
        return (
            f"RemoveAction(path={printable(self.path)}, data_change={self.data_change}, "
            f"deletion_timestamp={self.deletion_timestamp}, size={self.size}, "
            f"partition_values={self.partition_values}{tags})"
        )
