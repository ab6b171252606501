"""Under the name `deltalake`, an expression has the meaning that it has in `deltalake`, or it is refused."""

import datetime as dt
import pathlib
import pickle
import shutil
from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest

import deltafast
import deltafast._deltalake.table as dropin
from deltafast import write_deltalake
from deltafast.exceptions import DeltaError, InvalidArgumentError

UTC = dt.UTC
KINDS = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}
ROWS = pa.table(
    {
        "id": pa.array([-3, -2, 0, 2, 5, 21], pa.int64()),
        "i": pa.array([1, -7, None, 2, 10, 3], pa.int32()),
        "f": pa.array([0.5, -2.5, 1.5, 100.0, None, 2.0], pa.float64()),
        "g": pa.array([0.5, -2.5, 1.5, 100.0, None, 2.0], pa.float32()),
        "dec": pa.array(
            [Decimal("1.25"), Decimal("-2.50"), Decimal("3.75"), None, Decimal("0.00"), Decimal("10.00")],
            pa.decimal128(10, 2),
        ),
        "d": pa.array(
            [dt.date(2024, 1, 7), dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(2023, 12, 31), None] * 1
            + [dt.date(2024, 6, 15)]
        ),
        "ts": pa.array(
            [
                dt.datetime(2024, 1, 7, 13, 45, 30, 123456, tzinfo=UTC),
                dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
                None,
                dt.datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC),
                dt.datetime(1969, 12, 31, 23, 0, 0, tzinfo=UTC),
                dt.datetime(2024, 6, 15, tzinfo=UTC),
            ],
            KINDS["timestamp"],
        ),
        "s": pa.array(["abc", "a\\b", None, "A%_", "  x y ", "aXbXc"]),
        "p": pa.array(["b", "c", "a", None, "", "X"]),
        "n": pa.array(["10", "9", "2", "-3", "0", None]),
        "l": pa.array([[1, 2, 3], [2, 3], None, [7, 1], [5, None], [9, 8]], pa.list_(pa.int64())),
        "b": pa.array([True, False, None, True, False, True]),
        "st": pa.array(
            [{"x": 1, "y": "a"}, {"x": 2, "y": None}, None, {"x": None, "y": "b"}, {"x": 5, "y": "c"}, None]
        ),
        "k": pa.array(range(6), pa.int64()),
        **{f"o_{kind}": pa.nulls(6, of) for kind, of in KINDS.items()},
    }
)

