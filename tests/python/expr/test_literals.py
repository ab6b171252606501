"""Dates, timestamps and numbers in text, and casts of constants."""

# Times without a zone are what is tested.
# ruff: noqa: DTZ001

import datetime as dt
import decimal
import random
import zoneinfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltafast._expr import bind_expression, literals, types
from deltafast._expr.context import ExpressionContext
from deltafast._expr.tree import Lit
from python.expr.conftest import table


def cast(value, source, to, zone="UTC", *, exact=False):
    lit = literals.fold_cast(Lit(value, source), to, zone, exact=exact)
    return None if lit is None else lit.value


def parse_date(text):
    return cast(text, types.STRING, types.DATE)


def parse_timestamp(text, zone):
    return cast(text, types.STRING, types.TIMESTAMP_NTZ if zone is None else types.TIMESTAMP, zone or "UTC")


@given(st.dates())
def test_days_are_pythons_days(day):
    days = day.toordinal() - dt.date(1970, 1, 1).toordinal()
    assert parse_date(day.isoformat()) == days
    assert literals.format_date(days) == day.isoformat()


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_day_is_written_and_read_back(days):
    assert parse_date(literals.format_date(days)) == days


@given(st.datetimes())
def test_timestamps_are_pythons_timestamps(timestamp):
    micros = (timestamp - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert parse_timestamp(timestamp.isoformat(" "), None) == micros
    assert parse_timestamp(timestamp.isoformat(), "UTC") == micros
    assert parse_timestamp(literals.format_timestamp(micros), "UTC") == micros


@given(
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    st.sampled_from(["America/New_York", "Asia/Kolkata", "Pacific/Apia"]),
)
def test_a_local_time_is_the_earlier_of_two_and_after_a_gap(timestamp, zone):
    micros = parse_timestamp(timestamp.isoformat(" "), zone)
    aware = timestamp.replace(tzinfo=zoneinfo.ZoneInfo(zone))
    assert micros == (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-1",
        "24-01-01",
        "2024-01-01x",
        "2024/01/01",
        "2024-02-30",
        "2024-00-01",
        "99999999-01-01",
        "nan",
        "+-2024",
    ],
)
def test_strings_that_are_no_dates_are_not(text):
    assert (parse_date(text) is None) == (text != "2024-1")


@pytest.mark.parametrize("text", ["12:30", "2024-01-01 24:00:00", "2024-01-01T", "T12:00:00", "now"])
def test_a_string_that_is_no_timestamp_or_one_of_today_stays_a_cast(text):
    assert parse_timestamp(text, "UTC") is None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**9), max_value=10**9))
def test_a_float_is_rounded_once(value):
    assert cast(f"{value:f}", types.STRING, types.FLOAT) == float(np.float32(str(value)))


def test_a_float_between_two_singles_is_not_rounded_twice():
    # As a double this is exactly between two singles; the digits say it is above.
    lit = literals.number("1.000000059604644775390626", "F")
    assert lit == Lit(float(np.nextafter(np.float32(1), np.float32(2))), types.FLOAT)


@pytest.mark.parametrize(
    ("value", "source", "to", "result", "is_exact"),
    [
        (5, types.LONG, types.BYTE, 5, True),
        (300, types.LONG, types.BYTE, None, True),
        (2**53 + 1, types.LONG, types.DOUBLE, 2.0**53, False),
        (2**24 + 1, types.INTEGER, types.FLOAT, 2.0**24, False),
        (decimal.Decimal("2.50"), types.Decimal(3, 2), types.Decimal(2, 1), decimal.Decimal("2.5"), True),
        (decimal.Decimal("2.55"), types.Decimal(3, 2), types.Decimal(2, 1), decimal.Decimal("2.6"), False),
        (decimal.Decimal("2.5"), types.Decimal(2, 1), types.INTEGER, 2, False),
        (decimal.Decimal("99.5"), types.Decimal(3, 1), types.Decimal(2, 1), None, True),
        (0.1, types.DOUBLE, types.FLOAT, float(np.float32(0.1)), False),
        (0.5, types.DOUBLE, types.FLOAT, 0.5, True),
        (float("inf"), types.DOUBLE, types.LONG, None, True),
        (" 12 ", types.STRING, types.INTEGER, 12, True),
        ("12.0", types.STRING, types.INTEGER, None, True),
        ("1.555", types.STRING, types.Decimal(5, 2), decimal.Decimal("1.56"), False),
        ("1e3", types.STRING, types.DOUBLE, 1000.0, True),
        ("1d", types.STRING, types.DOUBLE, 1.0, True),
        ("Infinity", types.STRING, types.DOUBLE, float("inf"), True),
        ("YES", types.STRING, types.BOOLEAN, True, True),
        ("on", types.STRING, types.BOOLEAN, None, True),
        ("é", types.STRING, types.BINARY, "é".encode(), True),
        (True, types.BOOLEAN, types.STRING, "true", True),
        (-1, types.TIMESTAMP_NTZ, types.DATE, -1, False),
        (0, types.DATE, types.STRING, "1970-01-01", True),
        (10**7, types.DATE, types.STRING, "+29349-01-26", True),
        (1.5, types.DOUBLE, types.STRING, "1.5", True),
    ],
)
def test_a_constant_is_cast_as_a_column_is(value, source, to, result, is_exact):
    assert cast(value, source, to) == result
    assert cast(value, source, to, exact=True) == (result if is_exact else None)


def test_a_null_is_of_any_type():
    assert literals.fold_cast(Lit(None, types.VOID), types.DATE, "UTC") == Lit(None, types.DATE)


@pytest.mark.parametrize("name", ["UTC", "z", "GMT", "+01:00", "-9", "UTC+5:30", "Europe/Paris", "Japan", "Etc/GMT+12"])
def test_zones_are_known_by_name_and_by_offset(name):
    assert literals.time_zone(name).utcoffset(dt.datetime(2024, 1, 1)) is not None


def test_a_double_is_the_number_that_was_written():
    from deltafast._core import evaluate

    dice = random.Random(0)
    values = [dice.uniform(-200, 200) for _ in range(100)] + [1.4848674535751343, 190.24620232112346]
    rows = pa.table({"none": pa.nulls(1)})
    trees = [bind_expression(f"{value!r}D", table(), ExpressionContext()) for value in values]
    assert [pa.table(evaluate(tree, rows))["value"][0].as_py() for tree in trees] == values
