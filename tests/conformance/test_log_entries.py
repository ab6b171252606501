"""Delta Log Entries: versions, gaps, hidden files, time travel."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

import pytest

import deltafast
from tablekit import log

from . import helpers

if TYPE_CHECKING:
    import pathlib

BASE = 1_700_000_000


def _at(table: log.Table, *seconds: float) -> None:
    """Set the modification times of the commits."""
    for version, second in enumerate(seconds):
        os.utime(table.commit_file(version), (second, second))


def _timestamp(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def test_every_version_can_be_read(three: log.Table) -> None:
    for version in range(3):
        assert helpers.ids(three, version=version) == list(range(10 * version + 10))


def test_versions_are_numbers_of_twenty_digits(three: log.Table) -> None:
    """Other names are no commits."""
    (three.log / "3.json").write_text("{}")
    (three.log / "000000000000000000003.json").write_text("{}")
    assert helpers.open_table(three).version() == 2


def test_hidden_and_temporary_files_are_ignored(three: log.Table) -> None:
    for name in [
        ".00000000000000000003.json.crc",
        "_commit_1.tmp",
        ".s3-optimization-0",
        "00000000000000000003.json.tmp",
    ]:
        (three.log / name).write_text("junk")
    assert helpers.ids(three) == list(range(30))


def test_a_gap_is_an_error_that_names_the_missing_version(three: log.Table) -> None:
    three.drop_commits(1, 1)
    with pytest.raises(deltafast.exceptions.CorruptLogError, match="00000000000000000001"):
        helpers.open_table(three)


def test_a_gap_below_the_checkpoint_is_harmless(three: log.Table) -> None:
    three.checkpoint(2)
    three.drop_commits(0, 1)
    assert helpers.ids(three) == list(range(30))


def test_a_version_that_does_not_exist_is_an_error_that_names_the_newest(three: log.Table) -> None:
    with pytest.raises(deltafast.exceptions.VersionNotFoundError, match="7") as caught:
        helpers.open_table(three, version=7)
    assert "2" in str(caught.value)
    assert caught.value.version == 7


def test_a_version_whose_commits_are_gone_is_an_error(three: log.Table) -> None:
    three.checkpoint(2)
    three.drop_commits(0, 1)
    with pytest.raises(deltafast.exceptions.VersionNotFoundError) as caught:
        helpers.open_table(three, version=1)
    assert caught.value.version == 1


def test_a_timestamp_means_the_last_version_at_or_before_it(three: log.Table) -> None:
    _at(three, BASE, BASE + 100, BASE + 200)
    assert helpers.as_of(three, _timestamp(BASE)) == 0
    assert helpers.as_of(three, _timestamp(BASE + 99)) == 0
    assert helpers.as_of(three, _timestamp(BASE + 100)) == 1
    assert helpers.as_of(three, _timestamp(BASE + 150)) == 1
    assert helpers.as_of(three, _timestamp(BASE + 200)) == 2


def test_a_timestamp_may_be_text(three: log.Table) -> None:
    _at(three, BASE, BASE + 100, BASE + 200)
    assert helpers.as_of(three, _timestamp(BASE + 150).isoformat()) == 1
    assert helpers.as_of(three, _timestamp(BASE + 150).strftime("%Y-%m-%dT%H:%M:%SZ")) == 1


def test_a_timestamp_before_the_first_commit_is_an_error(three: log.Table) -> None:
    _at(three, BASE, BASE + 100, BASE + 200)
    with pytest.raises(deltafast.exceptions.DeltaError):
        helpers.as_of(three, _timestamp(BASE - 1))


def test_file_times_that_go_back_are_made_monotonic(three: log.Table) -> None:
    """Each commit is at least a millisecond after the one before."""
    _at(three, BASE + 1000, BASE, BASE + 10)
    times = {entry["version"]: entry["timestamp"] for entry in helpers.open_table(three).history()}
    assert times == {0: (BASE + 1000) * 1000, 1: (BASE + 1000) * 1000 + 1, 2: (BASE + 1000) * 1000 + 2}
    assert helpers.as_of(three, dt.datetime.fromtimestamp(BASE + 1000, dt.UTC) + dt.timedelta(milliseconds=1)) == 1


def test_the_history_is_newest_first(three: log.Table) -> None:
    three.commit(3, {"commitInfo": {"operation": "OPTIMIZE", "timestamp": 5, "operationParameters": {"a": 1}}})
    history = helpers.open_table(three).history()
    assert [entry["version"] for entry in history] == [3, 2, 1, 0]
    assert history[0]["operation"] == "OPTIMIZE"
    assert [entry["version"] for entry in helpers.open_table(three).history(2)] == [3, 2]


def test_the_history_has_the_times_by_which_versions_are_found(three: log.Table) -> None:
    """The time of the commit file, whatever the writer's clock said."""
    _at(three, BASE, BASE + 100, BASE + 200)
    file = three.commit(3, {"commitInfo": {"operation": "WRITE", "timestamp": 5}})
    os.utime(file, (BASE + 300, BASE + 300))
    opened = helpers.open_table(three)
    times = {entry["version"]: entry["timestamp"] for entry in opened.history()}
    assert times == {version: (BASE + 100 * version) * 1000 for version in range(4)}
    assert opened.timestamp() == _timestamp(BASE + 300)
    for version, time in times.items():
        assert helpers.as_of(three, _timestamp(time // 1000)) == version


def test_the_newest_time_of_the_history_can_be_restored(three: log.Table) -> None:
    """Also where the times of files go back, and not a millisecond later."""
    _at(three, BASE + 1000, BASE, BASE + 10)
    opened = helpers.open_table(three)
    newest = opened.history(1)[0]["timestamp"]
    assert newest == (BASE + 1000) * 1000 + 2
    with pytest.raises(deltafast.exceptions.InvalidArgumentError, match="cannot be restored"):
        opened.restore(dt.datetime.fromtimestamp((newest + 1) / 1000, dt.UTC))
    opened.restore(dt.datetime.fromtimestamp(newest / 1000, dt.UTC))


def test_a_handle_stays_at_its_version_until_it_is_updated(three: log.Table) -> None:
    opened = helpers.open_table(three)
    three.commit(3, three.ids("part-3.parquet", 30, 40))
    assert opened.version() == 2
    assert opened.to_pyarrow_table().num_rows == 30
    opened.update_incremental()
    assert opened.version() == 3
    assert opened.to_pyarrow_table().num_rows == 40


def test_an_update_applies_removes(three: log.Table) -> None:
    opened = helpers.open_table(three)
    assert opened.get_add_actions().num_rows == 3
    three.commit(3, log.remove("part-0.parquet"), three.ids("part-3.parquet", 30, 40))
    three.commit(4, log.remove("part-3.parquet"))
    opened.update_incremental()
    assert sorted(opened.to_pyarrow_table().column("id").to_pylist()) == list(range(10, 30))


def test_an_update_over_a_new_checkpoint_and_cleaned_commits(three: log.Table) -> None:
    """The commits between the handle and the newest version may be gone by now."""
    opened = helpers.open_table(three)
    for version in range(3, 8):
        three.commit(version, three.ids(f"part-{version}.parquet", version * 10, version * 10 + 10))
    three.checkpoint(6)
    three.last_checkpoint(6)
    three.drop_commits(0, 5)
    opened.update_incremental()
    assert opened.version() == 7
    assert sorted(opened.to_pyarrow_table().column("id").to_pylist()) == list(range(80))


def test_a_folder_without_log_is_no_table(tmp_path: pathlib.Path) -> None:
    assert not deltafast.DeltaTable.is_deltatable(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        deltafast.DeltaTable(str(tmp_path))


def test_a_table_is_a_table(three: log.Table) -> None:
    assert deltafast.DeltaTable.is_deltatable(str(three))
