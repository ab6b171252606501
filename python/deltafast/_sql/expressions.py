"""Conversion of a statement's expressions for the table's methods: names without an alias, strings in single quotes.

In Spark, double quotes enclose a string; to the methods of `DeltaTable`, a name. A statement of `deltafast.sql` has
Spark's semantics, but its author may have meant a column, as in the SQL of other engines and in queries. So a string in
double quotes is refused there if it is also a column, and in a comparison that reads no column: the misspelt column in
`DELETE FROM t WHERE "nmae" <> 'a'` would delete all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._expr import token_kind
from deltafast._expr.errors import invalid
from deltafast._expr.lexer import tokenize
from deltafast._expr.parser import parse
from deltafast._expr.syntax import Constant, Logical, Name, Unary, parts, with_parts
from deltafast._expr.syntax_sql import literal
from deltafast._util.dialect import Dialect

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltafast._expr.lexer import Token
    from deltafast._expr.syntax import Syntax
    from deltafast._sql.tree import Expression, Path

__all__ = ["check_comparisons", "check_strings", "plain", "qualified", "unqualified"]


def plain(
    value: Expression, columns: Collection[str], names: Mapping[Path, str] | None = None, *, dialect: Dialect
) -> str:
    """Return the SQL string of an expression over one table or, without `columns`, over several.

    Args:
        value: The expression.
        columns: The table's columns.
        names: Qualifiers of columns, in lower case, and their replacements; with an empty one the qualifier is removed,
            so that `t.a` becomes `a`.
        dialect: `SPARK` or `STATEMENT`.

    Raises:
        InvalidArgumentError: A string in double quotes is also a column's name, in a statement.
    """
    if dialect is Dialect.STATEMENT:
        check_strings(value, columns)
    text = value.text
    tokens = tokenize(text)
    known = {name.lower() for name in columns}
    own = {path: name for path, name in (names or {}).items() if path[0] not in known}
    out: list[str] = []
    done, at = 0, 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind is token_kind.STRING and text[token.pos] == '"':
            out += [text[done : token.pos], literal(token.text)]
            done = token.end
        elif own and token.kind in (token_kind.NAME, token_kind.QUOTED) and not (at and _is_dot(tokens[at - 1])):
            path = _path(tokens, at)
            found = qualified(path, own)
            if found is not None:
                size, name = found
                out += [text[done : token.pos], f"`{name.replace('`', '``')}`." if name else ""]
                done = tokens[at + 2 * size].pos
            at += 2 * len(path) - 2
        at += 1
    return "".join([*out, text[done:]])


def unqualified(node: Syntax, columns: Collection[str], names: Mapping[Path, str]) -> Syntax:
    """Return the syntax of an expression over one table with the qualifiers of columns replaced, as `plain` does."""
    known = {name.lower() for name in columns}

    def replace(part: Syntax) -> Syntax | None:
        if not isinstance(part, Name) or part.parts[0].lower() in known:
            return None
        found = qualified(part.parts, names)
        return found and part._replace(parts=(*filter(None, (found[1],)), *part.parts[found[0] :]))

    return with_parts(node, replace)


def check_strings(value: Expression, columns: Collection[str]) -> None:
    """Refuse a string in double quotes that is also a column's name.

    Raises:
        InvalidArgumentError: There is one.
    """
    for token in tokenize(value.text):
        if token.kind is token_kind.STRING and value.text[token.pos] == '"' and token.text in columns:
            what = f'"{token.text}" is a string in Spark SQL, and a column here'
            raise invalid(what, value.text, token.pos, _hint(token.text))


def check_comparisons(value: Expression) -> None:
    """Refuse a comparison with a string in double quotes that reads no column: the string may be a misspelt column.

    Raises:
        InvalidArgumentError: There is one.
    """
    if '"' in value.text:
        _check_comparison(parse(value.text, dialect=Dialect.SPARK), value.text)


def _check_comparison(node: Syntax, text: str) -> None:
    match node:
        case Logical(args=args):
            for arg in args:
                _check_comparison(arg, text)
        case Unary(op="not", arg=arg):
            _check_comparison(arg, text)
        case _:
            nodes = list(parts(node))
            if any(isinstance(part, Name) for part in nodes):
                return
            for part in nodes:
                if isinstance(part, Constant) and part.pos is not None and text[part.pos] == '"':
                    string = str(part.lit.value)
                    what = f'"{string}" is a string in Spark SQL, and the comparison reads no column'
                    raise invalid(what, text, part.pos, _hint(string))


def _hint(string: str) -> str:
    return f"write `{string}` for the column, '{string}' for the string"


def qualified(path: Path, names: Mapping[Path, str]) -> tuple[int, str] | None:
    """Return the number of parts of a qualifier of a column, and their replacement; None for an unqualified column."""
    low = tuple(part.lower() for part in path)
    return next(((size, names[low[:size]]) for size in range(len(low) - 1, 0, -1) if low[:size] in names), None)


def _path(tokens: list[Token], at: int) -> Path:
    """Return the parts of the name that begins here."""
    out = [tokens[at].text]
    while _is_dot(tokens[at + 1]) and tokens[at + 2].kind in (token_kind.NAME, token_kind.QUOTED):
        at += 2
        out.append(tokens[at].text)
    return tuple(out)


def _is_dot(token: Token) -> bool:
    return token.kind is token_kind.OPERATOR and token.text == "."
