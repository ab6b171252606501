"""A command does the same as Spark jobs, embedded, and in delta-spark."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, Schema, write_deltalake
from deltafast.exceptions import CommitFailedError, ConstraintViolatedError, DeltaProtocolError, InvalidArgumentError
from deltafast.spark import _jobs as jobs

from .helpers import rows, usual_and_proof

pytestmark = [
    pytest.mark.spark,
    # Each is many jobs, on a machine that does other work beside.
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
NAMES = {"delta.columnMapping.mode": "name"}
IDS = {"delta.columnMapping.mode": "id"}
TRACKED = {"delta.enableRowTracking": "true"}
LAYOUTS = {
    "plain": ({}, []),
    "vectors": (VECTORS, []),
    "partitions": (FEED, ["p"]),
    "vectors and partitions": (VECTORS | FEED, ["p"]),
    "names": (NAMES | FEED, ["p"]),
    "ids and vectors": (IDS | VECTORS | FEED, []),
    "tracked": (TRACKED | FEED, []),
    "tracked and vectors": (TRACKED | VECTORS | NAMES, ["p"]),
}
#: Those on which every command is compared.
COMPARED = usual_and_proof(
    ["tracked and vectors"], ["vectors and partitions", "plain", "names", "ids and vectors", "tracked"]
)


def table_of(start: int, count: int) -> pa.Table:
    """Rows with numbers from `start` on."""
    ids = list(range(start, start + count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([("a", "b c", None)[n % 3] for n in ids]),
            "v": pa.array([n / 4 for n in ids]),
            "s": pa.array([None if n % 5 == 0 else {"x": n, "y": f"y{n}"} for n in ids]),
            "name": pa.array([None if n % 7 == 0 else f"n{n}" for n in ids]),
        }
    )


def make(folder: pathlib.Path, layout: str) -> pathlib.Path:
    """A table of four files of 25 rows each, of which the second has deletion vectors where there can be any."""
    configuration, partition = LAYOUTS[layout]
    for n in range(4):
        write_deltalake(
            folder, table_of(25 * n, 25), mode="append", partition_by=partition, configuration=configuration
        )
    DeltaTable(folder).delete("id in (26, 31, 40)")
    return folder


def twin(folder: str) -> str:
    """Another table that is the same, in place of the last one."""
    other = f"{folder}-twin"
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(folder, other)
    return other


def reported_changes(folder: str, since: int) -> list[str]:
    """The change data feed since a version."""
    found = DeltaTable(folder).load_cdf(starting_version=since).read_all().drop_columns(["_commit_timestamp"])
    return sorted(map(repr, found.to_pylist()))


def entry(folder: str) -> dict[str, Any]:
    """What the log says of the newest version; of figures that depend on how rows are spread only whether there are any."""
    last = DeltaTable(folder).history(1)[0]
    metrics = {
        key: (int(value) > 0 if key in ("numAddedFiles", "numAddedChangeFiles", "numTargetFilesAdded") else int(value))
        for key, value in last["operationMetrics"].items()
        if not key.endswith("Ms") and "Bytes" not in key and key != "numTargetChangeFilesAdded"
    }
    return {"operation": last["operation"], "parameters": last["operationParameters"], "metrics": metrics}


def content(folder: str) -> list[str]:
    """All rows, read by the core."""
    return sorted(map(repr, DeltaTable(folder).to_pyarrow_table().to_pylist()))


def leftovers(folder: str) -> set[str]:
    """Files and folders that no version names."""
    table = DeltaTable(folder)
    root = pathlib.Path(folder)
    live = {
        str(pathlib.Path(uri).relative_to(root))
        for version in range(table.version() + 1)
        for uri in DeltaTable(folder, version=version).file_uris()
    }
    there = {
        str(file.relative_to(root)) for file in root.rglob("*") if file.is_file() and "_delta_log" not in file.parts
    }
    vectors = {name for name in there if name.endswith(".bin")}
    fed = {name for name in there if name.startswith("_change_data/") and name.endswith(".parquet")}
    return there - live - vectors - fed


def compare(ours: str, core: str, version: int) -> None:
    """Both tables, changed since this version, are the same but for how rows lie in files."""
    assert DeltaTable(ours).version() == DeltaTable(core).version()
    assert content(ours) == content(core)
    assert entry(ours) == entry(core)
    has_feed = DeltaTable(ours).metadata().configuration.get("delta.enableChangeDataFeed") == "true"
    if has_feed and DeltaTable(core).version() > version:
        assert reported_changes(ours, version + 1) == reported_changes(core, version + 1)
    assert not leftovers(ours)


DELETES = [
    "id % 10 = 3",
    "p = 'a'",
    "id >= 25 and id < 50",
    "name is null or s.x > 70",
    "id > 1000",
    "id < 60 and v >= 5.5",
    None,
]


@pytest.mark.parametrize("layout", COMPARED)
def test_delete_is_the_embedded_one(reference, spark, tmp_path, layout):
    core = str(make(tmp_path / "t", layout))
    for condition in DELETES:
        version, ours = DeltaTable(core).version(), twin(core)
        found = jobs.delete(spark, DeltaTable(ours), condition)
        wanted = DeltaTable(core).delete(condition)
        same_metrics(found, wanted, "num_deleted_rows", "num_copied_rows", "num_removed_files")
        compare(ours, core, version)
        if condition == DELETES[3]:
            assert rows(reference._load(ours)) == rows(deltafast.spark.read(spark, core))
    assert reference._load(ours).count() == 0


UPDATES = [
    ({"v": "v + id", "name": "concat(name, '!')"}, "id % 10 = 3"),
    ({"s.x": "s.x * 2"}, "id < 40"),
    ({"p": "'new'", "id": "id + 1000"}, "p = 'a'"),
    ({"v": "null"}, "id > 5000"),
    ({"name": "'all'", "s": "named_struct('x', id, 'y', p)"}, None),
]


@pytest.mark.proof
@pytest.mark.parametrize("layout", COMPARED)
def test_update_is_the_embedded_one(reference, spark, tmp_path, layout):
    core = str(make(tmp_path / "t", layout))
    for updates, condition in UPDATES:
        version, ours = DeltaTable(core).version(), twin(core)
        found = jobs.update(spark, DeltaTable(ours), updates, condition)
        wanted = DeltaTable(core).update(updates, predicate=condition)
        same_metrics(found, wanted, "num_updated_rows", "num_copied_rows", "num_removed_files")
        compare(ours, core, version)
        same_ids(reference, ours, core)
    assert rows(reference._load(ours)) == rows(deltafast.spark.read(spark, core))


def same_metrics(found: dict[str, Any], wanted: dict[str, Any], *keys: str) -> None:
    """Both commands report the same."""
    assert found.keys() == wanted.keys()
    assert {key: found[key] for key in keys} == {key: wanted[key] for key in keys}


def same_ids(reference, ours: str, core: str, *, is_order_known: bool = True) -> None:
    """Rows that were there keep their ids, where the table tracks rows; new rows get theirs in any order."""
    if DeltaTable(core).metadata().configuration.get("delta.enableRowTracking") != "true":
        return
    reference.forget()
    tables = [reference.row_ids(folder, DeltaTable(folder).version()).to_pylist() for folder in (ours, core)]
    if not is_order_known:
        for row in (
            row for table in tables for row in table if row["row_commit_version"] == DeltaTable(ours).version()
        ):
            row.pop("row_id")
    assert sorted(map(repr, tables[0])) == sorted(map(repr, tables[1]))


def source_of() -> pa.Table:
    """Rows of which some match those of `make`."""
    ids = [3, 17, 26, 30, 55, 99, 100, 101, 250]
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "p": pa.array(["a", "z", None, "b c", "q", "a", "b c", None, "a"]),
            "v": pa.array([n + 0.5 for n in ids]),
            "s": pa.array([{"x": -n, "y": "new"} for n in ids]),
            "name": pa.array([f"source {n}" for n in ids]),
            "extra": pa.array(ids, pa.int64()),
        }
    )


ON = "t.id = s.id"
MERGES = {
    "upsert": (ON, lambda m: m.when_matched_update_all().when_not_matched_insert_all()),
    "clauses": (
        ON,
        lambda m: (
            m.when_matched_delete("t.v > 10 and s.v < 60")
            .when_matched_update({"v": "t.v + s.v", "s.y": "s.name"}, "s.id <> 30")
            .when_matched_update({"p": "'last'"})
            .when_not_matched_insert({"id": "id", "name": "upper(name)"}, "id > 100")
            .when_not_matched_insert({"id": "id * 10", "p": "p"})
        ),
    ),
    "by source": (
        ON + " and t.v < 20",
        lambda m: (
            m.when_matched_update({"name": "s.name"})
            .when_not_matched_by_source_delete("id % 10 = 0 and id < 60")
            .when_not_matched_by_source_update({"v": "-v"}, "id > 80 and p is not null")
        ),
    ),
    "insert only": (ON, lambda m: m.when_not_matched_insert_all(except_cols=["v"])),
    "delete": ("t.p <=> s.p and t.id >= 50", lambda m: m.when_matched_delete()),
    "one side": ("t.p <=> s.p and t.id > s.id and s.id = 55", lambda m: m.when_matched_update({"v": "0"})),
    "no key": ("t.id between s.id and s.id + 1 and s.id in (30, 99)", lambda m: m.when_matched_update({"v": "s.v"})),
    "nothing": ("t.id = s.id and s.v < 0", lambda m: m.when_matched_update({"v": "s.v"})),
}


def merger(folder: str, source: pa.Table, on: str, clauses: Any, **more: Any) -> Any:
    """The merge of the core's builder."""
    return clauses(DeltaTable(folder).merge(source, on, source_alias="s", target_alias="t", **more))


