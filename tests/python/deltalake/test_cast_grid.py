"""Values of each Arrow type become those of each column type as in `deltalake`, or are refused for a listed reason."""

import datetime as dt
import pathlib
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltafast._deltalake.table as dropin

MIDNIGHT, INSTANT = dt.datetime(2020, 1, 2, tzinfo=dt.UTC), dt.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
COLUMNS: dict[str, pa.Array] = {
    "byte": pa.array([1], pa.int8()),
    "short": pa.array([1], pa.int16()),
    "integer": pa.array([1], pa.int32()),
    "long": pa.array([1], pa.int64()),
    "float": pa.array([1.0], pa.float32()),
    "double": pa.array([1.0], pa.float64()),
    "decimal": pa.array([Decimal("1.00")], pa.decimal128(10, 2)),
    "boolean": pa.array([True]),
    "string": pa.array(["x"]),
    "binary": pa.array([b"x"]),
    "date": pa.array([dt.date(2020, 1, 1)]),
    "timestamp": pa.array([MIDNIGHT], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([MIDNIGHT], pa.timestamp("us")),
}
WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
STRINGS = ["1", "1.50", "2020-01-02", "2020-01-02T03:04:05", "2020-01-02T03:04:05Z", "true", "abc", ""]
VALUES: dict[str, pa.Array] = {
    "null": pa.nulls(2),
    "boolean": pa.array([True, False, None]),
    **{
        f"{kind} {name}": pa.array(values, kind) for kind in WHOLE for name, values in (("0 1", [0, 1]), ("100", [100]))
    },
    **{
        f"{kind} {name}": pa.array([value, None], kind)
        for kind in (pa.float32(), pa.float64())
        for name, value in (("whole", 1.0), ("fraction", 1.5), ("NaN", float("nan")))
    },
    "halffloat": pa.array([1.0, 2.0]).cast(pa.float16()),
    "decimal128 whole": pa.array([Decimal("1.00"), None], pa.decimal128(12, 2)),
    "decimal128 fraction": pa.array([Decimal("1.255")], pa.decimal128(12, 3)),
    "decimal256": pa.array([Decimal("1.00")], pa.decimal256(40, 2)),
    **{f"string {text}": pa.array([text, None]) for text in STRINGS},
    **{f"large_string {text}": pa.array([text], pa.large_string()) for text in ("1", "2020-01-02", "abc")},
    **{f"string_view {text}": pa.array([text], pa.string_view()) for text in ("1", "abc")},
    "dictionary": pa.array(["1", "0"]).dictionary_encode(),
    "binary": pa.array([b"1"]),
    "binary not text": pa.array([b"\xff"]),
    "large_binary": pa.array([b"1"], pa.large_binary()),
    "binary_view": pa.array([b"1"], pa.binary_view()),
    "fixed_binary": pa.array([b"1"], pa.binary(1)),
    "date32": pa.array([dt.date(2020, 1, 2), None]),
    "date64": pa.array([dt.date(2020, 1, 2)], pa.date64()),
    "timestamp[s] midnight": pa.array([MIDNIGHT, None], pa.timestamp("s")),
    "timestamp[ms]": pa.array([INSTANT.replace(microsecond=0)], pa.timestamp("ms")),
    "timestamp[us] midnight": pa.array([MIDNIGHT], pa.timestamp("us")),
    "timestamp[us]": pa.array([INSTANT], pa.timestamp("us")),
    "timestamp[ns] midnight": pa.array([MIDNIGHT], pa.timestamp("ns")),
    "timestamp[ns]": pa.array([1577934245000000001]).cast(pa.timestamp("ns")),
    "timestamp[us, UTC] midnight": pa.array([MIDNIGHT], pa.timestamp("us", "UTC")),
    "timestamp[us, UTC]": pa.array([INSTANT], pa.timestamp("us", "UTC")),
    "timestamp[us, Berlin]": pa.array([MIDNIGHT], pa.timestamp("us", "Europe/Berlin")),
    "list": pa.array([[1]]),
}

INTEGERS = ("byte", "short", "integer", "long")
NUMBERS = tuple(str(kind) for kind in WHOLE)


WHOLE_COLUMNS = (*INTEGERS, "boolean", "timestamp", "timestamp_ntz")
TIMES_OF_DAY = {"timestamp[us]", "timestamp[ms]", "timestamp[ns]", "timestamp[us, UTC]"}
#: What `deltalake` takes and is refused here: why, in which columns, and which values.
REFUSED: list[tuple[str, tuple[str, ...], Callable[[str], bool]]] = [
    ("a fraction would be rounded", ("decimal",), lambda value: value == "decimal128 fraction"),
    ("a fraction would be lost", WHOLE_COLUMNS, lambda value: value.endswith(("fraction", "NaN"))),
    ("a number other than 0 and 1 is no boolean", ("boolean",), lambda value: value.endswith(" 100")),
    ("a time of day would be lost", ("date",), lambda value: value in TIMES_OF_DAY or "T03" in value),
    ("a float has fewer digits than a timestamp", ("float",), lambda value: value.startswith("timestamp")),
    ("a number has no bytes", ("binary",), lambda value: value.split()[0] in NUMBERS),
    ("a list has no text", ("string",), lambda value: value == "list"),
]


#: In the source of a MERGE: a type that no table has is refused; of two others `deltalake` makes other values than
#: in an append, and here they are those of the append.
MERGE_REFUSED = {"decimal256"}
MERGE_AS_APPENDED = {("date64", "long"), ("date64", "string"), ("halffloat", "string")}


def is_refused(value: str, column: str, mode: str) -> bool:
    """Whether it is listed that a value is refused."""
    if mode == "MERGE" and value in MERGE_REFUSED:
        return True
    return any(column in columns and concerns(value) for _, columns, concerns in REFUSED)


MODES: dict[str, Callable[[Any, str, pa.Table], None]] = {
    "append": lambda api, path, data: api.write_deltalake(path, data, mode="append"),
    "merge schema": lambda api, path, data: api.write_deltalake(path, data, mode="append", schema_mode="merge"),
    "overwrite": lambda api, path, data: api.write_deltalake(path, data, mode="overwrite"),
    "predicate": lambda api, path, data: api.write_deltalake(
        path, data, mode="overwrite", predicate="a IS NULL OR a IS NOT NULL"
    ),
    "MERGE": lambda api, path, data: (
        api.DeltaTable(path).merge(data, "false", "s", "t").when_not_matched_insert_all().execute()
    ),
}


def outcome(api: Any, folder: pathlib.Path, column: str, value: str, mode: str) -> list[str] | None:
    """The values of the column afterwards; None if the write is refused."""
    path = str(folder)
    api.write_deltalake(path, pa.table({"a": COLUMNS[column]}))
    try:
        MODES[mode](api, path, pa.table({"a": VALUES[value]}))
    except Exception:  # noqa: BLE001 - classes differ, and are compared elsewhere
        return None
    rows = deltalake.DeltaTable(path).to_pyarrow_table()
    assert rows.schema == pa.schema([pa.field("a", COLUMNS[column].type)])
    return sorted(map(repr, rows.column("a").to_pylist()))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    "mode", [mode if mode == "append" else pytest.param(mode, marks=pytest.mark.proof) for mode in MODES]
)
def test_values_become_what_they_become_in_deltalake(tmp_path: pathlib.Path, mode: str, column: str) -> None:
    other: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, value in enumerate(VALUES):
            theirs = outcome(deltalake, tmp_path / f"theirs{number}", column, value, mode)
            ours = outcome(dropin, tmp_path / f"ours{number}", column, value, mode)
            refused = theirs is not None and ours is None
            differs = theirs is not None and ours is not None and theirs != ours
            if mode == "MERGE" and (value, column) in MERGE_AS_APPENDED:
                assert differs
                continue
            # What `deltalake` refuses may be accepted, where nothing is lost.
            if differs or refused != (theirs is not None and is_refused(value, column, mode)):
                other[value] = (theirs, ours)
    assert other == {}
