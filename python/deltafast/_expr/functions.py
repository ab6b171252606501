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

from typing import Final, NamedTuple

from deltafast._expr import types
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

__all__ = ["CAST_FUNCTIONS", "EMITTED", "FUNCTIONS", "Function", "Param"]

MAX_INT: Final = 2_147_483_647


class Param(NamedTuple):
    """The coercion of one argument (a kind of `Binder.coerce`), and its default if it is optional."""

    kind: str
    default: Lit | None = None


class Function(NamedTuple):
    """A SQL function; `rule` names the binder's method if `params` and `result` do not determine the types."""

    params: tuple[Param, ...] = ()
    result: DataType | None = None
    emit: str = ""
    rule: str = ""
    order: tuple[int, ...] = ()


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


def _f(emit: str, kinds: str, result: DataType | None = None, *defaults: Lit, order: tuple[int, ...] = ()) -> Function:
    names = kinds.split()
    first = len(names) - len(defaults)
    params = tuple(Param(k, defaults[i - first] if i >= first else None) for i, k in enumerate(names))
    return Function(params, result, emit, order=order)


def _rule(name: str, emit: str = "") -> Function:
    return Function(rule=name, emit=emit)


FUNCTIONS: Final[dict[str, Function]] = {
    # nulls and branches
    "isnull": _f("isnull", "any", BOOLEAN),
    "isnotnull": _f("isnotnull", "any", BOOLEAN),
    "isnan": _rule("isnan"),
    "equal_null": _rule("equal_null"),
    "coalesce": _rule("coalesce"),
    "nvl": _rule("nvl"),
    "ifnull": _rule("nvl"),
    "nvl2": _rule("nvl2"),
    "nullif": _rule("nullif"),
    "nullifzero": _rule("nullifzero"),
    "zeroifnull": _rule("zeroifnull"),
    "if": _rule("if"),
    "greatest": _rule("extreme", "greatest"),
    "least": _rule("extreme", "least"),
    # numbers
    "mod": _rule("arithmetic", "%"),
    "pmod": _rule("arithmetic", "pmod"),
    "negative": _rule("negative"),
    "positive": _rule("positive"),
    "abs": _rule("abs"),
    "sign": _f("sign", "double", DOUBLE),
    "signum": _f("sign", "double", DOUBLE),
    "round": _rule("rounding", "round"),
    "bround": _rule("rounding", "bround"),
    "floor": _rule("floor", "floor"),
    "ceil": _rule("floor", "ceil"),
    "ceiling": _rule("floor", "ceil"),
    "sqrt": _f("sqrt", "double", DOUBLE),
    "exp": _f("exp", "double", DOUBLE),
    "ln": _f("ln", "double", DOUBLE),
    "log": _rule("log"),
    "log2": _rule("log2"),
    "log10": _f("log10", "double", DOUBLE),
    "pow": _f("pow", "double double", DOUBLE),
    "power": _f("pow", "double double", DOUBLE),
    "shiftleft": _rule("shift", "shiftleft"),
    "shiftright": _rule("shift", "shiftright"),
    # text
    "like": _rule("like"),
    "ilike": _rule("ilike"),
    "rlike": _f("rlike", "string string", BOOLEAN),
    "regexp": _f("rlike", "string string", BOOLEAN),
    "regexp_like": _f("rlike", "string string", BOOLEAN),
    "startswith": _f("startswith", "string string", BOOLEAN),
    "endswith": _f("endswith", "string string", BOOLEAN),
    "contains": _f("contains", "string string", BOOLEAN),
    "lower": _f("lower", "string", STRING),
    "lcase": _f("lower", "string", STRING),
    "upper": _f("upper", "string", STRING),
    "ucase": _f("upper", "string", STRING),
    "trim": _rule("trim", "trim"),
    "ltrim": _rule("trim", "ltrim"),
    "rtrim": _rule("trim", "rtrim"),
    "btrim": _rule("btrim"),
    "length": _f("length", "text", INTEGER),
    "len": _f("length", "text", INTEGER),
    "char_length": _f("length", "text", INTEGER),
    "character_length": _f("length", "text", INTEGER),
    "octet_length": _f("octet_length", "text", INTEGER),
    "substring": _rule("substring"),
    "substr": _rule("substring"),
    "left": _rule("left"),
    "right": _f("right", "string int", STRING),
    "concat": _rule("concat"),
    "concat_ws": _rule("concat_ws"),
    "replace": _f("replace", "string string string", STRING, _text("")),
    "lpad": _rule("pad", "lpad"),
    "rpad": _rule("pad", "rpad"),
    "repeat": _f("repeat", "string int", STRING),
    "space": _rule("space"),
    "reverse": _rule("reverse"),
    "instr": _f("instr", "string string", INTEGER),
    "locate": _f("locate", "string string int", INTEGER, _int(1)),
    "position": _f("locate", "string string int", INTEGER, _int(1)),
    "split_part": _f("split_part", "string string int", STRING),
    "initcap": _f("initcap", "string", STRING),
    "hex": _rule("hex"),
    "unhex": _f("unhex", "string", BINARY),
    "md5": _f("md5", "binary", STRING),
    "sha2": _f("sha2", "binary int", STRING),
    # dates and timestamps
    "year": _f("year", "date", INTEGER),
    "month": _f("month", "date", INTEGER),
    "day": _f("day", "date", INTEGER),
    "dayofmonth": _f("day", "date", INTEGER),
    "quarter": _f("quarter", "date", INTEGER),
    "dayofweek": _f("dayofweek", "date", INTEGER),
    "weekday": _f("weekday", "date", INTEGER),
    "dayofyear": _f("dayofyear", "date", INTEGER),
    "weekofyear": _f("weekofyear", "date", INTEGER),
    "hour": _f("hour", "datetime", INTEGER),
    "minute": _f("minute", "datetime", INTEGER),
    "second": _f("second", "datetime", INTEGER),
    "extract": _rule("extract"),
    "date_part": _rule("extract"),
    "datepart": _rule("extract"),
    "date_trunc": _f("date_trunc", "string timestamp", TIMESTAMP),
    "trunc": _f("trunc", "date string", DATE),
    "date_add": _f("date_add", "date days", DATE),
    "dateadd": _f("date_add", "date days", DATE),
    "date_sub": _f("date_sub", "date days", DATE),
    "add_months": _f("add_months", "date int", DATE),
    "months_between": _f("months_between", "timestamp timestamp boolean", DOUBLE, Lit(value=True, type=BOOLEAN)),
    "datediff": _f("datediff", "date date", INTEGER),
    "date_diff": _f("datediff", "date date", INTEGER),
    "last_day": _f("last_day", "date", DATE),
    "next_day": _f("next_day", "date string", DATE),
    "date_format": _f("date_format", "timestamp string", STRING),
    "make_date": _f("make_date", "int int int", DATE),
    "to_date": _rule("to_date"),
    "to_timestamp": _rule("to_timestamp"),
    "to_timestamp_ltz": _rule("to_timestamp"),
    "to_timestamp_ntz": _rule("to_timestamp_ntz"),
    "unix_date": _rule("unix_date"),
    "date_from_unix_date": _rule("date_from_unix_date"),
    "unix_micros": _f("unix_micros", "exact_timestamp", LONG),
    "timestamp_micros": _f("timestamp_micros", "integral", TIMESTAMP),
    "timestamp_seconds": _rule("timestamp_seconds"),
    "unix_timestamp": _rule("unix_timestamp"),
    "to_unix_timestamp": _rule("unix_timestamp"),
    "from_unixtime": _f("from_unixtime", "long string", STRING, _text("yyyy-MM-dd HH:mm:ss")),
    "current_date": _rule("current_date"),
    "curdate": _rule("current_date"),
    "current_timestamp": _rule("current_timestamp"),
    "now": _rule("current_timestamp"),
    "localtimestamp": _rule("localtimestamp"),
    # nested values
    "size": _rule("size"),
    "cardinality": _rule("size"),
    "array_contains": _rule("array_contains"),
    "element_at": _rule("element_at"),
    "get": _rule("get"),
    "map_keys": _rule("map_part", "map_keys"),
    "map_values": _rule("map_part", "map_values"),
    "map_contains_key": _rule("map_contains_key"),
    "array": _rule("array"),
    "map": _rule("map"),
    "named_struct": _rule("named_struct"),
    "struct": _rule("struct"),
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
