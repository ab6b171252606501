"""Spark queries over tables in Delta's syntax, and tables under names of the session."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._sql.query_text import named_tables
from deltafast._sql.run_describe import facts_of
from deltafast._sql.tree import Changes, Facts, FactsKind, Query, TableName
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._commands.catalog import READ_BY_CLIENT, View, handle, place_of_name, views_of
from deltafast.spark._commands.result_frames import answered, history_of
from deltafast.spark._conditions import Operation
from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark._scan.reader import followed, read
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark.exceptions import during, translated

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from datetime import datetime

    from deltafast._sql.tables import Tables

__all__ = ["alias_of", "files", "frame_of", "refresh_views", "register_view"]

#: Words after a table that are not an alias.
_NO_ALIAS: Final = frozenset(
    [
        "ANTI",
        "CLUSTER",
        "CROSS",
        "DISTRIBUTE",
        "EXCEPT",
        "FULL",
        "GROUP",
        "HAVING",
        "INNER",
        "INTERSECT",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIMIT",
        "MINUS",
        "NATURAL",
        "OFFSET",
        "ON",
        "ORDER",
        "PIVOT",
        "RIGHT",
        "SELECT",
        "SEMI",
        "SORT",
        "TABLESAMPLE",
        "UNION",
        "UNPIVOT",
        "USING",
        "WHERE",
        "WINDOW",
    ]
)
_NEXT: Final = re.compile(r"\s*([A-Za-z_]\w*|`|\S|$)")


@translated(Operation.RELATION)
def register_view(
    spark: Any,
    name: str,
    path: str | os.PathLike[str],
    version: int | None = None,
    timestamp: str | datetime | None = None,
) -> None:
    """Register a table under a name: as a temporary view for queries, and as a table to change for `sql`.

    Without a version the view shows the newest one whenever `sql` runs a query that names it; `spark.sql` sees the
    version that was the newest at the last refresh.

    Args:
        spark: The session, classic or Connect.
        name: The view's name, of one part.
        path: The table's path or URL.
        version: Show this version.
        timestamp: Show the version at this timestamp.

    Raises:
        TableNotFoundError: There is no table.
        InvalidArgumentError: The name has several parts.

    Examples:
        >>> import deltafast.spark
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> deltafast.spark.register_view(spark, "cities", "cities")
        >>> deltafast.spark.sql(spark, "SELECT count(*) AS n FROM cities").collect()
        [Row(n=3)]
    """
    session = Session(spark)
    if not re.fullmatch(r"\w+", name):
        message = f"{name!r} cannot be the name of a view: letters, digits and underscores can"
        raise InvalidArgumentError(message)
    is_fixed = version is not None or timestamp is not None
    place = place_of(session, path)
    table = handle(session, place)
    if is_fixed:
        table.load_as_version(cast("int | str", version if version is not None else timestamp))
    _show(session, name, View(place.hadoop, table.version(), is_fixed))


def _show(session: Session, name: str, view: View) -> None:
    read(session.spark, view.path, view.version).createOrReplaceTempView(name)
    views_of(session)[name.lower()] = view


def refresh_views(session: Session, names: frozenset[str] | None = None) -> None:
    """Refresh views without a fixed version to show the newest one.

    Args:
        session: The session.
        names: Only these, in lower case.
    """
    for name, view in list(views_of(session).items()):
        if view.is_fixed or (names is not None and name not in names):
            continue
        newest = handle(session, place_of(session, view.path)).version()
        if newest != view.version:
            _show(session, name, view._replace(version=newest))


@translated(Operation.RELATION)
def files(spark: Any, path: str, filters: Any = None) -> Any:
    """Return the files of a table's newest version as a data frame with partition values and statistics, one row each.

    Args:
        spark: The session, classic or Connect.
        path: The table's path or URL.
        filters: Skip files that cannot hold a matching row: Spark SQL or tuples.

    Returns:
        The columns of `DeltaTable.get_add_actions`, with a column for each partition value and statistic.

    Raises:
        TableNotFoundError: There is no table.
        InvalidArgumentError: The filter is invalid.

    Examples:
        >>> import deltafast.spark
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> deltafast.spark.files(spark, "cities").select("num_records", "`min.id`").collect()
        [Row(num_records=3, min.id=1)]
    """
    session = Session(spark)
    table = handle(session, place_of(session, path))
    return session.frame(table.get_add_actions(flatten=True, predicate=filters))


def frame_of(session: Session, query: Query, tables: Tables, args: Any = None) -> Any:
    """Return a query as a data frame, with its tables pinned to their current versions.

    Args:
        session: The session.
        query: The query, whose parts name tables.
        tables: The tables of the session.
        args: Parameters of the query, for Spark.

    Raises:
        AnalysisException: Spark rejects the query.
        TableNotFoundError: A table that is named with a version is not a Delta table.
    """
    refresh_views(session, query.names)
    if session.spark in READ_BY_CLIENT:
        query = replace(query, parts=tuple(_with_names(session, query)))
    if all(isinstance(part, str) for part in query.parts):
        return session.run(query.text, args)
    frames: dict[str, Any] = {}
    keys: dict[tuple[Any, ...], str] = {}
    text: list[str] = []
    for place, part in enumerate(query.parts):
        if isinstance(part, str):
            text.append(part.replace("{", "{{").replace("}", "}}"))
            continue
        key = _meaning(part)
        if key not in keys:
            keys[key] = f"deltafast_{len(keys)}"
            frames[keys[key]] = _read(session, part, tables)
        text.append("{" + keys[key] + "}" + alias_of(part, query.parts[place + 1 :]))
    return session.run("".join(text), args, **frames)


def _with_names(session: Session, query: Query) -> Iterator[str | TableName | Changes | Facts]:
    """Yield the parts of a query, with tables that are named only by identifiers, except the query's own CTEs."""
    made = {name.lower() for name in re.findall(r"(?is)[\s,]`?(\w+)`?\s*(?:\([^()]*\)\s*)?AS\s*\(", query.text)}
    known: dict[str, bool] = {}
    for part in query.parts:
        done = 0
        for table in named_tables(part) if isinstance(part, str) else ():
            name = table.name.lower()
            if name not in known:
                known[name] = name not in made and place_of_name(session, table.name) is not None
            if known[name]:
                yield str(part)[done : table.pos]
                yield table
                done = table.pos + len(table.name)
        yield part[done:] if isinstance(part, str) else part


