"""Schemas of a stream: whether the columns of one version can be converted to those of another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast._types import INTEGERS, WIDER_TYPES, paired_parts
from deltafast.exceptions import SchemaMismatchError
from deltafast.spark._scan.physical_columns import plain_type, with_collations

if TYPE_CHECKING:
    from deltafast._handle import TableHandle

__all__ = ["chosen", "fields_of", "fits"]


def fields_of(table: TableHandle) -> list[dict[str, Any]]:
    """Return the table's columns, in Delta's JSON, with collations in their types."""
    return [with_collations(field) for field in json.loads(table.snapshot.metadata()["schemaString"])["fields"]]


def chosen(own: list[dict[str, Any]], schema: list[dict[str, Any]], table: TableHandle) -> list[dict[str, Any]]:
    """Return the table's fields that a reader's schema names."""
    known = {field["name"]: field for field in own}
    schema = [with_collations(field) for field in schema]
    wrong = [f["name"] for f in schema if f["name"] not in known or not _same(known[f["name"]]["type"], f["type"])]
    if wrong:
        message = f"the columns {', '.join(wrong)} are not those of {table.table_uri}: leave the schema out"
        raise SchemaMismatchError(message, path=table.table_uri, column=wrong[0])
    return [known[field["name"]] for field in schema]


def _same(first: Any, second: Any) -> bool:
    return plain_type(first) == plain_type(second)


def fits(old: Any, new: Any) -> bool:
    """Return whether values of an old type can be converted to a new one: added fields, widened types."""
    match old, new:
        case {"type": "struct"}, {"type": "struct"}:
            now = {field["name"]: field["type"] for field in new["fields"]}
            return all(field["name"] in now and fits(field["type"], now[field["name"]]) for field in old["fields"])
        case str(), str():
            return old in (new, "void") or _widens(old, new)
        case _:
            pairs = paired_parts(old, new).values()
            return bool(pairs) and all(fits(before, after) for before, after in pairs)


def _widens(old: str, new: str) -> bool:
    if old in INTEGERS:
        return new in INTEGERS[INTEGERS.index(old) :] or new == "double" or new.startswith("decimal")
    if old.startswith("decimal"):
        return new.startswith("decimal")
    return (old, new) in WIDER_TYPES
