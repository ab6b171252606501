"""Per-file Statistics: they leave out files that cannot match, and never one that can."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

import deltafast
from tablekit import log

from . import helpers

POINT = {
    "type": "struct",
    "fields": [
        {"name": "x", "type": "long", "nullable": True, "metadata": {}},
        {"name": "y z", "type": "string", "nullable": True, "metadata": {}},
    ],
}


def _table(
    table: log.Table, kind: Any, arrays: list[pa.Array], stats: list[Any], features: list[str] | None = None
) -> None:
    """Write a file for each array of the column `v`, with the statistics given as Python values or text."""
    adds = []
    for i, (array, stat) in enumerate(zip(arrays, stats, strict=True)):
        text = stat if isinstance(stat, str) or stat is None else json.dumps(stat)
        data = {"id": pa.array(range(100 * i, 100 * i + len(array)), pa.int64()), "v": array}
        adds.append(table.data(f"{i}.parquet", data, add_stats=text))
    protocol = log.protocol(features=features) if features else log.protocol()
    table.commit(0, protocol, log.metadata([("id", "long"), ("v", kind)]), *adds)


def _bounds(low: Any, high: Any, nulls: int | None = 0, rows: int = 2, **more: Any) -> dict[str, Any]:
    out = {"numRecords": rows, "minValues": {"v": low}, "maxValues": {"v": high}, **more}
    return out if nulls is None else out | {"nullCount": {"v": nulls}}


def _numbers(table: log.Table) -> None:
    """Write three files: 1 to 2, 5 to 6, and one of 9 and null."""
    arrays = [pa.array(v, pa.int64()) for v in ([1, 2], [5, 6], [9, None])]
    _table(table, "long", arrays, [_bounds(1, 2), _bounds(5, 6), _bounds(9, 9, nulls=1)])


@pytest.mark.parametrize(
    ("predicate", "files", "ids"),
    [
        ("v = 5", [1], [100]),
        ("v = 3", [], []),
        ("v <> 5", [0, 1, 2], [0, 1, 101, 200]),
        ("v < 5", [0], [0, 1]),
        ("v <= 5", [0, 1], [0, 1, 100]),
        ("v > 2", [1, 2], [100, 101, 200]),
        ("v >= 6", [1, 2], [101, 200]),
        ("5 = v", [1], [100]),
        ("5 > v", [0], [0, 1]),
        ("v in (2, 9)", [0, 2], [1, 200]),
        ("v in (3, 4)", [], []),
        ("v not in (1, 2)", [0, 1, 2], [100, 101, 200]),
        ("v between 2 and 5", [0, 1], [1, 100]),
        ("v is null", [2], [201]),
        ("v is not null", [0, 1, 2], [0, 1, 100, 101, 200]),
        ("v <=> 5", [1], [100]),
        ("v <=> null", [2], [201]),
        ("v = 5 or v = 9", [1, 2], [100, 200]),
        ("v > 1 and v < 6", [0, 1], [1, 100]),
        ("not (v < 5)", [1, 2], [100, 101, 200]),
        ("not (v = 1 or v > 4)", [0], [1]),
        ("v = 5 and id = 101", [1], []),
        ("v = cast(5 as int)", [1], [100]),
        ("v = 5.0", [1], [100]),
        ("v > 5.5", [1, 2], [101, 200]),
        ("v = null", [], []),
        ("true", [0, 1, 2], [0, 1, 100, 101, 200, 201]),
        ("false", [], []),
    ],
)
def test_each_comparison_prunes_as_far_as_it_may(
    table: log.Table, predicate: str, files: list[int], ids: list[int]
) -> None:
    _numbers(table)
    assert helpers.filtered(table, predicate) == ids
    assert set(helpers.planned(table, predicate)) <= {f"{i}.parquet" for i in files}


@pytest.mark.parametrize(
    "predicate", ["v + 0 = 5", "v * 2 = 10", "abs(v) = 5", "coalesce(v, 5) = 5", "cast(v as string) = '5'"]
)
def test_an_expression_over_a_column_loses_no_row(table: log.Table, predicate: str) -> None:
    _numbers(table)
    assert 100 in helpers.filtered(table, predicate)


def test_files_without_statistics_are_kept(table: log.Table) -> None:
    arrays = [pa.array([1, 2], pa.int64()), pa.array([5, 6], pa.int64())]
    _table(table, "long", arrays, [None, _bounds(5, 6)])
    assert helpers.filtered(table, "v = 1") == [0]
    assert helpers.planned(table, "v = 1") == ["0.parquet"]


def test_columns_without_statistics_are_kept(table: log.Table) -> None:
    _table(table, "long", [pa.array([1, 2], pa.int64())], [{"numRecords": 2}])
    assert helpers.filtered(table, "v = 2") == [1]
    assert helpers.filtered(table, "v is null") == []


def test_wide_bounds_still_bound(table: log.Table) -> None:
    """With `tightBounds` false the values lie inside the bounds, which no value need reach."""
    _table(table, "long", [pa.array([3, 4], pa.int64())], [_bounds(0, 10, tightBounds=False)])
    assert helpers.planned(table, "v > 10") == []
    assert helpers.planned(table, "v > 5") == ["0.parquet"]
    assert helpers.filtered(table, "v > 3") == [1]
    assert helpers.filtered(table, "v = 0") == []


def test_wide_null_counts_prove_nothing(table: log.Table) -> None:
    """With `tightBounds` false a null count is that of the file before deletions: only 0 and all rows tell."""
    vector = table.vector([1])
    data = {"id": pa.array([0, 1, 2], pa.int64()), "v": pa.array([None, 5, None], pa.int64())}
    stats = json.dumps(
        {"numRecords": 3, "minValues": {"v": 5}, "maxValues": {"v": 5}, "nullCount": {"v": 2}, "tightBounds": False}
    )
    add = table.data("a.parquet", data, add_stats=stats, add_deletionVector=vector)
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata([("id", "long"), ("v", "long")]), add)
    assert helpers.filtered(table, "v is null") == [0, 2]
    assert helpers.filtered(table, "v is not null") == []
    assert helpers.open_table(table).count() == 2


def test_all_null_columns_have_no_bounds(table: log.Table) -> None:
    _table(
        table,
        "long",
        [pa.nulls(2, pa.int64())],
        [{"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"v": 2}}],
    )
    assert helpers.filtered(table, "v is null") == [0, 1]
    assert helpers.planned(table, "v = 1") == []
    assert helpers.planned(table, "v is not null") == []
    assert helpers.filtered(table, "v <=> null") == [0, 1]


def test_truncated_strings_bound_what_they_cut(table: log.Table) -> None:
    """A minimum is cut to a prefix, a maximum ends with a tie breaker above all that follows the prefix."""
    low, high = "a" * 40, "b" * 40
    stats = _bounds("a" * 32, "b" * 32 + "\N{REPLACEMENT CHARACTER}")
    _table(table, "string", [pa.array([low, high])], [stats])
    assert helpers.filtered(table, f"v = '{low}'") == [0]
    assert helpers.filtered(table, f"v = '{high}'") == [1]
    assert helpers.filtered(table, f"v > '{'b' * 33}'") == [1]
    assert helpers.planned(table, "v = 'c'") == []
    assert helpers.planned(table, "v < 'a'") == []


def test_a_maximum_with_another_tie_breaker(table: log.Table) -> None:
    """Other tie breakers than the protocol's are in use."""
    _table(
        table,
        "string",
        [pa.array(["b" * 40, "b" * 40])],
        [_bounds("b" * 32, "b" * 32 + "\N{LATIN SMALL LETTER Y WITH DIAERESIS}")],
    )
    assert helpers.filtered(table, f"v = '{'b' * 40}'") == [0, 1]


