"""Commits of a managed table through the Delta API of Unity Catalog."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from deltafast.catalog.committer import LogTail, StagedCommit
from deltafast.catalog.rest_client import CatalogError
from deltafast.catalog.unity.log_actions import commit_report, updates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.catalog.rest_client import RestClient
    from deltafast.catalog.unity.table_name import TableName

__all__ = ["UnityCommitter", "actions_of", "log_tail", "timestamp_of"]


#: How often a change of the definition is sent again, after another one.
_REPEATS = 5


class UnityCommitter:
    """The committer of one managed table (see `Committer`).

    Args:
        client: The server.
        name: The name of the table.
        loaded: The answer with which the table was found; the first `log_tail` is that of it.
        takes_metrics: Whether the server takes metrics of commits.
    """

    #: Optimizing is a usual commit; files and the log are the server's to delete.
    permits = frozenset({"optimize"})

    def __init__(
        self, client: RestClient, name: TableName, loaded: Mapping[str, Any], *, takes_metrics: bool = False
    ) -> None:
        self._client, self._path = client, f"delta/v1/{name.path}"
        self._takes_metrics = takes_metrics
        #: Of commits that are not published yet.
        self._reports: list[dict[str, int]] = []
        self._id: str = loaded["metadata"]["table-uuid"]
        self._loaded: Mapping[str, Any] | None = loaded
        self._keep_definition(loaded)

    def __reduce__(self) -> tuple[Any, ...]:
        message = "a table of Unity Catalog is pickled by its name"
        raise TypeError(message)

    def log_tail(self) -> LogTail:
        """See `Committer`."""
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            loaded = self._client.call("GET", self._path)
            if loaded["metadata"]["table-uuid"] != self._id:
                message = f"{self._path} is another table now: it was dropped and created again"
                raise PermissionError(message)
        self._keep_definition(loaded)
        return log_tail(loaded)

    def ratify(self, commit: StagedCommit, text: bytes) -> bool:
        """See `Committer`."""
        actions = actions_of(text)
        added = {
            "action": "add-commit",
            "commit": {
                "version": commit.version,
                "timestamp": timestamp_of(actions),
                "file-name": commit.path.rpartition("/")[2],
                "file-size": len(text) if commit.size is None else commit.size,
                "file-modification-timestamp": int(time.time() * 1000),
            },
        }
        try:
            is_ratified = self._commit(commit.version, added, actions)
        except CatalogError as error:
            if error.kind == "CommitVersionConflictException":
                return self._has(commit)
            if error.is_refusal:
                raise PermissionError(str(error)) from None
            raise
        if not is_ratified:
            return self._has(commit)
        if self._takes_metrics:
            self._reports.append(commit_report(actions))
        return True

    def _commit(self, version: int, added: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
        """Send a commit; False if the catalog has one of its version already.

        A change of the definition is one against that which was loaded: if the catalog has another one meanwhile, it is
        loaded again. The server answers a commit that it has already with yes, so each request may be sent again.
        """
        is_definition = any("metaData" in action for action in actions)
        for left in range(_REPEATS, -1, -1):
            try:
                self._update([added, *updates(actions, self._properties)], has_etag=is_definition)
            except CatalogError as error:
                if error.kind != "UpdateRequirementConflictException" or not is_definition or not left:
                    raise
                tail = self.log_tail()
                if tail.latest is not None and tail.latest >= version:
                    return False
            else:
                return True
        return False

    def published(self, version: int) -> None:
        """See `Committer`."""
        update = {"action": "set-latest-backfilled-version", "latest-published-version": version}
        self._update([update])
        self._report()

    def _report(self) -> None:
        """Send the metrics of commits; they are telemetry, so that an error changes nothing."""
        reports, self._reports = self._reports, []
        for report in reports:
            body = {"table-id": self._id, "report": {"commit-report": report}}
            with contextlib.suppress(CatalogError):
                self._client.call("POST", f"{self._path}/metrics", body=body, repeats=False)

    def _update(self, changes: list[dict[str, Any]], *, has_etag: bool = False) -> None:
        requirements = [{"type": "assert-table-uuid", "uuid": self._id}]
        if has_etag:
            requirements.append({"type": "assert-etag", "etag": self._etag})
        loaded = self._client.call("POST", self._path, body={"requirements": requirements, "updates": changes})
        self._keep_definition(loaded)

    def _keep_definition(self, loaded: Mapping[str, Any]) -> None:
        """Keep the properties that the catalog has, to find those that a commit removes, and their entity tag."""
        self._properties: dict[str, str] = dict(loaded["metadata"].get("properties") or {})
        self._etag: str = loaded["metadata"]["etag"]

    def _has(self, commit: StagedCommit) -> bool:
        """Return whether the catalog's commit of a version is this one: a repeated yes can look like a no."""
        name = commit.path.rpartition("/")[2]
        return any(found.version == commit.version and found.path == name for found in self.log_tail().commits)


def actions_of(text: bytes) -> list[dict[str, Any]]:
    """Return the actions of a commit."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def timestamp_of(actions: list[dict[str, Any]]) -> int:
    """Return the time of a commit, milliseconds since the epoch."""
    info: dict[str, Any] = {}
    for action in actions:
        info = action.get("commitInfo") or info
    return int(info.get("inCommitTimestamp", info.get("timestamp", 0)))


def log_tail(loaded: Mapping[str, Any]) -> LogTail:
    """Return the versions in the answer to a load."""
    given: list[dict[str, Any]] = loaded.get("commits") or []
    commits = [StagedCommit(found["version"], found["file-name"], found["file-size"]) for found in given]
    commits.sort(key=lambda commit: commit.version)
    return LogTail(loaded.get("latest-table-version"), commits)
