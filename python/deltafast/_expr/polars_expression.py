"""A `polars.Expr` -> syntax.

The input is Polars' own JSON of the expression (`expr.meta.serialize(format="json")`), as in Polars 2.1. That
format is not guaranteed to be stable, so every unknown form is refused with `UnsupportedExpressionError`; a
lazy frame then filters by itself, which is only slower.

Polars and Spark agree on NaN (equal to itself, greater than everything) and on nulls; where they differ (arithmetic
wraps in Polars and raises in Spark, casts differ, strings cannot be compared with numbers) the expression is refused.
"""

from __future__ import annotations

import ctypes
import io
import json
import warnings
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._expr import types
from deltafast._expr.decimals import from_unscaled
from deltafast._expr.dnf import null_or
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.python_values import constant
from deltafast._expr.syntax import (
    Binary,
    Constant,
    FieldOf,
    Func,
    InList,
    InValues,
    Logical,
    Name,
    Syntax,
    Test,
    TestKind,
    Unary,
)
from deltafast._expr.tree import Lit
from deltafast._expr.types import DataType, Decimal
from deltafast._expr.value_lists import python_values
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._expr.binder import Binder

__all__ = ["from_polars"]

MAX_DEPTH: Final = 200
_COMPARE: Final = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "EqValidity": "<=>",
}
_LOGIC: Final = {"And": "and", "LogicalAnd": "and", "Or": "or", "LogicalOr": "or"}
_INTEGERS: Final = {
    "Int8": types.BYTE,
    "Int16": types.SHORT,
    "Int32": types.INTEGER,
    "Int64": types.LONG,
    "UInt8": types.SHORT,
    "UInt16": types.INTEGER,
    "UInt32": types.LONG,
}
_MICROS: Final = {"Milliseconds": (1000, 1), "Microseconds": (1, 1), "Nanoseconds": (1, 1000)}
_DATE_PARTS: Final = {"Year": "year", "Month": "month", "Day": "day", "Quarter": "quarter", "OrdinalDay": "dayofyear"}


def from_polars(expression: object, binder: Binder) -> Syntax:
    """Translate a Polars expression.

    Raises:
        UnsupportedExpressionError: A part has no exact equivalent here; filter in Polars instead.
    """
    serialize = getattr(getattr(expression, "meta", None), "serialize", None)
    if not callable(serialize):
        msg = f"a Polars {type(expression).__name__} is not a predicate; pass an expression such as pl.col('a') > 1"
        raise UnsupportedExpressionError(msg)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = cast("Callable[..., str]", serialize)(format="json")
        raw = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"Polars cannot write this expression down ({error}); filter in Polars"
        raise UnsupportedExpressionError(msg) from error
    except Exception as error:
        # Polars' own exceptions (Python functions, plugins); its class is not imported for this one line.
        if type(error).__module__.partition(".")[0] != "polars":
            raise
        msg = f"Polars cannot write this expression down ({error}); filter in Polars"
        raise UnsupportedExpressionError(msg) from error
    try:
        return _Translator(binder).node(raw)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise _unknown(raw) from error


