"""Keyword arguments that `deltalake` takes by position too."""

from __future__ import annotations

import inspect
import warnings
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


__all__ = ["COMMIT_ARGUMENTS", "HOOKS_FIRST", "also_by_position", "late_arguments"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: The order of most of `deltalake`'s methods from the time when these were no keywords.
COMMIT_ARGUMENTS = ("commit_properties", "post_commithook_properties")
HOOKS_FIRST = COMMIT_ARGUMENTS[::-1]


def also_by_position(*names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a method take these keywords by position too, behind its others and with a warning, as `deltalake` does."""

    def wrap(method: Callable[_P, _R]) -> Callable[_P, _R]:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        most = sum(parameter.kind in kinds for parameter in inspect.signature(method).parameters.values())
        name = method.__name__

        @wraps(method)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if len(args) <= most:
                return method(*args, **kwargs)
            late = late_arguments(name, names, args[most:], kwargs.keys(), before=most - 1)
            return cast("Any", method)(*args[:most], **kwargs, **late)

        return call

    return wrap


def late_arguments(
    method: str, names: Sequence[str], args: Sequence[Any], given: Collection[str], *, before: int = 0
) -> dict[str, Any]:
    """What became keywords, by name, where a method is given it by position; with a warning for the method's caller.

    Args:
        method: The method's name.
        names: The keywords, in the order of their positions.
        args: What is given by position.
        given: Names of what is given by keyword.
        before: How many arguments by position the method has before these.

    Raises:
        TypeError: There are too many, or one is given twice.
    """
    if len(args) > len(names):
        message = f"{method}() takes at most {before + len(names)} arguments by position, not {before + len(args)}"
        raise TypeError(message)
    late = dict(zip(names, args, strict=False))
    if twice := late.keys() & given:
        message = f"{method}() got multiple values for {min(twice)!r}"
        raise TypeError(message)
    message = f"{method}() takes {', '.join(late)} by keyword: to pass them positionally is deprecated"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return late
