"""The kinds of tokens of a SQL string.

The kinds are names of this module, too: before Python 3.12, an attribute of an `Enum` takes ten times as long as one of
a module, and the scanners and parsers compare kinds several times a token.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = [
    "BROKEN",
    "END",
    "EXACT",
    "HEX",
    "NAME",
    "NUMBER",
    "OPERATOR",
    "QUOTED",
    "STRING",
    "VALUES",
    "TokenKind",
]


class TokenKind(Enum):
    """The kind of a token."""

    NAME = "name"
    #: A name in backticks.
    QUOTED = "quoted"
    #: A name in double quotes.
    EXACT = "exact"
    STRING = "string"
    NUMBER = "number"
    HEX = "hex"
    OPERATOR = "operator"
    #: All that is in the parentheses of a long list of constants after IN.
    VALUES = "values"
    #: Invalid; the token's text is a message.
    BROKEN = "broken"
    END = "end"


NAME: Final = TokenKind.NAME
QUOTED: Final = TokenKind.QUOTED
EXACT: Final = TokenKind.EXACT
STRING: Final = TokenKind.STRING
NUMBER: Final = TokenKind.NUMBER
HEX: Final = TokenKind.HEX
OPERATOR: Final = TokenKind.OPERATOR
VALUES: Final = TokenKind.VALUES
BROKEN: Final = TokenKind.BROKEN
END: Final = TokenKind.END
