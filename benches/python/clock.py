"""The clock of a sample: wall time, CPU time and memory of named phases of this process."""

from __future__ import annotations

import contextlib
import gc
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Job = dict[str, Any]
Facts = dict[str, Any]

#: Seconds before the first phase of every contender: NumPy's linear algebra keeps a core busy for a tenth of a second
#: after it is imported, whoever imports it.
_SETTLE = 0.3
_STATUS = Path("/proc/self/status")


def _status_mb(field: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def peak_mb() -> float:
    """Give the largest resident size so far, in MiB."""
    if _STATUS.exists():  # ru_maxrss would count the parent's memory before exec
        return _status_mb("VmHWM")
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def resident_mb() -> float:
    """Give the resident size now, in MiB."""
    return _status_mb("VmRSS") if _STATUS.exists() else peak_mb()


class Clock:
    """Takes the time and memory of named phases."""

    def __init__(self) -> None:
        """Start without phases."""
        self.phases: dict[str, dict[str, float]] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what runs inside.

        Args:
            name: The phase's name.
        """
        gc.collect()
        if not self.phases:
            time.sleep(_SETTLE)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        self.phases[name] = {"wall": wall, "cpu": cpu, "peak_mb": peak_mb()}
