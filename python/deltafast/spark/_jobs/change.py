"""DELETE and UPDATE as Spark jobs.

One job finds the rows, reading only the condition's columns. With deletion vectors the core marks them as deleted, and
a second job writes the updated rows of an UPDATE; without them a second job rewrites the files that have such rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._delta_keys import IDENTITY_START
from deltafast._expr.constraints import bind_rows, bind_updates
from deltafast._expr.render import to_spark_sql
from deltafast._expr.session_calls import core_expression, uses_session
from deltafast._handle import handle_of
from deltafast._ops.delete_update import dml_metrics
from deltafast._util.options import commit_options
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.spark._jobs.folders import Folders
from deltafast.spark._jobs.row_bitmaps import marks
from deltafast.spark._jobs.session_functions import SessionFunctions
from deltafast.spark._jobs.values import CHANGED, Constraints, assigned
from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark._scan.row_positions import Rows
from deltafast.spark._session.session import Session
from deltafast.spark._write.change_files import KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._core_types import CommitOptions, MatchedRowsSummary
    from deltafast._expr.syntax import Syntax
    from deltafast._util.filters import Predicate
    from deltafast.spark._scan.snapshot import Listing
    from deltafast.table import DeltaTable
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["delete", "update"]


def delete(
    spark: Any,
    table: DeltaTable,
    condition: Predicate | None = None,
    *,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> dict[str, Any]:
    """Delete rows.

    Args:
        spark: The session, classic or Connect.
        table: A handle, which is updated to the new version.
        condition: Only rows for which it is true; all rows if None.
        commit_properties: Properties of the commit.
        post_commithook_properties: What to run after the commit.

    Returns:
        The metrics of `DeltaTable.delete`.

    Raises:
        InvalidArgumentError: The condition is invalid, or the table is append-only.
        DeltaProtocolError: The table needs something that only the core supports; the message names it.
        CommitFailedError: Another writer changed the same rows concurrently; nothing was committed.
        CommitUnknownError: The outcome of the commit cannot be determined.
    """
    job = _Job(spark, table, condition, commit_options(commit_properties, post_commithook_properties), deletes=True)
    with job.folders as folders:
        listing, found = job.find_rows()
        if listing is not None and not job.requirements["uses_deletion_vectors"] and found["has_partial_files"]:
            if job.requirements["writes_change_data"]:
                folders.write_changes(job.changes(job.chosen(listing), "delete"))
            partial = listing.only(found["emptied_files"], others=True)
            folders.write(job.rows.frame(partial).where(f"not coalesce({job.sql}, false)"))
        return job.commit("num_deleted_rows", "rewrite_time_ms")


def update(
    spark: Any,
    table: DeltaTable,
    updates: Mapping[str, str | Syntax],
    condition: Predicate | None = None,
    *,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> dict[str, Any]:
    """Set columns to new values.

    Args:
        spark: The session, classic or Connect.
        table: A handle, which is updated to the new version.
        updates: Spark SQL over the table, or its syntax, by column; fields of structs with dots.
        condition: Only rows for which it is true; all rows if None.
        commit_properties: Properties of the commit.
        post_commithook_properties: What to run after the commit.

    Returns:
        The metrics of `DeltaTable.update`.

    Raises:
        InvalidArgumentError: An expression is invalid, or the table is append-only.
        ConstraintViolatedError: A new row violates a constraint.
        DeltaProtocolError: The table needs something that only the core supports; the message names it.
        CommitFailedError: Another writer changed the same rows concurrently; nothing was committed.
        CommitUnknownError: The outcome of the commit cannot be determined.
    """
    if not updates:
        message = "there is nothing to update: no column is given a value"
        raise InvalidArgumentError(message)
    job = _Job(spark, table, condition, commit_options(commit_properties, post_commithook_properties), deletes=False)
    new = _NewValues(job, updates)
    with job.folders as folders:
        listing, _ = job.find_rows()
        if listing is not None and len(listing.files):
            if job.requirements["writes_change_data"]:
                before, after = job.chosen(listing), new.of(job.chosen(listing), None)
                changes = job.changes(before, "update_preimage").unionByName(job.changes(after, "update_postimage"))
                folders.write_changes(changes)
            if job.requirements["uses_deletion_vectors"]:
                folders.write(new.of(job.chosen(listing), None))
            else:
                folders.write(new.of(job.rows.frame(listing), job.sql))
        return job.commit("num_updated_rows")


class _Job:
    """The common part of both commands."""

    def __init__(
        self, spark: Any, table: DeltaTable, condition: Predicate | None, chosen: CommitOptions, *, deletes: bool
    ) -> None:
        self.session, self.table = Session(spark), table
        self.schema = table.schema().to_json()
        self.functions = SessionFunctions(self.session)
        self.context = self.session.expression_context._replace(functions=self.functions)
        bound = None if condition is None else bind_rows(condition, self.schema, self.context)
        # The core refuses a predicate that is not bound.
        tree = None if bound is None else bound.get("tree")
        #: The condition as Spark SQL.
        self.sql = None if tree is None else to_spark_sql(tree)
        predicate = None if bound is None else core_expression(bound)
        #: What the core can evaluate of the condition.
        self._tree = None if predicate is None else predicate.get("tree")
        kind = "delete" if deletes else "update"
        self._core = _core.ChangeJob(handle_of(table).snapshot, kind, chosen, predicate)
        self.requirements = self._core.requirements()
        if tree is not None and uses_session(tree):
            self.functions.check_deterministic([tree])
            self.requirements["selects_whole_files"] = False
        self.rows = Rows(self.session, table, self.requirements["row_tracking_columns"])
        self.folders = Folders(self.rows, self.rows.columns, self.requirements)
        self._deletes = deletes

    def find_rows(self) -> tuple[Listing | None, MatchedRowsSummary]:
        """Return the files that have rows to change, or None if no file is read, and the core's summary of the rows."""
        if self.requirements["selects_whole_files"]:
            summary = self._core.find_rows({})
            return (None if self._deletes else self._candidates()), summary
        listing = self._candidates()
        found, paths = marks(self.chosen(listing), listing) if len(listing.files) else _nothing()
        summary = self._core.find_rows(paths, found)
        return listing.only(paths.values()), summary

    def _candidates(self) -> Listing:
        return self.rows.listing(self._tree)

    def chosen(self, listing: Listing) -> Any:
        """Return the rows of these files for which the condition is true."""
        frame = self.rows.frame(listing)
        return frame if self.sql is None else frame.where(self.sql)

    def changes(self, frame: Any, kind: str) -> Any:
        """Return rows as changes of a kind."""
        from pyspark.sql import functions

        return frame.select(*self.rows.names(), functions.lit(kind).alias(KIND))

    def commit(self, *metrics: str) -> dict[str, Any]:
        """Commit the files in the folders, and return the metrics."""
        done = self._core.run(*self.folders.hand_over())
        handle_of(self.table).move(done.snapshot)
        return dml_metrics(done.metrics, *metrics)


