"""Features that are dropped or switched on where a table has files and a history already."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltafast import CommitProperties, DeltaTable, TableFeatures, Transaction, write_deltalake
from deltafast.exceptions import CommitFailedError, DeltaProtocolError, DeltaWarning, InvalidArgumentError
from tablekit import thrift

if TYPE_CHECKING:
    import pathlib

VECTORS = {"delta.enableDeletionVectors": "true"}
NAMES = {"delta.columnMapping.mode": "name"}
IDS = {"delta.enableRowTracking": "true"}
PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"
PLAIN = ["appendOnly", "invariants"]


def data(start: int = 0, count: int = 6) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "s": [f"s{n}" for n in numbers], "p": ["ab"[n % 2] for n in numbers]}
    )


def rows(table: DeltaTable) -> list[dict[str, Any]]:
    return sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


def ids(table: DeltaTable) -> dict[int, tuple[int, int]]:
    found = pa.table(table.scan(metadata_columns=["row_id", "row_commit_version"])).to_pylist()
    return {row["id"]: (row["row_id"], row["row_commit_version"]) for row in found}


def actions(folder: pathlib.Path, version: int) -> list[dict[str, Any]]:
    text = (folder / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def operations(table: DeltaTable, since: int) -> list[str]:
    return [entry["operation"] for entry in reversed(table.history()) if entry["version"] > since]


def age(folder: pathlib.Path, hours: float) -> None:
    """Make all files of the log older."""
    then = time.time() - hours * 3600
    for file in (folder / "_delta_log").rglob("*"):
        os.utime(file, (then, then))


def checkpoints(folder: pathlib.Path) -> list[int]:
    return sorted(int(file.name[:20]) for file in (folder / "_delta_log").glob("*.checkpoint*"))


def protected(table: DeltaTable, folder: pathlib.Path, feature: str, since: int) -> None:
    """The feature was dropped by the newest version, behind barriers, and the history is protected."""
    version = table.version()
    assert operations(table, since)[-4:] == ["Empty Commit"] * 3 + ["DROP FEATURE"]
    entry = table.history(1)[0]["operationParameters"]
    assert (entry["featureName"], str(entry["truncateHistory"]).lower()) == (feature, "false")
    protocol = table.protocol()
    assert feature not in (protocol.writer_features or []) + (protocol.reader_features or [])
    assert "checkpointProtection" in (protocol.writer_features or [])
    assert table.metadata().configuration[PROTECTED] == str(version)
    assert set(range(version - 3, version + 1)) <= set(checkpoints(folder))
    assert DeltaTable(folder).protocol() == protocol


def test_deletion_vectors_are_purged(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration=VECTORS)
    write_deltalake(tmp_path, data(10), mode="append")
    table = DeltaTable(tmp_path)
    table.delete("id = 2 or id > 100")
    before, since = rows(table), table.version()
    (vector,) = tmp_path.glob("deletion_vector_*.bin")
    with_transaction = CommitProperties(app_transactions=[Transaction("job", 7)])
    table.alter.drop_feature(TableFeatures.DeletionVectors, commit_properties=with_transaction)
    assert operations(table, since)[:3] == ["UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones"]
    protected(table, tmp_path, "deletionVectors", since)
    assert (table.protocol().min_reader_version, table.protocol().reader_features) == (1, None)
    assert sorted(table.protocol().writer_features or []) == sorted([*PLAIN, "checkpointProtection"])
    assert table.metadata().configuration.keys() == {PROTECTED}
    assert table.transaction_version("job") == 7
    # Only the file with a vector was written anew, and nothing that a feed would tell of.
    reorg = actions(tmp_path, since + 2)
    assert [len([a for a in reorg if kind in a]) for kind in ("add", "remove")] == [1, 1]
    assert not any(next(iter(a.values())).get("dataChange") for a in reorg if "commitInfo" not in a)
    assert rows(table) == before == rows(DeltaTable(tmp_path, version=since))
    assert sorted(row["id"] for row in deltalake.DeltaTable(tmp_path).to_pyarrow_table().to_pylist()) == [
        row["id"] for row in before
    ]
    # A writer that knows of no vectors keeps the file of those that older versions need.
    assert [a["remove"]["path"] for a in actions(tmp_path, since + 3) if "remove" in a] == [vector.name]
    assert vector.name not in table.vacuum(dry_run=True)
    gone = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True)
    assert vector.name in gone
    assert all(name.startswith(("deletion_vector", "part-")) for name in gone)
    # Writing goes on, without vectors.
    table.delete("id = 3")
    write_deltalake(table, data(50), mode="append")
    assert [row["id"] for row in rows(DeltaTable(tmp_path))] == [0, 1, 4, 5, *range(10, 16), *range(50, 56)]
    assert not any("deletionVector" in str(a) for a in actions(tmp_path, table.version() - 1) if "add" in a)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_get_their_own_names_back(tmp_path: pathlib.Path, mode: str) -> None:
    configuration = VECTORS | IDS | {"delta.columnMapping.mode": mode, "delta.dataSkippingStatsColumns": "id"}
    write_deltalake(tmp_path, data(), partition_by="p", configuration=configuration)
    table = DeltaTable(tmp_path)
    table.alter.rename_column("s", "text")
    table.alter.rename_column("p", "part")
    table.delete("id = 3")
    before, numbers, since = rows(table), ids(table), table.version()
    table.alter.drop_feature("columnmapping")
    assert operations(table, since)[0] == "REMOVE COLUMN MAPPING"
    protected(table, tmp_path, "columnMapping", since)
    configuration = table.metadata().configuration
    assert not any(key.startswith("delta.columnMapping") for key in configuration)
    assert all(not field.metadata for field in table.schema().fields)
    assert rows(table) == before
    assert {number: row_id for number, (row_id, _) in ids(table).items()} == {n: i for n, (i, _) in numbers.items()}
    for file in table.file_uris():
        assert {"id", "text"} <= set(pq.read_schema(file).names)
        assert "/part=" in file
    assert {action["add"]["partitionValues"]["part"] for action in actions(tmp_path, since + 1) if "add" in action} == {
        "a",
        "b",
    }
    write_deltalake(table, data(20).rename_columns(["id", "text", "part"]), mode="append")
    assert len(rows(DeltaTable(tmp_path))) == len(before) + 6
    assert rows(DeltaTable(tmp_path, version=since)) == before


def test_a_clustered_table_stays_clustered_without_mapping(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), cluster_by=["s"], configuration=NAMES)
    table = DeltaTable(tmp_path)
    table.alter.rename_column("s", "t")
    assert table.detail()["clusteringColumns"] == ["t"]
    table.alter.drop_feature("columnMapping")
    assert DeltaTable(tmp_path).detail()["clusteringColumns"] == ["t"]
    domain = next(a["domainMetadata"] for v in range(2, 4) for a in actions(tmp_path, v) if "domainMetadata" in a)
    assert json.loads(domain["configuration"])["clusteringColumns"] == [["t"]]


def test_names_that_need_the_mapping_keep_it(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, pa.table({"a b": [1]}), configuration=NAMES)
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match="the column `a b` has one of the characters"):
        table.alter.drop_feature("columnMapping")
    with pytest.raises(InvalidArgumentError, match="drop the feature `columnMapping`"):
        table.alter.set_table_properties({"delta.columnMapping.mode": "none"})
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize("feature", ["typeWidening", "typeWidening-preview"])
def test_files_of_former_types_are_rewritten(tmp_path: pathlib.Path, feature: str) -> None:
    item = pa.list_(pa.struct([("x", pa.int16())]))
    narrow = pa.table({"id": pa.array([1, 2], pa.int32()), "l": pa.array([[{"x": 1}], None], item), "s": ["a", "b"]})
    configuration = {f"delta.feature.{feature}": "supported", "delta.enableTypeWidening": "true"}
    write_deltalake(tmp_path, narrow, configuration=configuration)
    table = DeltaTable(tmp_path)
    table.alter.set_column_type("id", "long")
    table.alter.set_column_type("l.element.x", "integer")
    write_deltalake(table, pa.table({"id": [3], "s": ["c"]}), mode="append")
    before, since = rows(table), table.version()
    (newer,) = [a["add"]["path"] for a in actions(tmp_path, since) if "add" in a]
    table.alter.drop_feature(feature)
    assert operations(table, since)[:3] == ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE"]
    protected(table, tmp_path, feature, since)
    assert table.metadata().configuration.keys() == {PROTECTED}
    assert "typeChanges" not in json.dumps(
        [action for action in actions(tmp_path, table.version()) if "metaData" in action]
    )
    assert rows(table) == before
    files = {file.rsplit("/", 1)[-1]: pq.read_schema(file) for file in table.file_uris()}
    assert newer in files
    assert len(files) == 2
    for schema in files.values():
        assert schema.field("id").type == pa.int64()
        if "l" in schema.names:
            assert schema.field("l").type.value_type.field("x").type == pa.int32()


def test_checkpoints_of_v2_give_way(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration={"delta.checkpointPolicy": "v2"})
    DeltaTable(tmp_path).create_checkpoint()
    table = DeltaTable(tmp_path)
    before = rows(table)
    table.alter.drop_feature("v2Checkpoint")
    protected(table, tmp_path, "v2Checkpoint", 0)
    assert table.metadata().configuration["delta.checkpointPolicy"] == "classic"
    names = [file.name for file in (tmp_path / "_delta_log").glob("*.checkpoint*") if int(file.name[:20]) > 0]
    assert names
    assert all(name[20:] == ".checkpoint.parquet" for name in names)
    last = json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())
    assert last["version"] == table.version()
    assert "v2Checkpoint" not in last
    assert rows(DeltaTable(tmp_path)) == before == rows(DeltaTable(tmp_path, version=0))


def test_a_feature_without_traces_is_protected_all_the_same(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration={"delta.feature.vacuumProtocolCheck": "supported"})
    table = DeltaTable(tmp_path)
    table.alter.drop_feature("vacuumProtocolCheck")
    assert operations(table, 0) == ["Empty Commit"] * 3 + ["DROP FEATURE"]
    protected(table, tmp_path, "vacuumProtocolCheck", 0)


def test_row_ids_are_taken_away(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration=IDS | VECTORS)
    table = DeltaTable(tmp_path)
    table.delete("id = 1")
    before = rows(table)
    with pytest.raises(InvalidArgumentError, match="leave `truncate_history` out"):
        table.alter.drop_feature("rowTracking", truncate_history=True)
    table.alter.drop_feature("rowTracking")
    assert operations(table, 1) == ["SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL", "DROP FEATURE"]
    assert table.metadata().configuration == VECTORS
    assert sorted(table.protocol().writer_features or []) == sorted([*PLAIN, "deletionVectors", "domainMetadata"])
    (add,) = [a["add"] for a in actions(tmp_path, 3) if "add" in a]
    assert not {"baseRowId", "defaultRowCommitVersion"} & add.keys()
    assert add["dataChange"] is False
    assert json.loads(add["stats"])["numRecords"] == 6
    assert add["deletionVector"]["cardinality"] == 1
    (domain,) = [a["domainMetadata"] for a in actions(tmp_path, 4) if "domainMetadata" in a]
    assert (domain["domain"], domain["removed"]) == ("delta.rowTracking", True)
    table.create_checkpoint()
    assert rows(DeltaTable(tmp_path)) == before
    table.alter.drop_feature("domainMetadata")
    assert "domainMetadata" not in (table.protocol().writer_features or [])
    # It can be had again, and begins anew.
    table.alter.set_table_properties(IDS)
    assert sorted(number for number, _ in ids(table).values()) == [0, 2, 3, 4, 5]


def test_domains_go_with_their_feature(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration={"delta.feature.domainMetadata": "supported"})
    table = DeltaTable(tmp_path)
    table.alter.set_domain_metadata("mine", "{}")
    table.alter.drop_feature("domainMetadata")
    assert operations(table, 1) == ["DOMAIN METADATA CLEANUP", "DROP FEATURE"]
    assert table.domain_metadata() == {}
    assert table.protocol().min_writer_version == 2


def test_a_property_goes_with_its_feature(tmp_path: pathlib.Path) -> None:
    configuration = {"delta.enableMaterializePartitionColumnsFeature": "true"}
    write_deltalake(tmp_path, data(), partition_by="p", configuration=configuration)
    table = DeltaTable(tmp_path)
    assert "materializePartitionColumns" in (table.protocol().writer_features or [])
    table.alter.drop_feature("materializePartitionColumns")
    assert (table.version(), table.metadata().configuration) == (1, {})
    assert table.protocol().min_writer_version == 2


@pytest.mark.parametrize(
    ("feature", "instead"),
    [
        ("appendOnly", "set `delta.appendOnly` to `false`"),
        ("changeDataFeed", "set `delta.enableChangeDataFeed` to `false`"),
        ("clustering", "cluster by no columns"),
        ("generatedColumns", "asks nothing of writers"),
        ("identityColumns", "asks nothing of writers"),
        ("allowColumnDefaults", "asks nothing of writers"),
        ("invariants", "asks nothing of writers"),
        ("timestampNtz", "a new table"),
        ("variantType", "a new table"),
        ("variantShredding", "a new table"),
        ("icebergCompatV1", "set `delta.enableIcebergCompatV1` to `false`"),
        ("icebergCompatV2", "set `delta.enableIcebergCompatV2` to `false`"),
    ],
)
def test_what_no_engine_drops_is_refused_by_name(tmp_path: pathlib.Path, feature: str, instead: str) -> None:
    table = DeltaTable.create(tmp_path, data().schema, configuration={f"delta.feature.{feature}": "supported"})
    with pytest.raises(DeltaProtocolError, match=f"the feature `{feature}` cannot be dropped.*{instead}") as caught:
        table.alter.drop_feature(feature)
    assert caught.value.feature == feature
    assert DeltaTable(tmp_path).version() == 0


def test_what_another_feature_needs_stays(tmp_path: pathlib.Path) -> None:
    table = DeltaTable.create(tmp_path, data().schema, configuration={"delta.enableIcebergCompatV2": "true"})
    with pytest.raises(InvalidArgumentError, match=r"`columnMapping` cannot be dropped while .*`icebergCompatV2`"):
        table.alter.drop_feature("columnMapping")


def test_history_is_truncated_once_it_is_old_enough(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration=VECTORS)
    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    before = rows(table)
    with pytest.raises(InvalidArgumentError, match=r"no longer in use but was until now: .* older than 24 hours"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    newest = DeltaTable(tmp_path)
    assert operations(newest, 1) == ["UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones", "Empty Commit"]
    assert newest.protocol().reader_features == ["deletionVectors"]
    with pytest.raises(InvalidArgumentError, match="older versions up to 3 use it"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    age(tmp_path, 23)
    with pytest.raises(InvalidArgumentError, match="older versions up to 3 use it"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    age(tmp_path, 25)
    table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert table.metadata().configuration == {}
    assert table.history(1)[0]["operationParameters"]["truncateHistory"] in (True, "true")
    assert rows(table) == before == rows(DeltaTable(tmp_path))
    commits = sorted(int(file.stem) for file in (tmp_path / "_delta_log").glob("*.json"))
    assert commits[0] > 5
    assert rows(DeltaTable(tmp_path, version=commits[0])) == before


def test_the_time_of_truncation_is_the_tables(tmp_path: pathlib.Path) -> None:
    configuration = {
        "delta.checkpointPolicy": "v2",
        "delta.dropFeatureTruncateHistory.retentionDuration": "interval 2 days",
    }
    write_deltalake(tmp_path, data(), configuration=configuration)
    table = DeltaTable(tmp_path)
    table.create_checkpoint()
    with pytest.raises(InvalidArgumentError, match="older than 2 days"):
        table.alter.drop_feature("v2Checkpoint", truncate_history=True)
    age(tmp_path, 47)
    with pytest.raises(InvalidArgumentError, match="older versions up to 0 use it"):
        table.alter.drop_feature("v2Checkpoint", truncate_history=True)
    age(tmp_path, 49)
    table.alter.drop_feature("v2Checkpoint", truncate_history=True)
    assert table.protocol().min_reader_version == 1
    assert rows(DeltaTable(tmp_path)) == rows(table)


def test_protection_goes_with_the_history_it_protects(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration=VECTORS)
    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    table.alter.drop_feature("deletionVectors")
    before, version = rows(table), table.version()
    with pytest.raises(InvalidArgumentError, match="pass truncate_history=True"):
        table.alter.drop_feature("checkpointProtection")
    with pytest.raises(InvalidArgumentError, match=f"the history before version {version} .* 24 hours"):
        table.alter.drop_feature("checkpointProtection", truncate_history=True)
    # Until all of it is old nothing of it goes.
    assert (tmp_path / "_delta_log" / f"{0:020}.json").exists()
    age(tmp_path, 25)
    table.alter.drop_feature("checkpointProtection", truncate_history=True)
    assert (table.protocol().min_writer_version, table.metadata().configuration) == (2, {})
    assert rows(table) == before == rows(DeltaTable(tmp_path))
    assert not (tmp_path / "_delta_log" / f"{version - 1:020}.json").exists()


def test_writers_alongside_a_drop_keep_their_rows(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration=VECTORS)
    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    stop, done, failures = threading.Event(), [], []

    def append() -> None:
        number = 1000
        while not stop.is_set():
            try:
                write_deltalake(tmp_path, data(number, 1), mode="append")
                done.append(number)
            except CommitFailedError:  # the drop changed protocol or metadata meanwhile
                continue
            except Exception as error:  # noqa: BLE001
                failures.append(error)
                return
            number += 1

    thread = threading.Thread(target=append)
    thread.start()
    try:
        table.alter.drop_feature("deletionVectors")
    finally:
        stop.set()
        thread.join()
    assert not failures
    assert [row["id"] for row in rows(DeltaTable(tmp_path))] == [0, 1, 3, 4, 5, *done]
    assert table.metadata().configuration[PROTECTED] == str(table.version())


def test_a_writer_who_has_not_seen_the_drop_must_look(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration={"delta.feature.vacuumProtocolCheck": "supported"})
    stale = DeltaTable(tmp_path)
    DeltaTable(tmp_path).alter.drop_feature("vacuumProtocolCheck")
    with pytest.raises(CommitFailedError, match="dropped the feature `vacuumProtocolCheck`"):
        write_deltalake(stale, data(10), mode="append")


# --- row ids for a table with files ----------------------------------------------------------------------------------


def test_row_tracking_is_switched_on_for_a_table_with_files(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data())
    write_deltalake(tmp_path, data(10), mode="append")
    table, stale, appending = DeltaTable(tmp_path), DeltaTable(tmp_path), DeltaTable(tmp_path)
    before = rows(table)
    table.alter.set_table_properties(IDS | {"note": "x"})
    assert operations(table, 1) == ["UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES"]
    assert {"rowTracking", "domainMetadata"} <= set(table.protocol().writer_features or [])
    configuration = table.metadata().configuration
    assert configuration["delta.enableRowTracking"] == "true"
    assert configuration["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    adds = [a["add"] for a in actions(tmp_path, 3) if "add" in a]
    assert sorted(add["baseRowId"] for add in adds) == [0, 6]
    assert {(add["defaultRowCommitVersion"], add["dataChange"]) for add in adds} == {(3, False)}
    assert rows(table) == before
    assert sorted(number for number, _ in ids(table).values()) == list(range(12))
    # Handles from before: an append goes on, a change of files that have got ids too unless other properties were set.
    with pytest.raises(CommitFailedError):
        write_deltalake(appending, data(20), mode="append")
    with pytest.raises(CommitFailedError):
        stale.delete("id = 0")
    version = table.version()
    table.alter.set_table_properties(IDS)
    assert table.version() == version


def test_handles_from_before_go_on_alongside_a_backfill(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data())
    table, deleting, appending = (DeltaTable(tmp_path) for _ in range(3))
    table.alter.set_table_properties(IDS)
    write_deltalake(appending, data(10), mode="append")
    deleting.delete("id = 0")
    assert [row["id"] for row in rows(DeltaTable(tmp_path))] == [*range(1, 6), *range(10, 16)]
    found = [number for number, _ in ids(DeltaTable(tmp_path)).values()]
    assert len(set(found)) == 11
    removed = next(a["remove"] for a in actions(tmp_path, DeltaTable(tmp_path).version()) if "remove" in a)
    assert (removed["baseRowId"], removed["defaultRowCommitVersion"]) == (0, 2)


def test_appends_neither_fail_nor_get_lost_alongside_a_backfill(tmp_path: pathlib.Path) -> None:
    for number in range(5):
        write_deltalake(tmp_path, data(number * 10), mode="append")
    stop, failures = threading.Event(), []
    written: list[int] = []

    def append(start: int) -> None:
        number = start
        try:
            while not stop.is_set():
                write_deltalake(tmp_path, data(number, 1), mode="append")
                written.append(number)
                number += 1
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=append, args=(1000 * n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    try:
        while len(written) < 6 and not failures:
            time.sleep(0.005)
        DeltaTable(tmp_path).alter.set_table_properties(IDS)
        enough = len(written) + 6
        while len(written) < enough and not failures:
            time.sleep(0.005)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    table = DeltaTable(tmp_path)
    found = ids(table)
    assert sorted(found) == sorted([n * 10 + k for n in range(5) for k in range(6)] + written)
    assert len({number for number, _ in found.values()}) == len(found)
    assert all(file is not None for file in found.values())


def test_rows_are_counted_where_statistics_do_not(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data())
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = '{"minValues":{"id":0}}'
    log.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    for crc in (tmp_path / "_delta_log").glob("*.crc"):
        crc.unlink()
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties(IDS)
    (add,) = [a["add"] for a in actions(tmp_path, 2) if "add" in a]
    assert json.loads(add["stats"]) == {"minValues": {"id": 0}, "numRecords": 6}
    assert sorted(number for number, _ in ids(table).values()) == list(range(6))


def test_statistics_of_a_checkpoint_survive_a_backfill(tmp_path: pathlib.Path) -> None:
    parsed = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    write_deltalake(tmp_path, data(), configuration=parsed)
    table = DeltaTable(tmp_path)
    before = next(a["add"]["stats"] for a in actions(tmp_path, 0) if "add" in a)
    table.create_checkpoint()
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties(IDS)
    (add,) = [a["add"] for a in actions(tmp_path, 2) if "add" in a]
    stats, expected = json.loads(add["stats"]), json.loads(before)
    assert [stats[key] for key in ("numRecords", "minValues", "maxValues", "nullCount")] == [
        expected[key] for key in ("numRecords", "minValues", "maxValues", "nullCount")
    ]


def test_suspended_row_tracking_is_no_row_tracking(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration={"delta.rowTrackingSuspended": "true"})
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match="cannot both be true"):
        table.alter.set_table_properties(IDS)
    with pytest.raises(InvalidArgumentError, match=r"`delta.rowTrackingSuspended` is true"):
        table.alter.set_table_properties(IDS | {"delta.rowTrackingSuspended": "false"})
    assert DeltaTable(tmp_path).version() == 0
    table.alter.set_table_properties({"delta.rowTrackingSuspended": "false"})
    table.alter.set_table_properties(IDS)
    assert sorted(number for number, _ in ids(table).values()) == list(range(6))


# --- Iceberg ---------------------------------------------------------------------------------------------------------

V1, V2 = ({f"delta.enableIcebergCompatV{n}": "true"} for n in (1, 2))


@pytest.mark.parametrize("switch", [V1, V2], ids=["v1", "v2"])
def test_iceberg_can_be_switched_on_for_a_table_with_files(tmp_path: pathlib.Path, switch: dict[str, str]) -> None:
    write_deltalake(tmp_path, data(), configuration=NAMES)
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties(switch)
    (feature,) = (key.removeprefix("delta.enableI") for key in switch)
    assert f"i{feature}" in (table.protocol().writer_features or [])
    write_deltalake(table, data(10), mode="append")
    assert len(rows(DeltaTable(tmp_path))) == 12


def test_columns_get_ids_in_the_same_call(tmp_path: pathlib.Path) -> None:
    nested = data().append_column("l", pa.array([[1]] * 6, pa.list_(pa.int64())))
    write_deltalake(tmp_path, nested)
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"needs `delta.columnMapping.mode` .* set it in the same call"):
        table.alter.set_table_properties(V2)
    table.alter.set_table_properties(NAMES | V2)
    field = table.schema().fields[3]
    assert field.metadata["delta.columnMapping.nested.ids"] == {"l.element": 5}
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "5"
    assert rows(table) == sorted(nested.to_pylist(), key=lambda row: row["id"])


def test_files_that_iceberg_cannot_read_are_named(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path / "dv", data(), configuration=NAMES | VECTORS)
    table = DeltaTable(tmp_path / "dv")
    table.delete("id = 1")
    with pytest.raises(InvalidArgumentError, match=r"set `delta.enableDeletionVectors` to `false` first"):
        table.alter.set_table_properties(V2)
    table.alter.set_table_properties({"delta.enableDeletionVectors": "false"})
    with pytest.raises(DeltaProtocolError, match=r"UPGRADE UNIFORM .* rewrites such files") as caught:
        table.alter.set_table_properties(V2)
    assert caught.value.feature == "icebergCompatV2"
    with pytest.raises(InvalidArgumentError, match="the table has the feature `deletionVectors`; drop it first"):
        table.alter.set_table_properties(V1)
    table.alter.drop_feature("deletionVectors")
    table.alter.set_table_properties(V1)
    with pytest.raises(InvalidArgumentError, match="cannot both be true"):
        table.alter.set_table_properties(V2)

    write_deltalake(tmp_path / "parts", data(), partition_by="p", configuration=NAMES)
    table = DeltaTable(tmp_path / "parts")
    with pytest.raises(DeltaProtocolError, match="does not hold the partition columns; rewrite the table") as caught:
        table.alter.set_table_properties(V1)
    assert caught.value.feature == "icebergCompatV1"
    write_deltalake(
        table,
        table.to_pyarrow_table(),
        mode="overwrite",
    )
    table.alter.set_table_properties(V2)
    materialized = {"delta.enableIcebergCompatV2": "false"}
    table.alter.set_table_properties(materialized)
    with pytest.raises(DeltaProtocolError, match="rewrite the table"):
        table.alter.set_table_properties(V1)
    table.alter.set_table_properties(V2)
    write_deltalake(table, table.to_pyarrow_table(), mode="overwrite")
    table.alter.set_table_properties(materialized)
    table.alter.set_table_properties(V1)
    assert len(rows(DeltaTable(tmp_path / "parts"))) == 6


UNIFORM = pytest.mark.filterwarnings("ignore:.*an engine that has a converter:deltafast.DeltaWarning")


@UNIFORM
def test_an_upgrade_rewrites_what_iceberg_cannot_read(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), partition_by="p", configuration=VECTORS | IDS)
    table = DeltaTable(tmp_path)
    table.delete("id = 1")
    before, numbers, files = rows(table), ids(table), len(table.file_uris())
    metrics = table.optimize.upgrade_uniform(
        commit_properties=CommitProperties(app_transactions=[Transaction("me", 7)])
    )
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (files, files)
    assert operations(table, 1) == ["REORG TABLE UPGRADE UNIFORM", "REORG", "SET TBLPROPERTIES"]
    assert [any("txn" in action for action in actions(tmp_path, n)) for n in (2, 3, 4)] == [
        False,
        False,
        True,
    ]
    assert table.transaction_version("me") == 7
    table = DeltaTable(tmp_path)
    assert rows(table) == before
    assert ids(table) == numbers
    assert table.metadata().configuration["delta.universalFormat.enabledFormats"] == "iceberg"
    for path in table.file_uris():
        assert pq.read_schema(path).names[:3] == ["id", "s", "p"]
    write_deltalake(table, data(10), mode="append")
    tagged = [a["add"]["tags"] for version in (3, 5) for a in actions(tmp_path, version) if "add" in a]
    assert tagged == [{"ICEBERG_COMPAT_VERSION": "2"}] * len(tagged)
    assert DeltaTable(tmp_path).optimize.upgrade_uniform()["numFilesRemoved"] == 0
    assert DeltaTable(tmp_path).version() == 5


@UNIFORM
def test_an_upgrade_that_stopped_goes_on(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(tmp_path, data())
    table = DeltaTable(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(type(table.optimize), "_run", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            table.optimize.upgrade_uniform()
    write_deltalake(tmp_path, data(10), mode="append")
    table = DeltaTable(tmp_path)
    assert table.optimize.upgrade_uniform()["numFilesRemoved"] == 1
    assert operations(table, 0) == ["REORG TABLE UPGRADE UNIFORM", "WRITE", "REORG", "SET TBLPROPERTIES"]
    assert len(rows(table)) == 12


@UNIFORM
def test_what_is_not_for_iceberg_is_not_upgraded(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, data(), configuration=VECTORS)
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match="the table has the feature `deletionVectors`; drop it first"):
        table.optimize.upgrade_uniform(1)
    with pytest.raises(DeltaProtocolError, match="1 and 2 are supported"):
        table.optimize.upgrade_uniform(3)
    with pytest.raises(InvalidArgumentError, match="no other format"):
        table.alter.set_table_properties({"delta.universalFormat.enabledFormats": "hudi"})
    assert table.version() == 0


def test_types_that_iceberg_lacks_are_refused(tmp_path: pathlib.Path) -> None:
    table = pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    write_deltalake(tmp_path, table, configuration=NAMES)
    altered = DeltaTable(tmp_path)
    with pytest.raises(
        InvalidArgumentError,
        match=r"the type map<string,bigint> of the column `m` is not for it|the type map<string,long>",
    ):
        altered.alter.set_table_properties(V1)
    altered.alter.set_table_properties(V2)
    assert altered.metadata().configuration["delta.enableIcebergCompatV2"] == "true"


# --- what tables promise and files hold -------------------------------------------------------------------------------


@pytest.mark.parametrize("formats", ["iceberg", "hudi", "iceberg,hudi"])
def test_each_handle_warns_of_formats_that_it_does_not_write(tmp_path: pathlib.Path, formats: str) -> None:
    write_deltalake(tmp_path, data())
    first = tmp_path / "_delta_log" / f"{0:020}.json"
    metadata = next(action for action in actions(tmp_path, 0) if "metaData" in action)
    metadata["metaData"]["configuration"] = {"delta.universalFormat.enabledFormats": formats}
    first.with_name(f"{1:020}.json").write_text(json.dumps(metadata) + "\n")
    message = f"no metadata for {formats.replace(',', ' and ')}: an engine that has a converter"
    for _ in range(2):
        table = DeltaTable(tmp_path)
        with pytest.warns(DeltaWarning, match=message):
            write_deltalake(table, data(10), mode="append")
        # Any further warning would be an error.
        write_deltalake(table, data(20), mode="append")
        table.delete("id = 20")
    with pytest.warns(DeltaWarning, match=message):
        write_deltalake(tmp_path, data(30), mode="append")


@pytest.mark.parametrize("version", ["1.0.0", "2.0.0", "2.12.0"])
def test_the_version_of_the_parquet_format_is_kept_to(tmp_path: pathlib.Path, version: str) -> None:
    write_deltalake(tmp_path, data(count=1000), configuration={"delta.parquet.format.version": version, **VECTORS})
    table = DeltaTable(tmp_path)
    write_deltalake(table, data(1000, 1000), mode="append")
    is_second = version.startswith("2")
    for path in tmp_path.glob("*.parquet"):
        first = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
        header, _ = thrift.decode_prefix(path.read_bytes()[first:])
        # PageType.DATA_PAGE_V2 is 3, DATA_PAGE is 0.
        assert header[1][1] == (3 if is_second else 0)
    table.delete("id = 3")
    table.optimize.compact()
    files = list(tmp_path.glob("*.parquet"))
    assert len(files) == 3
    for path in files:
        file = pq.ParquetFile(path)
        assert file.metadata.format_version == ("2.6" if is_second else "1.0")
        assert file.read().num_rows == file.metadata.num_rows
    assert [row["id"] for row in rows(table)] == [n for n in range(2000) if n != 3]


@pytest.mark.parametrize("value", ["true", "false"])
def test_partition_columns_are_written_into_files_where_the_table_says_so(tmp_path: pathlib.Path, value: str) -> None:
    key = "delta.writePartitionColumnsToParquet"
    write_deltalake(tmp_path, data(), partition_by="p", configuration={key: value})
    table = DeltaTable(tmp_path)
    write_deltalake(table, data(10), mode="append")
    table.update({"s": "'new'"}, predicate="id = 1")
    table.optimize.compact()
    names = ["id", "s", "p"] if value == "true" else ["id", "s"]
    for path in tmp_path.rglob("*.parquet"):
        file = pq.ParquetFile(path).read()
        assert file.column_names == names
        if value == "true":
            assert set(file.column("p").to_pylist()) == {path.parent.name.removeprefix("p=")}
    assert [row["p"] for row in rows(table)] == [row["p"] for row in [*data().to_pylist(), *data(10).to_pylist()]]
    table.alter.set_table_properties({key: "false"})
    write_deltalake(table, data(20), mode="append")
    assert len(rows(table)) == 18


@pytest.mark.parametrize("switch", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("by", [["s"], [], ["p", "s"]])
def test_iceberg_keeps_the_names_of_partition_columns(
    tmp_path: pathlib.Path, switch: dict[str, str], by: list[str]
) -> None:
    rows_of_two = pa.table({"id": [1, 2], "p": ["a", "b"], "s": ["x", "y"]})
    write_deltalake(tmp_path, rows_of_two, partition_by=["p"], configuration=NAMES | switch)
    table = DeltaTable(tmp_path)
    files = sorted(tmp_path.rglob("*.parquet"))
    (key,) = switch
    refusal = rf"`{key}` is true, and Iceberg cannot follow a change of the partition columns from p to .*set `{key}`"
    with pytest.raises(InvalidArgumentError, match=refusal):
        write_deltalake(table, rows_of_two, mode="overwrite", schema_mode="overwrite", partition_by=by)
    with pytest.raises(InvalidArgumentError, match=refusal):
        DeltaTable.create(tmp_path, rows_of_two.schema, mode="overwrite", partition_by=by, configuration=NAMES | switch)
    with pytest.raises(InvalidArgumentError, match=refusal):
        table.alter.rename_column("p", "q")
    assert DeltaTable(tmp_path).version() == 0
    assert sorted(tmp_path.rglob("*.parquet")) == files, "no row was written"
    write_deltalake(table, rows_of_two, mode="overwrite", schema_mode="overwrite", partition_by=["p"])
    assert DeltaTable(tmp_path).metadata().partition_columns == ["p"]
