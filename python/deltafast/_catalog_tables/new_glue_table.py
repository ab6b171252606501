"""`NewGlueTable`: creation of a table in the AWS Glue Data Catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast._catalog.glue.client import GlueCatalog
from deltafast._catalog.glue.glue_name import parse_glue_name
from deltafast._handle import OpenOptions, TableHandle
from deltafast._util.locations import address

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NewGlueTable"]


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
        made = TableHandle(self.location, OpenOptions(self.storage_options))
        self._catalog.register(self._name, self.location, made.snapshot.metadata()["schemaString"])
