"""Features dropped and switched on by deltafast and by delta-spark: the same protocol, properties and rows."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from conformance import compare
from deltafast import DeltaTable
from deltafast.exceptions import DeltaError

from .recorded_answers import plain, refusal, without_uuids
from .test_writes import agreed

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(600)

#: How the tables are made; all of them have files of before and after what makes the feature one with traces.
TABLES: dict[str, list[str]] = {
    "vectors and ids": [
        (
            "create table {t} (id long, s string) using delta tblproperties ('delta.enableDeletionVectors' = 'true',"
            " 'delta.enableRowTracking' = 'true', 'delta.checkpointPolicy' = 'v2',"
            " 'delta.feature.vacuumProtocolCheck' = 'supported')"
        ),
        "insert into {t} select /*+ repartition(1) */ id, concat('s', id) from range(8)",
        "delete from {t} where id in (2, 5)",
    ],
    "names": [
        (
            "create table {t} (id int, s string, p string, c long generated always as (id + 1L)) using delta"
            " partitioned by (p) tblproperties ('delta.columnMapping.mode' = 'name',"
            " 'delta.enableTypeWidening' = 'true', 'delta.enableInCommitTimestamps' = 'true',"
            " 'delta.dataSkippingStatsColumns' = 's')"
        ),
        "insert into {t} (id, s, p) values (1, 'a', 'x'), (2, 'b', null)",
        "alter table {t} rename column s to `text`",
        "alter table {t} add columns (n smallint)",
        "insert into {t} (id, `text`, p, n) values (3, 'c', 'y z', 7)",
        "alter table {t} alter column n type int",
    ],
    "plain": [
        "create table {t} (id long, s string, l array<int>) using delta",
        "insert into {t} values (1, 'a', array(1)), (2, 'b', null)",
        "insert into {t} values (3, 'c', array())",
    ],
    "parts and lists": [
        (
            "create table {t} (id long, s string, l array<int>) using delta partitioned by (s)"
            " tblproperties ('delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')"
        ),
        "insert into {t} select /*+ repartition(1) */ id, if(id < 4, 'a', 'b'), array(1) from range(8)",
        "delete from {t} where id in (2, 5)",
        "insert into {t} values (10, null, array(1, 2)), (11, 'b', null)",
    ],
    "flat": [
        "create table {t} (id long, s string) using delta",
        "insert into {t} values (1, 'a'), (2, 'b')",
        "insert into {t} values (3, 'c')",
    ],
}

Command = tuple[str, "Callable[[DeltaTable], None]"]


def drop(feature: str, truncate_history: bool = False) -> Command:
    """Return the command in both tongues."""
    text = f"alter table {{t}} drop feature {feature}" + (" truncate history" if truncate_history else "")
    return text, lambda table: table.alter.drop_feature(feature, truncate_history=truncate_history)


def props(**given: str) -> Command:
    """Return the command in both tongues; `_` stands for the dot in a key."""
    found = {"delta." + key.replace("_", "."): value for key, value in given.items()}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in found.items())
    return f"alter table {{t}} set tblproperties ({listed})", lambda table: table.alter.set_table_properties(found)


def unset(key: str) -> Command:
    """Return the command in both tongues."""
    return f"alter table {{t}} unset tblproperties ('{key}')", lambda table: table.alter.unset_table_properties([key])


def upgrade(version: int) -> Command:
    """Return the command in both tongues."""
    text = f"reorg table {{t}} apply (upgrade uniform (iceberg_compat_version = {version}))"
    return text, lambda table: _ignore(table.optimize.upgrade_uniform(version))


def _ignore(_: object) -> None:
    """Take what a command answers."""


FORMATS = "delta.universalFormat.enabledFormats"

#: For each table, in order: the command, and whether it is one that both refuse.
COMMANDS: dict[str, list[tuple[Command, bool]]] = {
    "vectors and ids": [
        (drop("appendOnly"), True),
        (drop("domainMetadata"), True),
        (drop("rowTracking", truncate_history=True), True),
        (drop("deletionVectors", truncate_history=True), True),
        (drop("deletionVectors"), False),
        (drop("checkpointProtection"), True),
        (drop("checkpointProtection", truncate_history=True), True),
        (drop("v2Checkpoint"), False),
        (drop("rowTracking"), False),
        (drop("domainMetadata"), False),
        (drop("vacuumProtocolCheck"), False),
    ],
    "names": [
        (drop("generatedColumns"), True),
        (drop("typeWidening"), False),
        (drop("inCommitTimestamp"), False),
        (drop("columnMapping"), False),
    ],
    "plain": [
        (props(enableIcebergCompatV2="true"), True),
        (props(enableRowTracking="true"), False),
        (props(columnMapping_mode="name"), False),
        (props(enableIcebergCompatV1="true"), True),
        (props(enableIcebergCompatV2="true"), False),
        (drop("columnMapping"), True),
        (drop("icebergCompatV2"), True),
    ],
    "parts and lists": [
        (props(universalFormat_enabledFormats="iceberg"), True),
        (upgrade(1), True),
        (upgrade(3), True),
        (upgrade(2), False),
        (upgrade(2), False),
        (unset(FORMATS), False),
        (props(universalFormat_enabledFormats="iceberg"), False),
        (props(enableIcebergCompatV2="false"), False),
    ],
    "flat": [
        (upgrade(1), False),
        (upgrade(1), False),
        (unset(FORMATS), False),
        (upgrade(2), False),
        (upgrade(1), False),
        (upgrade(2), False),
        (unset("delta.enableIcebergCompatV2"), False),
    ],
}

#: Names and numbers that every table has its own of.
OWN = ("materializedRow", "requireCheckpointProtectionBeforeVersion", "inCommitTimestampEnablement")


def state(folder: pathlib.Path) -> dict[str, Any]:
    """Return what a table is, but for what each has its own of."""
    table = DeltaTable(folder)
    protocol, metadata = table.protocol(), table.metadata()
    fields = json.loads(table.schema().to_json())["fields"]
    for field in fields:
        # The reference notes an empty map for what has no elements.
        if not field["metadata"].get("delta.columnMapping.nested.ids", True):
            del field["metadata"]["delta.columnMapping.nested.ids"]
    domains = table.domain_metadata()
    # The reference repeats the name.
    domains = {name: text.replace(f',"domainName":"{name}"', "") for name, text in domains.items()}
    return {
        "versions": (protocol.min_reader_version, protocol.min_writer_version),
        "readers": sorted(protocol.reader_features or []),
        "writers": sorted(protocol.writer_features or []),
        "properties": {
            key: "" if any(own in key for own in OWN) else value for key, value in metadata.configuration.items()
        },
        "fields": fields,
        # The reference commits tombstones of vectors twice, the second time none.
        "operations": [entry["operation"] for entry in table.history() if "Tombstones" not in entry["operation"]],
        "domains": {name: sorted(json.loads(text).items()) for name, text in domains.items()},
        "rows": sorted(compare.row_strings(table.to_pyarrow_table(), fields)),
        "tags": tags(folder),
    }


def tags(folder: pathlib.Path) -> list[Any]:
    """Return the partition and the tags of each live file."""
    files: dict[str, str] = {}
    for log in sorted((folder / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for path in [action["remove"]["path"] for action in actions if "remove" in action]:
            files.pop(path, None)
        for add in [action["add"] for action in actions if "add" in action]:
            files[add["path"]] = json.dumps([sorted(add["partitionValues"].values(), key=str), add.get("tags")])
    return sorted(files.values())


def make(spark: Reference, folder: pathlib.Path, name: str) -> None:
    """Have the reference make a table."""
    for statement in TABLES[name]:
        spark.sql(statement.format(t=f"delta.`{folder}`"))


def made(spark: Reference, folder: pathlib.Path, name: str) -> dict[str, Any]:
    """Have the reference make a table, and return what it is."""
    make(spark, folder, name)
    return without_uuids(state(folder))


def commanded(spark: Reference, folder: pathlib.Path, sql: str) -> dict[str, Any]:
    """Run a command by the reference, and return what it refuses it with and what the table is."""
    spark.forget()
    return {"refused": refusal(spark.sql, sql.format(t=f"delta.`{folder}`")), "state": state(folder)}


@pytest.mark.filterwarnings("ignore:.*an engine that has a converter:deltafast.DeltaWarning")
@pytest.mark.parametrize("name", TABLES)
def test_the_same_command_leaves_the_same_table(name: str, answers: Answers, tmp_path: pathlib.Path) -> None:
    start, ours, theirs = tmp_path / "made", tmp_path / "ours", tmp_path / "theirs"
    answers.table(name, start, make, name)
    assert without_uuids(state(start)) == answers("; ".join(TABLES[name]), made, tmp_path / "again", name)
    shutil.copytree(start, ours)
    shutil.copytree(start, theirs)
    for number, ((sql, run), refused) in enumerate(COMMANDS[name]):
        answer = answers(f"{number}: {sql}", commanded, theirs, sql)
        if refused:
            assert "DELTA_" in answer["refused"], sql
            with pytest.raises(DeltaError):
                run(DeltaTable(ours))
        else:
            assert answer["refused"] is None, sql
            run(DeltaTable(ours))
        found = plain(state(ours))
        assert found == answer["state"], sql
        # Each reads the other's.
        if answers.spark:
            agreed(answers.spark, ours)
    if answers.spark:
        # Both go on writing what the other one left.
        answers.spark.sql(f"insert into delta.`{ours}` select * from delta.`{start}`")
        DeltaTable(theirs).delete("id = 1")
        agreed(answers.spark, ours)
        agreed(answers.spark, theirs)
