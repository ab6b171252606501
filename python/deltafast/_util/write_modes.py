"""Modes of writes: the core's, those of PySpark's writers, and those of CREATE TABLE."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deltafast._core_types import AsSelect, SaveMode

__all__ = ["AS_SELECT_MODES", "CREATE_MODES", "CreateMode", "OverwriteScope", "WriteMode", "as_select", "save_mode"]


class WriteMode(StrEnum):
    """What a write does if the table exists, by the core's name."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"


class OverwriteScope(StrEnum):
    """Which rows of a partitioned table an overwrite replaces: all, or those of the new rows' partitions."""

    STATIC = "static"
    DYNAMIC = "dynamic"


class CreateMode(Enum):
    """How CREATE TABLE and REPLACE TABLE treat an existing table."""

    CREATE = "CREATE TABLE"
    IF_NOT_EXISTS = "CREATE TABLE IF NOT EXISTS"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"
    #: Needs a table.
    REPLACE = "REPLACE TABLE"


#: The modes of writes for those of CREATE TABLE.
CREATE_MODES: Final[dict[CreateMode, SaveMode]] = {
    CreateMode.CREATE: "error",
    CreateMode.IF_NOT_EXISTS: "ignore",
    CreateMode.CREATE_OR_REPLACE: "overwrite",
    CreateMode.REPLACE: "overwrite",
}
_AS_SELECT: Final[dict[CreateMode, AsSelect]] = {
    CreateMode.CREATE: "create",
    # The caller has found no table.
    CreateMode.IF_NOT_EXISTS: "create",
    CreateMode.CREATE_OR_REPLACE: "create_or_replace",
    CreateMode.REPLACE: "replace",
}
#: The modes of writes for statements that create a table from a query.
AS_SELECT_MODES: Final[dict[AsSelect, SaveMode]] = {
    "create": "error",
    "create_or_replace": "overwrite",
    "replace": "overwrite",
}

#: The names of PySpark and of Java's `SaveMode`, in lower case, that differ from the core's.
_SPARK_NAMES: Final = {"errorifexists": WriteMode.ERROR, "default": WriteMode.ERROR}


def save_mode(name: str) -> WriteMode:
    """Return the mode of a PySpark writer, which has checked the name."""
    return _SPARK_NAMES.get(name.lower()) or WriteMode(name.lower())


def as_select(mode: CreateMode) -> AsSelect:
    """Return the statement that creates a table from a query, by the core's name."""
    return _AS_SELECT[mode]
