"""Handles that outlive what they were opened on: replaced, deleted and restored tables; threads that share a handle."""

from __future__ import annotations

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltafast import DeltaTable, Field, PostCommitHookProperties, write_deltalake
from deltafast.exceptions import (
    DataFileNotFoundError,
    DeltaError,
    InvalidArgumentError,
    TableNotFoundError,
    VersionNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUIET = PostCommitHookProperties(create_checkpoint=False)


def rows(start: int, count: int = 3) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64())})


def made(path: Path, versions: int, start: int = 0, **options: Any) -> DeltaTable:
    """Write a table of versions 0 to `versions`, three rows each."""
    for n in range(versions + 1):
        write_deltalake(str(path), rows(start + 3 * n), mode="append", **(options if n == 0 else {}))
    return DeltaTable(str(path))


def content(path: Path) -> dict[str, bytes]:
    """Return all files below a table."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


WRITES: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: write_deltalake(table, rows(100), mode="append"),
    "overwrite": lambda table: write_deltalake(table, rows(100), mode="overwrite"),
    "replace": lambda table: write_deltalake(table, rows(1, 1), mode="overwrite", predicate="id = 1"),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"id": "id + 1"}, predicate="id = 1"),
    "optimize": lambda table: table.optimize.compact(),
    "alter": lambda table: table.alter.set_table_properties({"custom": "x"}),
    "add columns": lambda table: table.alter.add_columns([Field("more", "string")]),
    "checkpoint": lambda table: table.create_checkpoint(),
    "compact logs": lambda table: table.compact_logs(0, table.version()),
    "cleanup": lambda table: table.cleanup_metadata(retention=timedelta(0)),
    "vacuum": lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True),
    "restore": lambda table: table.restore(0),
    "repair": lambda table: table.repair(),
    "generate": lambda table: table.generate(),
    "update handle": lambda table: table.update_incremental(),
}


#: They open data files first, and those are gone.
READS = {"replace", "delete", "update", "optimize"}


@pytest.mark.parametrize("newer", [0, 3, 5], ids=["fewer versions", "as many versions", "more versions"])
@pytest.mark.parametrize("name", WRITES)
def test_a_handle_older_than_its_table_writes_nothing(tmp_path, name, newer):
    place = tmp_path / "table"
    table = made(place, 3)
    shutil.rmtree(place)
    made(place, newer, start=1000)
    before = content(place)
    with pytest.raises(DeltaError) as caught:
        WRITES[name](table)
    if name not in READS or not isinstance(caught.value, DataFileNotFoundError):
        assert isinstance(caught.value, InvalidArgumentError)
        assert re.search("the table was replaced by another one.*open it again", str(caught.value))
    assert content(place) == before
    assert DeltaTable(str(place)).count() == 3 * newer + 3
    fresh = DeltaTable(str(place))
    write_deltalake(fresh, rows(0), mode="append")
    assert fresh.count() == 3 * newer + 6


@pytest.mark.parametrize("opened", [True, False], ids=["opened", "committed"])
def test_a_table_made_again_by_the_same_program_is_another_one(tmp_path, opened):
    """The commits of both have one length."""
    table = made(tmp_path / "table", 1)
    if not opened:
        write_deltalake(table, rows(50), mode="append")
    shutil.rmtree(tmp_path / "table")
    made(tmp_path / "table", 1 if opened else 2)
    with pytest.raises(InvalidArgumentError, match="replaced by another one"):
        write_deltalake(table, rows(100), mode="append")


@pytest.mark.parametrize("name", [name for name in WRITES if name != "cleanup"])
def test_a_handle_on_a_deleted_table_writes_no_log(tmp_path, name):
    place = tmp_path / "table"
    table = made(place, 2)
    shutil.rmtree(place)
    with pytest.raises(TableNotFoundError if name not in READS else (TableNotFoundError, DataFileNotFoundError)):
        WRITES[name](table)
    assert not [file for file in place.rglob("*") if file.is_file()]


@pytest.mark.parametrize("name", ["append", "delete", "checkpoint", "compact logs", "update handle"])
def test_a_log_that_was_put_back_is_no_base_for_newer_handles(tmp_path, name):
    """A copy of two versions is put back over five; the id is the same."""
    place = tmp_path / "table"
    table = made(place, 1)
    shutil.copytree(place, tmp_path / "copy")
    for n in range(3):
        write_deltalake(table, rows(100 + 3 * n), mode="append")
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "copy", place)
    before = content(place)
    with pytest.raises(InvalidArgumentError, match=r"went back from 4 to 1.*open it again"):
        WRITES[name](table)
    assert content(place) == before


def test_another_history_of_the_same_table_is_no_base_either(tmp_path):
    place = tmp_path / "table"
    table = made(place, 1)
    shutil.copytree(place, tmp_path / "copy")
    write_deltalake(table, rows(100), mode="append")
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "copy", place)
    write_deltalake(str(place), rows(200), mode="append")
    with pytest.raises(InvalidArgumentError, match=r"version 2 .* is another commit than the one that was read"):
        write_deltalake(table, rows(300), mode="append")
    assert DeltaTable(str(place)).version() == 2


def test_a_table_that_was_only_copied_goes_on(tmp_path):
    """Times change, the commits do not."""
    place = tmp_path / "table"
    table = made(place, 10)
    listed = DeltaTable(str(place))
    (place / "_delta_log" / f"{10:020}.crc").unlink()
    shutil.copytree(place, tmp_path / "copy")
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "copy", place, copy_function=shutil.copy)
    for handle in (table, listed):
        write_deltalake(handle, rows(100), mode="append")
        handle.create_checkpoint()
        write_deltalake(handle, rows(200), mode="append")
    assert DeltaTable(str(place)).count() == 33 + 12
    assert DeltaTable(str(place)).version() == 14


@pytest.mark.parametrize("known", [True, False], ids=["known", "listed"])
def test_a_handle_whose_version_was_cleaned_up_does_not_fill_the_gap(tmp_path, known):
    """Version 3 is gone, and so is version 4 that the handle would write."""
    place = tmp_path / "table"
    table = made(place, 2)
    if known:
        write_deltalake(table, rows(50), mode="append")
    for n in range(8):
        write_deltalake(str(place), rows(100 + n), mode="append")
    DeltaTable(str(place)).create_checkpoint()
    for version in range(6):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    before = content(place)
    with pytest.raises(VersionNotFoundError, match=r"was cleaned up after it was read; update the handle to version"):
        write_deltalake(table, rows(900), mode="append")
    assert content(place) == before
    table.update_incremental()
    write_deltalake(table, rows(900), mode="append")
    assert table.version() == DeltaTable(str(place)).version()


@pytest.mark.parametrize("opened", [True, False], ids=["opened", "written"])
def test_a_version_whose_checkpoint_stays_is_a_base(tmp_path, opened):
    """Other writers delete the commit of a checkpoint's version, too."""
    place = tmp_path / "table"
    table = made(place, 2)
    table.create_checkpoint()
    for version in range(3):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    handle = DeltaTable(str(place)) if opened else table
    write_deltalake(handle, rows(100), mode="append")
    assert DeltaTable(str(place)).count() == 9 + 3


