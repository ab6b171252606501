"""Records what delta-spark's catalog shows of the tables of `tests/spark/catalog_programs.py`.

    python dev/make_catalog_answers.py

Writes `tests/golden/spark_catalog.json`. It starts Spark with delta-spark's jar, as the tests that compare with it do.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "tests/golden/spark_catalog.json"

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]


def main() -> None:
    """Record all answers."""
    from oracle.reference import PACKAGE, running
    from spark.catalog_programs import answers

    with running() as reference, tempfile.TemporaryDirectory() as folder:
        found = answers(reference._spark, folder)  # noqa: SLF001
    lines = {"delta-spark": PACKAGE, "recorded by": "dev/make_catalog_answers.py", "answers": found}
    OUTPUT.write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
