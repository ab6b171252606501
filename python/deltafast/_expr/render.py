"""The typed tree -> Spark SQL.

Every cast and every literal's type is explicit, so that nothing depends on Spark's coercion: the SQL string binds to
the same tree again.
"""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING, Final

from deltafast._expr import literals, types
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.tree import Bound, Call, Cast, CastMode, Col, In, Lit, Node, SessionCall, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from deltafast._core_types import BoundTree
    from deltafast._expr.types import DataType

__all__ = ["interval_sql", "literal_sql", "path_sql", "string_literal", "to_spark_sql"]

_INFIX: Final = {
    "and": "AND",
    "or": "OR",
    "=": "=",
    "<=>": "<=>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "div": "DIV",
    "%": "%",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
    "rlike": "RLIKE",
}
_TRIM: Final = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
_SUFFIX: Final = {"byte": "Y", "short": "S", "integer": "", "long": "L"}
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}


def _node(tree: BoundTree | Bound | Node) -> Node:
    if isinstance(tree, dict):
        tree = Bound.from_tree(tree)
    return tree.expr if isinstance(tree, Bound) else tree


def to_spark_sql(tree: BoundTree | Bound | Node) -> str:
    """Spark SQL that binds to the same tree under the same ANSI mode and zone."""
    return _spark(_node(tree))


def path_sql(path: Iterable[str]) -> str:
    """Return the path of a column or field as Spark SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def string_literal(value: str) -> str:
    """Return a string as Spark SQL."""
    return "'" + "".join(_ESCAPES.get(c, c) for c in value) + "'"


def _spark(node: Node) -> str:
    match node:
        case Col(path=path):
            return path_sql(path)
        case Lit(value=value, type=t):
            return literal_sql(value, t)
        case Cast(arg=arg, type=t, mode=mode):
            return f"{'TRY_CAST' if mode is CastMode.TRY else 'CAST'}({_spark(arg)} AS {types.sql_name(t)})"
        case In(arg=arg, values=values):
            return f"({_spark(arg)} IN ({', '.join(literal_sql(v, arg.type) for v in values)}))"
        case Call(f=f, args=args) | SessionCall(f=f, args=args):
            return _spark_call(f, args)


def _spark_call(f: str, args: Sequence[Node]) -> str:  # noqa: C901, PLR0911 - one line a form
    if f in _INFIX:
        return "(" + f" {_INFIX[f]} ".join(_spark(a) for a in args) + ")"
    if f == "not":
        return f"(NOT {_spark(args[0])})"
    if f == "bitnot":
        return f"(~ {_spark(args[0])})"
    if f in ("isnull", "isnotnull"):
        return f"({_spark(args[0])} IS {'NOT ' if f == 'isnotnull' else ''}NULL)"
    if f == "like":
        escape = args[2].value if isinstance(args[2], Lit) else "\\"
        tail = "" if escape == "\\" else f" ESCAPE {_spark(args[2])}"
        return f"({_spark(args[0])} LIKE {_spark(args[1])}{tail})"
    if f == "case":
        return _case(args, _spark)
    if f in _TRIM and len(args) > 1:
        return f"trim({_TRIM[f]} {_spark(args[1])} FROM {_spark(args[0])})"
    if f == "getfield" and isinstance(args[1], Lit):
        return f"{_spark(args[0])}.`{str(args[1].value).replace('`', '``')}`"
    if f == "getitem":
        return f"{_spark(args[0])}[{_spark(args[1])}]"
    if f in ("timestamp_add_months", "timestamp_add_micros"):
        return f"({_spark(args[0])} + {_interval(f, args[1])})"
    return f"{f}({', '.join(_spark(a) for a in args)})"


def _interval(f: str, amount: Node) -> str:
    if not isinstance(amount, Lit) or not isinstance(amount.value, int):
        msg = f"{f} takes a literal"
        raise UnsupportedExpressionError(msg)
    return interval_sql(amount.value, 0) if f == "timestamp_add_months" else interval_sql(None, amount.value)


def interval_sql(months: int | None, micros: int) -> str:
    """Return an interval of months or, without these, of microseconds as Spark SQL."""
    if months is not None:
        return f"INTERVAL '{months}' MONTH"
    sign = "-" if micros < 0 else ""
    seconds, micros = divmod(abs(micros), 1_000_000)
    clock = f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}"
    return f"INTERVAL '{sign}{seconds // 86_400} {clock}' DAY TO SECOND"


def _case(args: Sequence[Node], render: Callable[[Node], str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=False)
    whens = "".join(f" WHEN {render(c)} THEN {render(v)}" for c, v in pairs)
    return f"(CASE{whens} ELSE {render(args[-1])} END)"


def literal_sql(value: Value, t: DataType) -> str:  # noqa: C901, PLR0911 - one line a type
    """Return a constant as Spark SQL of exactly its type."""
    if value is None:
        return "NULL" if t == types.VOID else f"CAST(NULL AS {types.sql_name(t)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_literal(value)
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, decimal.Decimal):
        text = f"{value:f}"
        plain = literals.decimal_literal(value)
        exact = plain is not None and plain.type == t
        return f"{text}BD" if exact else f"CAST({text}BD AS {types.sql_name(t)})"
    if isinstance(value, float):
        if not math.isfinite(value):
            word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"CAST('{word}' AS {types.sql_name(t)})"
        return f"{value!r}{'F' if t == types.FLOAT else 'D'}"
    if t == types.DATE:
        return f"DATE '{literals.format_date(value)}'"
    if t == types.TIMESTAMP:
        return f"TIMESTAMP '{literals.format_timestamp(value)}+00:00'"
    if t == types.TIMESTAMP_NTZ:
        return f"TIMESTAMP_NTZ '{literals.format_timestamp(value)}'"
    return f"{value}{_SUFFIX[t.name] if isinstance(t, types.Atomic) else ''}"
