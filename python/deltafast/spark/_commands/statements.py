"""`sql`: Delta's statements on Spark; any other statement is passed to Spark."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltafast._expr import token_kind
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._sql import tree
from deltafast._sql.answers import counts
from deltafast._sql.query_text import inserts_of
from deltafast._sql.reader import Reader
from deltafast._sql.reading import read_statement
from deltafast._sql.result_columns import CHANGED_ROWS, MERGED, NO_COLUMNS, columns_of
from deltafast._sql.rows import constants, names_of
from deltafast._sql.run_changes import (
    equal,
    merge_sql,
    merged,
    qualifiers,
    replaced_rows,
    rows_of,
    run_insert,
    values_of,
    written,
)
from deltafast._sql.run_statement import run_statement
from deltafast._util.column_mapping import MappingMode
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.spark._commands import dml
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._commands.catalog import (
    READ_BY_CLIENT,
    become_delta,
    handle,
    is_temporary,
    new_entry,
    place_of_name,
    views_of,
)
from deltafast.spark._commands.catalog_tables import (
    adopted,
    check_location,
    create_like,
    like_of,
    of_catalog,
    relocation_of,
)
from deltafast.spark._commands.create_table import NewTable, create, defaults_not_enabled, where
from deltafast.spark._commands.parameters import bound
from deltafast.spark._commands.path_tables import is_sparks, spelled
from deltafast.spark._commands.queries import frame_of, refresh_views
from deltafast.spark._commands.result_frames import answered, history_of, nothing, plan_of
from deltafast.spark._commands.session_tables import SparkTables
from deltafast.spark._commands.subqueries import with_values, with_variable
from deltafast.spark._conditions import Operation
from deltafast.spark._scan.physical_columns import check_names, mapping_mode
from deltafast.spark._session.cached_rows import refresh_dependents
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark._write.physical_schema import by_position
from deltafast.spark._write.writer import write
from deltafast.spark.exceptions import during, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from deltafast._sql.tree import TableName
    from deltafast.table import DeltaTable

__all__ = ["PreparedStatement", "prepare", "sql"]

#: Statements that Spark does not have, so that their errors are raised here.
_OWN: Final = re.compile(
    r"(?is)\s*(OPTIMIZE|VACUUM|RESTORE|REORG|CONVERT|GENERATE|DESC(RIBE)?\s+(HISTORY|DETAIL))\b|.*\bdelta\s*\.\s*`"
)
_QUERY: Final = re.compile(r"(?i)[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\b")
_EXTERNAL: Final = re.compile(r"(?is)^\s*CREATE\s+EXTERNAL\s+TABLE\b")
#: A change of a table: queries before it, its table.
_CHANGE: Final = re.compile(
    r"(?is)\s*(WITH\b.*\b)?(?:UPDATE|DELETE\s+FROM|TRUNCATE\s+TABLE|MERGE\s+(?:WITH\s+SCHEMA\s+EVOLUTION\s+)?INTO)\s+"
    r"((?:\w+|`(?:[^`]|``)+`)(?:\.(?:\w+|`(?:[^`]|``)+`))*)"
)
_SUBQUERY: Final = re.compile(r"(?is)\(\s*(?:SELECT|WITH)\b")
_INSERTS: Final = re.compile(r"(?is)(?:\s|--[^\r\n]*|/\*.*?\*/)*(?:FROM|WITH)\b.*\bINSERT\b")
_EXPLAIN: Final = re.compile(
    r"(?is)\s*EXPLAIN\s+(?:(EXTENDED|CODEGEN|COST|FORMATTED)\s+)?(?=(?:INSERT|UPDATE|DELETE|MERGE|TRUNCATE|FROM|WITH)\b)"
)
_CHANGES: Final = (tree.Insert, tree.Update, tree.Delete, tree.Merge)
_TABLE: Final = re.compile(r"(?is)\s*TABLE\s+(delta\s*\.\s*`(?:[^`]|``)+`)\s*;?\s*")
_DROP: Final = re.compile(r"(?is)\s*DROP\s+TABLE\s+(IF\s+EXISTS\s+)?delta\s*\.\s*`((?:[^`]|``)+)`\s*(?:PURGE\s*)?;?\s*")
#: Statements of both Spark and Delta, which Delta's parser takes for Delta tables.
_OF_DELTA: Final = re.compile(
    r"(?is)\s*(?:(?:CREATE\s+(?:OR\s+REPLACE\s+)?|REPLACE\s+)TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"|INSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?)delta\s*\.\s*`"
)
#: The creation of a table without a query, which Spark leaves to Delta's statements.
_CREATION: Final = re.compile(
    r"(?is)\s*(?:CREATE\s+(?:EXTERNAL\s+|OR\s+REPLACE\s+)?|REPLACE\s+)TABLE\b.*\bUSING\s+`?delta`?(?!\w)"
    r"(?!.*\bAS\s*\(?\s*(?:SELECT|WITH|FROM|VALUES|TABLE)\b)"
)
_VALUES: Final = re.compile(r"(?is)(\s*INSERT\s+(?:INTO|OVERWRITE)\b.*?)\bVALUES\b(\s*\(.*)")
#: The creation of a view that outlives the session; what its query reads.
_VIEW: Final = re.compile(r"(?is)\s*CREATE\s+(?:OR\s+REPLACE\s+)?VIEW\b.*\bAS\b")
_READ_TABLE: Final = re.compile(r"(?i)\b(?:FROM|JOIN)\s+((?:\w+|`(?:[^`]|``)+`)(?:\.(?:\w+|`(?:[^`]|``)+`))*)")
#: A script, whose statements Spark's interpreter gives to no other parser.
_SCRIPT: Final = re.compile(r"(?is)\s*BEGIN\b(?!\s+TRANSACTION).*\bEND\s*;?\s*")
#: A change of rows within a script; its table.
_CHANGE_IN_SCRIPT: Final = re.compile(
    r"(?i)\b(?:UPDATE|DELETE\s+FROM|MERGE\s+INTO)\s+((?:\w+|`(?:[^`]|``)+`)(?:\.(?:\w+|`(?:[^`]|``)+`))*)"
)
#: Statements of Spark's that hold another as a string, which is parsed by itself.
_HOLDS_STATEMENTS: Final = re.compile(r"(?i)\s*(?:EXECUTE\s+IMMEDIATE|DECLARE)\b")
_USING_DELTA: Final = re.compile(r"(?is)\bUSING\s+`?delta`?(\W|$)")


class _SparkReader(Reader):
    """Reads names of several parts, and queries in Spark's syntax."""

    spark = True

    def table(self) -> TableName:
        """Read ``delta.`place` ``, or a name of the session."""
        token = self.token
        if token.upper == "DELTA" and self.ahead().text == "." and self.ahead(2).kind is token_kind.QUOTED:
            return super().table()
        start, parts = token.pos, [self.name_part("a table")]
        while self.accept_op("."):
            parts.append(self.name_part("a table"))
        name = parts[0] if len(parts) == 1 else self.text[start : self.token.pos].strip().partition("@")[0]
        return tree.TableName(name, by_path=False, pos=start)


