"""`LoadedTable`: the answer of the Delta API about a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.committer import LogTail, StagedCommit
from deltafast._catalog.server_text import checked_location, server_text
from deltafast._delta_keys import UNIFORM_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._catalog.json_answer import JsonObject

__all__ = ["LoadedTable", "has_uniform", "loaded_table"]

#: The property that names the formats of which a table has metadata.
#: The name of a staged commit: its version, and what makes it unique.
_STAGED = re.compile(r"(?P<version>\d{20})\.[A-Za-z0-9_-]{1,128}\.json", re.ASCII)


class LoadedTable(NamedTuple):
    """A table as the Delta API describes it."""

    #: `MANAGED` or `EXTERNAL`.
    kind: str
    location: str
    #: Its id in the catalog.
    id: str
    #: The entity tag of its definition.
    etag: str
    properties: Mapping[str, str]
    log_tail: LogTail
    #: Whether the catalog has Iceberg metadata of it.
    has_iceberg: bool


def loaded_table(answer: JsonObject) -> LoadedTable:
    """Return the table in an answer.

    Raises:
        CatalogError: The answer is not one of the API.
    """
    metadata = answer.object("metadata")
    return LoadedTable(
        metadata.text("table-type"),
        checked_location(metadata.text("location")),
        metadata.text("table-uuid"),
        metadata.text("etag"),
        metadata.text_map("properties"),
        _log_tail(answer),
        "uniform" in answer,
    )


def has_uniform(properties: Mapping[str, str]) -> bool:
    """Return whether a table with these properties has Iceberg metadata (UniForm)."""
    return any(name.strip().lower() == "iceberg" for name in properties.get(UNIFORM_FORMATS, "").split(","))


def _log_tail(answer: JsonObject) -> LogTail:
    """Return the versions in an answer."""
    commits = [_staged_commit(commit) for commit in answer.objects("commits")]
    commits.sort(key=lambda commit: commit.version)
    latest = answer.optional_integer("latest-table-version")
    versions = [commit.version for commit in commits]
    expected = [] if latest is None else list(range(latest + 1 - len(commits), latest + 1))
    if versions != expected or (latest is not None and latest < 0):
        message = f"the catalog gives the commits of the versions {versions[:20]} and the newest version {latest}"
        raise CatalogError(message)
    return LogTail(latest, commits)


def _staged_commit(commit: JsonObject) -> StagedCommit:
    """Return a commit; its file is one of the table's log, which publishing copies."""
    version, name, size = commit.integer("version"), commit.text("file-name"), commit.integer("file-size")
    found = _STAGED.fullmatch(name)
    if found is None or int(found["version"]) != version or size < 0:
        message = (
            f"the catalog gives version {version} the file {server_text(name)!r} of {size} bytes, "
            "which is not a staged commit of it"
        )
        raise CatalogError(message)
    return StagedCommit(version, name, size)
