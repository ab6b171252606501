"""The options of a stream that follows changes of the schema, and its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._handle import handle_of
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.spark._streaming.batch_planner import StreamPlan
from deltafast.spark._streaming.checkpoint_files import CheckpointFolder
from deltafast.spark._streaming.schema_log import SchemaLog, log_folder
from deltafast.spark._streaming.tracked_plan import TrackedPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.spark._session.session import Session
    from deltafast.spark._streaming.options import StreamOptions
    from deltafast.table import DeltaTable

__all__ = ["planned"]

_CONF = "spark.databricks.delta.streaming."


def planned(
    session: Session, table: DeltaTable, options: StreamOptions, given: Mapping[str, str], source: str | None
) -> StreamPlan:
    """Return the plan of a stream, with a schema log if the reader has the option.

    Args:
        session: The session of the query.
        table: A handle on the newest version of the table.
        options: The options of the stream.
        given: The options of the reader, by their names in lower case.
        source: The folder of the source in the checkpoint of the query; None if the query is not started yet.

    Raises:
        InvalidArgumentError: The log is not below the checkpoint, or of another source or table.
        SchemaMismatchError: The program must allow a change of the schema first.
    """
    location = given.get("schematrackinglocation", given.get("schemalocation"))
    if location is None:
        return StreamPlan(table, options)
    table_id = handle_of(table).metadata().id
    if source is not None:
        _check_below(session, CheckpointFolder(session, location).location, source)
    folder = CheckpointFolder(session, log_folder(location, table_id, given.get("streamingsourcetrackingid")))
    plan = TrackedPlan(table, options, SchemaLog(folder, table_id, table.table_uri), source or "")
    if source is not None:
        plan.check_start(given, session.conf)
    elif _is_set(session, "schemaTracking.mergeConsecutiveSchemaChanges.enabled", default="true"):
        plan.merge_changes()
    return plan


def _check_below(session: Session, location: str, source: str) -> None:
    """Reject a schema log outside the checkpoint, whose entries another checkpoint would not know."""
    checkpoint = source.rpartition("/sources/")[0]
    is_below = location == checkpoint or location.startswith(f"{checkpoint.rstrip('/')}/")
    if not is_below and not _is_set(session, "allowSchemaLocationOutsideCheckpointLocation", default="false"):
        message = (
            f"schemaTrackingLocation is {location}, which is not below the checkpoint {checkpoint}: choose a folder "
        )
        message += "within the checkpoint"
        raise InvalidArgumentError(
            message,
            code=ErrorCode.SCHEMA_LOG_OUTSIDE_CHECKPOINT,
            parameters={"location": location, "checkpoint": checkpoint},
        )


def _is_set(session: Session, name: str, *, default: str) -> bool:
    return str(session.conf(f"{_CONF}{name}", default)).lower() == "true"
