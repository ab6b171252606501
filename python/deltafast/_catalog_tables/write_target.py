"""`CatalogTarget`: what a write to a table of a catalog needs, and what follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from deltafast._catalog.glue.glue_name import SCHEME as GLUE
from deltafast._catalog_tables.table_handle import handle_class
from deltafast._util.locations import address
from deltafast.exceptions import TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._handle import OpenOptions, TableHandle

__all__ = ["CatalogTarget", "catalog_target"]


class UnnamedTable(Protocol):
    """A table that is created in a catalog and has no name yet."""

    def finish(self) -> None:
        """Give the table its name, or check that it has it, after its first version was written."""
        ...


class CatalogTarget(NamedTuple):
    """A table of a catalog that a command writes to: one that exists, or a new one."""

    uri: str
    #: None for a new table.
    handle: TableHandle | None
    #: With the provider of its credentials, and its committer.
    options: OpenOptions
    #: The properties that the server requires of a new table.
    properties: Mapping[str, str]
    new_table: UnnamedTable | None

    def finish(self) -> None:
        """See that a new table has its name, after its first version was written.

        Raises:
            CatalogError: The server refused it: there is no table of this name.
        """
        if self.new_table is not None:
            self.new_table.finish()


def catalog_target(name: str, options: OpenOptions) -> CatalogTarget:
    """Return a table of a catalog at its newest version, or else a new one.

    Raises:
        TableNotFoundError: There is no such table, and it cannot be created: the catalog or the schema is missing.
        CatalogError: The server refused a request.
    """
    try:
        handle = handle_class(name)(name, options._replace(committer=None, store=None))
    except TableNotFoundError as missing:
        if name.startswith(GLUE):
            return _new_in_glue(name, options)
        return _new_in_unity(name, options, missing)
    return CatalogTarget(handle.given_uri, handle, handle.options._replace(store=options.store), {}, None)


def _new_in_unity(name: str, options: OpenOptions, missing: TableNotFoundError) -> CatalogTarget:
    from deltafast._catalog.rest_client import CatalogError
    from deltafast._catalog.unity.resolve import stage

    try:
        staged, given = stage(name, options.storage_options, options.catalog)
    except CatalogError as error:
        if not error.is_not_found:
            raise
        raise missing from None
    options = options._replace(storage_options=given, committer=staged)
    return CatalogTarget(address(staged.location), None, options, staged.properties, staged)


def _new_in_glue(name: str, options: OpenOptions) -> CatalogTarget:
    from deltafast._catalog_tables.new_glue_table import NewGlueTable

    new = NewGlueTable(name, options.storage_options)
    options = options._replace(storage_options=new.storage_options, committer=None)
    return CatalogTarget(new.location, None, options, {}, new)
