"""deltafast against delta-spark: tables that the reference writes read alike in both, version by version."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

import deltafast
from conformance import compare, corpus
from tablekit import log

from . import reference
from .scenarios import CHECKPOINT, COMPACT_LOG, FEED, SCENARIOS, Scenario

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence

    from .reference import Reference

pytestmark = [pytest.mark.spark, pytest.mark.proof]

READER = corpus.Reader()


def make(spark: Reference, scenario: Scenario, base: pathlib.Path) -> pathlib.Path:
    """Have the reference make a scenario's table."""
    folder, source = base / "table", base / "source"
    with spark.configured(dict(scenario.settings)):
        for step in scenario.steps:
            if step == CHECKPOINT:
                spark.checkpoint(folder)
            elif step == COMPACT_LOG:
                log.Table(folder).compacted(1, spark.newest(folder) - 1)
                spark.forget()
            else:
                spark.sql(step.format(t=f"delta.`{folder}`", src=f"delta.`{source}`"))
    return folder


def check_version(spark: Reference, folder: pathlib.Path, version: int) -> None:
    """What a version says (protocol, metadata, files, ...), its schema, rows and count are the reference's."""
    snapshot, rows = spark.version(folder, version)
    facts = READER.facts(folder, version)
    corpus.check_snapshot(facts, {"version": version, "snapshot": snapshot})
    fields = json.loads(facts.metadata["schemaString"])["fields"]
    found = READER.rows(folder, version)
    assert not list(compare.fields_problems(list(found.schema), fields))
    reference.same(found, rows, fields)
    assert READER.count(folder, version) == found.num_rows


def check_changes(spark: Reference, folder: pathlib.Path, start: int, end: int) -> None:
    """The change data feed is the reference's, commit times included."""
    found, expected = READER.changes(folder, start, end), spark.changes(folder, start, end)
    fields = json.loads(deltafast.DeltaTable(folder, version=end).schema().to_json())["fields"]
    added = {"_change_type": "string", "_commit_version": "long", "_commit_timestamp": "timestamp"}
    fields += [{"name": name, "type": kind} for name, kind in added.items()]
    assert not list(compare.fields_problems(list(found.schema), fields))
    reference.same(found, expected, fields)


def check_predicates(spark: Reference, folder: pathlib.Path, conditions: Sequence[str]) -> None:
    """Each condition gives the rows that the reference finds, from no more files."""
    fields = json.loads(deltafast.DeltaTable(folder).schema().to_json())["fields"]
    rows = spark.matching(folder, conditions)
    for number, condition in enumerate(conditions):
        found, planned = READER.filtered(folder, None, condition)
        expected = rows.filter(rows.column(str(number))).select([field["name"] for field in fields])
        reference.same(found, expected, fields)
        assert planned <= spark.planned(folder, condition), condition


def check_history(spark: Reference, folder: pathlib.Path) -> None:
    """Each commit is described as by DESCRIBE HISTORY."""
    found = [_commit(row) for row in deltafast.DeltaTable(folder).history()]
    assert found == [_commit(row) for row in spark.history(folder)]


def _commit(row: dict[str, Any]) -> dict[str, Any]:
    """Return what both say of a commit, in one form; a parameter without a value is as good as none.

    Times differ where the table has no in-commit timestamps: ours is the writer's clock, as deltalake's.
    """
    names = ("version", "operation", "readVersion", "isolationLevel", "isBlindAppend", "engineInfo")
    parameters = {k: _text(v) for k, v in (row.get("operationParameters") or {}).items() if v is not None}
    return {name: row.get(name) for name in names} | {
        "operationParameters": parameters,
        "operationMetrics": row.get("operationMetrics") or {},
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def check_time_travel(spark: Reference, folder: pathlib.Path) -> None:
    """Moments around each commit lead to the reference's version."""
    table = deltafast.DeltaTable(folder)
    timestamps = sorted(round(row["timestamp"].timestamp() * 1000) for row in spark.history(folder))
    for milliseconds in [t + d for t in timestamps for d in (-1, 0, 1)][1:]:
        timestamp = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
        table.load_as_version(timestamp)
        assert table.version() == spark.version_at(folder, timestamp), timestamp
    with pytest.raises(deltafast.VersionNotFoundError):
        table.load_as_version(dt.datetime.fromtimestamp((timestamps[0] - 1) / 1000, dt.UTC))


def check_row_ids(spark: Reference, folder: pathlib.Path, version: int) -> None:
    """Ids and commit versions of rows are the reference's."""
    table = deltafast.DeltaTable(folder, version=version)
    if table.metadata().configuration.get("delta.enableRowTracking") == "true":
        found = table.scan(columns=["id"], metadata_columns=["row_id", "row_commit_version"]).read_all()
        fields = [{"name": name, "type": "long"} for name in ("id", "row_id", "row_commit_version")]
        reference.same(
            found.rename_columns([field["name"] for field in fields]), spark.row_ids(folder, version), fields
        )


# One test a table, with its parts reported one by one: test processes running side by side then make no table twice.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_table_of_the_reference_reads_the_same(
    spark: Reference, name: str, tmp_path: pathlib.Path, subtests: pytest.Subtests
) -> None:
    scenario = SCENARIOS[name]
    folder = make(spark, scenario, tmp_path)
    newest = spark.newest(folder)
    for version in range(newest + 1):
        with subtests.test("version", version=version):
            check_version(spark, folder, version)
    with subtests.test("predicates"):
        check_predicates(spark, folder, scenario.where)
    with subtests.test("history"):
        check_history(spark, folder)
    with subtests.test("time travel"):
        check_time_travel(spark, folder)
    if scenario.feed is not None:
        with subtests.test("change data feed"):
            check_changes(spark, folder, scenario.feed, newest)
    if scenario.row_ids:
        with subtests.test("row ids"):
            for version in range(newest + 1):
                check_row_ids(spark, folder, version)


