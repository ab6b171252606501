"""Scanner of queries, which only finds the tables in Delta's syntax.

The rest belongs to the engine: strings (`'it''s'`, `E'..'`, `$$..$$`), names in double quotes and comments are skipped
by DuckDB's rules. Names in backquotes, which DuckDB does not have, are changed to double quotes. For an engine with
Spark SQL, the query is scanned by Spark's rules and stays unchanged.

The scanner finds ``delta.`place` ``, `table_changes(..)`, `table_changes_by_path(..)`, `delta_files(..)`,
`delta_history(..)`, `delta_detail(..)`, and versions after a table: `t@v5`, `t@20260131120000000`, `t VERSION AS OF 5`,
`t TIMESTAMP AS OF '2026-01-31'`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from deltafast._expr import token_kind
from deltafast._expr.errors import invalid
from deltafast._expr.lexer import QUOTED, RAW, SPACE, STRING, skip_comment
from deltafast._sql.tree import Changes, Expression, Facts, FactsKind, Query, TableName, TimeTravel

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._expr.token_kind import TokenKind

__all__ = ["Named", "inserts_of", "named_tables", "read_named", "read_query", "suffixed"]

_TOKEN: Final = re.compile(
    rf"""
      (?P<space>{SPACE})
    | (?P<text>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<ident>"(?:[^"]|"")*")
    | (?P<tick>{QUOTED})
    | (?P<name>[A-Za-z_\u0080-\uffff][\w$]*)
    | (?P<number>\d[\w.]*)
    | (?P<op>[^'"`])
    """,
    re.VERBOSE | re.DOTALL,
)
_SPARK_TOKEN: Final = re.compile(
    rf"""
      (?P<space>{SPACE})
    | (?P<text>[rR](?:{RAW})|{STRING})
    | (?P<tick>{QUOTED})
    | (?P<name>[A-Za-z_\u0080-\uffff]\w*)
    | (?P<number>\d[\w.]*)
    | (?P<op>[^'"`])
    """,
    re.VERBOSE | re.DOTALL,
)
#: Functions whose arguments may have a FROM without a table.
_WITH_FROM: Final = frozenset(["EXTRACT", "OVERLAY", "SUBSTR", "SUBSTRING", "TRIM"])
#: Keywords that end a list of tables.
_BEHIND_TABLES: Final = frozenset(["WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "ON", "USING", "SELECT", "UNION"])
#: The statements that may follow WITH, apart from queries.
_WITH_NAMES: Final = frozenset(["INSERT", "MERGE", "UPDATE", "DELETE"])
_OWN_NAMES: Final = re.compile(r"(?i)[\s(]*WITH\b")
_SUFFIX: Final = re.compile(r"(?s)(.+)@(?:[vV](\d{1,18})|(\d{17}))")
#: A table's location, in a string.
_PLACE: Final = re.compile(r"(?is)delta\.`(.+)`")
_STAMP: Final = re.compile(r"[vV]\d{1,18}|\d{17}")
_CHANGES: Final = ("table_changes", "table_changes_by_path")
_FACTS: Final = {f"delta_{kind}": kind for kind in FactsKind}


#: The kinds of tokens, by the groups of the patterns.
_KINDS: Final = {
    "text": token_kind.STRING,
    "tag": token_kind.STRING,
    "ident": token_kind.EXACT,
    "tick": token_kind.QUOTED,
    "name": token_kind.NAME,
    "number": token_kind.NUMBER,
    "op": token_kind.OPERATOR,
}
_NAME_KINDS: Final = (token_kind.NAME, token_kind.EXACT, token_kind.QUOTED)
_QUOTES: Final = {token_kind.EXACT: '"', token_kind.QUOTED: "`", token_kind.STRING: "'"}


class _Piece(NamedTuple):
    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind is token_kind.NAME else ""

    @property
    def meaning(self) -> str:
        """The string without its quotes."""
        quote = _QUOTES.get(self.kind)
        return self.text if quote is None else self.text[1:-1].replace(quote * 2, quote)


def suffixed(name: str, pos: int, *, by_path: bool) -> TableName:
    """Return a table whose name may end in a version: `t@v5`, `/place@20260131120000000`."""
    match = _SUFFIX.fullmatch(name)
    if match is None:
        return TableName(name, by_path, pos)
    at = TimeTravel(version=int(match[2])) if match[2] else TimeTravel(digits=match[3])
    return TableName(match[1], by_path, pos, at)


def read_query(
    text: str,
    start: int,
    timestamp: Callable[[int], tuple[Expression, int]],
    *,
    nested: bool = False,
    spark: bool = False,
) -> tuple[Query, int]:
    """Read a query up to its end.

    Args:
        text: The whole statement.
        start: Position at which the query begins.
        timestamp: Parses the expression of `TIMESTAMP AS OF` at a position; returns it and the position after it.
        nested: Whether the query ends at a parenthesis that it has not opened.
        spark: Whether the engine's SQL is Spark's; names of tables may then have several parts.

    Returns:
        The query, and the position after it.

    Raises:
        InvalidArgumentError: A quote or comment is not closed, there is a second statement, or a version is invalid.
    """
    return _Scan(text, timestamp, spark=spark).query(start, nested=nested)


class Named(NamedTuple):
    """`WITH a AS (..), b AS (..)` before a statement."""

    #: The part before the statement.
    query: Query
    #: The defined names, in lower case.
    names: frozenset[str]

    def before(self, query: Query) -> Query:
        """Return a query of the statement in which the names are defined."""
        # DuckDB would not find the query's own WITH in mere parentheses; the query may end with a comment.
        opened = "SELECT * FROM (" if _OWN_NAMES.match(query.text) else "("
        closed = "\n)"
        return Query(
            f"{self.query.text}{opened}{query.text}{closed}",
            (*self.query.parts, opened, *query.parts, closed),
            self.query.names | query.names,
        )


def read_named(
    text: str, start: int, timestamp: Callable[[int], tuple[Expression, int]], *, spark: bool = False
) -> tuple[Named, int] | None:
    """Read the queries of WITH before a statement.

    Args:
        text: The whole statement.
        start: Position of WITH.
        timestamp: As for `read_query`.
        spark: As for `read_query`.

    Returns:
        The queries, and the position after them; None if a query follows, to which they belong.
    """
    return _Scan(text, timestamp, spark=spark).named(start)


def inserts_of(text: str) -> list[str]:
    """Expand Spark's `FROM rows INSERT INTO a SELECT .. INSERT INTO b SELECT ..` to several statements.

    Returns:
        `INSERT INTO a FROM rows SELECT ..` and so on; an empty list for other statements.
    """
    scan = _Scan(text, _no_timestamp, spark=True)
    depth, begins, last = 0, list[tuple[int, int]](), ""
    piece = scan.next(0)
    if piece is None or piece.word not in ("FROM", "WITH"):
        return []
    has_rows, start = False, piece.start
    while piece is not None:
        behind = scan.next(piece.end)
        depth += (piece.text in "([{") - (piece.text in ")]}") if piece.kind is token_kind.OPERATOR else 0
        word = piece.word if depth == 0 and last != "." else ""
        if word == "INSERT" and behind is not None and behind.word in ("INTO", "OVERWRITE", "WITH"):
            begins.append((piece.start, -1))
        elif word == "SELECT" and begins and begins[-1][1] < 0:
            begins[-1] = begins[-1][0], piece.start
        has_rows = has_rows or (word == "FROM" and not begins)
        if word == "SELECT" and not begins:
            return []
        last, piece = piece.text, behind
    if not has_rows or not begins or any(query < 0 for _, query in begins):
        return []
    ends = [*(begin for begin, _ in begins[1:]), len(text.rstrip().removesuffix(";"))]
    rows = text[start : begins[0][0]]
    return [f"{text[begin:query]}{rows}{text[query:end]}" for (begin, query), end in zip(begins, ends, strict=True)]


def _no_timestamp(pos: int) -> tuple[Expression, int]:
    return Expression("", pos), pos


def named_tables(text: str) -> list[TableName]:
    """Return the names of tables, views and other sources after FROM and JOIN in a part of a Spark query."""
    scan, found = _Scan(text, _no_timestamp, spark=True), list[TableName]()
    piece, word = scan.next(0), ""
    is_next, depth, listing, calls = False, 0, set[int](), set[int]()
    while piece is not None:
        end = piece.end
        if piece.kind is token_kind.OPERATOR:
            if piece.text in ")]}":
                listing.discard(depth)
                calls.discard(depth)
            depth += (piece.text in "([{") - (piece.text in ")]}")
            if piece.text == "(" and word in _WITH_FROM:
                calls.add(depth)
            is_next = piece.text == "," and depth in listing
        elif piece.word in ("FROM", "JOIN") and depth not in calls:
            listing.add(depth)
            is_next = True
        elif is_next and piece.kind in (token_kind.NAME, token_kind.QUOTED):
            name, end = scan.dotted(piece)
            behind = scan.next(end)
            if behind is None or behind.text != "(":
                found.append(TableName(name, by_path=False, pos=piece.start))
            is_next = False
        elif piece.word in _BEHIND_TABLES:
            listing.discard(depth)
        word = piece.word
        piece = scan.next(end)
    return found


class _Scan:
    def __init__(self, text: str, timestamp: Callable[[int], tuple[Expression, int]], *, spark: bool = False) -> None:
        self.text = text
        self.timestamp = timestamp
        self.spark = spark
        self.token = _SPARK_TOKEN if spark else _TOKEN

    def query(self, start: int, *, nested: bool, end: int | None = None) -> tuple[Query, int]:
        parts: list[str | TableName | Changes | Facts] = []
        names: set[str] = set()
        depth, pos, done = 0, start, start
        while (piece := self.next(pos)) is not None and piece.start != end:
            if piece.kind is token_kind.OPERATOR:
                depth += (piece.text in "([{") - (piece.text in ")]}")
                if depth < 0 and nested:
                    break
                if piece.text == ";":
                    what = "one statement at a time"
                    raise invalid(what, self.text, piece.start, "call sql() for each of them")
            found = self.table(piece)
            if found is not None:
                record, behind = found
                parts += [self.text[done : piece.start], record]
                pos = done = behind
                continue
            if piece.kind is token_kind.QUOTED and not self.spark:
                quoted = piece.meaning.replace('"', '""')
                parts += [self.text[done : piece.start], f'"{quoted}"']
                done = piece.end
            if piece.kind in _NAME_KINDS:
                names.add(piece.meaning.lower())
            pos = piece.end
        # The rest before the end or the closing parenthesis.
        end = len(self.text) if piece is None else piece.start
        parts.append(self.text[done:end])
        return Query(self.text[start:end], tuple(part for part in parts if part != ""), frozenset(names)), end

    def named(self, start: int) -> tuple[Named, int] | None:
        names: set[str] = set()
        depth, is_name, piece = 0, True, self.next(start)
        while piece is not None:
            if piece.kind is token_kind.OPERATOR:
                depth += (piece.text in "([{") - (piece.text in ")]}")
            behind = self.next(piece.end)
            if depth == 0 and piece.kind in _NAME_KINDS and is_name and piece.start > start:
                if piece.word != "RECURSIVE" or behind is None or behind.text == "(" or behind.word == "AS":
                    names.add(piece.meaning.lower())
                    is_name = False
            elif depth == 0 and piece.text == ")" and behind is not None:
                is_name = behind.text == ","
                if behind.word in _WITH_NAMES:
                    query, _ = self.query(start, nested=False, end=behind.start)
                    return Named(query, frozenset(names)), behind.start
                if not is_name and behind.word not in ("AS", "USING"):
                    return None
            piece = behind
        return None

    def next(self, pos: int) -> _Piece | None:
        """Return the next token at or after a position; None at the end."""
        while pos < len(self.text):
            if self.text.startswith("/*", pos):
                pos = skip_comment(self.text, pos)
                continue
            match = self.token.match(self.text, pos)
            if match is None:
                raise invalid(f"a {self.text[pos]} is never closed", self.text, pos, "close it")
            kind = _KINDS.get(match.lastgroup or "")
            if kind is not None:
                return _Piece(kind, match[0], pos, match.end())
            pos = match.end()
        return None

    def table(self, piece: _Piece) -> tuple[TableName | Changes | Facts, int] | None:
        """Return the table in Delta's syntax at this token, and the position after it."""
        if piece.kind not in _NAME_KINDS:
            return None
        if piece.text.lower() in _CHANGES:
            return self.changes(piece)
        if piece.text.lower() in _FACTS:
            return self.facts(piece)
        if piece.text.lower() == "delta":
            dot = self.next(piece.end)
            place = None if dot is None or dot.text != "." else self.next(dot.end)
            if place is not None and place.kind is token_kind.QUOTED:
                table = suffixed(place.meaning, piece.start, by_path=True)
                return self.travelled(table, place.end)
        name, behind = self.dotted(piece) if self.spark else (piece.meaning, piece.end)
        at = self.at(behind)
        if at is None:
            return None
        return TableName(name, by_path=False, pos=piece.start, at=at[0]), at[1]

    def dotted(self, piece: _Piece) -> tuple[str, int]:
        """Return a name of several parts as written, and the position after it."""
        end = piece.end
        while (
            self.text.startswith(".", end)
            and (part := self.next(end + 1))
            and part.kind in (token_kind.NAME, token_kind.QUOTED)
        ):
            end = part.end
        return self.text[piece.start : end], end

    def travelled(self, table: TableName, end: int) -> tuple[TableName, int]:
        at = self.at(end)
        if at is None:
            return table, end
        if table.at is not None:
            raise invalid("two versions of one table", self.text, end, "give one of them")
        return TableName(table.name, table.by_path, table.pos, at[0]), at[1]

    def at(self, pos: int) -> tuple[TimeTravel, int] | None:
        """Read `@v5`, `@yyyyMMddHHmmssSSS`, `[FOR] VERSION AS OF 5` or `[FOR] TIMESTAMP AS OF ..` after a table."""
        if self.text.startswith("@", pos) and (stamp := _STAMP.match(self.text, pos + 1)):
            given = stamp[0]
            at = TimeTravel(version=int(given[1:])) if given[0] in "vV" else TimeTravel(digits=given)
            return at, stamp.end()
        words: list[_Piece] = []
        while len(words) < len(("FOR", "VERSION", "AS", "OF")) and (piece := self.next(pos)) is not None and piece.word:
            words.append(piece)
            pos = piece.end
        spelled = [piece.word for piece in words]
        skip = 1 if spelled[:1] == ["FOR"] else 0
        if spelled[skip + 1 : skip + 3] != ["AS", "OF"]:
            return None
        word, behind = spelled[skip], words[skip + 2].end
        if word in ("VERSION", "SYSTEM_VERSION"):
            number = self.next(behind)
            digits = "" if number is None else number.meaning
            if number is None or not re.fullmatch(r"\d{1,18}", digits):
                raise invalid("expected a version number", self.text, behind, "write VERSION AS OF 5")
            return TimeTravel(version=int(digits)), number.end
        if word in ("TIMESTAMP", "SYSTEM_TIME"):
            timestamp, end = self.timestamp(behind)
            return TimeTravel(timestamp=timestamp), end
        return None

    def changes(self, piece: _Piece) -> tuple[Changes, int] | None:
        hint = f"write {piece.text}('table', 0) or {piece.text}('table', 0, 5), or timestamps as strings"
        found = self.arguments(piece, "a table, and versions or timestamps", hint)
        if found is None:
            return None
        given, pos = found
        if len(given) not in (2, 3) or given[0].kind is not token_kind.STRING:
            hint = f"write {piece.text}('table', 0) or {piece.text}('table', 0, 5)"
            raise invalid(f"{piece.text} takes a table and one or two versions", self.text, piece.start, hint)
        name = given[0].meaning
        place = _PLACE.fullmatch(name)
        by_path = piece.text.lower() == "table_changes_by_path"
        table = TableName(place[1] if place and not by_path else name, by_path or bool(place), given[0].start)
        ends = [int(item.text) if item.kind is token_kind.NUMBER else item.meaning for item in given[1:]]
        return Changes(table, ends[0], ends[1] if len(ends) > 1 else None), pos

    def facts(self, piece: _Piece) -> tuple[Facts, int] | None:
        kind = _FACTS[piece.text.lower()]
        more = ", and how many commits" if kind is FactsKind.HISTORY else ""
        hint = f"write {piece.text}('/path/to/table')" + (f" or {piece.text}('/path/to/table', 10)" if more else "")
        found = self.arguments(piece, f"a table{more}", hint)
        if found is None:
            return None
        given, pos = found
        kinds = [item.kind for item in given]
        if kinds not in ([token_kind.STRING], [token_kind.STRING, token_kind.NUMBER][: 2 if more else 1]):
            raise invalid(f"{piece.text} takes a table{more}", self.text, piece.start, hint)
        name = given[0].meaning
        place = _PLACE.fullmatch(name)
        # A name has letters and dots only.
        by_path = place is not None or not re.fullmatch(r"\w+(\.\w+)*", name)
        table = TableName(place[1] if place else name, by_path, given[0].start)
        return Facts(table, kind, int(given[1].text) if len(given) > 1 else None), pos

    def arguments(self, piece: _Piece, takes: str, hint: str) -> tuple[list[_Piece], int] | None:
        """Return the strings and numbers in the parentheses after a function, and the position after them."""
        open_ = self.next(piece.end)
        if open_ is None or open_.text != "(":
            return None
        pos = open_.end
        given: list[_Piece] = []
        while True:
            argument, comma = self.next(pos), None
            if argument is not None and (
                argument.kind is token_kind.STRING or re.fullmatch(r"\d{1,18}", argument.text)
            ):
                given.append(argument)
                comma = self.next(argument.end)
            if comma is None or comma.text not in (",", ")"):
                raise invalid(f"{piece.text} takes {takes}", self.text, piece.start, hint)
            pos = comma.end
            if comma.text == ")":
                return given, pos
