"""`GlueHandle`: the handle of a table of the AWS Glue Data Catalog, which keeps the catalog's columns up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._catalog.glue.client import GlueCatalog
from deltafast._catalog.glue.glue_name import parse_glue_name
from deltafast._handle import OpenOptions, TableHandle
from deltafast._util.locations import address
from deltafast.exceptions import DeltaError, warn_of_commit

if TYPE_CHECKING:
    from deltafast import _core
    from deltafast._core_types import Metadata

__all__ = ["GlueHandle"]


class GlueHandle(TableHandle):
    """A pointer at one version of a table that is named `glue://database.table`."""

    def _located(self, name: str, options: OpenOptions) -> tuple[str, OpenOptions]:
        self._name = parse_glue_name(name)
        self._catalog, given = GlueCatalog.of_options(options.storage_options)
        return address(self._catalog.location(self._name)), options._replace(storage_options=given)

    def move(self, snapshot: _core.Snapshot | None) -> None:
        """Point at the version that an operation committed; columns that it changed are changed in the catalog."""
        before = self._decode().metadata
        super().move(snapshot)
        self._keep_columns(before)

    def _keep_columns(self, before: Metadata) -> None:
        """Change the catalog's columns to those of the table; the commit exists, so that an error is a warning."""
        metadata = self._decode().metadata
        if metadata["schemaString"] == before["schemaString"]:
            return
        try:
            self._catalog.change_columns(self._name, metadata["schemaString"])
        except DeltaError as error:
            warn_of_commit(
                f"the commit succeeded, but the columns of {self._name} in AWS Glue are the old ones: {error}"
            )
