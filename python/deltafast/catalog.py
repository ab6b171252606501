"""Catalog-managed tables: the interface of a catalog client, and a catalog in a folder.

The catalog of a table with the feature `catalogManaged` decides on its commits: a writer stages its commit as a file
in `_delta_log/_staged_commits`, the catalog ratifies one staged commit for each version, and ratified commits are then
published as commit files of the log. Readers ask the catalog for the versions.

`DeltaTable(..., committer=)`, `DeltaTable.create` and `write_deltalake` take a client for one table. deltafast does
the rest: staging, conflict detection, retries, publishing, and commits with unknown outcome.

Protocol: "Catalog-managed tables".
"""

from __future__ import annotations

import errno
import json
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Committer", "FolderCommitter", "LogTail", "StagedCommit"]


class StagedCommit(NamedTuple):
    """A commit that the catalog has ratified, or is asked to ratify."""

    #: Version of the commit.
    version: int
    #: Name of its file in `_delta_log/_staged_commits`; a catalog may also return a path below the table, or a URL.
    path: str
    #: Bytes, if known.
    size: int | None = None


class LogTail(NamedTuple):
    """The versions of a table in the catalog."""

    #: The newest version; None for a table without versions.
    latest: int | None
    #: The newest commits, ending with `latest` and without gaps: at least all unpublished ones.
    commits: Iterable[StagedCommit] = ()


class Committer(Protocol):
    """Client of the catalog for one table; its methods are called from any thread, also concurrently.

    An optional attribute `permits` (a set of strings) lists which of `vacuum`, `cleanup_metadata` and `optimize`
    writers may run on the table; the protocol leaves these operations to the catalog.

    An exception of a method becomes a `StorageError`, or a warning after the version was created. Calls that raise
    `PermissionError` or `NotImplementedError` are not retried, others are. If `ratify` raises, `log_tail` is used to
    find out whether the commit was ratified; if that fails, the commit ends with a `CommitUnknownError`.
    """

    def log_tail(self) -> LogTail:
        """Return the current versions. All later results must include a version that `ratify` has created."""
        ...

    def ratify(self, commit: StagedCommit, text: bytes) -> bool:
        """Make the staged commit the commit of its version.

        The version must follow the newest one; of all calls for one version, by any writers, exactly one returns True.

        Args:
            commit: The commit, of which the file exists.
            text: Contents of the file: one JSON action per line, first `commitInfo` (with `inCommitTimestamp`).

        Returns:
            Whether the version is this commit; False if it is another one.
        """
        ...

    def published(self, version: int) -> None:
        """Record that all commits up to this version are published, so that `log_tail` may leave them out."""
        ...


class FolderCommitter:
    """A catalog in a folder of a local disk, for tests and as an example: one file for each ratified version.

    Args:
        folder: The folder of one table, outside of the table; created on demand.
        permits: Which of `vacuum`, `cleanup_metadata` and `optimize` are allowed.
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
