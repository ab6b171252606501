"""Names of tables in AWS Glue: `glue://database.table`."""

from __future__ import annotations

import re
from typing import NamedTuple

from deltafast.exceptions import InvalidArgumentError

__all__ = ["SCHEME", "GlueName", "parse_glue_name"]

SCHEME = "glue://"
_NAME = re.compile(r"(?:(?P<catalog_id>\d{12})\.)?(?P<database>[^./]+)\.(?P<table>[^./]+)")


class GlueName(NamedTuple):
    """The name of a table; without `catalog_id`, of the account's own catalog."""

    catalog_id: str | None
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def catalog(self) -> dict[str, str]:
        """The argument of requests that names the catalog."""
        return {} if self.catalog_id is None else {"CatalogId": self.catalog_id}


def parse_glue_name(text: str) -> GlueName:
    """Return the name in a `glue://` URL.

    Raises:
        InvalidArgumentError: It does not have two parts, or three that begin with the number of an account.
    """
    found = _NAME.fullmatch(text.removeprefix(SCHEME).rstrip("/"))
    if found is None:
        message = f"a table of AWS Glue is named glue://database.table or glue://account.database.table, not {text}"
        raise InvalidArgumentError(message)
    return GlueName(**found.groupdict())
