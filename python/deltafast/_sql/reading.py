"""Parser of one statement, which needs no table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltafast._expr import token_kind
from deltafast._expr.errors import invalid
from deltafast._sql.read_changes import read_delete, read_insert, read_merge, read_truncate, read_update
from deltafast._sql.read_maintenance import (
    read_describe,
    read_generate,
    read_optimize,
    read_reorg,
    read_restore,
    read_show,
    read_vacuum,
)
from deltafast._sql.read_tables import read_alter, read_comment, read_convert, read_create
from deltafast._sql.reader import QUERY_WORDS, Reader
from deltafast._sql.tree import Select
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._sql.tree import Statement

__all__ = ["read_statement"]

MAX_STATEMENT: Final = 4 << 20


def read_statement(text: str, *, zone: str = "UTC", reader: type[Reader] = Reader) -> Statement:
    """Read one statement.

    Args:
        text: One of Delta's statements in Spark SQL, or a query. A semicolon may end it.
        zone: The session's time zone, for timestamp literals without one.
        reader: Parser of names and queries; an engine other than the embedded one has its own.

    Raises:
        InvalidArgumentError: The string is not a statement; the message has the position and what was expected.
        UnsupportedExpressionError: The statement is not supported.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"a statement must be a string, not a {type(text).__name__}"
        raise InvalidArgumentError(message)
    if len(text) > MAX_STATEMENT:
        message = (
            "the statement is longer than 4 MiB; give rows as a table: sql('INSERT INTO t SELECT * FROM r', t=.., r=..)"
        )
        raise InvalidArgumentError(message)
    shown = text.rstrip().removesuffix(";").rstrip()
    words = reader(shown, zone)
    words.named_queries()
    word = words.token.upper
    read = _STATEMENTS.get(word)
    if read is None:
        if word not in (*QUERY_WORDS, "VALUES") and not words.at_query():
            hint = f"a statement begins with {', '.join((*_STATEMENTS, *QUERY_WORDS))}"
            if words.token.kind is token_kind.BROKEN:
                words.fail("")
            found = repr(words.token.text[:40]) if shown else "nothing"
            raise invalid(f"{found} begins no statement that deltafast has", shown, None, hint)
        read = _select
    statement = read(words)
    words.expect_end()
    return statement


def _select(reader: Reader) -> Select:
    return Select(reader.query())


_STATEMENTS: Final[dict[str, Callable[[Reader], Statement]]] = {
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
    "TRUNCATE": read_truncate,
    "CREATE": read_create,
    "REPLACE": read_create,
    "ALTER": read_alter,
    "COMMENT": read_comment,
    "CONVERT": read_convert,
    "OPTIMIZE": read_optimize,
    "REORG": read_reorg,
    "VACUUM": read_vacuum,
    "RESTORE": read_restore,
    "DESCRIBE": read_describe,
    "DESC": read_describe,
    "SHOW": read_show,
    "GENERATE": read_generate,
}