class PreparedStatement(NamedTuple):
    """A statement that has been read and has not run."""

    #: Runs it and returns its result as a data frame; a query runs when its frame does.
    run: Callable[[], Any]
    #: The columns of the result of a statement that changes tables; None if it only reads.
    columns: pa.Schema | None = None
    #: The statement in Spark's syntax, if Spark runs it.
    sparks: str | None = None


@translated(Operation.RELATION)
def sql(spark: Any, text: str, args: Any = None) -> Any:
    """Run one statement: Delta's by the core and Spark's own reader and writer, any other by Spark.

    Delta's statements are those of `deltafast.sql`, on tables that are named by ``delta.`path` ``, by a view of
    `register_view`, or by a table of the session's catalog whose provider is `delta`. Queries, also those within
    INSERT, MERGE and CREATE TABLE, run on Spark; in them ``delta.`path` ``, `VERSION AS OF`, `TIMESTAMP AS OF`,
    `t@v5`, `table_changes(..)` and `table_changes_by_path(..)` are read by `deltafast.spark.read`.

    Args:
        spark: The session, classic or Connect.
        text: The statement, in Spark SQL.
        args: Parameters: values by name, for `:name`, or a list of them, for `?`.

    Returns:
        A data frame: the rows of a query, lazily; the result of a command, in delta-spark's columns. Commands are
        complete when the call returns.

    Raises:
        InvalidArgumentError: The statement is invalid; the message has the position in the string.
        UnsupportedExpressionError: The statement may be valid, but this release does not support it.
        TableNotFoundError: A name is not that of a Delta table.
        DeltaError: As the corresponding methods of `DeltaTable`.
        PySparkException: Spark rejects a query, or a statement of its own.

    Examples:
        >>> import deltafast.spark
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> deltafast.spark.register_view(spark, "cities", "cities")
        >>> result = deltafast.spark.sql(spark, "DELETE FROM cities WHERE id = 1")
        >>> deltafast.spark.sql(spark, "SELECT max(city) FROM cities").collect()
        [Row(max(city)='Rome')]
    """
    return prepare(Session(spark), text, args).run()


