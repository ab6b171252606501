"""deltafast against others: tables written by `deltalake`, and pruning against brute force.

`deltalake` writes small random tables (types, partitions, appends, deletes, compactions, checkpoints); every version
must read alike in both. Where no other reader can be trusted, statistics made honest, wide, cut or absent are checked
against DuckDB filtering all rows: pruning may keep too much and must never lose a row.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import pathlib
import shutil
import tempfile
from collections import Counter
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import deltafast
from conformance import compare
from tablekit import log

# No shrinking: on tables it takes longer than a test may, and the drawn ones are small.
SETTINGS = settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
UTC = dt.UTC

# Values with edges: small domains make equal values, and so matches, likely.
_STRINGS = st.sampled_from(["", "a", "b", "Z", "zz", "a" * 40, "\N{SNOWMAN}", "x/y%20=", "null"]) | st.text(max_size=5)
_LONGS = st.sampled_from([0, 1, -1, 5, 2**31, -(2**63), 2**63 - 1]) | st.integers(-10, 10)
_DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -1e300, math.inf, -math.inf, math.nan]) | st.floats(-5, 5)
_TIMESTAMPS = st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2200, 1, 1))  # noqa: DTZ001
_DECIMALS = st.decimals(-9999, 9999, places=2, allow_nan=False)

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "byte": (pa.int8(), st.integers(-128, 127)),
    "short": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), _LONGS),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), _DOUBLES),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), _STRINGS.filter(lambda v: "\x00" not in v)),
    "bytes": (pa.binary(), st.binary(max_size=6)),
    "day": (pa.date32(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "moment": (pa.timestamp("us", "UTC"), _TIMESTAMPS.map(lambda m: m.replace(tzinfo=UTC))),
    "money": (pa.decimal128(10, 2), _DECIMALS),
    "list": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(-5, 5), max_size=3)),
    "struct": (
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        st.fixed_dictionaries({"x": st.none() | _LONGS, "y": st.none() | st.just("y")}),
    ),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(-(2**63), 2**63 - 1), max_size=2).map(
            lambda d: list(d.items())
        ),
    ),
}
PARTITIONS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "p_text": (pa.string(), st.sampled_from(["a", "b c", "d/e", "f%g", "\N{SNOWMAN}"])),
    "p_int": (pa.int32(), st.integers(-2, 2)),
    "p_day": (pa.date32(), st.sampled_from([dt.date(1999, 12, 31), dt.date(2024, 2, 29)])),
    "p_bool": (pa.bool_(), st.booleans()),
}


@st.composite
def rows(draw: st.DrawFn, names: list[str], kinds: dict[str, tuple[pa.DataType, Any]], first: int) -> pa.Table:
    """Draw rows: a running `id` and the columns, each a third null."""
    count = draw(st.integers(1, 6))
    columns: dict[str, pa.Array] = {"id": pa.array(range(first, first + count), pa.int64())}
    for name in names:
        arrow, values = kinds[name]
        columns[name] = pa.array(draw(st.lists(st.none() | values | values, min_size=count, max_size=count)), arrow)
    return pa.table(columns)


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a table's life: columns, partitions, whether the change feed is on, and what happens to it."""
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), max_size=4, unique=True))
    partitions = draw(st.lists(st.sampled_from(sorted(PARTITIONS)), max_size=2, unique=True))
    kinds = COLUMNS | PARTITIONS
    steps: list[tuple[str, Any]] = []
    first = 0
    for kind in [
        "append",
        *draw(
            st.lists(st.sampled_from(["append", "append", "delete", "overwrite", "compact", "checkpoint"]), max_size=4)
        ),
    ]:
        if kind in {"append", "overwrite"}:
            data = draw(rows([*names, *partitions], kinds, first))
            first += data.num_rows
            steps.append((kind, data))
        elif kind == "delete":
            steps.append((kind, draw(st.integers(0, max(first, 1)))))
        else:
            steps.append((kind, None))
    return {"partitions": partitions, "feed": draw(st.booleans()), "steps": steps}


