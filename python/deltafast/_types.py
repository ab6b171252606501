"""Delta's types as the log has them: the name of a primitive type, or the JSON object of an array, a map or a struct.

This form has all metadata of fields, and it is Spark's, too. Code that walks over types does it by the functions here;
a new primitive type is a row of `PRIMITIVES`. Two views have classes: `schema` (public, with metadata) and
`_expr.types` (as expressions compare types: without metadata, with collations). Each of them is converted from JSON and
to JSON at one place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "INTEGERS",
    "PRIMITIVES",
    "SQL_NAMES",
    "WIDER_TYPES",
    "Path",
    "PrimitiveNames",
    "array_of",
    "fields_within",
    "integer_of_spark",
    "is_struct",
    "leaves",
    "map_of",
    "nullable",
    "paired_parts",
    "parts",
    "spark_name",
    "transform",
    "type_text",
    "with_parts",
]

#: Names of fields, and `element`, `key` and `value` within arrays and maps.
Path = tuple[str, ...]


class PrimitiveNames(NamedTuple):
    """The names of a primitive type apart from that in the log."""

    #: In Spark SQL and in catalogs.
    sql: str
    #: Which Spark's parser accepts, too.
    aliases: tuple[str, ...] = ()


#: The primitive types by their names in the log, without decimals.
PRIMITIVES: Final = {
    "binary": PrimitiveNames("binary"),
    "boolean": PrimitiveNames("boolean"),
    "byte": PrimitiveNames("tinyint", ("byte",)),
    "date": PrimitiveNames("date"),
    "double": PrimitiveNames("double"),
    "float": PrimitiveNames("float", ("real",)),
    "integer": PrimitiveNames("int", ("integer",)),
    "long": PrimitiveNames("bigint", ("long",)),
    "short": PrimitiveNames("smallint", ("short",)),
    "string": PrimitiveNames("string"),
    "timestamp": PrimitiveNames("timestamp", ("timestamp_ltz",)),
    "timestamp_ntz": PrimitiveNames("timestamp_ntz"),
    "variant": PrimitiveNames("variant"),
    "void": PrimitiveNames("void"),
}
#: The integer types from narrow to wide.
INTEGERS: Final = ("byte", "short", "integer", "long")
#: The other pairs of a type and one to which type widening changes it, without decimals.
WIDER_TYPES: Final = (("float", "double"), ("date", "timestamp_ntz"))
#: The primitive types by the names that Spark's parser accepts.
SQL_NAMES: Final = {alias: name for name, names in PRIMITIVES.items() for alias in (names.sql, *names.aliases)}

# Types of Spark that Delta does not have; the core reads them as the integers that files contain.
_SPARK_INT: Final = re.compile(r"interval (?:year|month|year to month)")
_SPARK_LONG: Final = re.compile(r"interval (?:day|hour|minute|second)(?: to (?:hour|minute|second))?|time\([0-9]\)")


def integer_of_spark(name: str) -> Literal["integer", "long"] | None:
    """Return the integer type in files for a type of Spark that Delta does not have; None for other types."""
    if _SPARK_INT.fullmatch(name):
        return "integer"
    return "long" if _SPARK_LONG.fullmatch(name) else None


def is_struct(of: Any) -> bool:
    """Return whether a type is a struct."""
    return isinstance(of, dict) and "fields" in of


def parts(of: Any) -> dict[str, Any]:
    """Return the types within an array (`element`) or a map (`key`, `value`); other types have no parts."""
    match of:
        case {"elementType": element}:
            return {"element": element}
        case {"keyType": key, "valueType": value}:
            return {"key": key, "value": value}
        case _:
            return {}


def with_parts(of: Any, change: Callable[[str, Any], Any]) -> Any:
    """Return a type with other parts; `change` returns the new one of a part and its type."""
    changed = {f"{part}Type": change(part, inner) for part, inner in parts(of).items()}
    return of | changed if changed else of


def nullable(of: Any) -> Any:
    """Return an array or a map whose elements or values may be null; other types as they are."""
    match of:
        case {"elementType": _}:
            return of | {"containsNull": True}
        case {"keyType": _}:
            return of | {"valueContainsNull": True}
        case _:
            return of


def array_of(element: Any) -> dict[str, Any]:
    """Return the type of an array that may contain nulls."""
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    """Return the type of a map whose values may be null."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def paired_parts(first: Any, second: Any) -> dict[str, tuple[Any, Any]]:
    """Return the parts of two arrays or of two maps; other pairs of types have no parts."""
    others = parts(second)
    return {part: (inner, others[part]) for part, inner in parts(first).items() if part in others}


def transform(of: Any, function: Callable[[Any], Any]) -> Any:
    """Return a type that is rebuilt from its leaves up: `function` returns the new one of a type with new types within.

    Everything else in the JSON of types and fields remains as it is.
    """
    match of:
        case {"fields": fields}:
            of = of | {"fields": [field | {"type": transform(field["type"], function)} for field in fields]}
        case _:
            of = with_parts(of, lambda _, inner: transform(inner, function))
    return function(of)


def leaves(of: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the types without types within them, and their paths."""
    match of:
        case {"fields": fields}:
            inner = {field["name"]: field["type"] for field in fields}
        case _:
            inner = parts(of)
            if not inner:
                yield path, of
    for name, inner_type in inner.items():
        yield from leaves(inner_type, (*path, name))


def fields_within(of: Any, path: Path = (), *, in_parts: bool = True) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the fields of a struct at all depths, and their paths; each one before the fields within it.

    Args:
        of: The type.
        path: The path of the type.
        in_parts: Whether to search arrays and maps.
    """
    match of:
        case {"fields": fields}:
            for field in fields:
                inner_path = (*path, field["name"])
                yield inner_path, field
                yield from fields_within(field["type"], inner_path, in_parts=in_parts)
        case _ if in_parts:
            for part, inner in parts(of).items():
                yield from fields_within(inner, (*path, part))
        case _:
            pass


def type_text(
    of: Any,
    name: Callable[[str], str],
    field: Callable[[Any, str], str],
    *,
    word: Callable[[str], str] = str,
    separator: str = ", ",
) -> str:
    """Return a type in the notation of SQL.

    Args:
        of: The type.
        name: Returns the text of a primitive type.
        field: Returns the text of a field with that of its type.
        word: Returns the text of `array`, `map` and `struct`.
        separator: Separates fields, and keys from values.
    """

    def text(inner: Any) -> str:
        return type_text(inner, name, field, word=word, separator=separator)

    match of:
        case {"fields": fields}:
            inner = [field(each, text(each["type"])) for each in fields]
        case {"type": _}:
            inner = [text(part) for part in parts(of).values()]
        case _:
            return name(str(of))
    return f"{word(of['type'])}<{separator.join(inner)}>"


def spark_name(of: Any, field_name: Callable[[str], str] = str) -> str:
    """Return the name of a type as Spark shows and stores it, and as catalogs have it: `struct<a:bigint>`.

    Args:
        of: The type.
        field_name: Returns the name of a field as it is shown.
    """
    return type_text(
        of,
        lambda name: PRIMITIVES[name].sql if name in PRIMITIVES else name,
        lambda field, text: f"{field_name(field['name'])}:{text}",
        separator=",",
    )
