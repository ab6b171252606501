"""Where generated tables lie and what is known of them; needs nothing but Python.

The measuring processes import this, not the generator, so that NumPy and pyarrow
do not count in the memory of a peer that does without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Table:
    """A generated table.

    Attributes:
        name: The table's name.
        path: Its folder.
        facts: What must come out: files, rows, bytes and the like.
        parameters: What it was made with.
    """

    name: str
    path: Path
    facts: dict[str, Any]
    parameters: dict[str, Any]


def folder_name(name: str, scale: float) -> str:
    """Name a table's folder in the cache; other scales have folders of their own."""
    return name if scale == 1 else f"{name}-x{scale:g}"


def record_path(name: str, cache: Path, scale: float) -> Path:
    """Say where the parameters and facts of a table are kept."""
    return cache / f"{folder_name(name, scale)}.json"


def known(name: str, cache: Path, scale: float) -> Table | None:
    """Find a table in the cache.

    Args:
        name: The table's name.
        cache: The folder of the cache.
        scale: The scale it was made with.

    Returns:
        The table, or None if it was never finished.
    """
    record = record_path(name, cache, scale)
    path = cache / folder_name(name, scale)
    if not (path.is_dir() and record.is_file()):
        return None
    content = json.loads(record.read_text())
    return Table(name, path, content["facts"], content["parameters"])
