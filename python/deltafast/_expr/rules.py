"""The functions whose types depend on their arguments beyond the table of functions: one small rule each.

`functions.FUNCTIONS` refers to a rule; it gets the binder, the name to emit, the SQL name for messages and the bound
arguments, and returns the typed node. A rule only decides types and casts; it evaluates nothing.
"""

# Methods of the binder that never return raise.

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from deltafast._expr import coercion, types
from deltafast._expr.coercion import TypeClass
from deltafast._expr.tree import Cast, Lit, Node
from deltafast._expr.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    is_datetime,
    is_integral,
    is_numeric,
    is_string,
    sql_name,
)

if TYPE_CHECKING:
    from deltafast._expr.binding import Binding

__all__ = [
    "ABS",
    "ARITHMETIC",
    "ARRAY",
    "ARRAY_CONTAINS",
    "BTRIM",
    "COALESCE",
    "CONCAT",
    "CONCAT_WS",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "DATE_FROM_UNIX_DATE",
    "ELEMENT_AT",
    "EQUAL_NULL",
    "EXTRACT",
    "EXTREME",
    "FLOOR",
    "GET",
    "HEX",
    "IF",
    "ILIKE",
    "ISNAN",
    "LEFT",
    "LIKE",
    "LOCALTIMESTAMP",
    "LOG",
    "LOG2",
    "MAP",
    "MAP_CONTAINS_KEY",
    "MAP_PART",
    "NAMED_STRUCT",
    "NEGATIVE",
    "NULLIF",
    "NULLIFZERO",
    "NVL",
    "NVL2",
    "PAD",
    "POSITIVE",
    "REVERSE",
    "ROUNDING",
    "SHIFT",
    "SIZE",
    "SPACE",
    "STRUCT",
    "SUBSTRING",
    "TIMESTAMP_SECONDS",
    "TO_DATE",
    "TO_TIMESTAMP",
    "TO_TIMESTAMP_NTZ",
    "TRIM",
    "UNIX_DATE",
    "UNIX_TIMESTAMP",
    "ZEROIFNULL",
    "Build",
    "Rule",
]


_MAX_INTEGER: Final = 2_147_483_647
_PARTS: Final = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "isodow"),
    "doy": "dayofyear",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
}


class Build(Protocol):
    """Builds the node of a call."""

    def __call__(self, b: Binding, emit: str, name: str, args: list[Node], pos: int | None, /) -> Node:
        """Return the typed node."""
        ...


class Rule(NamedTuple):
    """The number of arguments of a function (`most` is None for any number), and the rule that builds its node."""

    least: int
    most: int | None
    build: Build


