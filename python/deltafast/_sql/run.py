"""`sql()`: one statement, read and run on the embedded engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltafast._expr.literals import time_zone as checked_zone
from deltafast._sql import tree
from deltafast._sql.queries import EmbeddedTables, run_query
from deltafast._sql.reading import read_statement
from deltafast._sql.run_changes import run_delete, run_insert, run_merge, run_update
from deltafast._sql.run_tables import run_alter, run_clone, run_convert, run_create
from deltafast._sql.run_upkeep import (
    run_describe,
    run_generate,
    run_optimize,
    run_reorg,
    run_restore,
    run_show,
    run_vacuum,
)
from deltafast.exceptions import InvalidArgumentError
from deltafast.progress import Progress, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from deltafast._sql.tables import Tables
    from deltafast.transaction import CommitProperties

__all__ = ["query", "run", "sql"]


def sql(
    text: str,
    /,
    *,
    storage_options: Mapping[str, str] | None = None,
    commit_properties: CommitProperties | None = None,
    time_zone: str = "UTC",
    progress: Progress = False,
    external_access: bool = False,
    **tables: object,
) -> pa.RecordBatchReader:
    """Run one statement of Delta's SQL, or a query.

    Statements are those of delta-spark: SELECT with `VERSION AS OF`, `TIMESTAMP AS OF`, `t@v5` and `table_changes(..)`;
    INSERT INTO, OVERWRITE, REPLACE WHERE, USING and ON; UPDATE, DELETE, TRUNCATE, MERGE; CREATE and REPLACE TABLE with
    columns, AS SELECT or SHALLOW CLONE; ALTER TABLE, COMMENT ON TABLE; OPTIMIZE, VACUUM, RESTORE, CONVERT TO DELTA,
    GENERATE; DESCRIBE DETAIL, HISTORY and TABLE; SHOW TBLPROPERTIES, COLUMNS and PARTITIONS.

    Conditions and values of statements mean what they mean in Spark 4 with ANSI mode. Queries, also those within
    INSERT, CREATE and MERGE, are DuckDB's SQL with DuckDB's meaning.

    Args:
        text: The statement.
        storage_options: For tables that the text names by their place, as for `DeltaTable`.
        commit_properties: How changes are committed.
        time_zone: The session's zone: where timestamps without one are read.
        progress: Of a command, as for the method of `DeltaTable` that does the same.
        external_access: Let queries read and write files (`read_csv`, `COPY`, `ATTACH`), use the network, load
            extensions and change settings. Without it they reach the tables and data of the call only.
        **tables: What names in the text stand for: a `DeltaTable` (which then points at the version that a change
            made), the place of one, or, to be read, data with an Arrow C stream.

    Returns:
        The rows of a query, as they are computed; what a command answers in delta-spark's columns, where it has some.
        Commands are done when the call returns.

    Raises:
        InvalidArgumentError: The statement is wrong, with the place in the text, or a name stands for nothing.
        UnsupportedExpressionError: It may be right, but this release does not have it.
        DeltaError: As the methods of `DeltaTable` that do the same.

    Example:
        >>> sql("SELECT day, count(*) FROM delta.`/data/events` VERSION AS OF 3 GROUP BY day")    # doctest: +SKIP
        >>> sql("DELETE FROM events WHERE day < DATE'2026-01-01'", events=table)                  # doctest: +SKIP
    """
    checked_zone(time_zone)
    try:
        statement = read_statement(text, zone=time_zone)
        with counted(progress):
            known = EmbeddedTables(
                tables, storage_options, commit_properties, time_zone, external_access=external_access
            )
            return run(statement, known)
    except RecursionError:
        message = "the statement nests too deep; split it, or write long lists with IN"
        raise InvalidArgumentError(message) from None


def query(text: str, zone: str) -> pa.RecordBatchReader:
    """The rows of a query whose tables are named by their places.

    Raises:
        InvalidArgumentError: The text is no query, or one that is wrong.
    """
    statement = read_statement(text, zone=zone)
    if not isinstance(statement, tree.Select):
        message = f"a source that is a text must be a query, and not {text.split(maxsplit=1)[0].upper()}"
        raise InvalidArgumentError(message)
    return run(statement, EmbeddedTables({}, None, None, zone))


def run(statement: tree.Statement, tables: Tables) -> pa.RecordBatchReader:
    """Run a statement that was read."""
    return _RUN[type(statement)](statement, tables)


def _select(select: tree.Select, tables: Tables) -> pa.RecordBatchReader:
    return run_query(select.query, tables)


_RUN: Final[dict[type, Callable[[Any, Tables], pa.RecordBatchReader]]] = {
    tree.Select: _select,
    tree.Insert: run_insert,
    tree.Delete: run_delete,
    tree.Update: run_update,
    tree.Merge: run_merge,
    tree.CreateTable: run_create,
    tree.Clone: run_clone,
    tree.Alter: run_alter,
    tree.Optimize: run_optimize,
    tree.Reorg: run_reorg,
    tree.Vacuum: run_vacuum,
    tree.Restore: run_restore,
    tree.Describe: run_describe,
    tree.Show: run_show,
    tree.Convert: run_convert,
    tree.Generate: run_generate,
}
