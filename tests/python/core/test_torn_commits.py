"""Faults in the newest commit: an operation is right or refused, and nothing is committed on top of a broken one."""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast.doctor import examine
from deltafast.exceptions import DeltaError, DeltaWarning
from support import one_in_product

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

ROWS = {"id": [1, 2, 3], "p": ["a", "b", "a"]}
NEW = {"id": [9], "p": ["a"]}


def merge(table: DeltaTable) -> object:
    source = pa.table(NEW)
    clauses = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t").when_not_matched_insert_all()
    return clauses.execute()


#: Operations of a handle; each would commit a version or write a file of the log.
OPERATIONS: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: write_deltalake(table, NEW, mode="append"),
    "overwrite": lambda table: write_deltalake(table, NEW, mode="overwrite"),
    "replace partition": lambda table: write_deltalake(table, NEW, mode="overwrite", predicate="p = 'a'"),
    "add columns by append": lambda table: write_deltalake(
        table, {**NEW, "extra": [1]}, mode="append", schema_mode="merge"
    ),
    "delete": lambda table: table.delete("id = 1"),
    "delete all": lambda table: table.delete(),
    "update": lambda table: table.update({"id": "id + 10"}, predicate="id = 2"),
    "merge": merge,
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["id"]),
    "restore": lambda table: table.restore(0),
    "set properties": lambda table: table.alter.set_table_properties({"a": "b"}),
    "add columns": lambda table: table.alter.add_columns(deltafast.Field("extra", "string")),
    "add constraint": lambda table: table.alter.add_constraint({"positive": "id > 0"}),
    "add feature": lambda table: table.alter.add_feature("deletionVectors", allow_protocol_versions_increase=True),
    "vacuum": lambda table: table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True),
    "repair": lambda table: table.repair(),
    "checkpoint": lambda table: table.create_checkpoint(),
    "compact logs": lambda table: table.compact_logs(0, 2),
    "manifest": lambda table: table.generate(),
}