def test_strings_compare_by_bytes_not_by_language(table: log.Table) -> None:
    arrays = [pa.array(["Z", "a"]), pa.array(["\N{LATIN SMALL LETTER A WITH DIAERESIS}", "\N{GRINNING FACE}"])]
    stats = [_bounds("Z", "a"), _bounds("\N{LATIN SMALL LETTER A WITH DIAERESIS}", "\N{GRINNING FACE}")]
    _table(table, "string", arrays, stats)
    assert helpers.filtered(table, "v > 'z'") == [100, 101]
    assert helpers.planned(table, "v > 'z'") == ["1.parquet"]
    assert helpers.filtered(table, "v > '\N{REPLACEMENT CHARACTER}'") == [101]


def test_like_with_a_prefix_prunes(table: log.Table) -> None:
    arrays = [pa.array(["apple", "avocado"]), pa.array(["banana", "blue"]), pa.array(["a%b", "a_b"])]
    _table(table, "string", arrays, [_bounds("apple", "avocado"), _bounds("banana", "blue"), _bounds("a%b", "a_b")])
    assert helpers.filtered(table, "v like 'b%'") == [100, 101]
    assert helpers.planned(table, "v like 'b%'") == ["1.parquet"]
    assert helpers.filtered(table, r"v like 'a\\%%'") == [200]
    assert helpers.filtered(table, "v like '%a%'") == [0, 1, 100, 200, 201]
    assert helpers.filtered(table, "startswith(v, 'av')") == [1]


