"""Writing to object stores: the table of a local disk, and nothing committed where a store is only read."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import fsspec
import numpy as np
import obstore.store
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import servers
from deltafast import DeltaTable, Field, write_deltalake
from deltafast.exceptions import ConcurrentAppendError, DeltaProtocolError, StorageError
from deltafast.stores import FsspecStore, PyarrowStore
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


def of_fsspec(tmp_path):
    return fsspec.filesystem("file"), str(tmp_path / "t")


def of_fsspec_memory(tmp_path):
    return fsspec.filesystem("memory"), f"memory://{tmp_path.name}/t"


def of_pyarrow(tmp_path):
    return pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()), "t"


def of_obstore(_):
    return obstore.store.MemoryStore(), "some/t"


@pytest.mark.parametrize("kind", [of_fsspec, of_fsspec_memory, of_pyarrow, of_obstore])
def test_python_stores_are_written_in_every_mode(kind, tmp_path):
    store, uri = kind(tmp_path)
    for place, how in ((uri, {"store": store}), (str(tmp_path / "plain"), {})):
        write_deltalake(place, ROWS, partition_by="p", configuration={"delta.checkpointInterval": "2"}, **how)
        write_deltalake(place, ROWS.slice(0, 10), mode="append", **how)
        table = DeltaTable(place, **how)
        write_deltalake(table, ROWS.slice(5, 1), mode="overwrite", predicate="id = 5")
        table.alter.add_columns([Field("more", "string")])
        write_deltalake(table, ROWS.slice(1, 1), mode="overwrite", partition_overwrite_mode="dynamic")
        table.restore(1)
        time.sleep(0.01)
        assert table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
        table.create_checkpoint()
        table.compact_logs(5, 7)
    there, here = DeltaTable(uri, store=store), DeltaTable(tmp_path / "plain")
    assert there.version() == here.version() == 7
    assert there.schema() == here.schema()
    assert [c["operation"] for c in there.history()] == [c["operation"] for c in here.history()]
    same_rows(there.to_pyarrow_table(), here.to_pyarrow_table())
    if kind in (of_fsspec, of_pyarrow):
        assert not list((tmp_path / "t").rglob("*.tmp"))
        same_rows(DeltaTable(tmp_path / "t").to_pyarrow_table(), here.to_pyarrow_table())


def test_a_large_file_goes_into_a_python_store(tmp_path):
    rows = pa.table({"id": range(1_500_000), "noise": np.frombuffer(os.urandom(12_000_000), dtype=np.int64)})
    for kind in (of_fsspec_memory, of_obstore):
        store, uri = kind(tmp_path)
        write_deltalake(uri, rows, store=store)
        table = DeltaTable(uri, store=store)
        assert len(table.files()) == 1
        assert table.to_pyarrow_table(columns=["noise"])["noise"].equals(rows["noise"])


@pytest.mark.parametrize("kind", [of_fsspec, of_fsspec_memory, of_obstore])
def test_of_many_writers_through_python_none_is_lost(kind, tmp_path):
    store, uri = kind(tmp_path)
    write_deltalake(uri, ROWS.slice(0, 0), store=store)

    def append(n):
        write_deltalake(uri, pa.table({"id": [1000 + n]}), mode="append", store=store)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(append, range(24)))
    table = DeltaTable(uri, store=store)
    assert table.version() == 24
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1000 + n for n in range(24)]


def test_what_fails_in_a_python_store_leaves_the_table_as_it_was(tmp_path):
    class Full(FsspecStore):
        def create(self, path):
            new = super().create(path)
            if path.endswith(".parquet"):

                def write(_):
                    raise OSError(28, "No space left on device")

                new.write = write
            return new

    store, uri = of_fsspec(tmp_path)
    write_deltalake(uri, ROWS, store=store)
    before = sorted((tmp_path / "t").rglob("*"))
    with pytest.raises(StorageError, match="No space left"):
        write_deltalake(uri, ROWS, mode="append", store=Full(store, uri))
    assert sorted((tmp_path / "t").rglob("*")) == before
    assert DeltaTable(uri, store=store).version() == 0


def test_stores_that_are_only_read_are_not_written(tmp_path):
    write_deltalake(tmp_path / "t", ROWS)
    before = sorted(tmp_path.rglob("*"))

    class Reader:
        def __init__(self):
            self.inner = FsspecStore(fsspec.filesystem("file"), str(tmp_path / "t"))
            self.list_from, self.get_range, self.size = self.inner.list_from, self.inner.get_range, self.inner.size

    wrapped = pafs.PyFileSystem(pafs.FSSpecHandler(fsspec.filesystem("file")))
    for store, reason in (
        (Reader(), "no method `"),
        (wrapped, "PyFileSystem cannot make a file only if"),
    ):
        table = DeltaTable(str(tmp_path / "t"), store=store)
        assert table.count() == 100
        for work in (
            lambda table=table: write_deltalake(table, ROWS, mode="append"),
            lambda table=table: table.alter.set_table_properties({"delta.appendOnly": "true"}),
            lambda table=table: table.create_checkpoint(),
        ):
            with pytest.raises(DeltaProtocolError, match="read") as caught:
                work()
            assert reason in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_old_file_system_that_knows_no_exclusive_creation_is_only_read():
    def pipe_file(self, path, data, **kwargs):
        """As it was before `mode`."""

    old = type("S3FileSystem", (fsspec.AbstractFileSystem,), {"__module__": "s3fs.core", "_pipe_file": pipe_file})
    assert "S3FileSystem cannot make" in (FsspecStore(old(), "s3://bucket/t").read_only or "")


@pytest.mark.skipif(os.name != "posix", reason="links need a right elsewhere")
def test_folders_behind_a_link_are_not_removed(tmp_path):
    for folder in ("t/own", "outside/empty"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "t/link").symlink_to(tmp_path / "outside")
    root = str(tmp_path / "t")
    for store in (FsspecStore(fsspec.filesystem("file"), root), PyarrowStore(pafs.LocalFileSystem(), root)):
        for path in ("link/empty", "../outside/empty", "link"):
            store.remove_folder(path)
        assert (tmp_path / "outside/empty").is_dir()
        (tmp_path / "t/own").mkdir(exist_ok=True)
        store.remove_folder("own")
        assert not (tmp_path / "t/own").exists()
