"""Partition Value Serialization: text in the log, typed in the rows."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pytest

from tablekit import log

from . import helpers

D = decimal.Decimal
VALUES: list[tuple[str, str, Any]] = [
    ("string", "plain", "plain"),
    ("string", "with space/%2F=:", "with space/%2F=:"),
    ("string", "\N{SNOWMAN}\N{GRINNING FACE}", "\N{SNOWMAN}\N{GRINNING FACE}"),
    ("string", "null", "null"),
    ("byte", "-128", -128),
    ("short", "32767", 32767),
    ("integer", "-2147483648", -2147483648),
    ("long", "9223372036854775807", 9223372036854775807),
    ("float", "1.5", 1.5),
    ("float", "1.0E10", 1.0e10),
    ("double", "-1.7976931348623157E308", -1.7976931348623157e308),
    ("double", "Infinity", math.inf),
    ("double", "-Infinity", -math.inf),
    ("decimal(10,2)", "12.30", D("12.30")),
    ("decimal(10,2)", "12.3", D("12.30")),
    ("decimal(10,2)", "-7", D("-7.00")),
    ("decimal(38,18)", "12345678901234567890.123456789012345678", D("12345678901234567890.123456789012345678")),
    ("decimal(20,0)", "1E+10", D("10000000000")),
    ("date", "1970-01-01", dt.date(1970, 1, 1)),
    ("date", "0001-01-01", dt.date(1, 1, 1)),
    ("date", "9999-12-31", dt.date(9999, 12, 31)),
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("timestamp", "1970-01-01 00:00:00", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
    ("timestamp", "1970-01-01 00:00:00.123456", dt.datetime(1970, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC)),
    ("timestamp", "1970-01-01T00:00:00.123456Z", dt.datetime(1970, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC)),
    ("binary", "\u0001\u0002\u0003", b"\x01\x02\x03"),
    ("binary", "abc", b"abc"),
]


def _table(table: log.Table, kind: str, *values: str | None) -> None:
    adds = [table.data(f"{i}.parquet", {"id": [i]}, add_partitionValues={"p": v}) for i, v in enumerate(values)]
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("p", kind)], ["p"]), *adds)


@pytest.mark.parametrize(("kind", "text", "value"), VALUES, ids=[f"{k} {t}" for k, t, _ in VALUES])
def test_a_value_of_each_type(table: log.Table, kind: str, text: str, value: Any) -> None:
    _table(table, kind, text)
    (found,) = helpers.column(table, "p")
    assert found == value
    assert type(found) is type(value)


def test_nan(table: log.Table) -> None:
    _table(table, "double", "NaN")
    (found,) = helpers.column(table, "p")
    assert math.isnan(found)


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in VALUES}))
def test_null_and_the_empty_string_are_null_for_every_type(table: log.Table, kind: str) -> None:
    _table(table, kind, None, "")
    assert helpers.column(table, "p") == [None, None]


def test_hive_default_partition_in_the_path_means_nothing(table: log.Table) -> None:
    add = table.data("p=__HIVE_DEFAULT_PARTITION__/a.parquet", {"id": [1]}, add_partitionValues={"p": None})
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("p", "string")], ["p"]), add)
    assert helpers.column(table, "p") == [None]


def test_hive_default_partition_in_the_log_is_a_text_as_it_stands(table: log.Table) -> None:
    _table(table, "string", "__HIVE_DEFAULT_PARTITION__", None)
    assert sorted(helpers.column(table, "p"), key=str) == [None, "__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize("kind", ["integer", "date", "timestamp", "boolean", "double"])
def test_hive_default_partition_in_the_log_is_null_where_it_is_no_value(table: log.Table, kind: str) -> None:
    _table(table, kind, "__HIVE_DEFAULT_PARTITION__")
    assert helpers.column(table, "p") == [None]


def test_several_partition_columns_anywhere_in_the_schema(table: log.Table) -> None:
    add = table.data("a.parquet", {"id": [1, 2]}, add_partitionValues={"p": "5", "q": "x"})
    table.commit(0, log.protocol(), log.metadata([("p", "integer"), ("id", "long"), ("q", "string")], ["q", "p"]), add)
    found = helpers.read(table)
    assert found.column_names == ["p", "id", "q"]
    assert found.sort_by("id").to_pydict() == {"p": [5, 5], "id": [1, 2], "q": ["x", "x"]}


def test_the_value_of_the_log_wins_over_a_column_in_the_file(table: log.Table) -> None:
    """`materializePartitionColumns` writes the column into the file too."""
    add = table.data("a.parquet", {"id": [1], "p": [99]}, add_partitionValues={"p": "5"})
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("p", "integer")], ["p"]), add)
    assert helpers.column(table, "p") == [5]


def test_a_read_of_partition_columns_alone(table: log.Table) -> None:
    _table(table, "integer", "1", "2", "2", None)
    found = helpers.open_table(table).to_pyarrow_table(columns=["p"]).column("p").to_pylist()
    assert sorted(found, key=lambda v: v or 0) == [None, 1, 2, 2]


def test_partitions_are_listed_once(table: log.Table) -> None:
    _table(table, "integer", "1", "2", "2", None)
    found = [p["p"] for p in helpers.open_table(table).partitions()]
    assert sorted(found, key=lambda v: v or "") == [None, "1", "2"]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("p = 2", [1, 2]),
        ("p <> 2", [0]),
        ("p > 1", [1, 2]),
        ("p in (1, 7)", [0]),
        ("p not in (1, 7)", [1, 2]),
        ("p is null", [3]),
        ("p is not null", [0, 1, 2]),
        ("p <=> null", [3]),
        ("not (p = 1)", [1, 2]),
        ("p = 1 or p is null", [0, 3]),
        ("p = 2 and id > 1", [2]),
        ("p + 1 = 3", [1, 2]),
        ("p between 1 and 1", [0]),
        ("cast(p as string) = '1'", [0]),
        ("coalesce(p, 7) = 7", [3]),
    ],
)
def test_partition_predicates_prune_exactly(table: log.Table, predicate: str, expected: list[int]) -> None:
    _table(table, "integer", "1", "2", "2", None)
    assert helpers.filtered(table, predicate) == expected
    assert helpers.planned(table, predicate.replace(" and id > 1", "")) == sorted(
        f"{i}.parquet" for i in (expected if "id" not in predicate else [1, 2])
    )
