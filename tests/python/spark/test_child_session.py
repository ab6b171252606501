"""Tests in child processes are reported as all others are, and so are children that end too early."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

CONFTEST = f"""
import os
import sys

import pytest

sys.path.insert(0, {str(pathlib.Path(__file__).parents[2])!r})
from spark import child_session

child_session.GRACE = 1.0


def pytest_configure(config):
    child_session.register(config)


@pytest.fixture(scope="session", autouse=True)
def release(request):
    return getattr(request, "param", None)


@pytest.fixture(scope="session")
def process():
    print("the session starts")
    yield os.getpid()
    print("the session ends")
"""

MARKED = """
import os
import signal
import sys
import time

import pytest

pytestmark = pytest.mark.child_session("first")


def test_passes(process, request):
    assert request.config.pluginmanager.has_plugin("child-worker")
    with open("processes", "a") as file:
        file.write(f"{process}\\n")


test_shares_the_session = test_passes


def test_fails():
    print("said before")
    assert [1, 2, 3] == [1, 2, 4]


def test_is_skipped():
    pytest.skip("not today")


@pytest.mark.xfail(reason="known")
def test_is_expected_to_fail():
    raise AssertionError


def test_is_killed(process):
    print("last words", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.xdist_group("group")
def test_in_a_group():
    pass


@pytest.mark.timeout(1)
def test_takes_too_long():
    time.sleep(60)


@pytest.mark.timeout(1)
def test_cannot_be_interrupted():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(60)


test_has_a_new_session = test_passes


@pytest.mark.child_session("second")
def test_of_another_kind(process):
    pass
"""

UNMARKED = """
def test_runs_here(request):
    assert not request.config.pluginmanager.has_plugin("child-worker")
"""

PARAMETERS = """
import pytest

pytestmark = pytest.mark.child_session("first")


@pytest.fixture(params=["one"])
def number(request):
    return request.param


def test_has_both(number):
    pass
"""


def run(folder: pathlib.Path, *arguments: str) -> str:
    """Run pytest in a folder; returns what it says."""
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 60\naddopts = --strict-markers\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_marked.py").write_text(MARKED)
    (folder / "test_a_unmarked.py").write_text(UNMARKED)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={folder / 'tmp'}", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100).stdout


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> tuple[pathlib.Path, str]:
    """Give the folder and the output of a run of all tests."""
    folder = tmp_path_factory.mktemp("run")
    return folder, run(folder, "-v", "--junitxml=report.xml", "--durations=0")


def test_each_test_has_its_name_and_outcome(everything):
    _, said = everything
    outcomes = dict(re.findall(r"^test_\w+\.py::(\S+) (?:<- \S+ )?([A-Z]+)", said, re.MULTILINE))
    assert outcomes == {
        "test_passes[4.2]": "PASSED",
        "test_shares_the_session[4.2]": "PASSED",
        "test_fails[4.2]": "FAILED",
        "test_is_skipped[4.2]": "SKIPPED",
        "test_is_expected_to_fail[4.2]": "XFAIL",
        "test_is_killed[4.2]": "FAILED",
        "test_in_a_group[4.2]": "PASSED",
        "test_takes_too_long[4.2]": "FAILED",
        "test_cannot_be_interrupted[4.2]": "FAILED",
        "test_has_a_new_session[4.2]": "PASSED",
        "test_of_another_kind[4.2]": "PASSED",
        "test_runs_here": "PASSED",
    }
    assert "4 failed, 6 passed, 1 skipped, 1 xfailed" in said
    # Marked tests run before all others.
    assert said.index("test_of_another_kind") < said.index("test_runs_here")
    assert re.search(r"\d+\.\d+s call +test_marked.py::test_takes_too_long\[4\.2\]", said)


def test_failures_show_differences_and_output(everything):
    _, said = everything
    # pytest leaves out the type where it does not truncate the message: with `CI` set, for example.
    assert re.search(r"^E +(AssertionError: )?assert \[1, 2, 3\] == \[1, 2, 4\]$", said, re.MULTILINE)
    assert "At index 2 diff: 3 != 4" in said
    assert "Captured stdout call -----------------------------\nsaid before\n" in said
    assert "Failed: Timeout (>1.0s) from pytest-timeout." in said


def test_a_child_that_ends_is_a_failure_of_its_test(everything):
    _, said = everything
    child = "The child process of the session 'first' on PySpark 4.2"
    assert f"\n{child} was ended by SIGKILL while it ran this test\n" in said
    assert "Captured stderr call -----------------------------\nlast words\n" in said
    assert f"\n{child} was killed: it did not report within 2 s\n" in said


def test_tests_of_a_kind_share_a_child(everything):
    folder, _ = everything
    first, second, third = (folder / "processes").read_text().split()
    assert first == second != third


def test_reports_in_a_file_are_complete(everything):
    folder, _ = everything
    [suite] = ET.parse(folder / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "12",
        "4",
        "0",
        "2",
    )


@pytest.mark.proof
def test_selection_and_the_first_failure_are_decided_by_the_parent(tmp_path):
    said = run(tmp_path, "-v", "-x", "-k", "fails or killed or here")
    assert "1 failed, 9 deselected" in said
    assert run(tmp_path, "-q", "-k", "passes or another").startswith("..")


@pytest.mark.proof
def test_workers_of_xdist_have_children_of_their_own(tmp_path):
    assert "3 passed" in run(tmp_path, "-v", "-n2", "--dist=worksteal", "-k", "passes or shares or runs")


@pytest.mark.proof
def test_names_of_groups_of_xdist_are_none_of_the_child(tmp_path):
    assert "1 passed" in run(tmp_path, "-v", "-n1", "--dist=loadgroup", "-k", "group")


def test_names_do_not_depend_on_when_the_plugin_was_registered(tmp_path):
    """A `conftest.py` below the folder is loaded late, but first by a child process, whose arguments are files."""
    inner = tmp_path / "tests" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (inner / "conftest.py").write_text(CONFTEST)
    (inner / "test_parameters.py").write_text(PARAMETERS)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'tmp'}"]
    for arguments in (["tests"], ["tests/inner/test_parameters.py"]):
        process = subprocess.run(
            [*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
        )
        assert "test_has_both[4.2-one] PASSED" in process.stdout, process.stdout
