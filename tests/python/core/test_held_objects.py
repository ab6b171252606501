"""Each object that a user can hold, used from threads, forks, signals, log handlers, finalizers and at the end of the
interpreter: it answers right, or with one clear error; it never hangs, and no signal ends the process.

Each cell of OBJECTS x EVENTS runs in a process of its own and is printed (`pytest -s` shows it).
"""

import json
import os
import subprocess
import sys
import textwrap
from typing import NamedTuple

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake
from sharing import SharingServer
from unity import UnityServer

#: Rows and files of the table.
ROWS, FILES = 4_000, 8
#: Seconds after which a process hangs. An event takes less than one; the machine may be busy.
HANGS = 60

#: The beginning of each program: `made` makes the object, `used` returns the number of rows that one use of it gave.
PROLOG = """
import faulthandler, gc, logging, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
faulthandler.dump_traceback_later({hangs}, exit=True)
import pyarrow as pa
import deltafast
from deltafast import DeltaTable, QueryBuilder, write_deltalake
path, profile, server, token = sys.argv[1:5]
ROWS = {rows}

def said(outcome):
    print(outcome)
    sys.stdout.flush()

def outcome_of(call):
    '''Right, or the error; another number of rows is wrong.'''
    try:
        count = call()
    except Exception as error:
        return f"{{type(error).__module__}}.{{type(error).__name__}}: {{' '.join(str(error).split())}}"
    return "right" if count == ROWS else f"wrong: {{count}} rows"
"""


class HeldObject(NamedTuple):
    """How an object is made and used."""

    made: str
    used: str
    #: A use takes rows that no other use gets.
    is_one_shot: bool = False
    needs: str = ""


OBJECTS = {
    "handle": HeldObject("DeltaTable(path)", "(o.update_incremental(), o.count())[1]"),
    "handle of deltalake": HeldObject(
        "dl.DeltaTable(path)", "(o.update_incremental(), o.to_pyarrow_table().num_rows)[1]"
    ),
    "reader": HeldObject("DeltaTable(path).scan(batch_size=50)", "sum(b.num_rows for b in o)", True),
    "reader, all at once": HeldObject("DeltaTable(path).scan(batch_size=50)", "o.read_all().num_rows", True),
    "pyarrow reader": HeldObject(
        "DeltaTable(path).scan(batch_size=50).to_pyarrow()", "sum(b.num_rows for b in o)", True
    ),
    "change feed": HeldObject("DeltaTable(path).load_cdf()", "sum(b.num_rows for b in o)", True),
    "change feed of deltalake": HeldObject("dl.DeltaTable(path).load_cdf()", "sum(b.num_rows for b in o)", True),
    "core stream": HeldObject("core_stream(path)", "sum(b.num_rows for b in o)", True),
    "dataset": HeldObject("DeltaTable(path).to_pyarrow_dataset()", "o.to_table().num_rows"),
    "scanner": HeldObject(
        "DeltaTable(path).to_pyarrow_dataset().scanner(batch_size=50)", "o.to_table().num_rows", True
    ),
    "polars frame": HeldObject("DeltaTable(path).scan_polars()", "o.collect().height"),
    "relation": HeldObject("DeltaTable(path).to_duckdb()", "o.to_arrow_table().num_rows"),
    "query builder": HeldObject(
        "QueryBuilder().register('t', DeltaTable(path))", "o.execute('SELECT * FROM t').read_all().num_rows"
    ),
    "sql result": HeldObject("deltafast.sql('SELECT * FROM t', t=DeltaTable(path))", "o.read_all().num_rows", True),
    "merger": HeldObject(
        "DeltaTable(path).merge(pa.table({'id': [1]}), 't.id = s.id', 's', 't').when_matched_update({'s': 't.s'})",
        "(o.execute(), DeltaTable(path).count())[1]",
    ),
    "changes": HeldObject("DeltaTable(path).stream_changes()", "sum(c.rows.read_all().num_rows for c in o)", True),
    "transaction": HeldObject("deltafast.Transaction('app', 1)", "(o.app_id, ROWS)[1]"),
    "catalog": HeldObject(
        "deltafast.catalog.UnityCatalog(server, token)",
        "DeltaTable('uc://main.sales.orders', catalog=o).count()",
        needs="unity",
    ),
    "share": HeldObject(
        "DeltaTable(profile + '#retail.sales.orders')", "(o.update_incremental(), o.count())[1]", needs="sharing"
    ),
}

