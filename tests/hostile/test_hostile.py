"""Each hostile table gives its rows or one clear error, in bounded time and memory, and the process lives."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from support import one_in

from .generate import Case, Expect, load

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
LONGEST_MESSAGE = 4000
# Slow machines may ask for more time; a hang stays a hang.
SLOWDOWN = float(os.environ.get("DELTAFAST_HOSTILE_SLOWDOWN", "1"))
# What Rust's debug output, a panic or a nested error look like.
DEBUG_DUMP = re.compile(r"\b(?:Some|Err|Ok)\(|\b[A-Z]\w+ \{ ?\w+:|panicked|unwrap\(\)|RUST_BACKTRACE|\\u\{")


@dataclasses.dataclass
class Reader:
    """The worker process; a new one when the last has died."""

    process: subprocess.Popen[bytes] | None = None
    stderr: Any = None
    served: int = 0

    def _start(self) -> subprocess.Popen[bytes]:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self.served = 0
        # Pages that expand to more than this are refused; without a limit a quarter of the machine's memory is.
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path]),
            "DELTAFAST_MEMORY_LIMIT": "256MB",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hostile.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            cwd=HERE.parent,
            env=environment,
        )
        return self.process

    def _bury(self) -> int:
        """Wait for the worker's end and close what led to it."""
        assert self.process
        code = self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.stderr):
            stream.close()
        self.process = None
        return code

    def stop(self) -> None:
        """Let the worker end; one that hangs is killed."""
        if self.process:
            assert self.process.stdin
            self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self._kill()
            else:
                self._bury()

    def _kill(self) -> None:
        assert self.process
        self.process.kill()
        self._bury()

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the worker's answer, or how it failed to give one."""
        process = self.process or self._start()
        assert process.stdin
        assert process.stdout
        self.stderr.seek(0, os.SEEK_END)
        said_before = self.stderr.tell()
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        # The first answer waits for the imports too.
        patience = seconds * SLOWDOWN + (0 if self.served else 30)
        self.served += 1
        ready, _, _ = select.select([process.stdout], [], [], patience)
        line = process.stdout.readline() if ready else b""
        self.stderr.seek(said_before)
        said = self.stderr.read().decode("utf-8", "replace")
        if line:
            return json.loads(line) | {"said": said}
        if not ready:
            self._kill()
            return {"died": f"no answer within {seconds:.0f} s", "said": said}
        code = self._bury()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return {"died": name, "said": said}


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """Give the worker to all tests of a process."""
    one = Reader()
    yield one
    one.stop()


def check(case: Case, answer: dict[str, Any]) -> None:
    """Compare an answer with what the case expects, and with what holds for all."""
    assert "died" not in answer, f"the process died: {answer['died']}; {answer['said'][:2000]}"
    assert "panicked" not in answer["said"], answer["said"][:2000]
    for text in (answer.get("error", ""), answer.get("repr", ""), answer["said"]):
        for secret in case.secrets:
            assert secret not in text, f"a secret is told: {text[:2000]}"
    mebibytes = answer["memory"] >> 20
    if "error" in answer:
        _check_error(case.expect, answer)
    else:
        _check_rows(case.expect, answer)
    assert answer["memory"] <= case.memory, f"{mebibytes} MiB at the peak"
    assert answer["seconds"] <= case.seconds * SLOWDOWN


def _check_error(expect: Expect, answer: dict[str, Any]) -> None:
    message, classes = answer["error"], answer["classes"]
    assert "DeltaError" in classes, f"{answer['class']} is not a DeltaError: {message[:500]}"
    assert "InternalError" not in classes, f"a defect of ours: {message[:500]}"
    assert message.strip()
    assert len(message) <= LONGEST_MESSAGE, f"a message of {len(message)} letters"
    control = [c for c in message if ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029\u202e"]
    assert not control, f"control characters in {message!r}"
    assert not DEBUG_DUMP.search(message), f"a debug dump: {message}"
    if expect.verdict == "anything":
        return
    assert expect.verdict != "rows", f"an error where rows are due: {answer['class']}: {message}"
    assert set(expect.classes) & set(classes), f"{answer['class']} for {expect.classes}: {message}"
    for text in expect.contains:
        assert text in message, f"{text!r} is not named: {message}"


def _check_rows(expect: Expect, answer: dict[str, Any]) -> None:
    if expect.verdict == "anything":
        return
    assert expect.verdict != "error", f"{answer['count']} rows where an error is due: {str(answer.get('ids'))[:200]}"
    if expect.count is not None:
        assert answer["count"] == expect.count
    elif expect.ids is not None:
        assert Counter(answer["ids"]) == Counter(expect.ids)


@pytest.mark.parametrize("case", one_in(2, load()), ids=str)
def test_hostile_table(case: Case, reader: Reader) -> None:
    """The table gives what its case expects."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as scratch:
        folder = pathlib.Path(scratch) / "table"
        folder.mkdir()
        address = case.build(folder) or str(folder)
        answer = reader.ask({"table": address, "do": case.do, "arguments": case.arguments}, case.seconds)
        check(case, answer)


def test_the_suite_is_large_enough() -> None:
    """At least 150 tables, each with a reason."""
    cases = load()
    assert len(cases) >= 150
    assert all(case.why for case in cases)
