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

from .test_change import CONFIGURATIONS, FEED, VECTORS, feed
from .test_spark import check_row_ids
from .test_writes import agreed

if TYPE_CHECKING:
    import pathlib

    from .reference import Reference

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

#: Figures that say what was done, not how long it took or how files are encoded.
FIGURES = (
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
    deed: str
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
    for kind, deed, condition, values in statement.clauses:
        if deed == "delete":
            merger = getattr(merger, f"when_{kind}_delete")(condition)
        elif values is None:
            merger = getattr(merger, f"when_{kind}_{deed}_all")(condition)
        else:
            merger = getattr(merger, f"when_{kind}_{deed}")(values, condition)
    return merger.execute()


def theirs(spark: Reference, folder: pathlib.Path, source: pathlib.Path, statement: Statement) -> None:
    """Merge by the reference."""
    evolution = "with schema evolution " if statement.evolves else ""
    text = [f"merge {evolution}into delta.`{folder}` t using delta.`{source}` s on {statement.on}"]
    for kind, deed, condition, values in statement.clauses:
        when = f"when {kind.replace('_', ' ')}" + (f" and {condition}" if condition else "") + " then "
        if deed == "delete":
            what = "delete"
        elif values is None:
            what = "update set *" if deed == "update" else "insert *"
        elif deed == "update":
            what = "update set " + ", ".join(f"{name} = {value}" for name, value in values.items())
        else:
            what = f"insert ({', '.join(values)}) values ({', '.join(values.values())})"
        text.append(when + what)
    spark.sql(" ".join(text))


def figures(folder: pathlib.Path) -> dict[str, Any]:
    """Return what the newest commit says of itself."""
    commit = DeltaTable(folder).history(1)[0]
    metrics = {key: int(value) for key, value in commit["operationMetrics"].items() if key in FIGURES}
    parameters = commit["operationParameters"]
    deeds = {
        key: [clause["actionType"] for clause in json.loads(parameters[key])]
        for key in parameters
        if key.endswith("Predicates")
    }
    return {"operation": commit["operation"], "blind": commit.get("isBlindAppend"), **deeds, **metrics}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_same_merges_change_the_same_rows(name: str, spark: Reference, tmp_path: pathlib.Path) -> None:
    configuration = CONFIGURATIONS[name]
    mine = tmp_path / "mine"
    data = rows(range(80), 7)
    write_deltalake(mine, data.slice(0, 50), configuration=configuration, partition_by=["p"])
    write_deltalake(mine, data.slice(50), mode="append")
    problems: list[Any] = []
    for number, statement in enumerate(STATEMENTS):
        # Each time from the same files, so that figures can be compared.
        other, source = tmp_path / f"theirs-{number}", tmp_path / f"source-{number}"
        shutil.copytree(mine, other)
        new = rows(statement.ids, number)
        write_deltalake(source, new)
        before = DeltaTable(mine).version()
        metrics = ours(mine, new, statement)
        theirs(spark, other, source, statement)
        after = DeltaTable(mine).version()
        assert after == DeltaTable(other).version(), statement
        assert found(mine) == found(other), statement
        if after == before:
            assert metrics["num_output_rows"] == 0
            continue
        said, expected = figures(mine), figures(other)
        by_source = any(clause.kind == BY_SOURCE for clause in statement.clauses)
        # Where a row is in no match, delta-spark copies its whole file, taken by a clause or not.
        passed = {"numTargetFilesRemoved", "numOutputRows", "numTargetRowsCopied"} if by_source else set[str]()
        keys = sorted((said | expected).keys() - passed)
        problems += [
            (number, key, said.get(key), expected.get(key)) for key in keys if said.get(key) != expected.get(key)
        ]
        if "delta.enableChangeDataFeed" in configuration:
            assert feed(mine, after) == feed(other, after), statement
        if "delta.enableRowTracking" in configuration:
            check_row_ids(spark, mine, after)
    agreed(spark, mine, DeltaTable(other).to_pyarrow_table().to_pylist())
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
def test_schemas_come_to_be_the_same(configuration: dict[str, str], spark: Reference, tmp_path: pathlib.Path) -> None:
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
        other, folder = tmp_path / f"theirs-{number}", tmp_path / f"source-{number}"
        shutil.copytree(mine, other)
        write_deltalake(folder, source)
        statement = Statement("t.id = s.id", clauses, (), evolves=True)
        ours(mine, source, statement)
        theirs(spark, other, folder, statement)
        names = [[(f.name, str(f.type)) for f in DeltaTable(t).schema().fields] for t in (mine, other)]
        assert strip(names[0]) == strip(names[1]), statement
        assert found(mine) == found(other), statement
        agreed(spark, mine)


def strip(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the fields without what column mapping says of nested ones."""
    import re

    return [(name, re.sub(r"metadata=\{[^}]*\}|, metadata=.*?\)", "", kind)) for name, kind in fields]


def found(folder: pathlib.Path) -> list[str]:
    """Return the rows as texts, in one order."""
    return sorted(json.dumps(row, sort_keys=True) for row in pa.table(DeltaTable(folder).scan()).to_pylist())


def test_both_refuse_what_is_ambiguous(spark: Reference, tmp_path: pathlib.Path) -> None:
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
        with pytest.raises(Exception, match="MULTIPLE_SOURCE_ROW_MATCHING"):
            theirs(spark, tmp_path / "t", tmp_path / "s", statement)


def test_both_merge_into_one_table_in_turn(spark: Reference, tmp_path: pathlib.Path) -> None:
    table, model = tmp_path / "t", tmp_path / "model"
    write_deltalake(table, rows(range(80), 3), configuration=VECTORS | FEED)
    shutil.copytree(table, model)
    for number, statement in enumerate(STATEMENTS[:-1]):
        source = tmp_path / f"s-{number}"
        write_deltalake(source, rows(statement.ids, number))
        theirs(spark, model, source, statement)
        if number % 2:
            theirs(spark, table, source, statement)
        else:
            ours(table, rows(statement.ids, number), statement)
        assert found(table) == found(model), statement
    agreed(spark, table)
