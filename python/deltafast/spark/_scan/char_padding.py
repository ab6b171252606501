"""CHAR(n) in frames: padded with blanks, as Spark shows it.

delta-spark stores the strings of a CHAR(n) as they are written, also within structs, arrays and maps, and Spark pads
them when it reads them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from deltafast._expr.types import DECLARED_TYPE
from deltafast._types import parts as parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CharLengths", "change_parts", "char_lengths", "padded"]

_CHAR: Final = re.compile(r"char\(\s*(\d+)\s*\)", re.IGNORECASE)
_SCALAR: Final = re.compile(r"[^,<>:(]+(?:\([^)]*\))?(?: [^,<>:]+)?")
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`:|([^:<>,]+):")
_SPACE: Final = re.compile(r"\s*")


class NestedKind(StrEnum):
    """A type with parts, as it is declared."""

    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


class Parts(NamedTuple):
    """The lengths of the CHARs within an array (`element`), a map (`key`, `value`) or a struct (by field)."""

    kind: NestedKind
    lengths: Mapping[str, CharLengths]


#: The names of the parts; those of a struct are its fields.
_PART_NAMES: Final = {NestedKind.ARRAY: ("element",), NestedKind.MAP: ("key", "value"), NestedKind.STRUCT: ()}

#: The length of a CHAR, or those of the parts of a type; None if nothing is padded.
CharLengths: TypeAlias = "int | Parts | None"


def char_lengths(field: dict[str, Any]) -> CharLengths:
    """Return the lengths of the CHARs of a top-level column; None for a declared type that cannot be parsed."""
    declared = field.get("metadata", {}).get(DECLARED_TYPE)
    if not isinstance(declared, str) or not _CHAR.search(declared):
        return None
    reader = _Reader(declared)
    lengths = reader.read()
    return lengths if reader.is_at_end else None


class _Reader:
    """Reads a declared type."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    @property
    def is_at_end(self) -> bool:
        return not self._text[self._at :].strip()

    def read(self) -> CharLengths:
        for kind, names in _PART_NAMES.items():
            if self._accept(f"{kind}<"):
                return self._parts(kind, names)
        found = self._match(_SCALAR)
        char = None if found is None else _CHAR.fullmatch(found[0].strip())
        return None if char is None else int(char[1])

    def _parts(self, kind: NestedKind, names: tuple[str, ...]) -> CharLengths:
        lengths: dict[str, CharLengths] = {}
        while not self._accept(">"):
            named = None if names else self._match(_NAME)
            if names:
                name = names[min(len(lengths), len(names) - 1)]
            elif named is None:
                return None
            else:
                name = named[1].replace("``", "`") if named[1] is not None else named[2]
            before = self._at
            lengths[name] = self.read()
            self._accept(",")
            if self._at == before:
                return None
        return Parts(kind, lengths) if any(of is not None for of in lengths.values()) else None

    def _accept(self, word: str) -> bool:
        self._match(_SPACE)
        if self._text[self._at : self._at + len(word)].lower() != word:
            return False
        self._at += len(word)
        return True

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found


def padded(column: Any, of: Any, lengths: CharLengths, functions: Any) -> Any:
    """Return a column whose CHARs are padded; nulls remain.

    Args:
        column: The column.
        of: Its type.
        lengths: The lengths of its CHARs.
        functions: `pyspark.sql.functions`.
    """
    if lengths is None:
        return column
    if isinstance(lengths, int):
        return functions.when(functions.length(column) < lengths, functions.rpad(column, lengths, " ")).otherwise(
            column
        )
    inner = lengths.lengths
    if lengths.kind is NestedKind.STRUCT:
        parts = [(field["name"], field["type"]) for field in of["fields"]]
        fields = [padded(column.getField(name), part, inner.get(name), functions).alias(name) for name, part in parts]
        return functions.when(column.isNotNull(), functions.struct(*fields))

    def pad(part: str, inner_type: Any, value: Any) -> Any:
        return padded(value, inner_type, inner[part], functions)

    padded_parts = {part: inner_type for part, inner_type in parts_of(of).items() if inner.get(part) is not None}
    return change_parts(column, padded_parts, pad, functions)


def change_parts(column: Any, parts: Mapping[str, Any], change: Callable[[str, Any, Any], Any], functions: Any) -> Any:
    """Return a list or map with other elements, keys or values.

    Args:
        column: The list or map.
        parts: What to change (`element`, `key`, `value`), and its types.
        change: Returns the new value of a part, its type, and a column with its values.
        functions: `pyspark.sql.functions`.
    """

    def element(value: Any) -> Any:
        return change("element", parts["element"], value)

    def key(value: Any, _: Any) -> Any:
        return change("key", parts["key"], value)

    def value(_: Any, value: Any) -> Any:
        return change("value", parts["value"], value)

    if "element" in parts:
        column = functions.transform(column, element)
    if "key" in parts:
        column = functions.transform_keys(column, key)
    return functions.transform_values(column, value) if "value" in parts else column