EVENTS = {
    # Together, the threads get each row once from an object that is used up; else each of them gets all.
    "threads": """
o, together, counts = made(), threading.Barrier(4), []
def work():
    together.wait()
    try:
        counts.append(used(o))
    except Exception as error:
        counts.append(error)
threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
def total():
    for count in counts:
        if isinstance(count, Exception):
            raise count
    return sum(counts) if ONE_SHOT else max(set(counts), key=lambda count: count != ROWS)
said(outcome_of(total))
""",
    "fork": """
o = made()
busy = DeltaTable(path)
threading.Thread(target=lambda: [busy.count() for _ in range(10**6)], daemon=True).start()
for _ in range(10):
    child = os.fork()
    if not child:
        # The thread of faulthandler is not there.
        signal.alarm(HANGS)
        said(outcome_of(lambda: used(o)))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
said(outcome_of(lambda: used(o)))
os._exit(0)
""",
    # A soft time limit at some time of its use, and the next use.
    "signal that raises": """
class Limit(Exception):
    pass
def limit(*_):
    raise Limit
signal.signal(signal.SIGALRM, limit)
for after in (0.0005, 0.002, 0.01, 0.05):
    o = made()
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        outcome = outcome_of(lambda: used(o))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Limit:
        outcome = "right"
    said("right" if outcome == "__main__.Limit: " else outcome)
signal.setitimer(signal.ITIMER_REAL, 0)
said(outcome_of(lambda: used(made())))
""",
    # The handler uses the object that the interrupted code is using.
    "signal handler that uses it": """
# A module that the interrupted code is importing is of no use to its handler.
used(made())
o, inner = made(), []
def handle(*_):
    if len(inner) < 3:
        place = len(inner)
        inner.append(None)
        inner[place] = outcome_of(lambda: used(o))
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.02)
outer = outcome_of(lambda: used(o))
signal.setitimer(signal.ITIMER_REAL, 0)
said_of_parts(outer, [part for part in inner if part])
""",
    "log handler that uses it": """
o, inner = made(), []
class Handler(logging.Handler):
    def emit(self, record):
        if len(inner) < 3:
            place = len(inner)
            inner.append(None)
            inner[place] = outcome_of(lambda: used(o))
logging.getLogger("deltafast").addHandler(Handler())
logging.getLogger("deltafast").setLevel("DEBUG")
other = DeltaTable(path)
outer = outcome_of(lambda: used(o))
said_of_parts(outer, [part for part in inner if part])
""",
    # The log handler waits for a thread that uses the object.
    "log handler whose thread uses it": """
o, inner = made(), []
class Handler(logging.Handler):
    def createLock(self):
        self.lock = None  # else logging itself would make the thread wait
    def emit(self, record):
        if len(inner) < 3 and threading.current_thread() is threading.main_thread():
            inner.append(None)
            thread = threading.Thread(target=lambda: inner.append(outcome_of(lambda: used(o))), daemon=True)
            thread.start()
            thread.join()
logging.getLogger("deltafast").addHandler(Handler())
logging.getLogger("deltafast").setLevel("DEBUG")
outer = outcome_of(lambda: used(o))
said_of_parts(outer, [part for part in inner if part])
""",
    "finalizer that uses it": """
used(made())
o, inner = made(), []
class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        if len(inner) < 3:
            place = len(inner)
            inner.append(None)
            inner[place] = outcome_of(lambda: used(o))
stop = threading.Event()
def litter():
    while not stop.is_set():
        Cycle(), time.sleep(0.001)
threading.Thread(target=litter, daemon=True).start()
gc.set_threshold(1)
[Cycle() for _ in range(10)]
outer = outcome_of(lambda: used(o))
stop.set()
gc.set_threshold(0)
said_of_parts(outer, [part for part in inner if part])
""",
    # The interpreter ends while a daemon thread uses the object.
    "end of the interpreter": """
began = threading.Event()
def work():
    while True:
        o = made()
        began.set()
        try:
            used(o)
        except Exception:
            pass
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
began.wait()
time.sleep(0.1)
said("right")
""",
}

HELPERS = """
def core_stream(path):
    return DeltaTable(path)._handle.scan(batch_size=50)

def said_of_parts(outer, inner):
    '''The outcomes of nested uses; of an object that is used up, parts add up.'''
    for outcome in [outer, *inner]:
        if ONE_SHOT and outcome.startswith("wrong: "):
            continue
        said(outcome)
    if ONE_SHOT:
        counts = [ROWS if part == "right" else int(part.split()[1]) for part in [outer, *inner] if is_count(part)]
        is_whole = sum(counts) == ROWS or len(counts) < 1 + len(inner)
        said("right" if is_whole else f"wrong: {sum(counts)} rows in all parts")

def is_count(part):
    return part == "right" or part.startswith("wrong: ")
"""

