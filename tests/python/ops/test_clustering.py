"""Liquid clustering and REORG: which files are laid anew, what is said of the new ones, and that no row changes."""

from __future__ import annotations

import itertools
import json
import pathlib
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast._sql.ddl import create_statement
from deltafast.exceptions import CommitFailedError, InvalidArgumentError

SIDE = 64


def grid(seed: int = 0, start: int = 0, count: int = SIDE * SIDE) -> pa.Table:
    """Return every point of a square once, in no order, with text beside."""
    ids = list(range(start, start + count))
    random.Random(seed).shuffle(ids)
    return pa.table(
        {
            "id": ids,
            "x": [i % SIDE for i in ids],
            "y": [i // SIDE % SIDE for i in ids],
            "s": [None if i % 7 == 0 else f"text-{i % 100:03}" for i in ids],
        }
    )


def made(path: pathlib.Path, by: list[str], commits: int = 4, **options: Any) -> DeltaTable:
    """Write a clustered table in as many commits."""
    share = SIDE * SIDE // commits
    whole = grid()
    for n in range(commits):
        part = whole.slice(n * share, share)
        write_deltalake(str(path), part, mode="append", **({"cluster_by": by, **options} if n == 0 else {}))
    return DeltaTable(str(path))


def of(table: DeltaTable) -> pa.Table:
    """Return the rows of a fresh handle by `id`."""
    return DeltaTable(table.table_uri).to_pyarrow_table().sort_by("id")


def last(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the actions of the newest commit."""
    log = pathlib.Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{table.version():020}.json"
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def adds(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the files that the newest commit added."""
    return [action["add"] for action in last(table) if "add" in action]


def info(table: DeltaTable) -> dict[str, Any]:
    """Return the newest commit's `commitInfo`."""
    return next(action["commitInfo"] for action in last(table) if "commitInfo" in action)


def sizes(table: DeltaTable) -> list[int]:
    """Return the sizes of live files."""
    return table.get_add_actions().column("size_bytes").to_pylist()


def met(table: DeltaTable, predicate: str) -> int:
    """Count the files that a predicate does not exclude."""
    return len(table.file_uris(file_pruning_predicate=predicate))


def in_files(table: DeltaTable, count: int) -> int:
    """Return a target size that makes about so many files."""
    return sum(sizes(table)) // count


@pytest.mark.parametrize("by", [["x", "y"], ["x"], ["s", "x", "y"]], ids=["two", "one", "three"])
def test_rows_are_clustered_and_stay_what_they_are(tmp_path, by):
    table = made(tmp_path, by)
    before, size = of(table), in_files(table, 16)
    metrics = table.optimize(target_size=size)
    assert of(table).equals(before)
    assert metrics["numFilesRemoved"] == 4
    assert 8 <= metrics["numFilesAdded"] <= 16
    assert metrics["plannerStrategy"] == "clustering"
    stats = metrics["clusteringStats"]
    assert (stats["inputNumZCubes"], stats["numOutputZCubes"]) == (0, 1)
    assert stats["inputOtherFiles"] == stats["mergedFiles"]
    assert stats["mergedFiles"]["numFiles"] == 4
    said = info(table)
    assert said["operation"] == "OPTIMIZE"
    assert said["isolationLevel"] == "SnapshotIsolation"
    assert said["operationParameters"] == {
        "predicate": "[]",
        "zOrderBy": "[]",
        "clusterBy": json.dumps(by, separators=(",", ":")),
        "auto": False,
        "isFull": False,
    }
    new = adds(table)
    assert len({add["tags"]["ZCUBE_ID"] for add in new}) == 1
    assert {add["tags"]["ZCUBE_ZORDER_BY"] for add in new} == {json.dumps(by, separators=(",", ":"))}
    assert all(add["clusteringProvider"] == "liquid" and not add["dataChange"] for add in new)
    assert sum(json.loads(add["stats"])["numRecords"] for add in new) == SIDE * SIDE
    for column in by[-2:]:
        mean = sum(met(table, f"{column} = {n}") for n in range(SIDE)) / SIDE
        share = {1: 2, 2: 6, 3: 13}[len(by)]
        assert mean <= share, f"{column}: {mean} of {len(new)} files"


def test_one_column_is_sorted(tmp_path):
    table = made(tmp_path, ["id"])
    table.optimize.cluster(target_size=in_files(table, 8))
    spans = sorted(
        (json.loads(add["stats"])["minValues"]["id"], json.loads(add["stats"])["maxValues"]["id"])
        for add in adds(table)
    )
    assert len(spans) > 3
    assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))
    ids = pq.read_table(tmp_path / adds(table)[0]["path"])["id"].to_pylist()
    assert ids == sorted(ids)


