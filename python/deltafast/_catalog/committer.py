"""The interface of the client of a catalog for one catalog-managed table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Committer", "LogTail", "StagedCommit"]


class StagedCommit(NamedTuple):
    """A commit that the catalog has ratified, or is asked to ratify."""

    #: Version of the commit.
    version: int
    #: Name of its file in `_delta_log/_staged_commits`. It is copied to the log, so that any other path is refused.
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
    writers may run on the table; the protocol leaves these operations to the catalog. An optional method
    `check_properties` is called with the properties of the table (a dict) before an operation writes its first file,
    and before each commit; it raises `NotImplementedError` or `PermissionError` if there can be no such commit.

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