def prepare(  # noqa: PLR0911 - one line a kind
    session: Session, text: str, args: Any = None
) -> PreparedStatement:
    """Read one statement; the arguments and errors are those of `sql`."""
    text = _EXTERNAL.sub("CREATE TABLE", text) if _USING_DELTA.search(text) else text
    found = _of_other_statements(session, text, args)
    if found is not None:
        return found
    _check_supported(session, text)
    whole = text if args is None or _QUERY.match(text) else bound(text, args)
    if _has_subqueries(session, whole):
        return _with_subqueries(session, whole)
    try:
        statement = read_statement(whole, zone=session.zone, reader=_SparkReader)
    except InvalidArgumentError:
        statement = _insert_of_query(session, whole)
        if statement is None:
            found = _unread(session, text, args)
            if found is None:
                raise
            return found
    if isinstance(statement, tree.Select):
        return _query(session, statement.query, args)
    tables = SparkTables.of(session)
    _refuse_view(statement, tables)
    if _is_deltas(statement, tables, whole):
        if isinstance(statement, tree.Update | tree.Delete | tree.Merge):
            return PreparedStatement(lambda: _changed(statement, whole, tables), columns_of(statement))
        return _prepared(statement, tables)
    return _of_spark(session, spelled(text, tables, _SparkReader) if is_sparks(text) else text, args)


def _query(session: Session, query: tree.Query, args: Any) -> PreparedStatement:
    if session.spark not in READ_BY_CLIENT and all(isinstance(part, str) for part in query.parts):
        refresh_views(session, query.names)
        return _of_spark(session, query.text, args)
    return PreparedStatement(lambda: frame_of(session, query, SparkTables.of(session), args))


def _insert_of_query(session: Session, text: str) -> tree.Insert | None:
    """Return an INSERT into a Delta table whose VALUES only Spark can read, as one of a query; None for any other."""
    values = _VALUES.fullmatch(text)
    if values is None:
        return None
    try:
        of_query = f"{values[1]}SELECT * FROM VALUES{values[2]}"  # noqa: S608 - it is the user's statement
        statement = read_statement(of_query, zone=session.zone, reader=_SparkReader)
    except InvalidArgumentError:
        return None
    if isinstance(statement, tree.Insert) and SparkTables.of(session).knows(statement.target):
        return statement
    return None


def _unread(session: Session, text: str, args: Any) -> PreparedStatement | None:  # noqa: PLR0911 - one line a kind
    """Return a statement that the reader of Delta's SQL does not know; None if it is one of Delta with an error."""
    named = _TABLE.fullmatch(text)
    if named:
        text = f"SELECT * FROM {named[1]}"  # noqa: S608 - the name is quoted already
        return _query(session, _SparkReader(text, session.zone).query(), args)
    if like_of(text) is not None:
        # Its source is not a Delta table.
        return _of_spark(session, text, args)
    change = _CHANGE.match(text)
    # Spark can neither change a Delta table nor create one.
    is_change = change is not None and _is_of_delta(session, change[2])
    if is_change or _CREATION.match(text) or _OF_DELTA.match(text):
        return None
    if _HOLDS_STATEMENTS.match(text):
        return _of_spark(session, text, args)
    if is_sparks(text):
        return _of_spark(session, spelled(text, SparkTables.of(session), _SparkReader), args)
    if _OWN.match(text) or _speaks_of(text, views_of(session)):
        return None
    return _of_spark(session, text, args)


def _of_spark(session: Session, text: str, args: Any) -> PreparedStatement:
    return PreparedStatement(lambda: session.run(text, args), sparks=text)


def _prepared(statement: tree.Statement, tables: SparkTables) -> PreparedStatement:
    """Return a statement of Delta."""

    def complete() -> Any:
        found = _run(statement, tables)
        refresh_views(tables.session)
        return found

    return PreparedStatement(complete, columns_of(statement))


