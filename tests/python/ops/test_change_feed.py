"""The change data feed over versions whose files are partitioned, named and typed in different ways."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast._deltalake import table as dropin
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast.exceptions import SchemaMismatchError, StorageError
from deltafast.polars import scan_cdf

if TYPE_CHECKING:
    import pathlib

FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = FEED | {"delta.columnMapping.mode": "name"}
VECTORS = FEED | {"delta.enableDeletionVectors": "true"}
COLUMNS = ["id", "a", "b"]

Row = tuple[int, str | None, int | None]
Change = tuple[int, str, Row]


def table_of(rows: list[Row]) -> pa.Table:
    types = [pa.int64(), pa.string(), pa.int64()]
    return pa.table({name: pa.array([row[n] for row in rows], types[n]) for n, name in enumerate(COLUMNS)})


def changes_in(rows: Any) -> list[Change]:
    found = [
        (row["_commit_version"], row["_change_type"], tuple(row[name] for name in COLUMNS)) for row in rows.to_pylist()
    ]
    return sorted(found, key=repr)


def feeds(root: pathlib.Path, start: int, end: int) -> dict[str, list[Change]]:
    """The feed as each reader sees it."""
    streamed: list[Change] = []
    for batch in DeltaTable(root).stream_changes(change_data_feed=True, starting_version=start):
        streamed += [change for change in changes_in(batch.rows.read_all()) if change[0] <= end]
    return {
        "deltafast": changes_in(pa.table(DeltaTable(root).load_cdf(start, end))),
        "deltafast as deltalake": changes_in(pa.table(dropin.DeltaTable(root).load_cdf(start, end).read_all())),
        "polars": changes_in(scan_cdf(root, starting_version=start, ending_version=end).collect().to_arrow()),
        "a stream": sorted(streamed, key=repr),
        "the list of files": listed_changes(root, start, end),
    }


def listed_changes(root: pathlib.Path, start: int, end: int) -> list[Change]:
    """The feed from the list of its files, as Spark's own reader makes it of the list."""
    snapshot = DeltaTable(root)._handle.snapshot
    listed: Any = RecordBatchReader(snapshot.change_files(start, end)).read_all()
    out: list[Change] = []
    for file in listed.to_pylist():
        rows = pa.parquet.read_table(root / file["path"].replace("%20", " "), partitioning=None).to_pylist()
        bits = [word >> bit & 1 for word in file["excluded"] or [] for bit in range(64)]
        for n, row in enumerate(rows):
            if n < len(bits) and bits[n]:
                continue
            constants = {name: file["partition"][name] for name in file["partition_columns"]}
            kind = file["change_type"] or row["_change_type"]
            out.append((file["commit_version"], kind, tuple((row | constants)[name] for name in COLUMNS)))
    return sorted(out, key=repr)


