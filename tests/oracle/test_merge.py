"""MERGE by deltafast and by delta-spark on the same table: the same rows, feed, ids, schema, figures and refusals."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import InvalidArgumentError

from .recorded_answers import plain, refusal
from .test_change import CONFIGURATIONS, FEED, VECTORS, feed
from .test_spark import check_row_ids
from .test_writes import agreed

if TYPE_CHECKING:
    import pathlib

    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(900)

#: Figures that say what was done, not how long it took or how files are encoded.
METRICS = (
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsMatchedUpdated",
    "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsNotMatchedBySourceDeleted",
    "numTargetRowsCopied",
    "numOutputRows",
    "numTargetFilesRemoved",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved",
    "numTargetDeletionVectorsUpdated",
)


class Clause(NamedTuple):
    """WHEN `kind` [AND `condition`] THEN `deed`; all columns where an update or insert names none."""

    kind: str
    action: str
    condition: str | None = None
    values: dict[str, str] | None = None


class Statement(NamedTuple):
    """A MERGE."""

    on: str
    clauses: tuple[Clause, ...]
    ids: tuple[int | None, ...] = tuple(range(0, 100, 7))
    evolves: bool = False


MATCHED, NOT_MATCHED, BY_SOURCE = "matched", "not_matched", "not_matched_by_source"
UPSERT = (Clause(MATCHED, "update"), Clause(NOT_MATCHED, "insert"))
STATEMENTS = [
    Statement("t.id = s.id", UPSERT),
    Statement(
        "t.id = s.id and t.p = 'x'", (Clause(MATCHED, "update", "s.n > 4", {"s": "concat(t.s, s.s)", "n": "s.n"}),)
    ),
    Statement("t.id = s.id", (Clause(NOT_MATCHED, "insert", "s.n is not null", {"id": "s.id + 500", "p": "s.p"}),)),
    Statement(
        "t.id = s.id and t.p <=> s.p",
        (
            Clause(MATCHED, "delete", "s.n < 3"),
            Clause(MATCHED, "update", None, {"d": "s.d + 1", "st": "s.st"}),
            Clause(NOT_MATCHED, "insert", "s.n > 2"),
            Clause(NOT_MATCHED, "insert", None, {"id": "-s.id", "p": "'neg'"}),
            Clause(BY_SOURCE, "update", "t.id % 11 = 0", {"s": "'gone'"}),
            Clause(BY_SOURCE, "delete", "t.id > 70"),
        ),
        tuple(range(3, 90, 5)),
    ),
    Statement("t.id = s.id", (Clause(MATCHED, "delete"),), (1, 1, 2, 50)),
    Statement("t.n = s.n and s.n = 9", (Clause(MATCHED, "delete"), Clause(NOT_MATCHED, "insert")), (4, 5)),
    Statement("false", (Clause(NOT_MATCHED, "insert", "s.id < 0"),)),
    Statement("t.id = s.id", UPSERT, ()),
    Statement("t.id = s.id and t.id < -1000", (Clause(MATCHED, "update"),)),
    Statement(
        "t.id between s.id and s.id + 1 and s.id = 20", (Clause(MATCHED, "update", "t.id = s.id", {"n": "-1"}),), (20,)
    ),
    Statement("t.d = s.d and t.id = s.id", (Clause(MATCHED, "update", None, {"d": "null"}),)),
    Statement("t.id = s.id", (Clause(BY_SOURCE, "delete", "t.p is null"),)),
    Statement("t.id = s.id", (*UPSERT, Clause(BY_SOURCE, "delete")), tuple(range(40))),
]


def rows(ids: tuple[int | None, ...] | range, seed: int) -> pa.Table:
    """Return rows of several types with nulls."""
    chance = random.Random(seed)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([chance.choice([None, *range(10)]) for _ in ids], pa.int32()),
            "s": pa.array([chance.choice([None, "", "abc", "naïve", "zz"]) for _ in ids], pa.string()),
            "d": pa.array([chance.choice([None, 0.0, -1.5, float("nan"), 2.5]) for _ in ids], pa.float64()),
            "p": pa.array([chance.choice(["x", "y z", None]) for _ in ids], pa.string()),
            "st": pa.array(
                [{"a": i, "l": [i]} for i in ids], pa.struct([("a", pa.int64()), ("l", pa.list_(pa.int64()))])
            ),
        }
    )


def ours(folder: pathlib.Path, source: pa.Table, statement: Statement) -> dict[str, Any]:
    """Merge by deltafast."""
    merger: Any = DeltaTable(folder).merge(source, statement.on, "s", "t", merge_schema=statement.evolves)
    for kind, action, condition, values in statement.clauses:
        if action == "delete":
            merger = getattr(merger, f"when_{kind}_delete")(condition)
        elif values is None:
            merger = getattr(merger, f"when_{kind}_{action}_all")(condition)
        else:
            merger = getattr(merger, f"when_{kind}_{action}")(values, condition)
    return merger.execute()


def text(table: str, source: str, statement: Statement) -> str:
    """Return the statement in SQL."""
    evolution = "with schema evolution " if statement.evolves else ""
    parts = [f"merge {evolution}into {table} t using {source} s on {statement.on}"]
    for kind, action, condition, values in statement.clauses:
        when = f"when {kind.replace('_', ' ')}" + (f" and {condition}" if condition else "") + " then "
        if action == "delete":
            what = "delete"
        elif values is None:
            what = "update set *" if action == "update" else "insert *"
        elif action == "update":
            what = "update set " + ", ".join(f"{name} = {value}" for name, value in values.items())
        else:
            what = f"insert ({', '.join(values)}) values ({', '.join(values.values())})"
        parts.append(when + what)
    return " ".join(parts)


def theirs(spark: Reference, folder: pathlib.Path, source: pathlib.Path, statement: Statement) -> None:
    """Merge by the reference."""
    spark.sql(text(f"delta.`{folder}`", f"delta.`{source}`", statement))


def commit_metrics(folder: pathlib.Path) -> dict[str, Any]:
    """Return what the newest commit says of itself."""
    commit = DeltaTable(folder).history(1)[0]
    metrics = {key: int(value) for key, value in commit["operationMetrics"].items() if key in METRICS}
    parameters = commit["operationParameters"]
    actions = {
        key: [clause["actionType"] for clause in json.loads(parameters[key])]
        for key in parameters
        if key.endswith("Predicates")
    }
    return {"operation": commit["operation"], "blind": commit.get("isBlindAppend"), **actions, **metrics}


def merged(
    spark: Reference, table: pathlib.Path, other: pathlib.Path, source: pa.Table, statement: Statement
) -> dict[str, Any]:
    """Merge by the reference into a copy of the table, and return what comes of it."""
    shutil.copytree(table, other)
    folder = other.with_name(f"{other.name}-source")
    write_deltalake(folder, source)
    theirs(spark, other, folder, statement)
    version = DeltaTable(other).version()
    answer: dict[str, Any] = {"version": version, "rows": found(other)}
    if version > DeltaTable(table).version():
        answer["metrics"] = commit_metrics(other)
        if DeltaTable(other).metadata().configuration.get("delta.enableChangeDataFeed"):
            answer["feed"] = feed(other, version)
    return answer


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_same_merges_change_the_same_rows(name: str, answers: Answers, tmp_path: pathlib.Path) -> None:
    configuration = CONFIGURATIONS[name]
    has_feed = "delta.enableChangeDataFeed" in configuration
    mine = tmp_path / "mine"
    data = rows(range(80), 7)
    write_deltalake(mine, data.slice(0, 50), configuration=configuration, partition_by=["p"])
    write_deltalake(mine, data.slice(50), mode="append")
    problems: list[Any] = []
    for number, statement in enumerate(STATEMENTS):
        # Each time from the same files, so that figures can be compared.
        other = tmp_path / f"theirs-{number}"
        new = rows(statement.ids, number)
        before = DeltaTable(mine).version()

        answer = answers(f"{number}: {text('t', 's', statement)}", merged, mine, other, new, statement)
        metrics = ours(mine, new, statement)
        after = DeltaTable(mine).version()
        assert after == answer["version"], statement
        assert found(mine) == answer["rows"], statement
        if after == before:
            assert metrics["num_output_rows"] == 0
            continue
        said, expected = plain(commit_metrics(mine)), answer["metrics"]
        by_source = any(clause.kind == BY_SOURCE for clause in statement.clauses)
        # Where a row is in no match, delta-spark copies its whole file, taken by a clause or not.
        passed = {"numTargetFilesRemoved", "numOutputRows", "numTargetRowsCopied"} if by_source else set[str]()
        keys = sorted((said.keys() | expected.keys()) - passed)
        problems += [
            (number, key, said.get(key), expected.get(key)) for key in keys if said.get(key) != expected.get(key)
        ]
        if has_feed:
            assert feed(mine, after) == answer["feed"], statement
        if answers.spark and "delta.enableRowTracking" in configuration:
            check_row_ids(answers.spark, mine, after)
    if answers.spark:
        agreed(answers.spark, mine, DeltaTable(other).to_pyarrow_table().to_pylist())
    assert not problems


EVOLUTIONS: list[tuple[pa.Table, tuple[Clause, ...]]] = [
    (pa.table({"id": [1, 9], "w": [1.5, 2.5]}), UPSERT),
    (pa.table({"id": [2, 8], "st": [{"a": 7, "new": "x"}] * 2}), UPSERT),
    (pa.table({"id": [3, 7], "l": [[{"x": 1, "y": 2}]] * 2, "q": [1, 2]}), UPSERT),
    (pa.table({"id": [1, 6], "z": ["a", "b"]}), (Clause(MATCHED, "update", None, {"z": "s.z"}),)),
    (pa.table({"id": [1, 5], "k": [True, False]}), (Clause(NOT_MATCHED, "insert"),)),
    (pa.table({"ID": [2, 4], "N": [5, 6]}), UPSERT),
]


@pytest.mark.parametrize(
    "configuration", [{}, VECTORS | FEED | {"delta.columnMapping.mode": "name"}], ids=["plain", "all"]
)
def test_schemas_come_to_be_the_same(configuration: dict[str, str], answers: Answers, tmp_path: pathlib.Path) -> None:
    mine = tmp_path / "mine"
    data = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "n": pa.array([1, 2, 3], pa.int64()),
            "st": [{"a": 1, "b": 2}, {"a": 3, "b": 4}, None],
            "l": [[{"x": 1}], [], None],
        }
    )
    write_deltalake(mine, data, configuration=configuration)
    for number, (source, clauses) in enumerate(EVOLUTIONS):
        statement = Statement("t.id = s.id", clauses, (), evolves=True)
        other = tmp_path / f"theirs-{number}"
        schema, expected = answers(f"{number}: {text('t', 's', statement)}", evolved, mine, other, source, statement)
        ours(mine, source, statement)
        assert plain(fields(mine)) == schema, statement
        assert found(mine) == expected, statement
        if answers.spark:
            agreed(answers.spark, mine)


def evolved(
    spark: Reference, table: pathlib.Path, other: pathlib.Path, source: pa.Table, statement: Statement
) -> list[Any]:
    """Merge by the reference into a copy of the table, and return its columns and rows."""
    merged(spark, table, other, source, statement)
    return [fields(other), found(other)]


def fields(folder: pathlib.Path) -> list[tuple[str, str]]:
    """Return the columns and their types."""
    return strip([(field.name, str(field.type)) for field in DeltaTable(folder).schema().fields])


def strip(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the fields without what column mapping says of nested ones."""
    import re

    return [(name, re.sub(r"metadata=\{[^}]*\}|, metadata=.*?\)", "", kind)) for name, kind in fields]