def test_a_second_run_does_nothing(tmp_path):
    table = made(tmp_path, ["x", "y"])
    table.optimize()
    version = table.version()
    for metrics in (table.optimize(), table.optimize.cluster(), table.optimize.cluster(full=True)):
        assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (0, 0)
        assert metrics["clusteringStats"]["inputNumZCubes"] == 1
    assert table.version() == version


def test_new_files_join_small_groups_and_large_ones_stay(tmp_path):
    table = made(tmp_path, ["x", "y"])
    table.optimize.cluster(target_size=in_files(table, 4))
    old = set(table.file_uris())
    write_deltalake(table, grid(1, 10_000, 100), mode="append")
    # Everything is one small group: it is laid anew with the new file.
    metrics = table.optimize.cluster(target_size=in_files(table, 4))
    assert metrics["numFilesRemoved"] == len(old) + 1
    assert metrics["clusteringStats"]["inputNumZCubes"] == 1
    old = set(table.file_uris())
    write_deltalake(table, grid(2, 20_000, 100), mode="append")
    # The group counts as large: only the new file becomes one of its own.
    metrics = table.optimize.cluster(min_cube_size=1000)
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (1, 1)
    assert old < set(table.file_uris())
    assert len({add["tags"]["ZCUBE_ID"] for add in adds(table)}) == 1
    assert table.optimize.cluster(min_cube_size=1000)["numFilesRemoved"] == 0
    assert len(of(table)) == SIDE * SIDE + 200


def test_groups_have_a_size(tmp_path):
    table = made(tmp_path, ["x"])
    metrics = table.optimize.cluster(min_cube_size=0, cube_size=max(sizes(table)) * 2)
    assert metrics["clusteringStats"]["numOutputZCubes"] == 2
    assert len({add["tags"]["ZCUBE_ID"] for add in adds(table)}) == 2
    assert len(of(table)) == SIDE * SIDE


def test_commits_in_between(tmp_path):
    table = made(tmp_path, ["x"])
    before = of(table)
    table.optimize.cluster(min_cube_size=0, cube_size=1, min_commit_interval=0)
    assert table.version() == 3 + 4
    assert of(table).equals(before)


def test_other_columns_only_with_full(tmp_path):
    table = made(tmp_path, ["x"])
    before = of(table)
    table.optimize.cluster()
    table.alter.cluster_by(["y"])
    version = table.version()
    assert table.optimize.cluster()["numFilesRemoved"] == 0
    assert table.version() == version
    metrics = table.optimize.cluster(full=True)
    assert metrics["numFilesRemoved"] == 1
    assert info(table)["operationParameters"]["isFull"] is True
    assert info(table)["operationParameters"]["clusterBy"] == '["y"]'
    assert adds(table)[0]["tags"]["ZCUBE_ZORDER_BY"] == '["y"]'
    assert of(table).equals(before)
    assert table.optimize.cluster(full=True)["numFilesRemoved"] == 0


def test_files_of_other_providers_are_left_alone(tmp_path):
    table = made(tmp_path, ["x"], 2)
    log = tmp_path / "_delta_log" / "00000000000000000001.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["clusteringProvider"] = "somebody"
    log.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    for file in (tmp_path / "_delta_log").glob("*.crc"):
        file.unlink()
    table = DeltaTable(str(tmp_path))
    assert table.optimize.cluster()["numFilesRemoved"] == 1
    assert table.optimize.cluster(full=True)["numFilesRemoved"] >= 1
    assert {add["clusteringProvider"] for add in adds(table)} == {"liquid"}
    assert len(of(table)) == SIDE * SIDE