def _meaning(part: TableName | Changes | Facts) -> tuple[Any, ...]:
    """Return a key that is equal for all occurrences of the same table."""
    if isinstance(part, Facts):
        return (*_meaning(part.table), part.kind, part.limit)
    if isinstance(part, Changes):
        return (*_meaning(part.table), part.start, part.end)
    at = part.at
    return part.name, part.by_path, at and (at.version, at.digits, at.timestamp and at.timestamp.text)


def alias_of(part: TableName | Changes | Facts, rest: tuple[Any, ...]) -> str:
    """Return the table's own name, so that columns can be qualified with it, unless the query has an alias."""
    table = part if isinstance(part, TableName) else part.table
    behind = rest[0] if rest and isinstance(rest[0], str) else ""
    match = _NEXT.match(behind)
    word = match[1] if match else ""
    has_alias = word == "`" or (re.fullmatch(r"[A-Za-z_]\w*", word) and word.upper() not in _NO_ALIAS)
    # TABLESAMPLE comes before an alias.
    if has_alias or word.upper() == "TABLESAMPLE":
        return ""
    if table.by_path and not isinstance(part, Facts):
        return f" AS {quoted(table.name)}"
    name = f"delta_{part.kind}" if isinstance(part, Facts) else table.name.rpartition(".")[2].strip("`")
    return f" AS {quoted(name)}"


def _read(session: Session, part: TableName | Changes | Facts, tables: Tables) -> Any:
    if isinstance(part, Facts):
        return _facts(session, part, tables)
    table = part.table if isinstance(part, Changes) else part
    path = tables.place(TableName(table.name, table.by_path, table.pos))
    spark = session.spark
    if isinstance(part, Changes):
        options: dict[str, Any] = {"readChangeFeed": True}
        for which, value in (("starting", part.start), ("ending", part.end)):
            if value is not None:
                options[f"{which}{'Version' if isinstance(value, int) else 'Timestamp'}"] = value
        return read(spark, path, options=options)
    with during(Operation.TIME_TRAVEL):
        at = None if table.at is None else tables.at(table.at)
    if at is None:
        return followed(spark, path)
    return read(spark, path, at) if isinstance(at, int) else read(spark, path, timestamp=at)


def _facts(session: Session, facts: Facts, tables: Tables) -> Any:
    if facts.kind is FactsKind.FILES:
        return files(session.spark, tables.place(facts.table))
    if facts.kind is FactsKind.DETAIL:
        return answered(session, facts_of(facts, tables))
    place = place_of(session, tables.place(facts.table))
    return history_of(session, place, handle(session, place), facts.limit)
