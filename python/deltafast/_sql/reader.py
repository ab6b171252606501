"""Common parts of all statements: keywords, names, tables, versions, expressions, values, queries.

The statement and its expressions are Spark SQL; a query within it belongs to the engine, so `query_text` scans it, and
the rest of the statement is tokenized after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from deltafast._expr import token_kind
from deltafast._expr.cursor import TokenCursor
from deltafast._expr.parser import ADDITION, MAX_DEPTH, ExpressionParser
from deltafast._sql.query_text import read_named, read_query, suffixed
from deltafast._sql.tree import Default, Expression, Query, Source, TableName, TimeTravel, Values
from deltafast.exceptions import ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from deltafast._sql.query_text import Named
    from deltafast._sql.tree import Path

__all__ = ["QUERY_WORDS", "Reader"]

#: Keywords with which a query begins, unless it begins with a parenthesis.
QUERY_WORDS: Final = ("SELECT", "WITH", "FROM", "PIVOT", "UNPIVOT")
#: Keywords that continue a statement, so that they are not an alias without quotes.
_NO_ALIAS: Final = frozenset(
    {"SET", "WHERE", "USING", "ON", "WHEN", "VALUES", "REPLACE", "BY", "PARTITION", *QUERY_WORDS}
)


class Reader(TokenCursor):
    """Cursor over the tokens of a statement, with the parsers of what several statements have.

    Args:
        text: The statement.
        zone: The session's time zone, for timestamp literals without one.
        start: The position in the statement to begin at.
    """

    hint = "docs/sql.md has the statements; names that are keywords need `backticks`"
    #: Whether queries are Spark's.
    spark: ClassVar[bool] = False

    def __init__(self, text: str, zone: str, start: int = 0) -> None:
        super().__init__(text, start, lenient=True)
        self.zone = zone
        self._named: Named | None = None

    # --- errors ----------------------------------------------------------------------------------

    def fail(self, what: str, code: ErrorCode = ErrorCode.EXPRESSION_SYNTAX_ERROR) -> NoReturn:
        """Raise an error with what was expected and what was found."""
        token = self.token
        if token.kind is token_kind.BROKEN:
            if self.text[token.pos] == ";":
                raise self.error("one statement at a time", token.pos, "call sql() for each of them")
            raise InvalidArgumentError(
                token.text, code=ErrorCode.EXPRESSION_SYNTAX_ERROR, parameters={"expression": self.text}
            )
        super().fail(what, code)

    def absent(self, what: str, hint: str, pos: int | None = None) -> NoReturn:
        """Refuse a construct that this release does not support."""
        raise self.unsupported(f"{what} is not supported", self.token.pos if pos is None else pos, hint)

    def expect_end(self) -> None:
        """Fail unless the statement ends here."""
        if not self.at_end:
            self.fail("expected the end of the statement")

    # --- names -----------------------------------------------------------------------------------

    def name_part(self, what: str = "a name") -> str:
        """Read one name, in backquotes or without."""
        token = self.token
        if token.kind not in (token_kind.NAME, token_kind.QUOTED) or not token.text:
            hint = (
                " (double quotes enclose a string in Spark SQL, not a name)" if token.kind is token_kind.STRING else ""
            )
            self.fail(f"expected {what}{hint}")
        return self.advance().text

    def path(self) -> Path:
        """Read a column or nested field: `a.b`."""
        parts = [self.name_part("a column")]
        while self.accept_op("."):
            parts.append(self.name_part("a field"))
        return tuple(parts)

    def names(self) -> tuple[str, ...]:
        """`(a, b)`."""
        self.expect_op("(")
        out = [self.name_part("a column")]
        while self.accept_op(","):
            out.append(self.name_part("a column"))
        self.expect_op(")")
        return tuple(out)

    def paths(self) -> tuple[Path, ...]:
        """`(a, b.c)`, also without the parentheses."""
        bracketed = self.accept_op("(")
        out = [self.path()]
        while self.accept_op(","):
            out.append(self.path())
        if bracketed:
            self.expect_op(")")
        return tuple(out)

    def table(self) -> TableName:
        """``delta.`place` `` or a name."""
        pos = self.token.pos
        first = self.name_part("a table")
        if not self.accept_op("."):
            return TableName(first, by_path=False, pos=pos)
        token = self.token
        second = self.name_part("a table")
        if first.lower() == "delta" and token.kind is token_kind.QUOTED and not self.is_op("."):
            return TableName(second, by_path=True, pos=pos)
        hint = "write delta.`place`, or give the table as an argument: sql(text, name=table)"
        raise self.error("there is no catalog to look a table up in", pos, hint)

    def table_or_place(self) -> TableName:
        """Read a table, or its location as a string, as maintenance commands accept it."""
        token = self.token
        if token.kind is token_kind.STRING:
            return TableName(self.advance().text, by_path=True, pos=token.pos)
        return self.table()

    def source_table(self) -> TableName:
        """Read a table in a query, which may have a version."""
        table = self.table_or_place()
        if table.by_path:
            table = suffixed(table.name, table.pos, by_path=True)
        elif self.accept_op("@"):
            table = suffixed(f"{table.name}@{self.advance().text}", table.pos, by_path=False)
            if table.at is None:
                self.back()
                self.fail("expected a version such as v5 or 20260131120000000 after @")
        at = self.travel()
        if at is None:
            return table
        if table.at is not None:
            self.back()
            self.fail("the table has two versions")
        return TableName(table.name, table.by_path, table.pos, at)

    def travel(self) -> TimeTravel | None:
        """`[FOR] VERSION AS OF 5`, `[FOR] TIMESTAMP AS OF '..'`."""
        self.accept("FOR")
        if self.accept("VERSION", "AS", "OF") or self.accept("SYSTEM_VERSION", "AS", "OF"):
            return TimeTravel(version=self.whole_number("a version"))
        if self.accept("TIMESTAMP", "AS", "OF") or self.accept("SYSTEM_TIME", "AS", "OF"):
            return TimeTravel(timestamp=self.value())
        return None

    def alias(self) -> str | None:
        """`[AS] name`."""
        if self.accept("AS"):
            return self.name_part("an alias")
        token = self.token
        if token.kind is token_kind.QUOTED or (token.kind is token_kind.NAME and token.upper not in _NO_ALIAS):
            return self.name_part()
        return None

    # --- values ----------------------------------------------------------------------------------

    def value(self, level: int = 0) -> Expression:
        """Read an expression, as a string."""
        start = self.token.pos
        try:
            ExpressionParser(self, self.zone).expression(level)
        except RecursionError:
            hint = "write long lists with IN"
            raise self.error(f"the expression nests more than {MAX_DEPTH} levels deep", start, hint) from None
        return Expression(self.text[start : self.token.pos].rstrip(), start)

    def value_before_query(self) -> Expression:
        """Read an expression before a query in parentheses, which would look like the arguments of a call."""
        depth, count = 0, 0
        while (token := self.ahead(count)).kind not in (token_kind.END, token_kind.BROKEN):
            if not depth and token.text == "(" and self.ahead(count + 1).upper in (*QUERY_WORDS, "VALUES"):
                with self.ending_at(self.position + count):
                    return self.value()
            depth += (token.text in "([") - (token.text in ")]") if token.kind is token_kind.OPERATOR else 0
            count += 1
        return self.value()

    def value_or_default(self) -> Expression | Default:
        """Read an expression, or `DEFAULT`."""
        if self.peek("DEFAULT") and self.ahead().text not in ("(", "."):
            self.advance()
            return Default()
        return self.value()

    def bracketed(self) -> Expression:
        """`(expression)`."""
        self.expect_op("(")
        found = self.value()
        self.expect_op(")")
        return found

    def where(self) -> Expression | None:
        """`[WHERE expression]`."""
        return self.value() if self.accept("WHERE") else None

    def string_text(self, what: str = "a string in quotes") -> str:
        """Read a string."""
        if self.token.kind is not token_kind.STRING:
            self.fail(f"expected {what}")
        return self.strings()

    def whole_number(self, what: str = "a number") -> int:
        """Read an integer, also in quotes."""
        token = self.token
        if (
            token.kind not in (token_kind.NUMBER, token_kind.STRING)
            or not token.text.isdecimal()
            or len(token.text) > 18  # noqa: PLR2004
        ):
            self.fail(f"expected {what}")
        return int(self.advance().text)

    def signed_number(self) -> int:
        """Read an integer with its sign."""
        negative = self.accept_op("-")
        return -self.whole_number() if negative else self.whole_number()

    def properties(self) -> dict[str, str]:
        """`('key' = 'value', key.part = true)`."""
        self.expect_op("(")
        out: dict[str, str] = {}
        while True:
            key = self.property_key()
            self.accept_op("=")
            out[key] = self.property_value()
            if not self.accept_op(","):
                break
        self.expect_op(")")
        return out

    def property_key(self) -> str:
        """`'delta.appendOnly'` or `delta.appendOnly`."""
        if self.token.kind is token_kind.STRING:
            return self.string_text()
        parts = [self.name_part("a property")]
        while self.accept_op("."):
            parts.append(self.name_part("a property"))
        return ".".join(parts)

    def property_value(self) -> str:
        """Read a string, a number or a boolean, as a string."""
        token = self.token
        if token.kind is token_kind.STRING:
            return self.string_text()
        if token.upper in ("TRUE", "FALSE"):
            return self.advance().text.lower()
        if token.kind is token_kind.NUMBER or self.is_op("-"):
            sign = "-" if self.accept_op("-") else ""
            return sign + self.advance().text
        self.fail("expected a value: a string, a number, true or false")

    # --- rows ------------------------------------------------------------------------------------

    def at_query(self) -> bool:
        """Return whether a query begins here, possibly in parentheses."""
        n = 0
        while self.ahead(n).text == "(" and self.ahead(n).kind is token_kind.OPERATOR:
            n += 1
        return self.ahead(n).upper in (*QUERY_WORDS, "VALUES") and (n > 0 or self.ahead(n).upper != "VALUES")

    def query(self, *, nested: bool = False) -> Query:
        """Read a query, up to the end of the statement or, if `nested`, to the closing parenthesis."""
        found, end = read_query(self.text, self.token.pos, self.timestamp_at, nested=nested, spark=self.spark)
        self.restart(end)
        return found if self._named is None else self._named.before(found)

    def named_queries(self) -> None:
        """Read `WITH a AS (..)` before a statement other than a query; queries in the statement can use the names."""
        found = (
            read_named(self.text, self.token.pos, self.timestamp_at, spark=self.spark) if self.peek("WITH") else None
        )
        if found is None:
            return
        self._named, end = found
        self.restart(end)
        if self.token.upper in ("UPDATE", "DELETE"):
            self.absent(f"WITH before {self.token.upper}", "its conditions and values take no queries; write a MERGE")

    def known(self, table: TableName) -> TableName | Query:
        """Read a table, or a name that WITH defines."""
        if self._named is None or table.by_path or table.at is not None or table.name.lower() not in self._named.names:
            return table
        tick = "`" if self.spark else '"'
        parts = ("SELECT * FROM ", f"{tick}{table.name.replace(tick, tick * 2)}{tick}")
        return self._named.before(Query("".join(parts), parts, frozenset({table.name.lower()})))

    def timestamp_at(self, pos: int) -> tuple[Expression, int]:
        """Return the expression at a position in a query, and the position after it."""
        # Only operators above AND and comparisons: the rest belongs to the query.
        found = type(self)(self.text, self.zone, pos).value(ADDITION)
        return found, found.pos + len(found.text)

    def source(self) -> Source:
        """`VALUES ..`, `TABLE t`, or a query."""
        if self.peek("VALUES"):
            return self.rows()
        if self.accept("TABLE"):
            return self.known(self.source_table())
        if not self.at_query():
            self.fail("expected SELECT, VALUES or TABLE")
        return self.query()

    def rows(self) -> Values:
        """`VALUES (1, 'a'), (2, DEFAULT)`; a single value needs no parentheses."""
        pos = self.advance().pos
        out: list[tuple[Expression | Default, ...]] = []
        while True:
            out.append(self.row())
            if len(out[-1]) != len(out[0]):
                what = f"row {len(out)} has {len(out[-1])} values, the first has {len(out[0])}"
                raise self.error(what, self.token.pos, "give all rows as many")
            if not self.accept_op(","):
                return Values(tuple(out), pos)

    def row(self) -> tuple[Expression | Default, ...]:
        """`(1, 'a')`."""
        if not self.accept_op("("):
            return (self.value_or_default(),)
        out = [self.value_or_default()]
        while self.accept_op(","):
            out.append(self.value_or_default())
        self.expect_op(")")
        return tuple(out)
