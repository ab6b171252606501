"""Clustering, Z-order and REORG beside delta-spark's: the same files taken, the same said, no more files read."""

from __future__ import annotations

import json
import random
import re
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake

from .recorded_answers import plain, refusal, without_uuids

if TYPE_CHECKING:
    import pathlib

    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(900)

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


def size_of_files(folder: pathlib.Path) -> int:
    """Return the size to aim at, so that a table becomes a number of files."""
    return sum(DeltaTable(str(folder)).get_add_actions()["size_bytes"].to_pylist()) // FILES


def counted(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return what OPTIMIZE counts of a clustered table, but for what it writes."""
    clustering = metrics["clusteringStats"]
    cubes = {key: clustering[key] for key in ("inputNumZCubes", "numOutputZCubes")}
    files = {key: clustering[key]["numFiles"] for key in ("inputZCubeFiles", "inputOtherFiles", "mergedFiles")}
    keys = ("numFilesRemoved", "totalConsideredFiles", "totalFilesSkipped", "partitionsOptimized")
    return cubes | files | {key: metrics[key] for key in keys}


def clustered(spark: Reference, folder: pathlib.Path, what: str) -> dict[str, Any]:
    """Run OPTIMIZE by the reference, and return what it answers and says."""
    spark.forget()
    with spark.configured({"spark.databricks.delta.optimize.maxFileSize": str(size_of_files(folder))}):
        (answer,) = spark.answer(f"OPTIMIZE delta.`{folder}` {what}").to_pylist()
    return {"metrics": counted(answer["metrics"]), "commit": form(folder)}


def optimized(answers: Answers, key: str, ours: pathlib.Path, theirs: pathlib.Path, what: str = "") -> dict[str, Any]:
    """Run OPTIMIZE on both tables; what they answer and say must be the same. Gives our figures."""
    answer = answers(key, clustered, theirs, what)
    metrics = DeltaTable(str(ours)).optimize.cluster(full=what == "FULL", target_size=size_of_files(ours))
    assert plain(counted(metrics)) == answer["metrics"]
    assert plain(form(ours)) == answer["commit"]
    return metrics


def quality(_: Reference, folder: pathlib.Path, by: list[str]) -> dict[str, int]:
    """Return how many files a table that the reference clustered has, and how many the filters read."""
    return {"files": len(DeltaTable(str(folder)).files()), "read": met(folder, by)}


def close(recorded: dict[str, int], now: dict[str, int]) -> bool:
    """Say whether two runs of the reference are alike: where it cuts files is chance, which made 2 % in three runs."""
    return abs(now["files"] - recorded["files"]) <= 1 and abs(now["read"] / recorded["read"] - 1) <= 0.05


@pytest.mark.parametrize("case", list(COLUMNS))
def test_clustering_is_as_good_and_says_the_same(answers: Answers, tmp_path: pathlib.Path, case: str) -> None:
    """Both cluster the same files; both go on where the other ended, if delta-spark runs."""
    by = COLUMNS[case]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for n in range(4):
        part = rows().slice(n * ROWS // 4, ROWS // 4)
        write_deltalake(ours, part, mode="append", **({"cluster_by": by} if n == 0 else {}))
    shutil.copytree(ours, theirs)
    before, all_ids = met(ours, by), ids(ours)
    metrics = optimized(answers, "OPTIMIZE", ours, theirs)
    assert ids(ours) == all_ids
    if answers.spark:
        assert ids(theirs) == all_ids
    reference = answers("quality", quality, theirs, by, agree=close)
    files, read = len(DeltaTable(str(ours)).files()), met(ours, by)
    assert metrics["numFilesAdded"] == files <= reference["files"]
    both = [files, reference["files"]], (read, reference["read"])
    print(f"{case}: files {both[0]}, files read {both[1]} of {before}")  # noqa: T201 - the measurement
    # Where Spark cuts files is chance, so that equal is equal to within a hundredth.
    assert read <= reference["read"] * 1.01, f"{case}: {both[1]} files read, of {both[0]}"
    # Nothing is left to do, for neither of them with neither table.
    tables = (ours, theirs) if answers.spark else (ours,)
    for folder in tables:
        version = DeltaTable(str(folder)).version()
        if answers.spark:
            answers.spark.forget()
            answers.spark.sql(f"OPTIMIZE delta.`{folder}`")
        DeltaTable(str(folder)).optimize()
        DeltaTable(str(folder)).optimize.cluster(full=True)
        assert DeltaTable(str(folder)).version() == version
    # Each goes on with the other's table; what is recorded is what the reference does with ours.
    other = theirs if answers.spark else ours
    for folder in tables:
        write_deltalake(folder, rows(1, 1000), mode="append")
    all_ids += range(ROWS, ROWS + 1000)
    optimized(answers, "OPTIMIZE after an append", other, ours)
    if case == "two":
        for folder in tables:
            DeltaTable(str(folder)).alter.cluster_by(["y"])
            write_deltalake(folder, rows(2, 1000), mode="append")
        all_ids += range(2 * ROWS, 2 * ROWS + 1000)
        optimized(answers, "OPTIMIZE by other columns", other, ours)
        optimized(answers, "OPTIMIZE FULL", other, ours, "FULL")
        assert re.search("(?i)z-?order", answers("OPTIMIZE ZORDER BY (x)", refused_z_order, ours))
        with pytest.raises(deltafast.InvalidArgumentError, match="Z-order"):
            DeltaTable(str(ours)).optimize.z_order(["x"])
    assert ids(ours) == ids(other) == all_ids
    if answers.spark:
        answers.spark.forget()
        _, found = answers.spark.version(ours, answers.spark.newest(ours))
        assert sorted(found["id"].to_pylist()) == all_ids


def refused_z_order(spark: Reference, folder: pathlib.Path) -> str | None:
    """Return what the reference refuses the Z-order of a clustered table with."""
    return refusal(spark.sql, f"OPTIMIZE delta.`{folder}` ZORDER BY (x)")


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


def z_order_counts(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return what OPTIMIZE ZORDER BY counts, but for bytes and times, and the names of all that it says."""
    keys = ("numFilesAdded", "numFilesRemoved", "partitionsOptimized", "totalConsideredFiles", "totalFilesSkipped")
    keys += ("numBatches", "preserveInsertionOrder", "numTableColumns")
    stats = metrics["zOrderStats"]
    return {
        "names": [list(metrics), list(stats)],
        "counts": {key: metrics[key] for key in keys},
        "files": {key: stats[key]["num"] for key in ("inputCubeFiles", "inputOtherFiles", "mergedFiles")},
        "cubes": {key: stats[key] for key in ("strategyName", "inputNumCubes", "numOutputCubes")},
    }


def z_order(spark: Reference, folder: pathlib.Path, what: str) -> dict[str, Any]:
    """Z-order a table by the reference, and return what it answers and says."""
    spark.forget()
    (answer,) = spark.answer(f"OPTIMIZE delta.`{folder}` {what}").to_pylist()
    return {
        "metrics": z_order_counts(answer["metrics"]),
        "version": DeltaTable(str(folder)).version(),
        "table": lasting(z_ordered(folder)),
    }


def lasting(found: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of a Z-order without the names of files, and without the text of its condition."""
    if "p" in found["parameters"]["predicate"]:
        # Each spells it in its own way.
        found["parameters"]["predicate"] = "of p"
    found["removed"] = sorted(rest for _, *rest in found["removed"])
    return without_uuids(found)


@pytest.mark.parametrize("case", list(Z_ORDERED))
def test_z_order_takes_the_same_files_and_says_the_same(answers: Answers, tmp_path: pathlib.Path, case: str) -> None:
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
        what = f"{where} ZORDER BY ({names})"
        answer = answers(f"{n}: {what}", z_order, theirs, what)
        (row,) = deltafast.sql(f"OPTIMIZE delta.`{ours}` {what}").read_all().to_pylist()
        assert plain(z_order_counts(row["metrics"])) == answer["metrics"]
        assert DeltaTable(str(ours)).version() == answer["version"] == version + 1
        assert lasting(z_ordered(ours)) == answer["table"]
        assert (answer["table"]["parameters"]["predicate"] == "of p") == bool(where)
        if answers.spark and n == 0:
            # What was Z-ordered before is in files of their own.
            assert z_ordered(ours)["removed"] == z_ordered(theirs)["removed"]
        if answers.spark:
            assert z_ordered(ours)["schema"] == z_ordered(theirs)["schema"]
        for folder in (ours, theirs) if answers.spark else (ours,):
            after = DeltaTable(str(folder)).to_pyarrow_table().sort_by([("id", "ascending"), ("x", "ascending")])
            assert after.equals(before)


REORG_COUNTS = ("numFilesAdded", "numFilesRemoved", "totalConsideredFiles", "partitionsOptimized", "numBatches")


def reorganized(metrics: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    """Return what REORG counts, and what the commit says if it made one."""
    found: dict[str, Any] = {"counts": {key: metrics[key] for key in REORG_COUNTS}}
    if metrics["numFilesRemoved"]:
        commit = form(folder)
        # Spark writes the predicate as it bound it.
        commit["parameters"]["predicate"] = "p" in commit["parameters"]["predicate"]
        return found | {"commit": commit}
    return found | {"removed": metrics["filesRemoved"], "version": DeltaTable(str(folder)).version()}


def reorg(spark: Reference, folder: pathlib.Path, what: str) -> dict[str, Any]:
    """Run REORG by the reference, and return what it answers and says."""
    spark.forget()
    (answer,) = spark.answer(f"REORG TABLE delta.`{folder}` {what}").to_pylist()
    return reorganized(answer["metrics"], folder)


def test_reorg_takes_the_same_files(answers: Answers, tmp_path: pathlib.Path) -> None:
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
    tables = (ours, theirs) if answers.spark else (ours,)

    def run(key: str, where: str = "") -> None:
        what = f"{where} APPLY (PURGE)"
        answer = answers(f"{key}: {what}", reorg, theirs, what)
        (row,) = deltafast.sql(f"REORG TABLE delta.`{ours}` {what}").read_all().to_pylist()
        assert plain(reorganized(row["metrics"], ours)) == answer, key

    run("as written")
    for folder in tables:
        DeltaTable(str(folder)).delete("id = 3 or id = 40")
    run("rows deleted", "WHERE p = 1")
    run("rows deleted, the rest")
    run("rows deleted, again")
    for column in ("gone", "s.b"):
        for folder in tables:
            DeltaTable(str(folder)).alter.drop_columns([column])
        run(f"{column} dropped")
        run(f"{column} dropped, again")
    left = data.select(["id", "p"]).append_column("s", pa.array([{"a": n} for n in range(100)]))
    kept = [row for row in [*left.to_pylist(), *left.slice(0, 20).to_pylist()] if row["id"] not in (3, 40)]
    for folder in tables:
        found = DeltaTable(str(folder)).to_pyarrow_table().select(["id", "p", "s"]).to_pylist()
        assert sorted(found, key=_id) == sorted(kept, key=_id)
    if answers.spark:
        answers.spark.forget()
        _, found = answers.spark.version(ours, answers.spark.newest(ours))
        assert sorted(found.select(["id", "p", "s"]).to_pylist(), key=_id) == sorted(kept, key=_id)


def _id(row: dict[str, Any]) -> int:
    return row["id"]
