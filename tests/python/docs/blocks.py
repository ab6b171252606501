"""The Python blocks of pages, run as they stand."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

__all__ = ["processes", "run"]

#: Separates what the blocks print.
_MARK = "----- next block -----"
#: A block, and what it prints.
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def processes(page: str) -> list[list[tuple[str, str]]]:
    """Return the blocks of a page and what each prints, by process: some need a new one."""
    found: list[list[tuple[str, str]]] = [[]]
    for code, printed in _BLOCK.findall(page):
        if "install_as_deltalake" in code or "pyspark" in code:
            found.append([])
        found[-1].append((code, printed))
    return found


def run(blocks: list[tuple[str, str]], folder: pathlib.Path) -> None:
    """Run blocks in one process in a folder, and compare what they print."""
    script = f"print({_MARK!r})\n".join(code for code, _ in blocks)
    # In an environment that was activated: Spark's workers run the `python3` of the path.
    env = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-"], input=script, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for (code, expected), printed in zip(blocks, done.stdout.split(f"{_MARK}\n"), strict=True):
        assert not expected or printed == expected, code
