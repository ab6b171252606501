"""Results as JSON -> the page `docs/benchmarks.md` and its picture.

    python benches/python/report.py docs/benchmarks.json

A summary lists every goal and whether it is met. Then each scenario follows with all contenders: medians, range, CPU
seconds and peak memory.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import chart
import publishing
from samples import median
from scenarios import BASELINE, SCENARIOS, SUBJECT, Goal, Scenario

Results = dict[str, Any]
_MILLISECONDS_BELOW = 0.1
_ROOT = Path(__file__).parent.parent.parent

#: The columns that name the source of a row.
_SOURCE = "commit | provisional because"
_METHOD = """\
Each sample is a fresh process; the contenders alternate; numbers are medians. Wall time excludes imports. CPU seconds
are user and system time of all threads. Peak memory is the resident size of the whole process, including Python and
imports. Files are in the page cache. In-memory results are complete Arrow tables; streamed results are dropped batch
by batch. Every result is compared with the generated data. `python benches/python/run.py --only scan-all` runs one
scenario without publishing it; `--list` lists the scenarios.

Every row names the measured commit. `run.py --publish` writes this page. It refuses a tree with changed or untracked
files, and fewer than three samples of a contender. Before each sample it waits until the load average of the last
minute is at most 0.5; if it stays higher, the run stops. Rows that were published before these rules existed and do
not satisfy them are **provisional** until they are measured again, and so are their verdicts on goals. The last column
contains the reasons, for all contenders that the row compares:

- "changed tree": the commit ends in `-dirty`. Before these rules, this included changes of this page itself.
- "load n": the load average before the samples, the highest one recorded.
- "1 sample", "2 samples": the number of samples of the contender with the fewest samples.

