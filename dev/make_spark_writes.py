"""Records the tables that delta-spark leaves after the writes of `tests/spark/write_grid.py`.

    python dev/make_spark_writes.py [--missing]

It writes `tests/golden/spark_writes.json`; with `--missing`, only the cases that are not in it are run. It starts Spark
with delta-spark's jar, as the tests that compare with it do.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "tests/golden/spark_writes.json"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]


def main() -> None:
    """Record all writes."""
    from oracle.reference import PACKAGE, running
    from spark.write_grid import CASES, outcome

    recorded = json.loads(OUTPUT.read_text("utf-8"))["tables"] if "--missing" in sys.argv else {}
    tables: dict[str, Any] = {name: recorded[name] for name in CASES if name in recorded}
    with running() as reference, tempfile.TemporaryDirectory() as folder:
        spark = reference._spark  # noqa: SLF001
        for case in CASES.values():
            if case.name in tables:
                continue
            tables[case.name] = outcome(spark, pathlib.Path(folder), case)
            print(case.name, "->", tables[case.name], flush=True)
    lines = [f"  {json.dumps(name)}: {json.dumps(tables[name])}" for name in CASES]
    OUTPUT.write_text(
        f'{{\n "delta-spark": {json.dumps(PACKAGE)},\n "recorded by": "dev/make_spark_writes.py",\n "tables": {{\n'
        + ",\n".join(lines)
        + "\n }\n}\n",
        "utf-8",
    )


if __name__ == "__main__":
    main()
