"""DELETE, UPDATE, MERGE and OPTIMIZE: selection of the engine that runs them.

They run in the core, within the driver's process, which is several times as fast where one machine is enough, or as
Spark jobs. The setting `spark.deltafast.engine` is `driver`, `jobs` or `auto` (the default): jobs if only Spark can
evaluate an expression, and on a cluster if the files that may have to be read are larger than 16 GiB, unless jobs
refuse the table.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError, warn
from deltafast.spark import _jobs
from deltafast.spark._jobs.optimize import IN_DRIVER, JobOptimizer
from deltafast.spark._jobs.source import check_source
from deltafast.spark._session.cached_rows import refresh_dependents
from deltafast.spark._session.commit_settings import CommitSettings
from deltafast.spark._session.session import quiet
from deltafast.spark._streaming.executor_batches import streamed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from deltafast._expr.syntax import Syntax
    from deltafast._ops.merge import TableMerger
    from deltafast._ops.merge_clause import MergeClause
    from deltafast._ops.optimize import TableOptimizer
    from deltafast.spark._session.session import Session
    from deltafast.table import DeltaTable

__all__ = ["MergeRequest", "committing", "delete", "merge", "optimizer", "update"]


_SETTING = "spark.deltafast.engine"
#: Minimum number of bytes of files that executors change.
_LARGE = 16 << 30


class CommandEngine(StrEnum):
    """What runs DELETE, UPDATE, MERGE and OPTIMIZE, by the values of the setting."""

    AUTO = "auto"
    #: The core, in the driver.
    DRIVER = "driver"
    #: Jobs of Spark, on the executors.
    JOBS = "jobs"


class MergeRequest(NamedTuple):
    """A MERGE as the user wrote it, without the rows of its source."""

    #: Spark SQL over both sides, or its syntax.
    condition: str | Syntax
    target_alias: str | None
    source_alias: str | None
    clauses: tuple[MergeClause, ...]
    #: Whether columns of the source that a clause assigns are added to the table.
    evolve: bool = False


def delete(session: Session, table: DeltaTable, condition: str | Syntax | None) -> dict[str, Any]:
    """Delete rows.

    Args:
        session: The session.
        table: A handle at the version that is changed; it is updated to the new one.
        condition: Spark SQL over the table's columns, or its syntax; all rows if None.

    Returns:
        The metrics of `DeltaTable.delete`.

    Raises:
        DeltaError: As `DeltaTable.delete`.
    """
    with committing(session, table) as options:
        if options is None:
            return {"num_deleted_rows": 0}
        return _run(
            session,
            table,
            condition,
            lambda: _jobs.delete(session.spark, table, cast("Any", condition), **options),
            lambda: table.delete(cast("Any", condition), **options),
        )


def update(
    session: Session,
    table: DeltaTable,
    values: Mapping[str, str | Syntax],
    condition: str | Syntax | None,
) -> dict[str, Any]:
    """Set columns to new values.

    Args:
        session: The session.
        table: A handle at the version that is changed; it is updated to the new one.
        values: Spark SQL by column, or its syntax.
        condition: Spark SQL over the table's columns, or its syntax; all rows if None.

    Returns:
        The metrics of `DeltaTable.update`.

    Raises:
        DeltaError: As `DeltaTable.update`.
    """
    with committing(session, table) as options:
        if options is None:
            return {"num_updated_rows": 0}
        return _run(
            session,
            table,
            condition,
            lambda: _jobs.update(session.spark, table, values, cast("Any", condition), **options),
            lambda: table.update(cast("Any", values), predicate=cast("Any", condition), **options),
        )


def merge(session: Session, table: DeltaTable, source: Any, request: MergeRequest) -> dict[str, Any]:
    """Merge a data frame into a table.

    Args:
        session: The session.
        table: A handle at the version that is changed; it is updated to the new one.
        source: The data frame.
        request: The condition and the clauses.

    Returns:
        The metrics of `TableMerger.execute`.

    Raises:
        DeltaError: As `TableMerger.execute`.
    """
    check_source(source)
    with committing(session, table) as options:
        if options is None:
            return dict.fromkeys((f"num_target_rows_{kind}" for kind in ("inserted", "updated", "deleted")), 0)

        def by_jobs() -> dict[str, Any]:
            with quiet():
                columns = source.limit(0).toArrow()
            return _jobs.merge(session.spark, table, source, _merger(table, columns, request, options))

        def in_driver() -> dict[str, Any]:
            with streamed(source) as rows:
                return _merger(table, rows, request, options).execute()

        return _run(session, table, None, by_jobs, in_driver)


@contextmanager
def committing(session: Session, table: DeltaTable) -> Generator[dict[str, Any] | None]:
    """Apply the session's settings to a commit, after which Spark reads again what it has cached of the table.

    Yields:
        The options of the command; None if the table has the session's transaction already.
    """
    settings = CommitSettings.of(session)
    if settings.is_committed(table.transaction_version):
        yield None
    else:
        yield {"commit_properties": settings.properties, "post_commithook_properties": settings.hooks}
        refresh_dependents(session, table.table_uri)
    settings.end()


def optimizer(session: Session, table: DeltaTable) -> TableOptimizer:
    """Return the object that rewrites a table's files: by jobs on a cluster if the whole table is that large."""
    if not _by_jobs(session, table, None):
        return table.optimize
    return JobOptimizer(session, table, table.optimize if _engine(session) is CommandEngine.AUTO else None)


