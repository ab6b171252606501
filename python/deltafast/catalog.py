"""Catalog-managed tables: what a catalog's client does for deltafast, and a catalog in a folder.

The commits of a table with the feature `catalogManaged` are its catalog's: a writer stages its commit as a file of its
own in `_delta_log/_staged_commits`, the catalog ratifies one for each version, and what is ratified is then published
as the log's file of that version. Readers ask the catalog which versions there are.

`DeltaTable(..., committer=)`, `DeltaTable.create` and `write_deltalake` take an object that speaks for one table. All
else (staging, conflicts, retries, publishing, lost answers) is done here.

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
    """A commit that the catalog ratified, or is asked to ratify."""

    #: Its version.
    version: int
    #: Its file's name in `_delta_log/_staged_commits`; of what a catalog gives also a path below the table, or a URL.
    path: str
    #: Bytes, where known.
    size: int | None = None


class LogTail(NamedTuple):
    """What a catalog knows of a table."""

    #: The newest version; None for a table that has none yet.
    latest: int | None
    #: The newest commits, ending with `latest` and without gaps: at least all that are not published.
    commits: Iterable[StagedCommit] = ()


class Committer(Protocol):
    """Speaks for the catalog of one table; called from any thread, by several at a time.

    An attribute `permits` (a set of texts, optional) says what of `vacuum`, `cleanup_metadata` and `optimize` writers
    may do to the table; the protocol leaves them to the catalog.

    What a method raises ends as a `StorageError`, or as a warning once the version is made. After a `PermissionError`
    or `NotImplementedError` the call is not made again, after any other exception it is. Whether a `ratify` that raised
    was done is found out by `log_tail`; where this says neither, the commit ends as a `CommitUnknownError`.
    """

    def log_tail(self) -> LogTail:
        """What there is now. A version that `ratify` made must be in every answer from then on."""
        ...

    def ratify(self, commit: StagedCommit, text: bytes) -> bool:
        """Make the staged commit the one of its version.

        It must follow the newest version; of any number of calls for one version, from whatever writer, one is
        answered with True.

        Args:
            commit: The commit; its file is there.
            text: What the file holds: an action in JSON a line, `commitInfo` (with `inCommitTimestamp`) first.

        Returns:
            Whether it is the version now. False where another commit is.
        """
        ...

    def published(self, version: int) -> None:
        """Note that all commits up to this version are published, so `log_tail` need not name them any more."""
        ...


class FolderCommitter:
    """A catalog in a folder of a local disk, for tests and as an example: a file for each ratified version.

    Args:
        folder: Where it is; made when needed. One table has one folder, outside of the table.
        permits: What of `vacuum`, `cleanup_metadata` and `optimize` is allowed.
    """

    def __init__(self, folder: str | os.PathLike[str], permits: Iterable[str] = ()) -> None:
        self._folder = Path(folder)
        self.permits = frozenset(permits)

    def log_tail(self) -> LogTail:
        """See `Committer`."""
        published = self._published()
        # One after the other: a listing might show a version and not the one before it, when both are made meanwhile.
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
            # Of all who link one version, one succeeds.
            os.link(draft, here)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        self._sync()
        return True

    def published(self, version: int) -> None:
        """See `Committer`."""
        # A file for each mark, so that of two writers the higher one holds.
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
            # Windows has no such thing.
            if error.errno in (errno.EACCES, errno.EISDIR):
                return
            raise
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _number(path: Path) -> int:
    """The version in a file's name."""
    return int(path.name.partition(".")[0])
