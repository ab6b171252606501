"""The recipes of `examples/` do what they say."""

from __future__ import annotations

import datetime as dt
import importlib.util
import pathlib
from typing import Any

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake

FOLDER = pathlib.Path(__file__).parents[3] / "examples"
#: But those that need Spark, which `tests/spark` runs.
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py") if "pyspark" not in path.read_text(encoding="utf-8"))


def recipe(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"recipe_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(folder: pathlib.Path, *by: str) -> list[dict[str, Any]]:
    return DeltaTable(folder).to_pyarrow_table().sort_by([(name, "ascending") for name in by]).to_pylist()


@pytest.mark.parametrize("name", NAMES)
def test_each_runs_as_a_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe(name).main()
    assert capsys.readouterr().out.strip()


def test_an_upsert_by_two_keys(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1, 1], "b": ["x", "y"], "v": [1, 2]}))
    recipe("upsert").upsert(DeltaTable(tmp_path), pa.table({"a": [1, 2], "b": ["y", "y"], "v": [5, 6]}), ["a", "b"])
    assert [tuple(row.values()) for row in rows(tmp_path, "a", "b")] == [(1, "x", 1), (1, "y", 5), (2, "y", 6)]


def test_a_change_stream_comes_twice_and_late(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "v": ["a", "b"], "seq": [1, 1]}))
    table = DeltaTable(tmp_path)
    changes = pa.table(
        {
            "id": [1, 1, 2, 3, 4, 4],
            "v": ["a3", "a2", None, "c", "d", None],
            "seq": [3, 2, 2, 1, 1, 2],
            "op": ["upsert", "upsert", "delete", "upsert", "upsert", "delete"],
        }
    )
    expected = [(1, "a3", 3), (3, "c", 1)]
    for _ in range(2):
        recipe("change_stream").apply(table, changes, "id")
        assert [tuple(row.values()) for row in rows(tmp_path, "id")] == expected
    assert table.version() == 1
    late = pa.table({"id": [1], "v": ["old"], "seq": [2], "op": ["upsert"]})
    recipe("change_stream").apply(table, late, "id")
    assert [tuple(row.values()) for row in rows(tmp_path, "id")] == expected


def test_the_history_of_rows(tmp_path: pathlib.Path) -> None:
    days = [dt.date(2025, 1, 1), dt.date(2026, 1, 1), dt.date(2027, 1, 1)]
    start = {"id": [1], "city": ["Oslo"], "since": [days[0]], "until": pa.array([None], pa.date32()), "current": [True]}
    write_deltalake(tmp_path, pa.table(start))
    table = DeltaTable(tmp_path)
    record = recipe("history_of_rows").record
    record(table, pa.table({"id": [1, 2], "city": ["Bergen", "Lima"]}), "id", "city", days[1])
    record(table, pa.table({"id": [1, 2], "city": ["Bergen", None]}), "id", "city", days[2])
    assert [tuple(row.values()) for row in rows(tmp_path, "id", "since")] == [
        (1, "Oslo", days[0], days[1], False),
        (1, "Bergen", days[1], None, True),
        (2, "Lima", days[1], days[2], False),
        (2, None, days[2], None, True),
    ]


def test_only_new_rows_are_appended(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"k": ["a", None], "n": [1, 2]}))
    files = set(DeltaTable(tmp_path).file_uris())
    metrics = recipe("deduplicate").append_new(DeltaTable(tmp_path), pa.table({"k": ["a", "b"], "n": [7, 8]}), ["k"])
    assert metrics["num_target_rows_inserted"] == 1
    assert files < set(DeltaTable(tmp_path).file_uris())


def test_only_rows_that_differ_are_updated(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "a": ["x", None, "z"], "b": [1, 2, 3]}))
    table = DeltaTable(tmp_path)
    data = pa.table({"id": [1, 2, 3], "a": ["x", "", "z"], "b": [1, 2, 4]})
    update = recipe("changed_only").update_changed
    assert update(table, data, "id")["num_target_rows_updated"] == 2
    assert update(table, data, "id")["num_target_rows_updated"] == 0
    assert table.version() == 1