@pytest.mark.parametrize("name", ["double", "float"])
def test_nan_is_above_all_numbers_whatever_the_bounds_say(table: log.Table, name: str) -> None:
    """Writers leave NaN out of the bounds, or write none: the row must be found by >, by = NaN and by isnan."""
    kind = pa.float64() if name == "double" else pa.float32()
    arrays = [pa.array([1.0, float("nan")], kind), pa.array([5.0, 6.0], kind)]
    _table(table, name, arrays, [_bounds(1.0, 1.0), _bounds(5.0, 6.0)])
    assert helpers.filtered(table, "v > 5.5") == [1, 101]
    assert helpers.filtered(table, f"v = cast('NaN' as {name})") == [1]
    assert helpers.filtered(table, "isnan(v)") == [1]
    assert helpers.filtered(table, "v < 2") == [0]


def test_negative_zero_equals_zero(table: log.Table) -> None:
    _table(table, "double", [pa.array([-0.0, 0.0])], [_bounds(-0.0, 0.0)])
    assert helpers.filtered(table, "v = 0.0") == [0, 1]
    assert helpers.filtered(table, "v < 0.0") == []
    assert helpers.filtered(table, "v >= -0.0") == [0, 1]


def test_infinities_in_statistics(table: log.Table) -> None:
    arrays = [pa.array([float("-inf"), 1.0]), pa.array([5.0, float("inf")])]
    _table(table, "double", arrays, [_bounds("-Infinity", 1.0), _bounds(5.0, "Infinity")])
    assert helpers.filtered(table, "v < -1e300") == [0]
    assert helpers.filtered(table, "v > 1e300") == [101]


def test_decimals(table: log.Table) -> None:
    arrays = [
        pa.array([decimal.Decimal(v) for v in pair], pa.decimal128(10, 2))
        for pair in (["1.10", "2.20"], ["3.30", "4.40"])
    ]
    _table(table, "decimal(10,2)", arrays, [_bounds(1.10, 2.20), _bounds(3.3, 4.40)])
    assert helpers.filtered(table, "v = 2.20") == [1]
    assert helpers.planned(table, "v = 2.20") == ["0.parquet"]
    assert helpers.filtered(table, "v >= 3.3") == [100, 101]
    assert helpers.planned(table, "v > 4.4") == []


def test_decimals_of_38_digits_are_not_read_through_floats(table: log.Table) -> None:
    low, high = "12345678901234567890.123456789012345677", "12345678901234567890.123456789012345679"
    array = pa.array([decimal.Decimal(low), decimal.Decimal(high)], pa.decimal128(38, 18))
    text = f'{{"numRecords":2,"minValues":{{"v":{low}}},"maxValues":{{"v":{high}}},"nullCount":{{"v":0}}}}'
    _table(table, "decimal(38,18)", [array], [text])
    assert helpers.filtered(table, f"v = {low}BD") == [0]
    assert helpers.filtered(table, f"v > {low}BD") == [1]
    assert helpers.planned(table, "v > 12345678901234567890.123456789012345679BD") == []


def test_longs_of_63_bits_are_not_read_through_floats(table: log.Table) -> None:
    top = 2**63 - 1
    _table(table, "long", [pa.array([top - 1, top], pa.int64())], [_bounds(top - 1, top)])
    assert helpers.filtered(table, f"v = {top}") == [1]
    assert helpers.planned(table, f"v < {top - 1}") == []


def test_dates(table: log.Table) -> None:
    arrays = [pa.array([dt.date(2024, 1, d), dt.date(2024, 1, d + 1)]) for d in (1, 10)]
    _table(table, "date", arrays, [_bounds("2024-01-01", "2024-01-02"), _bounds("2024-01-10", "2024-01-11")])
    assert helpers.filtered(table, "v = DATE'2024-01-10'") == [100]
    assert helpers.planned(table, "v = DATE'2024-01-10'") == ["1.parquet"]
    assert helpers.filtered(table, "v < '2024-01-02'") == [0]


def test_booleans_have_null_counts_only(table: log.Table) -> None:
    _table(
        table,
        "boolean",
        [pa.array([True, True]), pa.array([False, None])],
        [{"numRecords": 2, "nullCount": {"v": 0}}, {"numRecords": 2, "nullCount": {"v": 1}}],
    )
    assert helpers.filtered(table, "v") == [0, 1]
    assert helpers.filtered(table, "not v") == [100]
    assert helpers.planned(table, "v is null") == ["1.parquet"]


def test_bounds_of_booleans_are_left_alone(table: log.Table) -> None:
    """Spark writes none, and what other writers wrote may be wrong."""
    _table(table, "boolean", [pa.array([True, False]), pa.array([False, False])], [_bounds(True, True)] * 2)
    assert helpers.filtered(table, "v") == [0]
    assert helpers.filtered(table, "v = false") == [1, 100, 101]
    assert helpers.planned(table, "not v") == ["0.parquet", "1.parquet"]


