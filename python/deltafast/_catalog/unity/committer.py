"""Commits of a managed table through the Delta API of Unity Catalog."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.unity.loaded_table import has_uniform, loaded_table
from deltafast._catalog.unity.log_actions import commit_report, updates
from deltafast._catalog.unity.table_policies import refuse_policies
from deltafast._delta_keys import UNIFORM_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._catalog.committer import LogTail, StagedCommit
    from deltafast._catalog.rest_client import RestClient
    from deltafast._catalog.unity.loaded_table import LoadedTable
    from deltafast._catalog.unity.table_name import TableName

__all__ = ["UnityCommitter", "actions_of", "timestamp_of", "uniform_refusal"]


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
        self, client: RestClient, name: TableName, loaded: LoadedTable, *, takes_metrics: bool = False
    ) -> None:
        self._client, self._name, self._path = client, name, f"delta/v1/{name.path}"
        self._takes_metrics = takes_metrics
        #: Of commits that are not published yet.
        self._reports: list[dict[str, int]] = []
        self._id = loaded.id
        self._loaded: LoadedTable | None = loaded
        self._keep_definition(loaded)

    def __reduce__(self) -> tuple[Any, ...]:
        message = "a table of Unity Catalog is pickled by its name"
        raise TypeError(message)

    def log_tail(self) -> LogTail:
        """See `Committer`."""
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            answer = self._client.call("GET", self._path)
            refuse_policies(self._name, {**answer.members, **answer.object("metadata").members})
            loaded = loaded_table(answer)
            if loaded.id != self._id:
                message = f"{self._path} is another table now: it was dropped and created again"
                raise PermissionError(message)
        self._keep_definition(loaded)
        return loaded.log_tail

    def check_properties(self, properties: Mapping[str, str]) -> None:
        """See `Committer`: a commit to a table with Iceberg metadata has to bring the metadata that belongs to it."""
        if self._has_iceberg or has_uniform(properties):
            raise NotImplementedError(uniform_refusal(self._name))

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
        answer = self._client.call("POST", self._path, body={"requirements": requirements, "updates": changes})
        self._keep_definition(loaded_table(answer))

    def _keep_definition(self, loaded: LoadedTable) -> None:
        """Keep the properties that the catalog has, to find those that a commit removes, and their entity tag."""
        self._properties, self._etag, self._has_iceberg = loaded.properties, loaded.etag, loaded.has_iceberg

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


def uniform_refusal(name: TableName) -> str:
    """Return why there are no commits to a table with Iceberg metadata."""
    return (
        f"{name} has Iceberg metadata (UniForm, `{UNIFORM_FORMATS}`), and a commit to it must carry new Iceberg "
        "metadata (`uniform.iceberg`), which deltafast does not write: write to it with an engine that does"
    )
