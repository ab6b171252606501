"""What ails a table, and what to do about it: broken logs, missing and orphaned files, layouts that cost time.

Everything goes through what the package offers to everybody, and nothing is changed.
"""

from __future__ import annotations

import os
import re
import shlex
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from deltafast import _core
from deltafast.convert import text_options
from deltafast.exceptions import DeltaError, DeltaWarning, TableNotFoundError
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltafast.layout import Layout

__all__ = ["Finding", "examine"]

#: A file below this is small.
SMALL = 16 << 20
#: Small files in a partition from which on packing them pays.
MANY_SMALL = 8
#: Commits behind the newest checkpoint that make opening slow.
MANY_COMMITS = 100
#: Deleted rows, as a share, that a scan notices.
MANY_DELETED = 0.05
#: Files whose bounds overlap, as a share, from which on clustering is no help.
MUCH_OVERLAP = 0.5
#: Files below which no layout matters.
FEW_FILES = 8
#: Bytes of a partition below which partitioning costs more than it gives, and how many of them there must be.
SMALL_PARTITION, MANY_PARTITIONS = 1 << 20, 100
_SHOWN = 3
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (`problem`) or could be better (`advice`)."""

    level: Literal["problem", "advice"]
    #: A short name: broken-log, missing-files, orphan-files, small-files ...
    what: str
    message: str
    #: What to run or do.
    remedy: str


def examine(
    table_uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    deep: bool = False,
) -> list[Finding]:
    """Look for what is wrong with the newest version of a table.

    Args:
        table_uri: Path or URL.
        storage_options: As for `DeltaTable`.
        deep: Read every row too, and every deletion vector, so that damaged files are found.

    Returns:
        Problems first, then advice; empty for a table that is well.

    Raises:
        TableNotFoundError: There is no table.
        StorageError: The store cannot be asked.
    """
    uri = os.fspath(table_uri)
    shown = shlex.quote(uri)
    found: list[Finding] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found += _log(uri, storage_options, shown)
        table = _opened(uri, storage_options, found)
        if table is not None:
            found += _files(table, uri, shown, deep=deep)
    texts = dict.fromkeys(str(warning.message) for warning in said if issubclass(warning.category, DeltaWarning))
    remedy = f"deltafast checkpoint {shown}  (writes the newest state anew)"
    found += [Finding("problem", "contradicting-log", text, remedy) for text in texts]
    return sorted(found, key=lambda finding: finding.level != "problem")


def _opened(uri: str, options: Mapping[str, str] | None, found: list[Finding]) -> DeltaTable | None:
    """The table with its files read once, or a finding."""
    try:
        table = DeltaTable(uri, storage_options=options)
        table._snapshot.num_files()
        table.history()
    except TableNotFoundError:
        raise
    except DeltaError as error:
        last = _last_readable(uri, options)
        remedy = "bring the file back from a copy of the table"
        if last is not None:
            remedy += f'; until then version {last} can be read: DeltaTable("{uri}", version={last})'
        found.append(Finding("problem", "broken-log", str(error), remedy))
        return None
    return table


def _last_readable(uri: str, options: Mapping[str, str] | None, tries: int = 20) -> int | None:
    """The newest version whose files can be listed, among the last ones."""
    try:
        versions = sorted(_commits(_names(uri, options)), reverse=True)
    except DeltaError:
        return None
    for version in versions[:tries]:
        try:
            DeltaTable(uri, version, storage_options=options)._snapshot.num_files()
        except DeltaError:
            continue
        return version
    return None


# --- the log -------------------------------------------------------------------------------------


def _names(uri: str, options: Mapping[str, str] | None) -> list[str]:
    files, _ = _core.Files.open(uri, text_options(options)).list("_delta_log")
    return [path.rpartition("/")[2] for path, _, _ in files]


def _commits(names: list[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))]


def _checkpoints(names: list[str]) -> tuple[set[int], set[int]]:
    """Versions with a whole checkpoint, and those with parts of one only."""
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


def _log(uri: str, options: Mapping[str, str] | None, shown: str) -> Iterator[Finding]:
    """What the names in the log say."""
    names = _names(uri, options)
    commits = set(_commits(names))
    whole, partial = _checkpoints(names)
    newest = max(commits, default=-1)
    base = max((version for version in whole if version <= newest), default=-1)
    gaps = [version for version in range(base + 1, newest + 1) if version not in commits]
    if gaps:
        lacking = ", ".join(map(str, gaps[:_SHOWN])) + (" ..." if len(gaps) > _SHOWN else "")
        message = f"the log lacks the commits of {len(gaps)} versions: {lacking}"
        yield Finding("problem", "broken-log", message, "bring the files back from a copy of the table")
    if partial:
        message = f"checkpoints are incomplete: {', '.join(map(str, sorted(partial)[:_SHOWN]))}"
        yield Finding("advice", "incomplete-checkpoint", message, f"deltafast checkpoint {shown}")
    if not gaps and newest - base > MANY_COMMITS:
        message = f"{newest - base} commits lie behind the newest checkpoint, which makes opening slow"
        yield Finding("advice", "old-checkpoint", message, f"deltafast checkpoint {shown}")


# --- the files -----------------------------------------------------------------------------------


def _files(table: DeltaTable, uri: str, shown: str, *, deep: bool) -> list[Finding]:
    from deltafast.layout import measure

    out: list[Finding] = []
    missing = _tried(out, "missing-files", lambda: table.repair(dry_run=True)["files_removed"])
    if missing:
        message = f"{len(missing)} data files of the log are not in the store: {_some(missing)}"
        remedy = f'bring them back, or give them up: deltafast.DeltaTable("{uri}").repair()'
        out.append(Finding("problem", "missing-files", message, remedy))
    orphans = _tried(out, "orphan-files", lambda: table.vacuum(full=True))
    if orphans:
        message = f"{len(orphans)} files are needed by no version in the time of retention: {_some(orphans)}"
        out.append(Finding("advice", "orphan-files", message, f"deltafast vacuum {shown} --delete"))
    if deep and not missing:
        _tried(out, "broken-file", lambda: _read(table))
    out += _layout(measure(table, versions=0), shown)
    return out


def _tried(out: list[Finding], what: str, ask: Callable[[], Any]) -> list[str]:
    try:
        return ask()
    except DeltaError as error:
        out.append(Finding("problem", what, str(error), "see the message"))
        return []


def _read(table: DeltaTable) -> list[str]:
    """Read everything and keep nothing."""
    for batch in table.scan():
        del batch
    return []


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (" ..." if len(paths) > _SHOWN else "")


def _layout(layout: Layout, shown: str) -> Iterator[Finding]:
    small = [part for part in layout.partitions if part.small_files >= MANY_SMALL]
    if small:
        count = sum(part.small_files for part in small)
        message = f"{count} files are smaller than {SMALL >> 20} MiB, in {len(small)} partitions"
        yield Finding("advice", "small-files", message, f"deltafast optimize {shown}")
    if layout.rows and layout.deleted_rows / layout.rows > MANY_DELETED:
        share = layout.deleted_rows / layout.rows
        message = f"deletion vectors hide {share:.0%} of the rows that are stored, in {layout.files_with_vectors} files"
        yield Finding("advice", "deleted-rows", message, f"deltafast optimize {shown}")
    if layout.files_without_rows:
        message = f"{layout.files_without_rows} files have no statistics, so no predicate can leave them out"
        yield Finding("advice", "no-statistics", message, "rewrite them: overwrite the table or partition with itself")
    tiny = [part for part in layout.partitions if part.bytes < SMALL_PARTITION]
    if len(tiny) >= MANY_PARTITIONS and 2 * len(tiny) > len(layout.partitions):
        message = (
            f"{len(tiny)} of {len(layout.partitions)} partitions hold less than 1 MiB: it is too finely partitioned"
        )
        remedy = "write the table anew with fewer partitions, or with CLUSTER BY instead"
        yield Finding("advice", "small-partitions", message, remedy)
    for column in layout.columns:
        if column.clustered and layout.files >= FEW_FILES and column.share > MUCH_OVERLAP:
            message = (
                f"the table is clustered by `{column.name}`, but the bounds of a file overlap those of "
                f"{column.depth:.0f} of {column.files} files, on average"
            )
            yield Finding(
                "advice", "not-clustered", message, "run OPTIMIZE with delta-spark; deltafast does not cluster yet"
            )