def test_binaries(table: log.Table) -> None:
    _table(table, "binary", [pa.array([b"\x00\xff", b"\x01"])], [{"numRecords": 2, "nullCount": {"v": 0}}])
    assert helpers.filtered(table, "v = X'00FF'") == [0]
    assert helpers.filtered(table, "v > X'00'") == [0, 1]


def test_nested_fields_prune(table: log.Table) -> None:
    arrays = [pa.array([{"x": 1, "y z": "a"}, None]), pa.array([{"x": 5, "y z": "b"}, {"x": None, "y z": None}])]
    stats = [
        {
            "numRecords": 2,
            "minValues": {"v": {"x": 1, "y z": "a"}},
            "maxValues": {"v": {"x": 1, "y z": "a"}},
            "nullCount": {"v": {"x": 1, "y z": 1}},
        },
        {
            "numRecords": 2,
            "minValues": {"v": {"x": 5, "y z": "b"}},
            "maxValues": {"v": {"x": 5, "y z": "b"}},
            "nullCount": {"v": {"x": 1, "y z": 1}},
        },
    ]
    _table(table, POINT, arrays, stats)
    assert helpers.filtered(table, "v.x = 5") == [100]
    assert helpers.planned(table, "v.x = 5") == ["1.parquet"]
    assert helpers.filtered(table, "v.`y z` = 'a'") == [0]
    assert helpers.filtered(table, "v.x is null") == [1, 101]
    assert helpers.filtered(table, "v is null") == [1]


def test_null_counts_of_structs_do_not_count_the_struct(table: log.Table) -> None:
    """`nullCount` of a field counts rows whose struct is null too."""
    array = pa.array([None, {"x": 1, "y z": "a"}])
    stats = {"numRecords": 2, "minValues": {"v": {"x": 1}}, "maxValues": {"v": {"x": 1}}, "nullCount": {"v": {"x": 1}}}
    _table(table, POINT, [array], [stats])
    assert helpers.filtered(table, "v is null") == [0]
    assert helpers.filtered(table, "v is not null") == [1]


def test_column_names_with_dots_are_no_paths(table: log.Table) -> None:
    stats = {"numRecords": 2, "minValues": {"a.b": 1}, "maxValues": {"a.b": 2}, "nullCount": {"a.b": 0}}
    add = table.data("a.parquet", {"id": [0, 1], "a.b": pa.array([1, 2], pa.int64())}, add_stats=json.dumps(stats))
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("a.b", "long")]), add)
    assert helpers.filtered(table, "`a.b` = 2") == [1]
    assert helpers.planned(table, "`a.b` = 7") == []


def test_collated_columns_are_not_pruned_by_bytes(table: log.Table) -> None:
    """`A` equals `a` for the collation: bounds by bytes say nothing. A refusal to compare is as good."""
    metadata = {"__COLLATIONS": {"v": "spark.UTF8_LCASE"}}
    stats = json.dumps({"numRecords": 1, "minValues": {"v": "A"}, "maxValues": {"v": "A"}, "nullCount": {"v": 0}})
    add = table.data("a.parquet", {"id": [0], "v": ["A"]}, add_stats=stats)
    columns = [("id", "long"), ("v", "string", metadata)]
    table.commit(0, log.protocol(writer_only=["collations-preview"]), log.metadata(columns), add)
    assert helpers.column(table, "v") == ["A"]
    with contextlib.suppress(deltafast.exceptions.InvalidArgumentError, deltafast.exceptions.DeltaProtocolError):
        assert helpers.planned(table, "v = 'a'") == ["a.parquet"]


def test_statistics_are_reported(table: log.Table) -> None:
    _numbers(table)
    adds = helpers.open_table(table).get_add_actions(flatten=True)
    rows = sorted(
        zip(
            *(adds.column(n).to_pylist() for n in ("path", "num_records", "null_count.v", "min.v", "max.v")),
            strict=True,
        )
    )
    assert rows == [("0.parquet", 2, 0, 1, 2), ("1.parquet", 2, 0, 5, 6), ("2.parquet", 2, 1, 9, 9)]


def test_dnf_tuples_and_arrow_expressions_prune_alike(table: log.Table) -> None:
    import pyarrow.compute as pc

    _numbers(table)
    for predicate in ([("v", "=", 5)], [[("v", "=", 5)]], pc.field("v") == 5):
        assert helpers.filtered(table, predicate) == [100]
        assert helpers.planned(table, predicate) == ["1.parquet"]
    assert helpers.filtered(table, [[("v", "=", 5)], [("v", ">", 8)]]) == [100, 200]
    assert helpers.filtered(table, [("v", "in", [1, 9])]) == [0, 200]