def _check_supported(session: Session, text: str) -> None:
    """Refuse statements that Spark takes, and then cannot run for Delta tables.

    They are a script that changes rows, and over Connect a view of the catalog, which only a client could read.

    Raises:
        UnsupportedExpressionError: It is such a statement.
    """
    if _SCRIPT.fullmatch(text) and _names_delta(session, _CHANGE_IN_SCRIPT, text):
        message = "a SQL script cannot change rows of Delta tables: run its statements one after the other"
        raise UnsupportedExpressionError(message)
    view = _VIEW.match(text) if session.spark in READ_BY_CLIENT else None
    if view is not None and _names_delta(session, _READ_TABLE, text[view.end() :]):
        message = "the server cannot read Delta tables in a view of its catalog: write CREATE TEMPORARY VIEW"
        raise UnsupportedExpressionError(message)


def _names_delta(session: Session, pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a name that the pattern finds in a text is that of a Delta table."""
    return any(_is_of_delta(session, match[1]) for match in pattern.finditer(text))


def _changed(statement: tree.Statement, text: str, tables: SparkTables) -> Any:
    """Run a change of rows; a name that is not a column's may be that of a variable of the session."""
    while True:
        try:
            return _prepared(statement, tables).run()
        except InvalidArgumentError as error:
            if error.code is not ErrorCode.COLUMN_NOT_FOUND:
                raise
            replaced = with_variable(tables.session, text, error.parameters["column"])
            if replaced is None:
                raise
            text = replaced
            statement = read_statement(text, zone=tables.session.zone, reader=_SparkReader)


def _of_other_statements(session: Session, text: str, args: Any) -> PreparedStatement | None:
    """Return a statement that is implemented by other statements, or explains them; None for any other."""
    found = _made_of_others(session, text) or _explained(session, text, args)
    if found is not None:
        return found
    several = _several(session, text if args is None else bound(text, args))

    def complete() -> Any:
        for one in several:
            sql(session.spark, one)
        return nothing(session)

    return PreparedStatement(complete, NO_COLUMNS) if several else None


def _several(session: Session, text: str) -> list[str]:
    """Return the INSERTs of a multi-insert statement of Spark's, if one of them is into a Delta table.

    As in delta-spark they are separate commits, one after the other.

    Raises:
        InvalidArgumentError: One that names a path has a syntax error; none has been run.
    """
    inserts = inserts_of(text) if _INSERTS.match(text) else []
    if not inserts:
        return []
    tables, is_deltas = SparkTables.of(session), False
    for one in inserts:
        try:
            statement = read_statement(one, zone=session.zone, reader=_SparkReader)
        except InvalidArgumentError:
            if _OF_DELTA.match(one):
                raise
            # One of Spark's own, such as into a directory.
            continue
        is_deltas = is_deltas or (isinstance(statement, tree.Insert) and tables.knows(statement.target))
    return inserts if is_deltas else []


def _explained(session: Session, text: str, args: Any) -> PreparedStatement | None:
    """Return EXPLAIN of a change of a Delta table, which is not run: it shows the command and the plan of new rows.

    None for any other statement, which is passed to Spark.

    Raises:
        InvalidArgumentError: A statement that names a path has a syntax error.
        TableNotFoundError: There is no table.
    """
    match = _EXPLAIN.match(text)
    if match is None:
        return None
    changed = text[match.end() :] if args is None else bound(text[match.end() :], args)
    tables, lines = SparkTables.of(session), ["== Physical Plan =="]
    for one in _several(session, changed) or [changed]:
        try:
            statement = read_statement(one, zone=session.zone, reader=_SparkReader)
        except InvalidArgumentError:
            if _OWN.match(one):
                raise
            return None
        if not isinstance(statement, _CHANGES) or not _is_deltas(statement, tables, one):
            return None
        what, table = type(statement).__name__, tables.table(statement.target)
        lines.append(
            f"Execute {what} of deltafast: {place_of(session, table.table_uri).hadoop}, version {table.version()}"
        )
        if isinstance(statement, tree.Insert | tree.Merge) and not isinstance(statement.source, tree.Values):
            lines.append(plan_of(_frame(statement.source, tables), (match[1] or "simple").lower()))
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField("plan", StringType())])
    return PreparedStatement(lambda: session.spark.createDataFrame([("\n".join(lines),)], schema))


