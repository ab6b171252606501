"""Options of opening a table, for the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._core_types import OpenOptions

__all__ = ["core_open_options"]


def core_open_options(
    time_zone: str,
    max_table_version: int | None,
    allow_external_paths: bool | Sequence[str],
) -> OpenOptions:
    """Return the options of opening a table for the core."""
    if isinstance(allow_external_paths, str):
        allow_external_paths = [allow_external_paths]
    return {
        "time_zone": time_zone,
        "max_table_version": max_table_version,
        "allow_external_paths": allow_external_paths
        if isinstance(allow_external_paths, bool)
        else list(allow_external_paths),
    }
