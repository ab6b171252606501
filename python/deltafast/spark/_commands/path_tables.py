"""Spark's own statements over tables in Delta's syntax: the same SQL, with every such table in Spark's syntax.

If `enable` has registered the format in a session, Spark reads ``delta.`path` WITH ('path' = 'path')``. This also works
in a view, which then shows the newest version whenever it is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltafast._sql.query_text import read_query
from deltafast._sql.tree import Changes, Facts, TableName
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._commands.catalog import has_own_format, takes_tables
from deltafast.spark._commands.queries import alias_of
from deltafast.spark._conditions import Operation
from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark.exceptions import during

if TYPE_CHECKING:
    from deltafast._sql.reader import Reader
    from deltafast.spark._commands.session_tables import SparkTables

__all__ = ["is_sparks", "spelled"]

#: Spark's statements in which a query, or an equivalent of one, may name tables.
_SPARKS: Final = re.compile(
    r"""(?:\s|--[^\r\n]*|/\*.*?\*/)*
    (?: EXPLAIN \b
      | CREATE \s+ (?: OR \s+ REPLACE \s+ )? (?: GLOBAL \s+ )? (?: TEMP(?:ORARY)? \s+ )? VIEW \b
      | ALTER \s+ VIEW \b
      | CREATE \s+ (?: OR \s+ REPLACE \s+ )? TABLE \b
      | CACHE \s+ (?: LAZY \s+ )? TABLE \s+ \S+ \s .*? \b SELECT \b
      | INSERT \b
      | DESC(?:RIBE)? \s+ QUERY \b
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def is_sparks(text: str) -> bool:
    """Return whether a string begins as a statement of Spark's that may contain a query."""
    return _SPARKS.match(text) is not None


def spelled(text: str, tables: SparkTables, reader: type[Reader]) -> str:
    """Return a statement of Spark's, with the tables in Delta's syntax in Spark's syntax.

    Args:
        text: The statement.
        tables: The tables of the session.
        reader: Parses timestamps.

    Raises:
        InvalidArgumentError: Its syntax is wrong, or the session cannot read paths.
        TableNotFoundError: A table that is named with a version is not a Delta table.
    """
    shown = text.rstrip().removesuffix(";").rstrip()
    query, _ = read_query(shown, 0, reader(shown, tables.zone).timestamp_at, spark=True)
    if all(isinstance(part, str) for part in query.parts):
        return text
    if not has_own_format(tables.session):
        # With Delta's own jar Spark supports the syntax itself.
        if tables.session.is_connect or not takes_tables(tables.session):
            message = (
                "this statement of Spark's cannot name tables in Delta's syntax in this session: give the query's "
                "frame a name with createOrReplaceTempView, and use that"
            )
            raise InvalidArgumentError(message)
        return text
    return "".join(
        part if isinstance(part, str) else _table(part, tables) + alias_of(part, query.parts[place + 1 :])
        for place, part in enumerate(query.parts)
    )


def _table(part: TableName | Changes | Facts, tables: SparkTables) -> str:
    if isinstance(part, Facts):
        message = f"delta_{part.kind} can stand only in a query: give its frame a name with createOrReplaceTempView"
        raise InvalidArgumentError(message)
    table = part.table if isinstance(part, Changes) else part
    path = table.name if table.by_path else tables.place(TableName(table.name, table.by_path, table.pos))
    options: dict[str, object] = {"path": path}
    if isinstance(part, Changes):
        options["readChangeFeed"] = "true"
        for which, value in (("starting", part.start), ("ending", part.end)):
            if value is not None:
                options[f"{which}{'Version' if isinstance(value, int) else 'Timestamp'}"] = value
    elif table.at is not None:
        with during(Operation.TIME_TRAVEL):
            at = tables.at(table.at)
        options["versionAsOf" if isinstance(at, int) else "timestampAsOf"] = at
    given = ", ".join(f"'{key}' = '{_escaped(str(value))}'" for key, value in options.items())
    return f"delta.{quoted(path)} WITH ({given})"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
