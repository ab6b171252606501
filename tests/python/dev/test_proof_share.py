"""The shares of the proof tier: each test is in exactly one, and a wrong option is refused."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]


def collect(*options: str) -> subprocess.CompletedProcess[str]:
    """Collect the tests of killed writers, all of which are proofs."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/crash", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def names(*options: str) -> list[str]:
    """Return the collected tests."""
    ran = collect(*options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [line for line in ran.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_each_proof_is_in_one_share():
    whole = names()
    shares = [names("--proof", f"{number}/3") for number in (1, 2, 3)]
    assert all(shares)
    assert len(whole) >= 9
    assert sorted(name for share in shares for name in share) == sorted(whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", ["4/3", *(pytest.param(option, marks=pytest.mark.proof) for option in ("0/3", "3", "a/b", ""))]
)
def test_a_share_that_there_is_not_is_refused(option):
    ran = collect(f"--proof={option}")
    assert ran.returncode != 0
    assert "a share and the number of shares" in ran.stdout + ran.stderr


def test_the_chosen_share_is_one_of_24():
    chosen = subprocess.run([ROOT / "dev" / "proof_share"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"(2[0-4]|1[0-9]|[1-9])/24\n", chosen), chosen
