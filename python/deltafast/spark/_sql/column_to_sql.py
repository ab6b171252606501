"""Columns of PySpark -> Spark SQL, which the core binds and evaluates.

A column is an unresolved expression tree. A classic one is read node by node through Java, one of Connect is a Python
object. Expressions without an equivalent in SQL (Python functions, lambdas, windows) are rejected.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._ops.delete_update import literal
from deltafast._sql.expressions import plain
from deltafast._sql.tree import Expression
from deltafast._util.dialect import Dialect
from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark._session.session import frame_alias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["ONE_TABLE", "Sides", "as_condition", "as_values", "sides_of"]

_INFIX: Final = {"=": "=", "==": "=", "and": "AND", "or": "OR", "like": "LIKE", "rlike": "RLIKE", "ilike": "ILIKE"}
_INFIX_TOO: Final = ("<=>", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "&", "|", "^")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Sides(NamedTuple):
    """The sides of a MERGE, for columns taken from a data frame, `source["id"]`, whose expression names no side."""

    #: The aliases of target and source in SQL; None if there is only one table.
    target: str | None = None
    source: str | None = None
    #: Numbers of the source's columns (classic), or of its plan (Connect).
    ids: frozenset[int] = frozenset()

    def owner(self, number: int) -> str | None:
        """Return the alias of the side that a number belongs to."""
        return self.source if number in self.ids else self.target


ONE_TABLE: Final = Sides()


def as_condition(condition: Any, sides: Sides = ONE_TABLE, what: str = "'condition'") -> str | None:
    """Return a condition as Spark SQL; None for None.

    Args:
        condition: SQL, or a column of PySpark.
        sides: The sides to which columns belong.
        what: The argument's name, for the message.

    Raises:
        TypeError: The condition is neither.
        UnsupportedExpressionError: The column cannot be written as SQL.
    """
    if condition is None:
        return None
    if isinstance(condition, str):
        return plain(Expression(condition, 0), (), dialect=Dialect.SPARK)
    if not _is_column(condition):
        message = f"{what} must be a Spark SQL Column or a string (expression in SQL syntax), found to be of type "
        raise TypeError(message + str(cast("Any", type(condition))))
    return _rendered(condition, sides)


def as_values(values: Any, sides: Sides = ONE_TABLE, what: str = "'set'") -> dict[str, str]:
    """Return new values by column as Spark SQL.

    Raises:
        ValueError: There are no values.
        TypeError: They are not a dictionary from column names to SQL strings or columns of PySpark.
        UnsupportedExpressionError: A column cannot be written as SQL.
    """
    if values is None:
        message = f"{what} cannot be None"
        raise ValueError(message)
    if type(values) is not dict:
        message = f"{what} must be a dict, found to be {type(values)}"
        raise TypeError(message)
    out: dict[str, str] = {}
    for name, value in cast("Mapping[Any, Any]", values).items():
        if not isinstance(name, str):
            message = f"Keys of dict in {what} must contain only strings with column names, found {name!r}"
            raise TypeError(message)
        if not isinstance(value, str) and not _is_column(value):
            message = f"Values of dict in {what} must contain only Spark SQL Columns or strings (expressions in SQL "
            raise TypeError(message + f"syntax) as values, found {value!r} of type {type(value)}")
        out[name] = cast("str", as_condition(value, sides))
    return out


def sides_of(source: Any, target_alias: str | None) -> Sides:
    """Return the two sides of a merge, each with the alias of its data frame, or `target` and `source`."""
    if hasattr(source, "_jdf"):
        output = source._jdf.queryExecution().analyzed().output()
        attributes = [output.apply(n) for n in range(output.size())]
        ids = frozenset(attribute.exprId().id() for attribute in attributes)
    else:
        ids = frozenset({source._plan._plan_id})
    alias = frame_alias(source)
    target = target_alias or ("target" if alias != "target" else "target_table")
    return Sides(target, alias or ("source" if target != "source" else "source_rows"), ids)


def _is_column(value: Any) -> bool:
    from pyspark.sql import Column

    return isinstance(value, Column)


def _rendered(column: Any, sides: Sides) -> str:
    if hasattr(column, "_jc"):
        return _Classic(sides).text(column._jc.node())
    return _Connect(sides).text(column._expr)


def _last(names: Any) -> str | None:
    return str(names.apply(names.size() - 1)) if names.size() else None


class _Renderer:
    """The common part for both kinds of trees: calls and names."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides

    def call(self, name: str, args: list[str]) -> str:  # noqa: PLR0911 - one line per form
        """Return a function call or an operator."""
        low = name.lower()
        if low in _INFIX or (low in _INFIX_TOO and len(args) > 1):
            return "(" + f" {_INFIX.get(low, low)} ".join(args) + ")"
        match low, args:
            case (("!" | "not"), [one]):
                return f"(NOT {one})"
            case (("-" | "negative"), [one]):
                return f"(- {one})"
            case "~", [one]:
                return f"(~ {one})"
            case "isnull", [one]:
                return f"({one} IS NULL)"
            case "isnotnull", [one]:
                return f"({one} IS NOT NULL)"
            case "in", [one, *several]:
                return f"({one} IN ({', '.join(several)}))"
            case "when", _:
                pairs = [f" WHEN {args[n]} THEN {args[n + 1]}" for n in range(0, len(args) - 1, 2)]
                return f"(CASE{''.join(pairs)}{f' ELSE {args[-1]}' if len(args) % 2 else ''} END)"
            case _:
                if not _WORD.fullmatch(name):
                    self.refuse(f"the operator {name}")
                return f"{name}({', '.join(args)})"

    def name(self, parts: Collection[str], number: int | None) -> str:
        """Return a column, qualified with the alias of its side if its data frame is known."""
        owner = None if number is None else self.sides.owner(number)
        return ".".join(map(quoted, parts if owner is None else (owner, *parts)))

    def refuse(self, what: str) -> NoReturn:
        """Raise an error for an expression that cannot be written as SQL."""
        message = f"{what} of a Column cannot be written as SQL; give the condition or value as SQL text"
        raise UnsupportedExpressionError(message)


