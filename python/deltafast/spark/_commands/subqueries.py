"""Scalar subqueries and variables of the session in UPDATE, DELETE and MERGE, as in delta-spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deltafast._expr.lexer import OPAQUE
from deltafast._sql.query_text import read_query
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._commands.parameters import spelled
from deltafast.spark._commands.queries import frame_of
from deltafast.spark._scan.physical_columns import quoted

if TYPE_CHECKING:
    from deltafast._sql.reader import Reader
    from deltafast.spark._commands.session_tables import SparkTables
    from deltafast.spark._session.session import Session

__all__ = ["with_values", "with_variable"]

_PIECE: Final = re.compile(
    rf"{OPAQUE}|(?P<query>\((?=\s*(?:SELECT|WITH)\b))|(?<![.\w])(?P<word>WHERE|ON|WHEN|THEN|CASE|END)\b",
    re.DOTALL | re.IGNORECASE,
)


class _Part:
    """The part of a statement that is being read: the source of a MERGE, a condition, or values."""

    def __init__(self, keyword: str) -> None:
        self.keyword = keyword
        self._is_merge = self.is_source = keyword == "MERGE"
        self.is_condition = False
        self._cases = 0

    @property
    def hint(self) -> str:
        """What to do instead."""
        return "join the query with the source" if self._is_merge else "use MERGE"

    def read(self, word: str) -> None:
        """Continue after a keyword."""
        if not self._is_merge:
            self.is_condition |= word == "WHERE"
        elif word == "ON":
            self.is_source, self.is_condition = False, True
        elif word in ("CASE", "END"):
            self._cases = max(self._cases + (1 if word == "CASE" else -1), 0)
        elif word in ("WHEN", "THEN") and not self._cases:
            self.is_condition = word == "WHEN"


def with_values(text: str, tables: SparkTables, reader: type[Reader]) -> str:
    """Replace the subqueries of an UPDATE, DELETE or MERGE by their values; the source of a MERGE stays.

    Args:
        text: The statement.
        tables: The tables of the session.
        reader: Parses timestamps.

    Raises:
        InvalidArgumentError: A condition has a subquery, or a subquery for a value does not return a single value.
    """
    found, done, part = list[str](), 0, _Part(text.split(maxsplit=1)[0].upper())
    while (piece := _PIECE.search(text, done)) is not None:
        found.append(text[done : piece.end()])
        done = piece.end()
        if piece["word"] is not None:
            part.read(piece["word"].upper())
        if piece["query"] is None:
            continue
        if part.is_condition:
            message = f"subqueries are not supported in the condition of {part.keyword}: {part.hint}"
            raise InvalidArgumentError(message)
        query, done = read_query(text, piece.end(), reader(text, tables.zone).timestamp_at, nested=True, spark=True)
        if part.is_source:
            found.append(text[piece.end() : done])
            continue
        found.append(_literal(frame_of(tables.session, query, tables), query.text, part.hint))
    return "".join(found) + text[done:]


def _literal(frame: Any, text: str, hint: str) -> str:
    """Return the only value of a frame as SQL.

    Raises:
        InvalidArgumentError: The frame has more than one value, or SQL has no literals of its type.
    """
    kinds = [field.dataType.simpleString() for field in frame.schema]
    is_timestamp = len(kinds) == 1 and kinds[0].startswith("timestamp")
    # As a string: Python would convert it to the time zone of the process instead of the session's.
    shown = frame.selectExpr(f"CAST({quoted(frame.columns[0])} AS STRING)") if is_timestamp else frame
    rows = shown.limit(2).collect()
    if len(frame.columns) != 1 or len(rows) > 1:
        message = f"({text}) must give one column and at most one row"
        raise InvalidArgumentError(message)
    value = spelled(rows[0][0] if rows else None)
    if value is None:
        message = f"({text}) gives a {kinds[0]}: {hint} for values of this type"
        raise InvalidArgumentError(message)
    return f"CAST({value} AS {kinds[0]})"


def with_variable(session: Session, text: str, name: str) -> str | None:
    """Replace a variable of the session by its value, where a statement names it.

    Args:
        session: The session.
        text: The statement.
        name: A name that is not that of a column.

    Returns:
        None if there is no such variable, or the statement does not name it.
    """
    from pyspark.errors import AnalysisException

    if name.lower() in ("session", "system"):
        qualified = re.search(r"(?i)(?<![.\w])(?:system\s*\.\s*)?session\s*\.\s*(\w+)", text)
        name = name if qualified is None else qualified[1]
    last = name.rpartition(".")[2]
    if not last.isidentifier():
        return None
    try:
        frame = session.run(f"SELECT {last}")
        value = _literal(frame, name, "use a query")
    except AnalysisException:
        return None
    place = re.compile(
        rf"{OPAQUE}|(?<![.\w])(?P<name>(?:(?:system\.)?session\.)?{last})\b(?!\s*[.(])", re.IGNORECASE | re.DOTALL
    )
    changed = place.sub(lambda match: value if match["name"] else match[0], text)
    return None if changed == text else changed
