"""Nothing behind an exported stream waits for a GIL that its consumer holds.

Each consumer runs in a process of its own: what is tested for is a deadlock, which no timer inside would end.
"""

import subprocess
import sys

import pytest

from tablekit import log

#: A table whose store is Python all through (the listing a generator), read with a progress bar.
OPENED = """
import ctypes, pathlib, sys, time
import deltafast
root = pathlib.Path(sys.argv[1])

class Files:
    def list_from(self, prefix, offset):
        for file in sorted((root / prefix).iterdir()):
            path = file.relative_to(root).as_posix()
            if file.is_file() and (offset is None or path > offset):
                yield path, file.stat().st_size, 0

    def get_range(self, path, start, end):
        time.sleep(0.001)
        return (root / path).read_bytes()[start:end]

    def size(self, path):
        return (root / path).stat().st_size

store = Files() if sys.argv[2] == "a store in Python" else None
table = deltafast.DeltaTable(root, store=store)
stream = table.scan(progress=True, batch_size=100)
"""

#: What pulls, and the number of rows it found.
CONSUMERS = {
    "pyarrow": "import pyarrow as pa; rows = pa.table(stream).num_rows",
    "pyarrow, batch by batch": """
import pyarrow as pa
rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))
""",
    "Polars": "import polars as pl; rows = pl.DataFrame(stream).height",
    "Polars, streaming": "rows = table.scan_polars().collect(engine='streaming').height",
    "DuckDB": """
import duckdb, pyarrow as pa
reader = pa.RecordBatchReader.from_stream(stream)
rows = duckdb.sql("select count(*) from reader").fetchall()[0][0]
""",
    "DuckDB, over a dataset": """
import duckdb
data = table.to_pyarrow_dataset()
rows = duckdb.sql("select count(id) from data").fetchall()[0][0]
""",
    # Function pointers of the C interface called through `PYFUNCTYPE` keep the GIL for the whole call.
    "one that holds the GIL": """
class Stream(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("schema", "next", "error", "release", "private")]

class Array(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("rest", ctypes.c_int64 * 4), ("pointers", ctypes.c_void_p * 5)]

capsule = stream.__arrow_c_stream__()
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.POINTER(Stream), [ctypes.py_object, ctypes.c_char_p]
found = pointer(capsule, b"arrow_array_stream")
pull = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(found.contents.next)
release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
rows = 0
while True:
    array = Array()
    assert pull(ctypes.addressof(found.contents), ctypes.addressof(array)) == 0
    if not array.pointers[3]:
        break
    rows += array.length
    release(array.pointers[3])(ctypes.addressof(array))
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("store", ["a local disk", "a store in Python"])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_stream_needs_no_gil_that_its_consumer_holds(tmp_path, consumer, store):
    table = log.basic(tmp_path / "table", 30)
    # The bar is drawn ten times a second.
    script = f"{OPENED}\n{CONSUMERS[consumer]}\nprint(rows)\ntime.sleep(0.3)"
    command = [sys.executable, "-c", script, str(table), store]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "300\n"
    if "stream)" in CONSUMERS[consumer]:
        assert "30/30 files" in done.stderr
