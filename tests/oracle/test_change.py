"""DELETE and UPDATE by deltafast and by delta-spark on the same table: the same rows, feed, ids, figures."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake

from .test_spark import check_changes, check_history, check_row_ids
from .test_writes import agreed

if TYPE_CHECKING:
    import pathlib

    from .reference import Reference

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "copies": {},
    "copies with a feed and names": FEED | {"delta.columnMapping.mode": "name"},
    "vectors": VECTORS,
    "vectors with a feed and ids": VECTORS | FEED | {"delta.columnMapping.mode": "id"},
    "vectors with row ids": VECTORS
    | FEED
    | {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"},
    "copies with row ids": {"delta.enableRowTracking": "true"},
}
#: Figures that say what was done, not how long it took or how files are encoded.
FIGURES = (
    "numDeletedRows",
    "numUpdatedRows",
    "numCopiedRows",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
    "numRemovedFiles",
)


def rows(count: int, seed: int) -> pa.Table:
    """Return rows of several types with nulls."""
    chance = random.Random(seed)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "n": pa.array([chance.choice([None, *range(10)]) for _ in range(count)], pa.int32()),
            "s": [chance.choice([None, "", "abc", "naïve", "zz"]) for _ in range(count)],
            "d": pa.array([chance.choice([None, 0.0, -1.5, float("nan"), 2.5]) for _ in range(count)]),
            "p": [chance.choice(["x", "y z", None]) for _ in range(count)],
            "st": pa.array([{"a": i, "l": [i]} for i in range(count)]),
        }
    )


STATEMENTS: list[tuple[str, str | None, dict[str, str] | None]] = [
    ("delete", "n = 3", None),
    ("update", "n = 4 and s is not null", {"s": "concat(s, '!')", "n": "n + 100"}),
    ("delete", "id between 10 and 19 or p is null", None),
    ("update", "d > 1", {"d": "d * 2"}),
    ("update", "p = 'x'", {"n": "0"}),
    ("delete", "id >= 60", None),
    ("update", "id < 5", {"p": "'moved'", "st": "null"}),
    ("delete", "s = ''", None),
    ("delete", "p = 'y z'", None),
    ("delete", None, None),
]


def run(
    spark: Reference | None, folder: pathlib.Path, statement: tuple[str, str | None, dict[str, str] | None]
) -> None:
    """Do it by the reference, or by deltafast."""
    kind, predicate, updates = statement
    if spark is None:
        table = DeltaTable(folder)
        if updates is None:
            table.delete(predicate)
        else:
            table.update(updates, predicate=predicate)
        return
    where = f" where {predicate}" if predicate else ""
    sets = ", ".join(f"{name} = {value}" for name, value in (updates or {}).items())
    text = f"delete from delta.`{folder}`" if kind == "delete" else f"update delta.`{folder}` set {sets}"
    spark.sql(text + where)


def figures(folder: pathlib.Path) -> dict[str, Any]:
    """Return what the newest commit says of itself."""
    commit = DeltaTable(folder).history(1)[0]
    metrics = {key: int(value) for key, value in commit["operationMetrics"].items() if key in FIGURES}
    return {"operation": commit["operation"], "rows": commit.get("isBlindAppend"), **metrics}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_same_statements_change_the_same_rows(name: str, spark: Reference, tmp_path: pathlib.Path) -> None:
    configuration = CONFIGURATIONS[name]
    ours = tmp_path / "ours"
    data = rows(80, 7)
    write_deltalake(ours, data.slice(0, 50), configuration=configuration, partition_by=["p"])
    write_deltalake(ours, data.slice(50), mode="append")
    for number, statement in enumerate(STATEMENTS):
        # Each time from the same files, so that figures can be compared.
        theirs = tmp_path / f"theirs-{number}"
        shutil.copytree(ours, theirs)
        run(None, ours, statement)
        run(spark, theirs, statement)
        assert DeltaTable(ours).version() == DeltaTable(theirs).version(), statement
        expected = DeltaTable(theirs).to_pyarrow_table().to_pylist()
        agreed(spark, ours, expected)
        assert figures(ours) == figures(theirs), statement
        if "delta.enableChangeDataFeed" in configuration:
            version = DeltaTable(ours).version()
            assert feed(ours, version) == feed(theirs, version), statement
        if "delta.enableRowTracking" in configuration and number < len(STATEMENTS) - 1:
            check_row_ids(spark, ours, DeltaTable(ours).version())
    check_history(spark, ours)
    if "delta.enableChangeDataFeed" in configuration:
        check_changes(spark, ours, 0, DeltaTable(ours).version())


def feed(folder: pathlib.Path, version: int) -> list[str]:
    """Return the changes of a version, but for their time."""
    found = pa.table(DeltaTable(folder).load_cdf(starting_version=version, ending_version=version))
    kept = found.drop_columns(["_commit_timestamp"]).to_pylist()
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in kept)


def test_both_change_one_table_in_turn(spark: Reference, tmp_path: pathlib.Path) -> None:
    data = rows(80, 3)
    write_deltalake(tmp_path, data, configuration=VECTORS | FEED)
    model = tmp_path / "model"
    shutil.copytree(tmp_path, model, ignore=shutil.ignore_patterns("model"))
    for number, statement in enumerate(STATEMENTS[:-1]):
        run(spark if number % 2 else None, tmp_path, statement)
        run(spark, model, statement)
        agreed(spark, tmp_path, DeltaTable(model).to_pyarrow_table().to_pylist())
