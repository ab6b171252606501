"""Tables that deltafast converted, restored, cloned, vacuumed and repaired, read by delta-spark."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast.exceptions import InvalidArgumentError

from .recorded_answers import plain, refusal

if TYPE_CHECKING:
    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(900)


def ids(spark: Reference, folder: pathlib.Path) -> list[int]:
    """Return the sorted `id`s of the newest version, by the reference and by deltafast alike."""
    spark.forget()
    _, rows = spark.version(folder, spark.newest(folder))
    theirs = sorted(rows.column("id").to_pylist())
    assert sorted(deltafast.DeltaTable(str(folder)).to_pyarrow_table().column("id").to_pylist()) == theirs
    return theirs


def info(folder: pathlib.Path, version: int) -> dict[str, Any]:
    """Return the commitInfo of a commit."""
    lines = (folder / f"_delta_log/{version:020}.json").read_text().splitlines()
    return next(json.loads(line)["commitInfo"] for line in lines if "commitInfo" in line)


@pytest.mark.spark
@pytest.mark.proof
def test_the_reference_reads_what_maintenance_leaves(spark: Reference, tmp_path: pathlib.Path) -> None:
    """A conversion, a delete of the reference's, a restore, a clone, a vacuum and a repair, one after the other."""
    folder = tmp_path / "converted"
    for n, part in enumerate(["a b", "c%2Fd", "__HIVE_DEFAULT_PARTITION__"]):
        (folder / f"p={part}").mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([n, n + 10], pa.int64())}), folder / f"p={part}/x.parquet")
    deltafast.convert_to_deltalake(folder, partition_by=pa.schema([("p", pa.string())]))
    assert ids(spark, folder) == [0, 1, 2, 10, 11, 12]
    name = f"delta.`{folder}`"
    spark.sql(f"alter table {name} set tblproperties ('delta.enableDeletionVectors'='true')")
    spark.sql(f"delete from {name} where id = 10")
    spark.sql(f"insert into {name} values (99, 'c/d')")
    before = spark.newest(folder)
    table = deltafast.DeltaTable(str(folder))
    table.restore(before - 1)
    assert ids(spark, folder) == [0, 1, 2, 11, 12]
    table.restore(0)
    assert ids(spark, folder) == [0, 1, 2, 10, 11, 12]
    table.restore(before)
    assert ids(spark, folder) == [0, 1, 2, 11, 12, 99]

    clone = tmp_path / "clone"
    table.clone(clone)
    assert ids(spark, clone) == [0, 1, 2, 11, 12, 99]
    spark.sql(f"insert into delta.`{clone}` values (7, 'new')")
    assert ids(spark, clone) == [0, 1, 2, 7, 11, 12, 99]

    spark.sql(f"delete from {name} where id = 99")
    old = time.time() - 300 * 3600
    for path in folder.rglob("*"):
        if path.is_file() and "_delta_log" not in path.parts:
            os.utime(path, (old, old))
    gone = table.vacuum(0, False, False, full=True)
    assert gone
    assert ids(spark, folder) == [0, 1, 2, 11, 12]
    (folder / "p=a b/x.parquet").unlink()
    assert len(table.repair()["files_removed"]) == 1
    assert ids(spark, folder) == [1, 2, 11, 12]
    spark.sql(f"insert into {name} values (5, 'e')")
    assert ids(spark, folder) == [1, 2, 5, 11, 12]


def converted_and_restored(spark: Reference, folder: pathlib.Path) -> list[dict[str, Any]]:
    """Convert a folder of Parquet files, append and restore by the reference, and return what two commits say."""
    spark.sql(f"convert to delta parquet.`{folder}`")
    spark.sql(f"insert into delta.`{folder}` values (3)")
    spark.sql(f"restore table delta.`{folder}` to version as of 0")
    return [names(info(folder, version)) for version in (0, 2)]


def names(commit: dict[str, Any]) -> dict[str, Any]:
    """Return the operation and the names of what is said of it; what is null there is left out here."""
    return {
        "operation": commit["operation"],
        "parameters": sorted(key for key, value in commit["operationParameters"].items() if value is not None),
        "metrics": sorted(commit["operationMetrics"]),
    }