def _dropped(session: Session, path: str, *, if_exists: bool) -> Any:
    """Run `DROP TABLE` for a path, as delta-spark does: it is in no catalog, and its files are kept."""
    place = place_of(session, path.replace("``", "`"))
    if not if_exists:
        handle(session, place)
    return nothing(session)


def _has_subqueries(session: Session, text: str) -> bool:
    """Return whether a string is a change of a Delta table with subqueries."""
    change = _CHANGE.match(text)
    is_plain = change is not None and change[1] is None and _SUBQUERY.search(text, change.end()) is not None
    return change is not None and is_plain and _is_of_delta(session, change[2])


def _is_of_delta(session: Session, name: str) -> bool:
    path = path_in(name)
    return SparkTables.of(session).knows(tree.TableName(path or name, by_path=path is not None, pos=0))


def _with_subqueries(session: Session, text: str) -> PreparedStatement:
    """Return a change whose subqueries run when it does."""
    tables = SparkTables.of(session)

    def complete() -> Any:
        whole = with_values(text, tables, _SparkReader)
        return _changed(read_statement(whole, zone=session.zone, reader=_SparkReader), whole, tables)

    return PreparedStatement(complete, MERGED if re.match(r"(?i)\s*MERGE\b", text) else CHANGED_ROWS)


def _made_of_others(session: Session, text: str) -> PreparedStatement | None:
    """Return a statement that takes a table of the catalog to create another, or drops a path; None for others."""
    dropped = _DROP.fullmatch(text)
    if dropped:
        return PreparedStatement(lambda: _dropped(session, dropped[2], if_exists=dropped[1] is not None), NO_COLUMNS)
    converted = of_catalog(session, text)
    if converted is not None:

        def convert() -> Any:
            found = sql(session.spark, converted.text)
            become_delta(session, converted.name)
            return found

        return PreparedStatement(convert, NO_COLUMNS)
    moved = relocation_of(text)
    if moved is not None and place_of_name(session, moved.name) is not None:
        check_location(session, moved)
        return _of_spark(session, text, None)
    like = like_of(text)
    if like is not None and SparkTables.of(session).knows(tree.TableName(like.source, by_path=False, pos=0)):

        def create_empty() -> Any:
            create_like(session, like)
            return nothing(session)

        return PreparedStatement(create_empty, NO_COLUMNS)
    return None


def _refuse_view(statement: tree.Statement, tables: SparkTables) -> None:
    """Raise an error of one line for a change of a temporary view; Spark's error shows its internal classes' names."""
    if not isinstance(statement, tree.Update | tree.Delete | tree.Merge) or tables.knows(statement.target):
        return
    name = statement.target.name
    if is_temporary(tables.session, name):
        message = f"the view {name} does not show the whole of one Delta table, so that it cannot be changed: "
        raise InvalidArgumentError(message + "name the table, or its place as delta.`path`")


def _speaks_of(text: str, views: dict[str, Any]) -> bool:
    """Return whether a string names a registered table."""
    return not views.keys().isdisjoint(word.lower() for word in re.findall(r"\w+", text))


def _is_deltas(statement: tree.Statement, tables: SparkTables, text: str) -> bool:  # noqa: PLR0911 - one line a kind
    """Return whether a statement refers to a Delta table."""
    match statement:
        case tree.Select() | tree.Convert():
            return True
        case tree.CreateTable(target=target):
            if target.by_path or _USING_DELTA.search(text) is not None:
                return True
            is_default = str(tables.session.conf("spark.sql.sources.default")).lower() == "delta"
            return is_default and re.search(r"(?i)\bUSING\b", text) is None
        case tree.Clone(source=source):
            return tables.knows(source)
        case tree.Insert(target=target):
            return tables.knows(target)
        case tree.Describe(target=target, kind=tree.DescribeKind.EXTENDED) if not target.by_path:
            # Spark describes views.
            return place_of_name(tables.session, target.name) is not None
        case _:
            return tables.knows(statement.target) or _OWN.match(text) is not None


def _run(statement: tree.Statement, tables: SparkTables) -> Any:
    """Run a statement of Delta."""
    match statement:
        case tree.Restore():
            operation = Operation.RESTORE
        case tree.Describe(kind=tree.DescribeKind.HISTORY):
            operation = Operation.HISTORY
        case tree.Optimize():
            operation = Operation.OPTIMIZE
        case tree.Merge():
            operation = Operation.MERGE
        case tree.Insert():
            operation = Operation.INSERT
        case tree.Show(kind=tree.ShowKind.PARTITIONS):
            operation = Operation.SHOW_PARTITIONS
        case tree.Delete() | tree.Update():
            operation = Operation.RELATION
        case _:
            operation = Operation.COMMAND
    with during(operation):
        return _run_in_session(statement, tables)


