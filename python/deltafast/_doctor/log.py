"""Checks of the log, mostly by the names and sizes of its files, without reading them."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from deltafast import _core
from deltafast._doctor.finding import BROKEN_LOG, Finding, FindingLevel, some
from deltafast._handle import handle_of
from deltafast._util.options import text_options
from deltafast.exceptions import DeltaError, TableNotFoundError
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["FOLDER", "Log", "log_findings", "look", "opened"]

FOLDER = "_delta_log"
#: Number of commits after the newest checkpoint that make opening slow.
MANY_COMMITS = 100
#: Bytes of the smallest commit with an action: `{"commitInfo":{}}`.
_LEAST = 17
_HINT, _STAGED_FOLDER = "_last_checkpoint", "_staged_commits"
_COMMIT = re.compile(r"(\d{20})\.json")
_STAGED = re.compile(r"(\d{20})\.[0-9a-f-]{36}\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")
#: Other files of a version; a log compaction file counts for its last version.
_DERIVED = re.compile(r"(?:\d{20}\.)?(\d{20})\.(?:crc|compacted\.json)")


@dataclass(frozen=True)
class Log:
    """The files of a log."""

    files: _core.Files
    #: Bytes by name.
    sizes: dict[str, int]
    #: Bytes of commits by version.
    commits: dict[int, int]
    #: Versions of staged commits, which their catalog has not published yet.
    staged: set[int]
    #: Versions with a complete checkpoint.
    checkpoints: set[int]
    #: Versions with an incomplete checkpoint.
    partial: set[int]

    def text(self, name: str) -> str:
        """Return the contents of a file; invalid UTF-8 is replaced."""
        return self.files.read(f"{FOLDER}/{name}", 0, self.sizes[name]).decode("utf-8", "replace")


def look(uri: str, options: Mapping[str, str] | None) -> Log:
    """List a log.

    Raises:
        StorageError: A request to the store failed.
    """
    files = _core.Files.open(uri, text_options(options, uri))
    listed, folders = files.list(FOLDER)
    sizes = {_name(path): size for path, size, _ in listed}
    staged: list[tuple[str, int, int]] = []
    if _STAGED_FOLDER in map(_name, folders):
        staged, _ = files.list(f"{FOLDER}/{_STAGED_FOLDER}")
    return Log(
        files,
        sizes,
        {int(match[1]): size for name, size in sizes.items() if (match := _COMMIT.fullmatch(name))},
        {int(match[1]) for path, _, _ in staged if (match := _STAGED.fullmatch(_name(path)))},
        *_checkpoints(sizes),
    )


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _checkpoints(names: Mapping[str, int]) -> tuple[set[int], set[int]]:
    """Return the versions with a complete checkpoint, and those with an incomplete one."""
    whole: set[int] = set()
    parts: dict[tuple[int, int], int] = {}
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match is None:
            continue
        if match[3] is None:
            whole.add(int(match[1]))
        else:
            key = int(match[1]), int(match[3])
            parts[key] = parts.get(key, 0) + 1
    whole |= {version for (version, of), count in parts.items() if count == of}
    return whole, {version for version, _ in parts} - whole


def log_findings(log: Log, shown: str) -> list[Finding]:
    """Return the findings about the log; advice only if no commit is missing."""
    base = max((version for version in log.checkpoints if version in log.commits), default=-1)
    return [*_lost(log, base)] or [*_slow(log, base, shown)]


def _lost(log: Log, base: int) -> Iterator[Finding]:
    newest = max(log.commits, default=-1)
    gaps = [version for version in range(base + 1, newest + 1) if version not in log.commits]
    if gaps:
        message = f"the log lacks the commits of {len(gaps)} versions: {some([str(version) for version in gaps])}"
        yield Finding(FindingLevel.PROBLEM, BROKEN_LOG, message, "bring the files back from a copy of the table")
    empty = sorted(
        version for version, size in log.commits.items() if size < _LEAST and not _says_something(log, version)
    )
    if empty:
        names = some([f"{FOLDER}/{version:020}.json" for version in empty])
        message = f"commits are empty, so what was done in these versions is lost: {names}"
        remedy = "bring the files back from a copy of the table; write nothing until then, and no checkpoint"
        if empty[0]:
            remedy += f"; version {empty[0] - 1} is the last that is whole"
        yield Finding(FindingLevel.PROBLEM, BROKEN_LOG, message, remedy)
    newest = max({newest, *log.staged})
    beyond = sorted(name for name in log.sizes if _version(name) > newest)
    if beyond:
        last = max(map(_version, beyond))
        lost = f"version {last}" if last == newest + 1 else f"versions {newest + 1} to {last}"
        ends = f"the newest is that of version {newest}" if newest >= 0 else "there are none"
        names = some([f"{FOLDER}/{name}" for name in beyond])
        message = f"the log lacks the commits of {lost}: {ends}, but there is {names}"
        remedy = "bring the files back from a copy of the table; write nothing until then: it would take their versions"
        yield Finding(FindingLevel.PROBLEM, BROKEN_LOG, message, remedy)


def _torn_commit(log: Log) -> tuple[str, str] | None:
    """Return what the newest commit holds if it ends within a line, as after a crash, and how to give it up."""
    version = max(log.commits, default=-1)
    name = f"{version:020}.json"
    lines = [line for line in log.text(name).splitlines() if line.strip()] if version in log.commits else []
    actions: list[dict[str, Any]] = []
    for line in lines:
        try:
            action = json.loads(line)
        except ValueError:
            break
        if not isinstance(action, dict):
            break
        actions.append(cast("dict[str, Any]", action))
    if len(actions) == len(lines):
        return None
    counts = Counter(key for action in actions for key in action)
    held = ", ".join(f"{count} {key}" for key, count in counts.items()) or "nothing"
    message = f"{FOLDER}/{name} is broken from line {len(actions) + 1} on; the lines before it hold: {held}"
    if not version:
        return message, ""
    return message, (
        f"; or give version {version} up: copy the file elsewhere, delete it (and {version:020}.crc), and write again "
        "what it wrote; run no VACUUM before that"
    )


def _says_something(log: Log, version: int) -> bool:
    return bool(log.text(f"{version:020}.json").strip())


def _version(name: str) -> int:
    """Return the version of a file that is written after a commit; -1 for other files."""
    match = _DERIVED.fullmatch(name) or _CHECKPOINT.fullmatch(name)
    return int(match[1]) if match else -1


def _slow(log: Log, base: int, shown: str) -> Iterator[Finding]:
    if log.partial:
        message = f"checkpoints are incomplete: {some([str(version) for version in sorted(log.partial)])}"
        yield Finding(FindingLevel.ADVICE, "incomplete-checkpoint", message, f"deltafast checkpoint {shown}")
    behind = max(log.commits, default=-1) - base
    if behind > MANY_COMMITS:
        message = f"{behind} commits follow the newest checkpoint, which makes opening slow"
        yield Finding(FindingLevel.ADVICE, "old-checkpoint", message, f"deltafast checkpoint {shown}")
    wrong = _wrong_hint(log) if _HINT in log.sizes else None
    if wrong is not None:
        message = f"{FOLDER}/{_HINT} {wrong}, so readers have to list the log"
        yield Finding(
            FindingLevel.ADVICE, "wrong-hint", message, f"deltafast checkpoint {shown}  (rewrites it), or delete it"
        )


def _wrong_hint(log: Log) -> str | None:
    try:
        version = json.loads(log.text(_HINT))["version"]
    except (ValueError, TypeError, KeyError):
        return "names no version"
    return None if version in log.checkpoints else f"names a checkpoint of version {version}, which is not there"


def opened(uri: str, options: Mapping[str, str] | None, log: Log, found: list[Finding]) -> DeltaTable | None:
    """Open the table and list its files, or add a finding.

    Raises:
        TableNotFoundError: There is no table, nor a damaged log.
    """
    try:
        table = DeltaTable(uri, storage_options=options)
        handle_of(table).snapshot.num_files()
        table.history()
    except DeltaError as error:
        if isinstance(error, TableNotFoundError) and not found:
            raise
        last = _last_readable(uri, options, log)
        message, remedy = str(error), "bring the file back from a copy of the table"
        torn = _torn_commit(log)
        if torn is not None:
            message, remedy = f"{message}; {torn[0]}", remedy + torn[1]
        if last is not None:
            remedy += f'; until then version {last} can be read: DeltaTable("{uri}", version={last})'
        found.append(Finding(FindingLevel.PROBLEM, BROKEN_LOG, message, remedy))
        return None
    return table


def _last_readable(uri: str, options: Mapping[str, str] | None, log: Log, tries: int = 20) -> int | None:
    """Return the newest of the last versions whose files can be listed."""
    for version in sorted(log.commits, reverse=True)[:tries]:
        try:
            handle_of(DeltaTable(uri, version, storage_options=options)).snapshot.num_files()
        except DeltaError:
            continue
        return version
    return None
