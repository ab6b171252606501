"""`DeltaMergeBuilder`: the clauses of a MERGE of a data frame into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast._ops.merge import _Clause
from deltafast._sql.run_changes import check_order, merged
from deltafast.spark._sql import dml
from deltafast.spark._sql.column_to_sql import as_condition, as_values
from deltafast.spark._sql.result_frames import answered
from deltafast.spark.exceptions import translated

if TYPE_CHECKING:
    from deltafast.spark._sql.column_to_sql import Sides
    from deltafast.spark.tables import DeltaTable

__all__ = ["DeltaMergeBuilder"]


class DeltaMergeBuilder:
    """The clauses of a MERGE, with delta-spark's names: each row is for the first clause of its kind that wants it.

    Made by `DeltaTable.merge`; nothing is read or written before `execute`. Every method gives a new builder.
    Conditions and values are SQL text or columns of PySpark; clauses for matched rows may use both sides, those for
    new rows the source, those for rows that the source does not have the target.
    """

    def __init__(
        self,
        table: DeltaTable,
        source: Any,
        sides: Sides,
        condition: str,
        clauses: tuple[_Clause, ...] = (),
        *,
        evolve: bool = False,
    ) -> None:
        self._table = table
        self._source = source
        self._sides = sides
        self._condition = condition
        self._clauses = clauses
        self._evolve = evolve

    def whenMatchedUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:  # noqa: A002, N802
        """Give columns of a matched row other values.

        Args:
            condition: Only for rows for which it is true.
            set: New values by column.

        Raises:
            ValueError: `set` is missing.
            TypeError: An argument is neither text nor a column.
        """
        return self._with("matched", "update", condition, set, "'set' in whenMatchedUpdate")

    def whenMatchedUpdateAll(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Give a matched row the values of the source's columns of the same names."""
        return self._with("matched", "update", condition)

    def whenMatchedDelete(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete a matched row."""
        return self._with("matched", "delete", condition)

    def whenNotMatchedInsert(self, condition: Any = None, values: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Add a row for a row of the source that matches none.

        Args:
            condition: Only for rows for which it is true.
            values: Values by column; other columns get their default, are computed or null.

        Raises:
            ValueError: `values` is missing.
            TypeError: An argument is neither text nor a column.
        """
        return self._with("not_matched", "insert", condition, values, "'values' in whenNotMatchedInsert")

    def whenNotMatchedInsertAll(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Add a row of the source that matches none."""
        return self._with("not_matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802
        self,
        condition: Any = None,
        set: Any = None,  # noqa: A002
    ) -> DeltaMergeBuilder:
        """Give columns of a row that the source does not have other values; as `whenMatchedUpdate`."""
        return self._with("by_source", "update", condition, set, "'set' in whenNotMatchedBySourceUpdate")

    def whenNotMatchedBySourceDelete(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete a row that the source does not have."""
        return self._with("by_source", "delete", condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:  # noqa: N802
        """Let columns and fields of the source that a clause assigns be added to the table."""
        return DeltaMergeBuilder(self._table, self._source, self._sides, self._condition, self._clauses, evolve=True)

    @translated()
    def execute(self) -> Any:
        """Merge: one version, or none where no row changes.

        Returns:
            A data frame of `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and `num_inserted_rows`.

        Raises:
            InvalidArgumentError: There is no clause, one behind the last of its kind, an expression is wrong, or
                several rows of the source would change one row of the table.
            SchemaMismatchError: A clause assigns a column that the table does not have.
            ConstraintViolatedError: A new row breaks a constraint.
            CommitFailedError: Another writer changed the same rows meanwhile.
            PySparkException: Spark cannot compute the source.
        """
        check_order(self._clauses)
        session = self._table._session
        evolve = self._evolve or session.merges_schemas
        request = dml.MergeRequest(self._condition, self._sides.target, self._sides.source, self._clauses, evolve)
        commit = self._table._tables().commit_properties
        figures = dml.merge(session, self._table._newest(), self._source, request, commit)
        return answered(session, merged(figures))

    @translated()
    def _with(
        self, kind: str, deed: str, condition: Any, values: Any = None, what: str | None = None
    ) -> DeltaMergeBuilder:
        updates = None if what is None else as_values(values, self._sides, what)
        clause = _Clause(kind, deed, as_condition(condition, self._sides), updates)
        return DeltaMergeBuilder(
            self._table, self._source, self._sides, self._condition, (*self._clauses, clause), evolve=self._evolve
        )
