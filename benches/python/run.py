"""Runs the benchmarks: every scenario, every contender, a fresh process a sample.

The samples of a scenario's contenders are interleaved (A B A B), so that a change of the
machine's mood meets all of them; the tables are read once beforehand, so all
start from a warm page cache. Answers are checked against what was generated.
Results go to a JSON file, from which `report.py` writes a page; scenarios that are not
run again keep their old results. Whatever is missing (a peer, the floor binary, deltafast
itself) is left out and named in the results.

    python benches/python/run.py --cache .bench --publish
    python benches/python/run.py --only scan-all --only plan --samples 1

With `--publish` the results go to `docs/benchmarks.json` and `docs/benchmarks.md`, under the
rules of `publishing.py`: a clean tree, at least three samples of each contender, and no sample
begins while the load is above 0.5. A run without it stays free of these rules and writes to the cache.

DuckDB's delta extension exists for DuckDB 1.5.5 only, so it gets an environment of
its own in the cache, unless `--duckdb-python` names one. The floors are a Rust binary:
`floors checkpoint FILE...`, `floors json FILE...` and `floors scan [--columns A,B] FILE...`
on all cores, printing `{"wall": s, "cpu": s, "peak_mb": MiB, "rows": n}`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import publishing
import report
from scenarios import SCENARIOS, SPARK, SUBJECT, Contender, Scenario, options_for
from tables import Table, known

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).parent
ROOT = publishing.ROOT
DUCKDB = ("duckdb==1.5.5", "duckdb-extension-delta==1.5.5", "pyarrow")
PACKAGES = ("deltafast", "deltalake", "polars", "duckdb", "duckdb-extension-delta", "pyarrow", "numpy", "pyspark")
_POLL_S = 0.2


class Runner:
    """Takes samples in the environments that exist."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Look for the environments.

        Args:
            options: The command line.
        """
        self.cache: Path = options.cache
        self.timeout: float = options.timeout
        self.limit_mb: float = options.memory_limit or 0.8 * _memory_mb("MemAvailable")
        self.pythons: dict[str, str] = {"main": sys.executable}
        duckdb = None if options.without_duckdb else options.duckdb_python or _duckdb_python(self.cache)
        if duckdb:
            self.pythons["duckdb"] = str(duckdb)
        floor = options.floor_binary or _newest_floor()
        self.floor = str(floor) if floor else None
        self.missing = {} if _can_import(sys.executable, SUBJECT) else {SUBJECT: "deltafast is not installed"}

    def absent(self, contender: Contender) -> str | None:
        """Say why a contender cannot take part.

        Args:
            contender: The contender.

        Returns:
            The reason, or None if it can.
        """
        if contender.environment == "floor":
            return None if self.floor else "no floor binary; see --floor-binary"
        if contender.peer == SPARK and not (_can_import(sys.executable, "pyspark") and shutil.which("java")):
            return "no PySpark or no Java"
        if contender.environment not in self.pythons:
            return "no environment for DuckDB 1.5.5"
        return self.missing.get(SUBJECT) if contender.peer.startswith(SUBJECT) else None

    def sample(self, scenario: Scenario, contender: Contender, table: Table) -> dict[str, Any]:
        """Run one contender once, in a fresh process.

        Args:
            scenario: What to do.
            contender: Who does it.
            table: On which table.

        Returns:
            The phases and facts, or why there are none under `failed`.
        """
        if contender.peer == "floor":
            files = [str(file) for file in _floor_files(contender.options["arguments"][0], table.path)]
            result = self._process([str(self.floor), *contender.options["arguments"], *files])
            if "failed" in result:
                return result
            phase = next(iter(scenario.phases))
            timing = {key: result[key] for key in ("wall", "cpu", "peak_mb")}
            return {"phases": {phase: timing}, "facts": {}}
        job: dict[str, Any] = {
            "work": scenario.work,
            "peer": contender.peer,
            "table": str(table.path.resolve()),
            "copy": str(self.cache.resolve() / f".{scenario.work}.{os.getpid()}"),
            **options_for(scenario, table),
            **contender.options,
        }
        if scenario.work == "vectors":
            quarters = [path for path in sorted(table.path.iterdir()) if (path / "_delta_log").is_dir()]
            job["tables"] = [str(path.resolve()) for path in quarters or [table.path]]
        python = self.pythons[contender.environment]
        return self._process([python, "-W", "ignore", str(HERE / "measure.py"), json.dumps(job)])

    def _process(self, command: list[str]) -> dict[str, Any]:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stdout=out, stderr=errors, env=_environment())
            reason = self._watch(process)
            if reason:
                return {"failed": reason}
            out.seek(0)
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            if process.returncode:
                return {"failed": lines[-1] if lines else f"exit code {process.returncode}"}
            answer: dict[str, Any] = json.loads(out.read().decode().strip().splitlines()[-1])
            return answer

    def _watch(self, process: subprocess.Popen[bytes]) -> str | None:
        """Wait for a process and end it if it takes too long or too much memory."""
        start = time.monotonic()
        while True:
            try:
                process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                reason = None
                if time.monotonic() - start > self.timeout:
                    reason = f"did not finish in {self.timeout:g} s"
                elif _resident_mb(process.pid) > self.limit_mb:
                    reason = f"took more than {self.limit_mb / 1024:.0f} GiB of memory"
                if reason:
                    process.kill()
                    process.wait()
                    return reason
            else:
                return None


def _memory_mb(field: str) -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return float("inf")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))


def _resident_mb(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def _environment() -> dict[str, str]:
    """This process's environment; modules may keep their bytecode, as those of installed packages do."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _can_import(python: str, module: str) -> bool:
    return not subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode


