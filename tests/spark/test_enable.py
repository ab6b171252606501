"""Programs for delta-spark on deltafast, in a process of its own: one process holds one Spark."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import deltafast.spark
from deltafast.exceptions import InvalidArgumentError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_programs_for_delta_spark_run_unchanged(tmp_path):
    program = pathlib.Path(__file__).with_name("enabled.py")
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
        env=environment,
    )
    assert ran.stdout.endswith("all is well\n"), ran.stderr[-3000:]


def test_a_session_with_deltas_jar_is_left_alone(spark):
    with pytest.raises(InvalidArgumentError, match="Delta's own jar or extension is in this session"):
        deltafast.spark.enable(spark)
    deltafast.spark.disable(spark)