def test_nested_and_renamed_columns(tmp_path):
    data = pa.table({"s": [{"a": i % 10, "b.c": i} for i in range(1000)], "v": list(range(1000))})
    options = {"configuration": {"delta.columnMapping.mode": "name"}, "cluster_by": ["s.a", "v"]}
    write_deltalake(str(tmp_path), data, **options)
    table = DeltaTable(str(tmp_path))
    table.optimize(target_size=in_files(table, 5))
    assert {add["tags"]["ZCUBE_ZORDER_BY"] for add in adds(table)} == {'["s.a","v"]'}
    assert table.to_pyarrow_table().sort_by("v").equals(data)
    assert met(table, "s.a = 3") < len(table.files())
    # Renamed they are other columns, as in delta-spark.
    table.alter.rename_column("v", "w")
    assert table.optimize.cluster()["numFilesRemoved"] == 0
    assert table.optimize.cluster(full=True)["numFilesRemoved"] > 0
    assert {add["tags"]["ZCUBE_ZORDER_BY"] for add in adds(table)} == {'["s.a","w"]'}


def test_names_are_spelled_as_sql_needs_them(tmp_path):
    """As delta-spark spells them: it would take files with others for those of another clustering."""
    inner = pa.array([{"x y": 1}] * 3, pa.struct([("x y", pa.int32())]))
    data = pa.table({"id": [1, 2, 3], "p,q": ["a", "b", "c"], "1a": [4, 5, 6], "s": inner})
    names = ["id", "p,q", "1a", "s.x y"]
    spelled = ["id", "`p,q`", "`1a`", "s.`x y`"]
    properties = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, data, cluster_by=names, configuration=properties)
    table = DeltaTable(str(tmp_path))
    assert json.loads(info(table)["operationParameters"]["clusterBy"]) == spelled
    write_deltalake(table, data, mode="append")
    table.optimize()
    assert json.loads(info(table)["operationParameters"]["clusterBy"]) == spelled
    assert [json.loads(add["tags"]["ZCUBE_ZORDER_BY"]) for add in adds(table)] == [spelled]


def test_deleted_rows_go_and_ids_stay(tmp_path):
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    table = made(tmp_path, ["x", "y"], configuration=properties)
    table.delete("x < 8")
    columns = ["row_id", "row_commit_version"]

    def ids() -> dict[int, tuple[int, int]]:
        found = DeltaTable(str(tmp_path)).scan(metadata_columns=columns).read_all().to_pylist()
        return {row["id"]: (row["row_id"], row["row_commit_version"]) for row in found}

    before = ids()
    assert len(before) == SIDE * (SIDE - 8)
    table.optimize(target_size=in_files(table, 8))
    assert ids() == before
    assert not any("deletionVector" in add for add in adds(table))
    assert info(table)["tags"]["delta.rowTracking.preserved"] == "true"
    # A deletion vector leaves a file in its group.
    table.delete("x = 20 and y = 20")
    assert adds(table)[0]["clusteringProvider"] == "liquid"
    assert "ZCUBE_ID" in adds(table)[0]["tags"]


def test_the_feed_has_nothing_of_it(tmp_path):
    table = made(tmp_path, ["x"], configuration={"delta.enableChangeDataFeed": "true"})
    table.optimize()
    assert table.load_cdf(starting_version=table.version()).read_all().num_rows == 0


def test_an_append_goes_on_alongside_it_and_a_second_run_does_not(tmp_path):
    table = made(tmp_path, ["x"])
    stale, other = DeltaTable(str(tmp_path)), DeltaTable(str(tmp_path))
    write_deltalake(other, grid(3, 10_000, 10), mode="append")
    table.optimize()
    with pytest.raises(CommitFailedError):
        stale.optimize()
    assert len(of(table)) == SIDE * SIDE + 10
    assert len(list(tmp_path.glob("*.parquet"))) == 4 + 1 + 1, "nothing is left behind"