def found(folder: pathlib.Path) -> list[str]:
    """Return the rows as texts, in one order."""
    return sorted(json.dumps(row, sort_keys=True) for row in pa.table(DeltaTable(folder).scan()).to_pylist())


def refused_merge(spark: Reference, folder: pathlib.Path, source: pathlib.Path, statement: Statement) -> str | None:
    """Return what the reference refuses a MERGE with."""
    return refusal(theirs, spark, folder, source, statement)


def test_both_refuse_what_is_ambiguous(answers: Answers, tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path / "t", rows(range(10), 1))
    source = rows((3, 3), 2)
    write_deltalake(tmp_path / "s", source)
    for clauses in (
        (Clause(MATCHED, "update"),),
        (Clause(MATCHED, "delete", "t.id > 0"), Clause(NOT_MATCHED, "insert")),
    ):
        statement = Statement("t.id = s.id", clauses)
        with pytest.raises(InvalidArgumentError, match="several rows"):
            ours(tmp_path / "t", source, statement)
        refused = answers(text("t", "s", statement), refused_merge, tmp_path / "t", tmp_path / "s", statement)
        assert "MULTIPLE_SOURCE_ROW_MATCHING" in refused


def merged_on(spark: Reference, model: pathlib.Path, source: pathlib.Path, statement: Statement) -> list[str]:
    """Merge by the reference, and return the rows."""
    theirs(spark, model, source, statement)
    return found(model)


def test_both_merge_into_one_table_in_turn(answers: Answers, tmp_path: pathlib.Path) -> None:
    """Statements alternate between both, if delta-spark runs; else all of them are ours, with the same result."""
    table, model = tmp_path / "t", tmp_path / "model"
    write_deltalake(table, rows(range(80), 3), configuration=VECTORS | FEED)
    shutil.copytree(table, model)
    for number, statement in enumerate(STATEMENTS[:-1]):
        source = tmp_path / f"s-{number}"
        write_deltalake(source, rows(statement.ids, number))
        expected = answers(f"{number}: {text('t', 's', statement)}", merged_on, model, source, statement)
        if answers.spark and number % 2:
            theirs(answers.spark, table, source, statement)
        else:
            ours(table, rows(statement.ids, number), statement)
        assert found(table) == expected, statement
    if answers.spark:
        agreed(answers.spark, table)