class _Translator:
    def __init__(self, binder: Binder) -> None:
        self.binder = binder
        self.depth = 0

    def node(self, raw: Any) -> Syntax:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            msg = f"the Polars expression nests more than {MAX_DEPTH} levels deep; use is_in() for long lists"
            raise UnsupportedExpressionError(msg)
        (kind, body), *rest = raw.items()
        if rest:
            raise _unknown(raw)
        if kind == "Column":
            found: Syntax = Name((str(body),))
        elif kind == "Literal":
            found = _literal(raw, body)
        elif kind == "BinaryExpr":
            found = self.binary(body)
        elif kind == "Function":
            found = self.function(raw, body["input"], body["function"])
        elif kind == "Alias":
            found = self.node(body[0])
        else:
            raise _unknown(raw)
        self.depth -= 1
        return found

    def binary(self, body: dict[str, Any]) -> Syntax:
        op = body["op"]
        left, right = self.node(body["left"]), self.node(body["right"])
        if op in _LOGIC:
            self.booleans(left, right)
            return Logical(_LOGIC[op], (left, right))
        left, right = self.like(right, left, body["left"]), self.like(left, right, body["right"])
        if op in _COMPARE:
            self.comparable(left, right)
            return Binary(_COMPARE[op], left, right)
        if op == "NotEqValidity":
            self.comparable(left, right)
            return Unary("not", Binary("<=>", left, right))
        msg = f"the Polars operator {op} is not evaluated here; filter in Polars"
        raise UnsupportedExpressionError(msg)

    def function(self, raw: Any, inputs: list[Any], function: Any) -> Syntax:
        if not isinstance(function, dict):
            raise _unknown(raw)
        (family, name), *_ = cast("dict[str, Any]", function).items()
        if family == "Boolean":
            return self.boolean(raw, inputs, name)
        args = [self.node(i) for i in inputs]
        if family == "StringExpr" and (name in ("StartsWith", "EndsWith") or _literal_contains(name)):
            return self.text(str(name) if isinstance(name, str) else "Contains", args)
        if family == "StructExpr" and isinstance(name, dict) and "FieldByName" in name:
            return FieldOf(args[0], str(cast("dict[str, Any]", name)["FieldByName"]))
        if family == "TemporalExpr" and name in _DATE_PARTS and self.kind(args[0]) == types.DATE:
            return Func(_DATE_PARTS[name], (args[0],))
        raise _unknown(raw)

    def text(self, name: str, args: list[Syntax]) -> Syntax:
        if any(not types.is_string(self.kind(a)) for a in args):
            raise _unknown(name)
        return Func({"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}[name], tuple(args))

    def boolean(self, raw: Any, inputs: list[Any], name: Any) -> Syntax:  # noqa: PLR0911 - one line a function
        options: dict[str, Any] = {}
        if isinstance(name, dict):
            (name, options), *_ = cast("dict[str, Any]", name).items()
        if name == "IsIn":
            return self.is_in(raw, inputs, options)
        args = [self.node(i) for i in inputs]
        if name == "Not":
            self.booleans(*args)
            return Unary("not", args[0])
        if name == "IsNull":
            return Test(TestKind.NULL, args[0])
        if name == "IsNotNull":
            return Unary("not", Test(TestKind.NULL, args[0]))
        if name in ("IsNan", "IsNotNan") and self.kind(args[0]) in (types.FLOAT, types.DOUBLE):
            nan = Func("isnan", (args[0],))
            return null_or(args[0], nan if name == "IsNan" else Unary("not", nan))
        if name == "IsBetween":
            low = ">=" if options["closed"] in ("Both", "Left") else ">"
            high = "<=" if options["closed"] in ("Both", "Right") else "<"
            ends = [self.like(args[0], arg, given) for arg, given in zip(args[1:], inputs[1:], strict=True)]
            for end in ends:
                self.comparable(args[0], end)
            return Logical("and", (Binary(low, args[0], ends[0]), Binary(high, args[0], ends[1])))
        if name in ("AllHorizontal", "AnyHorizontal") and args:
            self.booleans(*args)
            return args[0] if len(args) == 1 else Logical("and" if name == "AllHorizontal" else "or", tuple(args))
        raise _unknown(raw)

    def is_in(self, raw: Any, inputs: list[Any], options: dict[str, Any]) -> Syntax:
        value = self.node(inputs[0])
        (kind, _), *_ = inputs[1].items()
        if kind != "Literal":
            raise _unknown(raw)
        items = _values(inputs[1])
        present = [item for item in items if item is not None]
        test = self.membership(value, present) if present else None
        if not options.get("nulls_equal"):
            # Polars leaves nulls out of the list: null only for a null.
            if test is not None:
                return test
            return null_or(value, Constant(Lit(value=False, type=types.BOOLEAN)))
        found: Syntax = Constant(Lit(value=False, type=types.BOOLEAN))
        if test is not None:
            found = Logical("and", (Unary("not", Test(TestKind.NULL, value)), test))
        return Logical("or", (Test(TestKind.NULL, value), found)) if len(present) < len(items) else found

    def membership(self, value: Syntax, present: list[Any]) -> Syntax:
        """Return the test for one of the values, none of which is null."""
        listed = python_values(present)
        if listed is not None:
            for kind in listed.types:
                self.comparable(value, Constant(Lit(listed.values[0], kind)))
            return InValues(value, listed)
        items = tuple(map(constant, present))
        for item in items:
            self.comparable(value, item)
        return InList(value, items)

    def like(self, other: Syntax, node: Syntax, raw: Any) -> Syntax:
        """Return a number without a type of its own as a float, if that is what Polars compares it with."""
        match raw:
            case {"Literal": {"Dyn": {"Float": float() | int() as number} | {"Int": int() as number}}}:
                if self.kind(other) == types.FLOAT:
                    return Constant(Lit(ctypes.c_float(number).value, types.FLOAT))
            case _:
                pass
        return node

    def kind(self, node: Syntax) -> DataType:
        return self.binder.bind(node).type

    def booleans(self, *nodes: Syntax) -> None:
        """`&` of integers is arithmetic in Polars."""
        for node in nodes:
            if self.kind(node) not in (types.BOOLEAN, types.VOID):
                msg = (
                    f"{types.sql_name(self.kind(node))} is not a condition in Polars' logic; compare it with something"
                )
                raise UnsupportedExpressionError(msg)

    def comparable(self, left: Syntax, right: Syntax) -> None:
        """Polars compares within a family; across families Spark would cast and Polars raise."""
        a, b = _family(self.kind(left)), _family(self.kind(right))
        if a != b and "void" not in (a, b) and {a, b} != {"number", "decimal"}:
            names = f"{types.sql_name(self.kind(left))} and {types.sql_name(self.kind(right))}"
            msg = f"{names} are not compared alike in Polars and here; filter in Polars"
            raise UnsupportedExpressionError(msg)
        if {a, b} == {"number", "decimal"} and not all(
            isinstance(t, Decimal) or types.is_integral(t) for t in (self.kind(left), self.kind(right))
        ):
            msg = "decimals and floats are not compared alike in Polars and here; filter in Polars"
            raise UnsupportedExpressionError(msg)


def _family(kind: DataType) -> str:
    if isinstance(kind, Decimal):
        return "decimal"
    return "number" if types.is_numeric(kind) else kind.name if isinstance(kind, types.Atomic) else types.sql_name(kind)


def _literal_contains(name: Any) -> bool:
    return isinstance(name, dict) and bool(cast("dict[str, Any]", name).get("Contains", {}).get("literal"))


def _literal(raw: Any, body: Any) -> Constant:
    (kind, value), *_ = body.items()
    if kind == "Dyn":
        (kind, value), *_ = value.items()
        if kind == "Int":
            return constant(int(value))
        if kind == "Float" and value is not None:
            return constant(float(value))
        if kind == "Str":
            return constant(str(value))
        raise _unknown(raw)
    if kind != "Scalar":
        raise _unknown(raw)
    return _scalar(raw, value)


def _scalar(raw: Any, body: Any) -> Constant:  # noqa: C901, PLR0911 - one line a type
    kind, value = _pair(body)
    if kind == "Null":
        return constant(None)
    if kind in _INTEGERS:
        return Constant(Lit(int(value), _INTEGERS[kind]))
    if kind in ("Float32", "Float64"):
        if value is None:  # JSON has no NaN and no infinity; which of them it was is lost
            raise _unknown(raw)
        return Constant(Lit(float(value), types.FLOAT if kind == "Float32" else types.DOUBLE))
    if kind in ("Boolean", "String"):
        return constant(value)
    if kind in ("Binary", "BinaryOwned"):
        return constant(bytes(value))
    if kind == "Date":
        return Constant(Lit(int(value), types.DATE))
    if kind in ("Datetime", "DatetimeOwned"):
        times, by = _MICROS[value[1]]
        if int(value[0]) % by:
            msg = "a timestamp with nanoseconds: Delta's have microseconds; round it first"
            raise UnsupportedExpressionError(msg)
        return Constant(Lit(int(value[0]) * times // by, types.timestamp_type(value[2])))
    if kind == "Decimal":
        return constant(from_unscaled(int(value[0]), int(value[2])))
    raise _unknown(raw)


def _pair(body: Any) -> tuple[str, Any]:
    """`{"Int64": 5}` as its name and value, `"Null"` as a name alone."""
    return next(iter(cast("dict[str, Any]", body).items())) if isinstance(body, dict) else (str(body), None)


def _values(raw: Any) -> list[Any]:
    """The values of a list literal: Polars keeps them as its own IPC bytes, so Polars reads them back."""
    import polars as pl

    match raw:
        case {"Literal": {"Scalar": {"List": [*stream]}}}:
            # Read directly: a long list as JSON once more takes most of the time.
            series = pl.read_ipc_stream(bytes(stream)).to_series()
        case _:
            expression = pl.Expr.deserialize(io.StringIO(json.dumps(raw)), format="json")
            series = pl.select(expression).to_series()
            if isinstance(series.dtype, (pl.List, pl.Array)):
                series = series.explode()
    if series.dtype.is_float() and series.is_nan().any():
        msg = "a list with NaN is not evaluated here; filter in Polars"
        raise UnsupportedExpressionError(msg)
    return series.to_list()


def _unknown(raw: Any) -> UnsupportedExpressionError:
    shown = json.dumps(raw)[:80] if not isinstance(raw, str) else raw
    return UnsupportedExpressionError(f"this Polars expression is not evaluated here: {shown}; filter in Polars")
