"""Errors of expressions: one line with the problem, the position in the SQL string, and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltafast.exceptions import ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DOUBLE_QUOTES", "UnsupportedExpressionError", "invalid", "unsupported", "where"]

_SHOWN = 60

#: Hint about a name in double quotes that may have been meant as a string.
DOUBLE_QUOTES: Final = "double quotes enclose a name in its exact case, and single quotes a string"


class UnsupportedExpressionError(InvalidArgumentError, NotImplementedError):
    """This release cannot evaluate the expression with exactly Spark's semantics, although it may be valid.

    Callers that can filter in another way (a lazy frame, for example) catch this error.
    """

    _code = ErrorCode.UNSUPPORTED_EXPRESSION

    def __init__(self, message: str = "", **place: Any) -> None:
        super().__init__(message, **place)


def where(text: str, pos: int | None) -> str:
    """Format a position: ` at character 9 of "a > 1 and foo(b)"`, shortened around the position."""
    if not text:
        return ""
    flat = " ".join(text.split()) if len(text) <= _SHOWN else ""
    if pos is None:
        return f' in "{flat or text[:_SHOWN] + "..."}"'
    if flat and flat == text:
        return f' at character {pos + 1} of "{text}"'
    start = max(0, pos - _SHOWN // 2)
    part = " ".join(text[start : start + _SHOWN].split())
    head = "..." if start else ""
    tail = "..." if start + _SHOWN < len(text) else ""
    return f' at character {pos + 1}, near "{head}{part}{tail}"'


def invalid(
    what: str,
    text: str,
    pos: int | None,
    hint: str,
    *,
    code: ErrorCode | None = None,
    parameters: Mapping[str, str] | None = None,
) -> InvalidArgumentError:
    """Return the error of an invalid expression."""
    return InvalidArgumentError(f"{what}{where(text, pos)}; {hint}", code=code, parameters=parameters)


def unsupported(
    what: str,
    text: str,
    pos: int | None,
    hint: str,
    *,
    code: ErrorCode | None = None,
    parameters: Mapping[str, str] | None = None,
) -> UnsupportedExpressionError:
    """Return the error of an expression that cannot be evaluated."""
    return UnsupportedExpressionError(f"{what}{where(text, pos)}; {hint}", code=code, parameters=parameters)
