"""Addresses of tables: a scheme is that scheme or an error, `~` is the home folder, and what is there instead."""

import socket
from pathlib import Path

import fsspec
import obstore.store
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.dirfs import DirFileSystem

import deltafast
from deltafast import (
    DeltaTable,
    InvalidArgumentError,
    Schema,
    StorageError,
    TableNotFoundError,
    create_table_with_add_actions,
    write_deltalake,
)
from deltafast.cli import main
from deltafast.doctor import examine
from deltafast.filesystem import DeltaStorageHandler
from deltafast.stores import adapt_store
from tablekit import log

ROWS = pa.table({"id": [1, 2, 3]})
SCHEMA = Schema.from_arrow(ROWS.schema)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory, and a home folder next to it."""
    folder, home = tmp_path / "here", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    return folder


def left(folder):
    return [path.name for path in folder.iterdir()]


def clone(place):
    write_deltalake(Path.home() / "source", ROWS, mode="overwrite")
    return DeltaTable(Path.home() / "source").clone(place)


def convert(place):
    deltafast.convert_to_deltalake(place)


WRITES = {
    "write": lambda place: write_deltalake(place, ROWS),
    "create": lambda place: DeltaTable.create(place, SCHEMA),
    "add actions": lambda place: create_table_with_add_actions(place, SCHEMA, [], "error", []),
    "clone": clone,
    "convert": convert,
    "sql": lambda place: deltafast.sql(f"CREATE TABLE delta.`{place}` (id INT) USING delta"),
    "check": lambda place: deltafast.check_store(place, rounds=1, writers=2, objects=2),
}
READS = {
    "open": DeltaTable,
    "is_deltatable": DeltaTable.is_deltatable,
    "doctor": examine,
    "files": DeltaStorageHandler,
    "read by sql": lambda place: deltafast.sql(f"SELECT * FROM delta.`{place}`"),
}
NO_URLS = [
    "s3://my bucket/t",
    "gs://<bucket>/t",
    "s3://bucket:99999/t",
    "s3://bucket:9000/t",
    "abfss://c@acct:port/t",
    "abfss://c@acct:443/t",
    "s3:/bucket/t",
    "s3:bucket/t",
    " s3://bucket/t",
    "s3://bucket/t\n",
    '"s3://bucket/t',
    "://bucket/t",
    "s3://bucket/a#b",
    "file:t",
    "obs://host/t",
    "gcs://bucket/t",
    "dbfs:/t",
]


@pytest.mark.parametrize("operation", [*WRITES, *READS])
def test_a_scheme_is_that_scheme_or_an_error(here, operation):
    for place in NO_URLS:
        with pytest.raises(InvalidArgumentError) as caught:
            (WRITES | READS)[operation](place)
        assert "URL" in str(caught.value) or "scheme" in str(caught.value), (place, caught.value)
        assert left(here) == [], place


def test_a_url_in_a_path_object_has_lost_a_slash(here):
    with pytest.raises(InvalidArgumentError, match=r"pathlib\.Path drops one slash"):
        write_deltalake(Path("s3://bucket/t"), ROWS)
    assert left(here) == []


@pytest.mark.parametrize("place", ["bar://user:hush@host/t?sig=hush", "bar://user:hush/er@host/t", "foo://x/t"])
def test_an_unknown_scheme_names_the_known_ones_and_store(place):
    with pytest.raises(InvalidArgumentError, match=r"known schemes are s3, .*memory; .*`store`") as caught:
        DeltaTable(place)
    assert "hush" not in repr(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        "http://user:hush@host:99999/t",
        "s3://KEY:hush/hush@bucket/t",
        "s3://KEY:hush/t",
        "abfss://c:hush@acct.dfs.core.windows.net/t",
        "s3://KEY:hush@bucket/t",
        "file://user:hush@host/t",
    ],
)
def test_a_malformed_url_shows_no_password(here, place):
    for operation in (DeltaTable, DeltaTable.is_deltatable, lambda place: write_deltalake(place, ROWS)):
        with pytest.raises(InvalidArgumentError) as caught:
            operation(place)
        assert "hush" not in repr(caught.value) + repr(caught.value.__dict__)
    assert left(here) == []


def test_an_address_must_be_a_string_or_a_path():
    for place in (None, b"/t", 5):
        with pytest.raises((InvalidArgumentError, TypeError), match="string or a path"):
            DeltaTable(place)


@pytest.mark.parametrize("operation", list(WRITES))
def test_a_tilde_is_the_home_folder(here, operation):
    home = here.parent / "home"
    (home / "a").mkdir()
    if operation == "convert":
        (home / "a/t").mkdir()
        pq.write_table(ROWS, home / "a/t/part.parquet")
    WRITES[operation]("~/a/t")
    assert left(here) == []
    if operation == "check":
        return
    table = DeltaTable("~/a/t")
    assert table.table_uri == (home / "a/t").as_uri() + "/"
    assert table.version() == DeltaTable(home / "a/t").version() == DeltaTable(Path("~/a/t")).version()
    for read in READS.values():
        read("~/a/t")
    assert main(["info", "~/a/t"]) == 0
    assert all(Path(file).is_file() for file in table.file_uris())


def test_a_tilde_of_somebody_else_is_refused(here):
    with pytest.raises(InvalidArgumentError, match=r"home folder of another user.*`\./~nobody/t`"):
        write_deltalake("~nobody/t", ROWS)
    write_deltalake("./~nobody/t", ROWS)
    assert left(here) == ["~nobody"]


def test_a_tilde_in_stores_of_python(here):
    home = here.parent / "home"
    for n, store in enumerate([fsspec.filesystem("file"), pafs.LocalFileSystem(), obstore.store.LocalStore()]):
        write_deltalake(f"~/{n}/t", ROWS, store=store)
        assert DeltaTable(f"~/{n}/t", store=store).count() == DeltaTable(home / f"{n}/t").count() == 3
    assert left(here) == []


def test_another_spelling_of_a_file_url_is_the_same_place(tmp_path):
    write_deltalake(f"file:{tmp_path}/t", ROWS)
    urls = {DeltaTable(place).table_uri for place in (f"file:{tmp_path}/t", f"file://{tmp_path}/t", tmp_path / "t")}
    assert urls == {(tmp_path / "t").as_uri() + "/"}


class TestStoresWithAPrefix:
    def s3(self, **more):
        return obstore.store.S3Store("bucket", config={"region": "eu-west-1"}, **more)

    def test_a_full_url_is_resolved_against_the_prefix(self):
        store = self.s3(prefix="a/b")
        for uri, path in [
            ("s3://bucket/a/b", "x"),
            ("s3a://bucket/a/b/t/", "t/x"),
            ("t", "t/x"),
            ("", "x"),
            ("/", "x"),
        ]:
            assert adapt_store(store, uri)._full("x") == path, uri

    def test_a_url_that_is_not_in_the_store_is_refused(self):
        store = self.s3(prefix="a/b")
        for uri in ["s3://bucket/t", "s3://bucket/a/bb/t", "s3://other/a/b/t", "gs://bucket/a/b/t", "file:///a/b/t"]:
            with pytest.raises(InvalidArgumentError, match=r"is not in store=S3Store"):
                adapt_store(store, uri)
        azure = obstore.store.AzureStore("c", config={"account_name": "a", "account_key": "a2V5"})
        assert adapt_store(azure, "abfss://c@a.dfs.core.windows.net/t")._full("x") == "t/x"
        with pytest.raises(InvalidArgumentError, match=r"is not in store=AzureStore"):
            adapt_store(azure, "abfss://d@a.dfs.core.windows.net/t")

    def test_the_bucket_behind_https_is_in_the_host_or_the_path(self):
        for uri in ["https://bucket.s3.eu-west-1.amazonaws.com/t", "https://s3.eu-west-1.amazonaws.com/bucket/t"]:
            assert adapt_store(self.s3(), uri)._full("x") == "t/x"
        with pytest.raises(InvalidArgumentError, match="is not in store"):
            adapt_store(self.s3(), "https://s3.eu-west-1.amazonaws.com/other/t")

    def test_http_has_its_prefix_in_its_url(self):
        store = obstore.store.HTTPStore.from_url("http://host/a")
        assert adapt_store(store, "http://host/a/t")._full("x") == "t/x"
        for uri in ["http://host/t", "http://other/a/t"]:
            with pytest.raises(InvalidArgumentError, match="is not in store"):
                adapt_store(store, uri)

    def test_one_table_and_no_second_one_below_it(self, tmp_path):
        (tmp_path / "t").mkdir()
        given = [
            (obstore.store.LocalStore(tmp_path / "t"), f"file://{tmp_path}/t"),
            (obstore.store.LocalStore(tmp_path / "t"), str(tmp_path / "t")),
            (obstore.store.LocalStore(tmp_path / "t"), ""),
            (pafs.SubTreeFileSystem(str(tmp_path / "t"), pafs.LocalFileSystem()), f"file://{tmp_path}/t"),
            (pafs.SubTreeFileSystem(str(tmp_path / "t"), pafs.LocalFileSystem()), str(tmp_path / "t")),
            (pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()), "t"),
        ]
        for version, (store, uri) in enumerate(given):
            write_deltalake(uri, ROWS, mode="append", store=store)
            assert DeltaTable(tmp_path / "t").version() == version
        assert sorted(path.name for path in tmp_path.rglob("_delta_log")) == ["_delta_log"]
        assert [path.parent.name for path in tmp_path.rglob("_delta_log")] == ["t"]
        for store, _ in given[:1] + given[3:4]:
            with pytest.raises(InvalidArgumentError, match="is not in store"):
                write_deltalake(f"file://{tmp_path}/other", ROWS, store=store)

    def test_fsspec_with_a_root_of_its_own(self, tmp_path):
        write_deltalake(tmp_path / "a/t", ROWS)
        memory = fsspec.filesystem("memory")
        store = DirFileSystem(path=f"/{tmp_path.name}/a", fs=memory)
        assert adapt_store(store, f"memory://{tmp_path.name}/a/t")._full("x") == "t/x"
        for uri in [f"memory://{tmp_path.name}/b/t", "s3://bucket/a/t"]:
            with pytest.raises(InvalidArgumentError, match="is not in store"):
                adapt_store(store, uri)
        with pytest.raises(InvalidArgumentError, match="is not in store"):
            adapt_store(memory, "s3://bucket/t")


class TestInsteadOfATable:
    def test_the_folder_of_the_log(self, tmp_path):
        write_deltalake(tmp_path / "t", ROWS)
        for below in ["_delta_log", "_delta_log/", "_delta_log/_sidecars", "_delta_log/00000000000000000000.json"]:
            place = f"{tmp_path}/t/{below}"
            with pytest.raises(TableNotFoundError, match=rf"give the folder of the table, .*{tmp_path.name}/t/$"):
                DeltaTable(place)
            assert not DeltaTable.is_deltatable(place)
            for operation in (WRITES["write"], WRITES["create"], DeltaTable(tmp_path / "t").clone):
                with pytest.raises(InvalidArgumentError, match=r"inside of a log: give the folder of the table"):
                    operation(place)
            with pytest.raises(deltafast.DeltaError, match=r"_delta_log"):
                convert(place)
        assert [path.parent for path in tmp_path.rglob("_delta_log")] == [tmp_path / "t"]

    def test_one_file(self, tmp_path):
        write_deltalake(tmp_path / "a t", ROWS)
        file = next((tmp_path / "a t").glob("*.parquet"))
        with pytest.raises(TableNotFoundError, match=r"this is a file; give the folder of the table, .*/a t/"):
            DeltaTable(file)
        with pytest.raises(deltafast.DeltaError):
            write_deltalake(file, ROWS)

    def test_parquet_files_without_a_log(self, tmp_path):
        for n, folder in enumerate(["plain", "hive/day=1"]):
            (tmp_path / folder).mkdir(parents=True)
            pq.write_table(ROWS, tmp_path / folder / f"part-{n}.parquet")
        for folder in ("plain", "hive"):
            with pytest.raises(TableNotFoundError, match="convert_to_deltalake"):
                DeltaTable(tmp_path / folder)
        with pytest.raises(TableNotFoundError, match=r"there is no `_delta_log`"):
            DeltaTable(tmp_path)


class TestFilesInOtherStores:
    @pytest.fixture
    def table(self, tmp_path):
        """A table whose second commit adds a file of another place; gives what makes that commit."""
        table = log.basic(tmp_path / "data/table", 1)

        def with_file(path):
            add = log.Table(tmp_path / "data/elsewhere").ids("x.parquet", 10, 20)
            add["add"]["path"] = path
            table.commit(1, add)
            return table.folder

        return with_file

    @pytest.mark.parametrize("folder", ["shared", "shared-private", "private"])
    @pytest.mark.parametrize("spelling", ["../{0}/x.parquet", "../shared/../{0}/x.parquet"])
    def test_paths_are_compared_by_whole_segments(self, table, tmp_path, folder, spelling):
        log.Table(tmp_path / f"data/{folder}").ids("x.parquet", 10, 20)
        (tmp_path / "data/shared").mkdir(exist_ok=True)
        path = table(spelling.format(folder))
        for prefix in ("../shared", "../shared/", f"{tmp_path}/data/shared", f"file://{tmp_path}/data/shared"):
            opened = DeltaTable(path, allow_external_paths=[prefix])
            if folder == "shared":
                assert opened.to_pyarrow_table().num_rows == 20
            else:
                with pytest.raises(StorageError, match="allow_external_paths"):
                    opened.to_pyarrow_table()
        assert DeltaTable(path, allow_external_paths=True).to_pyarrow_table().num_rows == 20

    @pytest.mark.parametrize("spelling", ["http://{0}@{1}/x.parquet", "http://{0}\\@{1}/x.parquet", "http://u@{0}/x"])
    def test_origins_are_compared_as_they_are_parsed(self, table, spelling):
        with socket.create_server(("127.0.0.1", 0)) as good, socket.create_server(("127.0.0.1", 0)) as evil:
            hosts = [f"127.0.0.1:{server.getsockname()[1]}" for server in (good, evil)]
            opened = DeltaTable(table(spelling.format(*hosts)), allow_external_paths=[f"http://{hosts[0]}"])
            with pytest.raises(StorageError, match="allow_external_paths"):
                opened.to_pyarrow_table()
            for server in (good, evil):
                server.setblocking(False)
                with pytest.raises(BlockingIOError):
                    server.accept()
