"""What rows an operation leaves: pure functions from the rows before it and what the journal says of it.

A row is (id, p, k, v): a number that is never used twice, the partition, a key from 0 to 99, a value. The counter is
the row with the id 0, alone in the partition `counter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Row = tuple[int, str, int, int]
Rows = dict[int, Row]

COUNTER = "counter"


def given(args: Mapping[str, Any]) -> Rows:
    """The rows that an operation brings along."""
    return {row[0]: (row[0], row[1], row[2], row[3]) for row in args["rows"]}


def matches(row: Row, where: Mapping[str, Any]) -> bool:
    """Whether the rows that an operation is about have this among them."""
    _, p, k, _ = row
    return p != COUNTER and ("p" not in where or p == where["p"]) and where["low"] <= k < where["high"]


def append(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """The new rows are added."""
    return rows | given(args)


def replace(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """The new rows stand for those that match."""
    return {key: row for key, row in rows.items() if not matches(row, args["where"])} | given(args)


def replace_partitions(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """The new rows stand for all rows of their partitions."""
    new = given(args)
    partitions = {row[1] for row in new.values()}
    return {key: row for key, row in rows.items() if row[1] not in partitions} | new


def overwrite(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """The new rows stand for all."""
    return given(args)


def delete(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """Matching rows go."""
    return {key: row for key, row in rows.items() if not matches(row, args["where"])}


def update(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """The value of matching rows grows by one."""
    changed = {key: (*row[:3], row[3] + 1) for key, row in rows.items() if matches(row, args["where"])}
    return rows | changed


def merge(rows: Rows, args: Mapping[str, Any], past: Past) -> Rows:
    """The value of matching rows grows by one, and new rows are added."""
    return update(rows, args, past) | given(args)


def increment(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """The counter grows by one."""
    counter = rows[0]
    return rows | {0: (*counter[:3], counter[3] + 1)}


def restore(rows: Rows, args: Mapping[str, Any], past: Past) -> Rows:
    """The rows of an older version come back."""
    return past(args["version"])


def keep(rows: Rows, args: Mapping[str, Any], _: Past) -> Rows:
    """No row changes."""
    return rows


if TYPE_CHECKING:
    Past = Callable[[int], Rows]

#: By the name in the journal.
EFFECTS: dict[str, Callable[[Rows, Mapping[str, Any], Past], Rows]] = {
    "create": append,
    "append": append,
    "append_once": append,
    "replace_range": replace,
    "replace_partition": replace,
    "replace_partitions": replace_partitions,
    "overwrite": overwrite,
    "delete_range": delete,
    "delete": delete,
    "update": update,
    "merge": merge,
    "increment": increment,
    "increment_by_hand": increment,
    "restore": restore,
    "optimize": keep,
    "set_property": keep,
    "vacuum": keep,
}
