"""Ctrl-C ends a call that waits for a store that never answers, a query, and a change, as a `KeyboardInterrupt`.

Changes are interrupted at chosen instants; `test_interrupt_writes.py` interrupts them at random ones.
"""

import re
import signal
import socket
import subprocess
import sys
import threading
import time

import fsspec
import pyarrow as pa
import pytest

from deltafast import DeltaTable, QueryBuilder, layout, sql, write_deltalake
from deltafast._interop import duckdb_query
from deltafast._interop.duckdb_query import connect, interruptible
from deltafast.stores import FsspecStore
from support import same_rows

SCRIPT = """
import sys, time
from deltafast import DeltaTable, QueryBuilder, sql
print("ready", flush=True)
start = time.monotonic()
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
OPTIONS = '{"allow_http": "true"}'


@pytest.fixture
def silent_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a child are another matter there")
@pytest.mark.parametrize(
    "call",
    [
        f"DeltaTable('http://127.0.0.1:PORT/t', storage_options={OPTIONS})",
        f"DeltaTable.is_deltatable('http://127.0.0.1:PORT/t', storage_options={OPTIONS})",
    ],
    ids=["open", "is_deltatable"],
)
def test_a_silent_server_does_not_hold_up_ctrl_c(silent_port, call):
    ends_at_once(SCRIPT.format(call=call.replace("PORT", str(silent_port))))


#: Rows for hours.
LONG = "SELECT sum(sqrt(a.range * b.range)) AS x FROM range(10000000) AS a, range(10000000) AS b"


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a child are another matter there")
@pytest.mark.parametrize(
    "call",
    [
        f"sql('{LONG}').read_all()",
        f"sql('CREATE TABLE delta.`/nowhere/t` AS {LONG}')",
        f"QueryBuilder().execute('{LONG}').read_all()",
    ],
    ids=["select", "create", "builder"],
)
def test_a_query_ends(call):
    ends_at_once(SCRIPT.format(call=call))


@pytest.mark.parametrize("begun", [False, True])
def test_a_query_that_is_being_started_is_over_when_the_call_is(monkeypatch, begun):
    start = threading.Thread.start
    started, ended, late = threading.Event(), threading.Event(), []

    def struck(thread: threading.Thread) -> None:
        if begun:
            start(thread)
            started.wait()
        else:
            late.append(thread)
        raise KeyboardInterrupt

    def work() -> None:
        started.set()
        # Nothing that could be interrupted runs yet when Ctrl-C comes.
        time.sleep(0.2)
        try:
            connection.execute(LONG).fetchall()
        finally:
            ended.set()

    with connect() as connection:
        monkeypatch.setattr(threading.Thread, "start", struck)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interruptible(connection, work)
        assert time.monotonic() - began < 2
        assert ended.is_set() == begun
        for thread in late:
            start(thread)
            thread.join(10)
        assert started.is_set() == begun
        assert connection.execute("SELECT 1").fetchone() == (1,)


class LimitError(Exception):
    """A soft time limit, as of a task queue."""


@pytest.mark.parametrize("raised", [LimitError, TimeoutError, SystemExit])
def test_a_query_ends_with_the_exception_of_the_signal_handler(raised):
    def limit(*_: object) -> None:
        raise raised

    before = signal.signal(signal.SIGALRM, limit)
    try:
        with duckdb_query.connect() as connection:
            long = "SELECT count(*) FROM range(100_000_000) a, range(1_000) b WHERE a.range * b.range % 7 = 3"
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(raised):
                duckdb_query.interruptible(connection, lambda: connection.execute(long).fetchall())
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Watched:
    """A connection that notes which threads ask it for something."""

    def __init__(self, connection, threads):
        self._connection, self._threads = connection, threads

    def __getattr__(self, name):
        if name in ("execute", "sql"):
            self._threads.append(threading.current_thread())
        found = getattr(self._connection, name)
        return (lambda: Watched(found(), self._threads)) if name == "cursor" else found

    def __enter__(self):
        return self

    def __exit__(self, *ended):
        self._connection.close()


def merged(table):
    source = pa.table({"id": [1, 9]})
    table.merge(source, "t.id = s.id", "s", "t").when_not_matched_insert_all().execute()


@pytest.mark.parametrize(
    "call",
    [
        merged,
        lambda table: QueryBuilder({"threads": "1"}).register("t", table).execute("FROM t").read_all(),
        lambda table: sql("SELECT count(*) FROM t", t=table),
        lambda table: sql(f"SELECT count(*) FROM delta.`{table.table_uri}`"),
        layout.measure,
        lambda table: table.to_duckdb(),
    ],
    ids=["merge", "builder", "sql", "sql by path", "layout", "duckdb"],
)
def test_the_thread_of_signals_leaves_every_statement_to_another(monkeypatch, tmp_path, call):
    # There DuckDB makes a RuntimeError of Ctrl-C, even in a SET.
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    threads: list[threading.Thread] = []
    make = duckdb_query.duckdb.connect
    monkeypatch.setattr(duckdb_query.duckdb, "connect", lambda *args, **more: Watched(make(*args, **more), threads))
    call(DeltaTable(tmp_path))
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("call", ["create", "clone"])
def test_who_ends_the_opening_of_a_new_table_learns_that_it_was_made(monkeypatch, tmp_path, call):
    source = DeltaTable.create(tmp_path / "source", pa.schema({"id": pa.int64()}))

    def struck(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "__init__", struck)
        with pytest.raises(KeyboardInterrupt) as interrupt:
            source.clone(tmp_path / "made") if call == "clone" else DeltaTable.create(
                tmp_path / "made", source.schema()
            )
    assert interrupt.value.__notes__ == ["the table was created before the interrupt: it is done, and is kept"]
    assert DeltaTable(tmp_path / "made").version() == 0


BEGUN, SENT, MADE = "a data file is begun", "a commit is sent", "a commit is made"


class Interrupting(FsspecStore):
    """A local disk; at an instant Ctrl-C is pressed, and the store waits until the caller knows it."""

    def __init__(self, root: str, instant: str, noticed: threading.Event) -> None:
        super().__init__(fsspec.filesystem("file"), root)
        self.instant, self.noticed = instant, noticed

    def reach(self, instant: str) -> None:
        if instant == self.instant and not self.noticed.is_set():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            assert self.noticed.wait(30)
            # From the handler's exception until the flag of the command is set.
            time.sleep(0.02)

    def create(self, path: str):
        self.reach(BEGUN)
        return super().create(path)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        is_commit = re.search(r"_delta_log/\d{20}\.json$", path)
        self.reach(SENT if is_commit else BEGUN)
        done = super().put_if_absent(path, data)
        if is_commit:
            self.reach(MADE)
        return done


def halve(table):
    source = pa.table({"id": range(1, 30, 2)})
    table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"text": "'y'"}).execute()


#: What a command does, and whether it makes files of data or of deletion vectors.
CHANGES = {
    "append": (lambda table: write_deltalake(table, table.to_pyarrow_table(), mode="append"), True),
    "overwrite": (lambda table: write_deltalake(table, pa.table({"id": [1], "text": ["z"]}), mode="overwrite"), True),
    "delete": (lambda table: table.delete("id % 2 = 1"), True),
    "update": (lambda table: table.update({"text": "'y'"}, predicate="id % 2 = 1"), True),
    "merge": (halve, True),
    "compact": (lambda table: table.optimize.compact(), True),
    "z-order": (lambda table: table.optimize.z_order(["text", "id"]), True),
    "restore": (lambda table: table.restore(0), False),
    "set properties": (lambda table: table.alter.set_table_properties({"delta.appendOnly": "false"}), False),
}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no signal to a thread")
@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize(
    ("name", "instant"),
    [
        (name, at)
        for name, (_, makes_files) in CHANGES.items()
        for at in (BEGUN, SENT, MADE)
        if at != BEGUN or makes_files
    ],
)
def test_a_change_is_made_or_not_and_the_caller_knows(tmp_path, name, instant, vectors):
    change, _ = CHANGES[name]
    folders = [tmp_path / "struck", tmp_path / "quiet"]
    for folder in folders:
        for start in (0, 15):
            rows = pa.table({"id": range(start, start + 15), "text": ["x"] * 15})
            write_deltalake(folder, rows, mode="append", configuration={"delta.enableDeletionVectors": vectors})
    struck, quiet = folders
    before = {file for file in struck.rglob("*") if file.suffix in (".parquet", ".bin")}
    rows_before = DeltaTable(struck).to_pyarrow_table()
    change(DeltaTable(quiet))

    noticed = threading.Event()

    def notice(*_: object) -> None:
        noticed.set()
        raise KeyboardInterrupt

    table = DeltaTable(str(struck), store=Interrupting(str(struck), instant, noticed))
    usual = signal.signal(signal.SIGINT, notice)
    try:
        with pytest.raises(KeyboardInterrupt) as interrupt:
            change(table)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert interrupt.value.__cause__ is None
    notes = getattr(interrupt.value, "__notes__", [])
    after = DeltaTable(struck)
    left = {file for file in struck.rglob("*") if file.suffix in (".parquet", ".bin")} - before
    assert not list(struck.rglob("*.tmp"))
    if instant == BEGUN:
        assert notes == []
        assert after.version() == 1
        assert after.to_pyarrow_table() == rows_before
        assert not left, "files of a change that was stopped are gone"
    else:
        assert notes == ["the operation could not be stopped any more: it is done, and what it committed stays"]
        assert after.version() == 2
        same_rows(after.to_pyarrow_table(), DeltaTable(quiet).to_pyarrow_table())
        assert bool(left) == CHANGES[name][1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a child are another matter there")
def test_the_command_line_says_so():
    command = "import sys; from deltafast.cli import main; print('ready', flush=True); sys.exit(main())"
    child = subprocess.Popen(
        [sys.executable, "-c", command, "sql", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(2)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=20)
        assert (child.returncode, said.strip()) == (130, "error: interrupted")
    finally:
        child.kill()
        child.wait()


def ends_at_once(script: str) -> None:
    """Run it, and interrupt it."""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        assert child.poll() is None
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - sent < 1
        assert child.wait(10) == 0
    finally:
        child.kill()
        child.stdout.close()
        child.wait()
