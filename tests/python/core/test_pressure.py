"""Out of memory, threads or file descriptors, or forked while threads work: a clear error, no hang, no crash."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits are those of Linux")

ROWS = 20_000


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Some versions of a table with text."""
    path = str(tmp_path_factory.mktemp("pressure") / "t")
    for n in range(4):
        rows = range(n * ROWS // 4, (n + 1) * ROWS // 4)
        write_deltalake(path, pa.table({"id": list(rows), "s": [f"text {row}" for row in rows]}), mode="append")
    return path


def run(program, *arguments, **environment):
    """What a process says that runs `program`; one that hangs is an error."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    return done.stdout.split("\n")[:-1]


FORKS = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from deltafast import DeltaTable

path, forks, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
shared = DeltaTable(path)

def count(table):
    return sum(batch.num_rows for batch in table.scan())

def work():
    while True:
        assert count(shared) == count(DeltaTable(path)) == rows

assert count(shared) == rows
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
bad = []
for n in range(forks):
    child = os.fork()
    if not child:
        try:
            os._exit(0 if count(DeltaTable(path)) == count(shared) == rows else 1)
        finally:
            os._exit(2)
    until = time.monotonic() + 10
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if status:
                bad.append((n, status))
            break
        if time.monotonic() > until:
            os.kill(child, 9)
            os.waitpid(child, 0)
            bad.append((n, "waits"))
            break
        time.sleep(0.001)
print(bad)
sys.stdout.flush()
os._exit(0)
"""


class TestFork:
    @pytest.mark.slow
    def test_children_of_a_busy_process_never_wait_for_a_thread_that_they_do_not_have(self, table):
        assert run(FORKS, table, 100, ROWS) == ["[]"]

    def test_a_child_finds_the_lock_of_a_handle_free(self, table):
        """An update, a restore or a repair of another thread may hold it for long."""
        program = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from deltafast import DeltaTable
opened, held = DeltaTable(sys.argv[1]), threading.Event()

def hold():
    with opened._handle.lock:
        held.set()
        threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    opened.update_incremental()
    os._exit(0)
until = time.monotonic() + 10
while not (done := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
    time.sleep(0.01)
if not done[0]:
    os.kill(child, 9)
print(done == (child, 0))
sys.stdout.flush()
os._exit(0)
"""
        assert run(program, table) == ["True"]

    def test_a_stream_of_the_parent_is_refused_in_the_child(self, table):
        program = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from deltafast import DeltaTable
from deltafast.exceptions import InvalidArgumentError
streams = [iter(DeltaTable(sys.argv[1]).scan()) for _ in range(4)]
for stream in streams[:2]:
    next(stream)
child = os.fork()
if not child:
    for stream in streams[:2]:
        try:
            next(stream)
        except InvalidArgumentError as error:
            print(error)
    del stream, streams
    sys.stdout.flush()
    os._exit(0)
print(os.waitpid(child, 0)[1], sum(batch.num_rows for stream in streams for batch in stream) > 0)
"""
        said = run(program, table)
        assert said == ["the stream was opened before the process was forked; open one in the child"] * 2 + ["0 True"]


LIMITED = """
import contextlib, os, pathlib, resource, sys
import pyarrow as pa
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import DeltaError, ResourceError

def attempt(work):
    try:
        work()
        print("done")
    except DeltaError as error:
        print(type(error).__name__, error.resource, error)
    except MemoryError:
        print("MemoryError")

def address_space(more):
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))

path = sys.argv[1]
"""


class TestFileDescriptors:
    def test_an_error_names_the_limit(self, table):
        program = """
opened = DeltaTable(path)
opened.delete("id = -1")
sum(batch.num_rows for batch in opened.scan())
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
with contextlib.suppress(OSError):
    while True:
        files.append(os.open("/dev/null", os.O_RDONLY))
attempt(lambda: DeltaTable(path))
attempt(lambda: list(opened.scan()))
attempt(lambda: opened.delete("id = 1"))
for file in files:
    os.close(file)
attempt(lambda: list(opened.scan()))
"""
        *refused, done = run(LIMITED + program, table)
        assert len(refused) == 3
        for said in refused:
            assert said.startswith("ResourceError file descriptors no file descriptors left"), said
            assert "ulimit -n" in said
        assert done == "done"
        assert DeltaTable(table).count() == ROWS


class TestThreads:
    """Stacks that are larger than the address space: no thread can be started."""

    def test_an_error_names_the_limit(self, table):
        program = """
address_space(4 << 30)
attempt(lambda: DeltaTable(path))
"""
        (said,) = run(LIMITED + program, table, RUST_MIN_STACK=str(1 << 40))
        assert said.startswith("ResourceError threads no thread can be started"), said
        assert "ulimit -u" in said
        assert "report" not in said


class TestMemory:
    @pytest.mark.parametrize("megabytes", [3, 5, 6, 8, 16, 64])
    def test_nothing_waits_for_ever(self, table, tmp_path, megabytes):
        write_deltalake(tmp_path, DeltaTable(table).to_pyarrow_table())
        program = """
opened = DeltaTable(path)
address_space(int(sys.argv[2]) << 20)
attempt(lambda: DeltaTable(path))
attempt(opened.create_checkpoint)
"""
        answers = run(LIMITED + program, tmp_path, megabytes)
        assert len(answers) == 2
        for said in answers:
            assert said in ("done", "MemoryError") or said.startswith("ResourceError"), said

    @pytest.mark.slow
    def test_a_constraint_over_many_rows_holds_few_bytes(self, tmp_path):
        """4 GB, if all rows were evaluated at once."""
        write_deltalake(tmp_path, pa.table({"s": ["a"]}))
        DeltaTable(tmp_path).alter.add_constraint({"long": "length(repeat(s, 200000)) > 100"})
        program = """
rows = pa.table({"s": ["b"] * 20_000})
address_space(1 << 30)
attempt(lambda: write_deltalake(path, rows, mode="append"))
attempt(lambda: print(DeltaTable(path).count()))
"""
        assert run(LIMITED + program, tmp_path, DELTAFAST_MEMORY_LIMIT="256MB") == ["done", "20001", "done"]

    def test_a_value_above_the_limit_is_an_error_of_its_row(self, tmp_path):
        write_deltalake(tmp_path, pa.table({"n": pa.array([1], pa.int32())}))
        DeltaTable(tmp_path).alter.add_constraint({"long": "n < 10 OR length(repeat('text', n)) > 100"})
        program = """
for n in (1_000_000, 2_000_000_000):
    attempt(lambda: write_deltalake(path, pa.table({"n": pa.array([2, n], pa.int32())}), mode="append"))
"""
        fits, refused = run(LIMITED + program, tmp_path, DELTAFAST_MEMORY_LIMIT="256MB")
        assert fits == "done"
        assert refused.startswith("InvalidArgumentError None the values that `repeat('text', n)` has for one row"), (
            refused
        )
        assert "DELTAFAST_MEMORY_LIMIT" in refused
