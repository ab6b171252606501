"""Spark without Delta's jar, in a process of its own: one process holds one Spark."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_no_jar_is_needed(tmp_path):
    program = pathlib.Path(__file__).with_name("without_jar.py")
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
        env=environment,
    )
    assert ran.stdout.endswith("all is well\n"), ran.stderr[-3000:]
