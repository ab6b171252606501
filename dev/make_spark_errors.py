"""Records delta-spark's errors to the programs of `tests/spark/bad_programs.py` in `tests/golden/spark_errors.json`.

    python dev/make_spark_errors.py

It starts Spark with delta-spark's jar, as the tests that compare with it do.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "tests/golden/spark_errors.json"

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]


class JavaTable:
    """The calls of delta-spark's `DeltaTable` that the programs make, through its Java class."""

    def __init__(self, java: Any) -> None:
        self._java = java

    @classmethod
    def forPath(cls, spark: Any, path: str) -> JavaTable:  # noqa: N802 - delta-spark's names
        """Return a table by its path."""
        return cls(spark._jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, path))  # noqa: SLF001

    @classmethod
    def forName(cls, spark: Any, name: str) -> JavaTable:  # noqa: N802
        """Return a table by its name."""
        return cls(spark._jvm.io.delta.tables.DeltaTable.forName(spark._jsparkSession, name))  # noqa: SLF001

    def addFeatureSupport(self, name: str) -> None:  # noqa: N802
        """Add a table feature."""
        self._java.addFeatureSupport(name)


def main() -> None:
    """Record all errors."""
    from oracle.reference import PACKAGE, running
    from spark.bad_programs import PROGRAMS, Scene, error_of

    errors: dict[str, Any] = {}
    with running() as reference, tempfile.TemporaryDirectory() as folder:
        spark = reference._spark  # noqa: SLF001
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
        scene = Scene(spark, folder, JavaTable)
        scene.build()
        for name in PROGRAMS:
            errors[name] = error_of(scene, name)
            print(name, "->", (errors[name] or {}).get("condition"))
    lines = {"delta-spark": PACKAGE, "recorded by": "dev/make_spark_errors.py", "errors": errors}
    OUTPUT.write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
