"""Types of Delta, with values at their edges."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from .names import draw_names

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

DeltaType: TypeAlias = str | dict[str, Any]

UTC = dt.UTC
#: Rows of the coverage table that one value of a type makes up.
PRIMITIVES = (
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "decimal",
    "string",
    "binary",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
)
#: All rows of the coverage table; `deep` is a value nested up to 20 levels.
FAMILIES = (*PRIMITIVES, "variant", "struct", "array", "map", "deep")
#: The most levels of nested types.
DEEPEST = 20

HIVE_DEFAULT = "__HIVE_DEFAULT_PARTITION__"
_INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_STRINGS = (
    "",
    " ",
    "   ",
    "a",
    "A",
    "null",
    "None",
    "NaN",
    "it's",
    'say "x"',
    "back\\slash",
    "back`quote",
    "100%",
    "%41",
    "a=b/c",
    "x" * 33,
    "é" * 17,
    "e\N{COMBINING ACUTE ACCENT}",
    "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "\N{GRINNING FACE}",
    "\N{REPLACEMENT CHARACTER}",
    "\uffff",
    "\U0010ffff",
    "\ud7ff\ue000",
    "a\nb\r\tc",
    "\x1b[31m",
    "\x7f\x80\x9f",
    "a\x00b",
    "\N{RIGHT-TO-LEFT OVERRIDE}x",
    '{"a": [1, null]}',
    "2024-02-29",
    "1e400",
    "-0",
    "%E2%98%83",
)
_BINARIES = (b"", b"\x00", b"\x00" * 40, b"abc", b"\xff\xfe", "é".encode(), b"\xed\xa0\x80", bytes(range(256)))
_DOUBLES = (0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, 2.0**53, -1e-300)
_FLOATS = (0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 2.0**-149, 3.4028234663852886e38, 0.5, 2.0**24)
_DATES = (
    dt.date(1, 1, 1),
    dt.date(1582, 10, 4),
    dt.date(1582, 10, 15),
    dt.date(1969, 12, 31),
    dt.date(1970, 1, 1),
    dt.date(2024, 2, 29),
    dt.date(9999, 12, 31),
)
_TIMESTAMPS = (
    dt.datetime(1, 1, 1, tzinfo=UTC),
    dt.datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    dt.datetime(1850, 1, 1, 1, 1, 1, 999999, tzinfo=UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    dt.datetime(1970, 1, 1, tzinfo=UTC),
    dt.datetime(2024, 3, 10, 2, 30, 0, 1, tzinfo=UTC),
    dt.datetime(2024, 3, 10, 2, 30, 0, 999, tzinfo=UTC),
    dt.datetime(2024, 3, 10, 2, 30, 0, 1000, tzinfo=UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)


class ColumnType(NamedTuple):
    """A type: in the log, in Arrow, and its values."""

    family: str
    delta: DeltaType
    arrow: pa.DataType
    draw_value: Callable[[random.Random], Any]

    @property
    def is_ordered(self) -> bool:
        """Whether predicates compare its values."""
        return self.family in PRIMITIVES

    def __repr__(self) -> str:
        return self.delta if isinstance(self.delta, str) else json.dumps(self.delta)


def draw_type(chance: random.Random, family: str) -> ColumnType:
    """Draw a type of a family."""
    if family in _INTEGER_BITS:
        return _integer(family)
    if family in _FLAT:
        return _FLAT[family]
    if family == "decimal":
        precision = chance.randint(1, 38)
        return decimal_type(precision, chance.randint(0, precision))
    if family == "deep":
        return deep_type(chance, chance.randint(3, DEEPEST))
    return _NESTED[family](chance, draw_type(chance, chance.choice(PRIMITIVES)))


def decimal_type(precision: int, scale: int) -> ColumnType:
    """Return the decimal type of this precision and scale."""
    largest = 10**precision - 1

    def draw_value(chance: random.Random) -> decimal.Decimal:
        unscaled = chance.choice([0, 1, -1, largest, -largest, chance.randint(-largest, largest)])
        # A context of 28 digits, Python's default, would round.
        return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=80))

    return ColumnType("decimal", f"decimal({precision},{scale})", pa.decimal128(precision, scale), draw_value)


def deep_type(chance: random.Random, levels: int, kinds: tuple[str, ...] = ("struct", "array", "map")) -> ColumnType:
    """Return a primitive type within that many nested ones."""
    column_type = draw_type(chance, chance.choice(PRIMITIVES))
    for _ in range(levels):
        column_type = _NESTED[chance.choice(kinds)](chance, column_type)
    return column_type._replace(family="deep")


def of_family(family: str) -> ColumnType:
    """Return a primitive type that has no parameters."""
    return _integer(family) if family in _INTEGER_BITS else _FLAT[family]


def _pool(*values: Any) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice(values)


def _integer(family: str) -> ColumnType:
    limit = 2 ** (_INTEGER_BITS[family] - 1)
    draw_value = _pool(-limit, 1 - limit, -1, 0, 1, 2, 3, limit - 2, limit - 1)
    return ColumnType(family, family, getattr(pa, f"int{_INTEGER_BITS[family]}")(), draw_value)


def _variant_values() -> tuple[dict[str, bytes], ...]:
    """Return variants in their binary form: a null, primitives, a text, an object."""
    no_names = b"\x01\x00\x00"
    values = [b"\x00", b"\x04", b"\x08", b"\x0c\x80", b"\x18" + struct.pack("<q", -(2**63)), b"\x01", b"\x05a"]
    values.append(b"\x1c" + struct.pack("<d", math.inf))
    one_name = b"\x01\x01\x00\x01a"
    return (
        *({"metadata": no_names, "value": value} for value in values),
        {"metadata": one_name, "value": b"\x02\x01\x00\x00\x02\x0c\x07"},
    )


_FLAT = {
    "float": ColumnType("float", "float", pa.float32(), _pool(*_FLOATS)),
    "double": ColumnType("double", "double", pa.float64(), _pool(*_DOUBLES)),
    "string": ColumnType("string", "string", pa.string(), _pool(*_STRINGS, HIVE_DEFAULT)),
    "binary": ColumnType("binary", "binary", pa.binary(), _pool(*_BINARIES)),
    "boolean": ColumnType("boolean", "boolean", pa.bool_(), _pool(False, True)),
    "date": ColumnType("date", "date", pa.date32(), _pool(*_DATES)),
    "timestamp": ColumnType("timestamp", "timestamp", pa.timestamp("us", "UTC"), _pool(*_TIMESTAMPS)),
    "timestamp_ntz": ColumnType(
        "timestamp_ntz",
        "timestamp_ntz",
        pa.timestamp("us"),
        _pool(*(timestamp.replace(tzinfo=None) for timestamp in _TIMESTAMPS)),
    ),
    "variant": ColumnType(
        "variant",
        "variant",
        pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())]),
        _pool(*_variant_values()),
    ),
}


def _or_null(chance: random.Random, column_type: ColumnType) -> Any:
    return None if chance.randrange(4) == 0 else column_type.draw_value(chance)


def _struct(chance: random.Random, inner: ColumnType) -> ColumnType:
    types = [inner, *(draw_type(chance, chance.choice(PRIMITIVES)) for _ in range(chance.randrange(2)))]
    # Parquet's own rules for names hold for fields of structs, too.
    names = draw_names(chance, len(types), {})
    fields = list(zip(names, types, strict=True))
    return ColumnType(
        "struct",
        {"type": "struct", "fields": [_json_field(name, column_type) for name, column_type in fields]},
        pa.struct([(name, column_type.arrow) for name, column_type in fields]),
        lambda chance: {name: _or_null(chance, column_type) for name, column_type in fields},
    )


def _array(_chance: random.Random, inner: ColumnType) -> ColumnType:
    return ColumnType(
        "array",
        {"type": "array", "elementType": inner.delta, "containsNull": True},
        pa.list_(inner.arrow),
        lambda chance: [_or_null(chance, inner) for _ in range(chance.choice([0, 1, 1, 2, 3]))],
    )


def _map(chance: random.Random, inner: ColumnType) -> ColumnType:
    key = of_family(chance.choice(["string", "integer", "date"]))

    def draw_value(chance: random.Random) -> list[tuple[Any, Any]]:
        keys = {key.draw_value(chance) for _ in range(chance.choice([0, 1, 1, 2]))}
        return [(value, _or_null(chance, inner)) for value in sorted(keys)]

    delta = {"type": "map", "keyType": key.delta, "valueType": inner.delta, "valueContainsNull": True}
    return ColumnType("map", delta, pa.map_(key.arrow, inner.arrow), draw_value)


_NESTED = {"struct": _struct, "array": _array, "map": _map}


def _json_field(name: str, column_type: ColumnType) -> dict[str, Any]:
    return {"name": name, "type": column_type.delta, "nullable": True, "metadata": {}}


def json_fields(columns: dict[str, ColumnType]) -> list[dict[str, Any]]:
    """Return columns as the log has them."""
    return [_json_field(name, column_type) for name, column_type in columns.items()]


class Widening(NamedTuple):
    """A wider type, and a value in it."""

    column_type: ColumnType
    convert: Callable[[Any], Any]


def widenings(column_type: ColumnType) -> list[Widening]:
    """Return the types to which a column can be widened."""
    family = column_type.family
    if family == "decimal":
        precision, scale = column_type.arrow.precision, column_type.arrow.scale
        more = min(2, 38 - precision)
        return [Widening(decimal_type(precision + more, scale + more // 2), lambda value: value)] if more else []
    if family == "float":
        return [Widening(of_family("double"), lambda value: value)]
    if family == "date":
        return [Widening(of_family("timestamp_ntz"), lambda day: dt.datetime.combine(day, dt.time()))]
    integers = list(_INTEGER_BITS)
    if family not in integers:
        return []
    wider = [Widening(of_family(name), lambda value: value) for name in integers[integers.index(family) + 1 :]]
    if family != "long":
        wider.append(Widening(of_family("double"), float))
    digits = 10 if family != "long" else 20
    wider.append(Widening(decimal_type(digits + 3, 3), decimal.Decimal))
    return wider
