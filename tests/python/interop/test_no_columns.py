"""A projection of no column keeps the number of rows: each reader, on each kind of table, with filters and limits."""

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltafast
import deltafast.polars
from deltafast import DeltaTable, write_deltalake
from deltafast._deltalake.table import DeltaTable as DropInTable
from deltafast._interop.polars_scan import _require_height
from deltafast.exceptions import InvalidArgumentError
from sharing import SharingServer

FEED = {"delta.enableChangeDataFeed": "true"}
SETTINGS: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "mapped": {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
}
#: Rows with ids 0 to 11 without 3 and 8, in two files or partitions.
ROWS = 10
SELECTED = 7  # ids above 3


@pytest.fixture(scope="module", params=[("plain", False), ("vectors", True), ("mapped", False)], ids=str)
def location(request, tmp_path_factory) -> Path:
    name, is_partitioned = request.param
    path = tmp_path_factory.mktemp("tables") / "t"
    partition_by = ["p"] if is_partitioned else None
    for start in (0, 6):
        rows = {"id": list(range(start, start + 6)), "p": ["a", None] * 3}
        write_deltalake(path, rows, mode="append", partition_by=partition_by, configuration=FEED | SETTINGS[name])
    DeltaTable(path).delete("id in (3, 8)")
    return path


