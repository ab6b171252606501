"""The tests of `deltalake` itself, with the distribution of that name that deltafast provides."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import deltafast

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
#: They depend on whether two files are written in the same millisecond: a vacuum keeps the later one, as in Spark.
EITHER = {
    "test_vacuum.py::test_vacuum_lite_mode_no_list_operation",
    "test_vacuum.py::test_vacuum_lite_mode_no_list_operation_partitioned",
}


def listed() -> dict[str, str]:
    """The tests that fail, each with its reason."""
    out: dict[str, str] = {}
    reason = ""
    for line in (HERE / "failing_tests.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            out[line] = reason
    return out


def test_each_test_that_fails_has_a_reason_in_the_docs():
    reasons = list(listed().values())
    page = (ROOT / "docs" / "writing.md").read_text(encoding="utf-8")
    for reason in dict.fromkeys(reasons):
        assert reason.startswith(("Spark's semantics: ", "internals of deltalake: "))
        assert f"| {reason} | {reasons.count(reason)} |\n" in page
    assert f"The other {len(reasons)} fail for these reasons" in page


@pytest.mark.proof
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_only_the_listed_tests_of_deltalake_fail(tmp_path: Path) -> None:
    folder = subprocess.run(
        [ROOT / "dev" / "deltalake_tests"],
        env=os.environ | {"PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout.strip()
    places = [f"{folder}/packages", str(Path(deltafast.__file__).parents[1])]
    report = tmp_path / "report.xml"
    options = ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".", "--tb=short", "--basetemp", tmp_path / "t"]
    chosen = "not integration and not benchmark and not no_pyarrow"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, "-m", chosen, "--junitxml", report, "tests"],
        cwd=f"{folder}/python",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        check=False,
        text=True,
    )
    cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
    assert len(cases) > 700, done.stdout[-2000:] + done.stderr[-2000:]
    failed = {
        f"{str(case.get('classname')).rpartition('.')[2]}.py::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    expected = set(listed())
    assert failed - expected - EITHER == set(), done.stdout[-4000:]
    assert expected - failed == set(), "these pass"
