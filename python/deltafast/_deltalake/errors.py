"""Errors with the messages and classes of `deltalake`, where programs depend on them."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltafast.exceptions import (
    DETAILS,
    CommitFailedError,
    DeltaError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


__all__ = ["in_their_words"]

#: Arrow's names of Spark's types.
_ARROW_NAMES = {
    "TINYINT": "Int8",
    "SMALLINT": "Int16",
    "INT": "Int32",
    "BIGINT": "Int64",
    "FLOAT": "Float32",
    "DOUBLE": "Float64",
    "BOOLEAN": "Boolean",
    "DATE": "Date32",
}
#: Messages of deltafast, those of `deltalake`, and the class of the error there if it differs.
_WORDS: list[tuple[str, str | Callable[[re.Match[str]], str], type[DeltaError] | None]] = [
    (r"^(Specified table partitioning does not match .*)", r"Generic error: \1", None),
    (r"^the retention of a vacuum cannot be negative.*", "The retention periods should be positive.", None),
    (
        r"^(a retention of (\S+) hours is shorter than the table's (\d+).*)",
        (
            r"Generic error: Invalid retention period, minimum retention for vacuum is configured to be greater than "
            r"\3 hours, got \2 hours"
        ),
        None,
    ),
    (r"^(a commit cannot both add and remove a file .*)", r"an add and a remove have the same file path: \1", None),
    (
        r"^(the table is append-only .*)",
        r"The transaction includes Remove action with data change but Delta table is append-only: \1",
        CommitFailedError,
    ),
    (
        r"^(partition_strategy must be hive or directory.*)",
        r"Partition strategy must be `hive` or `directory`: \1",
        None,
    ),
    (
        r"^(the feature needs the protocol \((\d+), \d+\), the table has \(\2, \d+\).*)",
        (
            "Generic DeltaTable error: Table feature enables writer feature, but min_writer is not v7. Set "
            r"allow_protocol_versions_increase or increase version explicitly through set_tbl_properties: \1"
        ),
        None,
    ),
    (
        r"^(version \d+ .* (?:removed the file .*, (?:which|and) .* read|and removed files that it read).*)",
        r"Commit failed: a concurrent transaction deleted data this operation read: \1",
        None,
    ),
    (
        r"^(the feature needs the protocol .*)",
        (
            "Generic DeltaTable error: Table feature enables reader and writer feature, but reader is not v3, and "
            "writer not v7. Set allow_protocol_versions_increase or increase versions explicitly through "
            r"set_tbl_properties: \1"
        ),
        None,
    ),
    (
        # A cast of a constant is evaluated before any rows.
        (
            r"^\[CAST_INVALID_INPUT\] the value ('.*') of type STRING cannot be cast to (\w+) .* in "
            r"`CAST\('.*' AS \w+\)` .*$"
        ),
        lambda found: (
            "Generic DeltaTable error: Optimizer rule 'simplify_expressions' failed\ncaused by\n"
            f"Arrow error: {_cast_error(found[1], found[2])}"
        ),
        None,
    ),
    (
        r"^(\[CAST_INVALID_INPUT\] the value ('.*') of type STRING cannot be cast to (\w+) .*)$",
        lambda found: f"{_cast_error(found[2], found[3])}: {found[1]}",
        None,
    ),
    (r"^(no column '([^']+)' .*)", r"Schema error: No field named \2. \1", None),
    (
        r"^(the folder .* is one of a partition column that is not named.*)",
        (
            "Generic error: The schema of partition columns must be provided to convert a Parquet table to a Delta "
            r"table. \1"
        ),
        None,
    ),
    (
        r"^(.*expected decimal\((\d+),(\d+)\), found (Decimal\w+\(\d+, \d+\)) \(column `(.+)`\))$",
        r"Cannot cast field \5 from \4 to Decimal128(\2, \3): \1",
        None,
    ),
    (
        r"^.*(Can't cast value \S+ to type (\w+)): expected .*, found (UInt\w+) \(column `(.+)`\)$",
        r"Cast error: Failed to convert into Arrow schema: Cast error: Failed to cast \4 from \2 to \3: \1",
        None,
    ),
    (r"^.*(Can't cast value \S+ to type \w+: expected .*, found \w+ \(column `.+`\))$", r"Cast error: \1", None),
]


def _cast_error(value: str, kind: str) -> str:
    """Return the message of Arrow's Rust library about a string that cannot be cast to one of Spark's types."""
    what = "value" if kind == "BOOLEAN" else "string"
    return f"Cast error: Cannot cast {what} {value} to value of {_ARROW_NAMES.get(kind, kind)} type"


@contextmanager
def in_their_words() -> Generator[None]:
    """Raise errors with the messages and classes of `deltalake` where programs depend on them."""
    try:
        yield
    except DeltaError as error:
        for pattern, words, kind in _WORDS:
            if (found := re.match(pattern, str(error), re.DOTALL)) is not None:
                place = {name: getattr(error, name) for name in DETAILS}
                message = words(found) if callable(words) else found.expand(words)
                raise (kind or type(error))(message, **place) from error
        raise
