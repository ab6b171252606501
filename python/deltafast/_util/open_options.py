"""Options of opening a table, for the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["core_open_options"]


def core_open_options(
    time_zone: str,
    max_table_version: int | None,
    allow_external_paths: bool | Sequence[str],
) -> dict[str, str]:
    """Return the options of opening a table for the core."""
    options = {"time_zone": time_zone}
    if max_table_version is not None:
        options["max_table_version"] = str(max_table_version)
    if allow_external_paths is True:
        options["allow_external_paths"] = "true"
    elif allow_external_paths:
        prefixes = [allow_external_paths] if isinstance(allow_external_paths, str) else allow_external_paths
        options["allow_external_paths"] = ",".join(prefixes)
    return options
