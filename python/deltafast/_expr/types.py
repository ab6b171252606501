"""Spark's data types as immutable values, and their three spellings.

Input: a type of a Delta schema string (`"decimal(10,2)"`, `{"type": "struct", ...}`). Output: a
`DataType`, its JSON again, or its Spark SQL name. Names are Delta's (`integer`, `long`); SQL's (`INT`, `BIGINT`)
appear only in messages and rendered SQL.

Rejected: passing the JSON unchanged through the binder. Coercion compares and pattern-matches types thousands of times
for a wide `IN` list, and equality of nested dictionaries would include field metadata, which it must not. The types are
named tuples, of which a class is created in a seventh of a dataclass's time when the package is loaded; no two kinds
can be equal with their possible values.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from deltafast._delta_keys import GENERATION_EXPRESSION
from deltafast._types import INTEGERS, PRIMITIVES, integer_of_spark
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BINARY",
    "BOOLEAN",
    "BYTE",
    "DATE",
    "DECLARED_TYPE",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LONG",
    "NESTED",
    "SHORT",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "VOID",
    "Array",
    "Atomic",
    "DataType",
    "Decimal",
    "Field",
    "Interval",
    "Map",
    "Struct",
    "is_integral",
    "is_numeric",
    "is_timestamp",
    "paired_types",
    "sql_name",
    "timestamp_type",
    "to_json",
    "type_from_json",
    "types_within",
    "walk",
]

#: As in the core: 100 types in a column, and the table's struct.
MAX_TYPE_DEPTH: Final = 101


class Atomic(NamedTuple):
    """A type without parameters; `collation` is set on strings that do not compare by bytes."""

    name: str
    collation: str | None = None


class Decimal(NamedTuple):
    """`DECIMAL(precision, scale)`."""

    precision: int
    scale: int


class Array(NamedTuple):
    """`ARRAY<element>`."""

    element: DataType
    contains_null: bool = True


class Map(NamedTuple):
    """`MAP<key, value>`."""

    key: DataType
    value: DataType
    value_contains_null: bool = True


class Field(NamedTuple):
    """One field of a struct.

    `generation` is the SQL text of a generated column, `char` the length of a `CHAR(n)` column (stored as a string).
    """

    name: str
    type: DataType
    nullable: bool = True
    generation: str | None = None
    char: int | None = None


class _Fields(NamedTuple):
    fields: tuple[Field, ...]


class Struct(_Fields):
    """`STRUCT<...>`; a table schema is one.

    Tables have up to tens of thousands of columns, and each name in an expression is looked up: by an index, which is
    made once.
    """

    def named(self, name: str) -> list[Field]:
        """Return the fields with a name, in exactly this case if there are any, else in any case."""
        exact, lower = self._by_name
        return exact.get(name) or lower.get(name.lower(), [])

    def find(self, name: str) -> Field | None:
        """Return the first field with a name, preferring the exact case."""
        return next(iter(self.named(name)), None)

    @cached_property
    def _by_name(self) -> tuple[dict[str, list[Field]], dict[str, list[Field]]]:
        exact: dict[str, list[Field]] = {}
        lower: dict[str, list[Field]] = {}
        for field in self.fields:
            exact.setdefault(field.name, []).append(field)
            lower.setdefault(field.name.lower(), []).append(field)
        return exact, lower


class Interval(NamedTuple):
    """An ANSI interval. Lives only inside the binder: no column has it and no tree carries it."""

    year_month: bool
    day_only: bool = False


NESTED: Final = (Array, Map, Struct)
DataType: TypeAlias = Atomic | Decimal | Array | Map | Struct | Interval

BOOLEAN: Final = Atomic("boolean")
BYTE: Final = Atomic("byte")
SHORT: Final = Atomic("short")
INTEGER: Final = Atomic("integer")
LONG: Final = Atomic("long")
FLOAT: Final = Atomic("float")
DOUBLE: Final = Atomic("double")
STRING: Final = Atomic("string")
BINARY: Final = Atomic("binary")
DATE: Final = Atomic("date")
TIMESTAMP: Final = Atomic("timestamp")
TIMESTAMP_NTZ: Final = Atomic("timestamp_ntz")
VOID: Final = Atomic("void")
VARIANT: Final = Atomic("variant")

#: The types without parameters by their names in the log.
ATOMS: Final = {name: Atomic(name) for name in PRIMITIVES}
#: Names of types in schemas of other writers.
_OTHER_NAMES: Final = {"null": VOID, "int": INTEGER, "bigint": LONG, "smallint": SHORT, "tinyint": BYTE, "real": FLOAT}

#: The key of a field's metadata for its type as declared, for example `varchar(10)` or `struct<a:char(3)>`.
DECLARED_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*\)", re.IGNORECASE)
_CHAR: Final = re.compile(r"(?:var)?char\(\s*\d+\s*\)", re.IGNORECASE)
_COLLATED: Final = re.compile(r"string collate (\S+)", re.IGNORECASE)

INTEGRAL_RANK: Final = {name: rank for rank, name in enumerate(INTEGERS)}
NUMERIC_RANK: Final = {**INTEGRAL_RANK, "float": 4, "double": 5}


def is_integral(t: DataType) -> bool:
    """True for the four integer types."""
    return isinstance(t, Atomic) and t.name in INTEGRAL_RANK


def is_numeric(t: DataType) -> bool:
    """True for integers, floats and decimals."""
    return isinstance(t, Decimal) or (isinstance(t, Atomic) and t.name in NUMERIC_RANK)


def is_string(t: DataType) -> bool:
    """True for strings of any collation."""
    return isinstance(t, Atomic) and t.name == "string"


def is_timestamp(t: DataType) -> bool:
    """True for both kinds of timestamps."""
    return t in (TIMESTAMP, TIMESTAMP_NTZ)


def is_datetime(t: DataType) -> bool:
    """True for dates and both kinds of timestamps."""
    return t == DATE or is_timestamp(t)


def timestamp_type(has_zone: object) -> Atomic:
    """The type of timestamps of another library, which have a time zone or not."""
    return TIMESTAMP if has_zone else TIMESTAMP_NTZ


def types_within(t: DataType) -> tuple[DataType, ...]:
    """The types of elements, of keys and values, or of fields."""
    match t:
        case Array(element=element):
            return (element,)
        case Map(key=key, value=value):
            return key, value
        case Struct(fields=fields):
            return tuple(field.type for field in fields)
        case _:
            return ()


def paired_types(a: DataType, b: DataType) -> list[tuple[DataType, DataType]] | None:
    """The types within two types by position; None if these are not nested types of the same kind and size."""
    pairs = (types_within(a), types_within(b))
    if type(a) is not type(b) or not isinstance(a, NESTED) or len(pairs[0]) != len(pairs[1]):
        return None
    return list(zip(*pairs, strict=True))


def walk(t: DataType) -> Iterator[DataType]:
    """Yield a type and the types within it, at all depths."""
    yield t
    for inner in types_within(t):
        yield from walk(inner)


def integral_range(t: DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = 8 << INTEGRAL_RANK[cast("Atomic", t).name]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def type_from_json(value: object, *, collation: str | None = None, depth: int = 0) -> DataType:
    """Read a type of a Delta schema string.

    Args:
        value: A type name or the dictionary of a nested type.
        collation: The collation that the field's metadata gives to this string, or to the strings of this array or map.
        depth: How deep the type is nested; refused beyond `MAX_TYPE_DEPTH`, as schemas come from hostile logs.

    Raises:
        InvalidArgumentError: The type is not one that Delta has.
    """
    if depth > MAX_TYPE_DEPTH:
        msg = f"the schema nests types more than {MAX_TYPE_DEPTH} deep; flatten it"
        raise InvalidArgumentError(msg)
    if isinstance(value, str):
        return _named_type(value, collation)
    if isinstance(value, dict):
        item = cast("dict[str, Any]", value)
        kind = item.get("type")
        if kind == "struct" and isinstance(item.get("fields"), list):
            return Struct(tuple(_field(f, depth + 1) for f in item["fields"]))
        if kind == "array" and "elementType" in item:
            element = type_from_json(item["elementType"], collation=collation, depth=depth + 1)
            return Array(element, bool(item.get("containsNull", True)))
        if kind == "map" and "keyType" in item and "valueType" in item:
            key = type_from_json(item["keyType"], collation=collation, depth=depth + 1)
            val = type_from_json(item["valueType"], collation=collation, depth=depth + 1)
            return Map(key, val, bool(item.get("valueContainsNull", True)))
    msg = f"the schema has a type that Delta does not have: {str(cast('object', value))[:80]!r}"
    raise InvalidArgumentError(msg)


def _named_type(name: str, collation: str | None) -> DataType:
    atom = ATOMS.get(name.lower()) or _OTHER_NAMES.get(name.lower())
    if atom is not None:
        return Atomic("string", collation) if atom == STRING and collation else atom
    if name.lower() == "decimal":
        return Decimal(10, 0)
    if match := _DECIMAL.fullmatch(name):
        return Decimal(int(match[1]), int(match[2]))
    if _CHAR.fullmatch(name):
        return STRING
    if match := _COLLATED.fullmatch(name):
        return Atomic("string", None if match[1].upper() == "UTF8_BINARY" else match[1])
    if (stored := integer_of_spark(name)) is not None or name == "interval":
        return INTEGER if stored == "integer" else LONG
    msg = f"the schema has a type that Delta does not have: {name[:80]!r}"
    raise InvalidArgumentError(msg)


def _field(value: object, depth: int) -> Field:
    if not isinstance(value, dict):
        msg = f"the schema has a field that is not an object: {str(value)[:80]!r}"
        raise InvalidArgumentError(msg)
    item = cast("dict[str, Any]", value)
    name = item.get("name")
    if not isinstance(name, str) or "type" not in item:
        msg = f"the schema has a field without name or type: {str(item)[:80]!r}"
        raise InvalidArgumentError(msg)
    metadata = cast("dict[str, Any]", item.get("metadata") or {})
    collations = cast("dict[str, str]", metadata.get("__COLLATIONS") or {})
    # Delta keys collations by the path from the nearest struct field; a plain string has its own name or "".
    collation = collations.get(name) or collations.get("")
    if collation is not None and collation.rsplit(".", 1)[-1].upper() == "UTF8_BINARY":
        collation = None
    of: object = item["type"]
    if collations and isinstance(of, dict):
        # Every string within an array or map has it, whichever has a collation: all are refused alike.
        collation = ",".join(sorted(set(collations.values())))
    kind = type_from_json(cast("object", of), collation=collation, depth=depth)
    generation = metadata.get(GENERATION_EXPRESSION)
    char = re.fullmatch(r"char\((\d{1,9})\)", str(metadata.get(DECLARED_TYPE, "")), re.IGNORECASE)
    return Field(
        name,
        kind,
        nullable=bool(item.get("nullable", True)),
        generation=generation if isinstance(generation, str) else None,
        char=int(char[1]) if char and kind == STRING else None,
    )


def to_json(t: DataType) -> Any:
    """Return the type as in a Delta schema string."""
    match t:
        case Atomic(name=name):
            return name
        case Decimal(precision=p, scale=s):
            return f"decimal({p},{s})"
        case Array(element=e, contains_null=n):
            return {"type": "array", "elementType": to_json(e), "containsNull": n}
        case Map(key=k, value=v, value_contains_null=n):
            return {"type": "map", "keyType": to_json(k), "valueType": to_json(v), "valueContainsNull": n}
        case Struct(fields=fields):
            plain: dict[str, Any] = {}
            inner = [
                {"name": f.name, "type": to_json(f.type), "nullable": f.nullable, "metadata": plain} for f in fields
            ]
            return {"type": "struct", "fields": inner}
        case Interval():
            return sql_name(t).lower()


def sql_name(t: DataType) -> str:
    """Return the name of the type in Spark SQL, as in messages and rendered SQL."""
    match t:
        case Atomic(name=name, collation=collation):
            base = PRIMITIVES[name].sql.upper()
            return f"{base} COLLATE {collation}" if collation else base
        case Decimal(precision=p, scale=s):
            return f"DECIMAL({p},{s})"
        case Array(element=e):
            return f"ARRAY<{sql_name(e)}>"
        case Map(key=k, value=v):
            return f"MAP<{sql_name(k)}, {sql_name(v)}>"
        case Struct(fields=fields):
            inner = ", ".join(f"{_quote(f.name)}: {sql_name(f.type)}" for f in fields)
            return f"STRUCT<{inner}>"
        case Interval(year_month=ym, day_only=day):
            return "INTERVAL MONTH" if ym else "INTERVAL DAY" if day else "INTERVAL DAY TO SECOND"


def _quote(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else "`" + name.replace("`", "``") + "`"
