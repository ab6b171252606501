"""The error for a table that a catalog does not have: it names what is missing, and the nearest name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._catalog.catalog_error import CatalogError
from deltafast.exceptions import TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["missing_table"]


def missing_table(
    name: object,
    server: str,
    levels: Iterable[tuple[str, str, Callable[[], Iterable[str]]]],
    *,
    ignores_case: bool = False,
    otherwise: str = "",
) -> TableNotFoundError:
    """Return the error for a missing table.

    Args:
        name: The name of the table.
        server: The catalog.
        levels: From the outermost: what a part of the name names, the part, and a function that lists what exists.
        ignores_case: Whether the catalog ignores the case of names.
        otherwise: The end of the message if each part exists, or cannot be listed.
    """
    from difflib import get_close_matches  # only for the message

    message = f"there is no table {name} in {server}"
    for what, given, list_names in levels:
        try:
            names = list(list_names())
        except CatalogError:
            break
        known = {found.lower() for found in names} if ignores_case else set(names)
        if (given.lower() if ignores_case else given) not in known:
            near = get_close_matches(given, names, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            return TableNotFoundError(f"{message}: the {what} {given} does not exist{hint}")
    return TableNotFoundError(f"{message}{otherwise}")
