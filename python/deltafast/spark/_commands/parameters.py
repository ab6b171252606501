"""Parameters of a statement, `:name` and `?`, as literals in the SQL string."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from deltafast._expr.lexer import OPAQUE
from deltafast._expr.syntax_sql import literal
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["bound", "spelled"]

#: Parameters, and the tokens that contain none, though they may look so.
_PIECE: Final = re.compile(rf"{OPAQUE}|::|:(?P<name>[A-Za-z_]\w*)|(?P<mark>\?)", re.DOTALL)


def bound(text: str, args: Mapping[str, Any] | Sequence[Any], spell: Callable[[Any], str | None] | None = None) -> str:
    """Replace the parameters of a statement by literals; those without a value or a literal of their type remain.

    Args:
        text: The statement.
        args: Values by name, or in the order of the question marks.
        spell: Returns a value as a SQL literal; `spelled` if None.
    """
    literal_of = spelled if spell is None else spell
    by_name: dict[str, Any] = dict(args) if isinstance(args, dict) else {}
    in_order = iter(() if isinstance(args, dict) else args)

    def put(match: re.Match[str]) -> str:
        if match["mark"]:
            given = next(in_order, _NOTHING)
        else:
            given = by_name.get(match["name"], _NOTHING) if match["name"] else _NOTHING
        return (None if given is _NOTHING else literal_of(given)) or match[0]

    return _PIECE.sub(put, text)


_NOTHING: Final = object()


def spelled(value: Any) -> str | None:
    """Return a value as a SQL literal; None if its type has none."""
    if isinstance(value, datetime):
        # PySpark takes a timestamp without a time zone to be in that of the process.
        return f"TIMESTAMP'{value.astimezone().isoformat(sep=' ')}'"
    try:
        # Spark passes bytes as a `bytearray`.
        return literal(bytes(value) if isinstance(value, bytearray) else value)
    except InvalidArgumentError:
        return None
