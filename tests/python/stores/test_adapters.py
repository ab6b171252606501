"""Python stores speak one protocol, whatever library they come from."""

import time
from typing import ClassVar

import fsspec
import obstore
import pyarrow.fs as pafs
import pytest
from obstore.store import LocalStore, MemoryStore

from deltafast.exceptions import InvalidArgumentError
from deltafast.stores import Store, adapt_store

FILES = {
    "_delta_log/00000000000000000000.json": b"zero",
    "_delta_log/00000000000000000001.json": b"one",
    "_delta_log/00000000000000000010.json": b"ten",
    "_delta_log/_sidecars/a.parquet": b"sidecar",
    "part 0%20.parquet": bytes(range(256)),
}
LOG = [name for name in FILES if name.startswith("_delta_log/0")]


def write_local(tmp_path):
    for name, data in FILES.items():
        path = tmp_path / "t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "t"


def fsspec_local(tmp_path):
    return fsspec.filesystem("file"), str(write_local(tmp_path))


def fsspec_local_url(tmp_path):
    return fsspec.filesystem("file"), f"file://{write_local(tmp_path)}"


def fsspec_memory(tmp_path):
    fs = fsspec.filesystem("memory")
    for name, data in FILES.items():
        fs.pipe_file(f"/{tmp_path.name}/t/{name}", data)
    return fs, f"memory://{tmp_path.name}/t"


def pyarrow_local(tmp_path):
    return pafs.LocalFileSystem(), str(write_local(tmp_path))


def pyarrow_rooted(tmp_path):
    return pafs.SubTreeFileSystem(str(write_local(tmp_path)), pafs.LocalFileSystem()), ""


def obstore_local(tmp_path):
    write_local(tmp_path)
    return LocalStore(tmp_path), "t"


def obstore_rooted(tmp_path):
    return LocalStore(write_local(tmp_path)), "/"


def obstore_memory(tmp_path):
    store = MemoryStore()
    for name, data in FILES.items():
        obstore.put(store, f"deep/t/{name}", data)
    return store, "memory://bucket/deep/t/"


KINDS = [
    fsspec_local, fsspec_local_url, fsspec_memory, pyarrow_local, pyarrow_rooted, obstore_local, obstore_rooted,
    obstore_memory,
]  # fmt: skip


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def store(request, tmp_path) -> Store:
    return adapt_store(*request.param(tmp_path))


def test_a_listing_is_sorted_and_not_recursive(store):
    listed = list(store.list_from("_delta_log", None))
    assert [name for name, _, _ in listed] == LOG
    assert [size for _, size, _ in listed] == [len(FILES[name]) for name in LOG]
    assert all(abs(modified / 1000 - time.time()) < 3600 for _, _, modified in listed)
    assert list(store.list_from("_delta_log/", None)) == listed


@pytest.mark.parametrize("skipped", range(1, 4))
def test_a_listing_starts_after_the_offset(store, skipped):
    assert [name for name, _, _ in store.list_from("_delta_log", LOG[skipped - 1])] == LOG[skipped:]


def test_an_offset_need_not_exist(store):
    assert [name for name, _, _ in store.list_from("_delta_log", "_delta_log/00000000000000000005")] == LOG[2:]


def test_a_folder_that_is_not_there_is_empty(store):
    assert list(store.list_from("_delta_log/_staged_commits", None)) == []


def test_ranges_are_half_open(store):
    name = "part 0%20.parquet"
    assert store.get_range(name, 10, 20) == bytes(range(10, 20))
    assert store.get_range(name, 0, 256) == FILES[name]
    assert store.size(name) == 256


def test_a_missing_file_is_file_not_found(store):
    with pytest.raises(FileNotFoundError):
        store.size("_delta_log/nothing.json")
    with pytest.raises(FileNotFoundError):
        store.get_range("_delta_log/nothing.json", 0, 1)


def test_a_new_file_is_seen_by_the_next_listing(tmp_path):
    fs, uri = fsspec_memory(tmp_path)
    store = adapt_store(fs, uri)
    assert len(list(store.list_from("_delta_log", None))) == 3
    fs.pipe_file(f"/{tmp_path.name}/t/_delta_log/00000000000000000011.json", b"x")
    assert len(list(store.list_from("_delta_log", None))) == 4


def test_a_file_system_that_remembers_listings_is_made_to_look_again(tmp_path):
    class Remembering(type(fsspec.filesystem("memory"))):
        """As adlfs does: `ls` answers from memory whatever it is asked, and `info` from what `ls` left there."""

        known: ClassVar[dict[str, list]] = {}

        def ls(self, path, detail=True, **_):
            return self.known.setdefault(path, super().ls(path, detail=True))

        def info(self, path, **_):
            parent, _, _ = path.rpartition("/")
            if parent in self.known and path not in [entry["name"] for entry in self.known[parent]]:
                raise FileNotFoundError(path)
            return super().info(path)

        def invalidate_cache(self, path=None):
            self.known.clear()

    fs = Remembering()
    log = f"/{tmp_path.name}/t/_delta_log"
    fs.pipe_file(f"{log}/0.json", b"x")
    store = adapt_store(fs, f"memory://{tmp_path.name}/t")
    assert len(list(store.list_from("_delta_log", None))) == 1
    fs.pipe_file(f"{log}/1.json", b"xy")
    assert store.size("_delta_log/1.json") == 2
    assert len(list(store.list_from("_delta_log", None))) == 2


def test_an_object_that_speaks_the_protocol_is_taken_as_it_is():
    class Mine:
        def list_from(self, prefix, offset):
            return []

        def get_range(self, path, start, end):
            return b""

        def size(self, path):
            return 0

    mine = Mine()
    assert adapt_store(mine, "anything") is mine


def test_anything_else_is_refused():
    with pytest.raises(InvalidArgumentError, match="store=int"):
        adapt_store(3, "/t")
