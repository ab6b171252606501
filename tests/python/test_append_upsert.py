"""`DeltaTable.append` and `DeltaTable.upsert`."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import InvalidArgumentError, SchemaMismatchError


def rows(table, *by):
    return table.to_pyarrow_table().sort_by([(name, "ascending") for name in by]).to_pylist()


def test_rows_are_appended(tmp_path):
    table = DeltaTable.create(tmp_path, pa.schema([("id", pa.int64()), ("city", pa.string())]))
    metrics = table.append({"id": [1, 2], "city": ["Oslo", "Rome"]})
    size = sum(file["size_bytes"] for file in table.get_add_actions().to_pylist())
    assert metrics == {"num_added_files": 1, "num_added_rows": 2, "num_added_bytes": size}
    assert (table.version(), table.history(1)[0]["operationParameters"]["mode"]) == (1, "Append")
    with pytest.raises(SchemaMismatchError, match="zip"):
        table.append({"id": [3], "zip": ["1"]})
    assert table.append([{"id": 3, "zip": "1"}], schema_mode="merge")["num_added_rows"] == 1
    assert rows(table, "id")[2] == {"id": 3, "city": None, "zip": "1"}
    with pytest.raises(InvalidArgumentError, match="schema_mode"):
        table.append({"id": [4]}, schema_mode="overwrite")


def test_a_handle_of_an_older_version_appends_to_the_newest(tmp_path):
    write_deltalake(tmp_path, {"id": [1]})
    old = DeltaTable(tmp_path)
    write_deltalake(tmp_path, {"id": [2]}, mode="append")
    old.append({"id": [3]})
    assert (old.version(), [row["id"] for row in rows(old, "id")]) == (2, [1, 2, 3])


def test_rows_are_updated_by_their_keys_or_inserted(tmp_path):
    write_deltalake(tmp_path, {"a": [1, 1], "b `x`": ["x", "y"], "v": [1, 2]})
    table = DeltaTable(tmp_path)
    metrics = table.upsert({"a": [1, 2, None], "b `x`": ["y", "y", "z"], "v": [5, 6, 7]}, keys=["a", "b `x`"])
    assert (metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]) == (1, 2)
    expected = [(1, "x", 1), (1, "y", 5), (2, "y", 6), (None, "z", 7)]
    assert [tuple(row.values()) for row in rows(table, "a", "b `x`")] == expected
    # A null equals nothing.
    assert (
        table.upsert({"a": pa.array([None], pa.int64()), "b `x`": ["z"], "v": [8]}, ["a"])["num_target_rows_inserted"]
        == 1
    )


def test_one_key_may_be_a_string_and_the_source_a_query(tmp_path):
    write_deltalake(tmp_path / "t", {"id": [1, 2], "v": ["a", "b"]})
    write_deltalake(tmp_path / "s", {"id": [2, 3], "v": ["B", "C"]})
    table = DeltaTable(tmp_path / "t")
    table.upsert(f"SELECT * FROM delta.`{tmp_path / 's'}`", "id")
    assert [tuple(row.values()) for row in rows(table, "id")] == [(1, "a"), (2, "B"), (3, "C")]


def test_what_is_refused(tmp_path):
    write_deltalake(tmp_path, {"id": [1], "v": ["a"]})
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match="`keys` names no column"):
        table.upsert({"id": [1], "v": ["b"]}, keys=[])
    with pytest.raises(InvalidArgumentError, match="nothing"):
        table.upsert({"id": [1], "v": ["b"]}, keys=["nothing"])
    with pytest.raises(InvalidArgumentError, match="several"):
        table.upsert({"id": [1, 1], "v": ["b", "c"]}, keys=["id"])
    assert table.version() == 0
