"""Commits of existing data files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast import _core
from deltafast._catalog_tables.table_handle import refuse_name
from deltafast._util.locations import address
from deltafast._util.options import commit_options, names, property_strings, text_options
from deltafast._util.write_modes import WriteMode
from deltafast.exceptions import InvalidArgumentError
from deltafast.schema import Schema
from deltafast.transaction import AddAction, RemoveAction

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from deltafast._core_types import Action, Add, CommitOptions, Remove, SaveMode, WriteOptions
    from deltafast._handle import TableHandle
    from deltafast._util.filters import FilterType
    from deltafast.schema import ArrowSchemaExportable
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["commit_actions", "create_table_with_add_actions"]


def create_table_with_add_actions(
    table_uri: str | os.PathLike[str],
    schema: Schema | ArrowSchemaExportable,
    add_actions: Sequence[AddAction],
    mode: SaveMode = "error",
    partition_by: list[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | bool | int | None] | None = None,
    storage_options: dict[str, str] | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Create a table from existing data files, or add them to a table.

    The rows of the files are not checked against the schema. Each file must exist below the table's folder.

    Args:
        table_uri: Path or URL of the table; the files are located below it.
        schema: Schema of the table.
        add_actions: The files; their paths are URI-encoded.
        mode: Handling of an existing table.
        partition_by: Partition columns.
        name: Name of a new table.
        description: Description of a new table.
        configuration: Properties of a new table.
        storage_options: As for `DeltaTable`.
        commit_properties: Options of the commit.
        post_commithook_properties: Maintenance after the commit.

    Raises:
        InvalidArgumentError: The table exists already, or an action is invalid: its path is not URI-encoded, leads out
            of the table or to its log, or its size is not the file's.
        DataFileNotFoundError: A file does not exist.
        SchemaMismatchError: The schema does not match the table's.

    Examples:
        >>> import os
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> from deltafast import DeltaTable, create_table_with_add_actions
        >>> from deltafast.transaction import AddAction
        >>> rows = pa.table({"id": [1, 2]})
        >>> os.mkdir("numbers")
        >>> pq.write_table(rows, "numbers/a.parquet")
        >>> file = AddAction("a.parquet", os.path.getsize("numbers/a.parquet"), {}, 1_790_000_000_000, True)
        >>> create_table_with_add_actions("numbers", rows.schema, [file], "error", [])
        >>> DeltaTable("numbers").count()
        2
    """
    options: WriteOptions = {
        "mode": mode,
        "partition_by": names(partition_by),
        "name": name,
        "description": description,
        "configuration": property_strings(configuration),
        "commit_options": commit_options(commit_properties, post_commithook_properties),
    }
    refuse_name(table_uri, "create_table_with_add_actions")
    uri = address(table_uri)
    _commit(uri, schema, add_actions, options, storage_options=text_options(storage_options, uri))


def commit_actions(
    table: TableHandle,
    actions: Sequence[AddAction | RemoveAction],
    mode: SaveMode,
    schema: Schema | ArrowSchemaExportable,
    partition_by: list[str] | str | None,
    partition_filters: FilterType | None,
    properties: CommitOptions,
) -> _core.Snapshot | None:
    """See `DeltaTable.create_write_transaction`; returns the table's new version."""
    options: WriteOptions = {
        "mode": mode,
        "partition_by": names(partition_by),
        "has_predicate": partition_filters is not None,
        "commit_options": properties,
    }
    if mode == WriteMode.OVERWRITE and any(isinstance(action, RemoveAction) for action in actions):
        message = "a RemoveAction cannot be given with mode='overwrite', which removes the files anyway; leave it out"
        raise InvalidArgumentError(message)
    if mode == WriteMode.OVERWRITE and partition_filters is None:
        options["schema_mode"] = "overwrite"
    return _commit(table.given_uri, schema, actions, options, snapshot=table.snapshot, predicate=partition_filters)


def _commit(
    uri: str,
    schema: Schema | ArrowSchemaExportable,
    actions: Sequence[AddAction | RemoveAction],
    options: WriteOptions,
    *,
    storage_options: dict[str, str] | None = None,
    snapshot: _core.Snapshot | None = None,
    predicate: FilterType | None = None,
) -> _core.Snapshot | None:
    from deltafast._expr.constraints import bind_constraints, bind_rows
    from deltafast._expr.context import ExpressionContext
    from deltafast._expr.stored import table_to_store
    from deltafast._util.dialect import Dialect

    context = ExpressionContext(Dialect.DELTAFAST)

    delta = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
    for action in actions:
        if not isinstance(action, (AddAction, RemoveAction)):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"an action must be an AddAction or a RemoveAction, not a {type(action).__name__}"
            raise TypeError(message)
    configuration = options.get("configuration") or {}
    text, configuration = table_to_store(delta.to_json(), configuration, context)
    options = {**options, "configuration": configuration}
    write = _core.TableWrite.plan(
        uri,
        options,
        actions=[_log_action(action) for action in actions],
        schema=text,
        snapshot=snapshot,
        storage_options=storage_options,
    )
    if write is None:
        return snapshot
    # Rows of existing files are not checked, since they are not read.
    rows = None if predicate is None else bind_rows(predicate, write.schema, context)
    return write.run(bind_constraints(write.constraints, write.schema, context, rows)).snapshot


def _log_action(action: AddAction | RemoveAction) -> Action:
    """Return the action as in the log."""
    if isinstance(action, AddAction):
        values = dict(action.partition_values)
        add: Add = {
            "path": action.path,
            "partitionValues": values,
            "size": action.size,
            "modificationTime": action.modification_time,
            "dataChange": action.data_change,
            "stats": action.stats or None,
        }
        return {"add": add}
    # The core completes it by the file's add action.
    remove: Remove = {
        "path": action.path,
        "dataChange": action.data_change,
        "deletionTimestamp": action.deletion_timestamp,
        "tags": action.tags,
    }
    return {"remove": remove}