def _write(folder: str, history: dict[str, Any]) -> None:
    """Let `deltalake` write the table."""
    configuration = {"delta.enableChangeDataFeed": "true"} if history["feed"] else None
    for kind, value in history["steps"]:
        if kind in {"append", "overwrite"}:
            deltalake.write_deltalake(
                folder, value, mode=kind, partition_by=history["partitions"] or None, configuration=configuration
            )
        elif kind == "delete":
            deltalake.DeltaTable(folder).delete(f"id < {value}")
        elif kind == "compact":
            deltalake.DeltaTable(folder).optimize.compact()
        else:
            deltalake.DeltaTable(folder).create_checkpoint()


def _strings(table: pa.Table, fields: list[dict[str, Any]]) -> Counter[str]:
    return Counter(compare.row_strings(table, fields))


def _theirs(table: deltalake.DeltaTable) -> pa.Table:
    rows_ = deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all()
    return pa.table(rows_)


def _plain(table: pa.Table) -> pa.Table:
    """Return the table with plain strings and binaries instead of views."""
    kinds = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    fields = [f.with_type(kinds.get(f.type, f.type)) for f in table.schema]
    return table.cast(pa.schema(fields))


def _adds(table: Any) -> dict[str, dict[str, Any]]:
    """Return the add actions by path; -0.0 and NaN compare by their text."""
    adds = pa.table(table.get_add_actions(flatten=True))
    return {row["path"]: {k: repr(v) for k, v in row.items()} for row in adds.to_pylist()}


@SETTINGS
@given(histories())
def test_every_version_reads_as_in_deltalake(history: dict[str, Any]) -> None:
    folder = tempfile.mkdtemp(prefix="differential-")
    try:
        _write(folder, history)
        newest = deltalake.DeltaTable(folder).version()
        assert deltafast.DeltaTable(folder).version() == newest
        for version in range(newest + 1):
            theirs, ours = deltalake.DeltaTable(folder, version=version), deltafast.DeltaTable(folder, version=version)
            schema = json.loads(ours.schema().to_json())
            assert schema == json.loads(theirs.schema().to_json())
            assert tuple(ours.protocol()) == tuple(theirs.protocol())
            for name in ("id", "name", "description", "partition_columns", "created_time", "configuration"):
                assert getattr(ours.metadata(), name) == getattr(theirs.metadata(), name)
            got = ours.to_pyarrow_table()
            assert not list(compare.fields_problems(list(got.schema), schema["fields"]))
            assert _strings(got, schema["fields"]) == _strings(_plain(_theirs(theirs)), schema["fields"])
            assert ours.count() == got.num_rows
            expected, found = _adds(theirs), _adds(ours)
            assert expected.keys() == found.keys()
            for path, row in expected.items():
                assert {k: found[path].get(k, "None") for k in row} == row
        pairs = zip(deltafast.DeltaTable(folder).history(), deltalake.DeltaTable(folder).history(), strict=True)
        for ours, theirs in pairs:
            # deltalake shows the writer's clock, deltafast the time by which time travel finds the version.
            assert ours | {"timestamp": theirs["timestamp"]} == theirs
    finally:
        shutil.rmtree(folder)


@SETTINGS
@given(histories())
def test_a_refreshed_handle_equals_a_new_one(history: dict[str, Any]) -> None:
    folder = tempfile.mkdtemp(prefix="differential-")
    try:
        handle = None
        for i in range(len(history["steps"])):
            _write(folder, history | {"steps": history["steps"][i : i + 1]})
            if handle is None:
                handle = deltafast.DeltaTable(folder)
            elif i % 2:
                handle.update_incremental()
        assert handle is not None
        handle.update_incremental()
        fresh = deltafast.DeltaTable(folder)
        assert handle.version() == fresh.version()
        assert _adds(handle) == _adds(fresh)
        fields = json.loads(fresh.schema().to_json())["fields"]
        assert _strings(handle.to_pyarrow_table(), fields) == _strings(fresh.to_pyarrow_table(), fields)
    finally:
        shutil.rmtree(folder)


