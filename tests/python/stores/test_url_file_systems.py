"""URLs whose scheme fsspec has, and the core has not."""

from __future__ import annotations

import pickle
import sys
import threading
import warnings
from typing import TYPE_CHECKING, ClassVar

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from deltafast import DeltaTable, check_store, write_deltalake
from deltafast.exceptions import (
    DeltaProtocolError,
    InvalidArgumentError,
    MissingLibraryError,
    StorageError,
    TableNotFoundError,
)

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

with warnings.catch_warnings():
    # Of asyncore, on which it is built.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

PASSWORD = "a secret word"


class HeldFileSystem(MemoryFileSystem):
    """fsspec's memory under a scheme of its own."""

    protocol = "held"
    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def __init__(self, *, room: str = "", **options: object) -> None:
        super().__init__(**options)
        self.room = room

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("held://", "memory://"))


fsspec.register_implementation("held", HeldFileSystem, clobber=True)
fsspec.register_implementation("lacking", "a_missing_module.FileSystem", errtxt="Install a-missing-module")


@pytest.fixture
def ftp(tmp_path: pathlib.Path) -> Iterator[str]:
    """Serve a folder, and give its URL."""
    served = tmp_path / "served"
    served.mkdir()
    authorizer = DummyAuthorizer()
    authorizer.add_user("user", PASSWORD, str(served), perm="elradfmwMT")
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer})
    server = FTPServer(("127.0.0.1", 0), handler)
    host, port = server.address
    thread = threading.Thread(target=server.serve_forever, kwargs={"timeout": 0.01}, daemon=True)
    thread.start()
    yield f"ftp://{host}:{port}"
    server.close_all()
    thread.join()


def options(**more: str) -> dict[str, str]:
    return {"username": "user", "password": PASSWORD, **more}


def test_a_table_behind_a_server_is_read_at_every_version(ftp, tmp_path):
    local = tmp_path / "served" / "t"
    for n in range(3):
        rows = pa.table({"id": [n, n + 10], "p": ["ä b", "c"]})
        write_deltalake(local, rows, mode="append", partition_by=["p"])
    DeltaTable(local).create_checkpoint()
    DeltaTable(local).delete("id = 10")
    table = DeltaTable(f"{ftp}/t", storage_options=options())
    assert table.version() == 3
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 11, 12]
    assert sorted(DeltaTable(f"{ftp}/t", version=0, storage_options=options()).to_pandas()["id"]) == [0, 10]
    assert table.to_pyarrow_table(filters=[("p", "=", "ä b")]).num_rows == 3
    write_deltalake(local, pa.table({"id": [5], "p": ["c"]}), mode="append")
    table.update_incremental()
    assert table.count() == 6
    copy = pickle.loads(pickle.dumps(table))
    assert copy.to_pyarrow_table().num_rows == 6
    assert DeltaTable.is_deltatable(f"{ftp}/t", options())
    assert not DeltaTable.is_deltatable(f"{ftp}/u", options())
    with pytest.raises(TableNotFoundError):
        DeltaTable(f"{ftp}/u", storage_options=options())


def test_what_cannot_create_a_file_on_a_condition_is_not_written(ftp, tmp_path):
    with pytest.raises(DeltaProtocolError, match="FTPFileSystem cannot make a file only if there is none"):
        write_deltalake(f"{ftp}/t", {"id": [1]}, storage_options=options())
    assert list((tmp_path / "served").rglob("*.*")) == []
    assert not check_store(f"{ftp}/t", options())


def test_a_server_that_refuses_or_is_missing_is_an_error_without_secrets(ftp):
    with pytest.raises(StorageError, match=r"cannot open ftp://.*/t by fsspec: error_perm") as refused:
        DeltaTable(f"{ftp}/t", storage_options={"username": "user", "password": "another word"})
    assert "another word" not in str(refused.value)
    with pytest.raises(StorageError, match="by fsspec") as missing:
        DeltaTable("ftp://user:hidden@127.0.0.1:1/t")
    assert "hidden" not in str(missing.value)
    with pytest.raises(InvalidArgumentError, match="the port is not a number") as mistyped:
        DeltaTable("ftp://user:hidden/word@127.0.0.1/t")
    assert "hidden" not in str(mistyped.value)


