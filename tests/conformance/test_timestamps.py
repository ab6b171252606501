"""Timestamps with and without time zone, in files, partitions and statistics."""

from __future__ import annotations

import datetime as dt
import json
import zoneinfo
from typing import Any

import pyarrow as pa
import pytest

from tablekit import log

from . import helpers

NOON = dt.datetime(2024, 3, 1, 12, 0, 0, 123456)  # noqa: DTZ001
UTC_NOON = NOON.replace(tzinfo=dt.UTC)


def _one(table: log.Table, kind: str, array: pa.Array, **options: Any) -> None:
    add = table.data("a.parquet", {"id": pa.array(range(len(array)), pa.int64()), "t": array}, **options)
    table.commit(0, log.protocol(features=["timestampNtz"]), log.metadata([("id", "long"), ("t", kind)]), add)


def test_timestamp_ntz_has_no_zone_and_does_not_shift(table: log.Table) -> None:
    _one(table, "timestamp_ntz", pa.array([NOON], pa.timestamp("us")))
    assert helpers.read(table).schema.field("t").type == pa.timestamp("us")
    assert helpers.column(table, "t", time_zone="America/New_York") == [NOON]


def test_timestamp_is_an_instant_in_utc(table: log.Table) -> None:
    _one(table, "timestamp", pa.array([UTC_NOON], pa.timestamp("us", "UTC")))
    assert helpers.read(table).schema.field("t").type == pa.timestamp("us", "UTC")
    assert helpers.column(table, "t") == [UTC_NOON]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_timestamps_of_every_unit_are_microseconds(table: log.Table, unit: str) -> None:
    whole = UTC_NOON.replace(microsecond=123000)
    array = pa.array([whole], pa.timestamp(unit, "UTC"))
    _one(table, "timestamp", array, coerce_timestamps=unit if unit != "ns" else None, version="2.6")
    assert helpers.column(table, "t") == [whole]


@pytest.mark.parametrize(
    "timestamp",
    [
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1582, 10, 15, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ],
    ids=str,
)
def test_far_timestamps_are_exact(table: log.Table, timestamp: dt.datetime) -> None:
    _one(table, "timestamp", pa.array([timestamp], pa.timestamp("us", "UTC")))
    assert helpers.column(table, "t") == [timestamp]


