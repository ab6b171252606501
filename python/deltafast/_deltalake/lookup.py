"""Helpers of `deltalake` that find a table, which other libraries import."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deltafast._util.locations import address
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["try_get_deltatable", "try_get_table_and_table_uri"]


def try_get_table_and_table_uri(
    table_or_uri: str | os.PathLike[str] | DeltaTable,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[DeltaTable | None, str]:
    """Return the table, or None, and its location; a helper of `deltalake` that other libraries import.

    Raises:
        InvalidArgumentError: The argument is neither a location nor a table.
    """
    if isinstance(table_or_uri, DeltaTable):
        return table_or_uri, table_or_uri.table_uri
    if not isinstance(table_or_uri, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = "table_or_uri must be a str, Path or DeltaTable"
        raise InvalidArgumentError(message)
    return try_get_deltatable(table_or_uri, storage_options), address(table_or_uri)


def try_get_deltatable(
    table_uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
) -> DeltaTable | None:
    """Return the table, or None if it does not exist."""
    try:
        return DeltaTable(table_uri, storage_options=storage_options)
    except TableNotFoundError:
        return None
