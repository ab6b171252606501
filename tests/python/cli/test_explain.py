"""`deltafast explain`."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest

from deltafast import write_deltalake


def run(*arguments):
    command = [sys.executable, "-m", "deltafast", "explain", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def place(tmp_path):
    for n in range(4):
        write_deltalake(tmp_path, pa.table({"id": [10 * n, 10 * n + 9], "v": [n, 1]}), mode="append")
    return tmp_path


def test_what_a_condition_excludes(place):
    code, out, err = run(place, "-w", "id < 10", "-c", "v")
    assert (code, err) == (0, "")
    assert "files       1 of 4; excluded by statistics 3" in out
    assert "row groups  1 of 1" in out
    code, out, _ = run(place, "-w", "id < 10", "--json", "--files-only", "-v", 1)
    found = json.loads(out)
    assert (code, found["files"], found["files_total"], found["row_groups"]) == (0, 1, 2, None)


def test_too_little_pruning_fails(place):
    assert run(place, "-w", "id < 10", "--min-pruning", 70)[0] == 0
    code, out, err = run(place, "-w", "id >= 0", "--min-pruning", 70)
    assert (code, err) == (1, "error: the condition excludes 0.0 % of the bytes, less than 70 %\n")
    assert "4 of 4" in out


@pytest.mark.parametrize("given", [["-w", "nope = 1"], ["--min-pruning", "101"], ["-c", "nope"]])
def test_invalid_arguments_are_usage_errors(place, given):
    code, _, err = run(place, *given)
    assert code == 2
    assert "nope" in err or "101" in err
