"""What the conformance tests ask deltafast for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

import deltafast

if TYPE_CHECKING:
    import datetime as dt

    from tablekit import log


def open_table(table: log.Table, **options: Any) -> deltafast.DeltaTable:
    """Open a table."""
    return deltafast.DeltaTable(str(table), **options)


def read(table: log.Table, **options: Any) -> pa.Table:
    """Return all rows; `options` are those of `DeltaTable`."""
    return open_table(table, **options).to_pyarrow_table()


def ids(table: log.Table, **options: Any) -> list[int | None]:
    """Return the column `id`, sorted."""
    found = read(table, **options).column("id").to_pylist()
    return sorted(found, key=lambda v: (v is not None, v))


def column(table: log.Table, name: str, **options: Any) -> list[Any]:
    """Return a column in the order of `id`."""
    return read(table, **options).sort_by("id").column(name).to_pylist()


def filtered(table: log.Table, predicate: Any, **options: Any) -> list[int]:
    """Return the ids of the rows that match, sorted."""
    found = open_table(table, **options).scan(columns=["id"], predicate=predicate).read_all()
    return sorted(found.column("id").to_pylist())


def planned(table: log.Table, predicate: Any, **options: Any) -> list[str]:
    """Return the paths of the files that a predicate leaves."""
    adds = open_table(table, **options).get_add_actions(predicate=predicate)
    return sorted(pa.table(adds).column("path").to_pylist())


def paths(table: log.Table, **options: Any) -> list[str]:
    """Return the paths of the live files."""
    return sorted(pa.table(open_table(table, **options).get_add_actions()).column("path").to_pylist())


def changes(table: log.Table, start: int, end: int | None = None) -> list[tuple[Any, ...]]:
    """Return the change data feed as (id, change, version), sorted."""
    feed = open_table(table).load_cdf(starting_version=start, ending_version=end).read_all()
    rows = zip(*(feed.column(n).to_pylist() for n in ("id", "_change_type", "_commit_version")), strict=True)
    return sorted(rows, key=lambda r: (r[2], r[1], r[0]))


def as_of(table: log.Table, timestamp: str | dt.datetime) -> int:
    """Return the version that was current at a moment."""
    opened = open_table(table)
    opened.load_as_version(timestamp)
    return opened.version()
