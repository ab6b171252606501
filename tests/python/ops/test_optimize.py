"""OPTIMIZE: rows stay what they are, files become fewer; read back by `deltalake`."""

from __future__ import annotations

import json
import math
import os
import pathlib
import subprocess
import sys
from datetime import timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltafast import DeltaTable, Field, WriterProperties, write_deltalake
from deltafast.exceptions import CommitFailedError, InvalidArgumentError
from wide import chunks, large, whole

deltalake = pytest.importorskip("deltalake")

VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKED = {"delta.enableRowTracking": "true"}


def rows(start: int, count: int = 10) -> pa.Table:
    """Return rows of two partitions."""
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "s": [f"s{i}" if i % 3 else None for i in ids], "p": [i % 2 for i in ids]})


def made(path: pathlib.Path, files: int = 5, **options: Any) -> DeltaTable:
    """Write a table in as many commits."""
    for n in range(files):
        write_deltalake(str(path), rows(n * 10), mode="append", **(options if n == 0 else {}))
    return DeltaTable(str(path))


def of(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the rows of a fresh handle by `id`."""
    return DeltaTable(table.table_uri).to_pyarrow_table().sort_by("id").to_pylist()


def theirs(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the rows as `deltalake` reads them."""
    read = pa.table(deltalake.DeltaTable(table.table_uri).scan()).select(["id", "s", "p"])
    return sorted(read.to_pylist(), key=lambda row: row["id"])


def last(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the actions of the newest commit."""
    log = pathlib.Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{table.version():020}.json"
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["plain", "partitioned"])
def test_small_files_become_few(tmp_path, partition_by):
    table = made(tmp_path, partition_by=partition_by)
    before, parts = of(table), 2 if partition_by else 1
    metrics = table.optimize.compact()
    assert of(table) == before == theirs(table)
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (parts, 5 * parts)
    assert (metrics["partitionsOptimized"], metrics["totalConsideredFiles"], metrics["totalFilesSkipped"]) == (
        parts,
        5 * parts,
        0,
    )
    assert json.loads(metrics["filesAdded"])["totalFiles"] == parts
    assert json.loads(metrics["filesRemoved"])["totalSize"] > 0
    assert len(table.file_uris()) == parts
    actions = last(table)
    assert all(a[kind]["dataChange"] is False for a in actions for kind in ("add", "remove") if kind in a)
    info = next(a["commitInfo"] for a in actions if "commitInfo" in a)
    assert (info["operation"], info["isolationLevel"]) == ("OPTIMIZE", "SnapshotIsolation")
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    stats = [json.loads(a["add"]["stats"]) for a in actions if "add" in a]
    assert sum(s["numRecords"] for s in stats) == 50
    assert (min(s["minValues"]["id"] for s in stats), max(s["maxValues"]["id"] for s in stats)) == (0, 49)
    version = table.version()
    assert table.optimize.compact()["numFilesRemoved"] == 0
    assert table.version() == version, "nothing to do makes no version"


def test_rows_keep_their_order(tmp_path):
    table = made(tmp_path)
    table.optimize()
    assert table.to_pyarrow_table()["id"].to_pylist() == list(range(50))


def test_chosen_partitions_alone_are_packed(tmp_path):
    table = made(tmp_path, partition_by=["p"])
    metrics = table.optimize.compact(partition_filters=[("p", "=", "1")])
    assert (metrics["numFilesRemoved"], metrics["totalConsideredFiles"], len(table.file_uris())) == (5, 5, 6)
    assert table.history(1)[0]["operationParameters"]["predicate"] != "[]"
    with pytest.raises(InvalidArgumentError, match="non-partition column 'id'"):
        table.optimize.compact(partition_filters=[("id", ">", 3)])


def test_sizes_of_files_are_numbers_of_64_bits(tmp_path):
    table = made(tmp_path)
    for run in (table.optimize.compact, lambda target_size: table.optimize.z_order(["id"], target_size=target_size)):
        with pytest.raises(InvalidArgumentError, match="target_file_size must be between 1 and 9223372036854775807"):
            run(target_size=2**63)


def test_large_files_stay(tmp_path):
    table = made(tmp_path)
    size = max(table.get_add_actions().column("size_bytes").to_pylist())
    assert table.optimize.compact(target_size=size)["numFilesRemoved"] in (0, 2)
    before = table.file_uris()
    assert table.optimize.compact(target_size=1)["numFilesRemoved"] == 0
    assert table.file_uris() == before
    metrics = table.optimize.compact(target_size=size * 2)
    assert metrics["maxBinSpanFiles"] == 2
    assert len(of(table)) == 50


def test_deleted_rows_are_left_behind(tmp_path):
    table = made(tmp_path, 1, configuration=VECTORS)
    table.delete("id = 3")
    metrics = table.optimize.compact()
    assert metrics["numFilesRemoved"] == 1, "a tenth of the rows is deleted"
    assert len(of(table)) == 9 == len(theirs(table))
    assert not any("deletionVector" in a["add"] for a in last(table) if "add" in a)
    assert table.history(1)[0]["operationMetrics"]["numDeletionVectorsRemoved"] == "1"


def test_rows_keep_their_ids(tmp_path):
    table = made(tmp_path, configuration=TRACKED)
    columns = ["row_id", "row_commit_version"]

    def read() -> dict[int, tuple[int, int]]:
        found = DeltaTable(str(tmp_path)).scan(metadata_columns=columns).read_all().to_pylist()
        return {row["id"]: (row["row_id"], row["row_commit_version"]) for row in found}

    before = read()
    table.optimize.compact()
    assert read() == before
    info = next(a["commitInfo"] for a in last(table) if "commitInfo" in a)
    assert info["tags"]["delta.rowTracking.preserved"] == "true"


def test_the_feed_has_nothing_of_it(tmp_path):
    table = made(tmp_path, configuration={"delta.enableChangeDataFeed": "true"})
    table.optimize.compact()
    assert table.load_cdf(starting_version=table.version()).read_all().num_rows == 0


def test_an_append_goes_on_alongside_it_and_a_second_run_does_not(tmp_path):
    table = made(tmp_path)
    stale, other = DeltaTable(str(tmp_path)), DeltaTable(str(tmp_path))
    write_deltalake(other, rows(100), mode="append")
    table.optimize.compact()
    files = {path.name for path in tmp_path.glob("*.parquet")}
    with pytest.raises(CommitFailedError):
        stale.optimize.compact()
    assert {path.name for path in tmp_path.glob("*.parquet")} == files, "what was written is deleted again"
    write_deltalake(other, rows(200), mode="append")
    assert len(of(table)) == 70 == len(theirs(table))


def test_a_delete_meanwhile_ends_it(tmp_path):
    table = made(tmp_path)
    stale = DeltaTable(str(tmp_path))
    table.delete("id = 3")
    with pytest.raises(CommitFailedError):
        stale.optimize.compact()
    assert len(of(table)) == 49


def test_what_is_done_is_committed_in_between(tmp_path):
    table = made(tmp_path, partition_by=["p"])
    before = of(table)
    table.optimize.compact(min_commit_interval=timedelta(0))
    assert table.version() == 6, "one commit a partition"
    assert of(table) == before == theirs(table)


def test_options_reach_the_files_and_the_commit(tmp_path):

    table, seen = made(tmp_path), []
    table.optimize.compact(
        writer_properties=WriterProperties(compression="GZIP"),
        commit_properties=deltalake_like(),
        progress=lambda done, total: seen.append((done, total)),
    )
    (path,) = table.file_uris()
    assert pq.ParquetFile(path.removeprefix("file://")).metadata.row_group(0).column(0).compression == "GZIP"
    assert table.history(1)[0]["userName"] == "me"
    assert seen[-1] == (1, 1)


def deltalake_like() -> Any:
    """Return properties of a commit."""
    from deltafast import CommitProperties

    return CommitProperties(custom_metadata={"userName": "me"})


#: Rows that make a row group of 5 MB; from 4 MiB on it is copied.
ENOUGH = 150_000


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["plain", "partitioned"])
def test_large_row_groups_are_copied_as_they_are(tmp_path, partition_by):
    path = str(tmp_path / "t")
    codec = WriterProperties(compression="SNAPPY")
    for n in range(4):
        write_deltalake(path, large(n, ENOUGH), mode="append", partition_by=partition_by, writer_properties=codec)
    write_deltalake(path, large(901, 3000), mode="append")
    table = DeltaTable(path)
    before = whole(table.to_pyarrow_table())
    groups = {chunk.column(2).total_compressed_size for chunk in chunks(table)}
    stats = {key: table.get_add_actions(flatten=True)[key] for key in ("min.id", "max.id")}
    assert table.optimize.compact()["numFilesRemoved"] == 5
    assert len(table.file_uris()) == (2 if partition_by else 1)
    assert whole(DeltaTable(path).to_pyarrow_table()).equals(before)
    after = chunks(table)
    assert {chunk.column(2).total_compressed_size for chunk in after} == groups, "bytes of the chunks"
    assert sorted(chunk.column(0).compression for chunk in after) == ["SNAPPY"] * 4 + ["ZSTD"], "the small file is not"
    assert all(chunk.column(0).has_offset_index and chunk.column(0).has_column_index for chunk in after)
    actions = pa.table(table.get_add_actions(flatten=True))
    assert sum(actions["num_records"].to_pylist()) == before.num_rows
    assert min(actions["min.id"].to_pylist()) == min(stats["min.id"].to_pylist())
    assert max(actions["max.id"].to_pylist()) == max(stats["max.id"].to_pylist())
    assert sum(actions["null_count.value"].to_pylist()) == before["value"].null_count
    assert any(math.isnan(value) for value in actions["max.value"].to_pylist())
    theirs = pa.table(deltalake.DeltaTable(path).scan()).select(before.column_names)
    assert whole(theirs.cast(table.to_pyarrow_table().schema)).equals(before)
    # By way of the copied indexes.
    first = ENOUGH * 3 // 2
    files = f"read_parquet('{path}/**/part-*.parquet')"
    query = f"SELECT count(*), sum(id) FROM {files} WHERE id BETWEEN {first} AND {first + 9}"
    found = sorted(duckdb.sql(query).fetchall())
    assert found == [(20, 2 * sum(range(first, first + 10)))], "in the file that ended and in the new one"
    for predicate, count in ((f"id = {first}", 1), ("id < 10", 10), ("noise < 0", 0)):
        assert table.to_pyarrow_table(filters=predicate).num_rows == count


@pytest.mark.slow
def test_what_cannot_be_copied_is_rewritten(tmp_path):
    def compacted(name: str, change: Any = None, **options: Any) -> tuple[DeltaTable, set[str]]:
        path = str(tmp_path / name)
        for n in range(2):
            write_deltalake(
                path,
                large(n, ENOUGH),
                mode="append",
                writer_properties=WriterProperties(compression="SNAPPY"),
                **(options if n == 0 else {}),
            )
        if change is not None:
            change(DeltaTable(path))
        table = DeltaTable(path)
        before = whole(table.to_pyarrow_table())
        table.optimize.compact()
        assert len(table.file_uris()) == 1
        assert whole(DeltaTable(path).to_pyarrow_table()).equals(before)
        return table, {chunk.column(0).compression for chunk in chunks(table)}

    assert compacted("as it is")[1] == {"SNAPPY"}
    assert compacted("codec", configuration={"delta.parquet.compression.codec": "zstd"})[1] == {"ZSTD"}
    assert compacted("vectors", lambda table: table.delete("id = 5"), configuration=VECTORS)[1] == {"SNAPPY", "ZSTD"}
    assert compacted("tracked", configuration=TRACKED)[1] == {"ZSTD"}
    mapped = {"delta.columnMapping.mode": "name"}
    assert compacted("dropped", lambda table: table.alter.drop_columns(["noise"]), configuration=mapped)[1] == {"ZSTD"}
    added = [Field("more", "string")]
    assert compacted("added", lambda table: table.alter.add_columns(added))[1] == {"ZSTD"}
    asked = compacted("asked")[0]
    write_deltalake(asked, large(3, ENOUGH), mode="append")
    asked.optimize.compact(writer_properties=WriterProperties(compression="GZIP"))
    assert {chunk.column(0).compression for chunk in chunks(asked)} == {"GZIP"}


def test_bounds_that_a_file_lacks_are_not_made_up(tmp_path):
    path = str(tmp_path / "t")
    for n in range(2):
        write_deltalake(path, large(n), mode="append")
        if n == 0:
            DeltaTable(path).alter.set_table_properties({"delta.dataSkippingStatsColumns": "id"})
    DeltaTable(path).alter.set_table_properties({"delta.dataSkippingStatsColumns": "id,noise"})
    table = DeltaTable(path)
    table.optimize.compact()
    stats = next(json.loads(a["add"]["stats"]) for a in last(table) if "add" in a)
    assert (stats["minValues"], stats["maxValues"]) == ({"id": 0}, {"id": 599_999})
    assert stats["nullCount"] == {"id": 0}
    assert table.to_pyarrow_table(filters="noise >= 0").num_rows == 600_000


@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["plain", "partitioned"])
@pytest.mark.parametrize("configuration", [{}, VECTORS, TRACKED], ids=["copies", "vectors", "tracked"])
def test_rows_are_laid_along_a_curve(tmp_path, partition_by, configuration):
    path = str(tmp_path / "t")
    chance = np.random.default_rng(5)
    for n in range(4):
        ids = np.arange(n * 5000, (n + 1) * 5000)
        columns = {
            "id": ids,
            "s": pa.array([f"user-{x:05}" if x % 50 else None for x in chance.integers(0, 10**5, 5000)]),
            "p": ids % 2,
            "deep": pa.array([{"a": float(x)} for x in chance.standard_normal(5000)]),
        }
        write_deltalake(path, pa.table(columns), mode="append", partition_by=partition_by, configuration=configuration)
    table = DeltaTable(path)
    table.delete("id % 1000 = 3")
    metadata = ["row_id", "row_commit_version"] if configuration == TRACKED else []
    before = pa.table(table.scan(metadata_columns=metadata)).sort_by("id")
    metrics = table.optimize.z_order(["S", "deep.a"], target_size=20_000)
    assert pa.table(table.scan(metadata_columns=metadata)).sort_by("id").equals(before)
    assert (metrics["plannerStrategy"], metrics["preserveInsertionOrder"]) == ("zOrder", False)
    assert metrics["numFilesAdded"] > 4
    info = table.history(1)[0]
    assert json.loads(info["operationParameters"]["zOrderBy"]) == ["S", "deep.a"]
    assert all(a["add"]["dataChange"] is False for a in last(table) if "add" in a)
    actions = pa.table(table.get_add_actions(flatten=True))
    for low, high in (("min.s", "max.s"), ("min.deep.a", "max.deep.a")):
        spans = list(zip(actions[low].to_pylist(), actions[high].to_pylist(), strict=True))
        values = sorted(low for low, _ in spans)
        middle = values[len(values) // 2]
        hit = sum(low <= middle <= high for low, high in spans)
        assert hit < len(spans) * 0.75, f"a point of {low} is in {hit} of {len(spans)} files"
    assert (
        deltalake.DeltaTable(path).to_pyarrow_dataset().count_rows() == before.num_rows if not configuration else True
    )


@pytest.mark.proof
@pytest.mark.slow
def test_more_rows_than_memory_are_laid_along_a_curve(tmp_path):
    path = str(tmp_path / "t")
    for n in range(3):
        write_deltalake(path, large(n), mode="append")
    before = whole(DeltaTable(path).to_pyarrow_table())
    run = "deltafast.DeltaTable(sys.argv[1]).optimize.z_order(['noise', 'at'], target_size=4 << 20)"
    code = f"import sys, deltafast; {run}"
    limited = {**os.environ, "DELTAFAST_MEMORY_LIMIT": "32MiB", "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code, path], env=limited, check=True)
    table = DeltaTable(path)
    assert whole(table.to_pyarrow_table()).equals(before)
    spans = pa.table(table.get_add_actions(flatten=True)).select(["min.noise", "max.noise"]).to_pylist()
    assert len(spans) > 4
    assert sum(span["min.noise"] <= 2**61 <= span["max.noise"] for span in spans) < len(spans)
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "t"] == [], "nothing stays on disk"


def test_wrong_columns_of_a_curve_are_refused(tmp_path):
    table = made(tmp_path, partition_by=["p"])
    version = table.version()
    for columns, words in (
        ([], "at least one"),
        (["nope"], "no column"),
        (["p"], "partition column"),
        (["id", "ID"], "twice"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            table.optimize.z_order(columns)
    assert table.version() == version
    write_deltalake(str(tmp_path / "list"), pa.table({"l": [[1]]}))
    with pytest.raises(InvalidArgumentError, match="no order"):
        DeltaTable(str(tmp_path / "list")).optimize.z_order("l")
    assert table.optimize.z_order(["id"], min_commit_interval=timedelta(0))["partitionsOptimized"] == 2
    assert table.version() == version + 2
