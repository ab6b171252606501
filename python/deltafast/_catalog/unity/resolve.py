"""From the name of a table to what opens it: its location, credentials and committer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast._catalog.unity.client import UnityCatalog, of_options
from deltafast._catalog.unity.committer import UnityCommitter
from deltafast._catalog.unity.staged_table import StagedTable
from deltafast._catalog.unity.table_name import parse_name
from deltafast._catalog.unity.vended_credentials import VendedCredentials
from deltafast._credentials.provider import KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._catalog.committer import Committer
    from deltafast._catalog.unity.client import CatalogTable

__all__ = ["ResolvedTable", "provider_of", "resolve", "stage"]

#: Locations without credentials.
_PLAIN = ("file:", "/", "memory:")


class ResolvedTable(NamedTuple):
    """What opens a table of a catalog."""

    location: str
    #: With the provider of its credentials.
    storage_options: dict[str, Any]
    #: The client for the commits of a managed table; None for other tables.
    committer: Committer | None


def resolve(uri: str, storage_options: Mapping[str, Any] | None, catalog: UnityCatalog | None) -> ResolvedTable:
    """Return what opens a table.

    Args:
        uri: `uc://catalog.schema.table`.
        storage_options: Options of the store; also of the catalog where none is given.
        catalog: The catalog.

    Raises:
        TableNotFoundError: There is no such table.
        DeltaProtocolError: The table is not one of Delta Lake, or is managed by a server without the Delta API.
        CatalogError: The server refused a request.
    """
    catalog, options = _catalog_and_options(storage_options, catalog)
    table = catalog.table(uri)
    provider = provider_of(catalog, table)
    if KEY not in options and provider is not None:
        options[KEY] = provider
    committer = None
    if table.is_managed and table.loaded is not None:
        takes_metrics = catalog.takes_metrics(table.name.catalog)
        committer = UnityCommitter(catalog.client, table.name, table.loaded, takes_metrics=takes_metrics)
    return ResolvedTable(table.location, options, committer)


def provider_of(catalog: UnityCatalog, table: CatalogTable) -> VendedCredentials | None:
    """Return the credential provider of a table; None for a place without credentials."""
    if table.location.startswith(_PLAIN):
        return None
    is_delta_api = table.loaded is not None
    path = f"delta/v1/{table.name.path}/credentials" if is_delta_api else table.id
    return VendedCredentials(catalog.client, path, table.location, is_delta_api)


def stage(
    uri: str, storage_options: Mapping[str, Any] | None, catalog: UnityCatalog | None
) -> tuple[StagedTable, dict[str, Any]]:
    """Return a new managed table, and the storage options with which its first version is written.

    Args:
        uri: `uc://catalog.schema.table`.
        storage_options: As for `resolve`.
        catalog: The catalog.

    Raises:
        InvalidArgumentError: There is a table of this name.
        CatalogError: The server refused a request.
    """
    catalog, options = _catalog_and_options(storage_options, catalog)
    staged = StagedTable(catalog.client, parse_name(uri))
    if KEY not in options and not staged.location.startswith(_PLAIN):
        options[KEY] = staged.provider
    return staged, options


def _catalog_and_options(
    storage_options: Mapping[str, Any] | None, catalog: UnityCatalog | None
) -> tuple[UnityCatalog, dict[str, Any]]:
    options: dict[str, Any] = dict(storage_options or {})
    return of_options(options) if catalog is None else (catalog, options)
