"""Unity Catalog: tables by name, their credentials, and commits of managed tables.

Specification: the APIs "Unity Catalog" (catalogs, schemas, tables, temporary credentials) and "UC Delta API" (load,
commit, credentials).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltafast._catalog.rest_client import CatalogError, OAuthClient
    from deltafast._catalog.unity.client import CatalogTable, UnityCatalog

__all__ = [
    "CatalogError",
    "CatalogTable",
    "OAuthClient",
    "UnityCatalog",
]

#: The modules of what is imported on demand: names of tables are recognized without them.
_ON_DEMAND = {
    "CatalogError": "deltafast._catalog.rest_client",
    "CatalogTable": "deltafast._catalog.unity.client",
    "OAuthClient": "deltafast._catalog.rest_client",
    "UnityCatalog": "deltafast._catalog.unity.client",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
