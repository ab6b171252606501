"""The typed tree -> SQL text, for Spark and for DuckDB.

Both write every cast and every literal's type out, so that nothing is left to the other side's coercion. Spark's text
binds back to the same tree. DuckDB's text exists only where it is certain: the templates in `functions.EMITTED`, the
literals and the casts below, each replayed against Spark's answers in the tests; anything else is refused, and the core
evaluates it.

DuckDB's connection is expected to have `TimeZone` set to the tree's zone.
"""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

import decimal
import math
import re
from typing import TYPE_CHECKING, Final

from deltafast.expr import literals, types
from deltafast.expr.errors import UnsupportedExpressionError
from deltafast.expr.functions import EMITTED
from deltafast.expr.tree import Bound, Call, Cast, Col, In, Lit, Node, Value
from deltafast.expr.types import DataType, Decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["to_duckdb_sql", "to_spark_sql"]

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


def _node(tree: str | Bound | Node) -> Node:
    if isinstance(tree, str):
        tree = Bound.from_json(tree)
    return tree.expr if isinstance(tree, Bound) else tree


# --- Spark


def to_spark_sql(tree: str | Bound | Node) -> str:
    """Spark SQL that binds to the same tree under the same ANSI mode and zone."""
    return _spark(_node(tree))


def _spark(node: Node) -> str:
    match node:
        case Col(path=path):
            return ".".join("`" + p.replace("`", "``") + "`" for p in path)
        case Lit(value=value, type=t):
            return _spark_literal(value, t)
        case Cast(arg=arg, type=t, mode=mode):
            return f"{'TRY_CAST' if mode == 'try' else 'CAST'}({_spark(arg)} AS {types.sql_name(t)})"
        case In(arg=arg, values=values):
            return f"({_spark(arg)} IN ({', '.join(_spark_literal(v, arg.type) for v in values)}))"
        case Call(f=f, args=args):
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
    if f == "timestamp_add_months":
        return f"INTERVAL '{amount.value}' MONTH"
    sign = "-" if amount.value < 0 else ""
    seconds, micros = divmod(abs(amount.value), 1_000_000)
    clock = f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}"
    return f"INTERVAL '{sign}{seconds // 86_400} {clock}' DAY TO SECOND"