@SETTINGS
@given(histories())
def test_the_change_feed_reads_as_in_deltalake(history: dict[str, Any]) -> None:
    folder = tempfile.mkdtemp(prefix="differential-")
    try:
        # deltalake cannot read the feed of some partition values whose folders need encoding; other tests hold those.
        steps = [s for s in history["steps"] if s[0] != "checkpoint"]
        _write(folder, history | {"feed": True, "steps": steps, "partitions": []})
        ours = pa.table(deltafast.DeltaTable(folder).load_cdf(starting_version=0))
        theirs = _plain(pa.table(deltalake.DeltaTable(folder).load_cdf(starting_version=0)))
        fields = json.loads(deltafast.DeltaTable(folder).schema().to_json())["fields"]
        fields += [{"name": "_change_type", "type": "string"}, {"name": "_commit_version", "type": "long"}]
        theirs = theirs.set_column(
            theirs.schema.get_field_index("_commit_version"),
            "_commit_version",
            theirs.column("_commit_version").cast(pa.int64()),
        )
        assert _strings(ours, fields) == _strings(theirs, fields)
        views = pa.table(deltafast.DeltaTable(folder).load_cdf(starting_version=0, string_view=True))
        assert pa.types.is_string_view(views.schema.field("_change_type").type)
        assert _strings(_plain(views), fields) == _strings(ours, fields)
    finally:
        shutil.rmtree(folder)


# Pruning against brute force.

_PRUNED: dict[str, tuple[str, pa.DataType, st.SearchStrategy[Any]]] = {
    "i": ("integer", pa.int32(), st.integers(-3, 3)),
    "l": ("long", pa.int64(), _LONGS),
    "f": ("float", pa.float32(), st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan, math.inf])),
    "d": ("double", pa.float64(), _DOUBLES),
    "s": (
        "string",
        pa.string(),
        st.sampled_from(["", "a", "ab", "b", "Z", "a" * 40, "a" * 40 + "b", "\u00e9", "\U0001f600", "\ufffd"]),
    ),
    "t": (
        "timestamp",
        pa.timestamp("us", "UTC"),
        st.sampled_from([dt.datetime(2024, 3, 1, 12, 0, 0, u, tzinfo=UTC) for u in (0, 1, 999, 1000, 123456, 123999)]),
    ),
    "n": (
        "timestamp_ntz",
        pa.timestamp("us"),
        st.sampled_from([dt.datetime(1969, 12, 31, 23, 59, 59, u) for u in (0, 999, 999500, 999999)]),  # noqa: DTZ001
    ),
    "y": ("date", pa.date32(), st.sampled_from([dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)])),
    "m": (
        "decimal(38,10)",
        pa.decimal128(38, 10),
        st.sampled_from(
            [decimal.Decimal(v) for v in ("0", "0.0000000001", "-1.5", "1234567890123456789012345678.0123456789")]
        ),
    ),
    "o": ("boolean", pa.bool_(), st.booleans()),
    "q": ("integer", pa.int32(), st.integers(0, 2)),
}
_PARTITIONED = "q"


def _literal(name: str, value: Any) -> str:  # noqa: PLR0911 - one line a type
    """Return a value as SQL text that Spark and DuckDB both understand."""
    kind = _PRUNED[name][0]
    if kind in {"float", "double"}:
        if math.isnan(value) or math.isinf(value):
            return f"cast('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' as {kind})"
        return f"cast('{value!r}' as {kind})"
    if kind == "string":
        return f"'{value}'"
    if kind == "boolean":
        return str(value).lower()
    if kind == "timestamp":
        return f"cast('{value:%Y-%m-%d %H:%M:%S.%f}' as timestamp)"
    if kind == "timestamp_ntz":
        return f"cast('{value:%Y-%m-%d %H:%M:%S.%f}' as timestamp_ntz)"
    if kind == "date":
        return f"cast('{value.isoformat()}' as date)"
    if kind.startswith("decimal"):
        return f"cast('{value:f}' as {kind})"
    return f"({value})" if value > -(2**63) else f"cast('{value}' as bigint)"


