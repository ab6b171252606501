"""VACUUM: deletes files that no version within the retention period needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from deltafast import _core
from deltafast.progress import Progress, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._core_types import CommitOptions, VacuumOptions
    from deltafast._handle import TableHandle

__all__ = ["vacuum"]


def vacuum(
    table: TableHandle,
    hours: float | None,
    *,
    dry_run: bool,
    enforce_retention: bool,
    full: bool,
    commit: CommitOptions | None = None,
    keep_versions: Sequence[int] | None = None,
    inventory: object | None = None,
    progress: Progress = False,
) -> list[str]:
    """See `DeltaTable.vacuum`.

    Args:
        table: The table.
        hours: Retention in hours; the table's if None.
        dry_run: Only return the files that would be deleted.
        enforce_retention: Whether a shorter retention than the table's is an error.
        full: Consider all files below the table.
        commit: Options of the commit.
        keep_versions: Versions that stay readable.
        inventory: The table's files.
        progress: As for `DeltaTable.scan`.
    """
    options: VacuumOptions = {
        "retention_ms": None if hours is None else round(hours * 3_600_000),
        "dry_run": dry_run,
        "enforce_retention": enforce_retention,
        "full": full,
        "keep_versions": list(keep_versions or ()),
        "commit_options": commit or {},
    }
    stream = cast("_core.ArrowStreamExportable | None", inventory)
    with counted(progress):
        return table.maintain(lambda newest: _core.vacuum(newest, options, stream))["files"]
