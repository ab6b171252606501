"""Queries as the source of a MERGE.

The package `_sql`, which ranks above the operations, registers the function that runs queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._util.arrow import Data

__all__ = ["query_rows", "register_query_source"]

_REGISTERED: list[Callable[[str, str], Data]] = []


def register_query_source(run: Callable[[str, str], Data]) -> None:
    """Register the function that runs queries; its arguments are the query and the time zone."""
    _REGISTERED[:] = [run]


def query_rows(text: str, zone: str) -> Data:
    """Return the rows of a query."""
    (run,) = _REGISTERED
    return run(text, zone)
