"""The rules for results that are published in `docs/benchmarks.json` and `docs/benchmarks.md`.

A published result comes from a clean Git tree, has at least `MIN_SAMPLES` samples of each contender, and each sample
began while the load of the machine was at most `MAX_LOAD`. `run.py --publish` enforces the rules; `report.py` marks
results that were published before the rules existed.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent.parent
#: What a run writes itself, so that changes of these files do not make the tree dirty.
PUBLISHED = ("docs/benchmarks.json", "docs/benchmarks.md", "docs/images/benchmarks.svg")
MIN_SAMPLES = 3
#: The greatest load average over one minute at which a sample may begin.
MAX_LOAD = 0.5
#: Seconds to wait for the load to fall: a sample on two cores raises it to 2, which takes 83 s to fall to 0.5.
MAX_WAIT_S = 600.0
_POLL_S = 5.0
_DIRTY = "-dirty"
_SHOWN_FILES = 5


class PublishingError(Exception):
    """A result does not meet the rules for published results."""


def _git(root: Path, *arguments: str) -> str:
    found = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if found.returncode:
        raise PublishingError(f"cannot publish: git {arguments[0]} failed in {root}: {found.stderr.strip()}")
    return found.stdout


def changed_files(root: Path = ROOT) -> list[str]:
    """List changed and untracked files of the tree, except for those that publishing writes.

    Args:
        root: The working tree.

    Raises:
        PublishingError: If `root` is not a Git working tree.
    """
    pathspecs = [f":(exclude){name}" for name in PUBLISHED]
    lines = _git(root, "status", "--porcelain", "--untracked-files=all", "--", ".", *pathspecs).splitlines()
    return [line[3:] for line in lines]


def commit_of(root: Path = ROOT) -> str | None:
    """Return the commit of the tree, with `-dirty` appended if files are changed; None outside of a Git repository.

    Args:
        root: The working tree.
    """
    try:
        commit = _git(root, "rev-parse", "--short=10", "HEAD").strip()
        return commit + (_DIRTY if changed_files(root) else "")
    except PublishingError:
        return None


def clean_commit(root: Path = ROOT) -> str:
    """Return the commit of a clean tree.

    Args:
        root: The working tree.

    Raises:
        PublishingError: If the tree has changed or untracked files, or is not a Git working tree.
    """
    changed = changed_files(root)
    if changed:
        more = ", ..." if len(changed) > _SHOWN_FILES else ""
        raise PublishingError(
            f"cannot publish from a changed tree: {', '.join(changed[:_SHOWN_FILES])}{more}; "
            "commit or stash the changes, or run without --publish"
        )
    return _git(root, "rev-parse", "--short=10", "HEAD").strip()


def check_samples(samples: int) -> None:
    """Check the number of samples that a run is to take.

    Args:
        samples: The number of samples of each contender.

    Raises:
        PublishingError: If there are too few of them.
    """
    if samples < MIN_SAMPLES:
        raise PublishingError(
            f"cannot publish {samples} {'sample' if samples == 1 else 'samples'} of each contender; "
            f"at least {MIN_SAMPLES} are needed"
        )


def load_average() -> float:
    """Return the load average of the last minute, 0 where the system has none."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


def await_quiet(
    say: Callable[[str], None],
    *,
    max_wait: float = MAX_WAIT_S,
    load: Callable[[], float] = load_average,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Wait until the load of the machine permits a sample that is published.

    Args:
        say: Takes a line for the person who runs the benchmarks.
        max_wait: Seconds to wait at most.
        load: Returns the load.
        sleep: Waits for seconds.

    Returns:
        The load at the end, at most `MAX_LOAD`.

    Raises:
        PublishingError: If the load is still higher after `max_wait` seconds.
    """
    now = load()
    if now <= MAX_LOAD:
        return now
    say(f"  load {now:g} is above {MAX_LOAD:g}: waiting for at most {max_wait:g} s")
    waited = 0.0
    while waited < max_wait:
        pause = min(_POLL_S, max_wait - waited)
        sleep(pause)
        waited += pause
        now = load()
        if now <= MAX_LOAD:
            return now
    raise PublishingError(f"cannot publish: the load is {now:g} after {max_wait:g} s of waiting, above {MAX_LOAD:g}")


def check_result(name: str, found: dict[str, Any]) -> None:
    """Check the results of one scenario before they are published.

    Args:
        name: The name of the scenario.
        found: Its results.

    Raises:
        PublishingError: If they do not meet the rules.
    """
    wrong = sorted({reason for contender in found["contenders"] for reason in reservations(found, contender)})
    if wrong:
        raise PublishingError(f"cannot publish {name}: {', '.join(wrong)}")


def loads(found: dict[str, Any], contender: str) -> Iterator[float]:
    """Yield the loads before a contender's samples; older results have one for the whole scenario.

    Args:
        found: The results of a scenario.
        contender: The contender.
    """
    samples = found["contenders"].get(contender, {}).get("samples", [])
    own = [sample["load"] for sample in samples if "load" in sample]
    if samples and len(own) < len(samples):
        yield found["load"][0]
    yield from own


def reservations(found: dict[str, Any], *contenders: str) -> list[str]:
    """List the rules that results of contenders do not meet.

    Args:
        found: The results of a scenario.
        contenders: The contenders; those without samples have no results.

    Returns:
        A few words for each rule that is not met; empty if all are.
    """
    counts = [len(found["contenders"].get(contender, {}).get("samples", [])) for contender in contenders]
    counts = [count for count in counts if count]
    if not counts:
        return []
    out: list[str] = []
    if not found["commit"]:
        out.append("unknown commit")
    elif found["commit"].endswith(_DIRTY):
        out.append("changed tree")
    load = max(load for contender in contenders for load in loads(found, contender))
    if load > MAX_LOAD:
        out.append(f"load {load:g}")
    if min(counts) < MIN_SAMPLES:
        out.append("1 sample" if min(counts) == 1 else f"{min(counts)} samples")
    return out