def test_int96_is_read(table: log.Table) -> None:
    array = pa.array(
        [UTC_NOON, dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")
    )
    _one(table, "timestamp", array, use_deprecated_int96_timestamps=True)
    assert helpers.column(table, "t") == array.to_pylist()


def test_int96_of_wall_clocks_is_read(table: log.Table) -> None:
    _one(table, "timestamp_ntz", pa.array([NOON], pa.timestamp("us")), use_deprecated_int96_timestamps=True)
    assert helpers.column(table, "t") == [NOON]


def _stats(table: log.Table, kind: str, low: str, high: str, array: pa.Array) -> None:
    stats = {"numRecords": len(array), "minValues": {"t": low}, "maxValues": {"t": high}, "nullCount": {"t": 0}}
    _one(table, kind, array, add_stats=json.dumps(stats))


@pytest.mark.parametrize(
    ("kind", "zone", "mark"),
    [("timestamp", "UTC", "Z"), ("timestamp_ntz", None, "")],
    ids=["timestamp", "timestamp_ntz"],
)
def test_statistics_are_cut_to_milliseconds_so_the_maximum_may_be_a_millisecond_short(
    table: log.Table, kind: str, zone: str | None, mark: str
) -> None:
    """The file holds 12:00:00.123456, its statistics say .123: the row must not be lost."""
    timestamp = UTC_NOON if zone else NOON
    text = f"2024-03-01T12:00:00.123{mark}"
    _stats(table, kind, text, text, pa.array([timestamp], pa.timestamp("us", zone)))
    word = kind.upper()
    for comparison in [
        "= {}'2024-03-01 12:00:00.123456'",
        ">= {}'2024-03-01 12:00:00.123456'",
        "> {}'2024-03-01 12:00:00.1234'",
    ]:
        assert helpers.filtered(table, "t " + comparison.format(word)) == [0], comparison
    assert helpers.filtered(table, f"t > {word}'2024-03-01 12:00:00.125'") == []
    assert helpers.planned(table, f"t > {word}'2024-03-01 12:00:01'") == []
    assert helpers.planned(table, f"t < {word}'2024-03-01 11:59:59'") == []


def test_statistics_with_an_offset_are_instants(table: log.Table) -> None:
    _stats(
        table,
        "timestamp",
        "2024-03-01T04:00:00.123-08:00",
        "2024-03-01T13:00:00.124+01:00",
        pa.array([UTC_NOON], pa.timestamp("us", "UTC")),
    )
    assert helpers.filtered(table, "t >= TIMESTAMP'2024-03-01 12:00:00Z'") == [0]
    assert helpers.planned(table, "t > TIMESTAMP'2024-03-01 12:30:00Z'") == []


#: Zones whose offsets had seconds before the introduction of standard time.
LOCAL_MEAN_TIMES = [
    "Europe/Berlin",
    "America/Los_Angeles",
    "Europe/Moscow",
    "America/St_Johns",
    "Asia/Kolkata",
    "Africa/Monrovia",
    "Europe/Athens",
]


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("zone", LOCAL_MEAN_TIMES)
def test_bounds_whose_offset_was_cut_to_minutes_still_bound(table: log.Table, zone: str, checkpoint: bool) -> None:
    """delta-spark 3.2 and 3.3 write `+00:53` for Berlin's `+00:53:28`."""
    local = dt.datetime(1850, 1, 1, 1, 1, 1, tzinfo=zoneinfo.ZoneInfo(zone))
    offset = local.utcoffset() or dt.timedelta()
    minutes, seconds = divmod(abs(int(offset.total_seconds())), 60)
    sign = "-" if offset < dt.timedelta() else "+"
    assert seconds, "the zone had no seconds then"
    cut = f"1850-01-01T01:01:01.000{sign}{minutes // 60:02}:{minutes % 60:02}"
    instant = local.astimezone(dt.UTC)
    _stats(table, "timestamp", cut, cut, pa.array([instant], pa.timestamp("us", "UTC")))
    if checkpoint:
        opened = helpers.open_table(table)
        opened.alter.set_table_properties({"delta.checkpoint.writeStatsAsStruct": "true"})
        opened.create_checkpoint()
    opened = helpers.open_table(table)
    for condition in ("=", "<=", ">="):
        assert opened.count(f"t {condition} timestamp'{instant:%Y-%m-%d %H:%M:%S}Z'") == 1, condition
    assert opened.count("t < timestamp'1849-01-01 00:00:00Z'") == 0


def _partition(table: log.Table, kind: str, *values: str) -> None:
    adds = [table.data(f"{i}.parquet", {"id": [i]}, add_partitionValues={"p": v}) for i, v in enumerate(values)]
    table.commit(0, log.protocol(features=["timestampNtz"]), log.metadata([("id", "long"), ("p", kind)], ["p"]), *adds)


def test_partition_timestamps_without_zone_are_read_in_the_zone_the_caller_names(table: log.Table) -> None:
    _partition(table, "timestamp", "2024-03-01 12:00:00")
    assert helpers.column(table, "p") == [dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)]
    assert helpers.column(table, "p", time_zone="America/New_York") == [dt.datetime(2024, 3, 1, 17, tzinfo=dt.UTC)]
    for zone, hour, minute in (("+02:00", 10, 0), ("+05:30", 6, 30), ("-09:30", 21, 30), ("UTC+1", 11, 0)):
        assert helpers.column(table, "p", time_zone=zone) == [dt.datetime(2024, 3, 1, hour, minute, tzinfo=dt.UTC)]


def test_partition_timestamps_with_zone_are_instants(table: log.Table) -> None:
    _partition(table, "timestamp", "2024-03-01T12:00:00.123456Z", "2024-03-01T12:00:00.000000Z")
    expected = [UTC_NOON, UTC_NOON.replace(microsecond=0)]
    assert helpers.column(table, "p", time_zone="America/New_York") == expected


def test_partition_wall_clocks_do_not_shift(table: log.Table) -> None:
    _partition(table, "timestamp_ntz", "2024-03-01 12:00:00.123456")
    assert helpers.column(table, "p", time_zone="America/New_York") == [NOON]


@pytest.mark.parametrize("text", ["2024-03-01 12:00:00.1", "2024-03-01 12:00:00.100", "2024-03-01 12:00:00.100000"])
def test_fractions_of_any_length(table: log.Table, text: str) -> None:
    _partition(table, "timestamp", text)
    assert helpers.column(table, "p") == [dt.datetime(2024, 3, 1, 12, 0, 0, 100000, tzinfo=dt.UTC)]
