"""`DataFrame.mergeInto` for Delta tables, which Spark itself can only do for catalogs with row-level operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast.spark._commands.catalog import place_of_name
from deltafast.spark._conditions import Operation
from deltafast.spark._session.session import Session
from deltafast.spark.exceptions import translated
from deltafast.spark.tables import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltafast.spark.tables import DeltaMergeBuilder

__all__ = ["put"]


def put(replace: Callable[[Any, str, Callable[[Any], Any]], None], frame_class: Any) -> None:
    """Patch `mergeInto` of a class of data frames, if this Spark has it."""
    if hasattr(frame_class, "mergeInto"):
        replace(frame_class, "mergeInto", _merge_into)


def _merge_into(before: Any) -> Any:
    def merge_into(frame: Any, table: str, condition: Any) -> Any:
        spark = frame.sparkSession
        if place_of_name(Session(spark), table) is None:
            return before(frame, table, condition)
        name = table.rsplit(".", 1)[-1].strip("`")
        return _MergeIntoWriter(DeltaTable.forName(spark, table).alias(name).merge(frame, condition))

    return translated(Operation.MERGE)(merge_into)


class _MergeIntoWriter:
    """PySpark's `MergeIntoWriter`: clauses in their order, then `merge`."""

    def __init__(self, builder: DeltaMergeBuilder) -> None:
        self._builder = builder

    def whenMatched(self, condition: Any = None) -> _Matched:  # noqa: N802 - PySpark's names, here and below
        """Begin a clause for rows of both sides."""
        return _Matched(self, condition)

    def whenNotMatched(self, condition: Any = None) -> _NotMatched:  # noqa: N802
        """Begin a clause for rows of the source alone."""
        return _NotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Any = None) -> _NotMatchedBySource:  # noqa: N802
        """Begin a clause for rows of the table alone."""
        return _NotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> _MergeIntoWriter:  # noqa: N802
        """Add columns of the source to the table."""
        return self.with_clause(self._builder.withSchemaEvolution())

    def merge(self) -> None:
        """Run the MERGE."""
        self._builder.execute()

    @property
    def builder(self) -> DeltaMergeBuilder:
        """The command with the clauses so far."""
        return self._builder

    def with_clause(self, builder: DeltaMergeBuilder) -> _MergeIntoWriter:
        """Return this writer with another clause."""
        self._builder = builder
        return self


class _Clause:
    def __init__(self, writer: _MergeIntoWriter, condition: Any) -> None:
        self._writer, self._condition = writer, condition


class _Matched(_Clause):
    def updateAll(self) -> _MergeIntoWriter:  # noqa: N802
        """Set all columns to the source's."""
        return self._writer.with_clause(self._writer.builder.whenMatchedUpdateAll(self._condition))

    def update(self, assignments: Mapping[str, Any]) -> _MergeIntoWriter:
        """Set columns."""
        return self._writer.with_clause(self._writer.builder.whenMatchedUpdate(self._condition, dict(assignments)))

    def delete(self) -> _MergeIntoWriter:
        """Delete the rows."""
        return self._writer.with_clause(self._writer.builder.whenMatchedDelete(self._condition))


class _NotMatched(_Clause):
    def insertAll(self) -> _MergeIntoWriter:  # noqa: N802
        """Insert the source's rows."""
        return self._writer.with_clause(self._writer.builder.whenNotMatchedInsertAll(self._condition))

    def insert(self, assignments: Mapping[str, Any]) -> _MergeIntoWriter:
        """Insert rows with these values."""
        builder = self._writer.builder.whenNotMatchedInsert(self._condition, dict(assignments))
        return self._writer.with_clause(builder)


class _NotMatchedBySource(_Clause):
    def update(self, assignments: Mapping[str, Any]) -> _MergeIntoWriter:
        """Set columns."""
        builder = self._writer.builder.whenNotMatchedBySourceUpdate(self._condition, dict(assignments))
        return self._writer.with_clause(builder)

    def delete(self) -> _MergeIntoWriter:
        """Delete the rows."""
        return self._writer.with_clause(self._writer.builder.whenNotMatchedBySourceDelete(self._condition))
