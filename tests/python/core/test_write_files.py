"""Data files from the core, read by everybody else: with a log made by hand around them."""

import datetime as dt
import json
import math
import pathlib
from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import _core
from deltafast.exceptions import ConstraintViolatedError, InvalidArgumentError, SchemaMismatchError

deltalake = pytest.importorskip("deltalake")


def schema_of(**types):
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    return {"type": "struct", "fields": fields}


def write(path, data, schema, **options):
    return _core.write_files(str(path), json.dumps(schema), data, options)


def commit(path, written, schema, partition_by=()):
    """The log of a table that holds just these files."""
    metadata = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": list(partition_by),
        "configuration": {},
    }
    features = ["timestampNtz"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    actions = [{"protocol": protocol}, {"metaData": metadata}]
    for file in written["files"]:
        records = file.pop("numRecords")
        assert json.loads(file["stats"])["numRecords"] == records
        actions.append({"add": {**file, "dataChange": True}})
    log = path / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("\n".join(json.dumps(action) for action in actions))


TYPES = schema_of(
    id="long",
    b="byte",
    f="float",
    d="double",
    y="boolean",
    s="string",
    raw="binary",
    day="date",
    t="timestamp",
    n="timestamp_ntz",
    small="decimal(7,2)",
    mid="decimal(16,4)",
    big="decimal(38,10)",
    l={"type": "array", "elementType": "string", "containsNull": True},
    m={"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    st=schema_of(x="long", z=schema_of(w="string")),
    p="string",
)


def everything(rows=3000):
    some = [n if n % 7 else None for n in range(rows)]
    day = dt.date(1999, 12, 31)
    instant = dt.datetime(2024, 2, 29, 12, 0, 0, 123456)  # noqa: DTZ001 - without a zone on purpose

    def of(make, kind):
        return pa.array([None if n is None else make(n) for n in some], kind)

    utc = instant.replace(tzinfo=dt.UTC)
    struct = pa.struct([("x", pa.int64()), ("z", pa.struct([("w", pa.string())]))])
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "b": of(lambda n: n % 100 - 50, pa.int8()),
            "f": of(lambda n: n / 4, pa.float32()),
            "d": of(lambda n: float("nan") if n == 5 else n / 3, pa.float64()),
            "y": of(lambda n: n % 2 == 0, pa.bool_()),
            "s": of(lambda n: f"ü{n:05}" * 9, pa.string()),
            "raw": of(lambda n: bytes([n % 256]), pa.binary()),
            "day": of(lambda n: day + dt.timedelta(days=n), pa.date32()),
            "t": of(lambda n: utc + dt.timedelta(microseconds=n), pa.timestamp("us", "UTC")),
            "n": of(lambda n: instant + dt.timedelta(hours=n), pa.timestamp("us")),
            "small": of(lambda n: Decimal(n) / 100, pa.decimal128(7, 2)),
            "mid": of(lambda n: Decimal(-n), pa.decimal128(16, 4)),
            "big": of(lambda n: Decimal(n) * 10**20, pa.decimal128(38, 10)),
            "l": of(lambda n: ["a", None, "b"][: n % 4], pa.list_(pa.string())),
            "m": of(lambda n: [("k", n), ("j", None)], pa.map_(pa.string(), pa.int64())),
            "st": of(lambda n: {"x": n, "z": {"w": str(n)} if n % 3 else None}, struct),
            "p": pa.array(["x y/ü" if n % 2 else None for n in range(rows)]),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "t"
    data = everything()
    commit(path, write(path, data, TYPES, partition_by=["p"]), TYPES, ["p"])
    return path, data


def rows(found):
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def comparable(row):
    """NaN is not equal to itself; maps come as dicts or as pairs."""
    out = {key: "NaN" if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
    out["m"] = (
        sorted(map(tuple, out["m"].items() if isinstance(out["m"], dict) else out["m"])) if out["m"] else out["m"]
    )
    return out


def test_deltafast_reads_every_type(table):
    path, data = table
    found = deltafast.DeltaTable(str(path)).to_pyarrow_table().select(data.column_names)
    assert list(map(comparable, rows(found))) == list(map(comparable, rows(data)))


def test_deltalake_reads_every_type(table):
    path, data = table
    found = deltalake.DeltaTable(str(path)).to_pyarrow_table().select(data.column_names)
    assert list(map(comparable, rows(found))) == list(map(comparable, rows(data)))


def test_deltalake_prunes_by_our_statistics(table):
    path, _ = table
    scan = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    for where, count in [
        ("id >= 2990", 10),
        ("d > 1e300", 1),
        ("s >= 'ü02999'", 1),
        ("p is null and id < 10", 5),
        ("mid < -2998", 1),
    ]:
        found = pa.table(scan.execute(f"select id from t where {where}").read_all())
        assert found.num_rows == count, where


def test_polars_and_duckdb_read_the_files(table):
    path, data = table
    files = [str(file) for file in path.glob("*/*.parquet")]
    assert len(files) == 2
    plain = [name for name in data.column_names if name not in {"p", "m", "d"}]
    polars = pl.concat([pl.read_parquet(file, hive_partitioning=False) for file in files]).select(plain)
    assert rows(polars.to_arrow()) == rows(data.select(plain))
    source = f"read_parquet({files}, hive_partitioning=false)"
    query = f"select count(*), sum(id), sum(small), max(t)::varchar, count(st.z.w) from {source}"
    ours = data.to_pydict()
    assert duckdb.sql(query).fetchall()[0][:3] == (
        3000,
        sum(ours["id"]),
        sum(v for v in ours["small"] if v is not None),
    )


def test_parquet_types_are_those_of_spark(table):
    path, _ = table
    schema = pq.read_schema(next(path.glob("*/*.parquet")))
    metadata = pq.read_metadata(next(path.glob("*/*.parquet")))
    columns = {metadata.schema.column(n).path: metadata.schema.column(n) for n in range(metadata.num_columns)}
    physical = {name: columns[name].physical_type for name in ("b", "small", "mid", "big", "t", "n")}
    assert physical == {
        "b": "INT32",
        "small": "INT32",
        "mid": "INT64",
        "big": "FIXED_LEN_BYTE_ARRAY",
        "t": "INT64",
        "n": "INT64",
    }
    assert {"l.list.element", "m.key_value.key", "m.key_value.value", "st.z.w"} <= set(columns)
    assert (schema.field("t").type, schema.field("n").type) == (pa.timestamp("us", "UTC"), pa.timestamp("us"))
    assert metadata.created_by.startswith("deltafast version ")
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert b"ARROW:schema" not in (metadata.metadata or {})


def test_any_producer_of_batches_is_taken(tmp_path):
    schema = schema_of(a="long", s="string")
    whole = pa.table({"S": ["x", "y", None], "a": pa.array([1, 2, 3], pa.int32())})

    def batches():
        # Runs Python code on the thread of the call.
        yield from whole.to_batches(max_chunksize=1)

    sources = {
        "generator": pa.RecordBatchReader.from_batches(whole.schema, batches()),
        "polars": pl.from_arrow(whole),
        "polars views": pl.DataFrame({"a": [1, 2, 3], "s": ["x", "y", None]}),
        "duckdb": duckdb.sql("select 1 as a, 'x' as s union all select 2, 'y' union all select 3, null"),
        "pandas": whole.to_pandas(),
        "dictionary": whole.set_column(0, "s", whole["S"].dictionary_encode()),
        "large": whole.cast(pa.schema([("S", pa.large_string()), ("a", pa.uint8())])),
    }
    for name, source in sources.items():
        path = tmp_path / name
        written = write(path, source, schema)
        assert written["rows"] == 3, name
        found = pq.read_table(path / written["files"][0]["path"])
        assert rows(found.rename_columns(["id", "s"])) == [
            {"id": 1, "s": "x"},
            {"id": 2, "s": "y"},
            {"id": 3, "s": None},
        ], name


def test_nan_is_the_greatest_value(tmp_path):
    nan = pa.table({"a": [1.0, float("nan"), None], "b": pa.array([0.0, -0.0, 2.0], pa.float32())})
    (file,) = write(tmp_path, nan, schema_of(a="double", b="float"))["files"]
    stats = json.loads(file["stats"])
    assert (stats["minValues"], stats["maxValues"]) == ({"a": 1.0, "b": -0.0}, {"a": "NaN", "b": 2.0})


def test_statistics_are_plain_json(tmp_path):
    schema = schema_of(a="long", s="string", d="decimal(5,2)")
    data = pa.table(
        {
            "a": [3, 1, None],
            "s": ["b" * 40, "a", None],
            "d": pa.array([Decimal("1.50"), None, Decimal(2)], pa.decimal128(5, 2)),
        }
    )
    (file,) = write(tmp_path / "t", data, schema)["files"]
    assert file["stats"] == (
        '{"numRecords":3,"minValues":{"a":1,"s":"a","d":1.50},"maxValues":{"a":3,"s":"'
        + "b" * 32
        + '\\u007f","d":2.00},'
        '"nullCount":{"a":1,"s":1,"d":1},"tightBounds":true}'
    ).replace("\\u007f", "\x7f")
    assert file["size"] == (tmp_path / "t" / file["path"]).stat().st_size


def test_what_does_not_fit_is_refused_and_nothing_stays(tmp_path):
    schema = schema_of(a="long")
    cases = [
        (pa.table({"a": ["x"]}), SchemaMismatchError, "expected long, found Utf8"),
        (pa.table({"a": [1], "b": [2]}), SchemaMismatchError, "`b`"),
        (pa.table({"a": pa.array([2**63], pa.uint64())}), SchemaMismatchError, "column `a`"),
    ]
    for data, error, text in cases:
        with pytest.raises(error, match=text) as caught:
            write(tmp_path / "t", data, schema)
        assert caught.value.column in {"a", "b"}
    assert not list(tmp_path.glob("t/**/*.parquet*"))
    schema["fields"][0]["nullable"] = False
    with pytest.raises(ConstraintViolatedError, match="null in row 2") as caught:
        write(tmp_path / "t", pa.table({"a": [1, None]}), schema)
    assert (caught.value.constraint, caught.value.column) == ("NOT NULL", "a")


def test_writer_properties_reach_the_file(tmp_path):
    data = pa.table({"a": np.arange(1000), "s": [str(n) for n in range(1000)]})
    bloom = {"set_bloom_filter_enabled": True, "fpp": 0.01, "ndv": 1000}
    properties = {
        "compression": "SNAPPY",
        "max_row_group_size": 300,
        "column_properties": {
            "a": {"encoding": "DELTA_BINARY_PACKED", "dictionary_enabled": False, "statistics_enabled": "NONE"},
            "s": {"bloom_filter_properties": bloom},
        },
    }
    (file,) = write(tmp_path, data, schema_of(a="long", s="string"), writer_properties=properties)["files"]
    metadata = pq.read_metadata(tmp_path / file["path"])
    assert file["path"].endswith(".snappy.parquet")
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [300, 300, 300, 100]
    a = metadata.row_group(0).column(0)
    assert (a.compression, "DELTA_BINARY_PACKED" in a.encodings) == ("SNAPPY", True)
    assert json.loads(file["stats"])["maxValues"]["a"] == 999
    with pytest.raises(InvalidArgumentError, match="ZIP"):
        write(tmp_path, data, schema_of(a="long", s="string"), writer_properties={"compression": "ZIP"})


BOOLEANS = {
    "both": ([True, False, None], False, True, 1),
    "true": ([True, True], True, True, 0),
    "false": ([False, None], False, False, 1),
    "nulls": ([None, None], None, None, 2),
}


@pytest.mark.parametrize("kind", BOOLEANS)
def test_booleans_have_bounds_in_the_log_and_in_checkpoints(tmp_path: pathlib.Path, kind: str) -> None:
    """Also below structs; a file without values has none, and null counts alone."""
    values, low, high, nulls = BOOLEANS[kind]
    path = str(tmp_path / "table")
    inner = [{"f": value} for value in values]
    rows = pa.table({"b": pa.array(values, pa.bool_()), "s": pa.array(inner, pa.struct([("f", pa.bool_())]))})
    deltafast.write_deltalake(path, rows, configuration={"delta.checkpoint.writeStatsAsStruct": "true"})
    table = deltafast.DeltaTable(path)
    for _ in range(2):
        (action,) = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        assert [action.get(key) for key in ("min.b", "max.b", "null_count.b")] == [low, high, nulls]
        assert [action.get(key) for key in ("min.s.f", "max.s.f", "null_count.s.f")] == [low, high, nulls]
        table.create_checkpoint()
        table = deltafast.DeltaTable(path)
    assert table.scan(predicate="b").read_all().num_rows == sum(value is True for value in values)
