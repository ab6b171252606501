"""How an expression is refused: one line that says what, where in the text, and what to do."""

from __future__ import annotations

from typing import Any

from deltafast.exceptions import InvalidArgumentError

__all__ = ["UnsupportedExpressionError", "invalid", "unsupported", "where"]

_SHOWN = 60


class UnsupportedExpressionError(InvalidArgumentError, NotImplementedError):
    """The expression may be right, but this release cannot evaluate it with Spark's exact meaning.

    Callers that have another way to filter (a lazy frame, for example) catch this and use it.
    """

    def __init__(self, message: str = "", **place: Any) -> None:
        super().__init__(message, **place)


def where(text: str, pos: int | None) -> str:
    """Point into the text: ` at character 9 of "a > 1 and foo(b)"`, shortened around the place."""
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


def invalid(what: str, text: str, pos: int | None, hint: str) -> InvalidArgumentError:
    """The expression is wrong."""
    return InvalidArgumentError(f"{what}{where(text, pos)}; {hint}")


def unsupported(what: str, text: str, pos: int | None, hint: str) -> UnsupportedExpressionError:
    """The expression cannot be evaluated here."""
    return UnsupportedExpressionError(f"{what}{where(text, pos)}; {hint}")