def test_a_replaced_table_in_an_object_store(cloud):
    options = cloud.options()
    url, other = f"{cloud.root}/replaced", f"{cloud.root}/replaced/_delta_log"
    for n in range(3):
        write_deltalake(url, rows(3 * n), mode="append", storage_options=options)
    table = DeltaTable(url, storage_options=options)
    committed = DeltaTable(url, storage_options=options)
    write_deltalake(committed, rows(50), mode="append")
    from deltafast.filesystem import DeltaStorageHandler

    files = DeltaStorageHandler(other, options)
    names = [f"{version:020}{ending}" for version in range(4) for ending in (".json", ".crc")]
    for name in names:
        try:
            files.delete_file(name)
        except (OSError, DeltaError):
            assert name.endswith(".crc")
    write_deltalake(url, rows(0), storage_options=options)
    for handle in (table, committed):
        for name in ("append", "checkpoint", "update handle"):
            with pytest.raises(InvalidArgumentError, match="replaced by another one"):
                WRITES[name](handle)
    assert DeltaTable(url, storage_options=options).version() == 0


def test_a_commit_through_a_handle_costs_no_more_requests(cloud):
    url, options = f"{cloud.root}/requests", cloud.options()
    write_deltalake(url, rows(0), storage_options=options)
    table = DeltaTable(url, storage_options=options)
    counts = []
    for n in range(3):
        cloud.proxy.forget()
        write_deltalake(table, rows(3 * n), mode="append", post_commithook_properties=QUIET)
        counts.append(len(cloud.proxy.requests))
    # The file, the version before, the commit, the checksum before and the one after.
    assert counts == [5, 5, 5], cloud.proxy.requests


# --- threads ---------------------------------------------------------------------------------------


def test_a_shared_handle_never_goes_back(tmp_path):
    """The thread that committed first comes last to say so."""
    table = made(tmp_path, 0)
    older, newer = DeltaTable(str(tmp_path)), DeltaTable(str(tmp_path))
    write_deltalake(older, rows(10), mode="append")
    write_deltalake(newer, rows(20), mode="append")
    table._handle.move(newer._handle.snapshot)
    table._handle.move(older._handle.snapshot)
    assert table.version() == newer.version() == 2
    # Whoever asks for an older version gets it, and a commit leads from there to the newest.
    table.load_as_version(1)
    assert table.version() == 1
    write_deltalake(table, rows(30), mode="append")
    assert table.version() == 3


def test_threads_that_share_a_handle_read_what_they_wrote(tmp_path):
    table = made(tmp_path, 0)
    behind: list[tuple[int, int]] = []
    barrier = threading.Barrier(4)

    def work(start: int) -> None:
        barrier.wait()
        newest = 0
        for n in range(15):
            write_deltalake(table, rows(start + n, 1), mode="append")
            version = table.version()
            if version < newest:
                behind.append((newest, version))
            newest = max(newest, version)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1000, 5000, 1000)))
    assert behind == []
    assert table.version() == 60
    assert table.count() == 63