def _isnan(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = args[0] if args[0].type == FLOAT else b.coerce(args[0], DOUBLE, name, pos)
    return b.emit("isnan", [arg], BOOLEAN)


def _equal_null(b: Binding, _emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    return b.compare("<=>", args[0], args[1], pos)


def _coalesce(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes, kind = b.same(args, f"{name}()", pos)
    return b.emit("coalesce", nodes, kind)


def _nvl2(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes, kind = b.same(args[1:], f"{name}()", pos)
    return b.emit("if", [b.emit("isnotnull", [args[0]], BOOLEAN), *nodes], kind)


def _nullif(b: Binding, _emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    return b.emit("if", [b.compare("=", args[0], args[1], pos), Lit(None, kind), args[0]], kind)


def _nullifzero(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return _nullif(b, emit, name, [args[0], Lit(0, INTEGER)], pos)


def _zeroifnull(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return _coalesce(b, emit, name, [args[0], Lit(0, INTEGER)], pos)


def _if(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type not in (BOOLEAN, VOID):
        b.mismatch(f"the condition of {name}()", [args[0].type], pos)
    nodes, kind = b.same(args[1:], f"{name}()", pos)
    return b.emit("if", [b.cast(args[0], BOOLEAN, pos), *nodes], kind)


def _extreme(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes, kind = b.same(args, f"{name}()", pos, strings=False)
    if not coercion.is_ordered(kind):
        b.refuse(f"{name}() of {sql_name(kind)} is not supported", pos, "compare their parts")
    return b.emit(emit, nodes, kind)


def _arithmetic(b: Binding, emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    return b.arithmetic(emit, args[0], args[1], pos)


def _negative(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = b.coerce(args[0], TypeClass.NUMBER, name, pos)
    return b.emit("negative", [arg], arg.type)


def _positive(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.coerce(args[0], TypeClass.NUMBER, name, pos)


def _abs(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = b.coerce(args[0], TypeClass.NUMBER, name, pos)
    return b.emit("abs", [arg], arg.type)


def _rounding(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = b.coerce(args[0], TypeClass.NUMBER, name, pos)
    scale = args[1] if len(args) > 1 else Lit(0, INTEGER)
    if not isinstance(scale, Lit) or not is_integral(scale.type) or not isinstance(scale.value, int):
        b.refuse(f"{name}() takes its scale as a whole number, written out", pos, "write round(x, 2)")
    kind = arg.type
    if isinstance(kind, Decimal):
        kind = _rounded_decimal(kind, scale.value)
    return b.emit(emit, [arg, b.cast(scale, INTEGER, pos)], kind)


def _rounded_decimal(kind: Decimal, scale: int) -> Decimal:
    """Spark's `RoundBase.dataType`: one more digit before the point, for 9.9 rounds to 10."""
    whole = kind.precision - kind.scale + 1
    if scale < 0:
        return Decimal(min(38, max(whole, -scale + 1)), 0)
    kept = min(kind.scale, scale)
    return Decimal(min(38, whole + kept), kept)


def _floor(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = args[0]
    if isinstance(arg.type, Decimal):
        p, s = arg.type.precision, arg.type.scale
        return b.emit(emit, [arg], arg.type if s == 0 else Decimal(p - s + 1, 0))
    if arg.type != LONG:
        arg = b.coerce(arg, DOUBLE, name, pos)
    return b.emit(emit, [arg], LONG)


def _log(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes = [b.coerce(a, DOUBLE, name, pos) for a in args]
    return b.emit("ln" if len(nodes) == 1 else "log", nodes, DOUBLE)


def _log2(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.emit("log", [Lit(2.0, DOUBLE), b.coerce(args[0], DOUBLE, name, pos)], DOUBLE)


def _shift(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    left = args[0] if args[0].type == LONG else b.coerce(args[0], INTEGER, name, pos)
    return b.emit(emit, [left, b.coerce(args[1], INTEGER, name, pos)], left.type)


def _like(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    escape = args[2] if len(args) > 2 else Lit("\\", STRING)  # noqa: PLR2004 - the third argument
    if not isinstance(escape, Lit) or not isinstance(escape.value, str) or len(escape.value) != 1:
        b.wrong(f"{name}() takes its escape as one character, written out", pos, "write like(s, 'a!%', '!')")
    nodes = [b.coerce(a, STRING, name, pos) for a in args[:2]]
    if name == "ilike":
        nodes = [b.emit("lower", [n], STRING) for n in nodes]
    return b.emit("like", [*nodes, escape], BOOLEAN)


def _trim(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    # In Spark's call form the characters come first.
    nodes = [b.coerce(a, STRING, name, pos) for a in reversed(args)]
    return b.emit(emit, nodes, STRING)


def _btrim(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.emit("trim", [b.coerce(a, STRING, name, pos) for a in args], STRING)


def _substring(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    text = b.coerce(args[0], TypeClass.TEXT, name, pos)
    start = b.coerce(args[1], INTEGER, name, pos)
    length = b.coerce(args[2], INTEGER, name, pos) if len(args) > 2 else Lit(_MAX_INTEGER, INTEGER)  # noqa: PLR2004
    return b.emit("substring", [text, start, length], text.type)


def _left(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    text = b.coerce(args[0], TypeClass.TEXT, name, pos)
    length = b.coerce(args[1], INTEGER, name, pos)
    if text.type == BINARY:
        return b.emit("substring", [text, Lit(1, INTEGER), length], BINARY)
    return b.emit("left", [text, length], STRING)


def _concat(b: Binding, _emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    return b.concat(args, pos) if args else Lit("", STRING)


def _concat_ws(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes = [b.coerce(args[0], STRING, name, pos)]
    for arg in args[1:]:
        if isinstance(arg.type, Array):
            nodes.append(b.cast(arg, Array(STRING, arg.type.contains_null), pos))
        else:
            nodes.append(b.coerce(arg, STRING, name, pos))
    return b.emit("concat_ws", nodes, STRING)


def _pad(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type == BINARY:
        b.refuse(f"{name}() of BINARY is not supported", pos, "pad a text")
    pad = b.coerce(args[2], STRING, name, pos) if len(args) > 2 else Lit(" ", STRING)  # noqa: PLR2004
    return b.emit(emit, [b.coerce(args[0], STRING, name, pos), b.coerce(args[1], INTEGER, name, pos), pad], STRING)


def _space(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.emit("repeat", [Lit(" ", STRING), b.coerce(args[0], INTEGER, name, pos)], STRING)


def _reverse(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if isinstance(args[0].type, Array):
        return b.emit("reverse", args, args[0].type)
    return b.emit("reverse", [b.coerce(args[0], STRING, name, pos)], STRING)


def _hex(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = args[0]
    if is_numeric(arg.type):
        arg = b.coerce(arg, LONG, name, pos)
    elif arg.type != BINARY:
        arg = b.coerce(arg, STRING, name, pos)
    return b.emit("hex", [arg], STRING)


def _extract(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    field = args[0].value if isinstance(args[0], Lit) else None
    part = _PARTS.get(field.lower()) if isinstance(field, str) else None
    if part is None:
        hint = "use YEAR, QUARTER, MONTH, WEEK, DAY, DOW, DOY, HOUR or MINUTE"
        b.refuse(f"{name}() of {field!r} is not supported", pos, hint)
    if part in ("hour", "minute"):
        return b.emit(part, [b.coerce(args[1], TypeClass.DATETIME, name, pos)], INTEGER)
    date = b.coerce(args[1], DATE, name, pos)
    if part == "isodow":
        return b.emit("+", [b.emit("weekday", [date], INTEGER), Lit(1, INTEGER)], INTEGER)
    return b.emit(part, [date], INTEGER)


def _to(kind: DataType) -> Build:
    def build(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
        if len(args) > 1:
            b.refuse(f"{name}() with a pattern is not supported", pos, "cast a text in ISO form, yyyy-MM-dd HH:mm:ss")
        node = args[0]
        if not (is_datetime(node.type) or is_string(node.type) or node.type == VOID):
            b.refuse(f"{name}() of {sql_name(node.type)} is not supported", pos, "use CAST")
        return b.cast(node, kind, pos)

    return build


def _unix_date(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type not in (DATE, VOID):
        b.mismatch(f"{name}()", [args[0].type], pos)
    return b.emit("datediff", [b.cast(args[0], DATE, pos), Lit(0, DATE)], INTEGER)


def _date_from_unix_date(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.emit("date_add", [Lit(0, DATE), b.coerce(args[0], INTEGER, name, pos)], DATE)


def _timestamp_seconds(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    if is_integral(kind) or kind == VOID:
        node = b.cast(args[0], LONG, pos)
    elif kind == FLOAT:
        node = b.cast(args[0], DOUBLE, pos)
    elif is_numeric(kind):
        node = args[0]
    else:
        b.mismatch(f"{name}()", [kind], pos)
    return b.emit("timestamp_seconds", [node], TIMESTAMP)


def _unix_timestamp(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type not in (TIMESTAMP, DATE):
        hint = "cast it to TIMESTAMP first"
        b.refuse(f"{name}() of {sql_name(args[0].type)} is not supported", pos, hint)
    return b.emit("unix_timestamp", [b.cast(args[0], TIMESTAMP, pos)], LONG)


def _current_timestamp(b: Binding, _emit: str, _name: str, _args: list[Node], _pos: int | None) -> Node:
    return Lit(b.now(), TIMESTAMP)


def _current_date(b: Binding, _emit: str, _name: str, _args: list[Node], _pos: int | None) -> Node:
    return Cast(Lit(b.now(), TIMESTAMP), DATE, b.mode)


def _localtimestamp(b: Binding, _emit: str, _name: str, _args: list[Node], _pos: int | None) -> Node:
    return Cast(Lit(b.now(), TIMESTAMP), TIMESTAMP_NTZ, b.mode)


def _size(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if not isinstance(args[0].type, (Array, Map)):
        b.mismatch(f"{name}()", [args[0].type], pos)
    node = b.emit("size", args, INTEGER)
    # Without ANSI mode Spark keeps Hive's result for a null collection.
    return node if b.ansi else b.emit("coalesce", [node, Lit(-1, INTEGER)], INTEGER)


def _array_contains(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    array, value = args
    kind = array.type
    if not isinstance(kind, Array) or value.type == VOID:
        b.mismatch(f"{name}()", [kind, value.type], pos)
    element = coercion.wider(kind.element, value.type, ansi=b.ansi, strings=False)
    if element is None:
        b.mismatch(f"{name}()", [kind, value.type], pos)
    if not isinstance(element, (types.Atomic, Decimal)):
        b.refuse(f"{name}() of {sql_name(kind)} is not supported", pos, "search for a scalar")
    return b.emit(
        "array_contains", [b.cast(array, Array(element, kind.contains_null), pos), b.cast(value, element)], BOOLEAN
    )


def _element_at(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    base, index = args
    kind = base.type
    if isinstance(kind, Array) and index.type in (BYTE, SHORT, INTEGER, VOID):
        return b.emit("element_at", [base, b.cast(index, INTEGER, pos)], kind.element)
    if isinstance(kind, Map) and coercion.tightest(kind.key, index.type, ansi=b.ansi) == kind.key:
        return b.emit("element_at", [base, b.cast(index, kind.key, pos)], kind.value)
    b.mismatch(f"{name}()", [kind, index.type], pos)


def _get(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    if not isinstance(kind, Array):
        b.mismatch(f"{name}()", [kind, args[1].type], pos)
    return b.emit("get", [args[0], b.coerce(args[1], INTEGER, name, pos)], kind.element)


def _map_part(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    if not isinstance(kind, Map):
        b.mismatch(f"{name}()", [kind], pos)
    result = Array(kind.key, contains_null=False) if emit == "map_keys" else Array(kind.value, kind.value_contains_null)
    return b.emit(emit, args, result)


def _map_contains_key(b: Binding, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    keys = _map_part(b, "map_keys", name, args[:1], pos)
    return _array_contains(b, emit, name, [keys, args[1]], pos)


def _array(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    elements, kind = b.same(args, f"{name}()", pos)
    return b.emit("array", elements, Array(kind, contains_null=bool(args)), pos)


def _map(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if len(args) % 2:
        b.wrong(f"{name}() takes keys and values in turn, not {len(args)} arguments", pos, "give each key a value")
    keys, key = b.same(args[::2], f"a key of {name}()", pos)
    values, value = b.same(args[1::2], f"a value of {name}()", pos)
    if any(isinstance(part, Map) for part in types.walk(key)):
        b.mismatch(f"a key of {name}()", [key], pos)
    pairs = [part for pair in zip(keys, values, strict=True) for part in pair]
    return b.emit("map", pairs, Map(key, value, value_contains_null=bool(args)), pos)


def _named_struct(b: Binding, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if len(args) % 2:
        b.wrong(f"{name}() takes names and values in turn, not {len(args)} arguments", pos, "give each name a value")
    fields: list[types.Field] = []
    for given, value in zip(args[::2], args[1::2], strict=True):
        if not isinstance(given, Lit) or not isinstance(given.value, str):
            b.wrong(f"{name}() takes string literals as names", pos, "write named_struct('a', 1, 'b', 2)")
        fields.append(types.Field(given.value, value.type))
    return b.emit("named_struct", args, Struct(tuple(fields)), pos)


ISNAN: Final = Rule(1, 1, _isnan)
EQUAL_NULL: Final = Rule(2, 2, _equal_null)
COALESCE: Final = Rule(1, None, _coalesce)
NVL: Final = Rule(2, 2, _coalesce)
NVL2: Final = Rule(3, 3, _nvl2)
NULLIF: Final = Rule(2, 2, _nullif)
NULLIFZERO: Final = Rule(1, 1, _nullifzero)
ZEROIFNULL: Final = Rule(1, 1, _zeroifnull)
IF: Final = Rule(3, 3, _if)
EXTREME: Final = Rule(2, None, _extreme)
ARITHMETIC: Final = Rule(2, 2, _arithmetic)
NEGATIVE: Final = Rule(1, 1, _negative)
POSITIVE: Final = Rule(1, 1, _positive)
ABS: Final = Rule(1, 1, _abs)
ROUNDING: Final = Rule(1, 2, _rounding)
FLOOR: Final = Rule(1, 1, _floor)
LOG: Final = Rule(1, 2, _log)
LOG2: Final = Rule(1, 1, _log2)
SHIFT: Final = Rule(2, 2, _shift)
LIKE: Final = Rule(2, 3, _like)
ILIKE: Final = Rule(2, 3, _like)
TRIM: Final = Rule(1, 2, _trim)
BTRIM: Final = Rule(1, 2, _btrim)
SUBSTRING: Final = Rule(2, 3, _substring)
LEFT: Final = Rule(2, 2, _left)
CONCAT: Final = Rule(0, None, _concat)
CONCAT_WS: Final = Rule(1, None, _concat_ws)
PAD: Final = Rule(2, 3, _pad)
SPACE: Final = Rule(1, 1, _space)
REVERSE: Final = Rule(1, 1, _reverse)
HEX: Final = Rule(1, 1, _hex)
EXTRACT: Final = Rule(2, 2, _extract)
TO_DATE: Final = Rule(1, 2, _to(DATE))
TO_TIMESTAMP: Final = Rule(1, 2, _to(TIMESTAMP))
TO_TIMESTAMP_NTZ: Final = Rule(1, 2, _to(TIMESTAMP_NTZ))
UNIX_DATE: Final = Rule(1, 1, _unix_date)
DATE_FROM_UNIX_DATE: Final = Rule(1, 1, _date_from_unix_date)
TIMESTAMP_SECONDS: Final = Rule(1, 1, _timestamp_seconds)
UNIX_TIMESTAMP: Final = Rule(1, 1, _unix_timestamp)
CURRENT_TIMESTAMP: Final = Rule(0, 0, _current_timestamp)
CURRENT_DATE: Final = Rule(0, 0, _current_date)
LOCALTIMESTAMP: Final = Rule(0, 0, _localtimestamp)
SIZE: Final = Rule(1, 1, _size)
ARRAY_CONTAINS: Final = Rule(2, 2, _array_contains)
ELEMENT_AT: Final = Rule(2, 2, _element_at)
GET: Final = Rule(2, 2, _get)
MAP_PART: Final = Rule(1, 1, _map_part)
MAP_CONTAINS_KEY: Final = Rule(2, 2, _map_contains_key)
ARRAY: Final = Rule(0, None, _array)
MAP: Final = Rule(0, None, _map)
NAMED_STRUCT: Final = Rule(2, None, _named_struct)
# The binder has named each value before.
STRUCT: Final = Rule(2, None, _named_struct)
