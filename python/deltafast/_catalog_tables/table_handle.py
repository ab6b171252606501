"""From a location or a name to the handle of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from deltafast._catalog.glue.glue_name import SCHEME as GLUE
from deltafast._catalog.sharing.share_name import share_name
from deltafast._catalog.unity.table_name import SCHEME as UNITY
from deltafast._handle import TableHandle
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["handle_class", "is_catalog_name", "is_table_of_catalog", "refuse_name", "refuse_share"]


def is_catalog_name(table_uri: object) -> TypeGuard[str]:
    """Return whether a location is the name of a table in a catalog, in which tables can be created."""
    return isinstance(table_uri, str) and table_uri.startswith((GLUE, UNITY))


def refuse_name(table_uri: object, command: str) -> None:
    """Reject the name of a table in a catalog for a command that takes locations only.

    Raises:
        InvalidArgumentError: It is one.
    """
    if is_catalog_name(table_uri):
        message = f"{command} takes the location of a table, not {table_uri}, its name in a catalog"
        if table_uri.startswith(UNITY):
            message += "; UnityCatalog.register gives a table at a location its name"
        raise InvalidArgumentError(message)


def handle_class(table_uri: str | os.PathLike[str]) -> type[TableHandle]:
    """Return the class of the handle of a table."""
    if is_catalog_name(table_uri):
        if table_uri.startswith(GLUE):
            from deltafast._catalog_tables.glue_handle import GlueHandle

            return GlueHandle
        from deltafast._catalog_tables.unity_handle import UnityHandle

        return UnityHandle
    if share_name(table_uri) is not None:
        from deltafast._catalog_tables.shared_handle import SharedHandle

        return SharedHandle
    return TableHandle


def is_table_of_catalog(table_uri: object, storage_options: Mapping[str, Any] | None) -> bool | None:
    """Return whether a name is that of a table of its catalog or share; None for other locations."""
    share = share_name(table_uri)
    try:
        if share is not None:
            from deltafast._catalog.sharing.shared_table import SharedTable

            SharedTable(share).newest_version()
        elif is_catalog_name(table_uri):
            _find(table_uri, storage_options)
        else:
            return None
    except TableNotFoundError:
        return False
    return True


def _find(name: str, storage_options: Mapping[str, Any] | None) -> None:
    """Ask a catalog for a table.

    Raises:
        TableNotFoundError: It does not have the table.
    """
    if name.startswith(GLUE):
        from deltafast._catalog.glue.client import GlueCatalog
        from deltafast._catalog.glue.glue_name import parse_glue_name

        GlueCatalog.of_options(storage_options)[0].location(parse_glue_name(name))
        return
    from deltafast._catalog.unity.client import of_options

    of_options(storage_options or {})[0].table(name)


def refuse_share(table_uri: object) -> None:
    """Refuse to write to a shared table.

    Raises:
        InvalidArgumentError: It is one.
    """
    name = share_name(table_uri)
    if name is not None:
        message = f"{name} is a table of Delta Sharing, which is read-only"
        raise InvalidArgumentError(message)
