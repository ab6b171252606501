"""Record the answers of delta-spark that `tests/oracle` replays without Java.

    python dev/make_oracle_answers.py [test_merge test_sql ...]

Writes `tests/golden/oracle/<module>.jsonl` for these test modules, or for all that take the fixture `answers`: the
versions of Spark and delta-spark in the first line, then one table or answer a line. Needs what the live tests need:
Java, PySpark and network access to Maven Central. Takes about 15 minutes for all modules.

A test that fails here differs from delta-spark, or not every answer was recorded; the exit code says so.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "oracle"


def main() -> int:
    """Record the modules named in the arguments, or all."""
    taken = "    from .recorded_answers import Answers\n"
    modules = {path.stem: path for path in sorted(TESTS.glob("test_*.py")) if taken in path.read_text(encoding="utf-8")}
    names = sys.argv[1:] or list(modules)
    if unknown := [name for name in names if name not in modules]:
        sys.exit(f"no test module with recorded answers: {', '.join(unknown)}; there are {', '.join(modules)}")
    for name in names:
        (ROOT / "tests" / "golden" / "oracle" / f"{name}.jsonl").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "--record-answers", "-p", "no:xdist", "--durations", "10"]
    return subprocess.run([*command, *(str(modules[name]) for name in names)], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
