"""`GlueHandle`: the handle of a table of the AWS Glue Data Catalog, which keeps the catalog's columns up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from deltafast._handle import DeltaTableConfig, TableHandle, TableLocation
from deltafast._util.locations import address
from deltafast.catalog.glue.client import GlueCatalog
from deltafast.catalog.glue.glue_name import parse_glue_name
from deltafast.exceptions import DeltaError, warn

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from deltafast import _core
    from deltafast._core_types import Metadata

__all__ = ["GlueHandle", "NewGlueTable"]

_T = TypeVar("_T")


class GlueHandle(TableHandle):
    """A pointer at one version of a table that is named `glue://database.table`."""

    def _address(self, table_uri: str | os.PathLike[str]) -> str:
        return str(table_uri)

    def _located(
        self, name: str, storage_options: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> TableLocation:
        self._name = parse_glue_name(name)
        self._catalog, given = GlueCatalog.of_options(storage_options)
        return TableLocation(address(self._catalog.location(self._name)), given, options["committer"])

    def move(self, snapshot: _core.Snapshot | None) -> None:
        """Point at the version that an operation committed; columns that it changed are changed in the catalog."""
        before = self._decode().metadata
        super().move(snapshot)
        self._keep_columns(before)

    def maintain(self, operation: Callable[[_core.Snapshot], _core.CommitResult[_T]]) -> _T:
        """Run an operation on the newest version; columns that it changed are changed in the catalog."""
        before = self._decode().metadata
        metrics = super().maintain(operation)
        self._keep_columns(before)
        return metrics

    def _keep_columns(self, before: Metadata) -> None:
        """Change the catalog's columns to those of the table; the commit exists, so that an error is a warning."""
        metadata = self._decode().metadata
        if metadata["schemaString"] == before["schemaString"]:
            return
        try:
            self._catalog.change_columns(self._name, metadata["schemaString"])
        except DeltaError as error:
            warn(f"the commit succeeded, but the columns of {self._name} in AWS Glue are the old ones: {error}")


class NewGlueTable:
    """A new table of the catalog: it is written below the location of its database, and then registered.

    Args:
        name: `glue://database.table`.
        storage_options: As for `DeltaTable`.

    Raises:
        TableNotFoundError: There is no such database.
        InvalidArgumentError: The database has no location.
    """

    def __init__(self, name: str, storage_options: Mapping[str, Any] | None) -> None:
        self._name = parse_glue_name(name)
        self._catalog, self.storage_options = GlueCatalog.of_options(storage_options)
        self.location = address(self._catalog.new_location(self._name))

    def finish(self) -> None:
        """Register the table.

        Raises:
            CatalogError: The catalog refused it; the table exists at its location.
        """
        options: dict[str, Any] = {"time_zone": "UTC", "allow_external_paths": False, "catalog": None}
        options |= dict.fromkeys(("log_tail", "max_table_version", "committer", "store"))
        config = DeltaTableConfig(without_files=False, log_buffer_size=8)
        made = TableHandle(self.location, self.storage_options, None, None, config, options)
        self._catalog.register(self._name, self.location, made.snapshot.metadata()["schemaString"])