def test_what_can_create_a_file_on_a_condition_is_written():
    write_deltalake("held://room/t", {"id": [1, 2]}, storage_options={"room": "here"})
    write_deltalake("held://room/t", {"id": [3]}, mode="append", storage_options={"room": "here"})
    table = DeltaTable("held://room/t", storage_options={"room": "here"})
    assert table.delete("id = 1")["num_deleted_rows"] == 1
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [2, 3]
    assert table.table_uri == "held://room/t/"
    assert any(path.startswith("/room/t/_delta_log/") for path in HeldFileSystem.store)
    created = DeltaTable.create("held://room/u", {"id": "long"})
    assert created.version() == 0


def test_a_handle_keeps_its_file_system():
    fsspec.register_implementation("guarded", GuardedFileSystem, clobber=True)
    write_deltalake("guarded://room/g", {"id": [1]}, storage_options={"key": "k"})
    table = DeltaTable("guarded://room/g", storage_options={"key": "k"})
    table.append({"id": [2]})
    write_deltalake(table, {"id": [3]}, mode="append")
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
    kept = DeltaTable("lacking://room/g", store=GuardedFileSystem(key="k"))
    kept.append({"id": [4]})
    assert kept.count() == 4


def test_arguments_are_those_of_the_file_system():
    fsspec.register_implementation("strict", StrictFileSystem, clobber=True)
    with pytest.raises(InvalidArgumentError, match=r"arguments of fsspec's file system: .*'AWS_REGION'"):
        DeltaTable("strict://t", storage_options={"AWS_REGION": "eu-west-1"})
    with pytest.raises(InvalidArgumentError, match="credential_provider is for S3, Azure and Google Cloud Storage"):
        DeltaTable("held://room/t", credential_provider=dict)


class GuardedFileSystem(HeldFileSystem):
    """A file system that cannot be opened without its argument."""

    protocol = "guarded"

    def __init__(self, key: str) -> None:
        super().__init__()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("guarded://", "memory://").replace("lacking://", "memory://"))


class StrictFileSystem(HeldFileSystem):
    """A file system without arguments."""

    protocol = "strict"

    def __init__(self) -> None:
        super().__init__()


@pytest.mark.parametrize(
    ("scheme", "library"),
    [
        ("hf", "huggingface_hub"),
        ("oss", "ossfs"),
        ("lakefs", "lakefs-spec"),
        ("webdav", "webdav4"),
        ("sftp", "paramiko"),
    ],
)
def test_what_is_not_installed_is_named_with_its_command(scheme, library, monkeypatch):
    module = {"lakefs-spec": "lakefs_spec"}.get(library, library)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingLibraryError, match=f"needs {library}: pip install {library}"):
        DeltaTable(f"{scheme}://somewhere/t")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingLibraryError, match=f"pip install fsspec {library}"):
        write_deltalake(f"{scheme}://somewhere/t", {"id": [1]})


def test_what_fsspec_lacks_is_named_as_before():
    with pytest.raises(MissingLibraryError, match="needs a library that is not installed: Install a-missing-module"):
        DeltaTable("lacking://t")
    with pytest.raises(MissingLibraryError) as mistyped:
        DeltaTable("lacking://user:hidden/word@host/t")
    assert "hidden" not in str(mistyped.value)
    with pytest.raises(InvalidArgumentError, match="no store for the scheme `other`"):
        DeltaTable("other://bucket/t")


@pytest.mark.parametrize("has_fsspec", [True, False])
def test_services_with_an_s3_interface_say_how_they_are_reached(has_fsspec, monkeypatch):
    if not has_fsspec:
        monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        InvalidArgumentError, match=r"scheme `obs`: .* give s3://bucket/path and the storage option aws_endpoint_url"
    ):
        DeltaTable("obs://bucket/t")
    with pytest.raises(InvalidArgumentError, match="scheme `cos`") as mistyped:
        write_deltalake("cos://user:hidden/word@bucket/t", {"id": [1]})
    assert "hidden" not in str(mistyped.value)
