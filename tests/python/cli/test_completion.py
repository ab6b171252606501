"""Shells complete commands and options."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deltafast opt", {"optimize"}),
        ("deltafast che", {"check-store", "checkpoint"}),
        ("deltafast vacuum --del", {"--delete"}),
    ],
)
def test_a_line_is_completed(line, expected, tmp_path):
    answer = tmp_path / "answer"
    shell = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "bash", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line}
    shell |= {"COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run([sys.executable, "-m", "deltafast"], env=os.environ | shell, check=True)
    assert {word.strip() for word in answer.read_text().splitlines()} == expected
