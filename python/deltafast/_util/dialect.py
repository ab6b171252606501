"""The dialects of SQL expressions, which differ in the meaning of double quotes.

Whoever receives a text from a caller names the dialect. Nothing guesses it from the text or from the table's columns: a
misspelt name that became a string would change the meaning of the whole condition.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltafast._core_types import StoreAssignment

__all__ = ["Dialect"]


class Dialect(Enum):
    """The rules by which a SQL expression is read."""

    #: The API of deltafast: double quotes enclose a name, which is found in its exact case only.
    DELTAFAST = "deltafast"
    #: The API under the name `deltalake`: the same, and what means something else in DataFusion's SQL is refused.
    DELTALAKE = "deltalake"
    #: `deltafast.sql`: double quotes enclose a string, which is refused where the caller may have meant a column.
    STATEMENT = "statement"
    #: Sessions of Spark: double quotes enclose a string.
    SPARK = "spark"

    @property
    def quotes_names(self) -> bool:
        """Whether double quotes enclose a name."""
        return self in (Dialect.DELTAFAST, Dialect.DELTALAKE)

    @property
    def store_assignment(self) -> StoreAssignment:
        """Which values a table's columns take besides those of their own types."""
        return "convert" if self is Dialect.DELTALAKE else "exact"
