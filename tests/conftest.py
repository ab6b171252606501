"""What tests in several folders share: one Spark with delta-spark, since a process holds one."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from typing import TYPE_CHECKING

import pytest

import quick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oracle.reference import Reference

pytest.register_assert_rewrite("conformance.compare", "oracle.reference")

# Workers have their controller's.
if "SPARK_HOME" not in os.environ and (pyspark := importlib.util.find_spec("pyspark")) and pyspark.origin:
    os.environ.update(quick.settings(pathlib.Path(pyspark.origin).parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option with which `dev/make_oracle_answers.py` runs the tests in `oracle`."""
    parser.addoption("--record-answers", action="store_true", help="store the answers of delta-spark, do not compare")


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    """Give the running reference."""
    from oracle import reference

    with reference.running() as running:
        yield running