# Expressions over columns: nothing is known of their bounds, unless pruning understands them.
_EXPRESSIONS = [
    "i + 1 = 2",
    "i * 2 > i + 1",
    "-i < 0",
    "i % 2 = 1",
    "abs(i) > 1",
    "coalesce(i, 0) = 0",
    "nullif(i, 1) is null",
    "greatest(i, q) = 2",
    "i = q",
    "i < l",
    "i >= d",
    "f < d",
    "q + i > 2",
    "coalesce(q, 7) = 7",
    "length(s) > 1",
    "upper(s) = 'A'",
    "substring(s, 1, 1) = 'a'",
    "s || 'x' = 'ax'",
    "case when i > 0 then s else 'b' end = 'b'",
    "year(y) = 2024",
    "cast(i as string) = '1'",
    "cast(i as double) > 0.5",
    "o",
    "not o",
    "o = (i > 0)",
    "(i > 0) <=> o",
    "coalesce(o, i = 1)",
]


@st.composite
def comparisons(draw: st.DrawFn) -> str:  # noqa: PLR0911 - one line a shape
    """Draw a comparison of a column with literals."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(_EXPRESSIONS))
    name = draw(st.sampled_from(sorted(_PRUNED)))
    values = _PRUNED[name][2]
    shape = draw(
        st.sampled_from(["compare", "compare", "compare", "null", "in", "between", "like", "flipped", "distinct"])
    )
    if shape == "null":
        return f"{name} is {draw(st.sampled_from(['', 'not ']))}null"
    if shape == "like" and name == "s":
        return f"s like '{draw(st.sampled_from(['a%', '%', 'ab%', 'a_', '%b', 'Z', '']))}'"
    if shape == "in":
        choices = draw(st.lists(values, min_size=1, max_size=3))
        words = [_literal(name, v) for v in choices] + (["null"] if draw(st.booleans()) else [])
        return f"{name} {draw(st.sampled_from(['', 'not ']))}in ({', '.join(words)})"
    if shape == "between":
        return f"{name} between {_literal(name, draw(values))} and {_literal(name, draw(values))}"
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    word = _literal(name, draw(values))
    if shape == "distinct":
        return f"{name} <=> {word}"
    return f"{word} {operator} {name}" if shape == "flipped" else f"{name} {operator} {word}"


PREDICATES = st.recursive(
    comparisons(),
    lambda inner: (
        st.builds("({} and {})".format, inner, inner)
        | st.builds("({} or {})".format, inner, inner)
        | st.builds("(not {})".format, inner)
    ),
    max_leaves=6,
)


def _cut(value: Any, *, up: bool) -> Any:
    """Return a bound as writers put it into JSON: strings cut, times in milliseconds, decimals as numbers."""
    if isinstance(value, str):
        return value if len(value) <= 32 else value[:32] + ("\U0010ffff" if up else "")
    if isinstance(value, dt.datetime):
        text = f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}"
        return text + ("Z" if value.tzinfo else "")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


class _Numbers(json.JSONEncoder):
    """Writes decimals as JSON numbers with all their digits."""

    def default(self, o: Any) -> Any:
        """Return a mark that `_stats` replaces."""
        return f"@@{o:f}@@" if isinstance(o, decimal.Decimal) else super().default(o)


def _stats(data: pa.Table, columns: list[str], *, tight: bool) -> str:
    """Return the statistics of some columns."""
    out: dict[str, Any] = {"numRecords": data.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in columns:
        values = [v for v in data.column(name).to_pylist() if v is not None]
        out["nullCount"][name] = data.num_rows - len(values)
        numbers = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
        if numbers and name != "o":
            out["minValues"][name] = _cut(min(numbers), up=False)
            out["maxValues"][name] = _cut(max(numbers), up=True)
    if not tight:
        out["tightBounds"] = False
    return json.dumps(out, cls=_Numbers).replace('"@@', "").replace('@@"', "")


@st.composite
def pruned_tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw files: rows, which columns have statistics, which rows are deleted."""
    files = []
    names = [n for n in _PRUNED if n != _PARTITIONED]
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(1, 4))
        columns = {
            n: draw(st.lists(st.none() | _PRUNED[n][2] | _PRUNED[n][2], min_size=count, max_size=count)) for n in names
        }
        files.append(
            {
                "columns": columns,
                "count": count,
                "partition": draw(st.none() | _PRUNED[_PARTITIONED][2]),
                "stats": draw(st.none() | st.lists(st.sampled_from(names), unique=True) | st.just(names)),
                "deleted": draw(st.lists(st.integers(0, count - 1), unique=True, max_size=2)),
            }
        )
    return files


