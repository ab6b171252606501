"""What commands share: the arguments of each command about a table, progress bars, names of columns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from deltafast.table import DeltaTable

__all__ = ["CommonArguments", "UsageError", "column_names", "is_watched"]


class UsageError(Exception):
    """Arguments of a command contradict each other."""


class CommonArguments(NamedTuple):
    """The arguments of each command about a table."""

    #: Path or URL.
    table: str
    #: Options of the store.
    storage: dict[str, str] | None
    #: Whether the output is JSON.
    as_json: bool
    #: The version to open; the newest if None.
    version: int | None = None

    def open(self) -> DeltaTable:
        """Open the table."""
        from deltafast.table import DeltaTable

        return DeltaTable(self.table, self.version, storage_options=self.storage)

    @property
    def is_watched(self) -> bool:
        """Whether a progress bar on standard error is visible."""
        return is_watched(self.as_json)


def is_watched(as_json: bool) -> bool:
    """Return whether a progress bar on standard error is visible."""
    return sys.stderr.isatty() and not as_json


def column_names(columns: str | None) -> list[str] | None:
    """Return the names in a list that is separated by commas."""
    return None if columns is None else [name.strip() for name in columns.split(",")]
