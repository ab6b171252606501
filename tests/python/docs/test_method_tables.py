"""The tables of methods on the pages for users of `deltalake` and delta-spark are up to date."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]


def test_the_tables_are_up_to_date():
    command = [sys.executable, ROOT / "dev" / "make_method_tables.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
