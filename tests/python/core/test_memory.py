"""Memory stays within the budget, however slow the consumer is and however much there is to come."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake
from tablekit import log

READ = """
import pathlib, sys, time
import pyarrow
from deltafast import DeltaTable

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

batches = iter(DeltaTable(sys.argv[1]).scan())
before = resident()
rows = next(batches).num_rows
while True:
    ahead = resident()
    time.sleep(0.5)
    if resident() == ahead:
        break
print(ahead - before)
print(rows + sum(batch.num_rows for batch in batches))
"""
ROWS = 600_000
COLUMNS = [f"c{n}" for n in range(20)]


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A table of four files that are larger than the budget once they are decoded."""
    table = log.Table(tmp_path_factory.mktemp("wide"))
    rows = pa.table(dict.fromkeys(COLUMNS, pa.array(range(ROWS))))
    adds = [table.data(f"{n}.parquet", rows, compression="zstd") for n in range(4)]
    table.commit(0, log.protocol(), log.metadata([(name, "long") for name in COLUMNS]), *adds)
    return table


def run(table, **environment):
    return subprocess.run(
        [sys.executable, "-c", READ, str(table)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks into /proc")
def test_a_slow_consumer_is_not_run_ahead_of_by_more_than_the_budget(wide):
    ahead = {}
    for limit in ("1", "64MB", "4GiB"):
        ahead[limit], rows = map(int, run(wide, DELTAFAST_MEMORY_LIMIT=limit, DELTAFAST_THREADS="2").stdout.split())
        assert rows == 4 * ROWS
    # What lanes need to decode at all is the same with any budget; beyond it there are 64 MB and some batches.
    assert ahead["64MB"] - ahead["1"] < 96 << 20
    assert ahead["4GiB"] - ahead["1"] > 150 << 20


def test_a_budget_that_is_no_number_is_refused_by_name(wide):
    failed = run(wide, DELTAFAST_MEMORY_LIMIT="plenty")
    assert "InvalidArgumentError: `DELTAFAST_MEMORY_LIMIT` is `plenty`" in failed.stderr


FEED = """
import pathlib, sys
import pyarrow
from deltafast import DeltaTable

def most():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

before = most()
rows = sum(batch.num_rows for batch in DeltaTable(sys.argv[1]).load_cdf(1))
print(rows)
print(most() - before)
"""


def fed(folder, limit):
    """Read the feed of a table in a process of its own; return its rows and the memory that it took at most."""
    environment = os.environ | {"DELTAFAST_MEMORY_LIMIT": limit}
    command = [sys.executable, "-c", FEED, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
def test_a_feed_of_appends_takes_no_more_memory(tmp_path):
    """Each version is 3 MB decoded, so that the longer feed is 180 MB more than the shorter one."""
    data = pa.table(dict.fromkeys(COLUMNS, pa.array(range(20_000))))
    taken = {}
    for versions in (20, 80):
        folder = tmp_path / str(versions)
        for _ in range(1 + versions):
            write_deltalake(folder, data, mode="append", configuration={"delta.enableChangeDataFeed": "true"})
        rows, taken[versions] = fed(folder, "64MB")
        assert rows == versions * 20_000
    assert taken[80] < taken[20] + (80 << 20), taken
    assert taken[80] < 200 << 20, taken


@pytest.mark.proof
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
def test_a_feed_of_many_versions_takes_no_more_memory(tmp_path):
    """Each version's changes are 6 MB decoded, so that the longer feed is 750 MB more than the shorter one."""
    taken = {}
    for versions in (60, 180):
        folder = tmp_path / str(versions)
        data = pa.table(dict.fromkeys(COLUMNS, pa.array(range(20_000))))
        write_deltalake(folder, data, configuration={"delta.enableChangeDataFeed": "true"})
        table = DeltaTable(folder)
        for _ in range(versions):
            table.update({"c0": "c0 + 1"})
        rows, taken[versions] = fed(folder, "64MB")
        assert rows == versions * 2 * 20_000
    assert taken[180] < taken[60] + (80 << 20), taken
    assert taken[180] < 200 << 20, taken
