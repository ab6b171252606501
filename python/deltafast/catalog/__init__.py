"""Catalogs: the client of catalog-managed tables, a catalog in a folder, Unity Catalog, and Delta Sharing.

The catalog of a table with the feature `catalogManaged` decides on its commits: a writer stages its commit as a file
in `_delta_log/_staged_commits`, the catalog ratifies one staged commit for each version, and ratified commits are then
published as commit files of the log. Readers ask the catalog for the versions.

`DeltaTable(..., committer=)`, `DeltaTable.create` and `write_deltalake` take a client for one table. deltafast does
the rest: staging, conflict detection, retries, publishing, and commits with unknown outcome.

Protocol: "Catalog-managed tables".
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltafast._catalog.committer import Committer, LogTail, StagedCommit
from deltafast._catalog.folder import FolderCommitter

__all__ = ["Committer", "FolderCommitter", "LogTail", "SharingClient", "StagedCommit", "UnityCatalog"]

if TYPE_CHECKING:
    from deltafast._catalog.sharing.client import SharingClient
    from deltafast._catalog.unity.client import UnityCatalog

#: Classes that need libraries of their own, and their modules.
_ON_DEMAND = {
    "SharingClient": "deltafast._catalog.sharing.client",
    "UnityCatalog": "deltafast._catalog.unity.client",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
