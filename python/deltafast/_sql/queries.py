"""Queries of the embedded engine, over the tables and data that their names refer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads

from deltafast._handle import handle_of
from deltafast._interop.duckdb_query import connect, interruptible, refused_access, source_of, streamed, unknown_table
from deltafast._sql.run_describe import facts_of
from deltafast._sql.tables import Tables
from deltafast._sql.tree import Changes, Facts, Query, TableName
from deltafast._util.values import from_epoch_ms, to_epoch_ms
from deltafast.exceptions import InvalidArgumentError
from deltafast.table import DeltaTable, pinned

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["EmbeddedTables", "run_query"]


@dataclass(frozen=True)
class EmbeddedTables(Tables):
    """Tables and data by name, for a statement that the embedded engine runs."""

    def rows(self, query: Query) -> pa.RecordBatchReader:
        """Return the rows of a query."""
        return run_query(query, self)


def run_query(query: Query, tables: Tables) -> pa.RecordBatchReader:
    """Run a query; its rows are streamed.

    Raises:
        InvalidArgumentError: The engine refuses the query.
    """
    # Otherwise DuckDB would look unknown names up among the Python variables of the caller.
    connection = connect({"python_enable_replacements": "false"}, external_access=tables.external_access)
    for name in tables.given:
        if name.lower() in query.names:
            once = query.text.lower().count(name.lower()) == 1
            connection.register(name, _scanned(tables.readable(TableName(name, by_path=False, pos=0)), once=once))
    text: list[str] = []
    made: dict[TableName | Changes | Facts, str] = {}
    for part in query.parts:
        if isinstance(part, str):
            text.append(part)
            continue
        key = _unplaced(part)
        if key not in made:
            made[key] = _view(connection, f"deltafast_{len(made)}", part, tables)
        text.append(made[key])
    try:
        return interruptible(connection, lambda: streamed(connection, "".join(text)))
    except duckdb.Error as error:
        what, _, where = str(error).partition("\n\n")
        said = " ".join(f"{what} {where}".split())
        message = f"the query cannot be run (queries are DuckDB's SQL): {said[:400]}"
        if (name := unknown_table(error)) is not None:
            message = tables.unknown(name)
        elif (refused := refused_access(error, "sql(.., external_access=True) allows it")) is not None:
            message = refused
        # DuckDB's own message has control characters of values, which a traceback would print.
        raise InvalidArgumentError(message) from None


def _unplaced(part: TableName | Changes | Facts) -> TableName | Changes | Facts:
    """Return the part without its position in the query, so that equal parts compare equal."""
    if isinstance(part, Facts):
        return Facts(cast("TableName", _unplaced(part.table)), part.kind, part.limit)
    if isinstance(part, Changes):
        return Changes(cast("TableName", _unplaced(part.table)), part.start, part.end)
    return TableName(part.name, part.by_path, 0, part.at)


def _view(connection: duckdb.DuckDBPyConnection, schema: str, part: TableName | Changes | Facts, tables: Tables) -> str:
    """Create a view in a schema of its own, so that its name still qualifies columns; returns the full name."""
    if isinstance(part, Changes):
        name, source = part.table.name, _Streams(_change_data(part, tables))
    elif isinstance(part, Facts):
        name, source = f"delta_{part.kind}", pa.table(facts_of(part, tables))
    else:
        name, source = part.name, _scanned(tables.readable(part), once=True)
    connection.register(f"{schema}_source", source)
    full = f'{schema}."{name.replace(chr(34), chr(34) * 2)}"'
    text = f"CREATE SCHEMA {schema}; CREATE VIEW {full} AS FROM {schema}_source"
    interruptible(connection, lambda: connection.execute(text))
    return full


def _scanned(source: object, *, once: bool) -> Any:
    """Return the object that DuckDB scans."""
    if isinstance(source, DeltaTable):
        return source_of(handle_of(source))
    if isinstance(source, (pa.Table, pads.Dataset)):
        return source
    if isinstance(source, pa.RecordBatchReader) and once:
        return source
    # A stream can be read once, and a query may read it more often.
    return pa.table(cast("Any", source))


class _Streams:
    """A source of any number of new streams."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._schema = pa.schema(make())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._make().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return cast("Any", self._schema).__arrow_c_schema__()


def _change_data(changes: Changes, tables: Tables) -> Callable[[], Any]:
    table = pinned(tables.table(changes.table))
    bounds: dict[str, Any] = {}
    for which, value in (("starting", changes.start), ("ending", changes.end)):
        if isinstance(value, int):
            bounds[f"{which}_version"] = value
        elif value is not None:
            bounds[f"{which}_timestamp"] = from_epoch_ms(to_epoch_ms(value))
    # Through the class: a subclass may return results as in `deltalake`.
    return lambda: DeltaTable.load_cdf(table, **bounds)
