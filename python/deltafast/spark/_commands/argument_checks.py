"""Checks of the arguments of the Spark API, with delta-spark's error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from deltafast._sql import tree
from deltafast._sql.reader import Reader
from deltafast._sql.values import timestamp_value
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._session.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check", "check_clone", "columns_of", "parts_of", "path_in", "refuse", "session_of", "time_travel_to"]


def session_of(spark: Any) -> Session:
    """Return a session; the active one for None."""
    if spark is None:
        from pyspark.sql import SparkSession

        spark = SparkSession.getActiveSession()
    return Session(spark)


def path_in(identifier: str) -> str | None:
    """Return the path in ``delta.`path` ``; None for anything else."""
    text = identifier.strip()
    inside = text[len("delta.`") : -1]
    is_path = text.lower().startswith("delta.`") and text.endswith("`") and inside
    return inside.replace("``", "`") if is_path else None


def parts_of(name: str, zone: str) -> tree.Path:
    """Return the parts of a column's name in SQL syntax."""
    reader = Reader(name, zone)
    parts = reader.path()
    reader.expect_end()
    return parts


def columns_of(cols: tuple[Any, ...], what: str) -> list[str]:
    """Return columns that are given one by one, or as a list.

    Raises:
        TypeError: A column is not a string.
    """
    first: Any = cols[0] if len(cols) == 1 else None
    names: list[Any] = list(first) if isinstance(first, (list, tuple)) else list(cols)  # pyright: ignore[reportUnknownArgumentType]
    for name in names:
        if not isinstance(name, str):
            refuse(what, name)
    return names


def refuse(what: str, value: Any) -> NoReturn:
    """Raise a TypeError for a value."""
    message = f"{what} Found {value} with type {type(value)}"
    raise TypeError(message)


_KINDS = {int: "an int", str: "a string", bool: "a boolean", dict: "a dict"}


def check(value: Any, name: str, kind: type) -> None:
    """Reject another type, with delta-spark's message."""
    if not isinstance(value, kind):
        message = f"{name} needs to be {_KINDS[kind]} but got '{type(value)}'."
        raise ValueError(message)  # noqa: TRY004 - as delta-spark


def check_clone(target: Any, is_shallow: Any, replace: Any, properties: Mapping[Any, Any] | None) -> None:
    """Reject arguments of a clone that have another type."""
    check(target, "target", str)
    check(is_shallow, "isShallow", bool)
    check(replace, "replace", bool)
    if properties is not None:
        check(properties, "properties", dict)
        for key, value in properties.items():
            check(key, f"All property keys including {key}", str)
            check(value, f"All property values including {value}", str)


def time_travel_to(timestamp: str, zone: str) -> tree.TimeTravel:
    """Check a timestamp.

    Raises:
        InvalidArgumentError: The string is not a timestamp.
    """
    spelled = tree.Expression("'" + timestamp.replace("\\", "\\\\").replace("'", "\\'") + "'", 0)
    try:
        timestamp_value(spelled, zone)
    except InvalidArgumentError as error:
        message = f"The provided timestamp ('{timestamp}') cannot be converted to a valid timestamp"
        raise InvalidArgumentError(message) from error
    return tree.TimeTravel(timestamp=spelled)