def _duckdb_python(cache: Path) -> Path | None:
    """Give the interpreter of DuckDB's environment, made now if it is not there."""
    folder = cache / "venv-duckdb"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / ".made").exists():
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *DUCKDB]
        if subprocess.run(install, check=False).returncode:
            return None
        (folder / ".made").touch()
    return python


def _newest_floor() -> Path | None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    found = [target / "floors", *(target / "examples").glob("floors"), *(target / "deps").glob("floors-*")]
    binaries = [path for path in found if path.is_file() and path.suffix == "" and os.access(path, os.X_OK)]
    return max(binaries, key=lambda path: path.stat().st_mtime, default=None)


def _floor_files(kind: str, table: Path) -> list[Path]:
    if kind == "scan":
        return sorted(table.glob("*.parquet"))
    log = table / "_delta_log"
    return sorted(log.rglob("*.parquet")) if kind == "checkpoint" else sorted(log.glob("*.json"))


def _warm(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb", buffering=0) as content:
                while content.read(1 << 22):
                    pass


def machine() -> dict[str, Any]:
    """Describe the machine.

    Returns:
        Processor, cores, memory and system.
    """
    model = platform.processor() or platform.machine()
    with_names = Path("/proc/cpuinfo")
    if with_names.exists():
        names = [line for line in with_names.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = _memory_mb("MemTotal")
    return {
        "cpu": model,
        "cores": cores,
        "memory_gb": round(memory / 1024, 1) if memory != float("inf") else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def versions(pythons: dict[str, str]) -> dict[str, dict[str, str]]:
    """Ask each environment which packages it has.

    Args:
        pythons: The interpreters by environment.

    Returns:
        Versions by environment and package.
    """
    code = (
        "import importlib.metadata as m, json, sys\n"
        "have = {d.metadata['Name'].replace('_', '-'): d.version for d in m.distributions()}\n"
        "print(json.dumps({n: have[n] for n in sys.argv[1:] if n in have}))"
    )
    out: dict[str, dict[str, str]] = {}
    for name, python in pythons.items():
        command = [python, "-c", code, *PACKAGES]
        out[name] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return out


def _build_profile() -> str | None:
    command = [sys.executable, "-c", f"import {SUBJECT}; print({SUBJECT}.build_profile())"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def wrong_answers(scenario: Scenario, tables: dict[str, Table], samples: dict[str, dict[str, Any]]) -> list[str]:
    """Compare what the contenders gave with what was generated and with each other.

    Args:
        scenario: The scenario.
        tables: The table of each contender.
        samples: One sample of each contender.

    Returns:
        A sentence for each difference.
    """
    out: list[str] = []
    sums: dict[str, Any] = {}
    for name, sample in samples.items():
        facts = sample["facts"]
        wanted = {key: tables[name].facts[key] for key in ("files", "size_bytes", "deleted") if key in facts}
        if "rows" in facts:
            wanted["rows"] = 1 if "predicate" in scenario.options else tables[name].facts["rows"]
        out += [
            f"{scenario.name}, {name}: {key} is {facts[key]}, not {value}"
            for key, value in wanted.items()
            if facts[key] != value
        ]
        files = tables[name].facts.get("files", 0) + int(scenario.options.get("new_commit", False))
        if "added" in facts and facts["added"] != files:
            out.append(f"{scenario.name}, {name}: the checkpoint has {facts['added']} files, not {files}")
        total = facts.get("id_sum", facts.get("sum"))
        if total is not None and tables[name].name == scenario.table:
            sums[name] = (total, facts.get("written"))
    if len(set(sums.values())) > 1:
        out.append(f"{scenario.name}: the sums of a column differ: {sums}")
    return out


def samples_of(scenario: Scenario, contender: Contender, most: int, *, publish: bool) -> int:
    """Return the number of samples to take of a contender.

    Args:
        scenario: The scenario.
        contender: The contender.
        most: The number asked for.
        publish: Whether the results are published: fewer samples than that needs are not taken then.
    """
    wanted = min(most, scenario.samples or most, contender.samples or most)
    return max(wanted, publishing.MIN_SAMPLES) if publish else wanted


def _take_samples(
    runner: Runner,
    scenario: Scenario,
    tables: dict[str, Table],
    results: dict[str, dict[str, Any]],
    most: int,
    max_wait: float | None,
) -> None:
    """Add the samples of all contenders to the results; `max_wait` is None if they are not published."""
    publish = max_wait is not None
    counts = {c.name: samples_of(scenario, c, most, publish=publish) for c in scenario.contenders}
    for number in range(max(counts.values())):
        for contender in scenario.contenders:
            result = results[contender.name]
            if number >= counts[contender.name] or "absent" in result or "failed" in result:
                continue
            load = publishing.await_quiet(_say, max_wait=max_wait) if publish else publishing.load_average()
            sample = runner.sample(scenario, contender, tables[contender.name])
            if "failed" in sample:
                result["failed"] = sample["failed"]
                if publish:
                    # The samples before the failure may be fewer than are needed.
                    result["samples"] = []
            else:
                result["samples"].append(sample | {"load": load})
            _say(f"  {contender.name:38} {_words(sample)}")


def run_scenario(
    runner: Runner, scenario: Scenario, scale: float, most: int, *, publish: bool = False, max_wait: float = 0.0
) -> dict[str, Any]:
    """Run one scenario.

    Args:
        runner: Takes the samples.
        scenario: The scenario.
        scale: The scale of the tables.
        most: The number of samples, unless the scenario or contender wants fewer.
        publish: Whether the results are published.
        max_wait: Seconds to wait before a sample that is published until the load has fallen.

    Returns:
        Every sample of every contender.

    Raises:
        publishing.PublishingError: If the results are to be published and do not meet the rules.
    """
    commit = publishing.clean_commit() if publish else publishing.commit_of()
    tables = {
        contender.name: _table(contender.table or scenario.table, runner.cache, scale)
        for contender in scenario.contenders
    }
    results: dict[str, dict[str, Any]] = {}
    for contender in scenario.contenders:
        reason = runner.absent(contender)
        results[contender.name] = {"samples": []} if reason is None else {"samples": [], "absent": reason}
    for table in {str(table.path): table for table in tables.values()}.values():
        _warm(table.path)
    loads = [publishing.load_average()]
    _take_samples(runner, scenario, tables, results, most, max_wait if publish else None)
    loads.append(publishing.load_average())
    firsts = {name: result["samples"][0] for name, result in results.items() if result["samples"]}
    wrong = wrong_answers(scenario, tables, firsts)
    for line in wrong:
        _say(f"  WRONG ANSWER: {line}")
    found = {
        "table": _table(scenario.table, runner.cache, scale).facts,
        "contenders": results,
        "wrong": wrong,
        "load": loads,
        "date": _now(),
        "commit": commit,
    }
    if publish:
        if publishing.clean_commit() != commit:
            raise publishing.PublishingError(f"cannot publish {scenario.name}: HEAD moved while it ran")
        publishing.check_result(scenario.name, found)
    return found


def _words(sample: dict[str, Any]) -> str:
    if "failed" in sample:
        return f"failed: {sample['failed']}"
    return ", ".join(
        f"{name} {phase['wall']:.4f} s, {phase['cpu']:.2f} CPU s, {phase['peak_mb']:.0f} MB"
        for name, phase in sample["phases"].items()
    )


def _say(line: str) -> None:
    print(line, flush=True)


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _table(name: str, cache: Path, scale: float) -> Table:
    table = known(name, cache, scale)
    if table is None:
        message = f"the generator did not make {name}"
        raise RuntimeError(message)
    return table


def _generate(names: Iterable[str], cache: Path, scale: float) -> None:
    # In a process of its own: its memory must not be inherited by what is measured.
    command = [sys.executable, str(HERE / "generate.py"), "--cache", str(cache), "--scale", str(scale)]
    subprocess.run([*command, *names], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run benchmarks from the command line.

    Args:
        arguments: The command line; that of the process if not given.

    Returns:
        0; 1 if an answer was wrong; 2 if the rules for published results are not met.
    """
    options = _options(arguments)
    if options.list:
        _say("\n".join(f"{scenario.name:18} {scenario.title}" for scenario in SCENARIOS))
        return 0
    try:
        return _run(options)
    except publishing.PublishingError as error:
        _say(str(error))
        return 2


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare deltafast with its peers.")
    parser.add_argument("--cache", type=Path, default=Path(".bench"), help="generated tables; default: .bench")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink every table; default: 1")
    parser.add_argument("--samples", type=int, default=5, help="samples at most; default: 5")
    parser.add_argument("--only", action="append", metavar="SCENARIO", help="may be given several times")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for one sample; default: 1200")
    parser.add_argument("--memory-limit", type=float, metavar="MB", help="for one process; default: 80 %% of free")
    parser.add_argument("--floor-binary", type=Path, help="default: the newest target/release/**/floors*")
    parser.add_argument("--duckdb-python", type=Path, help="default: an environment made in the cache")
    parser.add_argument("--without-duckdb", action="store_true", help="leave DuckDB out")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.{json,md}; see publishing.py")
    parser.add_argument(
        "--wait",
        type=float,
        default=publishing.MAX_WAIT_S,
        metavar="SECONDS",
        help="for the load to fall before a sample that is published; default: %(default)g",
    )
    parser.add_argument("--out", type=Path, help="default: results.json in the cache")
    parser.add_argument("--list", action="store_true", help="show the scenarios")
    options = parser.parse_args(arguments)
    unknown = set(options.only or ()) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        parser.error(f"no scenario {', '.join(sorted(unknown))}; see --list")
    if options.publish and options.out:
        parser.error("--publish writes docs/benchmarks.json; give either it or --out")
    if options.publish and options.scale != 1:
        parser.error("--publish needs tables of the published sizes: --scale 1")
    if options.out and options.out.resolve() == (ROOT / publishing.PUBLISHED[0]).resolve():
        parser.error(f"{publishing.PUBLISHED[0]} is written with --publish only")
    return options


def _run(options: argparse.Namespace) -> int:
    if options.publish:
        publishing.check_samples(options.samples)
        publishing.clean_commit()
        out = ROOT / publishing.PUBLISHED[0]
    else:
        default = "results.json" if options.scale == 1 else f"results-x{options.scale:g}.json"
        out = options.out or options.cache / default
        _say(f"this run does not publish: results go to {out} (see --publish)")
    chosen = [scenario for scenario in SCENARIOS if not options.only or scenario.name in options.only]
    names = {contender.table or scenario.table for scenario in chosen for contender in scenario.contenders}
    _generate(sorted(names), options.cache, options.scale)
    runner = Runner(options)
    if not options.publish and publishing.load_average() > publishing.MAX_LOAD:
        _say(f"the load is {publishing.load_average()}: expect figures that are too high")
    results: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"scenarios": {}}
    results |= {
        "date": _now(),
        "scale": options.scale,
        "machine": machine(),
        "versions": versions(runner.pythons),
        "commit": publishing.commit_of(),
        "build_profile": _build_profile(),
    }
    page = out.with_suffix(".md")
    wrong = 0
    for scenario in chosen:
        _say(f"{scenario.name}: {scenario.title}")
        found = run_scenario(
            runner, scenario, options.scale, options.samples, publish=options.publish, max_wait=options.wait
        )
        wrong += len(found["wrong"])
        results["scenarios"][scenario.name] = found
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1) + "\n")
        # After each scenario: a run that is refused later leaves a page of what was published before.
        report.write(results, page)
    _say(f"results: {out}, {page}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
