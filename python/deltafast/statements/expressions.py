"""Expressions of a statement as the table's methods take them: names without an alias, texts in single quotes.

In Spark a text in double quotes is a string. The methods of `DeltaTable` read one that is a column's name as that
column, as `deltalake` does; a statement means what it means in Spark, so one that may be either is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast.commands.change import literal
from deltafast.expr.errors import invalid
from deltafast.expr.lexer import token_end, tokenize

if TYPE_CHECKING:
    from collections.abc import Collection

    from deltafast.expr.lexer import Token
    from deltafast.statements.tree import Expression

__all__ = ["plain"]


def plain(value: Expression, columns: Collection[str], aliases: Collection[str] = ()) -> str:
    """The text of an expression over one table.

    Args:
        value: The expression.
        columns: The table's columns.
        aliases: What a name may begin with that means the table: `t.a` becomes `a`.

    Raises:
        InvalidArgumentError: A text in double quotes is also a column's name.
    """
    text = value.text
    tokens = tokenize(text)
    own = {alias.lower() for alias in aliases} - {name.lower() for name in columns}
    out: list[str] = []
    done, at = 0, 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "string" and text[token.pos] == '"':
            if token.text in columns:
                hint = f"write `{token.text}` for the column, '{token.text}' for the text"
                raise invalid(f'"{token.text}" is a text in Spark SQL, and a column here', text, token.pos, hint)
            out += [text[done : token.pos], literal(token.text)]
            done = token_end(text, token.pos)
        elif own and token.kind in ("name", "quoted") and _begins(tokens, at) and token.text.lower() in own:
            out.append(text[done : token.pos])
            done = tokens[at + 2].pos
            at += 1
        at += 1
    return "".join([*out, text[done:]])


def _begins(tokens: list[Token], at: int) -> bool:
    """Whether a name has a dot behind it and none before."""
    behind = tokens[at + 1]
    before = tokens[at - 1].text if at else ""
    return behind.kind == "op" and behind.text == "." and before != "."
