"""What deltafast writes into the log, read by delta-spark: checkpoints alone, compactions, version checksums."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import deltafast
from conformance import compare, corpus
from conformance.test_written_checkpoints import V1_FORMS, V2_FORMS, allowed, checkpoint_alone, copy_table, latest
from deltafast import _core
from deltafast.exceptions import DeltaError
from tablekit import log

from . import reference

if TYPE_CHECKING:
    import pathlib

    from .recorded_answers import Answers
    from .reference import Reference

READER = corpus.Reader()


def _check(spark: Reference, folder: pathlib.Path, case: dict[str, Any], *, rows: bool) -> None:
    """The reference sees the manifest's snapshot and, if asked, rows."""
    spark.forget()
    version = spark.newest(folder)
    facts = READER.facts(folder, None)
    assert facts.version == version == case["version"]
    digest = {"files_digest": case["snapshot"]["files_digest"]}
    rows = rows and "rows" in case and not case["rows"].get("encoded_columns")
    snapshot, found = spark.version(folder, version) if rows else (spark.facts(folder, version), None)
    corpus.check_snapshot(facts, {"version": version, "snapshot": snapshot | digest})
    if found is not None:
        fields = case["rows"]["schema"]["fields"]
        assert compare.digest(compare.row_strings(found, fields)) == case["rows"]["content_digest"]


@pytest.mark.spark
@pytest.mark.proof
@pytest.mark.parametrize("case", [c for c in latest() if c.case["kind"] == "read"], ids=str)
def test_spark_reads_a_checkpoint_alone(case: corpus.Case, spark: Reference, tmp_path: pathlib.Path) -> None:
    """Each form of checkpoint of a real table, all the rest of its log deleted, is the table to the reference."""
    with corpus.folder(case.table) as source:
        try:
            features = deltafast.DeltaTable(str(source)).protocol().writer_features or []
        except DeltaError:
            pytest.skip("the table cannot be opened without its catalog")
        forms = {"v1": V1_FORMS["v1"]} | (V2_FORMS if "v2Checkpoint" in features else V1_FORMS)
        for name, options in forms.items():
            table = copy_table(source, tmp_path / name)
            # The reference wants the commit of a checkpoint's own version to be there.
            if not allowed(table, options, commit=True):
                return
            # Rows come of the files and vectors that the snapshot names: once is enough for all forms.
            _check(spark, table, case.case, rows=name == next(iter(forms)))


@pytest.mark.spark
@pytest.mark.proof
def test_spark_goes_on_from_our_checkpoint(spark: Reference, tmp_path: pathlib.Path) -> None:
    """The reference appends to a table that has nothing but our checkpoint, and checkpoints it again; so do we."""
    for n, (properties, form) in enumerate(
        [
            ("'delta.enableDeletionVectors'='true','delta.enableRowTracking'='true'", "v1"),
            ("'delta.checkpointPolicy'='v2','delta.enableDeletionVectors'='true'", "v2"),
            ("'delta.columnMapping.mode'='name','delta.checkpoint.writeStatsAsJson'='false'", "v1"),
        ]
    ):
        folder = tmp_path / f"table-{n}"
        name = f"delta.`{folder}`"
        spark.sql(
            f"create table {name} (id bigint, s struct<x: timestamp, y: decimal(10,2)>, p date) using delta "
            f"partitioned by (p) tblproperties ({properties})"
        )
        rows = "id, struct(timestamp'2024-02-29 01:02:03.456789' as x, cast(id as decimal(10,2)) as y) as s"
        spark.sql(f"insert into {name} select {rows}, date'2024-01-01' as p from range(100)")
        spark.sql(f"delete from {name} where id % 7 = 0")
        before = spark.version(folder, spark.newest(folder))
        checkpoint_alone(folder, {"form": form}, commit=True)
        spark.forget()
        facts, found = spark.version(folder, spark.newest(folder))
        fields = json.loads(facts["metadata"]["schemaString"])["fields"]
        plain = [{"name": f["name"], "type": f["type"]} for f in fields]
        reference.same(found, before[1], plain)
        assert sorted(map(repr, facts["files"])) == sorted(map(repr, before[0]["files"]))
        spark.sql(f"insert into {name} select {rows}, date'2024-01-02' as p from range(10)")
        spark.checkpoint(folder)
        assert deltafast.DeltaTable(str(folder)).count() == 85 + 10
        deltafast.DeltaTable(str(folder)).create_checkpoint(form=form)


