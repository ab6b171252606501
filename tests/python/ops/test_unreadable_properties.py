"""Properties that cannot be read never permit a deletion or a forbidden change."""

from __future__ import annotations

import json
import os
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import deltafast
from deltafast import DeltaTable, Transaction, write_deltalake
from deltafast.exceptions import InvalidArgumentError
from support import one_in, one_in_product

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

FILES = "delta.deletedFileRetentionDuration"
LOG = "delta.logRetentionDuration"
#: Values that other writers set without a check. Nothing else is in them than a length of time, or none.
UNREADABLE = ["", "interval 1 month", "P7D", "168h", "7", "interval one week", "interval -1 days", "1.5 days", "\x00"]
READABLE = [
    "interval 604800000000 microseconds",
    "interval 168 hours 0 microseconds",
    "INTERVAL 1 WEEK",
    "7 days",
    "interval 604800.0 seconds",
    "interval 8 days -1 day",
]
DAY = 86_400


def set_raw(path: pathlib.Path, **properties: str) -> None:
    """Set properties as a writer does that does not check them."""
    folder = path / "_delta_log"
    version = max(int(file.stem) for file in folder.glob("*.json"))
    table = DeltaTable(path)
    metadata: dict[str, Any] = json.loads(next(line for line in lines(path) if '"metaData"' in line))
    metadata["metaData"]["configuration"] = dict(table.metadata().configuration) | properties
    (folder / f"{version + 1:020}.json").write_text(json.dumps(metadata) + "\n")


def lines(path: pathlib.Path) -> list[str]:
    return [
        line
        for file in sorted((path / "_delta_log").glob("*.json"), reverse=True)
        for line in file.read_text().splitlines()
    ]


def age(path: pathlib.Path, days: float) -> None:
    timestamp = time.time() - days * DAY
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (timestamp, timestamp))


def files(path: pathlib.Path) -> set[str]:
    return {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}


def sql(path: pathlib.Path, statement: str) -> None:
    deltafast.sql(statement.format(f"delta.`{path}`"))


VACUUMS: dict[str, Callable[[pathlib.Path], object]] = {
    "full": lambda path: DeltaTable(path).vacuum(full=True, dry_run=False),
    "lite": lambda path: DeltaTable(path).vacuum(dry_run=False),
    "forced": lambda path: DeltaTable(path).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True
    ),
    "kept versions": lambda path: DeltaTable(path).vacuum(dry_run=False, keep_versions=[1]),
    "sql": lambda path: sql(path, "VACUUM {} FULL"),
    "sql lite": lambda path: sql(path, "VACUUM {} LITE"),
    "drop feature": lambda path: DeltaTable(path).alter.drop_feature("deletionVectors", truncate_history=False),
}