#: The errors that an object may answer with instead.
CLEAR = (
    "deltafast.exceptions.",
    # pyarrow's readers give what the stream says.
    "pyarrow.lib.ArrowInvalid: the stream",
    "pyarrow.lib.ArrowInvalid: External error: the stream",
    # A connection of DuckDB that another thread uses, or whose query a signal ended in DuckDB itself.
    "builtins.RuntimeError: Query interrupted",
    "_duckdb.InvalidInputException: Invalid Input Error: exporting a stream from the Arrow source failed: Limit",
    "_duckdb.ResourceInUseException: Resource In Use Error",
    "duckdb.ResourceInUseException: Resource In Use Error",
    "builtins.OSError: Resource In Use Error",
    # The result of a query that another use has read to its end.
    "builtins.OSError: Connection Error: Connection has already been closed",
    # Polars, which calls what it scans with.
    "polars.exceptions.ComputeError: schema callable failed: Limit",
    "polars.exceptions.ComputeError: Limit",
    # A Python generator that another thread runs.
    "builtins.ValueError: generator already executing",
    # A scanner is used up.
    "pyarrow.lib.ArrowInvalid: OneShotFragment was already scanned",
)

#: DuckDB ends the process itself if the interpreter ends while another thread runs a query, also one without a table.
DUCKDB = {"relation", "query builder", "sql result", "merger"}

#: The cells of the core tier; the others are proof.
QUICK = {
    ("reader", "threads"),
    ("pyarrow reader", "threads"),
    ("handle", "log handler whose thread uses it"),
    ("merger", "signal that raises"),
    ("change feed of deltalake", "end of the interpreter"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table with a change feed; its rows came by one commit."""
    path = tmp_path_factory.mktemp("held") / "t"
    rows = pa.table({"id": pa.array(range(ROWS)), "p": [n % FILES for n in range(ROWS)], "s": ["text"] * ROWS})
    write_deltalake(path, rows, partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"})
    return path


@pytest.fixture
def services(request, table, tmp_path):
    """The profile of a share, the URL of a catalog and its token, as far as the object needs them."""
    needs = OBJECTS[request.node.callspec.params["name"]].needs
    if needs == "sharing":
        with SharingServer().running() as server:
            server.share(table)
            yield str(server.profile(tmp_path / "config.share")), "", ""
    elif needs == "unity":
        with UnityServer().running() as server:
            schema = json.loads(DeltaTable(table).schema().to_json())
            server.register("main.sales.orders", table.as_uri(), {}, schema, managed=False)
            yield "", server.url, server.token
    else:
        yield "", "", ""


def program_of(name, event):
    """The program of a cell."""
    held = OBJECTS[name]
    deltalake = "deltafast.install_as_deltalake()\nimport deltalake as dl\n" if "dl." in held.made else ""
    return "".join(
        (
            PROLOG.format(rows=ROWS, hangs=HANGS),
            f"ONE_SHOT, HANGS = {held.is_one_shot}, {HANGS}\n",
            HELPERS,
            deltalake,
            f"def made():\n    return {held.made}\n\ndef used(o):\n    return {held.used}\n",
            "import deltafast.catalog\n" if held.needs == "unity" else "",
            textwrap.dedent(EVENTS[event]),
        )
    )


def outcomes(program, *arguments):
    """What the process says; a signal or a hang is an error."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * HANGS,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-1000:]}\n{done.stderr[-6000:]}"
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "event"),
    [
        pytest.param(name, event, id=f"{name} x {event}", marks=[] if (name, event) in QUICK else [pytest.mark.proof])
        for name in OBJECTS
        for event in EVENTS
        if not (name in DUCKDB and event == "end of the interpreter")
    ],
)
def test_an_object_answers_right_or_with_one_clear_error(name, event, table, services):
    said = outcomes(program_of(name, event), table, *services)
    sys.stdout.write(f"{name} x {event}: {'; '.join(dict.fromkeys(line[:120] for line in said))}\n")
    assert said
    unclear = [line for line in said if line != "right" and not line.startswith(CLEAR)]
    assert not unclear
