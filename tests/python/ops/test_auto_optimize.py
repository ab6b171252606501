"""Auto compaction and optimized writes: what the properties make of small files, and that they can fail no commit."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltafast import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import pathlib

COMPACT = {"delta.autoOptimize.autoCompact": "true"}


def rows(start: int, count: int = 4, parts: int = 1) -> pa.Table:
    """Return rows of some partitions."""
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "s": [f"s{i}" for i in ids], "p": [i % parts for i in ids]})


def made(path: pathlib.Path, files: int, **options: Any) -> DeltaTable:
    """Write a table of that many files without compaction."""
    configuration = options.pop("configuration", {})
    write_deltalake(str(path), rows(0), **options)
    table = DeltaTable(str(path))
    for n in range(1, files):
        write_deltalake(table, rows(n * 4), mode="append")
    table.alter.set_table_properties(configuration)
    return table


def of(path: pathlib.Path) -> list[int]:
    """Return all `id`s in order."""
    return sorted(DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist())


def operations(path: pathlib.Path) -> list[str]:
    """Return what was done, newest first."""
    return [entry["operation"] for entry in DeltaTable(str(path)).history()]


@pytest.mark.parametrize(
    "configuration",
    [
        COMPACT,
        {"delta.autoOptimize.autoCompact": "auto"},
        {"delta.autoOptimize.autoCompact": "legacy"},
        {"delta.autoOptimize": "true"},
    ],
    ids=["true", "auto", "legacy", "deprecated"],
)
def test_fifty_small_files_become_one(tmp_path, configuration):
    table = made(tmp_path, 48, configuration=configuration)
    write_deltalake(table, rows(1000), mode="append")
    assert operations(tmp_path)[0] == "WRITE", "49 are too few"
    properties = CommitProperties(custom_metadata={"who": "me"})
    write_deltalake(table, rows(2000), mode="append", commit_properties=properties)
    assert operations(tmp_path)[:2] == ["OPTIMIZE", "WRITE"]
    newest, write = DeltaTable(str(tmp_path)).history(2)
    assert newest["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "true"}
    assert "who" not in newest
    assert write["who"] == "me"
    assert len(DeltaTable(str(tmp_path)).files()) == 1
    assert of(tmp_path) == [*range(48 * 4), *range(1000, 1004), *range(2000, 2004)]
    assert table.version() == DeltaTable(str(tmp_path)).version(), "the handle goes along"
    write_deltalake(table, rows(3000), mode="append")
    assert operations(tmp_path)[0] == "WRITE"


def test_off_is_off(tmp_path):
    table = made(tmp_path, 50, configuration={"delta.autoOptimize.autoCompact": "false"})
    write_deltalake(table, rows(1000), mode="append")
    assert len(table.files()) == 51
    assert operations(tmp_path)[0] == "WRITE"


def test_the_call_overrides_the_property(tmp_path):
    table = made(tmp_path, 6, configuration=COMPACT)
    hooks = PostCommitHookProperties(auto_compact=False, auto_compact_min_files=2)
    write_deltalake(table, rows(1000), mode="append", post_commithook_properties=hooks)
    assert len(table.files()) == 7
    table.alter.set_table_properties({"delta.autoOptimize.autoCompact": "false"})
    hooks = PostCommitHookProperties(auto_compact=True, auto_compact_min_files=9)
    write_deltalake(table, rows(2000), mode="append", post_commithook_properties=hooks)
    assert len(table.files()) == 8
    hooks = PostCommitHookProperties(auto_compact=True, auto_compact_min_files=8)
    table.delete("id = 1000", post_commithook_properties=hooks)
    assert len(table.files()) == 1
    assert of(tmp_path) == [*range(24), *range(1001, 1004), *range(2000, 2004)]


def test_the_call_determines_the_sizes(tmp_path):
    hooks = PostCommitHookProperties(auto_compact=True, auto_compact_min_files=2, auto_compact_max_file_size=100)
    table = made(tmp_path, 3)
    write_deltalake(table, rows(1000), mode="append", post_commithook_properties=hooks)
    assert len(table.files()) == 4, "no file is smaller than half of the size"
    hooks.auto_compact_min_file_size = 1 << 20
    write_deltalake(table, rows(2000), mode="append", post_commithook_properties=hooks)
    assert len(table.files()) == 5, "each file is as large as a new one"
    hooks.auto_compact_max_file_size = 1 << 20
    write_deltalake(table, rows(3000), mode="append", post_commithook_properties=hooks)
    assert len(table.files()) == 1


@pytest.mark.parametrize("name", ["min_files", "max_file_size", "min_file_size"])
def test_limits_are_above_0(tmp_path, name):
    table = made(tmp_path, 1)
    hooks = PostCommitHookProperties(**{f"auto_compact_{name}": 0})
    with pytest.raises(InvalidArgumentError, match=f"auto_compact_{name} must be above 0"):
        write_deltalake(table, rows(1), mode="append", post_commithook_properties=hooks)
    assert table.version() == 0


def test_only_partitions_that_were_written_to(tmp_path):
    write_deltalake(str(tmp_path), rows(0, 4, 2), partition_by=["p"])
    table = DeltaTable(str(tmp_path))
    for n in range(1, 55):
        write_deltalake(table, rows(n * 4, 4, 2), mode="append")
    table.alter.set_table_properties(COMPACT)
    write_deltalake(table, pa.table({"id": [1000], "s": ["it's"], "p": [1]}), mode="append")
    (newest,) = DeltaTable(str(tmp_path)).history(1)
    assert newest["operation"] == "OPTIMIZE"
    assert newest["operationParameters"]["predicate"] == json.dumps(["(p <=> '1')"], separators=(",", ":"))
    assert [len(table.files([("p", "=", str(p))])) for p in (0, 1)] == [55, 1]
    assert of(tmp_path) == [*range(55 * 4), 1000]


def test_deletes_updates_and_merges_are_followed(tmp_path):
    table = made(tmp_path, 60, configuration=COMPACT)
    table.delete("id = 1")
    assert operations(tmp_path)[:2] == ["OPTIMIZE", "DELETE"]
    assert len(DeltaTable(str(tmp_path)).files()) == 1
    table = made(tmp_path / "update", 60, configuration=COMPACT)
    table.update({"s": "'x'"}, predicate="id = 1")
    assert operations(tmp_path / "update")[:2] == ["OPTIMIZE", "UPDATE"]
    table = made(tmp_path / "merge", 60, configuration=COMPACT)
    table.merge(rows(1, 2), "t.id = s.id", "s", "t").when_matched_update_all().execute()
    assert operations(tmp_path / "merge")[:2] == ["OPTIMIZE", "MERGE"]
    assert of(tmp_path / "merge") == list(range(240))


def test_a_clustered_table_is_clustered(tmp_path):
    table = made(tmp_path, 55, configuration=COMPACT, cluster_by=["id"])
    write_deltalake(table, rows(1000), mode="append")
    (newest,) = DeltaTable(str(tmp_path)).history(1)
    assert (newest["operation"], newest["operationParameters"]["clusterBy"]) == ("OPTIMIZE", '["id"]')
    assert newest["operationParameters"]["auto"] == "true"
    assert table.get_add_actions().num_rows == 1


def test_what_fails_is_a_warning(tmp_path):
    table = made(tmp_path, 55, configuration=COMPACT)
    # A file that is gone: the write does not need it, the packing does.
    (tmp_path / table.files()[0]).unlink()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        write_deltalake(table, rows(1000), mode="append")
    assert any("is committed, but its small files could not be packed" in str(warning.message) for warning in said)
    assert operations(tmp_path)[0] == "WRITE"
    assert len(list(tmp_path.glob("*.parquet"))) == 55, "nothing is left behind"


def test_an_optimized_write_makes_one_file_of_each_partition(tmp_path):
    count = 400
    data = rows(0, count * 8, count)
    sizes = {}
    for value in ("false", "true"):
        path = tmp_path / value
        write_deltalake(str(path), data, partition_by=["p"], configuration={"delta.autoOptimize.optimizeWrite": value})
        # Rows of more partitions than files may be open at a time come in turn, more than once.
        for_each = pa.RecordBatchReader.from_batches(
            data.schema, [batch for n in range(3) for batch in data.slice(n, count * 7).to_batches()]
        )
        before = len(DeltaTable(str(path)).files())
        write_deltalake(str(path), for_each, mode="append")
        sizes[value] = len(DeltaTable(str(path)).files()) - before
        found = DeltaTable(str(path)).to_pyarrow_table()
        assert found.num_rows == count * 8 + 3 * count * 7
        assert all(row["id"] % count == row["p"] for row in found.to_pylist())
    assert sizes["true"] == count
