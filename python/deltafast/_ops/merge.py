"""MERGE: binds the condition and the clauses; an engine joins the keys, and the core does the rest."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast import _core
from deltafast._call_options import option
from deltafast._expr import read_schema
from deltafast._expr.constraints import bind_constraints
from deltafast._expr.merge import (
    BOTH,
    SOURCE,
    TARGET,
    Sides,
    field_of,
    find,
    found_path,
    lacks_fields,
    refuse_lost_fields,
)
from deltafast._expr.syntax import NODES
from deltafast._expr.types import Struct
from deltafast._libraries import names_missing
from deltafast._ops.merge_clause import ClauseKind, MergeAction, MergeClause
from deltafast._ops.query_source import query_rows
from deltafast._util.arrow import as_stream
from deltafast._util.options import UPDATES, sql_strings
from deltafast.exceptions import ErrorCode, InvalidArgumentError, SchemaMismatchError
from deltafast.progress import Progress, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltafast._core_types import ClausePlan, MergeOptions, MergePlan, TableConstraints, ValuePlan
    from deltafast._expr.context import ExpressionContext
    from deltafast._expr.syntax import Syntax
    from deltafast._expr.tree import CastMode
    from deltafast._expr.types import DataType
    from deltafast._handle import TableHandle
    from deltafast._ops.engine.base import Engine
    from deltafast._util.arrow import Data

__all__ = ["BoundMerge", "MergeSettings", "TableMerger", "merge_metrics"]

#: The sides whose columns a clause may use.
_SIDES: dict[ClauseKind, tuple[str, ...]] = {
    ClauseKind.MATCHED: BOTH,
    ClauseKind.NOT_MATCHED: (SOURCE,),
    ClauseKind.NOT_MATCHED_BY_SOURCE: (TARGET,),
}


class MergeSettings(NamedTuple):
    """How the expressions of a MERGE are read."""

    target_alias: str | None
    source_alias: str | None
    #: Whether columns that only the source has are added to the table.
    merge_schema: bool
    #: Mode of casts to the types of columns: `ANSI` or `TRY`.
    cast_mode: CastMode


class BoundMerge(NamedTuple):
    """A MERGE with bound expressions."""

    plan: MergePlan
    #: The schema of the table after the MERGE.
    schema: str
    #: Constraints and generated columns of the table.
    constraints: TableConstraints


class TableMerger:
    """Builder of the clauses of a MERGE; the first clause of a kind whose predicate is true applies to a row.

    Returned by `DeltaTable.merge`; nothing is read or written before `execute`. Expressions are Spark SQL. Clauses for
    matched rows may use columns of both sides, clauses for new rows those of the source, and clauses for rows of the
    table without a match those of the table. Column names that both sides have need an alias.

    Examples:
        The examples of the methods continue this one.

        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> table = DeltaTable("cities")
        >>> source = {"id": [3, 4], "city": ["Quito", "Bonn"]}
        >>> merger = table.merge(source, "target.id = source.id")
    """

    def __init__(
        self,
        table: TableHandle,
        source: Data | str,
        predicate: str | Syntax,
        settings: MergeSettings,
        options: MergeOptions,
        progress: Progress,
    ) -> None:
        if not isinstance(cast("object", predicate), (str, *NODES)):
            message = f"the predicate of a merge must be Spark SQL in a string, not of type {type(predicate).__name__}"
            raise InvalidArgumentError(message)
        self._table = table
        self._source = query_rows(source, table.time_zone) if isinstance(source, str) else source
        self._predicate = predicate
        self._settings = settings
        self._clauses: list[MergeClause] = []
        self._progress: Progress = progress
        self._options = options

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerger:
        """Update columns of matched rows.

        Args:
            updates: Spark SQL by column; a field of a struct column is named with dots. Names may be quoted.
            predicate: Only rows for which it is true.

        Returns:
            The builder itself.

        Examples:
            >>> metrics = merger.when_matched_update({"city": "upper(source.city)"}).execute()
            >>> table.to_pyarrow_table(filters="id = 3")["city"].to_pylist()
            ['QUITO']
        """
        return self._with(ClauseKind.MATCHED, MergeAction.UPDATE, predicate, sql_strings(UPDATES, updates))

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Update all columns of matched rows to the values of the source.

        Args:
            predicate: Only rows for which it is true.
            except_cols: Columns that keep their values.

        Returns:
            The builder itself.

        Examples:
            >>> metrics = merger.when_matched_update_all().execute()
            >>> table.to_pyarrow_table(filters="id = 3")["city"].to_pylist()
            ['Quito']
        """
        return self._with(ClauseKind.MATCHED, MergeAction.UPDATE, predicate, None, except_cols)

    def when_matched_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete matched rows.

        Args:
            predicate: Only rows for which it is true.

        Returns:
            The builder itself.

        Examples:
            >>> merger.when_matched_delete("source.city = 'Quito'").execute()["num_target_rows_deleted"]
            1
        """
        return self._with(ClauseKind.MATCHED, MergeAction.DELETE, predicate)

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerger:
        """Insert a row for each row of the source without a match.

        Args:
            updates: Spark SQL over the source by column. Other columns get their default value, are computed if they
                are generated columns, or are null.
            predicate: Only rows for which it is true.

        Returns:
            The builder itself.

        Examples:
            >>> metrics = merger.when_not_matched_insert({"id": "source.id", "city": "source.city"}).execute()
            >>> metrics["num_target_rows_inserted"]
            1
        """
        return self._with(ClauseKind.NOT_MATCHED, MergeAction.INSERT, predicate, sql_strings(UPDATES, updates))

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Insert all columns of each row of the source without a match.

        Args:
            predicate: Only rows for which it is true.
            except_cols: Columns that are not taken from the source: they get their default value, are computed or null.

        Returns:
            The builder itself.

        Examples:
            >>> merger.when_not_matched_insert_all("source.id < 9").execute()["num_target_rows_inserted"]
            1
        """
        return self._with(ClauseKind.NOT_MATCHED, MergeAction.INSERT, predicate, None, except_cols)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Update columns of rows of the table that no row of the source matches.

        Args:
            updates: Spark SQL over the table by column.
            predicate: Only rows for which it is true.

        Returns:
            The builder itself.

        Examples:
            >>> metrics = merger.when_not_matched_by_source_update({"city": "NULL"}, "target.id < 3").execute()
            >>> table.count("city IS NULL")
            2
        """
        values = sql_strings(UPDATES, updates)
        return self._with(ClauseKind.NOT_MATCHED_BY_SOURCE, MergeAction.UPDATE, predicate, values)

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete rows of the table that no row of the source matches.

        Args:
            predicate: Only rows for which it is true.

        Returns:
            The builder itself.

        Examples:
            >>> merger.when_not_matched_by_source_delete().execute()["num_target_rows_deleted"]
            2
        """
        return self._with(ClauseKind.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE, predicate)

    def _with(
        self,
        kind: ClauseKind,
        action: MergeAction,
        predicate: str | None,
        updates: Mapping[str, str] | None = None,
        except_cols: Sequence[str] | None = None,
    ) -> TableMerger:
        return self.add_clause(MergeClause(kind, action, predicate, updates, tuple(except_cols or ())))

    def add_clause(self, clause: MergeClause) -> TableMerger:
        if not isinstance(cast("object", clause.predicate), (str, NoneType, *NODES)):
            kind = type(clause.predicate).__name__
            message = f"the predicate of a clause must be Spark SQL in a string, not of type {kind}"
            raise InvalidArgumentError(message)
        if clause.updates is not None and not clause.updates:
            message = f"a clause that is to {clause.action} names no column"
            raise InvalidArgumentError(message)
        self._clauses.append(clause)
        return self

    @names_missing
    def execute(self) -> dict[str, Any]:
        """Run the MERGE: it commits one version, or none if no row changes.

        Returns:
            `num_source_rows`, `num_target_rows_inserted`, `num_target_rows_updated`, `num_target_rows_deleted`,
            `num_target_rows_copied`, `num_output_rows`, `num_target_files_scanned`,
            `num_target_files_skipped_during_scan`, `num_target_files_added`, `num_target_files_removed`,
            `execution_time_ms`, `scan_time_ms`, `rewrite_time_ms`.

        Raises:
            InvalidArgumentError: There is no clause, a name or an expression is invalid, several rows of the source
                would change one row of the table, or the table is append-only.
            UnsupportedExpressionError: An expression cannot be evaluated with exactly Spark's semantics.
            SchemaMismatchError: The source has columns that the table does not have.
            ConstraintViolatedError: A new row violates a constraint.
            CommitFailedError: A concurrent commit changed the same rows.
            CommitUnknownError: The outcome of the commit is unknown.
            StorageError: A request to the store failed.

        Examples:
            >>> metrics = merger.when_matched_update_all().when_not_matched_insert_all().execute()
            >>> metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]
            (1, 1)
            >>> table.version()
            1
        """
        self.check()
        table = self._table
        snapshot = table.snapshot
        merge = _core.TableMerge(snapshot, as_stream(self._source))
        plan = self.bind(table, merge, table.expression_context).plan
        with counted(self._progress):
            merge.read_source(plan)
            while True:
                needs_join, files, memory = merge.join_requirements()
                if needs_join:
                    with self._joining(memory).join(merge.source_keys(), merge.target_keys()) as pairs:
                        done = merge.run(pairs)
                else:
                    done = merge.run()
                if done is not None:
                    break
        every = snapshot.num_files()
        table.move(done.snapshot)
        return merge_metrics(done.metrics, files, every)

    def check(self) -> None:
        """Refuse a MERGE without clauses."""
        if not self._clauses:
            message = "a MERGE needs at least one WHEN clause; add one before `execute()`"
            raise InvalidArgumentError(message)

    def bind(self, table: TableHandle, merge: _core.TableMerge, context: ExpressionContext) -> BoundMerge:
        """Determine the table's schema after the MERGE, and bind the expressions.

        Args:
            table: The table.
            merge: The merge, not bound yet.
            context: How expressions are read and evaluated.
        """
        before, source = read_schema(table.schema().to_json()), read_schema(merge.source_schema)
        target_alias, source_alias, _, cast_mode = self._settings
        sides = Sides(before, source, target_alias, source_alias, context, cast_mode)
        condition = sides.condition(self._predicate)
        evolving, lacking = self._evolution(sides)
        target = merge.plan(evolving, lacking, self._options)
        constraints, schema = target["constraints"], target["schema"]
        after = read_schema(schema)
        clauses: dict[ClauseKind, list[ClausePlan]] = {kind: [] for kind in ClauseKind}
        for clause in self._clauses:
            allowed = _SIDES[clause.kind]
            predicate = None if clause.predicate is None else sides.clause_condition(clause.predicate, allowed)
            values = list(self._values(sides, after, clause))
            clauses[clause.kind].append({"action": clause.action.value, "condition": predicate, "values": values})
        plan: MergePlan = {
            **condition,
            "matched": clauses[ClauseKind.MATCHED],
            "not_matched": clauses[ClauseKind.NOT_MATCHED],
            "by_source": clauses[ClauseKind.NOT_MATCHED_BY_SOURCE],
            "constraints": bind_constraints(constraints, schema, context),
        }
        return BoundMerge(plan, schema, constraints)

    def _joining(self, memory: int) -> Engine:
        from deltafast._ops.engine.duckdb import DuckDBEngine

        return DuckDBEngine(memory, self._options.get("max_temp_directory_size"))

    def _evolution(self, sides: Sides) -> tuple[list[list[str]], list[str]]:
        """Return the columns and fields of the source that may be added, and the columns that a new row may lack."""
        before = sides.schemas[TARGET]
        evolving: dict[tuple[str, ...], None] = {}
        lacking: dict[str, None] = {}
        for clause in self._clauses:
            if clause.action is MergeAction.DELETE:
                continue
            given: set[str] = set()
            for column, sql in self._assigned(sides, clause):
                path = sides.target_path(column, before)
                if path is not None:
                    given.add(path[0])
                if sql is None:
                    own: tuple[str, ...] = (column,)
                else:
                    own = sides.new_path(column) if path is None else sides.plain_column(sql)
                if path is None and not (own and self._settings.merge_schema):
                    raise SchemaMismatchError(_unknown(column, before))
                alike = path is None or [part.lower() for part in own] == [part.lower() for part in path]
                if own and self._settings.merge_schema and alike:
                    evolving[own] = None
            if clause.action is MergeAction.INSERT:
                lacking.update(dict.fromkeys(field.name for field in before.fields if field.name not in given))
        return [list(path) for path in evolving], list(lacking)

    def _assigned(self, sides: Sides, clause: MergeClause) -> Iterator[tuple[str, str | Syntax | None]]:
        """Yield columns and their expressions; None for the column of the source with the same name."""
        if clause.updates is not None:
            yield from clause.updates.items()
            return
        source = sides.schemas[SOURCE]
        left_out = {name.lower() for name in clause.except_cols}
        for name in clause.except_cols:
            if find(source, name) is None and find(sides.schemas[TARGET], name) is None:
                message = f"`except_cols` names {name!r}, which neither the source nor the table has"
                raise InvalidArgumentError(message)
        for field in source.fields:
            # As in Spark, columns that only the source has are ignored, unless they are to be added.
            known = self._settings.merge_schema or find(sides.schemas[TARGET], field.name) is not None
            if known and field.name.lower() not in left_out:
                yield field.name, None

    def _values(self, sides: Sides, after: Struct, clause: MergeClause) -> Iterator[ValuePlan]:
        if clause.action is MergeAction.DELETE:
            return
        allowed = _SIDES[clause.kind]
        assigned: set[tuple[str, ...]] = set()
        above_assigned: set[tuple[str, ...]] = set()
        for column, sql in self._assigned(sides, clause):
            path = sides.target_path(column, after) or found_path(after, sides.new_path(column))
            if not path:
                raise SchemaMismatchError(
                    _unknown(column, after), code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": column}
                )
            if clause.action is MergeAction.INSERT and len(path) > 1:
                message = f"a new row cannot be given the field `{'.'.join(path)}` alone; give its column a value"
                raise InvalidArgumentError(message)
            prefixes = [path[:length] for length in range(1, len(path) + 1)]
            if path in above_assigned or not assigned.isdisjoint(prefixes):
                message = f"the column `{'.'.join(path)}` is given a value twice"
                raise InvalidArgumentError(
                    message, code=ErrorCode.COLUMN_ASSIGNED_TWICE, parameters={"column": ".".join(path)}
                )
            assigned.add(path)
            above_assigned.update(prefixes)
            kind = field_of(after, path).type
            if sql is not None:
                keeps_schema = not self._settings.merge_schema
                checked = keeps_schema and clause.kind is ClauseKind.MATCHED and isinstance(kind, Struct)
                own = sides.plain_column(sql) if checked else ()
                if own and lacks_fields(field_of(sides.schemas[SOURCE], own).type, kind):
                    refuse_lost_fields(".".join(own))
                yield sides.value(path, sql, kind, allowed)
            elif clause.action is MergeAction.INSERT:
                yield sides.column_value(path, (column,), kind, allowed)
            else:
                yield self._whole(sides, path, (column,), kind)

    def _whole(self, sides: Sides, path: tuple[str, ...], own: tuple[str, ...], kind: DataType) -> ValuePlan:
        """Return the assignment of a source column; fields that the source lacks keep their values in a struct."""
        of_source = field_of(sides.schemas[SOURCE], own).type
        if lacks_fields(of_source, kind):
            if not self._settings.merge_schema:
                refuse_lost_fields(".".join(own))
            elif isinstance(of_source, Struct) and isinstance(kind, Struct):
                return sides.merged_struct(path, own, kind)
        return sides.column_value(path, own, kind, BOTH)


def _unknown(column: str, schema: Struct) -> str:
    names = ", ".join(field.name for field in schema.fields)
    evolution = option("merge_schema", "true")
    return f"the table has no column `{column}`; it has {names}; pass {evolution} to add a column of the source"


def merge_metrics(metrics: Mapping[str, str], scanned: int, files: int) -> dict[str, Any]:
    """Return the metrics of a commit under the names of `deltalake`, as numbers."""
    names = [
        "num_source_rows",
        "num_target_rows_inserted",
        "num_target_rows_updated",
        "num_target_rows_deleted",
        "num_target_rows_copied",
        "num_output_rows",
        "num_target_files_scanned",
        "num_target_files_skipped_during_scan",
        "num_target_files_added",
        "num_target_files_removed",
        "execution_time_ms",
        "scan_time_ms",
        "rewrite_time_ms",
    ]
    own = {"num_target_files_scanned": scanned, "num_target_files_skipped_during_scan": files - scanned}

    def number(name: str) -> int:
        first, *rest = name.split("_")
        return int(metrics[first + "".join(part.capitalize() for part in rest)])

    return {name: own[name] if name in own else number(name) for name in names}
