"""Tables in stores made in Python, read like any other and by every consumer."""

import pickle

import duckdb
import fsspec
import obstore
import polars as pl
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from obstore.store import LocalStore, MemoryStore

from deltafast import DeltaTable, exceptions
from support import same_rows


def fsspec_local(path):
    return DeltaTable(path, store=fsspec.filesystem("file"))


def fsspec_memory(path):
    fs = fsspec.filesystem("memory")
    fs.put(str(path), f"/{path.name}", recursive=True)
    return DeltaTable(f"memory://{path.name}", store=fs)


def pyarrow_local(path):
    return DeltaTable(path, store=pafs.LocalFileSystem())


def obstore_local(path):
    return DeltaTable(path.name, store=LocalStore(path.parent))


def obstore_memory(path):
    store = MemoryStore()
    for file in path.rglob("*"):
        if file.is_file():
            obstore.put(store, f"deep/{file.relative_to(path)}", file.read_bytes())
    return DeltaTable("memory:///deep", store=store)


KINDS = [fsspec_local, fsspec_memory, pyarrow_local, obstore_local, obstore_memory]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def table(request, events_path):
    return request.param(events_path)


def test_a_table_reads_the_same_from_any_store(table, event_table):
    assert table.version() == 2
    assert table.count() == 90
    same_rows(table.to_pyarrow_table(), event_table)
    same_rows(table.to_pyarrow_table(filters="id < 10"), event_table.slice(0, 10))
    table.load_as_version(0)
    assert table.to_pyarrow_table().num_rows == 30
    table.update_incremental()
    assert table.version() == 2


class StreamOnly:
    """The table without its dataset."""

    def __init__(self, table):
        self.__arrow_c_schema__ = table.__arrow_c_schema__
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


CONSUMERS = {
    "pyarrow": lambda table: pa.table(table).num_rows,
    "polars": lambda table: pl.DataFrame(table).height,
    "polars lazy": lambda table: table.scan_polars().collect(engine="streaming").height,
    "duckdb": lambda table: len(table.to_duckdb().select("id").fetchall()),
    "duckdb stream": lambda table: (
        duckdb.connect().from_arrow(StreamOnly(table)).aggregate("count(*)").fetchall()[0][0]
    ),
    "pandas": lambda table: len(table.to_pandas()),
    "progress": lambda table: table.to_pyarrow_table(progress=lambda *_: None).num_rows,
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_no_consumer_blocks_the_store(table, consumer):
    """A consumer may hold the GIL while it pulls; the store needs it to answer."""
    assert CONSUMERS[consumer](table) == 90


def test_a_table_pickles_with_its_store(events_path, event_table):
    same_rows(pickle.loads(pickle.dumps(fsspec_local(events_path))).to_pyarrow_table(), event_table)


def test_a_missing_table_is_file_not_found(tmp_path):
    with pytest.raises(exceptions.TableNotFoundError):
        DeltaTable(tmp_path / "nothing", store=fsspec.filesystem("file"))


def test_the_stores_own_error_is_the_cause(events_path):
    class Broken:
        def list_from(self, prefix, offset):
            message = "the cable is cut"
            raise OSError(message)

        def get_range(self, path, start, end):
            return b""

        def size(self, path):
            return 0

    with pytest.raises(exceptions.StorageError, match="the cable is cut"):
        DeltaTable(events_path, store=Broken())
