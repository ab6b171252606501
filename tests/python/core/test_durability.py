"""Local disks: what is on the disk before success is told, and what becomes of a table when the disk refuses.

The order is seen from outside, by the system calls of a process that writes (strace). Refusals are made by strace too,
at any call of a kind, by limits of the process and by permissions. After each there is one clear error, the old table,
and nothing that a vacuum would not take.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="system calls are those of Linux"),
]

ROWS = pa.table({"id": [1, 2, 3], "p": ["a", "b", "a"]})

WRITE = """
import sys
import pyarrow as pa
import deltafast
from deltafast import DeltaTable, write_deltalake
rows = pa.table({"id": [4, 5], "p": ["a", "c"]})
WORK
"""


# --- the order ---------------------------------------------------------------------------------------


@dataclass
class Call:
    """A system call that succeeded: when it began and ended, by lines of the trace, and its text."""

    name: str
    begun: int
    ended: int
    text: str

    @property
    def paths(self) -> list[str]:
        return re.findall(r'"([^"]*)"', self.text)

    @property
    def target(self) -> str:
        """The file behind its first descriptor."""
        found = re.match(r"\d+<([^>]*)>", self.text)
        return found[1] if found else ""


CALLS = "openat,mkdir,mkdirat,write,pwrite64,writev,fsync,fdatasync,link,linkat,rename,renameat,renameat2"


def trace(tmp_path: Path, work: str) -> list[Call]:
    out = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-s", "64", "-e", f"trace={CALLS}", "-o", str(out)]
    script = WRITE.replace("WORK", work + "\nprint('acknowledged', flush=True)")
    done = subprocess.run([*command, sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "acknowledged\n", done.stderr
    calls, open_calls = [], {}
    for number, line in enumerate(out.read_text().splitlines()):
        pid, _, rest = line.partition(" ")
        rest = rest.strip()
        if found := re.fullmatch(r"(\w+)\((.*) <unfinished \.\.\.>", rest):
            open_calls[pid] = (found[1], number, found[2])
        elif found := re.fullmatch(r"<\.\.\. (\w+) resumed>(.*)", rest):
            name, begun, text = open_calls.pop(pid)
            calls.append((name, begun, number, text + found[2]))
        elif found := re.fullmatch(r"(\w+)\((.*)", rest):
            calls.append((found[1], number, number, found[2]))
    return [Call(*call) for call in calls if not re.search(r"= -1 E\w+", call[3])]


def first(calls: list[Call], what: str, *names: str, **where: object) -> Call:
    """The first call of these names that fits."""
    for call in calls:
        fits = call.name in names
        if "target" in where:
            fits = fits and call.target == where["target"]
        if "path" in where:
            fits = fits and str(where["path"]) in call.paths
        if "after" in where:
            fits = fits and call.begun > int(str(where["after"]))
        if fits:
            return call
    pytest.fail(f"the trace has no {what}")


def check_named(calls: list[Call], path: Path) -> Call:
    """A file was written under another name, synced, given its name, and its folder synced; gives the last."""
    link = first(calls, f"link to {path}", "link", "linkat", "rename", "renameat", "renameat2", path=path)
    staged = link.paths[0]
    assert link.paths[-1] == str(path)
    assert staged != str(path)
    created = first(calls, f"file {staged}", "openat", path=staged)
    assert "O_EXCL" in created.text
    writes = [call for call in calls if call.name in ("write", "pwrite64", "writev") and call.target == staged]
    sync = [call for call in calls if call.name in ("fsync", "fdatasync") and call.target == staged][-1]
    assert writes
    assert all(created.ended < write.begun for write in writes)
    assert all(write.ended < sync.begun for write in writes), "written after it was synced"
    assert sync.ended < link.begun, "named before it was synced"
    folder = first(calls, f"sync of {path.parent}", "fsync", "fdatasync", target=str(path.parent), after=link.ended)
    # Nothing was ever written under its own name.
    assert not [call for call in calls if call.name.endswith("write") and call.target == str(path)]
    return folder


def acknowledged(calls: list[Call]) -> Call:
    return next(call for call in calls if call.name == "write" and '"acknowledged' in call.text)


def check_folders(calls: list[Call], table: Path) -> list[Call]:
    """Every folder that was made is in a folder that was synced after it; gives these syncs."""
    made = [call for call in calls if call.name.startswith("mkdir") and call.paths[0].startswith(str(table))]
    found = []
    for call in made:
        parent = os.path.dirname(call.paths[0])  # noqa: PTH120 - it is a text of the trace
        found.append(first(calls, f"sync of {parent}", "fsync", target=parent, after=call.ended))
    return found


@pytest.mark.parametrize("new", [True, False], ids=["new table", "old table"])
def test_success_is_reported_when_everything_is_on_the_disk(tmp_path, new):
    table = tmp_path / "t"
    if not new:
        write_deltalake(table, ROWS, partition_by=["p"])
    calls = trace(tmp_path, f"write_deltalake({str(table)!r}, rows, mode='append', partition_by=['p'])")
    acknowledgement = acknowledged(calls)
    version = 0 if new else 1
    commit = table / "_delta_log" / f"{version:020}.json"
    link = first(calls, "commit", "link", "linkat", path=commit)
    adds = [json.loads(line)["add"] for line in commit.read_text().splitlines() if "add" in json.loads(line)]
    assert len(adds) == 2
    for add in adds:
        # The file and its folder last before the commit that names it is there.
        assert check_named(calls, table / add["path"]).ended < link.begun
    for sync in check_folders(calls, table):
        assert sync.ended < link.begun or "_delta_log" in sync.text
    assert check_named(calls, commit).ended < acknowledgement.begun
    # A folder that was made is named in its parent before anything is told.
    assert all(sync.ended < acknowledgement.begun for sync in check_folders(calls, table))
    # What only helps is not synced.
    assert not [call for call in calls if call.name == "fsync" and ".crc" in call.target]


def test_the_same_order_holds_for_what_changes_no_rows(tmp_path):
    table = tmp_path / "t"
    write_deltalake(table, ROWS)
    calls = trace(tmp_path, f"DeltaTable({str(table)!r}).alter.set_table_properties({{'a': 'b'}})")
    assert check_named(calls, table / "_delta_log" / f"{1:020}.json").ended < acknowledged(calls).begun


# --- refusals ----------------------------------------------------------------------------------------


def refused(work: str, **options: Any) -> str:
    """Run something that may fail: empty where it does not, else the error's class and text."""
    # Told by a socket: the calls that write files may be refused.
    body = "\n    ".join(work.splitlines())
    script = WRITE.replace(
        "WORK",
        f"""
from deltafast.exceptions import DeltaError
import socket
said = socket.socket(fileno=int(sys.argv[1]))
try:
    {body}
    said.sendall(b"done")
except DeltaError as error:
    said.sendall(f"{{type(error).__name__}}: {{error}}".encode())
""",
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", script, str(theirs.fileno())]
        done = subprocess.run(
            command, pass_fds=[theirs.fileno()], capture_output=True, text=True, check=False, timeout=100, **options
        )
        ours.setblocking(False)
        try:
            said = ours.recv(1 << 16).decode()
        except BlockingIOError:
            pytest.fail(f"it said nothing: {done.stderr[-2000:]}")
    return "" if said == "done" else said


def check_left(table: Path, before: DeltaTable, *, failed: bool) -> None:
    """The old table or the new one, and nothing that a vacuum would leave."""
    after = DeltaTable(table)
    ids = sorted(after.to_pyarrow_table().column("id").to_pylist())
    assert after.version() == before.version() + (not failed)
    assert ids == ([1, 2, 3] if failed else [1, 2, 3, 4, 5])
    write_deltalake(table, ROWS.slice(0, 1), mode="append")
    long_ago = time.time() - 30 * 86400
    for path in [file for file in table.rglob("*") if file.is_file() and "_delta_log" not in file.parts]:
        os.utime(path, (long_ago, long_ago))
    newest = DeltaTable(table)
    newest.vacuum(1, dry_run=False, enforce_retention_duration=False, full=True)
    left = {file.relative_to(table).as_posix() for file in table.rglob("*") if file.is_file()}
    assert {name for name in left if not name.startswith("_delta_log/")} == set(newest.files())
    hidden = [name for name in left if "/." in name]
    # What a cleanup takes after a day: a process that cannot delete leaves its hidden file.
    assert all(name.endswith(".tmp") for name in hidden), hidden


APPEND = "write_deltalake({table!r}, rows, mode='append')"

#: System calls, what they are answered, and what the error says of it.
REFUSALS = [
    ("write", "ENOSPC", r"no space left on the disk for"),
    ("fsync", "EIO", r"cannot write .*(Input/output|os error 5)"),
    ("linkat", "ENOSPC", r"no space left on the disk for"),
    ("linkat", "EIO", r"cannot write .*(Input/output|os error 5)"),
    ("mkdir", "EACCES", r"no permission to write"),
    ("fsync", "EDQUOT", r"no space left on the disk for"),
]


@pytest.mark.parametrize(("call", "answer", "says"), REFUSALS, ids=lambda value: value if value.isalnum() else "")
def test_a_disk_that_refuses_a_call_leaves_the_old_table(tmp_path, call, answer, says):
    table = tmp_path / "t"
    write_deltalake(table, ROWS, partition_by=["p"])
    before = DeltaTable(table)
    # From the first call on that the disk refuses, it refuses all; the process's own start is over by then.
    work = "import subprocess, os, time\n" + ATTACH.format(
        call=call, answer=answer, log=str(tmp_path / "strace"), warm=str(tmp_path / "warm")
    )
    said = refused(work + APPEND.format(table=str(table)))
    assert re.fullmatch(rf"StorageError: {says}.*", said), said
    assert "\n" not in said
    assert str(table) in said
    check_left(table, before, failed=True)


# The tracer takes hold of the process when its imports are done.
ATTACH = """write_deltalake({warm!r}, rows, mode="append")
tracer = subprocess.Popen(
    ["strace", "-f", "-p", str(os.getpid()), "-e", "trace={call}", "-e", "inject={call}:error={answer}", "-o", {log!r}],
    stderr=subprocess.PIPE, text=True)
while "attached" not in tracer.stderr.readline():
    pass
"""


def test_a_file_that_may_not_grow_leaves_the_old_table(tmp_path):
    table = tmp_path / "t"
    write_deltalake(table, ROWS, partition_by=["p"])
    before = DeltaTable(table)

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    said = refused(APPEND.format(table=str(table)), preexec_fn=limit)
    assert re.fullmatch(r"StorageError: cannot write .*File too large.*", said), said
    assert str(table) in said
    check_left(table, before, failed=True)


# Root may write everywhere, so this stops being root, when everything that is imported is.
AS_NOBODY = """import os
write_deltalake({warm!r}, rows, mode="append")
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def open_to_all(path: Path) -> None:
    for one in [path, *path.rglob("*")]:
        one.chmod(0o777 if one.is_dir() else 0o666)
    for one in path.parents:
        mode = one.stat().st_mode
        if one.stat().st_uid == os.getuid() and not mode & stat.S_IXOTH:
            one.chmod(mode | stat.S_IXOTH)


@pytest.mark.parametrize("closed", [".", "_delta_log", "p=a"])
def test_a_folder_that_may_not_be_written_is_named_and_the_table_stays(tmp_path, closed):
    table = tmp_path / "t"
    write_deltalake(table, ROWS, partition_by=["p"])
    before = DeltaTable(table)
    open_to_all(table)
    (table / closed).chmod(0o555)
    try:
        work = AS_NOBODY.format(warm=str(tmp_path / "warm")) + APPEND.format(table=str(table))
        said = refused(work)
    finally:
        (table / closed).chmod(0o777)
    assert re.fullmatch(r"StorageError: no permission to write .*", said), said
    assert str(table / closed) in said
    check_left(table, before, failed=True)


def test_a_place_where_no_table_can_be_says_so(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    open_to_all(folder)
    folder.chmod(0o555)
    work = AS_NOBODY.format(warm=str(tmp_path / "warm")) + f"write_deltalake({str(folder / 't')!r}, rows)"
    said = refused(work)
    assert re.fullmatch(r"StorageError: no permission to write .*", said), said
    assert str(folder / "t") in said
    assert list(folder.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_says_so(tmp_path):
    place = tmp_path / "file"
    place.write_text("no folder", "utf-8")
    said = refused(f"write_deltalake({str(place / 't')!r}, rows)")
    assert re.fullmatch(r"StorageError: .*", said), said
    assert str(place) in said
    assert place.read_text("utf-8") == "no folder"
