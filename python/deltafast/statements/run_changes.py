"""INSERT, DELETE, UPDATE and MERGE through the methods of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from deltafast.commands.change import literal
from deltafast.commands.merge import _Clause
from deltafast.exceptions import InvalidArgumentError
from deltafast.statements.answers import counts
from deltafast.statements.expressions import plain
from deltafast.statements.queries import run_query
from deltafast.statements.rows import constants, default_of, inserted_rows
from deltafast.statements.tree import Default, Query, Values
from deltafast.table import DeltaTable
from deltafast.writer import write_deltalake

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from deltafast.statements.tables import Tables
    from deltafast.statements.tree import Assignment, Clause, Delete, Expression, Insert, Merge, Path, TableName, Update

__all__ = [
    "clause_of",
    "equal",
    "merged",
    "qualifiers",
    "rows_of",
    "run_delete",
    "run_insert",
    "run_merge",
    "run_update",
    "values_of",
    "written",
]


def run_insert(insert: Insert, tables: Tables) -> pa.RecordBatchReader:
    """Write the rows; answers how many."""
    table = tables.table(insert.target)
    before = table.version()
    options: dict[str, Any] = {}
    mode: Literal["append", "overwrite"] = "append" if insert.mode == "append" else "overwrite"
    if insert.mode == "where" and insert.condition is not None:
        options["predicate"] = plain(insert.condition, _columns(table), qualifiers(insert.target, insert.target_alias))
    elif insert.mode == "using":
        options["replace_using"] = list(insert.using)
    elif insert.mode == "on" and insert.condition is not None:
        options["replace_on"] = _sides(insert.condition, insert)
    elif insert.mode == "overwrite" and (fixed := constants(insert, table, tables.zone)):
        options["predicate"] = " AND ".join(equal(name, value) for name, value in fixed.items())
    if insert.evolve:
        options["schema_mode"] = "merge"
    data = inserted_rows(insert, table, tables)
    write_deltalake(
        table, data, mode=mode, commit_properties=tables.commit_properties, time_zone=tables.zone, **options
    )
    made = 0 if table.version() == before else written(table)
    return counts(num_affected_rows=made, num_inserted_rows=made)


def written(table: DeltaTable) -> int | None:
    """The rows of the newest version, as its commit says."""
    metrics: dict[str, Any] = table.history(1)[0].get("operationMetrics") or {}
    rows = metrics.get("numOutputRows")
    return None if rows is None else int(rows)


def _sides(condition: Expression, insert: Insert) -> str:
    """The condition of REPLACE ON with `target` and `source` for the names of the two sides."""
    from deltafast.expr.lexer import token_end, tokenize

    text = condition.text
    target = {name.lower() for name in qualifiers(insert.target, insert.target_alias)}
    source = {insert.source_alias.lower()} if insert.source_alias else set[str]()
    out: list[str] = []
    done = 0
    tokens = tokenize(text)
    for at, token in enumerate(tokens[:-1]):
        if token.kind in ("name", "quoted") and tokens[at + 1].text == "." and tokens[at - 1].text != ".":
            side = "target" if token.text.lower() in target else "source" if token.text.lower() in source else None
            if side is not None:
                out += [text[done : token.pos], side]
                done = token_end(text, token.pos)
    return "".join([*out, text[done:]])


def equal(name: str, value: Any) -> str:
    """A condition for rows with a value, or with null."""
    quoted = f"`{name.replace('`', '``')}`"
    return f"{quoted} IS NULL" if value is None else f"{quoted} = {literal(value)}"


def run_delete(delete: Delete, tables: Tables) -> pa.RecordBatchReader:
    """Delete rows; answers how many."""
    table = tables.table(delete.target)
    figures = table.delete(rows_of(delete, table), commit_properties=tables.commit_properties)
    return counts(num_affected_rows=figures.get("num_deleted_rows"))


def rows_of(change: Delete | Update, table: DeltaTable) -> str | None:
    """Which rows a DELETE or UPDATE is about, without the table's alias; None for all."""
    if change.where is None:
        return None
    return plain(change.where, _columns(table), qualifiers(change.target, change.alias))


def run_update(update: Update, tables: Tables) -> pa.RecordBatchReader:
    """Give columns other values; answers in how many rows."""
    table = tables.table(update.target)
    figures = table.update(
        values_of(update, table), predicate=rows_of(update, table), commit_properties=tables.commit_properties
    )
    return counts(num_affected_rows=figures["num_updated_rows"])


