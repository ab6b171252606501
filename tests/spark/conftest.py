"""The main session: Delta's jar and deltafast side by side. Tests in `sessions/` run in child processes with others."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

import quick

from . import child_session
from .helpers import usual_and_proof

if TYPE_CHECKING:
    import pathlib

    from oracle.reference import Reference


def pytest_configure(config: pytest.Config) -> None:
    """Register what runs tests in child processes."""
    child_session.register(config)
    quick.remember_java_names()


@pytest.fixture(scope="session")
def spark(reference: Reference):
    """Give the session itself, whose executors run this Python."""
    reference._spark.sparkContext.pythonExec = sys.executable
    return reference._spark


@pytest.fixture(params=usual_and_proof(["index"], ["arrow", "join", "many", "paths"]))
def way(request: pytest.FixtureRequest, spark, monkeypatch: pytest.MonkeyPatch):
    """Give each way of reading; that over a list of files as it is for very many, too, and with Spark's own reader."""
    if request.param == "many":
        monkeypatch.setattr("deltafast.spark._scan.snapshot.MANY", 0)
    if request.param == "join":
        spark.conf.set("spark.deltafast.reader", "parquet")
    yield "index" if request.param in ("many", "join") else request.param
    spark.conf.unset("spark.deltafast.reader")


@pytest.fixture
def pair(start: pathlib.Path, tmp_path: pathlib.Path) -> tuple[str, str]:
    """Give two copies of a module's table `start`: for delta-spark, and for deltafast."""
    folders = tmp_path / "theirs", tmp_path / "ours"
    for folder in folders:
        shutil.copytree(start, folder)
    return str(folders[0]), str(folders[1])
