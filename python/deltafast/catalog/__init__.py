"""Catalogs: the interface of a client for catalog-managed tables, a catalog in a folder, and Unity Catalog.

The catalog of a table with the feature `catalogManaged` decides on its commits: a writer stages its commit as a file
in `_delta_log/_staged_commits`, the catalog ratifies one staged commit for each version, and ratified commits are then
published as commit files of the log. Readers ask the catalog for the versions.

`DeltaTable(..., committer=)`, `DeltaTable.create` and `write_deltalake` take a client for one table. deltafast does
the rest: staging, conflict detection, retries, publishing, and commits with unknown outcome.

Protocol: "Catalog-managed tables".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast.catalog.committer import Committer, LogTail, StagedCommit
from deltafast.catalog.folder import FolderCommitter

__all__ = ["Committer", "FolderCommitter", "LogTail", "StagedCommit", "UnityCatalog"]

if TYPE_CHECKING:
    from deltafast.catalog.unity.client import UnityCatalog


def __getattr__(name: str) -> Any:
    # Its libraries are for those who use it.
    if name == "UnityCatalog":
        from deltafast.catalog.unity.client import UnityCatalog

        return UnityCatalog
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
