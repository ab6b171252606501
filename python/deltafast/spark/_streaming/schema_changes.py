"""Changes of a schema that a stream follows only if the program allows them: renamed, dropped and widened columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltafast._delta_keys import COLUMN_MAPPING_PHYSICAL_NAME
from deltafast._types import INTEGERS, WIDER_TYPES, paired_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["SchemaChanges", "changes_between", "checkpoint_hash"]

_CONF = "spark.databricks.delta.streaming."
_RENAME, _DROP, _TYPE = "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange"
_RENAME_AND_DROP = "allowSourceColumnRenameAndDrop"
#: The digits that a decimal needs for the integer types.
_DIGITS = dict.fromkeys(INTEGERS, 10) | {"long": 20}
#: The names of the kinds of changes by whether columns were renamed, dropped and widened.
_KINDS = {
    (True, False, False): "RENAME COLUMN",
    (False, True, False): "DROP COLUMN",
    (False, False, True): "TYPE WIDENING",
    (True, True, False): "RENAME AND DROP COLUMN",
    (True, False, True): "RENAME AND TYPE WIDENING",
    (False, True, True): "DROP AND TYPE WIDENING",
    (True, True, True): "RENAME, DROP AND TYPE WIDENING",
}


@dataclass
class SchemaChanges:
    """How a schema differs from an older one, apart from added columns."""

    #: Old and new paths of columns.
    renamed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    dropped: list[str] = field(default_factory=list[str])
    #: Paths of columns, and their old and new types.
    widened: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    #: Paths of columns whose values cannot be converted to the new type, or which are NOT NULL now.
    incompatible: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> str | None:
        """The kind of the changes in delta-spark's words; None if there are only added columns."""
        return _KINDS.get((bool(self.renamed), bool(self.dropped), bool(self.widened)))

    def description(self) -> str:
        """Return the changed columns."""
        found = [f"'{old}' -> '{new}'" for old, new in self.renamed]
        found += [f"'{path}' dropped" for path in self.dropped]
        found += [f"'{path}' {old} -> {new}" for path, old, new in self.widened]
        return ", ".join(found)

    def blocked(
        self,
        options: Mapping[str, str],
        setting: Callable[[str], str | None],
        stream: int,
        version: int,
    ) -> list[str]:
        """Return the options that must allow the changes but do not.

        Args:
            options: The options of the reader, by their names in lower case.
            setting: Returns a setting of the session.
            stream: The hash of the source.
            version: The version that the stream would continue with.
        """
        once = ("always", str(version))

        def is_set(name: str) -> bool:
            whole, own = (setting(f"{_CONF}{name}{suffix}") for suffix in ("", f".ckpt_{stream}"))
            return str(whole).lower() == "always" or str(own).lower() in once

        needed = [(_RENAME, self.renamed), (_DROP, self.dropped), (_TYPE, self.widened)]
        return [
            name
            for name, found in needed
            if found
            and str(options.get(name.lower())).lower() not in once
            and not is_set(name)
            and (name == _TYPE or not is_set(_RENAME_AND_DROP))
        ]


def changes_between(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> SchemaChanges:
    """Compare the fields of two schemas by their physical names."""
    found = SchemaChanges()
    _compare_fields(old, new, "", "", found)
    return found


def checkpoint_hash(source: str) -> int:
    """Return the number by which settings name a source: the hash that Java computes of its folder's path."""
    encoded = source.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(encoded), 2):
        value = (31 * value + int.from_bytes(encoded[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _physical(of: Mapping[str, Any]) -> str:
    return str(of.get("metadata", {}).get(COLUMN_MAPPING_PHYSICAL_NAME, of["name"]))


def _compare_fields(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], prefix: str, now: str, found: SchemaChanges
) -> None:
    by_name = {_physical(of): of for of in new}
    for before in old:
        after = by_name.get(_physical(before))
        path = prefix + before["name"]
        if after is None:
            found.dropped.append(path)
            continue
        renamed = now + after["name"]
        if before["name"] != after["name"]:
            found.renamed.append((path, renamed))
        if before.get("nullable", True) and not after.get("nullable", True):
            found.incompatible.append(renamed)
        _compare(before["type"], after["type"], path, renamed, found)


def _compare(old: Any, new: Any, path: str, now: str, found: SchemaChanges) -> None:
    match old, new:
        case {"type": "struct"}, {"type": "struct"}:
            _compare_fields(old["fields"], new["fields"], f"{path}.", f"{now}.", found)
        case _ if pairs := paired_parts(old, new):
            for part, (before, after) in pairs.items():
                _compare(before, after, f"{path}.{part}", f"{now}.{part}", found)
        case str(), str() if old in (new, "void"):
            pass
        case str(), str() if _widens(old, new):
            found.widened.append((now, old, new))
        case _:
            found.incompatible.append(now)


def _widens(old: str, new: str) -> bool:
    """Return whether type widening changes the one type to the other."""
    decimal = _decimal(new)
    if old in INTEGERS:
        wider = (*INTEGERS[INTEGERS.index(old) + 1 :], *(["double"] if old != "long" else []))
        return new in wider or (decimal is not None and decimal[0] - decimal[1] >= _DIGITS[old])
    before = _decimal(old)
    if before is not None and decimal is not None:
        return decimal[1] >= before[1] and decimal[0] - decimal[1] >= before[0] - before[1]
    return (old, new) in WIDER_TYPES


def _decimal(of: str) -> tuple[int, int] | None:
    """Return precision and scale; None for other types."""
    found = re.fullmatch(r"decimal\((\d+),\s*(-?\d+)\)", of)
    return None if found is None else (int(found[1]), int(found[2]))
