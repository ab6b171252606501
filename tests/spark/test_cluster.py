"""Two executors that are processes of their own, with addresses of their own and a Python that lacks deltafast."""

from __future__ import annotations

import os
import pathlib
import subprocess
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructField, StructType

from deltafast import write_deltalake
from deltafast.spark.data_source import DeltafastDataSource
from deltafast.spark.streaming import _Settings

from . import cluster
from .programs import run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

HOME = pathlib.Path(os.environ["SPARK_HOME"])


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Give the cluster."""
    with cluster.running(tmp_path_factory.mktemp("cluster"), HOME) as found:
        yield found


def test_executors_need_no_deltafast(running, tmp_path, monkeypatch):
    # The executors' own path says where their packages are; the driver's would reach them, too.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    where = {"PYSPARK_PYTHON": running.bare, "SPARK_LOCAL_IP": "127.0.0.1"}
    run("on_cluster", running.master, running.packages, str(tmp_path), **where)


OPENS = """
import pickle, sys
try:
    pickle.loads(sys.stdin.buffer.read())
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_what_the_driver_plans_says_that_an_executor_lacks_deltafast(running, tmp_path):
    """As `format("deltafast")` does where the driver's Python is another than that of the executors."""
    schema = StructType([StructField("id", LongType())])
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    session: Any = SimpleNamespace(hadoop=lambda _: {}, via_hadoop=False, home=lambda: None, is_connect=True)
    kind = type("Registered", (DeltafastDataSource,), {"settings": _Settings(session), "zone": "UTC"})
    source = kind({"path": str(tmp_path / "t"), "checkpointLocation": str(tmp_path / "c")})
    zips = [str(file) for file in (HOME / "python" / "lib").glob("*.zip")]
    for what in (
        source,
        source.writer(schema, overwrite=False),
        source.streamWriter(schema, overwrite=False),
        kind({"path": str(tmp_path / "t")}).reader(schema),
        kind({"path": str(tmp_path / "t")}).streamReader(schema),
    ):
        shipped = cloudpickle.dumps(what)
        assert type(cloudpickle.loads(shipped)).__name__ == type(what).__name__
        ran = subprocess.run(
            [running.bare, "-c", OPENS],
            input=shipped,
            capture_output=True,
            check=True,
            env={"PYTHONPATH": os.pathsep.join([running.packages, *zips])},
        )
        assert ran.stdout.startswith(b"RuntimeError: deltafast "), ran.stdout
        assert b"where it is not there: way='arrow'" in ran.stdout
