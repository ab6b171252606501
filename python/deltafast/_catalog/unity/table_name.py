"""Names of tables in Unity Catalog: `uc://catalog.schema.table`."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from deltafast.exceptions import InvalidArgumentError

__all__ = ["CATALOG", "SCHEME", "TableName", "parse_name"]

SCHEME = "uc://"
#: The key of a `UnityCatalog` among storage options, for code that passes options on.
CATALOG = "unity_catalog"
_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")


class TableName(NamedTuple):
    """A name of three parts."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(self)

    @property
    def sql(self) -> str:
        """The name in SQL syntax, in which parts with dots are in backticks."""
        plain = re.compile(r"[^.`]+")
        return ".".join(part if plain.fullmatch(part) else f"`{part.replace('`', '``')}`" for part in self)

    @property
    def path(self) -> str:
        """The path of the table below the Delta API."""
        catalog, schema, table = (quote(part, safe="") for part in self)
        return f"catalogs/{catalog}/schemas/{schema}/tables/{table}"


def parse_name(text: str) -> TableName:
    """Return the name in a `uc://` URL or without the scheme; parts with dots are in backticks.

    Raises:
        InvalidArgumentError: It does not have three parts.
    """
    parts = _PART.findall(text.removeprefix(SCHEME))
    if ".".join(parts) != text.removeprefix(SCHEME) or len(parts) != len(TableName._fields):
        message = f"a table of Unity Catalog is named uc://catalog.schema.table, not {text}"
        raise InvalidArgumentError(message)
    return TableName(*(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts))
