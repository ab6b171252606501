"""What is decoded ahead of a slow consumer stays within the budget."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

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