def _nothing() -> tuple[Any, dict[int, str]]:
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.int64()) for name in ("file", "word", "bits")}), {}


class _NewValues:
    """The new values of an UPDATE."""

    def __init__(self, job: _Job, updates: Mapping[str, str | Syntax]) -> None:
        columns = job.rows.columns
        self._session, self._columns = job.session, columns
        self._row_tracking_columns = job.rows.row_tracking_columns
        values = bind_updates(updates, job.schema, job.context)
        job.functions.check_deterministic(value["tree"] for value in values)
        self._given = {value["path"][0] for value in values}
        for field in columns.fields:
            if field["name"] in self._given and IDENTITY_START in field.get("metadata", {}):
                message = "an identity column cannot be updated: its values are the table's to give"
                raise InvalidArgumentError(
                    message,
                    column=field["name"],
                    code=ErrorCode.IDENTITY_COLUMN_UPDATED,
                    parameters={"column": field["name"]},
                )
        self._values = values
        self._constraints = Constraints(_core.table_constraints(handle_of(job.table).snapshot), columns)

    def of(self, frame: Any, sql: str | None) -> Any:
        """Return the rows with new values where the condition is true, or in all rows without one."""
        from pyspark.sql import functions

        frame = frame.withColumn(CHANGED, functions.expr("true" if sql is None else f"coalesce({sql}, false)"))
        rows = self._changed(frame, assigned(self._session, self._columns, self._values))
        constraints = self._constraints
        follows = {name: constraints.computed(name) for name in constraints.generated if name not in self._given}
        if follows:
            rows = self._changed(rows, follows)
        # A changed row loses its commit version and so gets that of the new commit.
        if self._row_tracking_columns:
            rows = self._changed(rows, {self._row_tracking_columns[1]: functions.lit(None).cast("bigint")})
        return constraints.checked(rows, tuple(self._given))

    def _changed(self, frame: Any, new: dict[str, Any]) -> Any:
        from pyspark.sql import functions

        def column(name: str) -> Any:
            old = functions.col(quoted(name))
            if name not in new:
                return old
            return functions.when(functions.col(CHANGED), new[name]).otherwise(old).alias(name)

        return frame.select(*(column(name) for name in frame.columns))