@pytest.mark.slow
@settings(SETTINGS, max_examples=120)
@given(pruned_tables(), st.lists(PREDICATES, min_size=1, max_size=5), st.booleans())
def test_pruning_never_drops_a_row_that_matches(
    files: list[dict[str, Any]], predicates: list[str], checkpointed: bool
) -> None:
    folder = tempfile.mkdtemp(prefix="pruning-")
    try:
        table = log.Table(pathlib.Path(folder) / "table")
        adds, kept, first = [], [], 0
        for i, file in enumerate(files):
            arrays = {n: pa.array(v, _PRUNED[n][1]) for n, v in file["columns"].items()}
            data = pa.table({"id": pa.array(range(first, first + file["count"]), pa.int64())} | arrays)
            first += file["count"]
            changes: dict[str, Any] = {
                "add_partitionValues": {_PARTITIONED: None if file["partition"] is None else str(file["partition"])}
            }
            if file["stats"] is not None:
                changes["add_stats"] = _stats(data, file["stats"], tight=not file["deleted"])
            if file["deleted"]:
                changes["add_deletionVector"] = table.vector(file["deleted"])
            adds.append(table.data(f"{i}.parquet", data, row_group_size=2, **changes))
            left = [r for r in range(file["count"]) if r not in file["deleted"]]
            partition = pa.array([file["partition"]] * len(left), pa.int32())
            kept.append(data.take(pa.array(left, pa.int64())).append_column(_PARTITIONED, partition))
        columns = [("id", "long"), *((n, k) for n, (k, _, _) in _PRUNED.items())]
        table.commit(
            0, log.protocol(features=["deletionVectors", "timestampNtz"]), log.metadata(columns, [_PARTITIONED]), *adds
        )
        if checkpointed:
            table.checkpoint(0)
            table.commit(1, {"commitInfo": {}})
        opened = deltafast.DeltaTable(str(table))
        for predicate in predicates:
            expected = _brute_force(pa.concat_tables(kept), predicate)
            found = pa.table(opened.scan(columns=["id"], predicate=predicate)).column("id").to_pylist()
            assert sorted(found) == expected, predicate
            assert opened.count(predicate) == len(expected), predicate
    finally:
        shutil.rmtree(folder)


#: Making a database takes longer than a query of it; cursors know nothing of each other's tables.
_DUCKDB = duckdb.connect()


def _brute_force(data: pa.Table, predicate: str) -> list[int]:
    """Return the ids of the rows for which DuckDB finds the predicate true."""
    connection = _DUCKDB.cursor()
    # DuckDB's instants need an extension: in UTC a wall clock compares alike.
    sql = predicate.replace(" as timestamp_ntz)", " as timestamp)").replace("<=>", "is not distinct from")
    place = data.schema.get_field_index("t")
    connection.register("data", data.set_column(place, "t", data.column(place).cast(pa.timestamp("us"))))
    return sorted(row[0] for row in connection.execute(f"select id from data where {sql}").fetchall())


@pytest.mark.parametrize("version", [0, 1])
def test_a_table_of_deltalake_reads_alike_in_all_ways(version: int, tmp_path: pathlib.Path) -> None:
    """One table, every way out of deltafast: the same rows."""
    data = pa.table({"id": pa.array(range(100), pa.int64()), "p": ["a", "b"] * 50, "x": [None, 1.5] * 50})
    deltalake.write_deltalake(str(tmp_path / "t"), data, partition_by=["p"])
    deltalake.write_deltalake(str(tmp_path / "t"), data, mode="append")
    table = deltafast.DeltaTable(str(tmp_path / "t"), version=version)
    expected = sorted([*range(100)] * (version + 1))
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == expected
    assert sorted(table.to_pyarrow_dataset().to_table().column("id").to_pylist()) == expected
    assert sorted(table.to_pandas()["id"].tolist()) == expected
    assert sorted(table.to_polars()["id"].to_list()) == expected
    assert sorted(table.scan_polars().collect()["id"].to_list()) == expected
    assert sorted(pa.table(table).column("id").to_pylist()) == expected
    assert sorted(row[0] for row in table.to_duckdb().project("id").fetchall()) == expected
