"""The blocks of pages, run as they stand: Python, files with a title, and commands."""

from __future__ import annotations

import itertools
import os
import pathlib
import re
import subprocess
import sys

__all__ = ["processes", "run", "run_page"]

#: Separates what the blocks print.
_MARK = "----- next block -----"
#: A block, and what it prints.
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
#: The same with its language, and the path of a file that it is the content of.
_STEP = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?', re.DOTALL | re.MULTILINE)


def processes(page: str) -> list[list[tuple[str, str]]]:
    """Return the blocks of a page and what each prints, by process: some need a new one."""
    found: list[list[tuple[str, str]]] = [[]]
    for code, printed in _BLOCK.findall(page):
        if "install_as_deltalake" in code or "pyspark" in code:
            found.append([])
        found[-1].append((code, printed))
    return found


def _activated(python: str | pathlib.Path) -> dict[str, str]:
    """Return the variables of an environment that was activated."""
    return os.environ | {"PATH": f"{pathlib.Path(python).parent}{os.pathsep}{os.environ['PATH']}"}


def run(blocks: list[tuple[str, str]], folder: pathlib.Path, python: str | pathlib.Path = sys.executable) -> None:
    """Run blocks in one process in a folder, and compare what they print."""
    script = f"print({_MARK!r})\n".join(code for code, _ in blocks)
    done = subprocess.run(
        [python, "-"], input=script, cwd=folder, env=_activated(python), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for (code, expected), printed in zip(blocks, done.stdout.split(f"{_MARK}\n"), strict=True):
        assert not expected or printed == expected, code


def run_page(page: str, folder: pathlib.Path, python: str | pathlib.Path = sys.executable) -> None:
    """Do what a page says, in order, but for its installations; commands may print more before what is expected."""
    steps = [step for step in _STEP.findall(page) if not step[2].startswith("pip install")]
    assert steps
    for is_python, group in itertools.groupby(steps, lambda step: step[0] == "python" and not step[1]):
        if is_python:
            run([(text, printed) for _, _, text, printed in group], folder, python)
            continue
        for language, title, text, printed in group:
            if title:
                (folder / title).parent.mkdir(parents=True, exist_ok=True)
                (folder / title).write_text(text, encoding="utf-8")
                continue
            assert language == "console", text
            done = subprocess.run(
                ["sh", "-e"],
                input=text,
                cwd=folder,
                env=_activated(python),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
            assert done.stdout.endswith(printed), done.stdout[-3000:]
