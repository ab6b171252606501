"""How an operation is committed, and transactions made of ready actions; the names of `deltalake.transaction`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from deltafast import _core
from deltafast._util.locations import address
from deltafast._util.options import choices, names, property_strings, text_options
from deltafast.exceptions import InvalidArgumentError
from deltafast.schema import Schema

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from deltafast._util.filters import FilterType
    from deltafast.schema import ArrowSchemaExportable
    from deltafast.table import DeltaTable

__all__ = [
    "AddAction",
    "CommitProperties",
    "PostCommitHookProperties",
    "RemoveAction",
    "Transaction",
    "create_table_with_add_actions",
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

    def _action(self) -> dict[str, Any]:
        values = dict(self.partition_values)
        add: dict[str, Any] = {"path": self.path, "partitionValues": values, "size": self.size}
        add |= {"modificationTime": self.modification_time, "dataChange": self.data_change}
        return {"add": add | ({"stats": self.stats} if self.stats else {})}


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

    def _action(self) -> dict[str, Any]:
        remove = {
            "path": self.path,
            "dataChange": self.data_change,
            "deletionTimestamp": self.deletion_timestamp,
            "partitionValues": None if self.partition_values is None else dict(self.partition_values),
            "size": self.size,
            "tags": self.tags,
        }
        if self.partition_values is None or self.size is None:
            remove["extendedFileMetadata"] = False
        return {"remove": {key: value for key, value in remove.items() if value is not None}}


def create_table_with_add_actions(
    table_uri: str | os.PathLike[str],
    schema: Schema | ArrowSchemaExportable,
    add_actions: Sequence[AddAction],
    mode: Mode = "error",
    partition_by: list[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | bool | int | None] | None = None,
    storage_options: dict[str, str] | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Make a table of data files that are there already, or add them to one.

    The files are taken as they are: their rows are not checked against the schema.

    Args:
        table_uri: Path or URL of the table; the files lie below it.
        schema: The table's schema.
        add_actions: The files.
        mode: What to do where there is a table.
        partition_by: Partition columns.
        name: Name of a new table.
        description: Description of a new table.
        configuration: Properties of a new table.
        storage_options: As for `DeltaTable`.
        commit_properties: How to commit.
        post_commithook_properties: What follows the commit.

    Raises:
        InvalidArgumentError: There is a table already, or an action is wrong.
        SchemaMismatchError: The schema does not fit the table's.
    """
    options = {
        "mode": mode,
        "partition_by": names(partition_by),
        "name": name,
        "description": description,
        "configuration": property_strings(configuration),
        "choices": choices(commit_properties, post_commithook_properties),
    }
    _commit(address(table_uri), schema, add_actions, options, storage_options=text_options(storage_options))


def commit_actions(
    table: DeltaTable,
    actions: Sequence[AddAction | RemoveAction],
    mode: str,
    schema: Schema | ArrowSchemaExportable,
    partition_by: list[str] | str | None,
    partition_filters: FilterType | None,
    properties: dict[str, Any],
) -> _core.Snapshot | None:
    """`DeltaTable.create_write_transaction`; gives the table's new version."""
    options = {
        "mode": mode,
        "partition_by": names(partition_by),
        "has_predicate": partition_filters is not None,
        "choices": properties,
    }
    if mode == "overwrite" and any(isinstance(action, RemoveAction) for action in actions):
        message = "a RemoveAction cannot be given with mode='overwrite', which ends the files anyway; leave it out"
        raise InvalidArgumentError(message)
    if mode == "overwrite" and partition_filters is None:
        options["schema_mode"] = "overwrite"
    return _commit(table._given_uri, schema, actions, options, snapshot=table._snapshot, predicate=partition_filters)


def _commit(
    uri: str,
    schema: Schema | ArrowSchemaExportable,
    actions: Sequence[AddAction | RemoveAction],
    options: dict[str, Any],
    *,
    storage_options: dict[str, str] | None = None,
    snapshot: _core.Snapshot | None = None,
    predicate: FilterType | None = None,
) -> _core.Snapshot | None:
    from deltafast._expr.demands import bind_demands

    delta = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
    for action in actions:
        if not isinstance(action, (AddAction, RemoveAction)):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"an action must be an AddAction or a RemoveAction, not a {type(action).__name__}"
            raise TypeError(message)
    write = _core.TableWrite.plan(
        uri,
        json.dumps(options),
        actions="\n".join(json.dumps(action._action()) for action in actions),
        schema=delta.to_json(),
        snapshot=snapshot,
        storage_options=storage_options,
    )
    if write is None:
        return snapshot
    # Rows that are in files already are not checked: nothing else is known of them.
    return write.run(bind_demands(write.demands, write.schema, predicate))[0]
