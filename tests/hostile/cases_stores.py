"""Good tables behind stores that misbehave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablekit import log

from .generate import Expect, anything, case, either, error, rows

if TYPE_CHECKING:
    import pathlib

ALL = range(30)
_EXPECTED: dict[str, Expect] = {
    "honest": rows(ALL),
    "unsorted": rows(ALL),
    "twice": rows(ALL),
    "offset_ignored": rows(ALL),
    "foreign": rows(ALL),
    "stale": anything(),
    "sizes_zero": either(ALL),
    "sizes_huge": either(ALL),
    "sizes_negative": either(ALL),
    "short_reads": either(ALL),
    "long_reads": either(ALL),
    "text_reads": error(),
    "raising": error(),
    "refusing": error("StorageError", "ermission"),
    "list_raising": error("DeltaError", "no list today"),
    "list_failing_late": error("DeltaError", "no more"),
    "list_of_nonsense": error(),
    "list_of_nothing": error(),
    "exiting": error(),
}
for _name, _expect in _EXPECTED.items():

    @case(f"store_{_name}", _expect, store=_name)
    def _(folder: pathlib.Path) -> None:
        """A good table; see the store's own description."""
        table = log.basic(folder)
        table.last_checkpoint(99)

    @case(f"store_{_name}_with_checkpoint", _expect, store=_name)
    def _(folder: pathlib.Path) -> None:
        """The same with a checkpoint and its hint."""
        table = log.basic(folder)
        table.checkpoint(1)
        table.last_checkpoint(1)
