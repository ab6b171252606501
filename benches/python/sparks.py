"""delta-spark on this machine, in one process or with workers, with the time, CPU and memory of its processes."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
_SELF = Path("/proc/self")
_DELTA_CONFIGURATION = {
    "spark.jars.packages": PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_CONFIGURATION = {
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
#: Memory of the executor of each worker, in MiB.
_WORKER_MB = 3072


class Spark:
    """A running Spark."""

    def __init__(self, session: Any) -> None:
        """Keep a session.

        Args:
            session: A `SparkSession` of this process.
        """
        self._session = session
        self._driver = Path("/proc") / str(session._jvm.java.lang.ProcessHandle.current().pid())

    def sql(self, text: str) -> None:
        """Run a statement."""
        self._session.sql(text).collect()

    @property
    def session(self) -> Any:
        """The `SparkSession`."""
        return self._session

    def timed(self, text: str) -> dict[str, float]:
        """Run a statement and say what it took.

        Args:
            text: The statement.

        Returns:
            Wall and CPU seconds, and the largest resident size in MiB, of Spark's processes and this one.
        """
        return self.taken(lambda: self.sql(text))[0]

    def taken(self, work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
        """Do a piece of work and say what it took.

        Args:
            work: It.

        Returns:
            Wall and CPU seconds, and the largest resident size in MiB, of Spark's processes and this one; its answer.
        """
        self._session._jvm.java.lang.System.gc()
        for process in self._processes():
            with contextlib.suppress(OSError):
                (process / "clear_refs").write_text("5")
        cpu = self._cpu()
        since = time.perf_counter(), cpu
        answer = work()
        return self.used(since), answer

    def used(self, since: tuple[float, float]) -> dict[str, float]:
        """Say what Spark's processes and this one used since a time.

        Args:
            since: The wall time and the CPU time of these processes then; of this one only, if Spark had not started.

        Returns:
            Wall and CPU seconds, and the largest resident size in MiB.
        """
        wall = time.perf_counter() - since[0]
        return {"wall": wall, "cpu": self._cpu() - since[1], "peak_mb": self._peak_mb()}

    def _processes(self) -> list[Path]:
        """Return this process, the driver's Java, and the executors that it started."""
        parents: dict[int, list[Path]] = {}
        for process in Path("/proc").glob("[0-9]*"):
            # Processes come and go.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                parents.setdefault(int(_status(process)[1]), []).append(process)
        found = [self._driver]
        for process in found:
            found += parents.get(int(process.name), [])
        return [_SELF, *found]

    def _cpu(self) -> float:
        ticks = 0
        for process in self._processes():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                # With those of its children that have ended.
                ticks += sum(map(int, _status(process)[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _peak_mb(self) -> float:
        peaks = 0.0
        for process in self._processes():
            lines: list[str] = []
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                lines = (process / "status").read_text().splitlines()
            # A process that has just ended has none.
            peaks += next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)
        return peaks


def _status(process: Path) -> list[str]:
    """Return the fields of a process's status behind its name: its state, its parent, ..."""
    return (process / "stat").read_text().rpartition(")")[2].split()


@contextlib.contextmanager
def running(workers: int = 0, *, has_delta: bool = True) -> Iterator[Spark]:
    """Start Spark for as long as it is used.

    Args:
        workers: Workers of one core, each with an executor in a process of its own; 0 for all cores in one process.
        has_delta: Whether it has delta-spark's jar and settings.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]")
    if workers:
        builder = builder.master(f"local-cluster[{workers},1,{_WORKER_MB}]")
        builder = builder.config("spark.executor.memory", f"{_WORKER_MB}m")
    for key, value in ((_DELTA_CONFIGURATION if has_delta else {}) | _CONFIGURATION).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield Spark(session)
    finally:
        session.stop()
