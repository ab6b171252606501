"""Views of strings and binaries in data that is written and read; pyarrow before 25 cannot export all of them."""

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast._interop.duckdb_query import ViewQueryBuilder

STRINGS = pa.array(["a", None, "b"])
#: Short values only: a cast leaves the views without a buffer of their own.
VIEWS = STRINGS.cast(pa.string_view())
LIST = pa.list_(pa.string_view())
STRUCT = pa.struct([("x", pa.string_view())])
MAP = pa.map_(pa.string_view(), pa.binary_view())

COLUMNS = {
    "string": VIEWS,
    "binary": pa.array([b"a", None, b"b"]).cast(pa.binary_view()),
    "long": pa.array(["a" * 40, None, "b"]).cast(pa.string_view()),
    "null": pa.nulls(3, pa.string_view()),
    "list": pa.array([["a"], None, []], pa.list_(pa.string())).cast(LIST),
    "struct": pa.array([{"x": "a"}, None, {"x": None}], pa.struct([("x", pa.string())])).cast(STRUCT),
    "map": pa.array([[("a", b"b")], None, []], pa.map_(pa.string(), pa.binary())).cast(MAP),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), STRINGS.drop_null().cast(pa.string_view())),
}

FORMS = {
    "table": lambda table: table,
    "slice": lambda table: table.slice(0),
    "batch": lambda table: table.to_batches()[0],
    "batches": lambda table: table.to_batches(),
    "tables": lambda table: [table],
    "reader": lambda table: table.to_reader(),
    "dataset": pads.dataset,
    "columns": lambda table: dict(zip(table.column_names, table.columns, strict=True)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", COLUMNS)
def test_views_are_written(tmp_path, column, form):
    rows = pa.table({"id": [1, 2, 3], "v": COLUMNS[column]})
    write_deltalake(tmp_path / "t", FORMS[form](rows))
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["v"].to_pylist() == rows["v"].to_pylist()


def test_a_merge_takes_views(tmp_path):
    write_deltalake(tmp_path, pa.table({"id": [1], "s": ["z"]}))
    merger = DeltaTable(tmp_path).merge(pa.table({"id": [1, 2, 3], "s": VIEWS}), "t.id = s.id", "s", "t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert set(DeltaTable(tmp_path).to_pyarrow_table()["s"].to_pylist()) == {"a", None, "b"}


def test_views_of_a_query_can_be_exported(tmp_path):
    write_deltalake(tmp_path, pa.table({"s": ["a", None], "b": [b"x", None]}))
    rows = ViewQueryBuilder().register("t", DeltaTable(tmp_path)).execute("SELECT * FROM t").read_all()
    assert rows.schema.types == [pa.string_view(), pa.binary_view()]
    assert pa.RecordBatchReader.from_stream(rows).read_all().to_pylist() == [
        {"s": "a", "b": b"x"},
        {"s": None, "b": None},
    ]
