"""INSERT, DELETE, UPDATE and MERGE through the methods of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import pyarrow as pa

from deltafast._expr import token_kind
from deltafast._expr.lexer import tokenize
from deltafast._expr.syntax_sql import literal
from deltafast._ops.merge_clause import ClauseKind, MergeAction, MergeClause
from deltafast._sql.answers import counts
from deltafast._sql.expressions import check_comparisons, check_strings, plain, qualified, unqualified
from deltafast._sql.rows import constants, default_of, inserted_rows
from deltafast._sql.tree import Default, Expression, InsertMode, Query, TableName, Values
from deltafast._util.arrow import as_stream
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.table import DeltaTable
from deltafast.writer import write_deltalake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from deltafast._expr.syntax import Syntax
    from deltafast._sql.tables import Tables
    from deltafast._sql.tree import Assignment, Clause, Delete, Insert, Merge, Path, Source, Update

__all__ = [
    "add_value",
    "assigned_path",
    "check_order",
    "equal",
    "merge_sql",
    "merged",
    "qualifiers",
    "replaced_rows",
    "rows_of",
    "run_delete",
    "run_insert",
    "run_merge",
    "run_update",
    "values_of",
    "without_alias",
    "written",
]

#: A new value.
T = TypeVar("T")


def run_insert(insert: Insert, tables: Tables) -> pa.RecordBatchReader:
    """Write the rows; returns their number."""
    table = tables.table(insert.target)
    before = table.version()
    options: dict[str, Any] = {}
    mode: Literal["append", "overwrite"] = "append" if insert.mode is InsertMode.APPEND else "overwrite"
    if insert.mode is InsertMode.WHERE and insert.condition is not None:
        names = qualifiers(insert.target, insert.target_alias)
        options["predicate"] = replaced_rows(insert.condition, table, names, tables.dialect)
    elif insert.mode is InsertMode.USING:
        options["replace_using"] = list(insert.using)
    elif insert.mode is InsertMode.ON and insert.condition is not None:
        options["replace_on"] = _sides(insert.condition, insert, tables.dialect)
    elif insert.mode is InsertMode.OVERWRITE and tables.replaces_partitions() and table.metadata().partition_columns:
        options["partition_overwrite_mode"] = "dynamic"
    elif insert.mode is InsertMode.OVERWRITE and (fixed := constants(insert.partition, table, tables.zone)):
        options["predicate"] = " AND ".join(equal(name, value) for name, value in fixed.items())
    if insert.evolve:
        options["schema_mode"] = "merge"
    data = inserted_rows(insert, table, tables)
    write_deltalake(
        table,
        data,
        mode=mode,
        commit_properties=tables.commit_properties,
        post_commithook_properties=tables.post_commithook_properties,
        time_zone=tables.zone,
        **options,
    )
    made = 0 if table.version() == before else written(table)
    return counts(num_affected_rows=made, num_inserted_rows=made)


def written(table: DeltaTable) -> int | None:
    """Return the number of rows of the newest version, from its commit."""
    metrics: dict[str, Any] = table.history(1)[0].get("operationMetrics") or {}
    rows = metrics.get("numOutputRows")
    return None if rows is None else int(rows)


def _sides(condition: Expression, insert: Insert, dialect: Dialect) -> str:
    """Return the condition of REPLACE ON, with `target` and `source` as the names of the sides."""
    source = {(insert.source_alias.lower(),): "source"} if insert.source_alias else {}
    names = source | qualifiers(insert.target, insert.target_alias, "target")
    return plain(condition, (), names, dialect=dialect)


def equal(name: str, value: Any) -> str:
    """Return a condition for rows with a value, or with null."""
    quoted = f"`{name.replace('`', '``')}`"
    return f"{quoted} IS NULL" if value is None else f"{quoted} = {literal(value)}"


def run_delete(delete: Delete, tables: Tables) -> pa.RecordBatchReader:
    """Delete rows; returns their number."""
    table = tables.table(delete.target)
    rows = rows_of(delete, table, tables.dialect)
    metrics = table.delete(rows, commit_properties=tables.commit_properties)
    return counts(num_affected_rows=metrics.get("num_deleted_rows"))


def rows_of(change: Delete | Update, table: DeltaTable, dialect: Dialect) -> str | None:
    """Return the condition of a DELETE or UPDATE, without the table's alias; None for all rows."""
    if change.where is None:
        return None
    return replaced_rows(change.where, table, qualifiers(change.target, change.alias), dialect)


def without_alias(expression: str | Syntax, table: DeltaTable, names: Mapping[Path, str]) -> str | Syntax:
    """Return an expression in Spark's SQL over a table, or its syntax, without these qualifiers of columns."""
    if isinstance(expression, str):
        return plain(Expression(expression, 0), _columns(table), names, dialect=Dialect.SPARK)
    return unqualified(expression, _columns(table), names)