def _case(args: Sequence[Node], render: Callable[[Node], str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=False)
    whens = "".join(f" WHEN {render(c)} THEN {render(v)}" for c, v in pairs)
    return f"(CASE{whens} ELSE {render(args[-1])} END)"


def _spark_literal(value: Value, t: DataType) -> str:  # noqa: C901, PLR0911 - one line a type
    if value is None:
        return "NULL" if t == types.VOID else f"CAST(NULL AS {types.sql_name(t)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + "".join(_ESCAPES.get(c, c) for c in value) + "'"
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


# --- DuckDB

_DUCK_TYPES: Final = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
_EXACT_DECIMAL: Final = 15  # digits that a double holds exactly, and so does the division by a power of ten
_SCALAR_RESULT: Final = frozenset(("+", "-", "*", "negative", "abs"))
_MAX_DUCK_SUM: Final = 18  # the widest decimal whose sums and products DuckDB computes in 64 bits


def to_duckdb_sql(tree: str | Bound | Node, *, ansi: bool | None = None) -> str:
    """DuckDB SQL with exactly the tree's meaning.

    Args:
        tree: A bound tree.
        ansi: The mode, where `tree` is a bare node; on by default.

    Raises:
        UnsupportedExpressionError: DuckDB has no certain form for some part of it.
    """
    if isinstance(tree, str):
        tree = Bound.from_json(tree)
    mode = tree.ansi if isinstance(tree, Bound) and ansi is None else ansi is not False
    return _Duck(ansi=mode).render(_node(tree))


class _Duck:
    def __init__(self, *, ansi: bool) -> None:
        self.ansi = ansi

    def refuse(self, what: str) -> UnsupportedExpressionError:
        return UnsupportedExpressionError(f"{what} has no certain form in DuckDB; the core evaluates it")

    def type(self, t: DataType) -> str:
        if isinstance(t, Decimal):
            return f"DECIMAL({t.precision},{t.scale})"
        name = _DUCK_TYPES.get(t.name) if isinstance(t, types.Atomic) and t.collation is None else None
        if name is None:
            raise self.refuse(f"the type {types.sql_name(t)}")
        return name

    def render(self, node: Node) -> str:
        match node:
            case Col(path=path):
                text = _identifier(path[0])
                for part in path[1:]:
                    text = f"struct_extract({text}, {_duck_text(part)})"
                return text
            case Lit(value=value, type=t):
                return self.literal(value, t)
            case In(arg=arg, values=values):
                return f"({self.render(arg)} IN ({', '.join(self.literal(v, arg.type) for v in values)}))"
            case Cast():
                return self.cast(node)
            case Call():
                return self.call(node)

    def literal(self, value: Value, t: DataType) -> str:  # noqa: C901, PLR0911 - one line a type
        if t == types.VOID:
            return "NULL"
        name = self.type(t)
        if value is None:
            return f"CAST(NULL AS {name})"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return _duck_text(value)
        if isinstance(value, bytes):
            return f"unhex('{value.hex()}')"
        if isinstance(value, float):
            word = repr(value) if math.isfinite(value) else "NaN" if math.isnan(value) else f"{value}inity"
            return f"CAST('{word.replace('infinity', 'Infinity')}' AS {name})"
        if isinstance(value, decimal.Decimal):
            return f"CAST('{value:f}' AS {name})"
        if t == types.DATE:
            return f"(DATE '1970-01-01' + ({value}))"
        if t == types.TIMESTAMP:
            return f"make_timestamptz(CAST({value} AS BIGINT))"
        if t == types.TIMESTAMP_NTZ:
            return f"make_timestamp(CAST({value} AS BIGINT))"
        return f"CAST('{value}' AS {name})"

    def call(self, node: Call) -> str:
        if node.f == "like":
            return self.like(node)
        if node.f in ("map", "named_struct"):
            return self.made(node)
        known = EMITTED.get(node.f)
        if known is None or known.duckdb is None:
            raise self.refuse(f"{node.f}()")
        if known.ansi_only and not self.ansi:
            raise self.refuse(f"{node.f}() without ANSI errors")
        for arg in node.args:
            self.type(types.INTEGER if arg.type == types.VOID else arg.type) if node.f not in _ANY_TYPE else None
        if isinstance(node.type, Decimal) or any(isinstance(a.type, Decimal) for a in node.args):
            self.check_decimals(node)
        if node.f == "case":
            return _case(node.args, self.render)
        args = [self.render(a) for a in node.args]
        text = re.sub(r"\{\*([^}]*)\}", lambda m: m[1].join(args), known.duckdb)
        text = re.sub(r"\{(\d)\}", lambda m: args[int(m[1])], text) if "{*" not in known.duckdb else text
        if node.f in _SCALAR_RESULT:
            return f"CAST({text} AS {self.type(node.type)})"
        return text

    def made(self, node: Call) -> str:
        """A map or a struct out of scalars."""
        firsts, values = node.args[::2], node.args[1::2]
        for value in node.args:
            self.type(value.type)
        rendered = [self.render(value) for value in values]
        if node.f == "named_struct":
            names = [str(name.value) for name in firsts if isinstance(name, Lit)]
            if len({name.lower() for name in names}) < len(names) or "" in names:
                raise self.refuse("a struct of such names")
            pairs = zip(names, rendered, strict=True)
            return f"struct_pack({', '.join(f'{_identifier(name)} := {value}' for name, value in pairs)})"
        # Spark takes -0.0 for 0.0, which DuckDB keeps apart.
        if not firsts or firsts[0].type in (types.FLOAT, types.DOUBLE):
            raise self.refuse("a map of such keys")
        return f"map([{', '.join(self.render(key) for key in firsts)}], [{', '.join(rendered)}])"

    def check_decimals(self, node: Call) -> None:
        """Decimal arithmetic only where both sides compute exactly and DuckDB has the digits for the result."""
        if node.f in ("/", "div", "%"):
            raise self.refuse(f"{node.f} of decimals")
        if node.f in ("+", "-", "*"):
            a, b = (x.type for x in node.args)
            if not isinstance(a, Decimal) or not isinstance(b, Decimal):
                raise self.refuse(f"{node.f} of decimals")
            whole = max(a.precision - a.scale, b.precision - b.scale) + max(a.scale, b.scale) + 1
            if (a.precision + b.precision if node.f == "*" else whole) > _MAX_DUCK_SUM:
                raise self.refuse(f"{node.f} of wide decimals")

    def like(self, node: Call) -> str:
        value, pattern, escape = node.args
        if not isinstance(pattern, Lit) or not isinstance(pattern.value, str) or not isinstance(escape, Lit):
            raise self.refuse("LIKE with a computed pattern")
        char = str(escape.value)
        if not re.fullmatch(
            f"(?:[^{re.escape(char)}]|{re.escape(char)}[%_{re.escape(char)}])*", pattern.value, re.DOTALL
        ):
            raise self.refuse("LIKE with an escape before an ordinary character")
        return f"({self.render(value)} LIKE {_duck_text(pattern.value)} ESCAPE {_duck_text(char)})"

    def cast(self, node: Cast) -> str:
        source, to = node.arg.type, node.type
        inner, name = self.render(node.arg), self.type(to)
        if source == types.VOID or _duck_exact(source, to):
            return f"CAST({inner} AS {name})"
        if node.mode != "legacy" and (types.is_integral(to) or isinstance(to, Decimal)) and _duck_narrow(source, to):
            word = "TRY_CAST" if node.mode == "try" else "CAST"
            # DuckDB rounds to an integer where Spark cuts.
            return f"{word}({inner if types.is_integral(source) else f'trunc({inner})'} AS {name})"
        raise self.refuse(f"the cast of {types.sql_name(source)} to {types.sql_name(to)}")


_ANY_TYPE: Final = frozenset(("isnull", "isnotnull"))


def _duck_exact(source: DataType, to: DataType) -> bool:  # noqa: PLR0911 - one line a type
    """Casts that cannot fail and have one possible answer."""
    if types.is_integral(source):
        if types.is_integral(to):
            return types.integral_range(source)[1] <= types.integral_range(to)[1]
        if isinstance(to, Decimal):
            return types.integral_range(source)[1] < 10 ** (to.precision - to.scale)
        return to in (types.DOUBLE, types.STRING, types.BOOLEAN)
    if isinstance(source, Decimal):
        if isinstance(to, Decimal):
            return source.scale <= to.scale and source.precision - source.scale <= to.precision - to.scale
        return to == types.DOUBLE and source.precision <= _EXACT_DECIMAL
    if source == types.BOOLEAN:
        return to == types.STRING or types.is_integral(to)
    return (source, to) in ((types.FLOAT, types.DOUBLE), (types.DATE, types.TIMESTAMP_NTZ))


def _duck_narrow(source: DataType, to: DataType) -> bool:
    """Casts that raise alike when the value does not fit."""
    if types.is_integral(to):
        return types.is_integral(source) or isinstance(source, Decimal)
    return isinstance(to, Decimal) and types.is_integral(source)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duck_text(text: str) -> str:
    if "\0" in text:
        msg = "a text with a zero byte has no certain form in DuckDB; the core evaluates it"
        raise UnsupportedExpressionError(msg)
    return "'" + text.replace("'", "''") + "'"
