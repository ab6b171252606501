"""Parameters of a statement, `:name` and `?`, as literals in its text."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["bound", "literal"]

#: What holds no parameter, though it may look so; and parameters.
_PIECE: Final = re.compile(
    r"""--[^\r\n]* | /\*.*?\*/ | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*` | ::
    | :(?P<name>[A-Za-z_]\w*) | (?P<mark>\?)""",
    re.VERBOSE | re.DOTALL,
)


def bound(text: str, args: Mapping[str, Any] | Sequence[Any]) -> str:
    """A statement with literals for its parameters; those stay whose values are no plain ones, or not given.

    Args:
        text: The statement.
        args: Values by names, or in the order of the question marks.
    """
    by_name: dict[str, Any] = dict(args) if isinstance(args, dict) else {}
    in_order = iter(() if isinstance(args, dict) else args)

    def put(match: re.Match[str]) -> str:
        if match["mark"]:
            given = next(in_order, _NOTHING)
        else:
            given = by_name.get(match["name"], _NOTHING) if match["name"] else _NOTHING
        return literal(given) or match[0]

    return _PIECE.sub(put, text)


_NOTHING: Final = object()


def literal(value: Any) -> str | None:  # noqa: PLR0911 - one line a type
    """A value as SQL has it; None where it is no plain one."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
        case Decimal():
            return f"{value:f}BD"
        case int():
            return str(value)
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP'{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case _:
            return None
