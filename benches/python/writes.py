"""Compare appends with `deltalake`: large ones by time, small ones by commits a second from several processes.

    python benches/python/writes.py [--rows 20000000] [--samples 3] [--seconds 10] [--commits 10000] [--json FILE]

Each sample runs in a process of its own, the contenders in turn, so that a change of the machine hits all of them. The
table of the large append has eight columns (two numbers, two texts, two times, a decimal, a truth value); the data is
made before the clock starts and handed over as batches. Local disks, fsync included, as both do it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PEERS = ("deltafast", "deltalake")
WRITERS = (1, 4, 16)


def data(rows: int) -> Any:
    """Eight columns, in batches of a million rows."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(1)
    batches = []
    for start in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - start)
        ids = np.arange(start, start + n)
        batches.append(
            pa.record_batch(
                {
                    "id": ids,
                    "amount": rng.random(n) * 1000,
                    "key": pa.array(rng.integers(0, 1_000_000, n)).cast(pa.string()),
                    "kind": pa.array(["alpha", "beta", "gamma", "delta"]).take(pa.array(rng.integers(0, 4, n))),
                    "at": pa.array(ids * 1_000_000, pa.timestamp("us", "UTC")),
                    "day": pa.array((ids // 100_000).astype("int32"), pa.int32()).cast(pa.date32()),
                    "price": pa.array(rng.integers(0, 10**8, n)).cast(pa.decimal128(19, 0)),
                    "flag": pa.array(rng.integers(0, 2, n).astype(bool)),
                    "part": pa.array((ids % 100).astype("int32")),
                }
            )
        )
    return batches


def writer(peer: str) -> Any:
    """`write_deltalake` of the peer."""
    if peer == "deltafast":
        from deltafast import write_deltalake
    else:
        from deltalake import write_deltalake
    return write_deltalake


def append(peer: str, rows: int, parts: bool) -> dict[str, float]:
    """One large append, in this process."""
    import pyarrow as pa

    batches = data(rows)
    if not parts:
        batches = [batch.select([name for name in batch.schema.names if name != "part"]) for batch in batches]
    write = writer(peer)
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF)
        start = time.perf_counter()
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
        write(f"{folder}/t", reader, mode="append", partition_by=["part"] if parts else None)
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "peak_mb": after.ru_maxrss / 1024}


def _appender(peer: str, folder: str, seconds: float, barrier: Any, results: Any) -> None:
    import pyarrow as pa

    write, rows = writer(peer), pa.table({"id": range(100), "text": ["x"] * 100})
    failed, times = 0, []
    barrier.wait()
    used = resource.getrusage(resource.RUSAGE_SELF)
    before = used.ru_utime + used.ru_stime
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        try:
            write(folder, rows, mode="append")
            times.append(time.perf_counter() - start)
        except Exception:  # noqa: BLE001 - what a caller would see
            failed += 1
    used = resource.getrusage(resource.RUSAGE_SELF)
    results.put((times, failed, used.ru_utime + used.ru_stime - before))


def contended(peer: str, writers: int, seconds: float) -> dict[str, float]:
    """Small appends of 100 rows from several processes to one table."""
    import pyarrow as pa

    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as base:
        folder = f"{base}/t"
        writer(peer)(folder, pa.table({"id": range(100), "text": ["x"] * 100}))
        barrier, results = context.Barrier(writers), context.Queue()
        job = (peer, folder, seconds, barrier, results)
        processes = [context.Process(target=_appender, args=job) for _ in range(writers)]
        for process in processes:
            process.start()
        found = [results.get() for _ in processes]
        for process in processes:
            process.join()
        times = sorted(value for many, _, _ in found for value in many)
        commits = len([name for name in Path(folder, "_delta_log").iterdir() if name.suffix == ".json"]) - 1
        if commits < len(times):
            message = f"{peer} lost commits: {commits} of {len(times)}"
            raise RuntimeError(message)
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    failures = sum(failed for _, failed, _ in found)
    return {
        "per_second": len(times) / seconds,
        "p50_ms": statistics.median(times) * 1000,
        "p99_ms": p99 * 1000,
        "cpu_ms": sum(cpu for _, _, cpu in found) / len(times) * 1000,
        "failed": failures,
    }


def many(peer: str, commits: int) -> dict[str, float]:
    """Commits one after the other from one process: memory and milliseconds a commit, after a tenth and after all."""
    import pyarrow as pa

    write, rows = writer(peer), pa.table({"id": range(100), "text": ["x"] * 100})
    out: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as base:
        start = time.perf_counter()
        for n in range(commits):
            write(f"{base}/t", rows, mode="append")
            if n + 1 in (commits // 10, commits):
                name = "all" if n + 1 == commits else "tenth"
                status = Path("/proc/self/status").read_text("ascii")
                out[f"{name}_mb"] = int(status.split("VmRSS:")[1].split()[0]) / 1024
                out[f"{name}_ms"] = (time.perf_counter() - start) / (n + 1) * 1000
    return out


def sample(work: str, peer: str, *options: str) -> dict[str, float]:
    """One sample in a process of its own."""
    command = [sys.executable, __file__, "--one", work, peer, *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def one(work: str, peer: str, *numbers: str) -> dict[str, float]:
    """The sample of this process."""
    given = [int(number) for number in numbers]
    if work in {"contended", "many"}:
        return {"contended": contended, "many": many}[work](peer, *given)
    return append(peer, *given, work == "parts")


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--json")
    parser.add_argument("--one", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*given.one)))
        return
    out: dict[str, Any] = {}
    for work in ("plain", "parts"):
        for peer in [peer for _ in range(given.samples) for peer in PEERS]:
            out.setdefault(f"append {work}", {}).setdefault(peer, []).append(sample(work, peer, str(given.rows)))
    for writers in WRITERS:
        for peer in PEERS:
            out.setdefault(f"small appends, {writers} writers", {})[peer] = [
                sample("contended", peer, str(writers), str(given.seconds))
            ]
    for peer in PEERS:
        out.setdefault(f"{given.commits} commits", {})[peer] = [sample("many", peer, str(given.commits))]
    for name, peers in out.items():
        for peer, samples in peers.items():
            figures = {key: statistics.median(one[key] for one in samples) for key in samples[0]}
            print(f"{name:28} {peer:10}", "  ".join(f"{key} {value:.2f}" for key, value in figures.items()))
    if given.json:
        Path(given.json).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
