"""What commands share: tables by location, progress bars, names of columns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltafast.table import DeltaTable

__all__ = ["UsageError", "column_names", "is_watched", "open_table"]


class UsageError(Exception):
    """Arguments of a command contradict each other."""


def open_table(table: str, storage: dict[str, str] | None, version: int | None = None) -> DeltaTable:
    """Open the table at a path or URL."""
    from deltafast.table import DeltaTable

    return DeltaTable(table, version, storage_options=storage)


def is_watched(as_json: bool) -> bool:
    """Return whether a progress bar on standard error is visible."""
    return sys.stderr.isatty() and not as_json


def column_names(columns: str | None) -> list[str] | None:
    """Return the names in a list that is separated by commas."""
    return None if columns is None else [name.strip() for name in columns.split(",")]
