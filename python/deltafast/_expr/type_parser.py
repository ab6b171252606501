"""Parser of the types of Spark SQL at a token cursor."""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltafast._expr import literals, token_kind, types
from deltafast._types import SQL_NAMES

if TYPE_CHECKING:
    from deltafast._expr.cursor import TokenCursor
    from deltafast._expr.lexer import Token
    from deltafast._expr.types import DataType

__all__ = ["SIMPLE_TYPES", "read_decimal", "read_numbers", "read_type"]

#: Types of one word, by their names.
SIMPLE_TYPES: Final = {
    alias: types.ATOMS[name] for alias, name in SQL_NAMES.items() if types.ATOMS[name] != types.VARIANT
}


def read_type(cursor: TokenCursor, depth: int = 0) -> DataType:
    """Parse a type as in CAST, at a depth within other types."""
    token = cursor.advance()
    name = token.text.lower()
    if token.kind is not token_kind.NAME or depth > types.MAX_TYPE_DEPTH:
        cursor.back()
        cursor.fail("expected a type")
    if name in SIMPLE_TYPES:
        return SIMPLE_TYPES[name]
    if name in ("decimal", "dec", "numeric"):
        return read_decimal(cursor, token)
    if name in ("varchar", "char", "character"):
        # Spark's CAST to a string type with a length is a cast to STRING.
        read_numbers(cursor)
        return types.STRING
    if name == "array":
        cursor.expect_op("<")
        element = read_type(cursor, depth + 1)
        cursor.expect_angle()
        return types.Array(element)
    if name == "map":
        cursor.expect_op("<")
        key = read_type(cursor, depth + 1)
        cursor.expect_op(",")
        value = read_type(cursor, depth + 1)
        cursor.expect_angle()
        return types.Map(key, value)
    if name == "struct":
        return _struct(cursor, depth)
    hint = "use one of Delta's types"
    raise cursor.unsupported(f"a cast to {token.text.upper()} is not supported", token.pos, hint)


def read_decimal(cursor: TokenCursor, token: Token) -> types.Decimal:
    """Parse the precision and scale of a DECIMAL, of which the token is consumed; (10, 0) without them."""
    numbers = read_numbers(cursor)
    precision = numbers[0] if numbers else 10
    scale = numbers[1] if len(numbers) > 1 else 0
    if not (1 <= precision <= literals.MAX_PRECISION and 0 <= scale <= precision):
        hint = "the precision is 1 to 38 and the scale at most the precision"
        raise cursor.error(f"DECIMAL({precision},{scale}) is not a type", token.pos, hint)
    return types.Decimal(precision, scale)


def read_numbers(cursor: TokenCursor) -> list[int]:
    """Parse `[(number, ..)]`."""
    out: list[int] = []
    if cursor.accept_op("("):
        while True:
            token = cursor.advance()
            if token.kind is not token_kind.NUMBER or not token.text.isdigit():
                cursor.back()
                cursor.fail("expected a number")
            out.append(int(token.text[:9]))
            if not cursor.accept_op(","):
                break
        cursor.expect_op(")")
    return out


def _struct(cursor: TokenCursor, depth: int) -> types.Struct:
    fields: list[types.Field] = []
    cursor.expect_op("<")
    while True:
        token = cursor.advance()
        if token.kind not in (token_kind.NAME, token_kind.QUOTED):
            cursor.back()
            cursor.fail("expected a field name")
        cursor.accept_op(":")
        fields.append(types.Field(token.text, read_type(cursor, depth + 1)))
        if cursor.accept("NOT"):
            cursor.expect("NULL")
        if not cursor.accept_op(","):
            break
    cursor.expect_angle()
    return types.Struct(tuple(fields))