def _merger(table: DeltaTable, rows: Any, request: MergeRequest, options: dict[str, Any]) -> TableMerger:
    """Return the embedded command, with all clauses."""
    merger = table.merge(
        rows,
        cast("Any", request.condition),
        source_alias=request.source_alias,
        target_alias=request.target_alias,
        merge_schema=request.evolve,
        **options,
    )
    for clause in request.clauses:
        merger.add_clause(clause)
    return merger


def _run(
    session: Session,
    table: DeltaTable,
    condition: str | Syntax | None,
    by_jobs: Callable[[], dict[str, Any]],
    in_driver: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Run a command by the engine for it; with `auto`, a table that jobs refuse is changed in the driver.

    With `auto`, jobs also run a command whose expressions only Spark can evaluate.
    """
    try:
        if not _by_jobs(session, table, condition):
            return in_driver()
    except (UnsupportedExpressionError, DeltaProtocolError) as error:
        # The core refuses an expression before the command begins.
        if _engine(session) is not CommandEngine.AUTO:
            raise
        try:
            return by_jobs()
        except DeltaProtocolError as refused:
            raise error from refused
    try:
        return by_jobs()
    except DeltaProtocolError as error:
        if _engine(session) is not CommandEngine.AUTO:
            raise
        warn(f"{IN_DRIVER}: {error}")
        return in_driver()


def _engine(session: Session) -> CommandEngine:
    """Return the setting.

    Raises:
        InvalidArgumentError: It has another value.
    """
    engine = str(session.conf(_SETTING, CommandEngine.AUTO.value)).lower()
    try:
        return CommandEngine(engine)
    except ValueError:
        message = f"{_SETTING} must be auto, driver or jobs, not {engine!r}"
        raise InvalidArgumentError(message) from None


def _by_jobs(session: Session, table: DeltaTable, condition: str | Syntax | None) -> bool:
    """Return whether the executors run the command."""
    engine = _engine(session)
    if engine is not CommandEngine.AUTO:
        return engine is CommandEngine.JOBS
    if str(session.conf("spark.master", "")).startswith("local") or handle_of(table).snapshot.size_in_bytes() < _LARGE:
        return False
    found = handle_of(table).snapshot.files(
        columns=["size_bytes"], predicate=handle_of(table).bind(cast("Any", condition))
    )
    sizes: Any = RecordBatchReader(found).read_all().column("size_bytes")
    return sum(size or 0 for size in sizes.to_pylist()) >= _LARGE