def replaced_rows(condition: Expression, table: DeltaTable, names: Mapping[Path, str], dialect: Dialect) -> str:
    """Return the condition on the rows that a statement changes or replaces, without their qualifiers."""
    rows = plain(condition, _columns(table), names, dialect=dialect)
    if dialect is Dialect.STATEMENT:
        check_comparisons(condition)
    return rows


def run_update(update: Update, tables: Tables) -> pa.RecordBatchReader:
    """Update rows; returns their number."""
    table = tables.table(update.target)
    metrics = table.update(
        values_of(update, table, tables.dialect),
        predicate=rows_of(update, table, tables.dialect),
        commit_properties=tables.commit_properties,
    )
    return counts(num_affected_rows=metrics["num_updated_rows"])


def values_of(update: Update, table: DeltaTable, dialect: Dialect) -> dict[str, str]:
    """Return the new values of an UPDATE by column.

    Raises:
        InvalidArgumentError: The table does not have a column, or a column is given two values.
    """
    columns, names = _columns(table), qualifiers(update.target, update.alias)
    values: dict[str, str] = {}

    def spell(value: Expression) -> str:
        return plain(value, columns, names, dialect=dialect)

    for assignment in update.assignments:
        column, *fields = path = assigned_path(assignment.column, table, names)
        if fields and isinstance(assignment.value, Default):
            message = f"the field `{'.'.join(path)}` has no default; give it a value"
            raise InvalidArgumentError(message)
        add_value(values, path, _value(assignment, column, table, spell))
    return values


def add_value(values: dict[str, T], path: Path, value: T) -> None:
    """Add the new value of a column or nested field to those of an UPDATE.

    Raises:
        InvalidArgumentError: The column already has a value.
    """
    name = _quoted(path)
    if name in values:
        message = f"the column `{'.'.join(path)}` is given a value twice"
        raise InvalidArgumentError(message, code=ErrorCode.COLUMN_ASSIGNED_TWICE, parameters={"column": ".".join(path)})
    values[name] = value


def assigned_path(column: Path, table: DeltaTable, names: Mapping[Path, str]) -> Path:
    """Return the path of an assigned column or nested field, with the table's capitalization and without a qualifier.

    Raises:
        InvalidArgumentError: The table does not have the column.
    """
    first, *rest = column
    known = {field.name.lower(): field.name for field in table.schema().fields}
    if first.lower() not in known and (found := qualified(column, names)) is not None:
        first, *rest = column[found[0] :]
    name = known.get(first.lower())
    if name is None:
        message = f"the table has no column `{'.'.join((first, *rest))}`; it has {', '.join(known.values())}"
        raise InvalidArgumentError(
            message, code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": ".".join((first, *rest))}
        )
    return (name, *rest)


def _quoted(path: Path) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in path)


def _value(assignment: Assignment, name: str, table: DeltaTable, spell: Callable[[Expression], str]) -> str:
    if isinstance(assignment.value, Default):
        known = (field for field in table.schema().fields if field.name.lower() == name.lower())
        field = next(known, None)
        return "NULL" if field is None else default_of(field) or "NULL"
    return spell(assignment.value)


def run_merge(merge: Merge, tables: Tables) -> pa.RecordBatchReader:
    """Merge a source into a table; returns the numbers of changed rows."""
    table = tables.table(merge.target)
    if isinstance(merge.source, Values):
        message = "the source of a MERGE is a table or a query"
        raise InvalidArgumentError(message)
    if isinstance(merge.source, Query):
        source: Any = tables.rows(merge.source)
        if merge.source_columns:
            source = source.read_all().rename_columns(list(merge.source_columns)).to_reader()
    else:
        source = tables.readable(merge.source)
    columns: Sequence[str] = ()
    if tables.dialect is Dialect.STATEMENT and any('"' in part.text for part in (*_conditions(merge), *_values(merge))):
        source = pa.RecordBatchReader.from_stream(as_stream(source))
        columns = source.schema.names
    sql = merge_sql(merge, table, tables.dialect, columns)
    # Through the class: a subclass may return results as in `deltalake`.
    builder = DeltaTable.merge(
        table,
        source,
        sql.on,
        source_alias=sql.source,
        target_alias=sql.target,
        merge_schema=merge.evolve,
        commit_properties=tables.commit_properties,
    )
    for clause in sql.clauses:
        builder.add_clause(clause)
    return merged(builder.execute())


def merged(metrics: dict[str, Any]) -> pa.RecordBatchReader:
    """Return the result of a MERGE."""
    changed = {kind: metrics.get(f"num_target_rows_{kind}") for kind in ("updated", "deleted", "inserted")}
    known = [value for value in changed.values() if value is not None]
    return counts(num_affected_rows=sum(known), **{f"num_{kind}_rows": value for kind, value in changed.items()})


class MergeSql(NamedTuple):
    """Aliases, condition and clauses of a MERGE, for the builder."""

    on: str
    target: str | None
    source: str | None
    clauses: tuple[MergeClause, ...]


