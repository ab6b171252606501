"""The functions of SQL: how the arguments of each are coerced, and which function of the core it becomes.

The core's table (`src/expr/function.rs`) has the functions that mean exactly one of the core, with their parameters and
results; here are those whose types depend on their arguments, each with a rule. Other functions are refused by name,
and never passed through: the same name might have another meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from deltafast import _core
from deltafast._expr import rules, types
from deltafast._expr.coercion import TypeClass
from deltafast._expr.tree import Lit

if TYPE_CHECKING:
    from deltafast._core_types import FunctionParameter, SqlFunction
    from deltafast._expr.rules import Rule
    from deltafast._expr.types import DataType

__all__ = ["CAST_FUNCTIONS", "FUNCTIONS", "Function", "Param"]


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


#: Sets of types in the core's table, by which arguments are coerced.
_CLASSES: Final = {
    "any": TypeClass.ANY,
    "string | binary": TypeClass.TEXT,
    "timestamp | timestamp_ntz": TypeClass.DATETIME,
    "byte | short | integer": TypeClass.DAYS,
    "integral": TypeClass.INTEGRAL,
}


def _of_core(function: SqlFunction) -> Function:
    params = tuple(map(_param, function["parameters"]))
    return Function(params, types.type_from_json(function["result"]), function["function"])


def _param(parameter: FunctionParameter) -> Param:
    name, value = parameter["types"], parameter["default"]
    kind = _CLASSES.get(name) or types.type_from_json(name)
    if value is None or isinstance(kind, TypeClass):
        return Param(kind)
    return Param(kind, Lit(value, kind))


def _rule(rule: Rule, emit: str = "") -> Function:
    return Function(rule=rule, emit=emit)


FUNCTIONS: Final[dict[str, Function]] = {
    **{function["name"]: _of_core(function) for function in _core.sql_functions()},
    # nulls and branches
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
    "round": _rule(rules.ROUNDING, "round"),
    "bround": _rule(rules.ROUNDING, "bround"),
    "floor": _rule(rules.FLOOR, "floor"),
    "ceil": _rule(rules.FLOOR, "ceil"),
    "ceiling": _rule(rules.FLOOR, "ceil"),
    "log": _rule(rules.LOG),
    "log2": _rule(rules.LOG2),
    "shiftleft": _rule(rules.SHIFT, "shiftleft"),
    "shiftright": _rule(rules.SHIFT, "shiftright"),
    # strings
    "like": _rule(rules.LIKE),
    "ilike": _rule(rules.ILIKE),
    "trim": _rule(rules.TRIM, "trim"),
    "ltrim": _rule(rules.TRIM, "ltrim"),
    "rtrim": _rule(rules.TRIM, "rtrim"),
    "btrim": _rule(rules.BTRIM),
    "substring": _rule(rules.SUBSTRING),
    "substr": _rule(rules.SUBSTRING),
    "left": _rule(rules.LEFT),
    "concat": _rule(rules.CONCAT),
    "concat_ws": _rule(rules.CONCAT_WS),
    "lpad": _rule(rules.PAD, "lpad"),
    "rpad": _rule(rules.PAD, "rpad"),
    "space": _rule(rules.SPACE),
    "reverse": _rule(rules.REVERSE),
    "hex": _rule(rules.HEX),
    # dates and timestamps
    "extract": _rule(rules.EXTRACT),
    "date_part": _rule(rules.EXTRACT),
    "datepart": _rule(rules.EXTRACT),
    "to_date": _rule(rules.TO_DATE),
    "to_timestamp": _rule(rules.TO_TIMESTAMP),
    "to_timestamp_ltz": _rule(rules.TO_TIMESTAMP),
    "to_timestamp_ntz": _rule(rules.TO_TIMESTAMP_NTZ),
    "unix_date": _rule(rules.UNIX_DATE),
    "date_from_unix_date": _rule(rules.DATE_FROM_UNIX_DATE),
    # Only of a timestamp with a time zone, to which nothing else is cast.
    "unix_micros": Function((Param(TypeClass.EXACT_TIMESTAMP),), types.LONG, "unix_micros"),
    "timestamp_seconds": _rule(rules.TIMESTAMP_SECONDS),
    "unix_timestamp": _rule(rules.UNIX_TIMESTAMP),
    "to_unix_timestamp": _rule(rules.UNIX_TIMESTAMP),
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
