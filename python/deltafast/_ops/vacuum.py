"""VACUUM: deletes files that no version within the retention period needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from deltafast import _core
from deltafast.progress import Progress, counted

if TYPE_CHECKING:
    from deltafast._core_types import VacuumOptions
    from deltafast._handle import TableHandle

__all__ = ["vacuum"]


def vacuum(
    table: TableHandle,
    hours: float | None,
    options: VacuumOptions,
    inventory: object | None = None,
    progress: Progress = False,
) -> list[str]:
    """See `DeltaTable.vacuum`.

    Args:
        table: The table.
        hours: Retention in hours; the table's if None.
        options: The other options, for the core.
        inventory: The table's files.
        progress: As for `DeltaTable.scan`.
    """
    options = {**options, "retention_ms": None if hours is None else round(hours * 3_600_000)}
    stream = cast("_core.ArrowStreamExportable | None", inventory)
    with counted(progress):
        return table.maintain(lambda newest: _core.vacuum(newest, options, stream))["files"]