def merged(spark, folder: str, source: pa.Table, on: str, clauses: Any, **more: Any) -> dict[str, Any]:
    """The same merge as Spark jobs."""
    table = DeltaTable(folder)
    found = jobs.merge(spark, table, frame_of(spark, source), merger(folder, source, on, clauses, **more))
    assert table.version() == DeltaTable(folder).version()
    return found


def frame_of(spark, table: pa.Table) -> Any:
    """A data frame of three partitions."""
    return spark.createDataFrame(table).repartition(3)


@pytest.mark.proof
@pytest.mark.parametrize("layout", COMPARED)
def test_merge_is_the_embedded_one(reference, spark, tmp_path, layout):
    core = str(make(tmp_path / "t", layout))
    for name, (on, clauses) in MERGES.items():
        version, ours = DeltaTable(core).version(), twin(core)
        found = merged(spark, ours, source_of(), on, clauses)
        wanted = merger(core, source_of(), on, clauses).execute()
        keys = [key for key in wanted if key.startswith("num_") and key != "num_target_files_added"]
        assert {key: found[key] for key in keys} == {key: wanted[key] for key in keys}, name
        compare(ours, core, version)
        same_ids(reference, ours, core, is_order_known=not found["num_target_rows_inserted"])
    assert rows(reference._load(ours)) == rows(deltafast.spark.read(spark, core))