#: Conditions and new values that are refused, by the kind of the column that gets the value.
REFUSED = [
    ("rows", "l[1] = 2"),
    ("rows", "l[0] = 1 OR id = 2"),
    ("long", "l[1]"),
    ("rows", "id / 10 = 2"),
    ("rows", "id / 2 > 2 AND b"),
    ("rows", "i / 2 = 5"),
    ("rows", "id > 7 / 2"),
    ("double", "10 / 4"),
    ("double", "dec / 3"),
    ("double", "id / 3.0"),
    ("double", "g / 3"),
    ("double", "0.1 + 0.2"),
    ("double", "id * 0.1"),
    ("double", "round(1.005, 2)"),
    ("double", "round(f, 1)"),
    ("double", "log(f)"),
    ("double", "ln(f)"),
    ("double", "log10(f)"),
    ("double", "log(2.0, f)"),
    ("double", "power(id, 62)"),
    ("long", "date_part('dow', d)"),
    ("long", "extract(dow FROM ts)"),
    ("rows", "datepart('dow', d) = 1"),
    ("rows", "concat(d, s) = '2024-01-07'"),
    ("string", "substr(s, 0, 2)"),
    ("string", "substring(s, -2)"),
    ("string", "substr(s, id)"),
    ("string", "left(s, -1)"),
    ("string", "right(s, id)"),
    ("string", "ltrim(s, 'a')"),
    ("string", "rtrim(s, 'c')"),
    ("string", "trim(s, 'a')"),
    ("string", "initcap(s)"),
    ("string", "date_format(d, 'yyyy')"),
    ("string", "cast(f AS string)"),
    ("string", "cast(ts AS string)"),
    ("string", "s || f"),
    ("string", "ts"),
    ("string", "f"),
    ("string", "1.50"),
    ("string", "'a\\b'"),
    ("rows", "s = 'a\\b'"),
    ("rows", "s LIKE '%\\\\%'"),
    ("string", "'a' 'b'"),
    ("timestamp", "1"),
    ("timestamp", "id"),
    ("timestamp", "1.5"),
    ("timestamp", "cast(f AS timestamp)"),
    ("long", "cast(ts AS bigint)"),
    ("rows", "id < 2.5"),
    ("rows", "2.5 = id"),
    ("rows", "id IN (2.5, 5)"),
    ("rows", "id BETWEEN 1.5 AND 2.5"),
    ("rows", "dec > 1.249"),
    ("rows", "g = 0.1"),
    ("rows", "NOT isnan(f)"),
    ("rows", "NOT array_contains(l, 2)"),
    ("long", "1 << 40"),
    ("long", "i << 33"),
    ("long", "greatest(1, 2, NULL)"),
    ("rows", "CASE id WHEN 2.5 THEN true END"),
    ("rows", "(id + 1) / 2 = 3"),
]
#: Those that have one reading, which the errors of the others show.
SAME = [
    ("double", "cast(id AS double) / 10"),
    ("double", "f / 2"),
    ("double", "cast(dec AS double) / 3"),
    ("double", "id * cast(0.1 AS double)"),
    ("double", "f * 0.1"),
    ("double", "round(f)"),
    ("double", "round(dec, 1)"),
    ("double", "power(id, 2)"),
    ("long", "date_part('year', d)"),
    ("long", "extract(week FROM d)"),
    ("string", "s || '-' || p"),
    ("string", "s || id"),
    ("string", "concat_ws('', s, p)"),
    ("string", "substr(s, 1, 2)"),
    ("string", "substr(s, 2)"),
    ("string", "left(s, 1)"),
    ("string", "right(s, 2)"),
    ("string", "TRIM(BOTH 'a' FROM s)"),
    ("string", "TRIM(LEADING 'a' FROM s)"),
    ("string", "btrim(s, 'a')"),
    ("string", "upper(s)"),
    ("string", "cast(id AS string)"),
    ("string", "cast(d AS string)"),
    ("string", "cast(dec AS string)"),
    ("string", "'it''s'"),
    ("rows", "s LIKE 'A\\%\\_'"),
    ("timestamp", "TIMESTAMP '2024-01-07 01:02:03'"),
    ("timestamp", "'2024-01-07'"),
    ("timestamp", "date_trunc('month', ts)"),
    ("rows", "id < 2 OR id = 5.0"),
    ("rows", "f < 2.5"),
    ("rows", "dec > 1.25"),
    ("rows", "g >= 1.5"),
    ("rows", "id IN ('2', '5')"),
    ("rows", "id = '2'"),
    ("rows", "d = '2024-01-07'"),
    ("rows", "ts > '2024-01-01'"),
    ("rows", "isnan(f) OR id = 5"),
    ("rows", "id % 2 = -1"),
    ("rows", "s IS NULL OR NOT b"),
    ("rows", "s <> 'abc' AND id BETWEEN -2 AND 5"),
    ("long", "greatest(id, i)"),
    ("long", "CASE WHEN id > 2 THEN 1 ELSE 0 END"),
    ("long", "id << 1"),
    ("long", "length(s)"),
    ("string", "concat(s, '-', id)"),
    ("rows", "concat(s, p) = 'abcb'"),
    ("rows", "n > 5"),
    ("rows", "n IN (9, 10)"),
    ("rows", "'10' < 9"),
    ("rows", "n = 10 OR n <> 9"),
    ("rows", "n BETWEEN 1 AND 5"),
    ("rows", "n < id"),
    ("rows", "id = 2;"),
    ("rows", "starts_with(s, 'a') AND NOT ends_with(s, 'c')"),
    ("long", "strpos(s, 'b')"),
    ("long", "strpos(s, '') + strpos('aXbXc', 'X')"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("readings") / "t"
    write_deltalake(path, ROWS)
    return path


def run(library, table, path, kind, sql):
    """Return the rows after a DELETE by a condition, or after an UPDATE to a value; the message of an error."""
    shutil.copytree(table, path)
    column = "k" if kind == "rows" else f"o_{kind}"
    try:
        handle = library.DeltaTable(str(path))
        if kind == "rows":
            handle.delete(sql)
        else:
            handle.update({column: sql})
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the other library may panic
        return str(error)
    finally:
        found = deltafast.DeltaTable(path).to_pyarrow_table().sort_by("k")[column]
        shutil.rmtree(path)
    if pa.types.is_temporal(found.type):
        # Python has no years before 1 and after 9999.
        found = found.cast(pa.int32() if pa.types.is_date32(found.type) else pa.int64())
    return [repr(0.0 if value == 0 else value) for value in found.to_pylist()]


@pytest.mark.parametrize(("kind", "sql"), REFUSED)
def test_an_expression_with_two_readings_is_refused_with_both(table, tmp_path, kind, sql):
    found = run(dropin, table, tmp_path / "t", kind, sql)
    assert isinstance(found, str)
    assert "means two things: " in found
    assert "in Spark SQL" in found
    assert "; " in found.partition("in Spark SQL")[2]


@pytest.mark.parametrize(("kind", "sql"), SAME)
def test_an_expression_with_one_reading_gives_the_rows_of_deltalake(table, tmp_path, kind, sql):
    expected = run(deltalake, table, tmp_path / "theirs", kind, sql)
    assert isinstance(expected, list), expected
    assert run(dropin, table, tmp_path / "ours", kind, sql) == expected


def test_each_refused_expression_is_evaluated_under_the_own_name(table, tmp_path):
    for sql in ("id / 10 = 2", "concat(s, p) = 'abcb'", "id < 2.5", "date_part('dow', d) = 1", "s = 'a\\\\b'"):
        shutil.copytree(table, tmp_path / "t")
        deltafast.DeltaTable(tmp_path / "t").delete(sql)
        shutil.rmtree(tmp_path / "t")


LISTED = [
    line.split("\t") for line in (pathlib.Path(__file__).parent / "expressions.txt").read_text("utf-8").splitlines()
]


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_listed_expressions_give_the_rows_of_deltalake_or_are_refused(table, tmp_path):
    others = []
    for kind, sql in LISTED:
        ours = run(dropin, table, tmp_path / "ours", kind, sql)
        if isinstance(ours, list):
            theirs = run(deltalake, table, tmp_path / "theirs", kind, sql)
            if isinstance(theirs, list) and ours != theirs:
                others.append((kind, sql, theirs, ours))
    assert others == []


# --- where expressions come in

SOURCE = pa.table({"key": [2, 99], "v": ["x", "y"]})


def merge(handle):
    return handle.merge(SOURCE, "t.id = s.key", source_alias="s", target_alias="t")


def keyed(handle, condition):
    return handle.merge(SOURCE, f"t.id = s.key AND {condition}", source_alias="s", target_alias="t")


PLACES = {
    "delete": lambda t: t.delete("id / 10 = 2"),
    "update": lambda t: t.update({"s": "'x'"}, predicate="id / 10 = 2"),
    "update value": lambda t: t.update({"o_long": "id / 10"}),
    "update new_values": lambda t: t.update(new_values={"o_timestamp": 1}),
    "merge on": lambda t: keyed(t, "t.id / 10 = 2").when_matched_delete().execute(),
    "merge update": lambda t: merge(t).when_matched_update({"o_long": "t.id / 10"}).execute(),
    "merge update value": lambda t: merge(t).when_matched_update({"o_timestamp": "s.key"}).execute(),
    "merge matched": lambda t: merge(t).when_matched_delete("t.id / 10 = 2").execute(),
    "merge insert": lambda t: merge(t).when_not_matched_insert({"id": "s.key / 10"}).execute(),
    "merge by source": lambda t: merge(t).when_not_matched_by_source_delete("t.id / 10 = 2").execute(),
    "overwrite": lambda t: dropin.write_deltalake(t, ROWS, mode="overwrite", predicate="id / 10 = 2"),
    "overwrite by path": lambda t: dropin.write_deltalake(t.table_uri, ROWS, mode="overwrite", predicate="id / 10 = 2"),
    "constraint": lambda t: t.alter.add_constraint({"c": "id / 10 < 3"}),
    "read": lambda t: t.to_pyarrow_table(filters="id / 10 = 2"),
    "dataset": lambda t: t.file_uris(file_pruning_predicate="id / 10 = 2"),
    "compact": lambda t: t.optimize.compact("id / 10 = 2"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("is_pickled", [False, True], ids=["", "pickled"])
def test_expressions_are_refused_wherever_they_come_in(table, tmp_path, place, is_pickled):
    shutil.copytree(table, tmp_path / "t")
    handle = dropin.DeltaTable(str(tmp_path / "t"))
    if is_pickled:
        handle = pickle.loads(pickle.dumps(handle))
    with pytest.raises(DeltaError, match="means two things") as caught:
        PLACES[place](handle)
    assert isinstance(caught.value, InvalidArgumentError)
    assert deltafast.DeltaTable(tmp_path / "t").version() == 0


def test_values_of_python_and_statements_have_one_reading(table, tmp_path):
    shutil.copytree(table, tmp_path / "t")
    handle = dropin.DeltaTable(str(tmp_path / "t"))
    handle.update(new_values={"s": "a\\b'c\n", "o_double": 0.5}, predicate="id = 2")
    assert handle.to_pyarrow_table(filters=[("id", "=", 2)])["s"].to_pylist() == ["a\\b'c\n"]
    # Statements are Spark's, whatever the class of the table is.
    deltafast.sql("DELETE FROM t WHERE id / 2 = 2.5", t=handle)
    assert handle.version() == 2
    assert 5 not in handle.to_pyarrow_table()["id"].to_pylist()
    deltafast.sql("UPDATE t SET s = 'a\\\\b' WHERE id = 21", t=handle)
    assert handle.to_pyarrow_table(filters=[("id", "=", 21)])["s"].to_pylist() == ["a\\b"]
