"""Subqueries in UPDATE and DELETE: scalar ones in the values of an UPDATE, as in delta-spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltafast._expr.lexer import OPAQUE
from deltafast._sql.query_text import read_query
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark._sql.parameters import spelled
from deltafast.spark._sql.queries import frame_of

if TYPE_CHECKING:
    from deltafast._sql.reader import Reader
    from deltafast.spark._sql.session_tables import SparkTables

__all__ = ["with_values"]

_PIECE: Final = re.compile(
    rf"{OPAQUE}|(?P<query>\((?=\s*(?:SELECT|WITH)\b))|(?P<where>\bWHERE\b)", re.DOTALL | re.IGNORECASE
)


def with_values(text: str, tables: SparkTables, reader: type[Reader]) -> str:
    """Replace the subqueries of an UPDATE or DELETE by their values.

    Args:
        text: The statement.
        tables: The tables of the session.
        reader: Parses timestamps.

    Raises:
        InvalidArgumentError: A condition has a subquery, or a subquery for a value does not return a single value.
    """
    found, done, is_condition = list[str](), 0, False
    while (piece := _PIECE.search(text, done)) is not None:
        found.append(text[done : piece.end()])
        done = piece.end()
        is_condition |= piece["where"] is not None
        if piece["query"] is None:
            continue
        if is_condition:
            kind = text.split(maxsplit=1)[0].upper()
            message = f"subqueries are not supported in the condition of {kind}: use MERGE"
            raise InvalidArgumentError(message)
        query, done = read_query(text, piece.end(), reader(text, tables.zone).timestamp_at, nested=True, spark=True)
        frame = frame_of(tables.session, query, tables)
        kinds = [field.dataType.simpleString() for field in frame.schema]
        is_timestamp = kinds in (["timestamp"], ["timestamp_ntz"])
        # As a string: Python would convert it to the time zone of the process instead of the session's.
        shown = frame.selectExpr(f"CAST({quoted(frame.columns[0])} AS STRING)") if is_timestamp else frame
        rows = shown.limit(2).collect()
        if len(frame.columns) != 1 or len(rows) > 1:
            message = f"({query.text}) must give one column and at most one row"
            raise InvalidArgumentError(message)
        value = spelled(rows[0][0] if rows else None)
        if value is None:
            message = f"({query.text}) gives a {kinds[0]}: use MERGE for values of this type"
            raise InvalidArgumentError(message)
        found.append(f"CAST({value} AS {kinds[0]})")
    return "".join(found) + text[done:]