@pytest.mark.parametrize("layout", usual_and_proof(["plain"], ["vectors and partitions"]))
def test_a_merge_without_broadcasts_is_the_embedded_one(spark, tmp_path, layout):
    core = str(make(tmp_path / "t", layout))
    threshold = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(threshold)
    try:
        spark.conf.set(threshold, "-1")
        for name in ("upsert", "by source"):
            version, ours = DeltaTable(core).version(), twin(core)
            merged(spark, ours, source_of(), *MERGES[name])
            merger(core, source_of(), *MERGES[name]).execute()
            compare(ours, core, version)
    finally:
        spark.conf.set(threshold, before)


def test_several_rows_of_the_source_for_one_of_the_table(spark, tmp_path):
    core = str(make(tmp_path / "t", "vectors and partitions"))
    twice = pa.table({"id": pa.array([3, 3, 60, 61, 61]), "v": pa.array([1.0, 2.0, 3.0, 4.0, 5.0])})
    refused = lambda m: m.when_matched_update({"v": "s.v"}, "s.id < 60").when_matched_delete()  # noqa: E731
    before = sorted(str(file) for file in pathlib.Path(core).rglob("*"))
    for run in (
        lambda: merged(spark, core, twice, ON, refused),
        lambda: merger(core, twice, ON, refused).execute(),
    ):
        with pytest.raises(InvalidArgumentError, match="several rows of the source match row"):
            run()
    assert sorted(str(file) for file in pathlib.Path(core).rglob("*")) == before
    for clauses in (
        lambda m: m.when_matched_update({"v": "s.v"}, "s.v in (2, 3, 4)"),
        lambda m: m.when_matched_delete().when_not_matched_insert({"id": "id", "v": "v"}),
    ):
        version, ours = DeltaTable(core).version(), twin(core)
        merged(spark, ours, twice, ON, clauses)
        merger(core, twice, ON, clauses).execute()
        compare(ours, core, version)


