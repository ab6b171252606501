"""Keyword arguments that `deltalake` also accepts by position."""

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

#: Order of these arguments in most methods of `deltalake` before they became keywords.
COMMIT_ARGUMENTS = ("commit_properties", "post_commithook_properties")
HOOKS_FIRST = COMMIT_ARGUMENTS[::-1]


def also_by_position(*names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Accept these keywords of a method also by position, after the others and with a warning, as `deltalake` does."""

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
    """Return the keyword arguments that were given by position, by name; warns the caller of the method.

    Args:
        method: Name of the method.
        names: The keywords, in the order of their positions.
        args: The values given by position.
        given: Names of the arguments given by keyword.
        before: Number of positional arguments of the method before these.

    Raises:
        TypeError: There are too many arguments, or one is given twice.
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
