"""Spark Connect, in a process of its own: one process holds one Spark."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_tables_and_statements_work_over_connect(tmp_path):
    program = pathlib.Path(__file__).with_name("over_connect.py")
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )
    assert ran.stdout.endswith("all is well\n"), ran.stderr[-3000:]