class _Classic(_Renderer):
    """Expressions of classic sessions, which are Java objects."""

    def text(self, node: Any) -> str:  # noqa: PLR0911 - one line per kind
        """Return an expression as SQL."""
        class_name = str(node.getClass().getSimpleName())
        match class_name:
            case "SqlExpression":
                return f"({plain(Expression(str(node.expression()), 0), (), dialect=Dialect.SPARK)})"
            case "UnresolvedAttribute":
                names = node.nameParts()
                return self.name([str(names.apply(n)) for n in range(names.size())], None)
            case "UnresolvedFunction" if not node.isDistinct():
                return self.call(str(node.functionName()), self._all(node.arguments()))
            case "Literal":
                return self._literal(node)
            case "Alias":
                return self.text(node.child())
            case "Cast":
                mode = node.evalMode()
                how = "try_cast" if mode.isDefined() and str(mode.get()) == "TRY" else "CAST"
                return f"{how}({self.text(node.child())} AS {node.dataType().sql()})"
            case "UnresolvedExtractValue":
                return f"{self.text(node.child())}[{self.text(node.extraction())}]"
            case "CaseWhenOtherwise":
                branches, rest = node.branches(), node.otherwise()
                pairs = [branches.apply(n) for n in range(branches.size())]
                args = [self.text(part) for pair in pairs for part in (pair._1(), pair._2())]
                return self.call("when", args + ([self.text(rest.get())] if rest.isDefined() else []))
            case "ExpressionColumnNode":
                return self._resolved(node.expression())
            case _:
                self.refuse(f"the {class_name}")

    def _all(self, nodes: Any) -> list[str]:
        return [self.text(nodes.apply(n)) for n in range(nodes.size())]

    def _resolved(self, expression: Any) -> str:
        """Return a column that was taken from a data frame."""
        class_name = str(expression.getClass().getSimpleName())
        if class_name != "AttributeReference":
            self.refuse(f"the {class_name}")
        number, qualifier = int(expression.exprId().id()), _last(expression.qualifier())
        alias = [] if qualifier is None or self.sides.owner(number) is not None else [qualifier]
        return self.name([*alias, str(expression.name())], number)

    def _literal(self, node: Any) -> str:
        value: Any = node.value()
        if isinstance(value, int) and not isinstance(value, bool):
            return str(node.sql())
        if not hasattr(value, "getClass"):
            return literal(value)
        java: Any = value
        class_name = str(java.getClass().getName())
        match class_name:
            case "java.sql.Date" | "java.time.LocalDate":
                return f"DATE '{java.toString()}'"
            case "java.sql.Timestamp":
                timestamp = _EPOCH + timedelta(seconds=java.getTime() // 1000, microseconds=java.getNanos() // 1000)
                return literal(timestamp)
            case "java.time.Instant":
                return f"TIMESTAMP '{java.toString()}'"
            case "java.time.LocalDateTime":
                return f"TIMESTAMP_NTZ '{java.toString()}'"
            case _:
                self.refuse(f"the literal {node.sql()} ({class_name})")


class _Connect(_Renderer):
    """Expressions of Connect sessions, which are Python objects."""

    def text(self, node: Any) -> str:  # noqa: PLR0911 - one line per kind
        """Return an expression as SQL."""
        class_name = type(node).__name__
        match class_name:
            case "SQLExpression":
                return f"({plain(Expression(node._expr, 0), (), dialect=Dialect.SPARK)})"
            case "ColumnReference":
                name = str(node._unparsed_identifier)
                if node._plan_id is None:
                    return name
                return self.name([name], node._plan_id) if "`" not in name else name
            case "UnresolvedFunction" if not node._is_distinct:
                return self.call(node._name, [self.text(arg) for arg in node._args])
            case "LiteralExpression":
                return self._literal(node)
            case "ColumnAlias":
                return self.text(node._child)
            case "CastExpression":
                of = node._data_type if isinstance(node._data_type, str) else node._data_type.simpleString()
                return f"{'try_cast' if node._eval_mode == 'try' else 'CAST'}({self.text(node._expr)} AS {of})"
            case "UnresolvedExtractValue":
                return f"{self.text(node._child)}[{self.text(node._extraction)}]"
            case "CaseWhen":
                args = [self.text(part) for pair in node._branches for part in pair]
                return self.call("when", args + ([] if node._else_value is None else [self.text(node._else_value)]))
            case _:
                self.refuse(f"the {class_name}")

    def _literal(self, node: Any) -> str:
        value, class_name = node._value, type(node._dataType).__name__
        if value is None:
            return "NULL"
        match class_name:
            case "DateType" if isinstance(value, int):
                return literal(date(1970, 1, 1) + timedelta(days=value))
            case "TimestampType" if isinstance(value, int):
                return literal(_EPOCH + timedelta(microseconds=value))
            case "TimestampNTZType" if isinstance(value, int):
                return literal((_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None))
            case "LongType":
                return f"{value}L"
            case "BooleanType" | "IntegerType" | "DoubleType" | "StringType" | "BinaryType" | "DecimalType":
                return literal(bytes(value) if isinstance(value, bytearray) else value)
            case _:
                self.refuse(f"the literal of type {class_name}")
