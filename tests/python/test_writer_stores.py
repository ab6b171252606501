"""Writing to object stores: the table of a local disk, and nothing committed where a store is only read."""

import fsspec
import pyarrow as pa
import pytest

import servers
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import ConcurrentAppendError, DeltaProtocolError
from support import same_rows

ROWS = pa.table({"id": range(100), "p": [["a b/ü", "x=1", None][n % 3] for n in range(100)]})


@pytest.fixture(scope="module")
def s3():
    with servers.s3() as bucket:
        yield bucket


def test_a_table_in_s3_is_written_in_every_mode(s3, tmp_path):
    url, options = f"s3://{s3.bucket}/some tables/ü=1/t", s3.options()
    for place, given in ((url, options), (tmp_path, None)):
        write_deltalake(
            place, ROWS, partition_by="p", storage_options=given, configuration={"delta.checkpointInterval": "2"}
        )
        write_deltalake(place, ROWS.slice(0, 10), mode="append", storage_options=given)
        write_deltalake(place, ROWS.slice(5, 1), mode="overwrite", predicate="id = 5", storage_options=given)
        write_deltalake(
            place, ROWS.slice(1, 1), mode="overwrite", partition_overwrite_mode="dynamic", storage_options=given
        )
    there, here = DeltaTable(url, storage_options=options), DeltaTable(tmp_path)
    assert there.version() == here.version() == 3
    assert there.schema() == here.schema()
    same_rows(there.to_pyarrow_table(), here.to_pyarrow_table())
    for version in range(4):
        there.load_as_version(version)
        here.load_as_version(version)
        same_rows(there.to_pyarrow_table(), here.to_pyarrow_table())


def test_writers_in_s3_see_each_other(s3):
    url, options = f"s3://{s3.bucket}/two", s3.options()
    write_deltalake(url, ROWS, storage_options=options)
    one, two, three = (DeltaTable(url, storage_options=options) for _ in range(3))
    write_deltalake(one, ROWS, mode="append")
    write_deltalake(two, ROWS, mode="append")
    with pytest.raises(ConcurrentAppendError):
        write_deltalake(three, ROWS, mode="overwrite")
    assert (one.version(), two.version(), two.count()) == (1, 2, 300)


def test_a_table_in_memory_is_written():
    write_deltalake("memory:///written", ROWS)
    write_deltalake("memory:///written", ROWS, mode="append")
    assert DeltaTable("memory:///written").count() == 200


def test_stores_that_are_only_read_are_not_written(tmp_path):
    write_deltalake(tmp_path, ROWS)
    table = DeltaTable(str(tmp_path), store=fsspec.filesystem("file"))
    assert table.count() == 100
    with pytest.raises(DeltaProtocolError, match="read"):
        write_deltalake(table, ROWS, mode="append")
    assert DeltaTable(tmp_path).version() == 0