LAZY_QUERIES: dict[str, tuple[Any, int]] = {
    "row numbers": (lambda frame: frame.with_row_index().select("index"), ROWS),
    "first row numbers": (lambda frame: frame.with_row_index().select("index").head(3), 3),
    "last row numbers": (lambda frame: frame.with_row_index().select("index").tail(4), 4),
    "a slice of row numbers": (lambda frame: frame.slice(2, 5).with_row_index().select("index"), 5),
    "a range of the length": (lambda frame: frame.select(pl.int_range(pl.len())), ROWS),
    "groups of row numbers": (lambda frame: frame.with_row_index().group_by(pl.col("index") // 4).len(), 3),
    "a new column alone": (lambda frame: frame.with_columns(one=pl.lit(1)).select("one"), ROWS),
    "row numbers of a filter": (
        lambda frame: frame.filter(pl.col("id") > 3).with_row_index().select("index"),
        SELECTED,
    ),
    "row numbers of a filter in Polars": (
        lambda frame: frame.filter(pl.col("id") * 2 > 6).with_row_index().select("index"),
        SELECTED,
    ),
    "row numbers of a constant filter": (
        lambda frame: frame.filter(pl.lit(value=True)).with_row_index().select("index"),
        ROWS,
    ),
    "a filter of row numbers": (lambda frame: frame.with_row_index().select("index").filter(pl.col("index") > 3), 6),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("query", LAZY_QUERIES)
def test_a_lazy_frame_that_reads_no_column_has_all_rows(location, query, engine):
    build, expected = LAZY_QUERIES[query]
    frame = build(DeltaTable(location).scan_polars()).collect(engine=engine)
    assert frame.height == expected


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_of_changes_that_reads_no_column_has_all_rows(location, engine):
    table = DeltaTable(location)
    changes = deltafast.polars.scan_cdf(table, starting_version=0)
    expected = table.load_cdf(0).read_all().num_rows
    assert expected > ROWS
    assert changes.with_row_index().select("index").collect(engine=engine).height == expected
    deleted = changes.filter(pl.col("_change_type") == "delete")
    assert deleted.with_row_index().select("index").collect(engine=engine).height == 2


def frame_rows(frame: Any) -> int:
    return frame.shape[0]


READERS: dict[str, Any] = {
    "batches": lambda t, f, n: sum(batch.num_rows for batch in t.scan(columns=[], predicate=f, limit=n)),
    "read_all": lambda t, f, n: t.scan(columns=[], predicate=f, limit=n).read_all().num_rows,
    "pyarrow reader": lambda t, f, n: t.scan(columns=[], predicate=f, limit=n).to_pyarrow().read_all().num_rows,
    "C stream in pyarrow": lambda t, f, n: pa.table(t.scan(columns=[], predicate=f, limit=n)).num_rows,
    "C stream in Polars": lambda t, f, n: frame_rows(pl.DataFrame(t.scan(columns=[], predicate=f, limit=n))),
    "to_pyarrow_table": lambda t, f, n: t.to_pyarrow_table(columns=[], filters=f, limit=n).num_rows,
    "to_pandas": lambda t, f, n: frame_rows(t.to_pandas(columns=[], filters=f, limit=n)),
    "to_polars": lambda t, f, n: frame_rows(t.to_polars(columns=[], predicate=f, limit=n)),
}


@pytest.mark.parametrize("limit", [None, 0, 4, 100])
@pytest.mark.parametrize("predicate", [None, "id > 3"])
@pytest.mark.parametrize("reader", READERS)
def test_a_scan_of_no_column_has_the_rows_of_a_scan_of_all(location, reader, predicate, limit):
    matching = ROWS if predicate is None else SELECTED
    expected = matching if limit is None else min(limit, matching)
    assert READERS[reader](DeltaTable(location), predicate, limit) == expected


FILTERS: dict[str, tuple[Any, int]] = {
    "no filter": (None, ROWS),
    "a filter of the core": (pc.field("id") > 3, SELECTED),
    "a filter of pyarrow": (pc.multiply(pc.field("id"), 2) > 6, SELECTED),
}
DATASET_READS: dict[str, Any] = {
    "count_rows": lambda ds, f: ds.count_rows(filter=f),
    "to_table": lambda ds, f: ds.to_table(columns=[], filter=f).num_rows,
    "to_table of a dictionary": lambda ds, f: ds.to_table(columns={}, filter=f).num_rows,
    "to_table of a constant": lambda ds, f: ds.to_table(columns={"one": pc.scalar(1)}, filter=f).num_rows,
    "to_batches": lambda ds, f: sum(batch.num_rows for batch in ds.to_batches(columns=[], filter=f)),
    "scanner": lambda ds, f: ds.scanner(columns=[], filter=f).to_table().num_rows,
    "count of a scanner": lambda ds, f: ds.scanner(columns=[], filter=f).count_rows(),
    "reader of a scanner": lambda ds, f: ds.scanner(columns=[], filter=f).to_reader().read_all().num_rows,
    "head": lambda ds, f: ds.head(100, columns=[], filter=f).num_rows,
}


@pytest.mark.parametrize("schema", [None, "other types", "an unknown column"])
@pytest.mark.parametrize("filtered", FILTERS)
@pytest.mark.parametrize("reading", DATASET_READS)
def test_a_pyarrow_dataset_counts_its_rows_without_columns(location, reading, filtered, schema):
    dataset = DeltaTable(location).to_pyarrow_dataset()
    if schema == "other types":
        dataset = dataset.replace_schema(pa.schema({"id": pa.float64(), "p": pa.large_string()}))
    elif schema == "an unknown column":
        dataset = dataset.replace_schema(pa.schema({"id": pa.int64(), "new": pa.int64()}))
    condition, expected = FILTERS[filtered]
    assert DATASET_READS[reading](dataset, condition) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM t", [(ROWS,)]),
        ("SELECT count(*) FROM t WHERE id > 3", [(SELECTED,)]),
        ("SELECT count(*) FROM (SELECT 1 FROM t LIMIT 4)", [(4,)]),
        ("SELECT count(*) FROM t a, t b", [(ROWS * ROWS,)]),
        ("SELECT max(n) FROM (SELECT row_number() OVER () AS n FROM t)", [(ROWS,)]),
    ],
)
def test_sql_counts_rows_without_columns(location, query, expected):
    table = DeltaTable(location)
    assert [tuple(row.values()) for row in deltafast.sql(query, t=table).read_all().to_pylist()] == expected
    with duckdb.connect() as connection:
        connection.register("t", table.to_pyarrow_dataset())
        assert connection.execute(query).fetchall() == expected


def test_the_change_feed_of_no_column_has_all_rows(location):
    expected = DeltaTable(location).load_cdf(0).read_all().num_rows
    for table in (DeltaTable(location), DropInTable(location)):
        assert table.load_cdf(0, columns=[]).read_all().num_rows == expected
        assert pa.table(table.load_cdf(0, columns=[])).num_rows == expected
        assert pl.DataFrame(table.load_cdf(0, columns=[])).height == expected


def test_the_table_of_the_drop_in_has_all_rows_without_columns(location):
    table = DropInTable(location)
    assert table.to_pyarrow_table(columns=[]).num_rows == ROWS
    assert table.to_pyarrow_table(columns=[], filters=[("id", ">", 3)]).num_rows == SELECTED
    assert table.to_pandas(columns=[]).shape == (ROWS, 0)
    assert table.to_pyarrow_dataset().to_table(columns=[]).num_rows == ROWS
    assert table.to_pyarrow_dataset().count_rows() == ROWS


def test_a_shared_table_has_all_rows_without_columns(location, tmp_path):
    # The form parquet has no deletion vectors.
    has_vectors = "deletionVectors" in (DeltaTable(location).protocol().reader_features or ())
    for form in ["delta"] if has_vectors else ["delta", "parquet"]:
        with SharingServer(form=form).running() as server:
            server.share(location)
            table = DeltaTable(f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders")
            for reader in READERS.values():
                assert reader(table, None, None) == ROWS
                assert reader(table, "id > 3", 4) == 4
            assert table.scan_polars().with_row_index().select("index").collect().height == ROWS
            assert table.to_pyarrow_dataset().to_table(columns=[]).num_rows == ROWS


def test_a_release_of_polars_that_loses_the_rows_is_refused_by_name():
    # Before Polars 2.0 a frame without columns has a height of 0.
    with pytest.raises(InvalidArgumentError, match=r"Polars 2\.\S+ has no data frames with rows but without columns"):
        _require_height(pl.DataFrame(), 3)