def test_it_fits_into_little_memory(tmp_path, monkeypatch):
    table = made(tmp_path, ["x", "y"])
    before = of(table)
    monkeypatch.setenv("DELTAFAST_MEMORY_LIMIT", "1")
    table.optimize(target_size=in_files(table, 8))
    assert of(table).equals(before)
    assert met(table, "x = 3") < len(table.files())


@pytest.mark.parametrize("sql", [None, "OPTIMIZE t ZORDER BY (x)"], ids=["method", "sql"])
def test_z_order_is_refused_with_its_reason(tmp_path, sql):
    table = made(tmp_path, ["x"])
    with pytest.raises(InvalidArgumentError, match="clustering columns determine the order of rows"):
        table.optimize.z_order(["x"]) if sql is None else deltafast.sql(sql, t=table)
    with pytest.raises(InvalidArgumentError, match="optimized as a whole"):
        table.optimize.compact("x = 1")
    assert table.version() == 3


def test_what_is_not_clustered_cannot_be(tmp_path):
    write_deltalake(str(tmp_path / "plain"), grid())
    plain = DeltaTable(str(tmp_path / "plain"))
    for full in (False, True):
        with pytest.raises(InvalidArgumentError, match=r"alter\.cluster_by"):
            plain.optimize.cluster(full=full)
    table = made(tmp_path / "no_more", ["x"])
    table.alter.cluster_by([])
    with pytest.raises(InvalidArgumentError, match=r"alter\.cluster_by"):
        table.optimize.cluster(full=True)
    with pytest.raises(InvalidArgumentError, match="Z-order"):
        table.optimize.z_order(["x"])
    # As in delta-spark its files are packed then.
    assert table.optimize()["numFilesAdded"] == 1
    assert info(table)["operationParameters"]["clusterBy"] == "[]"
    assert "isFull" not in info(table)["operationParameters"]
    assert "clusteringProvider" not in adds(table)[0]


def test_statements(tmp_path):
    table = made(tmp_path, ["x"])
    (row,) = deltafast.sql("OPTIMIZE t", t=table).read_all().to_pylist()
    assert row["metrics"]["clusteringStats"]["mergedFiles"]["numFiles"] == 4
    deltafast.sql("ALTER TABLE t CLUSTER BY (y)", t=table)
    (row,) = deltafast.sql("OPTIMIZE t FULL", t=table).read_all().to_pylist()
    assert row["metrics"]["numFilesRemoved"] == 1
    assert info(table)["operationParameters"]["isFull"] is True
    for text in ("OPTIMIZE t FULL WHERE x = 1", "OPTIMIZE t FULL ZORDER BY (x)"):
        with pytest.raises(InvalidArgumentError, match="neither WHERE nor ZORDER BY"):
            deltafast.sql(text, t=table)


