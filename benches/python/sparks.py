"""delta-spark on all cores of this machine, with the time, CPU and memory of its process."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
_CONFIGURATION = {
    "spark.jars.packages": PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    # The default of 200 is for clusters.
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
}


class Spark:
    """A running Spark."""

    def __init__(self, session: Any) -> None:
        """Keep a session.

        Args:
            session: A `SparkSession` of this process.
        """
        self._session = session
        self._process = Path("/proc") / str(session._jvm.java.lang.ProcessHandle.current().pid())

    def sql(self, text: str) -> None:
        """Run a statement."""
        self._session.sql(text).collect()

    def timed(self, text: str) -> dict[str, float]:
        """Run a statement and say what it took.

        Args:
            text: The statement.

        Returns:
            Wall and CPU seconds, and the largest resident size in MiB, all of Spark's process.
        """
        self._session._jvm.java.lang.System.gc()
        with contextlib.suppress(OSError):
            (self._process / "clear_refs").write_text("5")
        cpu, wall = self._cpu(), time.perf_counter()
        self.sql(text)
        return {"wall": time.perf_counter() - wall, "cpu": self._cpu() - cpu, "peak_mb": self._peak_mb()}

    def _cpu(self) -> float:
        fields = (self._process / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _peak_mb(self) -> float:
        lines = (self._process / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


@contextlib.contextmanager
def running() -> Iterator[Spark]:
    """Start Spark for as long as it is used."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]")
    for key, value in _CONFIGURATION.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield Spark(session)
    finally:
        session.stop()