Goals that begin with "aim" are desired; the other goals are required."""
_TABLES = """\
`benches/python/generate.py` creates the tables. Logs have one partition column, statistics for six columns (long,
double, string, timestamp, date, decimal) and about 700 bytes of JSON per file. Data tables have 20 M rows in 50 Snappy
Parquet files with one row group each (long, int, double, two strings, timestamp, date, decimal). The cases of Delta's
own merge benchmark (`benches/python/returns.py`) use 3 M rows of TPC-DS `web_returns`, and sources drawn from them."""


def seconds(value: float | None) -> str:
    """Write a time with three significant digits.

    Args:
        value: Seconds, or None.
    """
    if value is None:
        return "-"
    if value < _MILLISECONDS_BELOW:
        return f"{value * 1000:.3g} ms"
    return f"{value:.2f} s"


def _amount(value: float, measure: str) -> str:
    if measure in {"wall", "cpu"}:
        return seconds(value)
    return f"{value:.0f} MB" if measure.endswith("_mb") else f"{value:g}"


def judge(goal: Goal, scenario: Scenario, results: Results) -> tuple[bool | None, str]:
    """Compare a result with a goal.

    Args:
        goal: The goal.
        scenario: Its scenario.
        results: The scenario's results.

    Returns:
        Whether the goal is reached, None if it was not measured, and the value reached.
    """
    phase = goal.phase or next(iter(scenario.phases))
    mine = median(results, SUBJECT, phase, goal.measure)
    if mine is None:
        return None, ""
    if goal.of is None:
        return mine <= goal.limit, _amount(mine, goal.measure)
    others = [name for name in results["contenders"] if name == goal.of]
    theirs = median(results, others[0], phase, goal.measure) if others else None
    if not theirs:
        return None, ""
    if goal.added:
        return mine - theirs <= goal.limit, f"{mine - theirs:+.2f} s"
    factor = mine / theirs
    words = f"{1 / factor:.1f}x faster" if goal.text.endswith(f"than {goal.of}") else f"{factor:.2f}x"
    return factor <= goal.limit, words


def _verdict(goal: Goal, scenario: Scenario, results: Results) -> str:
    reached, number = judge(goal, scenario, results)
    prefix = "aim: " if goal.aim else ""
    if reached is None:
        return f"{prefix}{goal.text}: not measured"
    return f"{prefix}{goal.text}: {'**met**' if reached else 'missed'} ({number})"


def _summary(results: Results) -> list[str]:
    lines = [
        f"| operation | {SUBJECT} | {BASELINE} | speedup | peak memory, MB | goals | {_SOURCE} |",
        "|---|---:|---:|---:|---:|---|---|---|",
    ]
    for scenario in SCENARIOS:
        found = results["scenarios"].get(scenario.name)
        if found is None:
            continue
        for number, (phase, words) in enumerate(scenario.phases.items()):
            mine, theirs = (median(found, name, phase, "wall") for name in (SUBJECT, BASELINE))
            peaks = [median(found, name, phase, "peak_mb") for name in (SUBJECT, BASELINE)]
            title = f"[{scenario.title}](#{scenario.name})" + (f": {words}" if words else "")
            goals = [goal for goal in scenario.goals if goal.phase == phase or (goal.phase is None and number == 0)]
            compared = dict.fromkeys((SUBJECT, BASELINE, *(goal.of for goal in goals if goal.of)))
            factor = f"{theirs / mine:.1f}x" if mine and theirs else "-"
            memory = " / ".join("-" if peak is None else f"{peak:.0f}" for peak in peaks)
            verdicts = "<br>".join(_verdict(goal, scenario, found) for goal in goals)
            source = (found["commit"] or "-", ", ".join(publishing.reservations(found, *compared)))
            cells = (title, seconds(mine), seconds(theirs), factor, memory, verdicts, *source)
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _details(scenario: Scenario, found: Results) -> list[str]:
    lines = [f'### <a id="{scenario.name}"></a>{scenario.title}', ""]
    if scenario.note:
        lines += [scenario.note, ""]
    timed = len(scenario.phases) > 1
    lines += [
        f"| contender |{' phase |' if timed else ''} wall time | range | CPU s | peak MB | samples | {_SOURCE} |",
        f"|---|{'---|' if timed else ''}---:|---:|---:|---:|---:|---|---|",
    ]
    missing: list[str] = []
    for name, result in found["contenders"].items():
        reason = result.get("failed") or result.get("absent")
        if reason:
            missing.append(f"{name}: {reason}.")
        for phase, words in scenario.phases.items():
            walls = [s["phases"][phase]["wall"] for s in result["samples"] if phase in s["phases"]]
            if not walls:
                continue
            cells = [name, *([words] if timed else [])]
            cells += [
                seconds(statistics.median(walls)),
                f"{seconds(min(walls))} to {seconds(max(walls))}",
                f"{median(found, name, phase, 'cpu'):.2f}",
                f"{median(found, name, phase, 'peak_mb'):.0f}",
                str(len(walls)),
                found["commit"] or "-",
                ", ".join(publishing.reservations(found, name)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    if missing:
        lines += ["", "Not measured: " + " ".join(missing)]
    loads = [load for name in found["contenders"] for load in publishing.loads(found, name)] or found["load"][:1]
    span = f"{min(loads):g} to {max(loads):g}" if min(loads) < max(loads) else f"{min(loads):g}"
    lines += ["", f"Measured {found['date']}, commit {found['commit']}, load before samples {span}."]
    if found["wrong"]:
        lines += ["", "Wrong results: " + "; ".join(found["wrong"]) + "."]
    return [*lines, ""]


def _provisional(results: Results) -> str:
    """Count the rows of the detailed tables that do not meet the rules for published results."""
    reasons = [
        publishing.reservations(found, name)
        for scenario in SCENARIOS
        if (found := results["scenarios"].get(scenario.name))
        for name, result in found["contenders"].items()
        for phase in scenario.phases
        if any(phase in sample["phases"] for sample in result["samples"])
    ]
    return f"{sum(map(bool, reasons))} of {len(reasons)}"


def page(results: Results) -> str:
    """Write the page.

    Args:
        results: The results that `run.py` collected.

    Returns:
        Markdown.
    """
    computer = results["machine"]
    main, duckdb = results["versions"].get("main", {}), results["versions"].get("duckdb", {})
    packages = [f"{name} {version}" for name, version in main.items() if name not in {"duckdb", SUBJECT}]
    packages += [f"{name} {version} (in a separate environment)" for name, version in duckdb.items() if "duck" in name]
    subject = main.get(SUBJECT)
    built = results.get("build_profile")
    lines = [
        "# Benchmarks",
        "",
        "`make bench` (`benches/python/run.py --publish`) generates this page. Do not edit it.",
        "",
        f"- Last run: {results['date']}",
        f"- Machine: {computer['cpu']}, {computer['cores']} cores, {computer['memory_gb']} GiB, {computer['system']}",
        f"- deltafast: {subject or 'not measured'}{f' ({built})' if subject and built else ''}; commits: see each row",
        f"- Peers: {', '.join(packages)}; Python {computer['python']}",
        f"- Provisional rows: {_provisional(results)}",
    ]
    if results["scale"] != 1:
        lines.append(f"- Scale: {results['scale']:g} of the published sizes; for trials only")
    lines += [
        "",
        _METHOD,
        "",
        _TABLES,
        "",
        "## Summary",
        "",
        "![How many times the wall time of deltafast each peer takes, by operation](images/benchmarks.svg)",
        "",
        *_summary(results),
        "",
        "## All contenders",
        "",
    ]
    for scenario in SCENARIOS:
        if scenario.name in results["scenarios"]:
            lines += _details(scenario, results["scenarios"][scenario.name])
    return "\n".join(lines).rstrip() + "\n"


def write(results: Results, target: Path) -> None:
    """Write the page and its picture.

    Args:
        results: The results that `run.py` collected.
        target: The page.
    """
    picture = target.parent / "images" / "benchmarks.svg"
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(chart.draw(results))
    target.write_text(page(results))


def main() -> None:
    """Write the page next to a file of results."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else _ROOT / "docs" / "benchmarks.json"
    target = source.with_suffix(".md")
    write(json.loads(source.read_text()), target)
    print(target)


if __name__ == "__main__":
    main()
