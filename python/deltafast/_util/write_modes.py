"""Modes of writes: the core's, those of PySpark's writers, and those of CREATE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from deltafast._core_types import AsSelect, SaveMode

__all__ = ["CREATE_MODES", "SAVE_MODES", "CreateMode", "as_select", "save_mode"]

#: What a write does if the table exists.
SAVE_MODES: Final[tuple[SaveMode, ...]] = ("error", "append", "overwrite", "ignore")

#: How CREATE TABLE and REPLACE TABLE treat an existing table: `replace` needs one, `create_or_replace` does not.
CreateMode: TypeAlias = Literal["create", "if_not_exists", "create_or_replace", "replace"]

#: The modes of writes for those of CREATE TABLE.
CREATE_MODES: Final[dict[CreateMode, SaveMode]] = {
    "create": "error",
    "if_not_exists": "ignore",
    "create_or_replace": "overwrite",
    "replace": "overwrite",
}

#: The names of PySpark and of Java's `SaveMode`, in lower case, that differ from the core's.
_SPARK_NAMES: Final = {"errorifexists": "error", "default": "error"}


def save_mode(name: str) -> str:
    """Return the mode of a PySpark writer by the core's name; the write itself rejects an unknown one."""
    return _SPARK_NAMES.get(name.lower(), name.lower())


def as_select(mode: CreateMode) -> AsSelect:
    """Return the statement that creates a table from a query; the caller has checked `if_not_exists`."""
    return "create" if mode == "if_not_exists" else mode