def test_the_commits_of_a_restore_and_a_conversion_are_reported_as_the_reference_reports_them(
    answers: Answers, tmp_path: pathlib.Path
) -> None:
    """Operation, parameters and figures have the reference's names."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), folder / "x.parquet")
    expected = answers("CONVERT and RESTORE", converted_and_restored, theirs)
    deltafast.convert_to_deltalake(ours)
    statement = f"insert into delta.`{ours}` values (3)"
    if answers.spark:
        answers.spark.sql(statement)
    else:
        deltafast.sql(statement)
    deltafast.DeltaTable(str(ours)).restore(0)
    assert [names(info(ours, version)) for version in (0, 2)] == expected


#: What source and target have been set to.
_PROPERTIES = (
    "",
    "'delta.enableDeletionVectors'='true'",
    "'delta.enableRowTracking'='true'",
    "'delta.columnMapping.mode'='name'",
)


def make_source(spark: Reference, folder: pathlib.Path, properties: str) -> None:
    """Have the reference make a table to clone."""
    given = f"'my.key'='v'{', ' * bool(properties)}{properties}"
    spark.sql(f"create table delta.`{folder}` (id bigint, s string) using delta tblproperties({given}) comment 'a'")
    spark.sql(f"insert into delta.`{folder}` values (1, 'x'), (2, 'y'), (3, 'z')")
    spark.sql(f"delete from delta.`{folder}` where id = 2")


def make_target(spark: Reference, folder: pathlib.Path, properties: str) -> None:
    """Have the reference make a table that is empty again."""
    given = f"'their.key'='w'{', ' * bool(properties)}{properties}"
    spark.sql(
        f"create table delta.`{folder}` (x int, y string) using delta partitioned by (y) "
        f"tblproperties({given}) comment 'b'"
    )
    spark.sql(f"insert into delta.`{folder}` values (1, 'x'), (2, 'y')")
    spark.sql(f"delete from delta.`{folder}`")


CLONE = "create or replace table delta.`{}` shallow clone delta.`{}` tblproperties ('k' = '1')"


def cloned(spark: Reference, source: pathlib.Path, target: pathlib.Path) -> dict[str, Any]:
    """Clone by the reference, and return what it is refused with or what the table is."""
    spark.forget()
    if refused := refusal(spark.sql, CLONE.format(target, source)):
        return {"refused": refused}
    return clone(target)


def clone(folder: pathlib.Path) -> dict[str, Any]:
    """Return what a clone is and holds."""
    table = deltafast.DeltaTable(str(folder))
    found = sorted(table.to_pyarrow_table().column("id").to_pylist())
    return plain({"described": described(table), "numbered": numbered(table), "ids": found})


@pytest.mark.parametrize("of_target", _PROPERTIES)
@pytest.mark.parametrize("of_source", _PROPERTIES)
def test_a_clone_in_the_place_of_an_empty_table(
    answers: Answers, tmp_path: pathlib.Path, of_source: str, of_target: str
) -> None:
    """Both make the same table of it."""
    source, theirs, ours = (tmp_path / name for name in ("source", "theirs", "ours"))
    answers.table(f"source {of_source}", source, make_source, of_source)
    answers.table(f"target {of_target}", theirs, make_target, of_target)
    shutil.copytree(theirs, ours)
    expected = answers(CLONE, cloned, source, theirs)
    if ("columnMapping" in of_source) != ("columnMapping" in of_target):
        assert "UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE" in expected["refused"]
        with pytest.raises(InvalidArgumentError, match=r"`delta\.columnMapping\.mode` cannot go from"):
            deltafast.sql(CLONE.format(ours, source))
        return
    deltafast.sql(CLONE.format(ours, source))
    found = clone(ours)
    assert found == expected
    assert found["ids"] == [1, 3]
    if answers.spark:
        assert ids(answers.spark, ours) == ids(answers.spark, theirs) == [1, 3]
        answers.spark.sql(f"insert into delta.`{ours}` values (9, 'new')")
        assert ids(answers.spark, ours) == [1, 3, 9]


def described(table: deltafast.DeltaTable) -> dict[str, Any]:
    """Return what a table is, but for its age; columns of row ids by whether they are there."""
    metadata, protocol = table.metadata(), table.protocol()
    return {
        "id": metadata.id,
        "description": metadata.description,
        "partition": metadata.partition_columns,
        "properties": {key: "materialized" in key or value for key, value in metadata.configuration.items()},
        "schema": json.loads(table.schema().to_json()),
        "versions": (protocol.min_reader_version, protocol.min_writer_version),
        "features": ({*(protocol.reader_features or ())}, {*(protocol.writer_features or ())}),
    }


def numbered(table: deltafast.DeltaTable) -> tuple[str | None, list[tuple[Any, ...]]]:
    """Return the mark of row ids, and the versions that files begin with; files may come in any order."""
    folder = pathlib.Path(table.table_uri.removeprefix("file://"))
    lines = (folder / f"_delta_log/{table.version():020}.json").read_text().splitlines()
    adds = [line["add"] for line in map(json.loads, lines) if "add" in line]
    mark = table.domain_metadata().get("delta.rowTracking")
    files = sorted(
        (add["path"].rpartition("/")[2], "baseRowId" in add, add.get("defaultRowCommitVersion")) for add in adds
    )
    return mark and json.loads(mark)["rowIdHighWaterMark"], files
