"""Conversion of a statement's expressions for the table's methods: names without an alias, strings in single quotes.

In Spark, double quotes enclose a string. The methods of `DeltaTable` read such a string as a column if the column
exists, as `deltalake` does; a statement has Spark's semantics, so an ambiguous string is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._expr.errors import invalid
from deltafast._expr.lexer import tokenize
from deltafast._ops.delete_update import literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltafast._expr.lexer import Token
    from deltafast._sql.tree import Expression, Path

__all__ = ["plain", "qualified"]


def plain(value: Expression, columns: Collection[str], names: Mapping[Path, str] | None = None) -> str:
    """Return the SQL string of an expression over one table.

    Args:
        value: The expression.
        columns: The table's columns.
        names: Qualifiers of columns, in lower case, and their replacements; with an empty one the qualifier is removed,
            so that `t.a` becomes `a`.

    Raises:
        InvalidArgumentError: A string in double quotes is also a column's name.
    """
    text = value.text
    tokens = tokenize(text)
    known = {name.lower() for name in columns}
    own = {path: name for path, name in (names or {}).items() if path[0] not in known}
    out: list[str] = []
    done, at = 0, 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "string" and text[token.pos] == '"':
            if token.text in columns:
                hint = f"write `{token.text}` for the column, '{token.text}' for the string"
                raise invalid(f'"{token.text}" is a string in Spark SQL, and a column here', text, token.pos, hint)
            out += [text[done : token.pos], literal(token.text)]
            done = token.end
        elif own and token.kind in ("name", "quoted") and not (at and _is_dot(tokens[at - 1])):
            path = _path(tokens, at)
            found = qualified(path, own)
            if found is not None:
                size, name = found
                out += [text[done : token.pos], f"`{name.replace('`', '``')}`." if name else ""]
                done = tokens[at + 2 * size].pos
            at += 2 * len(path) - 2
        at += 1
    return "".join([*out, text[done:]])


def qualified(path: Path, names: Mapping[Path, str]) -> tuple[int, str] | None:
    """Return the number of parts of a qualifier of a column, and their replacement; None for an unqualified column."""
    low = tuple(part.lower() for part in path)
    return next(((size, names[low[:size]]) for size in range(len(low) - 1, 0, -1) if low[:size] in names), None)


def _path(tokens: list[Token], at: int) -> Path:
    """Return the parts of the name that begins here."""
    out = [tokens[at].text]
    while _is_dot(tokens[at + 1]) and tokens[at + 2].kind in ("name", "quoted"):
        at += 2
        out.append(tokens[at].text)
    return tuple(out)


def _is_dot(token: Token) -> bool:
    return token.kind == "op" and token.text == "."
