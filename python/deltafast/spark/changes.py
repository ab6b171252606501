"""DELETE, UPDATE and MERGE: the one place where it is chosen how they run.

They run in the core, within the driver's process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast.spark.streams import streamed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.commands.merge import _Clause
    from deltafast.spark.session import Session
    from deltafast.table import DeltaTable
    from deltafast.transaction import CommitProperties

__all__ = ["MergeRequest", "delete", "merge", "update"]


class MergeRequest(NamedTuple):
    """A MERGE as the user wrote it, but for the rows of its source."""

    #: Spark SQL over both sides.
    condition: str
    target_alias: str | None
    source_alias: str | None
    clauses: tuple[_Clause, ...]
    #: Whether columns of the source that a clause assigns are added to the table.
    evolve: bool = False


def delete(
    session: Session, table: DeltaTable, condition: str | None, commit: CommitProperties | None = None
) -> dict[str, Any]:
    """Delete rows.

    Args:
        session: The session.
        table: A handle at the version that is changed; it moves to the new one.
        condition: Spark SQL over the table's columns; all rows if None.
        commit: How to commit.

    Returns:
        The figures of `DeltaTable.delete`.

    Raises:
        DeltaError: As `DeltaTable.delete`.
    """
    del session
    return table.delete(condition, commit_properties=commit)


def update(
    session: Session,
    table: DeltaTable,
    values: Mapping[str, str],
    condition: str | None,
    commit: CommitProperties | None = None,
) -> dict[str, Any]:
    """Give columns other values.

    Args:
        session: The session.
        table: A handle at the version that is changed; it moves to the new one.
        values: Spark SQL by column.
        condition: Spark SQL over the table's columns; all rows if None.
        commit: How to commit.

    Returns:
        The figures of `DeltaTable.update`.

    Raises:
        DeltaError: As `DeltaTable.update`.
    """
    del session
    return table.update(values, predicate=condition, commit_properties=commit)


def merge(
    session: Session, table: DeltaTable, source: Any, request: MergeRequest, commit: CommitProperties | None = None
) -> dict[str, Any]:
    """Merge a data frame into a table.

    Args:
        session: The session.
        table: A handle at the version that is changed; it moves to the new one.
        source: The data frame.
        request: What is merged how.
        commit: How to commit.

    Returns:
        The figures of `TableMerger.execute`.

    Raises:
        DeltaError: As `TableMerger.execute`.
    """
    del session
    with streamed(source) as rows:
        merger = table.merge(
            rows,
            request.condition,
            source_alias=request.source_alias,
            target_alias=request.target_alias,
            merge_schema=request.evolve,
            commit_properties=commit,
        )
        for clause in request.clauses:
            merger._add(clause)
        return merger.execute()