@pytest.mark.proof
def test_the_schema_evolves_with_a_merge(reference, spark, tmp_path):
    core = str(make(tmp_path / "t", "names"))
    source = source_of()
    wide = pa.array([{"x": -n, "y": "new", "z": n} for n in source.column("id").to_pylist()])
    source = source.set_column(3, "s", wide)
    clauses = lambda m: m.when_matched_update_all("s.id < 60").when_matched_delete().when_not_matched_insert_all()  # noqa: E731
    version, ours = DeltaTable(core).version(), twin(core)
    merged(spark, ours, source, ON, clauses, merge_schema=True)
    merger(core, source, ON, clauses, merge_schema=True).execute()
    names = [[field.name for field in DeltaTable(folder).schema().fields] for folder in (ours, core)]
    assert names[0] == names[1]
    assert "extra" in names[0]
    compare(ours, core, version)
    assert rows(reference._load(ours)) == rows(reference._load(core))


def ruled(folder: pathlib.Path) -> str:
    """A table with a constraint, a generated column, a default and columns that must be there."""
    inner = [{"name": "x", "type": "integer", "nullable": False, "metadata": {}}]
    fields = [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "twice", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "id * 2"}},
        {"name": "word", "type": "string", "nullable": True, "metadata": {"CURRENT_DEFAULT": "'ab'"}},
        {"name": "s", "type": {"type": "struct", "fields": inner}, "nullable": True, "metadata": {}},
    ]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
    configuration = {"delta.feature.allowColumnDefaults": "supported"}
    table = DeltaTable.create(folder, schema, configuration=configuration)
    table.alter.add_constraint({"small": "id < 100"})
    write_deltalake(table, pa.table({"id": range(20), "s": [{"x": n} for n in range(20)]}), mode="append")
    return str(folder)