def _run_in_session(statement: tree.Statement, tables: SparkTables) -> Any:  # noqa: C901, PLR0911 - one line per statement
    session = tables.session
    match statement:
        case tree.Delete(target=target):
            table = tables.table(target)
            metrics = dml.delete(session, table, rows_of(statement, table, Dialect.SPARK))
            return answered(session, counts(num_affected_rows=metrics["num_deleted_rows"]))
        case tree.Update(target=target):
            table = tables.table(target)
            values, condition = values_of(statement, table, Dialect.SPARK), rows_of(statement, table, Dialect.SPARK)
            metrics = dml.update(session, table, values, condition)
            return answered(session, counts(num_affected_rows=metrics["num_updated_rows"]))
        case tree.Merge():
            return _merge(statement, tables)
        case tree.Insert():
            return _insert(statement, tables)
        case tree.CreateTable():
            return _create(statement, tables)
        case tree.Clone(target=target) if not target.by_path:
            return _clone(statement, tables)
        case tree.Alter(change=tree.AddColumns(fields)):
            _check_new(tables.table(statement.target), [json.loads(field.to_json()) for _, field, _ in fields])
            return answered(session, run_statement(statement, tables))
        case tree.Alter(change=tree.AlterColumns(columns)):
            _check_defaults(tables.table(statement.target), columns)
            return answered(session, run_statement(statement, tables))
        case tree.Describe(target=target, kind=tree.DescribeKind.HISTORY, limit=limit):
            return history_of(session, place_of(session, tables.place(target)), tables.table(target), limit)
        case tree.Convert(place=path):
            place = place_of(session, path)
            known = replace(tables, storage_options=place.options or None)
            return answered(session, run_statement(replace(statement, place=place.uri), known))
        case _:
            return _run_in_core(statement, tables)


def _run_in_core(statement: tree.Statement, tables: SparkTables) -> Any:
    result = run_statement(statement, tables)
    if isinstance(statement, tree.Restore | tree.Clone):
        refresh_dependents(tables.session, tables.place(statement.target))
    return answered(tables.session, result)


def _check_new(table: DeltaTable, fields: list[dict[str, Any]]) -> None:
    """Reject new columns whose names need column mapping."""
    protocol, properties = table.protocol(), table.metadata().configuration
    if mapping_mode(protocol.min_reader_version, protocol.reader_features, properties) is MappingMode.NONE:
        check_names({"fields": fields}, lambda: None)


def _check_defaults(table: DeltaTable, changes: Sequence[tree.AlterColumn]) -> None:
    """Reject a new default in a table without the feature for defaults."""
    if "allowColumnDefaults" in (table.protocol().writer_features or ()):
        return
    for change in changes:
        if change.kind is tree.ColumnChange.DEFAULT and change.value is not None:
            raise defaults_not_enabled(".".join(change.column))


def _at(path: str) -> TableName:
    return tree.TableName(path, by_path=True, pos=0)


def _frame(source: tree.Source, tables: SparkTables) -> Any:
    """Return the rows of a query or table as a data frame."""
    if isinstance(source, tree.TableName):
        if not source.by_path and source.at is None:
            refresh_views(tables.session, frozenset({source.name.lower()}))
            return tables.session.spark.table(source.name)
        return frame_of(tables.session, tree.Query("", ("SELECT * FROM ", source), frozenset()), tables)
    if isinstance(source, tree.Values):
        message = "the rows of a query are needed; write SELECT * FROM (VALUES ..)"
        raise InvalidArgumentError(message)
    return frame_of(tables.session, source, tables)


def _merge(merge: tree.Merge, tables: SparkTables) -> Any:
    table = tables.table(merge.target)
    source = _frame(merge.source, tables)
    if merge.source_columns:
        source = source.toDF(*merge.source_columns)
    evolve = merge.evolve or tables.session.merges_schemas
    request = dml.MergeRequest(*merge_sql(merge, table, Dialect.SPARK), evolve)
    metrics = dml.merge(tables.session, table, source, request)
    return answered(tables.session, merged(metrics))


