"""Statistics of other writers that count too few rows: no operation removes a file that has other rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

ROWS = 10
CHANGED = {"id": [0, 1, 2], "v": [1, 1, 1]}
KINDS = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "vectors and row tracking": {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"},
}


def source() -> dict[str, list[int]]:
    return CHANGED


def merge(path: pathlib.Path, *, deletes: bool) -> None:
    merger = DeltaTable(path).merge(source(), "t.id = s.id", source_alias="s", target_alias="t")
    (merger.when_matched_delete() if deletes else merger.when_matched_update({"v": "s.v"})).execute()


# Each changes the rows 0 to 2; the flag says whether they remain.
OPERATIONS: dict[str, tuple[bool, Callable[[pathlib.Path], object]]] = {
    "delete": (False, lambda path: DeltaTable(path).delete("id < 3")),
    "update": (True, lambda path: DeltaTable(path).update({"v": "1"}, predicate="id < 3")),
    "merge delete": (False, lambda path: merge(path, deletes=True)),
    "merge update": (True, lambda path: merge(path, deletes=False)),
    "replace by predicate": (
        True,
        lambda path: write_deltalake(path, source(), mode="overwrite", predicate="id < 3"),
    ),
    "replace by keys": (
        True,
        lambda path: write_deltalake(path, source(), mode="overwrite", replace_using=["id"]),
    ),
    "sql delete": (False, lambda path: deltafast.sql(f"DELETE FROM delta.`{path}` WHERE id < 3")),
    "sql update": (True, lambda path: deltafast.sql(f"UPDATE delta.`{path}` SET v = 1 WHERE id < 3")),
}


def count_too_few(path: pathlib.Path, rows: int) -> None:
    """Let the statistics of the table's files say that they have `rows` rows."""
    for log in (path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                stats = json.loads(action["add"]["stats"])
                action["add"]["stats"] = json.dumps({**stats, "numRecords": rows})
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def rows_of(path: pathlib.Path) -> list[tuple[int, int]]:
    rows = DeltaTable(path).scan().read_all()
    return sorted(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


@pytest.mark.parametrize("counted", [0, 2, 3])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_beyond_the_recorded_number_stay(tmp_path: pathlib.Path, kind: str, operation: str, counted: int) -> None:
    write_deltalake(tmp_path, {"id": list(range(ROWS)), "v": [0] * ROWS}, configuration=KINDS[kind])
    count_too_few(tmp_path, counted)
    stays, run = OPERATIONS[operation]
    run(tmp_path)
    expected = [(number, 0) for number in range(3, ROWS)]
    if stays:
        expected = [(number, 1) for number in range(3)] + expected
    assert rows_of(tmp_path) == expected


@pytest.mark.parametrize("kind", ["plain", "vectors"])
def test_a_file_without_other_rows_is_removed(tmp_path: pathlib.Path, kind: str) -> None:
    write_deltalake(tmp_path, {"id": list(range(ROWS)), "v": [0] * ROWS}, configuration=KINDS[kind])
    metrics = DeltaTable(tmp_path).delete("id < 10")
    assert rows_of(tmp_path) == []
    assert metrics["num_removed_files"] == 1
    assert DeltaTable(tmp_path).file_uris() == []
