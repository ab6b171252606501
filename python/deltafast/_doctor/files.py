"""Checks for missing, damaged and orphaned files."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from deltafast import _core
from deltafast._doctor.finding import BROKEN_LOG, Finding, FindingLevel, some
from deltafast._doctor.log import FOLDER
from deltafast.exceptions import DeltaError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._doctor.log import Log
    from deltafast.table import DeltaTable

__all__ = ["change_findings", "file_findings"]

#: The remedy if the log may be incomplete.
_REPAIR_FIRST = "repair the log first; remove missing files only from a complete log"
_RETENTION = "delta.deletedFileRetentionDuration"


def file_findings(table: DeltaTable, uri: str, shown: str, *, deep: bool, repair_first: bool) -> list[Finding]:
    """Return the findings about the files of the newest version.

    Args:
        table: The table.
        uri: Its location.
        shown: The location, quoted for a command line.
        deep: Read all files.
        repair_first: The log is broken: do not suggest to remove files.
    """
    out: list[Finding] = []
    looked: dict[str, Any] = _tried(out, "missing-files", lambda: table.repair(dry_run=True)) or {}
    missing, vectors = looked.get("files_removed", []), looked.get("vectors_missing", [])
    if missing:
        message = f"{len(missing)} data files of the log are not in the store: {some(missing)}"
        remedy = f'bring them back, or give them up: deltafast.DeltaTable("{uri}").repair()'
        out.append(Finding(FindingLevel.PROBLEM, "missing-files", message, _REPAIR_FIRST if repair_first else remedy))
    if vectors:
        message = f"{len(vectors)} files of deletion vectors are not in the store: {some(vectors)}"
        remedy = (
            "bring them back, nothing else says which rows are deleted; or go back to a version before them: "
            f'deltafast.DeltaTable("{uri}").restore(VERSION)'
        )
        out.append(Finding(FindingLevel.PROBLEM, "missing-files", message, _REPAIR_FIRST if repair_first else remedy))
    orphans = None if repair_first else _tried(out, "orphan-files", lambda: table.vacuum(full=True))
    if orphans:
        message = f"{len(orphans)} files are needed by no version in the time of retention: {some(orphans)}"
        out.append(Finding(FindingLevel.ADVICE, "orphan-files", message, f"deltafast vacuum {shown} --delete"))
    if deep and not missing and not vectors:
        _tried(out, "broken-file", lambda: _read(table))
    return out


def _tried(out: list[Finding], what: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except DeltaError as error:
        out.append(Finding(FindingLevel.PROBLEM, what, str(error), "see the message"))
        return None


def _read(table: DeltaTable) -> None:
    """Read all rows and discard them."""
    for batch in table.scan():
        del batch


# --- the change data feed ------------------------------------------------------------------------


def change_findings(table: DeltaTable, log: Log) -> list[Finding]:
    """Find missing change data files that no vacuum can have deleted; reads their commits."""
    out: list[Finding] = []
    history = table.history()
    since = _kept_since(table, history)
    gone: dict[str, int] = {}
    folders: dict[str, set[str]] = {}
    for entry in history:
        version: int = entry["version"]
        if version not in log.commits or (entry.get("timestamp") or 0) <= since:
            continue
        name = f"{version:020}.json"
        try:
            paths = _changes(log.text(name))
        except (DeltaError, ValueError) as error:
            message = f"{FOLDER}/{name} cannot be read: {error}"
            out.append(
                Finding(FindingLevel.PROBLEM, BROKEN_LOG, message, "bring the file back from a copy of the table")
            )
            continue
        for path in paths:
            folder = path.rpartition("/")[0]
            if folder not in folders:
                folders[folder] = {there for there, _, _ in log.files.list(folder)[0]}
            if path not in folders[folder]:
                gone[path] = version
    if not gone:
        return out
    first, last = min(gone.values()), max(gone.values())
    versions = f"version {first}" if first == last else f"versions {first} to {last}"
    message = f"{len(gone)} files of changes are not in the store, so the feed of {versions} cannot be read: "
    remedy = "bring them back, nothing else has these changes"
    if last < table.version():
        remedy += f"; until then the feed can be read from version {last + 1} on"
    return [*out, Finding(FindingLevel.PROBLEM, "missing-changes", message + some(sorted(gone)), remedy)]


def _changes(text: str) -> list[str]:
    """Return the change data files below the table that a commit lists."""
    lines = (json.loads(line) for line in text.splitlines() if '"cdc"' in line)
    paths = (unquote(line["cdc"]["path"]) for line in lines if line.get("cdc"))
    return [path for path in paths if path.startswith("_change_data/")]


def _kept_since(table: DeltaTable, history: list[dict[str, Any]]) -> float:
    """Return the time (ms) of the newest commit whose files a vacuum, logged or not, may have deleted."""
    try:
        retention_ms = _core.retention_ms(table.metadata().configuration, _RETENTION)
    except InvalidArgumentError:
        # With a retention that cannot be read any file may have been deleted; VACUUM names the property.
        retention_ms = 0
    times = [1000 * time.time() - retention_ms]
    for entry in history:
        if entry.get("operation") == "VACUUM START":
            parameters = cast("dict[str, str]", entry.get("operationParameters") or {})
            retention = parameters.get("specifiedRetentionMillis", parameters.get("defaultRetentionMillis", "0"))
            times.append(entry["timestamp"] - int(retention))
    return max(times)
