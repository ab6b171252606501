"""The notices in the wheel name all crates that it contains, with licenses that are allowed."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.slow
def test_the_notices_are_up_to_date():
    command = [sys.executable, ROOT / "dev" / "make_notices.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("MIT OR GPL-3.0", True),
        ("MIT AND GPL-3.0", False),
        ("MIT/GPL-3.0", True),
        ("(MIT OR GPL-3.0) AND Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0", False),
        ("", False),
    ],
)
def test_expressions_of_licenses_are_evaluated(expression, allowed, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "dev"))
    import make_notices

    assert make_notices._is_allowed(expression, {"MIT", "Apache-2.0 WITH LLVM-exception"}) is allowed