def tear(content: bytes, kind: str) -> bytes:
    """Return the content of a commit after a fault."""
    last = content.rstrip(b"\n").rfind(b"\n") + 1
    return {
        "no last brace": content.rstrip(b"\n")[:-1],
        "no last braces": content.rstrip(b"\n")[:-2],
        "cut in the last key": content[:last] + b'{"add":',
        "cut in the first line": content[:20],
        "only a brace": b"{",
        "zeros at the end": content + b"\0" * 100,
        "zeros for the last line": content[:last] + b"\0" * (len(content) - last),
        "zeros in the middle": content[: last // 2] + b"\0" * 16 + content[last // 2 + 16 :],
        "all zeros": b"\0" * len(content),
        "no utf-8": content[:-10] + b"\xff\xfe" + content[-8:],
        "another line at the end": content + b"{",
        "text": b"<html>503</html>",
    }[kind]


TEARS = [
    "no last brace",
    "no last braces",
    "cut in the last key",
    "cut in the first line",
    "only a brace",
    "zeros at the end",
    "zeros for the last line",
    "zeros in the middle",
    "all zeros",
    "no utf-8",
    "another line at the end",
    "text",
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("torn") / "t"
    write_deltalake(path, ROWS, partition_by=["p"])
    write_deltalake(path, ROWS, mode="append")
    write_deltalake(path, ROWS, mode="append")
    return path


def newest(path: pathlib.Path) -> pathlib.Path:
    return max((path / "_delta_log").glob("*.json"))


def snapshot_of(path: pathlib.Path) -> dict[str, bytes]:
    """Return the files of the log that decide what the table is."""
    return {file.name: file.read_bytes() for file in (path / "_delta_log").iterdir() if file.suffix != ".crc"}


def check_refused(path: pathlib.Path, work: Callable[[], object], *, writes_files: bool = False) -> None:
    """Check that an operation is refused, and deletes nothing.

    Args:
        path: The table.
        work: The operation.
        writes_files: The operation finds the fault only after it lost a race: it cannot know whether the broken commit
            is its own, so its files stay.
    """
    before = snapshot_of(path)
    data = {file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}
    with pytest.raises(DeltaError):
        work()
    assert snapshot_of(path) == before
    remaining = {file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}
    assert data <= remaining if writes_files else data == remaining


@pytest.mark.parametrize(("kind", "operation"), one_in_product(7, TEARS, OPERATIONS))
def test_nothing_follows_a_torn_commit(template, tmp_path, kind, operation):
    path = tmp_path / "t"
    shutil.copytree(template, path)
    stale = DeltaTable(path, version=1)
    older = DeltaTable(path, version=0)
    for file in (path / "_delta_log").glob("*.crc"):
        file.unlink()
    target = newest(path)
    target.write_bytes(tear(target.read_bytes(), kind))
    check_refused(path, lambda: OPERATIONS[operation](DeltaTable(path)))
    if operation not in ("checkpoint", "manifest"):
        # Handles that were opened before the fault, at the version before it and at an older one.
        for handle in (stale, older):
            if operation in ("compact", "z-order") and handle is older:
                # It has one file in each partition: nothing to do.
                continue
            check_refused(path, lambda handle=handle: OPERATIONS[operation](handle), writes_files=True)


def test_a_handle_of_the_version_itself_commits_nothing_on_a_torn_commit(template, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(template, path)
    handle = DeltaTable(path)
    target = newest(path)
    target.write_bytes(target.read_bytes().rstrip(b"\n")[:-1])
    check_refused(path, lambda: write_deltalake(handle, NEW, mode="append"))


def test_a_commit_cut_at_any_byte_is_refused_or_a_shorter_whole(template, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(template, path)
    for file in (path / "_delta_log").glob("*.crc"):
        file.unlink()
    target = newest(path)
    content = target.read_bytes()
    for end in range(len(content)):
        target.write_bytes(content[:end])
        whole = all(is_json(line) for line in content[:end].split(b"\n") if line.strip())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)
            if whole:
                assert DeltaTable(path).version() == 2
            else:
                with pytest.raises(DeltaError):
                    DeltaTable(path)


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("kind", ["no last brace", "cut in the last key", "zeros for the last line"])
def test_a_long_torn_commit_is_refused_although_its_checksum_is_whole(template, tmp_path, kind):
    path = tmp_path / "t"
    shutil.copytree(template, path)
    # Longer than what is read of a local log in the place of the version checksum.
    note = deltafast.CommitProperties(custom_metadata={"note": "x" * 17_000_000})
    write_deltalake(path, NEW, mode="append", commit_properties=note)
    target = newest(path)
    assert target.with_suffix(".crc").exists()
    assert DeltaTable(path).version() == 3
    target.write_bytes(tear(target.read_bytes(), kind))
    check_refused(path, lambda: DeltaTable(path))
    check_refused(path, lambda: write_deltalake(path, NEW, mode="append"))


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\t\n"])
def test_an_empty_newest_commit_is_a_warning_and_its_files_outlive_a_vacuum(template, tmp_path, content):
    path = tmp_path / "t"
    shutil.copytree(template, path)
    for file in (path / "_delta_log").glob("*.crc"):
        file.unlink()
    add = next(json.loads(line)["add"] for line in newest(path).read_text().splitlines() if '"add"' in line)
    newest(path).write_bytes(content)
    timestamp = time.time() - 30 * 86_400
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (timestamp, timestamp))
    with pytest.warns(DeltaWarning, match="version 2 has no actions"):
        table = DeltaTable(path)
    assert table.to_pyarrow_table().num_rows == 6
    with pytest.warns(DeltaWarning, match="version 2 has no actions"):
        write_deltalake(path, NEW, mode="append")
    assert DeltaTable(path).vacuum(full=True, dry_run=False) == []
    assert DeltaTable(path).vacuum(full=True, dry_run=False, retention_hours=0, enforce_retention_duration=False) == []
    assert (path / add["path"]).exists()


def test_the_doctor_says_what_a_torn_commit_held(template, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(template, path)
    target = newest(path)
    target.write_bytes(target.read_bytes().rstrip(b"\n")[:-1])
    findings: list[Any] = examine(str(path))
    torn = next(finding for finding in findings if "is broken from line" in finding.message)
    assert torn.what == "broken-log"
    assert "commitInfo" in torn.message
    assert "give version 2 up" in torn.remedy
