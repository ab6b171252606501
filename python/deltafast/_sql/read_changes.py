"""Parser of INSERT, DELETE, UPDATE, MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._ops.merge_clause import ClauseKind, MergeAction
from deltafast._sql.tree import Assignment, Clause, Delete, Expression, Insert, InsertMode, Merge, Update
from deltafast.exceptions import ErrorCode

if TYPE_CHECKING:
    from deltafast._sql.reader import Reader
    from deltafast._sql.tree import Default, Path, Source

__all__ = ["read_delete", "read_insert", "read_merge", "read_truncate", "read_update"]


def read_insert(reader: Reader) -> Insert:
    """`INSERT [WITH SCHEMA EVOLUTION] INTO | OVERWRITE [TABLE] t ..`."""
    reader.expect("INSERT")
    evolve = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    overwrite = reader.accept("OVERWRITE")
    if overwrite:
        reader.accept("INTO")
    else:
        reader.expect("INTO")
    reader.accept("TABLE")
    target = reader.table()
    alias = None
    if reader.peek("AS") or (reader.ahead().upper == "REPLACE" and reader.ahead(2).upper == "ON"):
        alias = reader.alias()
    partition = read_partition(reader) if reader.accept("PARTITION") else ()
    mode = InsertMode.OVERWRITE if overwrite else InsertMode.APPEND
    condition, using = None, ()
    columns, by_name = _columns(reader)
    if not overwrite and reader.accept("REPLACE"):
        if reader.accept("WHERE"):
            mode, condition = InsertMode.WHERE, reader.value()
        elif reader.accept("USING"):
            mode, using = InsertMode.USING, reader.names()
        elif reader.accept("ON"):
            mode, condition = InsertMode.ON, reader.value_before_query()
        else:
            reader.fail("expected WHERE, USING or ON after REPLACE")
        if not columns and not by_name:
            columns, by_name = _columns(reader)
    bracketed = mode is InsertMode.ON and reader.is_op("(")
    source, source_alias = _source(reader, aliased=bracketed)
    return Insert(target, source, mode, columns, by_name, partition, condition, using, alias, source_alias, evolve)


def _columns(reader: Reader) -> tuple[tuple[str, ...], bool]:
    if reader.accept("BY", "NAME"):
        return (), True
    if reader.is_op("(") and not reader.at_query():
        columns = reader.names()
        low = [name.lower() for name in columns]
        for n, name in enumerate(low):
            if name in low[:n]:
                what = f"the column `{columns[n]}` is named twice"
                code, named = ErrorCode.COLUMN_INSERTED_TWICE, {"column": columns[n]}
                raise reader.error(what, reader.token.pos, "name each column once", code=code, parameters=named)
        return columns, False
    return (), False


def read_partition(reader: Reader) -> tuple[tuple[str, Expression | None], ...]:
    """`(column [= value], ..)` after PARTITION."""
    out: list[tuple[str, Expression | None]] = []
    reader.expect_op("(")
    while True:
        name = reader.name_part("a partition column")
        out.append((name, reader.value() if reader.accept_op("=") else None))
        if not reader.accept_op(","):
            break
    reader.expect_op(")")
    return tuple(out)


def _source(reader: Reader, *, aliased: bool) -> tuple[Source, str | None]:
    """Read the rows; in parentheses they may be followed by an alias."""
    if not aliased:
        return reader.source(), None
    reader.expect_op("(")
    if reader.peek("VALUES"):
        found: Source = reader.rows()
    else:
        found = reader.query(nested=True)
    reader.expect_op(")")
    return found, reader.alias()


def read_delete(reader: Reader) -> Delete:
    """`DELETE FROM t [AS a] [WHERE ..]`."""
    reader.expect("DELETE", "FROM")
    target, alias = reader.table(), reader.alias()
    return Delete(target, alias, reader.where())


def read_truncate(reader: Reader) -> Delete:
    """`TRUNCATE TABLE t`."""
    reader.expect("TRUNCATE", "TABLE")
    target = reader.table()
    if reader.peek("PARTITION"):
        what, hint = "TRUNCATE of partitions is not supported", "write DELETE FROM t WHERE .."
        raise reader.error(what, reader.token.pos, hint, code=ErrorCode.TRUNCATED_PARTITION)
    return Delete(target, None, None)


def read_update(reader: Reader) -> Update:
    """`UPDATE t [AS a] SET column = value, .. [WHERE ..]`."""
    reader.expect("UPDATE")
    target, alias = reader.table(), reader.alias()
    reader.expect("SET")
    return Update(target, alias, _assignments(reader), reader.where())


def _assignments(reader: Reader) -> tuple[Assignment, ...]:
    out: list[Assignment] = []
    while True:
        column = reader.path()
        if not reader.accept_op("=") and not reader.accept_op("=="):
            reader.fail("expected '='")
        out.append(Assignment(column, reader.value_or_default()))
        if not reader.accept_op(","):
            return tuple(out)


def read_merge(reader: Reader) -> Merge:
    """`MERGE [WITH SCHEMA EVOLUTION] INTO t [AS a] USING source [AS b] ON .. WHEN ..`."""
    reader.expect("MERGE")
    evolve = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target, alias = reader.table(), reader.alias()
    reader.expect("USING")
    columns: tuple[str, ...] = ()
    if reader.accept_op("("):
        source: Source = reader.query(nested=True)
        reader.expect_op(")")
        source_alias = reader.alias()
        columns = reader.names() if source_alias is not None and reader.is_op("(") else ()
    else:
        table = reader.source_table()
        source, source_alias = reader.known(table), reader.alias()
        if source_alias is None and source is not table:
            source_alias = table.name
    reader.expect("ON")
    on = reader.value()
    clauses: list[Clause] = []
    while reader.peek("WHEN"):
        clauses.append(_clause(reader))
    if not clauses:
        reader.fail("expected WHEN MATCHED or WHEN NOT MATCHED", ErrorCode.MERGE_WITHOUT_CLAUSE)
    return Merge(target, alias, source, source_alias, on, tuple(clauses), evolve, columns)


def _clause(reader: Reader) -> Clause:
    reader.expect("WHEN")
    kind = ClauseKind.MATCHED
    if reader.accept("NOT"):
        kind = ClauseKind.NOT_MATCHED
    reader.expect("MATCHED")
    if kind is ClauseKind.NOT_MATCHED and reader.accept("BY"):
        if reader.accept("SOURCE"):
            kind = ClauseKind.NOT_MATCHED_BY_SOURCE
        elif not reader.accept("TARGET"):
            reader.fail("expected SOURCE or TARGET")
    condition = reader.value() if reader.accept("AND") else None
    reader.expect("THEN")
    if kind is ClauseKind.NOT_MATCHED:
        reader.expect("INSERT")
        return Clause(kind, MergeAction.INSERT, condition, _inserted(reader))
    if reader.accept("DELETE"):
        return Clause(kind, MergeAction.DELETE, condition, None)
    if not reader.accept("UPDATE", "SET"):
        reader.fail("expected UPDATE SET or DELETE")
    if reader.is_op("*"):
        if kind is not ClauseKind.MATCHED:
            reader.fail("a row that the source does not have can only be set column by column: expected a column")
        reader.advance()
        return Clause(kind, MergeAction.UPDATE, condition, None)
    return Clause(kind, MergeAction.UPDATE, condition, _assignments(reader))


def _inserted(reader: Reader) -> tuple[Assignment, ...] | None:
    """`*`, or `(columns) VALUES (values)`."""
    if reader.accept_op("*"):
        return None
    columns: list[Path] = list(reader.paths())
    reader.expect("VALUES")
    pos = reader.token.pos
    reader.expect_op("(")
    values: list[Expression | Default] = [reader.value_or_default()]
    while reader.accept_op(","):
        values.append(reader.value_or_default())
    reader.expect_op(")")
    if len(columns) != len(values):
        what = f"{len(columns)} columns get {len(values)} values"
        raise reader.error(what, pos, "give each column one")
    return tuple(Assignment(column, value) for column, value in zip(columns, values, strict=True))
