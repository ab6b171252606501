"""The options of a call that messages name, and how each surface spells them.

The core says which option a message is about, and marks it between two characters that Unicode reserves for the
internal use of a process. `DeltaError` spells it as an argument of Python, `schema_mode="merge"`; the surfaces with
other names for it spell it again: Spark's options, the command line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["MARKS", "as_argument", "option", "spelled", "spelling_of"]

#: The characters before and after an option in a message.
MARKS: Final = "\ufdd0\ufdd1"
_MARKED: Final = re.compile("\ufdd0(\\w+)(?:=(\\w+))?\ufdd1")
_LITERALS: Final = {"true": "True", "false": "False"}


def option(name: str, value: str | None = None) -> str:
    """Return an option for a message that several surfaces show.

    Args:
        name: The name of the argument in Python.
        value: The value that it should have; `true` and `false` for booleans.
    """
    return f"\ufdd0{name}\ufdd1" if value is None else f"\ufdd0{name}={value}\ufdd1"


def spelled(message: str, spelling: Callable[[str, str | None], str]) -> str:
    """Return the message with its options as a surface spells them.

    Args:
        message: A message with marked options.
        spelling: Returns the text for an option's name and value.
    """
    return _MARKED.sub(lambda match: spelling(match[1], match[2]), message) if MARKS[0] in message else message


def as_argument(name: str, value: str | None) -> str:
    """Return an option as an argument in Python."""
    if value is None:
        return f"`{name}`"
    return f'{name}="{value}"' if value not in _LITERALS else f"{name}={_LITERALS[value]}"


def spelling_of(words: Mapping[tuple[str, str | None], str]) -> Callable[[str, str | None], str]:
    """Return how a surface spells options.

    Args:
        words: The surface's words for an option's name and value; others are spelled as arguments in Python.
    """

    def spelling(name: str, value: str | None) -> str:
        return words.get((name, value)) or as_argument(name, value)

    return spelling
