"""How a source that is a query is read.

Queries are of `_sql`, which is above the operations: the package registers what runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._util.arrow import Data

__all__ = ["query_rows", "register_query_source"]

_REGISTERED: list[Callable[[str, str], Data]] = []


def register_query_source(run: Callable[[str, str], Data]) -> None:
    """Let queries be run by this function of their text and the time zone."""
    _REGISTERED[:] = [run]


def query_rows(text: str, zone: str) -> Data:
    """The rows of a query."""
    (run,) = _REGISTERED
    return run(text, zone)