class TestPurge:
    """REORG .. APPLY (PURGE)."""

    @staticmethod
    def columns(table: DeltaTable) -> set[str]:
        """Return the columns that live files have."""
        root = pathlib.Path(table.table_uri.removeprefix("file://"))
        return {name for path in table.files() for name in pq.read_schema(root / path).names}

    def test_deleted_rows_go(self, tmp_path):
        for n in range(3):
            write_deltalake(
                str(tmp_path),
                grid(n, n * 100, 100),
                mode="append",
                configuration={"delta.enableDeletionVectors": "true"},
            ) if n == 0 else write_deltalake(str(tmp_path), grid(n, n * 100, 100), mode="append")
        table = DeltaTable(str(tmp_path))
        table.delete("id = 7")
        before, untouched = of(table), set(table.files())
        metrics = table.optimize.purge()
        assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["totalConsideredFiles"]) == (1, 1, 3)
        assert of(table).equals(before)
        assert len(untouched & set(table.files())) == 2
        assert not any("deletionVector" in add for add in adds(table))
        said = info(table)
        assert (said["operation"], said["operationParameters"]) == ("REORG", {"predicate": "[]", "applyPurge": True})
        assert said["operationMetrics"]["numDeletionVectorsRemoved"] == "1"
        version = table.version()
        assert table.optimize.purge()["numFilesRemoved"] == 0
        assert table.version() == version

    def test_dropped_columns_go(self, tmp_path):
        data = pa.table(
            {
                "id": [1, 2],
                "gone": ["a", "b"],
                "s": [{"k": 1, "gone": 2}, None],
                "l": [[{"k": 1, "gone": 2}], []],
            }
        )
        properties = {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
        write_deltalake(str(tmp_path), data, configuration=properties)
        table = DeltaTable(str(tmp_path))
        assert table.optimize.purge()["numFilesRemoved"] == 0, "all columns are the table's"
        before = len(self.columns(table))
        for name in ("gone", "s.gone", "l.element.gone"):
            table.alter.drop_columns([name])
            assert table.optimize.purge()["numFilesRemoved"] == 1, name
            assert table.optimize.purge()["numFilesRemoved"] == 0, f"{name}: row ids are no dropped columns"
        assert len(self.columns(table)) == before - 1 + 2, "without the column, with the columns of row ids"
        assert table.to_pyarrow_table().sort_by("id").to_pylist() == [
            {"id": 1, "s": {"k": 1}, "l": [{"k": 1}]},
            {"id": 2, "s": None, "l": []},
        ]

    def test_partitions_are_chosen_by_statement(self, tmp_path):
        data = pa.table({"id": list(range(40)), "p": [i % 2 for i in range(40)]})
        write_deltalake(str(tmp_path), data, partition_by=["p"], configuration={"delta.enableDeletionVectors": "true"})
        table = DeltaTable(str(tmp_path))
        table.delete("id < 10")
        (row,) = deltafast.sql("REORG TABLE t WHERE p = 1 APPLY (PURGE)", t=table).read_all().to_pylist()
        assert row["metrics"]["numFilesRemoved"] == 1
        assert {add["partitionValues"]["p"] for add in adds(table)} == {"1"}
        with pytest.raises(InvalidArgumentError, match="non-partition column 'id'"):
            deltafast.sql("REORG TABLE t WHERE id = 1 APPLY (PURGE)", t=table)
        assert len(of(table)) == 30

    def test_a_clustered_file_stays_clustered(self, tmp_path):
        table = made(tmp_path, ["x", "y"], configuration={"delta.enableDeletionVectors": "true"})
        table.optimize(target_size=in_files(table, 4))
        group = adds(table)[0]["tags"]["ZCUBE_ID"]
        table.delete("x = 3 and y = 3")
        table.optimize.purge()
        (new,) = adds(table)
        assert (new["clusteringProvider"], new["tags"]["ZCUBE_ID"]) == ("liquid", group)
        assert table.optimize()["numFilesRemoved"] == 0


@pytest.mark.parametrize("columns", [{"x": pa.list_(pa.int64())}, {"other": pa.string()}, {"id": pa.int64()}])
def test_the_clustering_goes_with_the_columns(tmp_path, columns):
    """As delta-spark does: the domain stays and names no column."""
    table = made(tmp_path, ["x"])
    data = pa.schema(columns).empty_table()
    write_deltalake(table, data, mode="overwrite", schema_mode="overwrite")
    (domain,) = (action["domainMetadata"] for action in last(table) if "domainMetadata" in action)
    assert json.loads(domain["configuration"])["clusteringColumns"] == []
    assert not domain["removed"]
    assert table.detail()["clusteringColumns"] == []
    assert table.optimize()["numFilesRemoved"] == 0
    write_deltalake(table, data, mode="overwrite", schema_mode="overwrite")
    assert not [action for action in last(table) if "domainMetadata" in action], "nothing changes the second time"


def test_the_columns_of_an_overwrite_can_be_clustered_and_partitioned(tmp_path):
    table = made(tmp_path, ["x"])
    write_deltalake(
        table, pa.table({"a": [1], "b": ["p"]}), mode="overwrite", schema_mode="overwrite", cluster_by=["a"]
    )
    assert table.detail()["clusteringColumns"] == ["a"]
    write_deltalake(table, pa.table({"a": [2], "b": ["q"]}), mode="overwrite")
    assert table.detail()["clusteringColumns"] == ["a"], "rows alone do not change it"
    options = {"mode": "overwrite", "schema_mode": "overwrite", "partition_by": ["b"]}
    write_deltalake(table, pa.table({"a": [1], "b": ["p"]}), **options)
    assert table.detail()["clusteringColumns"] == []
    assert table.metadata().partition_columns == ["b"]
    with pytest.raises(InvalidArgumentError, match="a partitioned table cannot be clustered"):
        write_deltalake(table, pa.table({"a": [1], "b": ["p"]}), cluster_by=["a"], **options)


DOTTED = pa.table({"id": [1, 2], "a.b": [3, 4], ".": [5, 6], "s": [{"c.d": 7}, {"c.d": 8}]})


@pytest.mark.parametrize("way", ["write", "create", "alter", "statement", "alter by statement", "replace"])
@pytest.mark.parametrize(
    ("name", "path"),
    [("a.b", ["a.b"]), ("`a.b`", ["a.b"]), (".", ["."]), ("s.c.d", ["s", "c.d"]), ("s.`c.d`", ["s", "c.d"])],
)
def test_columns_with_dots_in_their_names(tmp_path, name, path, way):
    location = str(tmp_path)
    clustered = ".".join(f"`{part}`" for part in path)
    if way == "statement":
        columns = "id bigint, `a.b` bigint, `.` bigint, s struct<`c.d`: bigint>"
        deltafast.sql(f"CREATE TABLE delta.`{location}` ({columns}) USING delta CLUSTER BY ({clustered})")
    elif way == "create":
        DeltaTable.create(location, DOTTED.schema, cluster_by=[name])
    elif way == "write":
        write_deltalake(location, DOTTED, cluster_by=[name])
    else:
        write_deltalake(location, DOTTED, cluster_by=["id"])
        if way == "alter":
            DeltaTable(location).alter.cluster_by([name])
        elif way == "replace":
            write_deltalake(location, DOTTED, mode="overwrite", schema_mode="overwrite", cluster_by=[name])
        else:
            deltafast.sql(f"ALTER TABLE delta.`{location}` CLUSTER BY ({clustered})")
    write_deltalake(location, DOTTED, mode="append")
    table = DeltaTable(location)
    domain = next(
        action["domainMetadata"]
        for file in sorted((tmp_path / "_delta_log").glob("*.json"), reverse=True)
        for action in map(json.loads, file.read_text("utf-8").splitlines())
        if action.get("domainMetadata", {}).get("domain") == "delta.clustering"
    )
    assert json.loads(domain["configuration"])["clusteringColumns"] == [path]
    # What is shown names the column again.
    shown = table.detail()["clusteringColumns"]
    table.alter.cluster_by(shown)
    assert table.detail()["clusteringColumns"] == shown
    assert f"CLUSTER BY ({clustered})" in create_statement(table)
    table.optimize.cluster(full=True)
    assert [json.loads(add["tags"]["ZCUBE_ZORDER_BY"])[0].replace("`", "") for add in adds(table)] == [".".join(path)]


def test_a_name_that_two_columns_have_is_refused(tmp_path):
    data = pa.table({"a.b": [1, 2], "a": [{"b": 3}, {"b": 4}]})
    with pytest.raises(InvalidArgumentError, match=r"write one of `a.b`, a.b|write one of a.b, `a.b`"):
        write_deltalake(tmp_path, data, cluster_by=["a.b"])
    write_deltalake(tmp_path, data, cluster_by=["`a`.`b`"])
    table = DeltaTable(tmp_path)
    assert table.detail()["clusteringColumns"] == ["a.b"]
    with pytest.raises(InvalidArgumentError, match="the name of several columns"):
        table.alter.set_column_metadata("a.b", {"comment": "text"})
    table.alter.set_column_metadata("`a.b`", {"comment": "text"})
    assert [field.metadata.get("comment") for field in table.schema().fields] == ["text", None]
