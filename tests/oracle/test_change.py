"""DELETE and UPDATE by deltafast and by delta-spark on the same table: the same rows, feed, ids, figures."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from conformance import compare
from deltafast import DeltaTable, write_deltalake

from .recorded_answers import plain
from .test_spark import check_changes, check_history, check_row_ids
from .test_writes import agreed

if TYPE_CHECKING:
    import pathlib

    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(600)

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
METRICS = (
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


#: Kind, predicate, new values.
Statement = tuple[str, str | None, dict[str, str] | None]
STATEMENTS: list[Statement] = [
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


def text(table: str, statement: Statement) -> str:
    """Return the statement in SQL."""
    kind, predicate, updates = statement
    where = f" where {predicate}" if predicate else ""
    sets = ", ".join(f"{name} = {value}" for name, value in (updates or {}).items())
    return (f"delete from {table}" if kind == "delete" else f"update {table} set {sets}") + where


def run(spark: Reference | None, folder: pathlib.Path, statement: Statement) -> None:
    """Run the statement by the reference, or by deltafast."""
    _, predicate, updates = statement
    if spark is None:
        table = DeltaTable(folder)
        if updates is None:
            table.delete(predicate)
        else:
            table.update(updates, predicate=predicate)
        return
    spark.sql(text(f"delta.`{folder}`", statement))


def commit_metrics(folder: pathlib.Path) -> dict[str, Any]:
    """Return what the newest commit says of itself."""
    commit = DeltaTable(folder).history(1)[0]
    metrics = {key: int(value) for key, value in commit["operationMetrics"].items() if key in METRICS}
    return {"operation": commit["operation"], "rows": commit.get("isBlindAppend"), **metrics}


def changed(spark: Reference, table: pathlib.Path, other: pathlib.Path, statement: Statement) -> dict[str, Any]:
    """Run the statement by the reference on a copy of the table, and return what comes of it."""
    shutil.copytree(table, other)
    run(spark, other, statement)
    version = DeltaTable(other).version()
    answer = {"version": version, "rows": found(other), "metrics": commit_metrics(other)}
    if DeltaTable(other).metadata().configuration.get("delta.enableChangeDataFeed"):
        answer["feed"] = feed(other, version)
    return answer


def found(folder: pathlib.Path) -> list[str]:
    """Return the rows as strings, in one order."""
    table = DeltaTable(folder)
    fields = json.loads(table.schema().to_json())["fields"]
    return sorted(compare.row_strings(table.to_pyarrow_table(), fields))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_same_statements_change_the_same_rows(name: str, answers: Answers, tmp_path: pathlib.Path) -> None:
    configuration = CONFIGURATIONS[name]
    ours = tmp_path / "ours"
    data = rows(80, 7)
    write_deltalake(ours, data.slice(0, 50), configuration=configuration, partition_by=["p"])
    write_deltalake(ours, data.slice(50), mode="append")
    for number, statement in enumerate(STATEMENTS):
        # Each time from the same files, so that figures can be compared.
        theirs = tmp_path / f"theirs-{number}"
        answer = answers(f"{number}: {text('t', statement)}", changed, ours, theirs, statement)
        run(None, ours, statement)
        version = DeltaTable(ours).version()
        assert version == answer["version"], statement
        assert found(ours) == answer["rows"], statement
        if answers.spark:
            agreed(answers.spark, ours, DeltaTable(theirs).to_pyarrow_table().to_pylist())
        assert plain(commit_metrics(ours)) == answer["metrics"], statement
        if "delta.enableChangeDataFeed" in configuration:
            assert feed(ours, version) == answer["feed"], statement
        if answers.spark and "delta.enableRowTracking" in configuration and number < len(STATEMENTS) - 1:
            check_row_ids(answers.spark, ours, version)
    if answers.spark:
        check_history(answers.spark, ours)
        if "delta.enableChangeDataFeed" in configuration:
            check_changes(answers.spark, ours, 0, DeltaTable(ours).version())


def feed(folder: pathlib.Path, version: int) -> list[str]:
    """Return the changes of a version, but for their time."""
    found = pa.table(DeltaTable(folder).load_cdf(starting_version=version, ending_version=version))
    kept = found.drop_columns(["_commit_timestamp"]).to_pylist()
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in kept)


def changed_on(spark: Reference, model: pathlib.Path, statement: Statement) -> list[str]:
    """Run the statement by the reference, and return the rows."""
    run(spark, model, statement)
    return found(model)


def test_both_change_one_table_in_turn(answers: Answers, tmp_path: pathlib.Path) -> None:
    """Statements alternate between both, if delta-spark runs; else all of them are ours, with the same result."""
    table, model = tmp_path / "table", tmp_path / "model"
    write_deltalake(table, rows(80, 3), configuration=VECTORS | FEED)
    shutil.copytree(table, model)
    for number, statement in enumerate(STATEMENTS[:-1]):
        expected = answers(f"{number}: {text('t', statement)}", changed_on, model, statement)
        run(answers.spark if number % 2 else None, table, statement)
        assert found(table) == expected, statement
        if answers.spark:
            agreed(answers.spark, table, DeltaTable(model).to_pyarrow_table().to_pylist())
