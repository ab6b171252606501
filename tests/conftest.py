"""What tests in several folders share: the share of the proof tier that runs, and one Spark, as a process holds one."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import signal
from typing import TYPE_CHECKING

import pytest

import quick
import temporary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oracle.reference import Reference

pytest.register_assert_rewrite("conformance.compare", "oracle.reference")

# A shell that runs tests in the background lets them ignore Ctrl-C, which tests send to their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
temporary.use_memory()
# Workers have their controller's.
if "SPARK_HOME" not in os.environ and (pyspark := importlib.util.find_spec("pyspark")) and pyspark.origin:
    os.environ.update(quick.settings(pathlib.Path(pyspark.origin).parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--proof`, and the option with which `dev/make_oracle_answers.py` runs the tests in `oracle`."""
    parser.addoption(
        "--proof",
        default="all",
        metavar="all|SHARE/SHARES",
        help="the share of the tests marked `proof` that run: `2/5` runs every fifth one from the second on",
    )
    parser.addoption("--record-answers", action="store_true", help="store the answers of delta-spark, do not compare")


def _share(config: pytest.Config) -> tuple[int, int]:
    """Return the number of the share, from 0, and how many shares there are."""
    option: str = config.getoption("--proof")
    number, _, shares = "1/1".partition("/") if option == "all" else option.partition("/")
    if not (number.isdecimal() and shares.isdecimal() and 1 <= int(number) <= int(shares)):
        message = f"--proof={option}: must be `all`, or a share and the number of shares such as 2/5"
        raise pytest.UsageError(message)
    return int(number) - 1, int(shares)


def pytest_report_header(config: pytest.Config) -> str:
    """Return the line that says which share runs."""
    number, shares = _share(config)
    return f"proof tier: share {number + 1} of {shares}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other shares, and let those that need the reference run first.

    Neighbours in a file fall into different shares, so that shares last about as long. Workers begin with a half of the
    tests each and take from the end of the other's: the first one has the only reference, or most of its tests.
    """
    number, shares = _share(config)
    proof = [item for item in items if item.get_closest_marker("proof")]
    chosen = set(proof[number::shares])
    other = [item for item in proof if item not in chosen]
    if other:
        items[:] = [item for item in items if item in chosen or not item.get_closest_marker("proof")]
        config.hook.pytest_deselected(items=other)
    items.sort(key=lambda item: "reference" not in getattr(item, "fixturenames", ()))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Accept a share without tests: a folder may have fewer proof tests than there are shares, and no others."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and _share(session.config)[1] > 1:
        session.exitstatus = pytest.ExitCode.OK


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    """Give the running reference."""
    from oracle import reference

    quick.remember_java_names()
    with reference.running() as running:
        yield running
