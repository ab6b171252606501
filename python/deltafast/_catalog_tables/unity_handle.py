"""`UnityHandle`: the handle of a table of Unity Catalog."""

from __future__ import annotations

from deltafast._catalog.unity.resolve import resolve
from deltafast._handle import OpenOptions, TableHandle
from deltafast._util.locations import address

__all__ = ["UnityHandle"]


class UnityHandle(TableHandle):
    """A pointer at one version of a table that is named `uc://catalog.schema.table`."""

    def _located(self, name: str, options: OpenOptions) -> tuple[str, OpenOptions]:
        found = resolve(name, options.storage_options, options.catalog)
        committer = options.committer or found.committer
        return address(found.location), options._replace(storage_options=found.storage_options, committer=committer)
