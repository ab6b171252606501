"""The JUnit tests of the Java classes, and the format of their sources."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TESTS = sorted(file.stem for file in (ROOT / "java/src/test/java").rglob("*Test.java"))

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, ET.Element]:
    """The cases of each test class, by its name."""
    folder = tmp_path_factory.mktemp("junit")
    run = [sys.executable, str(ROOT / "dev/run_junit.py"), "--reports", str(folder)]
    ran = subprocess.run(run, check=False, capture_output=True, text=True)
    found = {}
    for file in folder.glob("*.xml"):
        for case in ET.parse(file).getroot().iter("testcase"):
            found.setdefault(case.get("classname").rpartition(".")[2], []).append(case)
    assert found, ran.stdout + ran.stderr
    return found


@pytest.mark.parametrize("name", TESTS)
def test_junit(reports, name, record_property):
    failed = []
    for case in reports[name]:
        failures = [*case.iter("failure"), *case.iter("error")]
        record_property(case.get("name"), "failed" if failures else "passed")
        failed += [f"{case.get('name')}: {(failure.text or '')[:2000]}" for failure in failures]
    assert not failed, "\n".join(failed)
    assert not [case.get("name") for case in reports[name] if list(case.iter("skipped"))]


def test_sources_have_the_format_of_google_java_format():
    run = [sys.executable, str(ROOT / "dev/format_java.py"), "--check"]
    ran = subprocess.run(run, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