@pytest.mark.parametrize("configuration", [FEED, VECTORS], ids=["copies", "vectors"])
@pytest.mark.parametrize(
    ("before", "after"),
    [(["a"], ["b"]), (["a"], []), ([], ["b"]), (["a"], ["a", "b"]), (["a", "b"], ["b"]), (["a", "b"], ["b", "a"])],
)
def test_files_of_each_version_are_read_with_their_own_partition_columns(
    before: list[str], after: list[str], configuration: dict[str, str], tmp_path: pathlib.Path
) -> None:
    old: list[Row] = [(1, "x", 10), (2, "y", 20), (3, None, 10), (4, "x", None)]
    new: list[Row] = [(5, "z", 30), (6, None, None), (7, "x", 10)]
    write_deltalake(tmp_path, table_of(old), partition_by=before or None, configuration=configuration)
    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    overwrite: Any = {"mode": "overwrite", "schema_mode": "overwrite"}
    write_deltalake(table, table_of(new), partition_by=after, **overwrite)
    table.update({"b": "31"}, predicate="id = 5")
    table.restore(1)
    expected: list[Change] = [(0, "insert", row) for row in old]
    left = [row for row in old if row[0] != 2]
    expected += [(1, "delete", old[1]), *((2, "delete", row) for row in left), *((2, "insert", row) for row in new)]
    updated: Row = (5, "z", 31)
    expected += [(3, "update_preimage", new[0]), (3, "update_postimage", updated)]
    expected += [*((4, "delete", row) for row in (updated, *new[1:])), *((4, "insert", row) for row in left)]
    for start, end in ((0, 4), (2, 2), (4, 4)):
        wanted = sorted((change for change in expected if start <= change[0] <= end), key=repr)
        found = feeds(tmp_path, start, end)
        assert found == dict.fromkeys(found, wanted), (start, end)


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_with_other_partition_columns_have_all_their_changes(
    seed: int, tmp_path: pathlib.Path
) -> None:
    draw = random.Random(seed)
    ids = iter(range(1000))

    def rows() -> list[Row]:
        values = ["x", "y z", None]
        return [(next(ids), draw.choice(values), draw.choice([1, 2, None])) for _ in range(draw.randint(1, 5))]

    def columns() -> list[str]:
        return draw.sample(["a", "b"], draw.randint(0, 2))

    live = rows()
    write_deltalake(tmp_path, table_of(live), partition_by=columns() or None, configuration=FEED)
    expected: list[Change] = [(0, "insert", row) for row in live]
    table = DeltaTable(tmp_path)
    for version in range(1, 8):
        added = rows()
        if draw.random() < 0.5:
            write_deltalake(table, table_of(added), mode="append")
        else:
            overwrite: Any = {"mode": "overwrite", "schema_mode": "overwrite"}
            write_deltalake(table, table_of(added), partition_by=columns(), **overwrite)
            expected += [(version, "delete", row) for row in live]
            live = []
        expected += [(version, "insert", row) for row in added]
        live = live + added
    for start in (0, draw.randint(1, 7)):
        wanted = sorted((change for change in expected if change[0] >= start), key=repr)
        found = feeds(tmp_path, start, 7)
        assert found == dict.fromkeys(found, wanted), start


def test_a_partition_column_that_was_renamed_keeps_its_values(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, table_of([(1, "x", 1), (2, None, 2)]), partition_by="a", configuration=MAPPED)
    table = DeltaTable(tmp_path)
    table.alter.rename_column("a", "c")
    write_deltalake(
        table,
        table_of([(3, "z", 3)]).rename_columns(["id", "c", "b"]),
        mode="append",
    )
    feed = pa.table(table.load_cdf(0)).sort_by("id").to_pylist()
    assert [(row["id"], row["c"], row["b"]) for row in feed] == [(1, "x", 1), (2, None, 2), (3, "z", 3)]


def test_a_column_that_the_first_version_drops_is_left_out_of_its_deletions(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, table_of([(1, "x", 1)]), partition_by="a", configuration=FEED)
    new = pa.table({"id": [2], "b": [2]})
    write_deltalake(tmp_path, new, mode="overwrite", schema_mode="overwrite", partition_by=["b"])
    feed = pa.table(DeltaTable(tmp_path).load_cdf(1)).sort_by("id").to_pylist()
    assert [(row["id"], row["b"], row["_change_type"]) for row in feed] == [(1, 1, "delete"), (2, 2, "insert")]


def test_a_partition_column_of_another_type_is_refused(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, table_of([(1, "x", 1)]), partition_by="a", configuration=FEED)
    new = pa.table({"id": [2], "a": [2]})
    write_deltalake(tmp_path, new, mode="overwrite", schema_mode="overwrite", partition_by=["id"])
    for start in (0, 1):
        with pytest.raises(SchemaMismatchError, match="type of the column `a` changed"):
            pa.table(DeltaTable(tmp_path).load_cdf(start))


def test_the_list_of_files_refuses_paths_that_a_read_refuses(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "t"
    write_deltalake(root, pa.table({"id": [1]}), configuration=FEED)
    commit = root / "_delta_log" / f"{1:020}.json"
    add = (
        '{"add":{"path":"%2e%2e/victim.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}'
    )
    commit.write_text(add)
    with pytest.raises(StorageError, match="climbs out"):
        RecordBatchReader(DeltaTable(root)._handle.snapshot.change_files(1, 1)).read_all()