@pytest.mark.proof
def test_the_rules_of_a_table_hold(reference, spark, tmp_path):
    core = ruled(tmp_path / "t")
    before = sorted(str(file) for file in pathlib.Path(core).rglob("*"))
    broken = {
        "small": lambda t: jobs.update(spark, t, {"id": "id + 98"}, "id = 5"),
        "NOT NULL id|small": lambda t: jobs.update(spark, t, {"id": "null"}, "id = 5"),
        "NOT NULL s.x": lambda t: jobs.update(spark, t, {"s.x": "null"}, "id = 5"),
        "Generated Column twice": lambda t: jobs.update(spark, t, {"twice": "5"}, "id = 5"),
        "small|id < 100": lambda t: jobs.merge(
            spark,
            t,
            spark.range(90, 110),
            t.merge(pa.table({"id": [1]}), ON, "s", "t").when_not_matched_insert({"id": "s.id"}),
        ),
    }
    for rule, run in broken.items():
        with pytest.raises(ConstraintViolatedError, match=rule):
            run(DeltaTable(core))
    assert sorted(str(file) for file in pathlib.Path(core).rglob("*")) == before
    version, ours = DeltaTable(core).version(), twin(core)
    jobs.update(spark, DeltaTable(ours), {"id": "id + 30", "s.x": "7"}, "id >= 15")
    DeltaTable(core).update({"id": "id + 30", "s.x": "7"}, predicate="id >= 15")
    compare(ours, core, version)
    source = pa.table({"id": [1, 2, 90], "word": ["x", "y", "z"]})
    clauses = lambda m: m.when_matched_update({"id": "s.id + 50"}).when_not_matched_insert({"id": "s.id"})  # noqa: E731
    version, ours = DeltaTable(core).version(), twin(core)
    merged(spark, ours, source, ON, clauses)
    merger(core, source, ON, clauses).execute()
    compare(ours, core, version)
    last = reference._load(ours).where("id = 90").collect()
    assert [tuple(row) for row in last] == [(90, 180, "ab", None)]


def test_what_only_the_core_can_do_is_refused_by_name(spark, tmp_path):
    metadata = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    fields = [
        {"name": "n", "type": "long", "nullable": True, "metadata": metadata},
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    ]
    identity = DeltaTable.create(
        tmp_path / "identity", Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
    )
    write_deltalake(identity, pa.table({"id": range(5)}), mode="append")
    with pytest.raises(InvalidArgumentError, match="identity column cannot be updated"):
        jobs.update(spark, identity, {"n": "5"})
    assert jobs.update(spark, identity, {"id": "id + 1"}, "id > 2")["num_updated_rows"] == 2
    assert jobs.delete(spark, identity, "id = 1")["num_deleted_rows"] == 1
    found = identity.to_pyarrow_table().to_pylist()
    assert sorted((row["n"], row["id"]) for row in found) == [(1, 0), (3, 2), (4, 4), (5, 5)]
    binary = pa.table({"id": [1, 2], "b": pa.array([b"x", b"y"])})
    write_deltalake(tmp_path / "binary", binary, partition_by=["b"])
    with pytest.raises(DeltaProtocolError, match=r"binary partition column.*engine to driver"):
        jobs.update(spark, DeltaTable(tmp_path / "binary"), {"id": "3"}, "id = 1")
    only = DeltaTable(tmp_path / "binary")
    only.alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(InvalidArgumentError, match="append-only"):
        jobs.delete(spark, only, "id = 1")


@pytest.mark.parametrize("layout", usual_and_proof(["vectors"], ["plain"]))
def test_conflicts_are_those_of_the_embedded_commands(spark, tmp_path, layout):
    make(tmp_path / "t", layout)
    source = pa.table({"id": pa.array([2, 5, 8]), "v": pa.array([1.0, 2.0, 3.0])})
    clauses = lambda m: m.when_matched_update({"v": "s.v"})  # noqa: E731
    commands = {
        "delete": (lambda t: jobs.delete(spark, t, "id = 5"), lambda t: t.delete("id = 5", max_conflict_retries=0)),
        "update": (
            lambda t: jobs.update(spark, t, {"v": "1"}, "id < 20"),
            lambda t: t.update({"v": "1"}, predicate="id < 20", max_conflict_retries=0),
        ),
        "merge": (
            lambda t: jobs.merge(spark, t, frame_of(spark, source), clauses(t.merge(source, ON, "s", "t"))),
            lambda t: clauses(t.merge(source, ON, "s", "t")).execute(),
        ),
    }
    others = {
        "append beside": lambda folder: write_deltalake(folder, table_of(500, 5), mode="append"),
        "append into": lambda folder: write_deltalake(folder, table_of(3, 5), mode="append"),
        "delete of another file": lambda folder: DeltaTable(folder).delete("id = 90"),
        "delete of the same file": lambda folder: DeltaTable(folder).delete("id = 6"),
    }
    verdicts = set()
    for name, (ours, core) in commands.items():
        for other, run in others.items():
            found = []
            for command in (ours, core):
                folder = twin(str(tmp_path / "t"))
                table = DeltaTable(folder)
                run(folder)
                try:
                    command(table)
                    found.append("committed")
                except CommitFailedError as error:
                    found.append(type(error).__name__ + str(error).partition(" `")[0].partition(" part-")[0])
                    assert not list(pathlib.Path(folder).glob("spark-*"))
            assert found[0] == found[1], (name, other)
            verdicts.add(found[0])
    assert len(verdicts) > 1


