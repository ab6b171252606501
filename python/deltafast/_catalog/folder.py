"""A catalog in a folder of a local disk."""

from __future__ import annotations

import errno
import json
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from deltafast._catalog.committer import LogTail, StagedCommit

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FolderCommitter"]


class FolderCommitter:
    """A catalog in a folder of a local disk, for tests and as an example: one file for each ratified version.

    Args:
        folder: The folder of one table, outside of the table; created on demand.
        permits: Which of `vacuum`, `cleanup_metadata` and `optimize` are allowed.

    Examples:
        >>> from deltafast import DeltaTable
        >>> from deltafast.catalog import FolderCommitter
        >>> catalog = FolderCommitter("catalog")
        >>> table = DeltaTable.create("cities", {"id": "long"}, committer=catalog)
        >>> metrics = table.append({"id": [1, 2]})
        >>> DeltaTable("cities", committer=FolderCommitter("catalog")).count()
        2
    """

    def __init__(self, folder: str | os.PathLike[str], permits: Iterable[str] = ()) -> None:
        self._folder = Path(folder)
        self.permits = frozenset(permits)

    def log_tail(self) -> LogTail:
        """See `Committer`."""
        published = self._published()
        # One after the other: a concurrent listing might return a version without the one before it.
        commits: list[StagedCommit] = []
        while (commit := self._ratified(published + 1 + len(commits))) is not None:
            commits.append(commit)
        latest = published + len(commits)
        return LogTail(None if latest < 0 else latest, commits)

    def ratify(self, commit: StagedCommit, text: bytes) -> bool:  # noqa: ARG002
        """See `Committer`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        before, here = self._file(commit.version - 1), self._file(commit.version)
        if commit.version > 0 and not before.exists():
            message = f"version {commit.version} cannot be ratified before version {commit.version - 1}"
            raise PermissionError(message)
        draft = self._folder / f".{uuid.uuid4()}.tmp"
        try:
            self._write(draft, {"path": commit.path, "size": commit.size})
            # Exactly one of several links for a version succeeds.
            os.link(draft, here)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        self._sync()
        return True

    def published(self, version: int) -> None:
        """See `Committer`."""
        # One file per version, so that the highest one of several writers counts.
        self._write(self._folder / f"{version:020}.published", {})
        for mark in self._folder.glob("*.published"):
            if _number(mark) < version:
                mark.unlink(missing_ok=True)

    def _published(self) -> int:
        return max(map(_number, self._folder.glob("*.published")), default=-1)

    def _ratified(self, version: int) -> StagedCommit | None:
        try:
            said = json.loads(self._file(version).read_text("utf-8"))
        except FileNotFoundError:
            return None
        return StagedCommit(version, said["path"], said["size"])

    def _file(self, version: int) -> Path:
        return self._folder / f"{version:020}.ratified"

    @staticmethod
    def _write(path: Path, content: dict[str, object]) -> None:
        with path.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())

    def _sync(self) -> None:
        try:
            folder = os.open(self._folder, os.O_RDONLY)
        except OSError as error:
            # Windows cannot open folders.
            if error.errno in (errno.EACCES, errno.EISDIR):
                return
            raise
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _number(path: Path) -> int:
    """Return the version in a file's name."""
    return int(path.name.partition(".")[0])
