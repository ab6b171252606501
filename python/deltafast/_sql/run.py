"""`sql()`: parses one statement and runs it on the embedded engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._expr.literals import time_zone as checked_zone
from deltafast._sql import tree
from deltafast._sql.option_names import as_clause
from deltafast._sql.queries import EmbeddedTables
from deltafast._sql.query_result import QueryResult
from deltafast._sql.reading import read_statement
from deltafast._sql.run_statement import run_statement
from deltafast.exceptions import DeltaError, InvalidArgumentError
from deltafast.progress import Progress, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from deltafast.transaction import CommitProperties

__all__ = ["query", "sql"]


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
) -> QueryResult:
    """Run one statement of Delta's SQL, or a query.

    Statements are those of delta-spark: SELECT with `VERSION AS OF`, `TIMESTAMP AS OF`, `t@v5` and `table_changes(..)`;
    INSERT INTO, OVERWRITE, REPLACE WHERE, USING and ON; UPDATE, DELETE, TRUNCATE, MERGE; CREATE and REPLACE TABLE with
    columns, AS SELECT or SHALLOW CLONE; ALTER TABLE, COMMENT ON TABLE; OPTIMIZE, VACUUM, RESTORE, CONVERT TO DELTA,
    GENERATE; DESCRIBE DETAIL, HISTORY and TABLE; SHOW TBLPROPERTIES, COLUMNS, PARTITIONS
    and CREATE TABLE.

    Conditions and values of statements have the semantics of Spark 4 in ANSI mode. Queries, also those within
    INSERT, CREATE and MERGE, are DuckDB's SQL with DuckDB's semantics.

    Args:
        text: The statement.
        storage_options: As for `DeltaTable`, for tables that the statement gives by location.
        commit_properties: Options of the commits.
        time_zone: The session's time zone, for timestamps without one.
        progress: Progress of a command, as for the corresponding method of `DeltaTable`.
        external_access: Allow queries to read and write files (`read_csv`, `COPY`, `ATTACH`), use the network, load
            extensions and change settings. Otherwise they can only access the tables and data of the call.
        **tables: Definitions of names in the statement: a `DeltaTable` (which afterwards points at the version that a
            change has committed), the location of a table, or, for reading, data with an Arrow C stream.

    Returns:
        The rows of a query, streamed, with the methods of a `pyarrow.RecordBatchReader`; for a command its result, in
        delta-spark's columns if it has any. Commands are finished when the call returns. A shell and a notebook show
        the first rows as a table.

    Raises:
        InvalidArgumentError: The statement is invalid (the message has the position), or a name is unknown.
        UnsupportedExpressionError: The statement may be valid, but this release does not support it.
        DeltaError: As the corresponding methods of `DeltaTable`.

    Examples:
        >>> from deltafast import DeltaTable, sql, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> sql("SELECT city FROM delta.`cities` WHERE id > 1 ORDER BY id").read_all()["city"].to_pylist()
        ['Rome', 'Lima']
        >>> result = sql("DELETE FROM cities WHERE id = 1", cities=DeltaTable("cities"))
        >>> DeltaTable("cities").count()
        2
    """
    checked_zone(time_zone)
    try:
        statement = read_statement(text, zone=time_zone)
        with counted(progress):
            known = EmbeddedTables(
                tables, storage_options, commit_properties, time_zone, external_access=external_access
            )
            try:
                return QueryResult(run_statement(statement, known))
            finally:
                known.finish()
    except RecursionError:
        message = "the statement nests too deep; split it, or write long lists with IN"
        raise InvalidArgumentError(message) from None
    except DeltaError as error:
        error.respell(as_clause)
        raise


def query(text: str, zone: str) -> pa.RecordBatchReader:
    """Return the rows of a query whose tables are given by location.

    Raises:
        InvalidArgumentError: The string is not a query, or the query is invalid.
    """
    statement = read_statement(text, zone=zone)
    if not isinstance(statement, tree.Select):
        message = f"a source given as a string must be a query, not {text.split(maxsplit=1)[0].upper()}"
        raise InvalidArgumentError(message)
    return run_statement(statement, EmbeddedTables({}, None, None, zone))