def merge_sql(merge: Merge, table: DeltaTable, dialect: Dialect, source_columns: Sequence[str] = ()) -> MergeSql:
    """Return the expressions of a MERGE, in which the qualifier of a side is its alias or the last part of its name.

    Raises:
        InvalidArgumentError: A clause gives a column two values, a clause can never apply, or a string in double quotes
            may be meant as a column.
    """
    if dialect is Dialect.STATEMENT:
        _check_quotes(merge, (*_columns(table), *source_columns))
    target, names = _side(merge.target, merge.alias, "target")
    source, others = _side(merge.source, merge.source_alias, "source")
    # A qualifier of both sides is ambiguous, so it is not replaced; nor is the name of a side.
    kept = (names.keys() ^ others.keys()) - {((target or "target").lower(),), ((source or "source").lower(),)}
    names = {path: name for path, name in (names | others).items() if path in kept}
    clauses = tuple(_clause_of(clause, table, names, dialect) for clause in merge.clauses)
    check_order(clauses)
    return MergeSql(plain(merge.on, (), names, dialect=dialect), target, source, clauses)


def _check_quotes(merge: Merge, columns: Collection[str]) -> None:
    """Refuse strings in double quotes that may be meant as columns."""
    for expression in (*_conditions(merge), *_values(merge)):
        check_strings(expression, columns)
    for condition in _conditions(merge):
        check_comparisons(condition)


def _conditions(merge: Merge) -> list[Expression]:
    return [merge.on, *(clause.condition for clause in merge.clauses if clause.condition is not None)]


def _values(merge: Merge) -> list[Expression]:
    assignments = [assignment for clause in merge.clauses for assignment in clause.assignments or ()]
    return [assignment.value for assignment in assignments if not isinstance(assignment.value, Default)]


def _side(source: Source, alias: str | None, side: str) -> tuple[str | None, dict[Path, str]]:
    """Return the alias of a side of a MERGE, None for `side` itself, and the longer names that refer to it."""
    if alias is not None or not isinstance(source, TableName):
        return alias, {}
    last = None if source.by_path else _parts(source.name)[-1]
    return last, qualifiers(source, None, last or side)


def check_order(clauses: Sequence[MergeClause]) -> None:
    """Refuse a clause after one of the same kind without a condition, as Spark does.

    Raises:
        InvalidArgumentError: There is such a clause.
    """
    for kind in ClauseKind:
        of_kind = [clause for clause in clauses if clause.kind is kind]
        if any(clause.predicate is None for clause in of_kind[:-1]):
            message = (
                f"When there are more than one {kind.value} clauses in a MERGE statement, only the last {kind.value} "
                "clause can omit the condition"
            )
            raise InvalidArgumentError(
                message, code=ErrorCode.MERGE_CLAUSE_WITHOUT_CONDITION, parameters={"clause": kind.value}
            )


def _clause_of(clause: Clause, table: DeltaTable, names: Mapping[Path, str], dialect: Dialect) -> MergeClause:
    def spell(value: Expression) -> str:
        return plain(value, (), names, dialect=dialect)

    def assigned(path: Path) -> Path:
        found = qualified(path, names)
        return path if found is None else (found[1], *path[found[0] :])

    condition = None if clause.condition is None else spell(clause.condition)
    if clause.assignments is None:
        return MergeClause(clause.kind, clause.action, condition)
    # The builder resolves the columns: with schema evolution they may be new.
    values = {
        _quoted(assigned(assignment.column)): _value(assignment, assignment.column[-1], table, spell)
        for assignment in clause.assignments
    }
    if len(values) < len(clause.assignments):
        message = "a clause of the MERGE gives a column two values"
        columns = [assignment.column[-1].lower() for assignment in clause.assignments]
        twice = next(column for column in columns if columns.count(column) > 1)
        is_insert = clause.action is MergeAction.INSERT
        code = ErrorCode.COLUMN_INSERTED_TWICE if is_insert else ErrorCode.COLUMN_ASSIGNED_TWICE
        raise InvalidArgumentError(message, code=code, parameters={"column": twice})
    return MergeClause(clause.kind, clause.action, condition, values)


def _columns(table: DeltaTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def qualifiers(table: TableName, alias: str | None, name: str = "") -> dict[Path, str]:
    """Return the qualifiers of a table's columns, in lower case: the alias, or the table's name or its last parts.

    Args:
        table: The table.
        alias: Alias of the table.
        name: Replacement of the qualifiers, for `plain`.
    """
    if alias is not None:
        return {(alias.lower(),): name}
    parts = ("delta", table.name) if table.by_path else _parts(table.name)
    return {tuple(part.lower() for part in parts[first:]): name for first in range(len(parts))}


def _parts(name: str) -> Path:
    """Return the parts of a table's name as written."""
    tokens = tokenize(name, lenient=True)
    parts, dots = tokens[:-1:2], tokens[1:-1:2]
    is_path = all(part.kind in (token_kind.NAME, token_kind.QUOTED) for part in parts) and all(
        dot.text == "." for dot in dots
    )
    return tuple(part.text for part in parts) if is_path and len(parts) > len(dots) else (name,)