def test_settings_of_the_session_apply(spark, tmp_path):
    core = str(make(tmp_path / "t", "plain"))
    ours = twin(core)
    before = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    try:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
        jobs.update(spark, DeltaTable(ours), {"v": "1 / (id - id)"}, "id = 4")
        jobs.update(spark, DeltaTable(ours), {"v": "unix_timestamp(timestamp'2020-01-01 00:00:00')"}, "id = 3")
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    DeltaTable(core).update({"v": "NULL"}, predicate="id = 4")
    DeltaTable(core, time_zone="America/St_Johns").update(
        {"v": "unix_timestamp(timestamp'2020-01-01 00:00:00')"}, predicate="id = 3"
    )
    assert content(ours) == content(core)
    assert not leftovers(ours)


@pytest.mark.proof
@pytest.mark.parametrize("layout", ["vectors and partitions", "partitions"])
def test_delta_spark_says_the_same(reference, spark, tmp_path, layout):
    theirs = str(make(tmp_path / "t", layout))
    source = source_of().drop_columns(["extra"])
    frame_of(spark, source).createOrReplaceTempView("source_of_jobs")
    merge = "MERGE INTO delta.`{}` t USING source_of_jobs s ON t.id = s.id WHEN MATCHED AND t.v > 20 THEN DELETE "
    merge += "WHEN MATCHED THEN UPDATE SET v = s.v, name = s.name WHEN NOT MATCHED THEN INSERT *"
    clauses = lambda m: (  # noqa: E731
        m.when_matched_delete("t.v > 20")
        .when_matched_update({"v": "s.v", "name": "s.name"})
        .when_not_matched_insert_all()
    )
    steps = [
        (lambda t: jobs.delete(spark, DeltaTable(t), "id % 10 = 3"), "DELETE FROM delta.`{}` WHERE id % 10 = 3"),
        (
            lambda t: jobs.update(spark, DeltaTable(t), {"v": "v + 1", "p": "'n'"}, "id > 40"),
            "UPDATE delta.`{}` SET v = v + 1, p = 'n' WHERE id > 40",
        ),
        (lambda t: merged(spark, t, source, ON, clauses), merge),
    ]
    known = (
        "numDeletedRows",
        "numUpdatedRows",
        "numCopiedRows",
        "numRemovedFiles",
        "numTargetRowsInserted",
        "numTargetRowsUpdated",
        "numTargetRowsDeleted",
        "numTargetRowsCopied",
        "numTargetFilesRemoved",
        "numSourceRows",
        "numDeletionVectorsAdded",
        "numTargetDeletionVectorsAdded",
    )
    for run, statement in steps:
        ours = twin(theirs)
        run(ours)
        reference.forget()
        reference.sql(statement.format(theirs))
        version = DeltaTable(theirs).version()
        assert content(ours) == content(theirs)
        assert reported_changes(ours, version) == reported_changes(theirs, version)
        said = [DeltaTable(folder).history(1)[0] for folder in (ours, theirs)]
        metrics = [{key: one["operationMetrics"].get(key) for key in known} for one in said]
        assert metrics[0] == metrics[1], statement
        assert said[0]["operation"] == said[1]["operation"]
        assert said[0]["operationParameters"].keys() == said[1]["operationParameters"].keys()
