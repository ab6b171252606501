"""`UnityHandle`: the handle of a table of Unity Catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast._catalog.unity.resolve import resolve
from deltafast._handle import TableHandle, TableLocation
from deltafast._util.locations import address

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["UnityHandle"]


class UnityHandle(TableHandle):
    """A pointer at one version of a table that is named `uc://catalog.schema.table`."""

    def _located(
        self, name: str, storage_options: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> TableLocation:
        found = resolve(name, storage_options, options.get("catalog"))
        return TableLocation(address(found.location), found.storage_options, options["committer"] or found.committer)
