"""Unity Catalog: tables by name, their credentials, and commits of managed tables.

Specification: the APIs "Unity Catalog" (catalogs, schemas, tables, temporary credentials) and "UC Delta API" (load,
commit, credentials).
"""

from deltafast.catalog.unity.client import CatalogTable, UnityCatalog
from deltafast.catalog.unity.resolve import ResolvedTable, resolve
from deltafast.catalog.unity.rest_client import CatalogError, OAuthClient

__all__ = [
    "CatalogError",
    "CatalogTable",
    "OAuthClient",
    "ResolvedTable",
    "UnityCatalog",
    "resolve",
]