def values_of(update: Update, table: DeltaTable) -> dict[str, str]:
    """The new values of an UPDATE by column.

    Raises:
        InvalidArgumentError: The table lacks a column, or a column is given two values.
    """
    columns, names = _columns(table), qualifiers(update.target, update.alias)
    values: dict[str, str] = {}

    def spell(value: Expression) -> str:
        return plain(value, columns, names)

    for assignment in update.assignments:
        column, *fields = path = _assigned(assignment, table, names)
        if fields and isinstance(assignment.value, Default):
            message = f"the field `{'.'.join(path)}` has no default; give it a value"
            raise InvalidArgumentError(message)
        name = _quoted(path)
        if name in values:
            message = f"the column `{'.'.join(path)}` is given a value twice"
            raise InvalidArgumentError(message)
        values[name] = _value(assignment, column, table, spell)
    return values


def _assigned(assignment: Assignment, table: DeltaTable, names: list[str]) -> Path:
    """The column that gets a value, as the table spells it, or the field within it."""
    first, *rest = assignment.column
    known = {field.name.lower(): field.name for field in table.schema().fields}
    if rest and first.lower() in {name.lower() for name in names} and first.lower() not in known:
        first, *rest = rest
    name = known.get(first.lower())
    if name is None:
        message = f"the table has no column `{'.'.join((first, *rest))}`; it has {', '.join(known.values())}"
        raise InvalidArgumentError(message)
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
    """Merge a source into a table; answers how many rows were changed in each way."""
    table = tables.table(merge.target)
    if isinstance(merge.source, Values):
        message = "the source of a MERGE is a table or a query"
        raise InvalidArgumentError(message)
    target = merge.alias or (None if merge.target.by_path else merge.target.name)
    if isinstance(merge.source, Query):
        source: Any = run_query(merge.source, tables)
        source_alias = merge.source_alias
        if merge.source_columns:
            source = source.read_all().rename_columns(list(merge.source_columns)).to_reader()
    else:
        source = tables.readable(merge.source)
        source_alias = merge.source_alias or (None if merge.source.by_path else merge.source.name)
    # By name: the handle may be one that answers as `deltalake`'s does.
    builder = DeltaTable.merge(
        table,
        source,
        _unquoted(merge.on),
        source_alias=source_alias,
        target_alias=target,
        merge_schema=merge.evolve,
        commit_properties=tables.commit_properties,
    )
    for clause in merge.clauses:
        builder._add(clause_of(clause, table))
    return merged(builder.execute())


def merged(figures: dict[str, Any]) -> pa.RecordBatchReader:
    """The answer of a MERGE."""
    changed = {kind: figures.get(f"num_target_rows_{kind}") for kind in ("updated", "deleted", "inserted")}
    known = [value for value in changed.values() if value is not None]
    return counts(num_affected_rows=sum(known), **{f"num_{kind}_rows": value for kind, value in changed.items()})


_KINDS = {"matched": "matched", "not_matched": "not_matched", "not_matched_by_source": "by_source"}


def clause_of(clause: Clause, table: DeltaTable) -> _Clause:
    """A WHEN as the merge takes it.

    Raises:
        InvalidArgumentError: It gives a column two values.
    """
    condition = None if clause.condition is None else _unquoted(clause.condition)
    if clause.assignments is None:
        return _Clause(_KINDS[clause.rows], clause.action, condition)
    # The merge finds the columns: with schema evolution they may be new.
    values = {
        _quoted(assignment.column): _value(assignment, assignment.column[-1], table, _unquoted)
        for assignment in clause.assignments
    }
    if len(values) < len(clause.assignments):
        message = "a clause of the MERGE gives a column two values"
        raise InvalidArgumentError(message)
    return _Clause(_KINDS[clause.rows], clause.action, condition, values)


def _unquoted(value: Expression) -> str:
    """An expression over both sides, with texts in single quotes."""
    return plain(value, ())


def _columns(table: DeltaTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def qualifiers(target: TableName, alias: str | None) -> list[str]:
    """What a column may be qualified with."""
    if alias is not None:
        return [alias]
    return [] if target.by_path else [target.name]
