"""Clustering, Z-order and REORG beside delta-spark's: the same files taken, the same said, no more files read."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake

if TYPE_CHECKING:
    import pathlib

    from .reference import Reference

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROWS = 40_000
FILES = 16
#: What both are asked, by clustering columns.
COLUMNS = {"two": ["x", "y"], "one": ["x"], "three": ["s", "x", "y"]}


def rows(seed: int = 0, count: int = ROWS) -> pa.Table:
    """Return points of a square, evenly and thick in a corner, in no order."""
    dice = random.Random(seed)
    x = [dice.randrange(1000) if dice.random() < 0.7 else dice.randrange(50) for _ in range(count)]
    y = [dice.randrange(1000) if dice.random() < 0.7 else dice.randrange(50) for _ in range(count)]
    return pa.table(
        {
            "id": pa.array(range(seed * ROWS, seed * ROWS + count), pa.int64()),
            "x": pa.array(x, pa.int64()),
            "y": pa.array([None if n % 997 == 0 else v for n, v in enumerate(y)], pa.int64()),
            "s": [f"customer-{dice.randrange(300):05}" for _ in range(count)],
        }
    )


def predicates(by: list[str]) -> list[str]:
    """Return point and range filters on each of the columns, and on all of them."""
    filters: dict[str, list[str]] = {}
    for column in by:
        out = filters.setdefault(column, [])
        for n in range(0, 950, 1 if len(by) == 1 else 10):
            if column == "s":
                out.append(f"s = 'customer-{n % 300:05}'")
                out.append(f"s >= 'customer-{n % 250:05}' and s < 'customer-{n % 250 + 20:05}'")
            else:
                out += [f"{column} = {n}", f"{column} between {n} and {n + 50}"]
    dice = random.Random(7)
    for out in filters.values():
        dice.shuffle(out)
    together = [" and ".join(some) for some in zip(*filters.values(), strict=True)]
    return [predicate for out in filters.values() for predicate in out] + (together if len(by) > 1 else [])


def met(folder: pathlib.Path, by: list[str]) -> int:
    """Count the files that all the filters together do not exclude."""
    table = DeltaTable(str(folder))
    return sum(len(table.file_uris(file_pruning_predicate=predicate)) for predicate in predicates(by))


def said(folder: pathlib.Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the newest commit's `commitInfo` and the files that it added."""
    version = DeltaTable(str(folder)).version()
    lines = (folder / f"_delta_log/{version:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    return info, [action["add"] for action in actions if "add" in action]


def form(folder: pathlib.Path) -> dict[str, Any]:
    """Return what the newest commit says but for what differs from run to run."""
    info, adds = said(folder)
    tags = {json.dumps(add.get("tags", {}) | {"ZCUBE_ID": bool(add.get("tags"))}, sort_keys=True) for add in adds}
    parameters = {key: json.dumps(value) for key, value in info["operationParameters"].items()}
    return {
        "operation": info["operation"],
        "parameters": parameters,
        "isolation": info["isolationLevel"],
        "tags": tags,
        "cubes": len({add.get("tags", {}).get("ZCUBE_ID") for add in adds}),
        "providers": {add.get("clusteringProvider") for add in adds},
        "data_change": {add["dataChange"] for add in adds},
        "rows": sum(json.loads(add["stats"])["numRecords"] for add in adds),
    }


def ids(folder: pathlib.Path) -> list[int]:
    """Return all `id`s in order."""
    return sorted(DeltaTable(str(folder)).to_pyarrow_table()["id"].to_pylist())


def optimized(spark: Reference, ours: pathlib.Path, theirs: pathlib.Path, what: str = "") -> dict[str, Any]:
    """Run OPTIMIZE on both tables; what they answer and say must be the same. Gives our figures."""
    sizes = [
        sum(DeltaTable(str(folder)).get_add_actions()["size_bytes"].to_pylist()) // FILES for folder in (ours, theirs)
    ]
    with spark.configured({"spark.databricks.delta.optimize.maxFileSize": str(sizes[1])}):
        (answer,) = spark.answer(f"OPTIMIZE delta.`{theirs}` {what}").to_pylist()
    figures = DeltaTable(str(ours)).optimize.cluster(full=what == "FULL", target_size=sizes[0])
    found, expected = figures["clusteringStats"], answer["metrics"]["clusteringStats"]
    for key in ("inputNumZCubes", "numOutputZCubes"):
        assert found[key] == expected[key], key
    for key in ("inputZCubeFiles", "inputOtherFiles", "mergedFiles"):
        assert found[key]["numFiles"] == expected[key]["numFiles"], key
    for key in ("numFilesRemoved", "totalConsideredFiles", "totalFilesSkipped", "partitionsOptimized"):
        assert figures[key] == answer["metrics"][key], key
    assert form(ours) == form(theirs)
    return figures


@pytest.mark.parametrize("case", list(COLUMNS))
def test_clustering_is_as_good_and_says_the_same(spark: Reference, tmp_path: pathlib.Path, case: str) -> None:
    """Both cluster the same files; both go on where the other ended."""
    by = COLUMNS[case]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for n in range(4):
        part = rows().slice(n * ROWS // 4, ROWS // 4)
        write_deltalake(ours, part, mode="append", **({"cluster_by": by} if n == 0 else {}))
    shutil.copytree(ours, theirs)
    before, all_ids = met(ours, by), ids(ours)
    figures = optimized(spark, ours, theirs)
    assert ids(ours) == ids(theirs) == all_ids
    files = [len(DeltaTable(str(folder)).files()) for folder in (ours, theirs)]
    assert figures["numFilesAdded"] == files[0] <= files[1]
    quality = met(ours, by), met(theirs, by)
    print(f"{case}: files {files}, files read {quality} of {before}")  # noqa: T201 - the measurement
    # Where Spark cuts files is chance, so that equal is equal to within a hundredth.
    assert quality[0] <= quality[1] * 1.01, f"{case}: {quality} files read, of {files}"
    # Nothing is left to do, for neither of them with neither table.
    spark.forget()
    for folder in (ours, theirs):
        version = DeltaTable(str(folder)).version()
        spark.sql(f"OPTIMIZE delta.`{folder}`")
        DeltaTable(str(folder)).optimize()
        DeltaTable(str(folder)).optimize.cluster(full=True)
        assert DeltaTable(str(folder)).version() == version
    # Each goes on with the other's table.
    for folder in (ours, theirs):
        write_deltalake(folder, rows(1, 1000), mode="append")
    spark.forget()
    optimized(spark, theirs, ours)
    if case == "two":
        for folder in (ours, theirs):
            DeltaTable(str(folder)).alter.cluster_by(["y"])
            write_deltalake(folder, rows(2, 1000), mode="append")
        spark.forget()
        optimized(spark, theirs, ours)
        optimized(spark, theirs, ours, "FULL")
        with pytest.raises(Exception, match=r"(?i)z-?order"):
            spark.sql(f"OPTIMIZE delta.`{ours}` ZORDER BY (x)")
        with pytest.raises(deltafast.InvalidArgumentError, match="Z-order"):
            DeltaTable(str(ours)).optimize.z_order(["x"])
    spark.forget()
    _, found = spark.version(ours, spark.newest(ours))
    assert sorted(found["id"].to_pylist()) == ids(ours) == ids(theirs)


#: Tables that are Z-ordered: what they are partitioned by, and their properties.
Z_ORDERED: dict[str, tuple[list[str] | None, dict[str, str]]] = {
    "plain": (None, {}),
    "partitioned": (["p"], {}),
    "mapped": (None, {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}),
    "mapped, partitioned": (["p"], {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}),
}


def z_ordered(folder: pathlib.Path) -> dict[str, Any]:
    """Return what the newest commit, which Z-ordered, says of itself and the table, but for sizes, times and names."""
    info, adds = said(folder)
    table = DeltaTable(str(folder))
    lines = (folder / f"_delta_log/{table.version():020}.json").read_text().splitlines()
    removes = [action["remove"] for action in map(json.loads, lines) if "remove" in action]
    metadata, metrics = table.metadata(), info["operationMetrics"]
    return form(folder) | {
        "metrics": sorted(metrics),
        "counts": {key: metrics[key] for key in ("numRemovedFiles", "numAddedFiles", "numDeletionVectorsRemoved")},
        "blind": info["isBlindAppend"],
        "removed": sorted(
            (remove["path"], remove["dataChange"], "deletionVector" in remove, remove["partitionValues"] != {})
            for remove in removes
        ),
        "added": sorted((list(add["partitionValues"].values()), "deletionVector" in add) for add in adds),
        "actions": sorted({key for line in lines for key in json.loads(line)}),
        "schema": json.loads(table.schema().to_json()),
        "properties": metadata.configuration,
        "partitions": metadata.partition_columns,
    }


@pytest.mark.parametrize("case", list(Z_ORDERED))
def test_z_order_takes_the_same_files_and_says_the_same(spark: Reference, tmp_path: pathlib.Path, case: str) -> None:
    """All of a table, then a part of it; what was Z-ordered is again, as nobody knows that it was."""
    partition_by, properties = Z_ORDERED[case]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    data = rows(count=4000)
    # The last partition is one file.
    data = data.append_column("p", pa.array([min(n // 800, 3) for n in range(4000)], pa.int32()))
    for part in (data.slice(0, 1600), data.slice(700, 1000), data.slice(1200, 2800)):
        write_deltalake(ours, part, mode="append", partition_by=partition_by, configuration=properties or None)
    by = ["x", "y"]
    if "mapped" in case:
        table = DeltaTable(str(ours))
        table.alter.rename_column("y", "renamed y")
        table.delete("id % 7 = 0 and id < 1500")
        by = ["x", "renamed y"]
    shutil.copytree(ours, theirs)
    before = DeltaTable(str(ours)).to_pyarrow_table().sort_by([("id", "ascending"), ("x", "ascending")])
    names = ", ".join(f"`{name}`" for name in by)
    for n, where in enumerate(("", "WHERE p >= 2", "") if partition_by else ("", "")):
        version = DeltaTable(str(ours)).version()
        spark.forget()
        (answer,) = spark.answer(f"OPTIMIZE delta.`{theirs}` {where} ZORDER BY ({names})").to_pylist()
        (row,) = deltafast.sql(f"OPTIMIZE delta.`{ours}` {where} ZORDER BY ({names})").read_all().to_pylist()
        found, expected = row["metrics"], answer["metrics"]
        assert list(found) == list(expected)
        counts = ("numFilesAdded", "numFilesRemoved", "partitionsOptimized", "totalConsideredFiles")
        for key in (*counts, "totalFilesSkipped", "numBatches", "preserveInsertionOrder", "numTableColumns"):
            assert found[key] == expected[key], key
        assert list(found["zOrderStats"]) == list(expected["zOrderStats"])
        for key in ("inputCubeFiles", "inputOtherFiles", "mergedFiles"):
            assert found["zOrderStats"][key]["num"] == expected["zOrderStats"][key]["num"], key
        for key in ("strategyName", "inputNumCubes", "numOutputCubes"):
            assert found["zOrderStats"][key] == expected["zOrderStats"][key], key
        assert DeltaTable(str(ours)).version() == DeltaTable(str(theirs)).version() == version + 1
        mine, reference = z_ordered(ours), z_ordered(theirs)
        # What was Z-ordered before is in files of their own.
        for one in (mine, reference) if n else ():
            one["removed"] = [rest for _, *rest in one["removed"]]
        # Each spells a condition in its own way.
        for one in (mine, reference) if where else ():
            assert "p" in one["parameters"].pop("predicate")
        assert mine == reference
        for folder in (ours, theirs):
            after = DeltaTable(str(folder)).to_pyarrow_table().sort_by([("id", "ascending"), ("x", "ascending")])
            assert after.equals(before)


def test_reorg_takes_the_same_files(spark: Reference, tmp_path: pathlib.Path) -> None:
    """Deletion vectors and dropped columns, nested ones too, go from the same files."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    data = pa.table(
        {
            "id": pa.array(range(100), pa.int64()),
            "gone": [f"g{n}" for n in range(100)],
            "s": [{"a": n, "b": str(n)} for n in range(100)],
            "p": pa.array([n % 2 for n in range(100)], pa.int32()),
        }
    )
    write_deltalake(ours, data, partition_by=["p"], configuration=properties)
    write_deltalake(ours, data.slice(0, 20), mode="append")
    shutil.copytree(ours, theirs)

    def reorg(where: str = "") -> None:
        spark.forget()
        (answer,) = spark.answer(f"REORG TABLE delta.`{theirs}` {where} APPLY (PURGE)").to_pylist()
        (row,) = deltafast.sql(f"REORG TABLE delta.`{ours}` {where} APPLY (PURGE)").read_all().to_pylist()
        for key in ("numFilesAdded", "numFilesRemoved", "totalConsideredFiles", "partitionsOptimized", "numBatches"):
            assert row["metrics"][key] == answer["metrics"][key], (where, key)
        if row["metrics"]["numFilesRemoved"]:
            found, expected = form(ours), form(theirs)
            # Spark writes the predicate as it bound it.
            assert ("p" in found["parameters"].pop("predicate")) == ("p" in expected["parameters"].pop("predicate"))
            assert found == expected
        else:
            assert row["metrics"]["filesRemoved"] == answer["metrics"]["filesRemoved"]
            assert DeltaTable(str(ours)).version() == DeltaTable(str(theirs)).version()

    reorg()
    for folder in (ours, theirs):
        DeltaTable(str(folder)).delete("id = 3 or id = 40")
    reorg("WHERE p = 1")
    reorg()
    reorg()
    for column in ("gone", "s.b"):
        for folder in (ours, theirs):
            DeltaTable(str(folder)).alter.drop_columns([column])
        reorg()
        reorg()
    spark.forget()
    _, found = spark.version(ours, spark.newest(ours))
    assert found.select(["id", "s", "p"]).sort_by("id").to_pylist() == (
        DeltaTable(str(theirs)).to_pyarrow_table().select(["id", "s", "p"]).sort_by("id").to_pylist()
    )
