"""How columns are found in the files of a table."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["MappingMode"]


class MappingMode(StrEnum):
    """The mode of column mapping, as in the property of the table."""

    NONE = "none"
    NAME = "name"
    ID = "id"
