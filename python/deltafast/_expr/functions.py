"""The table of functions: SQL name, argument types -> result type, and the emitted function.

It has two parts, since several SQL names can have one meaning (`nvl`, `ifnull`, `coalesce`) and operators have no SQL
name:

`EMITTED`   every name `f` that a bound tree can contain, with its exact argument and result types. The Rust core knows
            these names and no others.
`FUNCTIONS` every SQL function that can be written, how its arguments are coerced, and which emitted name it becomes.

Other functions are refused by name, and never passed through: the same name might have another meaning.

Adding a function: one line in `EMITTED`, one in `FUNCTIONS`, expressions in `dev/make_expression_golden.py`.

In signatures `T` is one type shared by all arguments that name it; `decimal` arguments of arithmetic may differ in
precision and scale (the node's type says the result's); `lit` means a literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from deltafast._expr import rules, types
from deltafast._expr.coercion import TypeClass
from deltafast._expr.tree import Lit
from deltafast._expr.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.rules import Rule

__all__ = ["CAST_FUNCTIONS", "EMITTED", "FUNCTIONS", "Function", "Param"]


class Param(NamedTuple):
    """The type or class of types to which `Binder.coerce` casts an argument, and its default if it is optional."""

    type: DataType | TypeClass
    default: Lit | None = None


class Function(NamedTuple):
    """A SQL function; it has a `rule` if `params` and `result` do not determine the types."""

    params: tuple[Param, ...] = ()
    result: DataType | None = None
    emit: str = ""
    rule: Rule | None = None


def _text(value: str) -> Lit:
    return Lit(value, STRING)


def _int(value: int) -> Lit:
    return Lit(value, INTEGER)


EMITTED: Final[dict[str, str]] = {
    # logic and comparison
    "and": "(boolean, boolean, ...) -> boolean",
    "or": "(boolean, boolean, ...) -> boolean",
    "not": "(boolean) -> boolean",
    "=": "(T, T) -> boolean",
    "<=>": "(T, T) -> boolean",
    "<": "(T, T) -> boolean",
    "<=": "(T, T) -> boolean",
    ">": "(T, T) -> boolean",
    ">=": "(T, T) -> boolean",
    "isnull": "(any) -> boolean",
    "isnotnull": "(any) -> boolean",
    "isnan": "(float | double) -> boolean",
    # arithmetic
    "+": "(T, T) -> T, decimals: the node's type",
    "-": "(T, T) -> T, decimals: the node's type",
    "*": "(T, T) -> T, decimals: the node's type",
    "/": "(double, double) -> double, (decimal, decimal) -> decimal",
    "div": "(long, long) -> long, (decimal, decimal) -> long",
    "%": "(T, T) -> T, decimals: the node's type",
    "pmod": "(T, T) -> T, decimals: the node's type",
    "negative": "(T number) -> T",
    "abs": "(T number) -> T",
    "sign": "(double) -> double",
    "round": "(T number, integer lit) -> T, decimals: the node's type; HALF_UP",
    "bround": "(T number, integer lit) -> T, decimals: the node's type; HALF_EVEN",
    "floor": "(double) -> long, (long) -> long, (decimal) -> decimal",
    "ceil": "(double) -> long, (long) -> long, (decimal) -> decimal",
    "sqrt": "(double) -> double; NaN below zero",
    "exp": "(double) -> double",
    "ln": "(double) -> double; null at or below zero",
    "log": "(double base, double x) -> double; null where either is at or below zero",
    "log10": "(double) -> double; null at or below zero",
    "pow": "(double, double) -> double",
    "greatest": "(T, T, ...) -> T; nulls skipped, NaN greatest",
    "least": "(T, T, ...) -> T; nulls skipped, NaN greatest",
    "bitand": "(T integer, T) -> T",
    "bitor": "(T integer, T) -> T",
    "bitxor": "(T integer, T) -> T",
    "bitnot": "(T integer) -> T",
    "shiftleft": "(integer | long, integer) -> as the first; Java's <<",
    "shiftright": "(integer | long, integer) -> as the first; Java's >>",
    # text
    "like": "(string, string, string lit of one character) -> boolean",
    "rlike": "(string, string) -> boolean; found anywhere, Java's syntax",
    "startswith": "(string, string) -> boolean",
    "endswith": "(string, string) -> boolean",
    "contains": "(string, string) -> boolean",
    "lower": "(string) -> string",
    "upper": "(string) -> string",
    "trim": "(string) -> string, (string, string characters) -> string; only U+0020 by default",
    "ltrim": "(string) -> string, (string, string characters) -> string",
    "rtrim": "(string) -> string, (string, string characters) -> string",
    "length": "(string) -> integer code points, (binary) -> integer bytes",
    "octet_length": "(string | binary) -> integer",
    "substring": "(string | binary, integer, integer) -> as the first",
    "concat": "(string, ...) -> string, (binary, ...) -> binary, (array<T>, ...) -> array<T>",
    "concat_ws": "(string, string | array<string>, ...) -> string",
    "replace": "(string, string, string) -> string",
    "lpad": "(string, integer, string) -> string",
    "rpad": "(string, integer, string) -> string",
    "repeat": "(string, integer) -> string",
    "reverse": "(string) -> string, (array<T>) -> array<T>",
    "instr": "(string, string) -> integer",
    "locate": "(string wanted, string, integer start) -> integer",
    "left": "(string, integer) -> string",
    "right": "(string, integer) -> string",
    "split_part": "(string, string, integer) -> string",
    "initcap": "(string) -> string",
    "hex": "(long | string | binary) -> string",
    "unhex": "(string) -> binary",
    "md5": "(binary) -> string",
    "sha2": "(binary, integer) -> string",
    # branches
    "if": "(boolean, T, T) -> T",
    "case": "(boolean, T, boolean, T, ..., T else) -> T",
    "coalesce": "(T, ...) -> T",
    # dates and timestamps
    "year": "(date) -> integer",
    "month": "(date) -> integer",
    "day": "(date) -> integer",
    "quarter": "(date) -> integer",
    "dayofweek": "(date) -> integer; Sunday is 1",
    "weekday": "(date) -> integer; Monday is 0",
    "dayofyear": "(date) -> integer",
    "weekofyear": "(date) -> integer; ISO week",
    "hour": "(timestamp | timestamp_ntz) -> integer",
    "minute": "(timestamp | timestamp_ntz) -> integer",
    "second": "(timestamp | timestamp_ntz) -> integer",
    "date_trunc": "(string unit, timestamp) -> timestamp; null for an unknown unit",
    "trunc": "(date, string unit) -> date; null for an unknown unit",
    "date_add": "(date, integer) -> date",
    "date_sub": "(date, integer) -> date",
    "add_months": "(date, integer) -> date",
    "months_between": "(timestamp, timestamp, boolean round off) -> double",
    "datediff": "(date end, date start) -> integer",
    "last_day": "(date) -> date",
    "next_day": "(date, string) -> date",
    "date_format": "(timestamp, string pattern) -> string",
    "make_date": "(integer, integer, integer) -> date",
    "unix_micros": "(timestamp) -> long",
    "timestamp_micros": "(long) -> timestamp",
    "timestamp_seconds": "(long | double | decimal) -> timestamp",
    "unix_timestamp": "(timestamp) -> long seconds",
    "from_unixtime": "(long seconds, string pattern) -> string",
    "timestamp_add_months": "(T timestamp | timestamp_ntz, integer) -> T; ts + INTERVAL n MONTH",
    # Whole days by the calendar of the zone.
    "timestamp_add_micros": "(T timestamp | timestamp_ntz, long) -> T; ts + INTERVAL DAY TO SECOND",
    # nested values
    "size": "(array | map) -> integer; null for null",
    "array_contains": "(array<T>, T) -> boolean; three-valued",
    "element_at": "(array<T>, integer from 1) -> T, (map<K, V>, K) -> V; ANSI: an array index outside raises",
    "get": "(array<T>, integer from 0) -> T; null outside",
    "getitem": "(array<T>, integer from 0) -> T; arr[i] in ANSI mode: raises outside",
    "getfield": "(struct, string lit) -> the field's type",
    "map_keys": "(map<K, V>) -> array<K>",
    "map_values": "(map<K, V>) -> array<V>",
    "array": "(T, ...) -> array<T>",
    "map": "(K, V, K, V, ...) -> map<K, V>; raises for a null key, and for two equal ones",
    "named_struct": "(string lit, T1, string lit, T2, ...) -> struct of these names and types",
}


def _f(
    emit: str, arguments: Sequence[DataType | TypeClass], result: DataType | None = None, *defaults: Lit
) -> Function:
    first = len(arguments) - len(defaults)
    params = tuple(Param(t, defaults[i - first] if i >= first else None) for i, t in enumerate(arguments))
    return Function(params, result, emit)


def _rule(rule: Rule, emit: str = "") -> Function:
    return Function(rule=rule, emit=emit)


FUNCTIONS: Final[dict[str, Function]] = {
    # nulls and branches
    "isnull": _f("isnull", (TypeClass.ANY,), BOOLEAN),
    "isnotnull": _f("isnotnull", (TypeClass.ANY,), BOOLEAN),
    "isnan": _rule(rules.ISNAN),
    "equal_null": _rule(rules.EQUAL_NULL),
    "coalesce": _rule(rules.COALESCE),
    "nvl": _rule(rules.NVL),
    "ifnull": _rule(rules.NVL),
    "nvl2": _rule(rules.NVL2),
    "nullif": _rule(rules.NULLIF),
    "nullifzero": _rule(rules.NULLIFZERO),
    "zeroifnull": _rule(rules.ZEROIFNULL),
    "if": _rule(rules.IF),
    "greatest": _rule(rules.EXTREME, "greatest"),
    "least": _rule(rules.EXTREME, "least"),
    # numbers
    "mod": _rule(rules.ARITHMETIC, "%"),
    "pmod": _rule(rules.ARITHMETIC, "pmod"),
    "negative": _rule(rules.NEGATIVE),
    "positive": _rule(rules.POSITIVE),
    "abs": _rule(rules.ABS),
    "sign": _f("sign", (DOUBLE,), DOUBLE),
    "signum": _f("sign", (DOUBLE,), DOUBLE),
    "round": _rule(rules.ROUNDING, "round"),
    "bround": _rule(rules.ROUNDING, "bround"),
    "floor": _rule(rules.FLOOR, "floor"),
    "ceil": _rule(rules.FLOOR, "ceil"),
    "ceiling": _rule(rules.FLOOR, "ceil"),
    "sqrt": _f("sqrt", (DOUBLE,), DOUBLE),
    "exp": _f("exp", (DOUBLE,), DOUBLE),
    "ln": _f("ln", (DOUBLE,), DOUBLE),
    "log": _rule(rules.LOG),
    "log2": _rule(rules.LOG2),
    "log10": _f("log10", (DOUBLE,), DOUBLE),
    "pow": _f("pow", (DOUBLE, DOUBLE), DOUBLE),
    "power": _f("pow", (DOUBLE, DOUBLE), DOUBLE),
    "shiftleft": _rule(rules.SHIFT, "shiftleft"),
    "shiftright": _rule(rules.SHIFT, "shiftright"),
    # text
    "like": _rule(rules.LIKE),
    "ilike": _rule(rules.ILIKE),
    "rlike": _f("rlike", (STRING, STRING), BOOLEAN),
    "regexp": _f("rlike", (STRING, STRING), BOOLEAN),
    "regexp_like": _f("rlike", (STRING, STRING), BOOLEAN),
    "startswith": _f("startswith", (STRING, STRING), BOOLEAN),
    "endswith": _f("endswith", (STRING, STRING), BOOLEAN),
    "contains": _f("contains", (STRING, STRING), BOOLEAN),
    "lower": _f("lower", (STRING,), STRING),
    "lcase": _f("lower", (STRING,), STRING),
    "upper": _f("upper", (STRING,), STRING),
    "ucase": _f("upper", (STRING,), STRING),
    "trim": _rule(rules.TRIM, "trim"),
    "ltrim": _rule(rules.TRIM, "ltrim"),
    "rtrim": _rule(rules.TRIM, "rtrim"),
    "btrim": _rule(rules.BTRIM),
    "length": _f("length", (TypeClass.TEXT,), INTEGER),
    "len": _f("length", (TypeClass.TEXT,), INTEGER),
    "char_length": _f("length", (TypeClass.TEXT,), INTEGER),
    "character_length": _f("length", (TypeClass.TEXT,), INTEGER),
    "octet_length": _f("octet_length", (TypeClass.TEXT,), INTEGER),
    "substring": _rule(rules.SUBSTRING),
    "substr": _rule(rules.SUBSTRING),
    "left": _rule(rules.LEFT),
    "right": _f("right", (STRING, INTEGER), STRING),
    "concat": _rule(rules.CONCAT),
    "concat_ws": _rule(rules.CONCAT_WS),
    "replace": _f("replace", (STRING, STRING, STRING), STRING, _text("")),
    "lpad": _rule(rules.PAD, "lpad"),
    "rpad": _rule(rules.PAD, "rpad"),
    "repeat": _f("repeat", (STRING, INTEGER), STRING),
    "space": _rule(rules.SPACE),
    "reverse": _rule(rules.REVERSE),
    "instr": _f("instr", (STRING, STRING), INTEGER),
    "locate": _f("locate", (STRING, STRING, INTEGER), INTEGER, _int(1)),
    "position": _f("locate", (STRING, STRING, INTEGER), INTEGER, _int(1)),
    "split_part": _f("split_part", (STRING, STRING, INTEGER), STRING),
    "initcap": _f("initcap", (STRING,), STRING),
    "hex": _rule(rules.HEX),
    "unhex": _f("unhex", (STRING,), BINARY),
    "md5": _f("md5", (BINARY,), STRING),
    "sha2": _f("sha2", (BINARY, INTEGER), STRING),
    # dates and timestamps
    "year": _f("year", (DATE,), INTEGER),
    "month": _f("month", (DATE,), INTEGER),
    "day": _f("day", (DATE,), INTEGER),
    "dayofmonth": _f("day", (DATE,), INTEGER),
    "quarter": _f("quarter", (DATE,), INTEGER),
    "dayofweek": _f("dayofweek", (DATE,), INTEGER),
    "weekday": _f("weekday", (DATE,), INTEGER),
    "dayofyear": _f("dayofyear", (DATE,), INTEGER),
    "weekofyear": _f("weekofyear", (DATE,), INTEGER),
    "hour": _f("hour", (TypeClass.DATETIME,), INTEGER),
    "minute": _f("minute", (TypeClass.DATETIME,), INTEGER),
    "second": _f("second", (TypeClass.DATETIME,), INTEGER),
    "extract": _rule(rules.EXTRACT),
    "date_part": _rule(rules.EXTRACT),
    "datepart": _rule(rules.EXTRACT),
    "date_trunc": _f("date_trunc", (STRING, TIMESTAMP), TIMESTAMP),
    "trunc": _f("trunc", (DATE, STRING), DATE),
    "date_add": _f("date_add", (DATE, TypeClass.DAYS), DATE),
    "dateadd": _f("date_add", (DATE, TypeClass.DAYS), DATE),
    "date_sub": _f("date_sub", (DATE, TypeClass.DAYS), DATE),
    "add_months": _f("add_months", (DATE, INTEGER), DATE),
    "months_between": _f("months_between", (TIMESTAMP, TIMESTAMP, BOOLEAN), DOUBLE, Lit(value=True, type=BOOLEAN)),
    "datediff": _f("datediff", (DATE, DATE), INTEGER),
    "date_diff": _f("datediff", (DATE, DATE), INTEGER),
    "last_day": _f("last_day", (DATE,), DATE),
    "next_day": _f("next_day", (DATE, STRING), DATE),
    "date_format": _f("date_format", (TIMESTAMP, STRING), STRING),
    "make_date": _f("make_date", (INTEGER, INTEGER, INTEGER), DATE),
    "to_date": _rule(rules.TO_DATE),
    "to_timestamp": _rule(rules.TO_TIMESTAMP),
    "to_timestamp_ltz": _rule(rules.TO_TIMESTAMP),
    "to_timestamp_ntz": _rule(rules.TO_TIMESTAMP_NTZ),
    "unix_date": _rule(rules.UNIX_DATE),
    "date_from_unix_date": _rule(rules.DATE_FROM_UNIX_DATE),
    "unix_micros": _f("unix_micros", (TypeClass.EXACT_TIMESTAMP,), LONG),
    "timestamp_micros": _f("timestamp_micros", (TypeClass.INTEGRAL,), TIMESTAMP),
    "timestamp_seconds": _rule(rules.TIMESTAMP_SECONDS),
    "unix_timestamp": _rule(rules.UNIX_TIMESTAMP),
    "to_unix_timestamp": _rule(rules.UNIX_TIMESTAMP),
    "from_unixtime": _f("from_unixtime", (LONG, STRING), STRING, _text("yyyy-MM-dd HH:mm:ss")),
    "current_date": _rule(rules.CURRENT_DATE),
    "curdate": _rule(rules.CURRENT_DATE),
    "current_timestamp": _rule(rules.CURRENT_TIMESTAMP),
    "now": _rule(rules.CURRENT_TIMESTAMP),
    "localtimestamp": _rule(rules.LOCALTIMESTAMP),
    # nested values
    "size": _rule(rules.SIZE),
    "cardinality": _rule(rules.SIZE),
    "array_contains": _rule(rules.ARRAY_CONTAINS),
    "element_at": _rule(rules.ELEMENT_AT),
    "get": _rule(rules.GET),
    "map_keys": _rule(rules.MAP_PART, "map_keys"),
    "map_values": _rule(rules.MAP_PART, "map_values"),
    "map_contains_key": _rule(rules.MAP_CONTAINS_KEY),
    "array": _rule(rules.ARRAY),
    "map": _rule(rules.MAP),
    "named_struct": _rule(rules.NAMED_STRUCT),
    "struct": _rule(rules.STRUCT),
}

CAST_FUNCTIONS: Final[dict[str, DataType]] = {
    "boolean": types.BOOLEAN,
    "tinyint": types.BYTE,
    "smallint": types.SHORT,
    "int": types.INTEGER,
    "bigint": types.LONG,
    "float": types.FLOAT,
    "double": types.DOUBLE,
    "decimal": types.Decimal(10, 0),
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "binary": types.BINARY,
    "string": types.STRING,
}
