"""Marks in the log that are wrong: no id is given out twice, and a table stays writable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import CorruptLogError, DeltaError, InvalidArgumentError
from support import one_in_product

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

DOMAIN = "delta.rowTracking"
ROW_IDS = {"delta.enableRowTracking": "true"}


def commit(path: pathlib.Path, *actions: dict[str, Any]) -> None:
    """Commit actions as another writer."""
    folder = path / "_delta_log"
    version = 1 + max(int(file.stem) for file in folder.glob("*.json"))
    (folder / f"{version:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def change_metadata(path: pathlib.Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Commit the table's metadata after a change."""
    files = sorted((path / "_delta_log").glob("*.json"), reverse=True)
    lines = [line for file in files for line in file.read_text().splitlines()]
    action = json.loads(next(line for line in lines if '"metaData"' in line))
    schema = json.loads(action["metaData"]["schemaString"])
    action["schema"] = schema
    change(action)
    action["metaData"]["schemaString"] = json.dumps(action.pop("schema"))
    commit(path, action)


def mark_domain(path: pathlib.Path, configuration: str | None) -> None:
    if configuration is None:
        commit(path, {"domainMetadata": {"domain": DOMAIN, "configuration": "{}", "removed": True}})
    else:
        commit(path, {"domainMetadata": {"domain": DOMAIN, "configuration": configuration, "removed": False}})


def row_ids(path: pathlib.Path) -> list[int]:
    rows = DeltaTable(path).scan(metadata_columns=["row_id"])
    return rows.read_all().column("row_id").to_pylist()


WRITES: dict[str, Callable[[pathlib.Path], object]] = {
    "append": lambda path: write_deltalake(path, {"id": [7, 8]}, mode="append"),
    "overwrite": lambda path: write_deltalake(path, {"id": [7, 8]}, mode="overwrite"),
    "update": lambda path: DeltaTable(path).update({"id": "id + 1"}, predicate="id = 1"),
    "sql": lambda path: deltafast.sql(f"INSERT INTO delta.`{path}` VALUES (7)"),
}


@pytest.fixture
def tracked(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a table with ten rows, ids 0 to 9, in two files."""
    path = tmp_path / "t"
    write_deltalake(path, {"id": list(range(6))}, configuration=ROW_IDS)
    write_deltalake(path, {"id": list(range(6, 10))}, mode="append")
    return path


MARKS = [
    None,
    '{"rowIdHighWaterMark":3}',
    '{"rowIdHighWaterMark":-7}',
    '{"rowIdHighWaterMark":"9"}',
    '{"rowIdHighWaterMark":9.5}',
    "{}",
    "nonsense",
]


@pytest.mark.parametrize(("configuration", "write", "checkpoint"), one_in_product(3, MARKS, WRITES, [False, True]))
def test_a_row_id_mark_that_is_wrong_gives_no_id_twice(tracked, configuration, write, checkpoint):
    given = set(row_ids(tracked))
    mark_domain(tracked, configuration)
    if checkpoint:
        DeltaTable(tracked).create_checkpoint()
    WRITES[write](tracked)
    WRITES["append"](tracked)
    ids = row_ids(tracked)
    assert len(set(ids)) == len(ids)
    fresh = set(ids) - given
    assert all(row_id > 9 for row_id in fresh), fresh


def test_ids_of_removed_files_are_not_given_out_again(tracked):
    given = set(row_ids(tracked))
    write_deltalake(tracked, {"id": [1]}, mode="overwrite")
    given |= set(row_ids(tracked))
    DeltaTable(tracked).delete()
    mark_domain(tracked, None)
    write_deltalake(tracked, {"id": [5, 6]}, mode="append")
    assert not given & set(row_ids(tracked))


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mark", [2**63 - 1, 2**63 - 3])
def test_a_row_id_mark_at_its_end_is_refused_before_a_file_is_written(tracked, mark, write):
    mark_domain(tracked, json.dumps({"rowIdHighWaterMark": mark}))
    before = sorted(tracked.rglob("*.parquet"))
    with pytest.raises(InvalidArgumentError, match="no row ids left"):
        WRITES[write](tracked)
    assert sorted(tracked.rglob("*.parquet")) == before


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}


@pytest.fixture
def numbered(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "t"
    deltafast.sql(f"CREATE TABLE delta.`{path}` (k BIGINT GENERATED ALWAYS AS IDENTITY, v BIGINT)")
    write_deltalake(path, {"v": [10, 20, 30]}, mode="append")
    return path


@pytest.mark.parametrize(
    ("mark", "name"),
    one_in_product(4, ["3", 3.0, True, [3], {"a": 3}, 2**63], ["highWaterMark", "start", "step"]),
)
def test_a_setting_of_an_identity_column_of_another_type_is_named(numbered, mark, name):
    def change(action: dict[str, Any]) -> None:
        action["schema"]["fields"][0]["metadata"][f"delta.identity.{name}"] = mark

    change_metadata(numbered, change)
    before = sorted(numbered.rglob("*.parquet"))
    with pytest.raises(CorruptLogError, match=f"delta.identity.{name}"):
        write_deltalake(numbered, {"v": [40]}, mode="append")
    assert sorted(numbered.rglob("*.parquet")) == before
    assert DeltaTable(numbered).to_pyarrow_table().num_rows == 3


def test_an_identity_column_at_its_end_is_refused(numbered):
    def change(action: dict[str, Any]) -> None:
        action["schema"]["fields"][0]["metadata"]["delta.identity.highWaterMark"] = 2**63 - 2

    change_metadata(numbered, change)
    with pytest.raises(DeltaError, match="end of its numbers"):
        write_deltalake(numbered, {"v": [50]}, mode="append")


def test_a_restore_with_an_identity_mark_that_cannot_be_read_is_refused(numbered):
    def change(action: dict[str, Any]) -> None:
        action["schema"]["fields"][0]["metadata"]["delta.identity.highWaterMark"] = "3"

    change_metadata(numbered, change)
    with pytest.raises(CorruptLogError, match=r"delta\.identity\.highWaterMark"):
        DeltaTable(numbered).restore(0)


ALTERS: dict[str, Callable[[pathlib.Path], object]] = {
    "add column": lambda path: DeltaTable(path).alter.add_columns(deltafast.Field("extra", "string")),
    "merge schema": lambda path: write_deltalake(path, {"id": [1], "extra": ["x"]}, mode="append", schema_mode="merge"),
    "overwrite schema": lambda path: write_deltalake(path, {"other": [1]}, mode="overwrite", schema_mode="overwrite"),
    "sql": lambda path: deltafast.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (extra STRING)"),
}


@pytest.mark.parametrize(
    ("highest", "alter"),
    one_in_product(5, [str(2**31 - 1), str(2**31), str(2**63 - 1), "x", "-1", ""], ALTERS),
)
def test_a_column_id_beyond_32_bits_is_never_committed(tmp_path, highest, alter):
    path = tmp_path / "t"
    write_deltalake(path, {"id": [1, 2]}, configuration={"delta.columnMapping.mode": "name"})

    def change(action: dict[str, Any]) -> None:
        action["metaData"]["configuration"]["delta.columnMapping.maxColumnId"] = highest

    change_metadata(path, change)
    with pytest.raises(InvalidArgumentError, match="maxColumnId"):
        ALTERS[alter](path)
    # The table is as readable and writable as before.
    write_deltalake(path, {"id": [3]}, mode="append")
    assert sorted(DeltaTable(path).to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3]
