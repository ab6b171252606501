"""Tables of Unity Catalog in Spark: the servers of catalogs, and which locations are those of tables with names.

Everything that reads or changes a table finds it by its location (`place_of`). A table that was found by its name is
remembered by its location, so that its log is read and committed to through the catalog wherever the location comes
from: a relation of Spark's, a statement, a writer.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from deltafast._catalog.unity.table_name import SCHEME, TableName, parse_name
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._catalog.unity.client import UnityCatalog
    from deltafast._catalog.unity.vended_credentials import VendedCredentials

__all__ = [
    "CATALOG_CLASS",
    "NamedTable",
    "catalog_of",
    "forget_catalogs",
    "has_catalogs",
    "located",
    "named",
    "named_at",
    "put_catalogs",
]

#: The class in the jar that settings of Spark name.
CATALOG_CLASS = "io.deltafast.spark.UnityCatalog"

_LOCK = threading.Lock()
#: The servers, by the names of their catalogs in Spark, which are those in the server.
_CATALOGS: dict[str, UnityCatalog] = {}
#: By location.
_TABLES: dict[str, NamedTable] = {}


class NamedTable(NamedTuple):
    """A table of a catalog."""

    name: TableName
    catalog: UnityCatalog
    #: Its credential provider; None if it is not known, or the place needs none.
    provider: VendedCredentials | None = None

    @property
    def uri(self) -> str:
        """The location by which `DeltaTable` opens it."""
        return f"{SCHEME}{self.name.sql}"


def put_catalogs(catalogs: Mapping[str, UnityCatalog]) -> None:
    """Add servers, by the names of their catalogs."""
    with _LOCK:
        _CATALOGS.update(catalogs)


def forget_catalogs() -> None:
    """Remove all servers and tables."""
    with _LOCK:
        _CATALOGS.clear()
        _TABLES.clear()


def has_catalogs() -> bool:
    """Return whether there are servers."""
    return bool(_CATALOGS)


def catalog_of(name: str) -> UnityCatalog:
    """Return the server of a catalog.

    Raises:
        InvalidArgumentError: There is no server for it.
    """
    found = _CATALOGS.get(name)
    if found is None:
        message = f"there is no server for the catalog {name}: give it to enable(spark, catalogs=...)"
        raise InvalidArgumentError(message)
    return found


def located(name: str) -> str | None:
    """Return the location of a table of a catalog, and remember it; None for other names, and if there is no table.

    Args:
        name: The name in SQL syntax.
    """
    found = named(name)
    if found is None:
        return None
    # Sessions without catalogs need not load the client.
    from deltafast._catalog.unity.resolve import provider_of

    try:
        table = found.catalog.table(found.uri)
    except TableNotFoundError:
        return None
    with _LOCK:
        # It may have been dropped and created again elsewhere.
        for known in [known for known, other in _TABLES.items() if other.name == found.name]:
            del _TABLES[known]
        _TABLES[_key(table.location)] = found._replace(provider=provider_of(found.catalog, table))
    return table.location


def named(name: str) -> NamedTable | None:
    """Return the table that a name of three parts is that of; None if it begins with no catalog."""
    try:
        found = parse_name(name.strip())
    except InvalidArgumentError:
        return None
    catalog = _CATALOGS.get(found.catalog)
    return None if catalog is None else NamedTable(found, catalog)


def named_at(location: str) -> NamedTable | None:
    """Return the table that was found at a location."""
    return _TABLES.get(_key(location)) if _TABLES else None


def _key(location: str) -> str:
    """Return a location as it is compared: with one scheme for S3, one form of local paths."""
    scheme, _, rest = location.partition(":")
    if scheme == "file":
        return f"file:/{unquote(rest).strip('/')}" if rest.startswith("///") else f"file:/{rest.strip('/')}"
    if scheme in ("s3", "s3n"):
        scheme = "s3a"
    return f"{scheme}:{rest}".rstrip("/")
