"""In-Commit Timestamps: the time of a commit stands in the commit."""

from __future__ import annotations

import datetime as dt
import os
from typing import Any

import pyarrow as pa

from tablekit import log

from . import helpers

BASE = 1_700_000_000_000


def _info(millis: int, **more: Any) -> log.Action:
    return {"commitInfo": {"inCommitTimestamp": millis, "timestamp": millis + 777, "operation": "WRITE", **more}}


def _table(table: log.Table, *millis: int, configuration: dict[str, str] | None = None) -> None:
    """Write a table with in-commit timestamps from the first commit; file times are far away."""
    settings = {"delta.enableInCommitTimestamps": "true"} | (configuration or {})
    for version, at in enumerate(millis):
        head = (
            [log.protocol(writer_only=["inCommitTimestamp"]), log.metadata(configuration=settings)]
            if version == 0
            else []
        )
        add = table.ids(f"{version}.parquet", 10 * version, 10 * version + 10)
        file = table.commit(version, _info(at), *head, add)
        os.utime(file, (1_000_000_000 - version, 1_000_000_000 - version))


def _timestamp(millis: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(millis / 1000, dt.UTC)


def test_the_timestamp_of_a_version_is_its_in_commit_timestamp(table: log.Table) -> None:
    _table(table, BASE, BASE + 1000)
    history = helpers.open_table(table).history()
    assert [entry["timestamp"] for entry in history] == [BASE + 1000, BASE]


def test_time_travel_goes_by_in_commit_timestamps(table: log.Table) -> None:
    _table(table, BASE, BASE + 1000, BASE + 2000)
    assert helpers.as_of(table, _timestamp(BASE)) == 0
    assert helpers.as_of(table, _timestamp(BASE + 999)) == 0
    assert helpers.as_of(table, _timestamp(BASE + 1000)) == 1
    assert helpers.as_of(table, _timestamp(BASE + 1500)) == 1


def test_before_the_enablement_version_file_times_count(three: log.Table) -> None:
    """Enabled in version 3: earlier versions keep the times of their files."""
    for version in range(3):
        at = BASE // 1000 - 1000 + version
        os.utime(three.commit_file(version), (at, at))
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "3",
        "delta.inCommitTimestampEnablementTimestamp": str(BASE),
    }
    three.commit(
        3, _info(BASE), log.protocol(writer_only=["inCommitTimestamp"]), log.metadata(configuration=configuration)
    )
    three.commit(4, _info(BASE + 1000), three.ids("4.parquet", 30, 40))
    stamps = {entry["version"]: entry["timestamp"] for entry in helpers.open_table(three).history()}
    assert stamps == {0: BASE - 1_000_000, 1: BASE - 999_000, 2: BASE - 998_000, 3: BASE, 4: BASE + 1000}
    assert helpers.as_of(three, _timestamp(BASE - 998_500)) == 1
    assert helpers.as_of(three, _timestamp(BASE - 1)) == 2
    assert helpers.as_of(three, _timestamp(BASE + 500)) == 3
    assert helpers.as_of(three, _timestamp(BASE + 1000)) == 4


def test_the_feed_reports_in_commit_timestamps(table: log.Table) -> None:
    _table(table, BASE, BASE + 1000, configuration={"delta.enableChangeDataFeed": "true"})
    feed = pa.table(helpers.open_table(table).load_cdf(starting_version=0))
    stamps = set(
        zip(feed.column("_commit_version").to_pylist(), feed.column("_commit_timestamp").to_pylist(), strict=True)
    )
    assert {(v, t.replace(tzinfo=dt.UTC)) for v, t in stamps} == {(0, _timestamp(BASE)), (1, _timestamp(BASE + 1000))}


def test_supported_but_not_enabled_means_file_times(table: log.Table) -> None:
    file = table.commit(
        0, _info(BASE), log.protocol(writer_only=["inCommitTimestamp"]), log.metadata(), table.ids("a", 0, 1)
    )
    os.utime(file, (1_600_000_000, 1_600_000_000))
    assert helpers.open_table(table).timestamp() == _timestamp(1_600_000_000_000)
