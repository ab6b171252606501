"""The text that names a column, as the core resolves it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["column_text", "parts_of_text"]


def column_text(path: Iterable[str]) -> str:
    """Return the names of a path, joined by dots; a name with dots itself is in backquotes.

    Examples:
        >>> from deltafast._util.column_path import column_text
        >>> column_text(["address", "city"]), column_text(["a.b", "c"])
        ('address.city', '`a.b`.c')
    """
    return ".".join("`" + name.replace("`", "``") + "`" if "." in name or "`" in name else name for name in path)


def parts_of_text(text: str) -> list[str]:
    """Return the names of a path that `column_text` joined.

    Examples:
        >>> from deltafast._util.column_path import parts_of_text
        >>> parts_of_text("`a.b`.c")
        ['a.b', 'c']
    """
    parts: list[str] = re.findall(r"`(?:[^`]|``)*`|[^.]+", text)
    return [part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts]
