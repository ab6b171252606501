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


for _do in ["read", "files", "count", "stream"]:

    @case(
        f"store_cut_commits_{_do}",
        error("CorruptLogError", "00000000000000000002.json", "listing"),
        do=_do,
        store="cut_commits",
    )
    def _(folder: pathlib.Path) -> None:
        """A commit is shorter than its listing said, cut at the end of a line."""
        table = log.basic(folder)
        table.commit(2, {"commitInfo": {}}, *table.actions(2, 2))


@case("store_cut_compactions", rows(ALL), store="cut_compactions")
def _(folder: pathlib.Path) -> None:
    """A log compaction is: its commits are there."""
    log.basic(folder).compacted(0, 2)


@case("store_cut_json_checkpoint", rows(ALL), store="cut_compactions")
def _(folder: pathlib.Path) -> None:
    """A JSON checkpoint is: its commits are there."""
    table = log.basic(folder)
    table.v2_checkpoint(1, kind="json")
