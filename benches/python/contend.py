"""Small commits from several processes to one table, and many from one: how many, how long, what became of each.

Writers are processes of their own that begin together and work for so many seconds. What they were told is compared
with the table in the end: a commit that was acknowledged and is not there is an error, not a figure.
"""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Tries after which a writer gives an UPDATE up, and how much longer it pauses before each, in seconds at most.
TRIES, PAUSE = 30, 0.02


def _rows() -> Any:
    import pyarrow as pa

    return pa.table({"id": range(100), "text": ["x"] * 100})


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _append(module: Any, folder: str) -> Callable[[], bool]:
    """A writer that appends 100 rows a step."""
    rows = _rows()

    def step() -> bool:
        try:
            module.write_deltalake(folder, rows, mode="append")
        except Exception:  # noqa: BLE001 - what a caller would see
            return False
        return True

    return step


def _count(module: Any, folder: str) -> Callable[[], bool]:
    """A writer that counts one on a step, again on a newer version after each lost race, until it gives up."""
    table = module.DeltaTable(folder)
    reruns = "max_conflict_retries" in inspect.signature(table.update).parameters

    def itself() -> bool:
        try:
            table.update(updates={"n": "n + 1"}, predicate="name = 'hot'", max_conflict_retries=TRIES)
        except Exception:  # noqa: BLE001 - what a caller would see
            return False
        return True

    def step() -> bool:
        for lost in range(TRIES):
            table.update_incremental()
            try:
                table.update(updates={"n": "n + 1"}, predicate="name = 'hot'")
            except Exception:  # noqa: BLE001 - what a caller would see
                time.sleep(random.random() * PAUSE * (lost + 1))
            else:
                return True
        return False

    return itself if reruns else step


_STEPS = {"append": _append, "count": _count}


def _writer(kind: str, peer: str, folder: str, seconds: float, barrier: Any, results: Any) -> None:
    step = _STEPS[kind](importlib.import_module(peer), folder)
    times: list[float] = []
    failed = 0
    barrier.wait()
    before, end = _cpu(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        if step():
            times.append(time.perf_counter() - start)
        else:
            failed += 1
    results.put((times, failed, _cpu() - before))


def _race(kind: str, peer: str, folder: str, writers: int, seconds: float) -> dict[str, float]:
    """Let writers loose on a table."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(writers), context.Queue()
    job = (kind, peer, folder, seconds, barrier, results)
    processes = [context.Process(target=_writer, args=job) for _ in range(writers)]
    for process in processes:
        process.start()
    found = [results.get() for _ in processes]
    for process in processes:
        process.join()
    times = sorted(value for many, _, _ in found for value in many)
    if not times:
        message = f"{peer}: none of {writers} writers committed anything in {seconds} s"
        raise RuntimeError(message)
    return {
        "done": len(times),
        "per_second": len(times) / seconds,
        "p50_ms": statistics.median(times) * 1000,
        "p99_ms": times[min(len(times) - 1, int(len(times) * 0.99))] * 1000,
        "cpu_ms": sum(cpu for _, _, cpu in found) / len(times) * 1000,
        "failed": sum(failed for _, failed, _ in found),
    }


def appends(peer: str, writers: int, seconds: float) -> dict[str, float]:
    """Appends of 100 rows by several processes to one table.

    Args:
        peer: The package.
        writers: How many processes.
        seconds: How long.

    Returns:
        Commits a second, median and 99th percentile and CPU of one in milliseconds, and errors shown.
    """
    with tempfile.TemporaryDirectory() as base:
        folder = f"{base}/t"
        importlib.import_module(peer).write_deltalake(folder, _rows())
        found = _race("append", peer, folder, writers, seconds)
        commits = len([name for name in Path(folder, "_delta_log").iterdir() if name.suffix == ".json"]) - 1
    if commits < found["done"]:
        message = f"{peer} lost commits: {commits} of {found['done']}"
        raise RuntimeError(message)
    return found


def counter(peer: str, writers: int, seconds: float) -> dict[str, float]:
    """UPDATEs of one row by several processes, each of which tries again after a lost race, 30 times at most.

    Args:
        peer: The package.
        writers: How many processes.
        seconds: How long.

    Returns:
        As of `appends`; `failed` are those given up, `lost` those that were acknowledged and are not in the table.
    """
    import pyarrow as pa

    module = importlib.import_module(peer)
    with tempfile.TemporaryDirectory() as base:
        folder = f"{base}/t"
        module.write_deltalake(folder, pa.table({"name": ["other", "hot"], "n": pa.array([0, 0], pa.int64())}))
        found = _race("count", peer, folder, writers, seconds)
        rows = module.DeltaTable(folder).to_pyarrow_table().to_pylist()
    found["lost"] = found["done"] - next(row["n"] for row in rows if row["name"] == "hot")
    return found


def many(peer: str, count: int, resident_mb: Callable[[], float]) -> dict[str, float]:
    """Appends of 100 rows one after the other.

    Args:
        peer: The package.
        count: How many.
        resident_mb: Tells the memory of this process.

    Returns:
        Milliseconds of one over all and over the last tenth; by how many megabytes memory grew after the first tenth.
    """
    write, rows = importlib.import_module(peer).write_deltalake, _rows()
    settled, ends = 0.0, [time.perf_counter()]
    with tempfile.TemporaryDirectory() as base:
        for number in range(1, count + 1):
            write(f"{base}/t", rows, mode="append")
            ends.append(time.perf_counter())
            if number == count // 10:
                settled = resident_mb()
        grown = resident_mb() - settled
    tenth = max(1, count // 10)
    return {
        "commit_ms": (ends[-1] - ends[0]) / count * 1000,
        "last_ms": (ends[-1] - ends[-1 - tenth]) / tenth * 1000,
        "growth_mb": grown,
    }
