"""Every way out of a table gives the same rows, on every table of the corpus that can be read."""

import pickle

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from conformance import compare, corpus
from deltafast import DeltaTable, QueryBuilder
from support import one_in

pytestmark = [
    # Tables of hundreds of thousands of rows are compared value by value.
    pytest.mark.timeout(300),
    # One of the tables has a version checksum that lies; `test_corpus` knows which.
    pytest.mark.filterwarnings("ignore::deltafast.DeltaWarning"),
]

CASES = corpus.cases("read")


@pytest.fixture(params=one_in(3, CASES), ids=str)
def table(request):
    with corpus.folder(request.param.table) as path:
        yield DeltaTable(path)


def test_polars_reads_what_pyarrow_reads(table):
    expected = pl.DataFrame(table.to_pyarrow_table())
    assert_frame_equal(table.to_polars(), expected, check_row_order=False)
    assert table.scan_polars().collect_schema() == expected.schema
    assert_frame_equal(table.scan_polars().collect(engine="streaming"), expected, check_row_order=False)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_datasets_streams_and_pickles_read_what_pyarrow_reads(table):
    expected = table.to_pyarrow_table()
    others = [
        table.to_pyarrow_dataset().to_table(),
        pa.table(table),
        table.scan().read_all(),
        pickle.loads(pickle.dumps(table)).to_pyarrow_table(),
    ]
    wanted: list[str] = []
    for other in others:
        assert other.schema.equals(expected.schema)
        if not other.equals(expected):  # in another order, or with a NaN
            wanted = wanted or rows(expected)
            assert rows(other) == wanted
    assert table.to_pyarrow_dataset().count_rows() == table.count() == expected.num_rows


def test_duckdb_reads_what_pyarrow_reads(table):
    expected = table.to_pyarrow_table()
    names = [pa.field(name, kind) for name, kind in zip(expected.schema.names, expected.schema.types, strict=True)]
    if len({name.lower() for name in expected.schema.names}) < len(names):
        pytest.skip("DuckDB has no two columns that differ in case only")
    found = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    assert found.column_names == expected.column_names
    # DuckDB encodes a variant anew, so values are compared and not bytes.
    fields = table.schema().json()["fields"]
    assert sorted(compare.row_strings(same_words(found), fields)) == sorted(
        compare.row_strings(same_words(expected), fields)
    )
    assert duckdb.from_arrow(table.to_pyarrow_dataset()).aggregate("count(*)").fetchall() == [(expected.num_rows,)]


def same_words(table: pa.Table) -> pa.Table:
    """The table with types that DuckDB writes in another way brought to one."""
    fields = [pa.field(field.name, one_type(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def one_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, one_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(one_type(kind.key_type), one_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(one_type(kind.value_type))
    return kind
