"""How an operation is committed, and the actions of transactions; the names of `deltalake.transaction`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = [
    "AddAction",
    "CommitProperties",
    "PostCommitHookProperties",
    "RemoveAction",
    "Transaction",
]

Mode = Literal["error", "append", "overwrite", "ignore"]


@dataclass(frozen=True)
class Transaction:
    """The version of an application that a commit records, so that the application never writes one twice."""

    #: Identifies the application.
    app_id: str
    #: Its version.
    version: int
    #: When, in milliseconds since the epoch; the time of the commit if None.
    last_updated: int | None = None


@dataclass
class CommitProperties:
    """How to commit."""

    #: Further keys for the commit's `commitInfo`. `userMetadata`, `userId` and `userName` must be texts.
    custom_metadata: dict[str, Any] | None = None
    #: How often to try again when other writers were first; 10,000 times if None.
    max_commit_retries: int | None = None
    #: Versions of applications to record.
    app_transactions: list[Transaction] | None = None


@dataclass
class PostCommitHookProperties:
    """What follows a commit."""

    #: Whether to write a checkpoint when one is due by `delta.checkpointInterval`.
    create_checkpoint: bool = True
    #: Whether to delete what has expired of the log after a checkpoint; the table's
    #: `delta.enableExpiredLogCleanup` decides if None.
    cleanup_expired_logs: bool | None = None
    #: After how many versions the commits since the last of them are compacted into one file beside them, at least 2;
    #: a version with a checkpoint needs none. None for never.
    log_compaction_interval: int | None = None


@dataclass
class AddAction:
    """A data file that is to become part of a table."""

    #: Its path below the table, URI-encoded.
    path: str
    #: Bytes.
    size: int
    #: Text of the value of each partition column, None for null.
    partition_values: Mapping[str, str | None]
    #: Milliseconds since the epoch.
    modification_time: int
    #: Whether the file changes what rows the table has.
    data_change: bool
    #: Statistics as JSON text.
    stats: str = ""


@dataclass
class RemoveAction:
    """A data file that is to end."""

    #: Its path as in the log.
    path: str
    #: Whether the file's rows leave the table.
    data_change: bool = True
    #: Milliseconds since the epoch; the time of the commit if None.
    deletion_timestamp: int | None = None
    #: As in its add.
    partition_values: Mapping[str, str | None] | None = None
    #: Bytes.
    size: int | None = None
    tags: dict[str, str | None] | None = field(default=None)

    def __repr__(self) -> str:
        tags = "" if self.tags is None else f", tags={self.tags}"
        return (
            f"RemoveAction(path={self.path}, data_change={self.data_change}, "
            f"deletion_timestamp={self.deletion_timestamp}, size={self.size}, "
            f"partition_values={self.partition_values}{tags})"
        )