@pytest.fixture
def replaced(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a table with a removed file and a file of a running append, both some hours old."""
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": "true"}
    write_deltalake(path, {"id": [1, 2, 3]}, configuration=properties)
    DeltaTable(path).delete("id = 1")
    write_deltalake(path, {"id": [4]}, mode="overwrite")
    (path / "running.parquet").write_bytes(b"PAR1")
    age(path, 0.5)
    return path


@pytest.mark.parametrize(("value", "vacuum"), one_in_product(5, UNREADABLE, VACUUMS))
def test_a_retention_that_cannot_be_read_deletes_nothing_and_is_named(replaced, value, vacuum):
    set_raw(replaced, **{FILES: value})
    before = {name for name in files(replaced) if not name.startswith("_delta_log")}
    with pytest.raises(InvalidArgumentError, match=FILES):
        VACUUMS[vacuum](replaced)
    assert before <= files(replaced)
    assert DeltaTable(replaced).to_pyarrow_table().to_pylist() == [{"id": 4}]


@pytest.mark.parametrize("value", one_in(2, READABLE))
def test_a_retention_in_every_form_of_a_calendar_interval_is_read(replaced, value):
    set_raw(replaced, **{FILES: value})
    assert DeltaTable(replaced).vacuum(full=True) == []
    with pytest.raises(InvalidArgumentError, match="shorter than the table's 168"):
        DeltaTable(replaced).vacuum(retention_hours=167)
    age(replaced, 8)
    assert "running.parquet" in DeltaTable(replaced).vacuum(full=True)


def test_a_checkpoint_keeps_tombstones_if_their_retention_cannot_be_read(replaced):
    set_raw(replaced, **{FILES: "1 month"})
    before = DeltaTable(replaced).create_checkpoint()
    del before
    for commit in (replaced / "_delta_log").glob("*.json"):
        commit.unlink()
    set_back = DeltaTable(replaced)
    set_back.alter.set_table_properties({FILES: "interval 0 hours"})
    # The removed files and vectors are still listed, so that a vacuum finds them by the log.
    assert len(set_back.vacuum(retention_hours=0)) >= 2


@pytest.mark.parametrize("value", one_in(3, UNREADABLE))
def test_a_log_retention_that_cannot_be_read_keeps_every_version(tmp_path, value):
    path = tmp_path / "t"
    write_deltalake(path, {"id": [0]}, configuration={"delta.checkpointInterval": "3"})
    set_raw(path, **{LOG: value})
    age(path, 400)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(8):
            write_deltalake(path, {"id": [n]}, mode="append")
    assert len(list((path / "_delta_log").glob("*.json"))) == 10
    assert DeltaTable(path, version=0).to_pyarrow_table().num_rows == 1
    messages = [str(warning.message) for warning in caught]
    assert messages
    assert all(LOG in message and "is committed" in message for message in messages), messages
    for call in (DeltaTable(path).cleanup_metadata, lambda: DeltaTable(path).cleanup_metadata(dry_run=True)):
        with pytest.raises(InvalidArgumentError, match=LOG):
            call()


def test_a_log_cleanup_refuses_a_negative_retention(tmp_path):
    from datetime import timedelta

    write_deltalake(tmp_path / "t", {"id": [0]})
    with pytest.raises(InvalidArgumentError, match="negative"):
        DeltaTable(tmp_path / "t").cleanup_metadata(retention=timedelta(days=-1))


def test_a_cleanup_setting_that_is_not_a_boolean_disables_automatic_cleanups(tmp_path):
    path = tmp_path / "t"
    write_deltalake(path, {"id": [0]}, configuration={"delta.checkpointInterval": "2"})
    set_raw(path, **{"delta.enableExpiredLogCleanup": "no"})
    age(path, 400)
    for n in range(4):
        write_deltalake(path, {"id": [n]}, mode="append")
    assert DeltaTable(path, version=0).version() == 0


@pytest.mark.parametrize("value", ["x", "", "4.5", "99999999999999999999"])
def test_a_protected_version_that_cannot_be_read_protects_the_log(tmp_path, value):
    path = tmp_path / "t"
    write_deltalake(path, {"id": [0]}, configuration={"delta.feature.checkpointProtection": "supported"})
    set_raw(path, **{"delta.requireCheckpointProtectionBeforeVersion": value})
    write_deltalake(path, {"id": [1]}, mode="append")
    age(path, 400)
    table = DeltaTable(path)
    table.create_checkpoint()
    for call in (
        table.cleanup_metadata,
        lambda: table.alter.drop_feature("checkpointProtection", truncate_history=True),
    ):
        with pytest.raises(InvalidArgumentError, match="requireCheckpointProtectionBeforeVersion"):
            call()
    assert DeltaTable(path, version=0).version() == 0


@pytest.mark.parametrize("value", ["interval -30 days", "nonsense", ""])
def test_a_transaction_retention_that_cannot_be_read_forgets_no_batch(tmp_path, value):
    path = tmp_path / "t"
    commit = deltafast.CommitProperties(app_transactions=[Transaction("stream", 7)])
    write_deltalake(path, {"id": [0]}, commit_properties=commit)
    set_raw(path, **{"delta.setTransactionRetentionDuration": value})
    assert DeltaTable(path).transaction_version("stream") == 7
    DeltaTable(path).create_checkpoint()
    assert DeltaTable(path).transaction_version("stream") == 7


SWITCHES = [
    "delta.appendOnly",
    "delta.enableChangeDataFeed",
    "delta.enableRowTracking",
    "delta.enableInCommitTimestamps",
]
SWITCH_VALUES = ["yes", "1", "", " true"]
CHANGES: dict[str, Callable[[pathlib.Path], object]] = {
    "append": lambda path: write_deltalake(path, {"id": [9]}, mode="append"),
    "overwrite": lambda path: write_deltalake(path, {"id": [9]}, mode="overwrite"),
    "delete": lambda path: DeltaTable(path).delete("id = 1"),
    "delete all": lambda path: DeltaTable(path).delete(),
    "update": lambda path: DeltaTable(path).update({"id": "id + 1"}),
    "optimize": lambda path: DeltaTable(path).optimize.compact(),
    "restore": lambda path: DeltaTable(path).restore(0),
    "sql": lambda path: sql(path, "DELETE FROM {} WHERE id = 1"),
}


@pytest.mark.parametrize(("key", "value", "change"), one_in_product(7, SWITCHES, SWITCH_VALUES, CHANGES))
def test_a_switch_that_is_neither_true_nor_false_permits_no_change(tmp_path, key, value, change):
    path = tmp_path / "t"
    feature = {"delta.appendOnly": "appendOnly", "delta.enableChangeDataFeed": "changeDataFeed"}.get(key)
    supported = {"delta.feature.rowTracking": "supported", "delta.feature.inCommitTimestamp": "supported"}
    write_deltalake(path, {"id": [1, 2]}, configuration={} if feature else supported)
    write_deltalake(path, {"id": [3]}, mode="append")
    set_raw(path, **{key: value})
    version = DeltaTable(path).version()
    with pytest.raises(InvalidArgumentError, match=key):
        CHANGES[change](path)
    assert DeltaTable(path).version() == version
    # The remedy that the message names.
    DeltaTable(path).alter.set_table_properties({key: "false"})
    write_deltalake(path, {"id": [4]}, mode="append")