@pytest.mark.timeout(600)
def test_a_feed_across_a_column_that_went_is_refused_by_both(spark: Reference, tmp_path: pathlib.Path) -> None:
    steps = [
        f"create table {{t}} (id bigint) using delta tblproperties ({FEED})",
        "alter table {t} add column (x int)",
        "insert into {t} values (1, 2)",
        "restore table {t} to version as of 0",
    ]
    folder = make(spark, Scenario(steps), tmp_path)
    check_changes(spark, folder, 0, 0)
    for start, end in ((0, 2), (0, 3), (2, 3)):
        with pytest.raises(Exception, match="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"):
            spark.changes(folder, start, end)
        with pytest.raises(deltafast.DeltaProtocolError, match="`x`"):
            READER.changes(folder, start, end)


CHANGES = [
    "insert into {t} select id, cast(id % 4 as int), concat('s', id) from range({n}, {n} + {k} * 3, 1, 2)",
    "insert into {t} values ({n}, null, null)",
    "delete from {t} where id % {k} = {r}",
    "delete from {t} where p = {r}",
    "update {t} set s = concat(s, '+') where id % {k} = {r}",
    "update {t} set p = {r} where s like '%{k}'",
    """merge into {t} using (select id, 's' as s from range({r}, {n} + {k}, {k}, 1)) s on {t}.id = s.id
    when matched and s.id % 2 = 0 then delete when matched then update set s = 'merged'
    when not matched then insert (id, p, s) values (s.id, {r}, s.s)""",
    "optimize {t}",
    "insert overwrite {t} select id, {r}, 'new' from range({k})",
    CHECKPOINT,
]
PROPERTIES = [
    {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    {"delta.columnMapping.mode": "name", "delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"},
    {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "2"},
    {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true", "delta.columnMapping.mode": "id"},
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(len(PROPERTIES)))
def test_random_changes_read_the_same_at_every_version(spark: Reference, tmp_path: pathlib.Path, seed: int) -> None:
    chance = random.Random(seed)
    properties = PROPERTIES[seed]
    folder, t = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    partitioned = chance.choice(["partitioned by (p)", ""])
    spark.sql(f"create table {t} (id bigint, p int, s string) using delta {partitioned} tblproperties ({listed})")
    refreshed = deltafast.DeltaTable(folder)
    changes = [CHANGES[0], *chance.choices(CHANGES, k=4)]
    for n, change in enumerate(changes):
        if change == CHECKPOINT:
            spark.checkpoint(folder)
        else:
            spark.sql(change.format(t=t, n=n * 10, k=chance.randint(2, 5), r=chance.randint(0, 1)))
        refreshed.update_incremental()
        assert refreshed.version() == spark.newest(folder), changes
        fields = json.loads(refreshed.schema().to_json())["fields"]
        reference.same(refreshed.to_pyarrow_table(), READER.rows(folder, None), fields)
    newest = spark.newest(folder)
    for version in range(newest + 1):
        check_version(spark, folder, version)
        if "delta.enableRowTracking" in properties:
            check_row_ids(spark, folder, version)
    check_predicates(spark, folder, ["id > 10", "p = 1 and s >= 's2'", "p is null or s = 'merged'"])
    if "delta.enableChangeDataFeed" in properties:
        check_changes(spark, folder, 0, newest)