def _insert(insert: tree.Insert, tables: SparkTables) -> Any:
    session = tables.session
    # A column list determines the columns, whatever the session's settings.
    if not insert.columns and session.merges_schemas:
        insert = replace(insert, evolve=True)
    if isinstance(insert.source, tree.Values) or insert.mode in (tree.InsertMode.USING, tree.InsertMode.ON):
        try:
            return _insert_in_core(insert, tables)
        except InvalidArgumentError as error:
            query = _query_of_values(insert, error)
            if query is None:
                raise
            # Spark has more functions, and the session's variables.
            insert = replace(insert, source=query)
    from pyspark.sql import functions

    table = tables.table(insert.target)
    before = table.version()
    fixed = constants(insert.partition, table, tables.zone)
    frame = _frame(insert.source, tables)
    if not insert.by_name:
        frame = frame.toDF(*names_of(insert, table, fixed, frame.columns))
        frame = by_position(frame, json.loads(table.schema().to_json())["fields"], evolves=insert.evolve)
    for name, value in fixed.items():
        frame = frame.withColumn(name, functions.lit(value))
    condition = None
    if insert.mode is tree.InsertMode.WHERE and insert.condition is not None:
        qualified = qualifiers(insert.target, insert.target_alias)
        condition = replaced_rows(insert.condition, table, qualified, Dialect.SPARK)
    elif insert.mode is tree.InsertMode.OVERWRITE and fixed and not tables.replaces_partitions():
        condition = " AND ".join(equal(name, value) for name, value in fixed.items())
    mode: Any = "append" if insert.mode is tree.InsertMode.APPEND else "overwrite"
    options = {"mergeSchema": "true"} if insert.evolve else {}
    path = tables.place(insert.target)
    version = write(frame, path, mode, replace_where=condition, options=options)
    table.update_incremental()
    made = 0 if version is None or version == before else written(table)
    return answered(session, counts(num_affected_rows=made, num_inserted_rows=made))


def _insert_in_core(insert: tree.Insert, tables: SparkTables) -> Any:
    with dml.committing(tables.session, tables.table(insert.target)) as options:
        if options is None:
            return answered(tables.session, counts(num_affected_rows=0, num_inserted_rows=0))
        return answered(tables.session, run_insert(insert, replace(tables, **options)))


def _query_of_values(insert: tree.Insert, error: InvalidArgumentError) -> tree.Query | None:
    """Return the rows of VALUES as a query of Spark if the core cannot evaluate them, and Spark may; else None."""
    values = insert.source
    is_spark = isinstance(error, UnsupportedExpressionError) or error.code is ErrorCode.COLUMN_NOT_FOUND
    is_plain = insert.mode not in (tree.InsertMode.USING, tree.InsertMode.ON)
    if not is_spark or not is_plain or not isinstance(values, tree.Values):
        return None
    rows: list[str] = []
    for row in values.rows:
        cells = [value.text for value in row if isinstance(value, tree.Expression)]
        if len(cells) < len(row):
            return None
        rows.append(f"SELECT {', '.join(cells)}")
    # Not VALUES, where Spark has no functions such as uuid().
    text = " UNION ALL ".join(rows)
    return tree.Query(text, (text,), frozenset())


def _clone(statement: tree.Clone, tables: SparkTables) -> Any:
    session = tables.session
    path, name, is_managed = where(session, statement.target.name, statement.location)

    def columns() -> list[dict[str, Any]]:
        return json.loads(tables.table(statement.source).schema().to_json())["fields"]

    with new_entry(session, name, place_of(session, path), columns if is_managed else None):
        result = run_statement(replace(statement, target=_at(path), location=None), tables)
        refresh_dependents(session, path)
        return answered(session, result)


def _create(statement: tree.CreateTable, tables: SparkTables) -> Any:
    session = tables.session
    target = statement.target
    spelled = f"delta.`{target.name.replace('`', '``')}`" if target.by_path else target.name
    path, name, is_managed = where(session, spelled, statement.location)
    table = NewTable(
        statement.mode,
        path,
        name,
        [json.loads(field.to_json()) for field in statement.columns],
        list(statement.partition_by),
        list(statement.cluster_by),
        dict(statement.properties),
        statement.comment,
        is_managed,
    )
    if statement.location is not None and statement.query is None:
        table = adopted(session, table)
    create(session, table, None if statement.query is None else _frame(statement.query, tables))
    return nothing(session)