def changed(spark: Reference, folder: pathlib.Path) -> None:
    """Have the reference make a table and change it in every way."""
    name = f"delta.`{folder}`"
    spark.sql(
        f"create table {name} (id bigint) using delta tblproperties "
        "('delta.enableDeletionVectors'='true', 'delta.enableInCommitTimestamps'='true', "
        "'delta.enableRowTracking'='true')"
    )
    for step in (
        f"insert into {name} select id from range(0, 1000, 1, 3)",
        f"delete from {name} where id % 10 = 1",
        f"update {name} set id = id + 10000 where id < 50",
        f"optimize {name}",
        f"alter table {name} set tblproperties ('user.key' = 'value')",
        f"delete from {name}",
    ):
        spark.sql(step)


@pytest.mark.timeout(600)  # seven commands of the reference, on a machine that may be busy
def test_checksums_are_field_by_field_those_of_the_reference(answers: Answers, tmp_path: pathlib.Path) -> None:
    """Each `.crc` of the reference is deleted and written again, from the one before and from all files."""
    folders = [tmp_path / "stored"]
    answers.table("a table of all commands", folders[0], changed)
    if answers.spark:
        folders.append(tmp_path / "table")
        changed(answers.spark, folders[1])
    compared = 0
    for folder in folders:
        newest = deltafast.DeltaTable(str(folder)).version()
        assert newest == 6
        for whole in (False, True):
            for version in range(newest + 1):
                path = folder / "_delta_log" / f"{version:020}.crc"
                theirs = json.loads(path.read_text())
                path.unlink()
                previous = folder / "_delta_log" / f"{version - 1:020}.crc"
                if whole and previous.exists():
                    previous.unlink()
                opened = _core.Snapshot.open(str(folder), version=version)
                assert _core.write_checksum(opened)
                ours = json.loads(path.read_text())
                assert _comparable(ours) == _comparable(theirs), version
                compared += 1
    assert compared == len(folders) * 2 * 7


def _comparable(checksum: dict[str, Any]) -> dict[str, Any]:
    """Return a checksum without what its writer chooses: the histogram's name, the order of lists, `allFiles`."""
    out = {key: value for key, value in checksum.items() if key != "allFiles"}
    histogram = out.pop("histogramOpt", None) or out.pop("fileSizeHistogram", None)
    for key in ("setTransactions", "domainMetadata"):
        out[key] = sorted(map(repr, (_without_empty(action) for action in out.get(key) or [])))
    for key in ("readerFeatures", "writerFeatures"):
        out["protocol"] = out["protocol"] | {key: sorted(out["protocol"].get(key) or [])}
    return out | {"histogram": histogram}


def _without_empty(action: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted((key, value) for key, value in action.items() if value is not None)


@pytest.mark.spark
@pytest.mark.proof
def test_spark_reads_our_compaction(spark: Reference, tmp_path: pathlib.Path) -> None:
    """A compaction of deltafast's stands for its commits."""
    table = log.basic(tmp_path / "compacted", 6)
    table.commit(6, log.remove("part-2.parquet"))
    deltafast.DeltaTable(str(table)).compact_logs(1, 6)
    spark.forget()
    _, rows = spark.version(table.folder, 6)
    assert sorted(rows.column("id").to_pylist()) == [*range(20), *range(30, 60)]
