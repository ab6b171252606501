"""Columns of PySpark -> syntax, which the binder takes as it takes that of SQL.

A column is an unresolved expression tree. A classic one is read node by node through Java, one of Connect is a Python
object. Expressions without an equivalent in SQL (Python functions, lambdas, windows) are rejected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

from deltafast._expr import token_kind, types
from deltafast._expr.cursor import TokenCursor
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.literals import MICROS_PER_DAY
from deltafast._expr.parser import parse
from deltafast._expr.python_values import constant
from deltafast._expr.syntax import (
    Binary,
    Case,
    CastTo,
    Constant,
    Func,
    InList,
    InValues,
    Item,
    Like,
    LikeKind,
    Logical,
    Name,
    Syntax,
    Test,
    TestKind,
    Unary,
    without_positions,
)
from deltafast._expr.tree import Lit
from deltafast._expr.type_parser import read_type
from deltafast._expr.value_lists import literal_values
from deltafast._sql.expressions import plain
from deltafast._sql.tree import Expression
from deltafast._util.column_path import parts_of_text
from deltafast._util.dialect import Dialect
from deltafast.spark._session.session import frame_alias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltafast._expr.types import DataType
    from deltafast.spark._session.session import Session

__all__ = ["ONE_TABLE", "Sides", "as_condition", "as_values", "sides_of"]

_BINARY: Final = {"==": "="} | {
    op: op for op in ("=", "<=>", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "&", "|", "^")
}
_UNARY: Final = {"!": "not", "not": "not", "-": "-", "negative": "-", "~": "~"}
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
#: Types of Connect's literals, by the names of PySpark's classes.
_LITERALS: Final = {
    "BooleanType": types.BOOLEAN,
    "ByteType": types.BYTE,
    "ShortType": types.SHORT,
    "IntegerType": types.INTEGER,
    "LongType": types.LONG,
    "FloatType": types.FLOAT,
    "DoubleType": types.DOUBLE,
    "StringType": types.STRING,
    "DateType": types.DATE,
    "TimestampType": types.TIMESTAMP,
    "TimestampNTZType": types.TIMESTAMP_NTZ,
}


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


def as_condition(
    condition: Any, session: Session, sides: Sides = ONE_TABLE, what: str = "'condition'"
) -> str | Syntax | None:
    """Return a condition: SQL as text, a column as syntax; None for None.

    Args:
        condition: SQL, or a column of PySpark.
        session: The session.
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
    is_classic = hasattr(condition, "_jc")
    reader = _Classic(sides, session) if is_classic else _Connect(sides, session)
    root = condition._jc.node() if is_classic else condition._expr
    sql = reader.sql(root)
    return reader.read(root) if sql is None else f"({plain(Expression(sql, 0), (), dialect=Dialect.SPARK)})"


def as_values(values: Any, session: Session, sides: Sides = ONE_TABLE, what: str = "'set'") -> dict[str, str | Syntax]:
    """Return new values by column: SQL as text, columns as syntax.

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
    out: dict[str, str | Syntax] = {}
    for name, value in cast("Mapping[Any, Any]", values).items():
        if not isinstance(name, str):
            message = f"Keys of dict in {what} must contain only strings with column names, found {name!r}"
            raise TypeError(message)
        if not isinstance(value, str) and not _is_column(value):
            message = f"Values of dict in {what} must contain only Spark SQL Columns or strings (expressions in SQL "
            raise TypeError(message + f"syntax) as values, found {value!r} of type {type(value)}")
        out[name] = as_condition(value, session, sides) or ""
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


def _strings(names: Any) -> list[str]:
    """Return the strings of a Scala sequence."""
    return [str(names.apply(n)) for n in range(names.size())]


class _Reader:
    """The common part for both kinds of trees: calls, names and types."""

    def __init__(self, sides: Sides, session: Session) -> None:
        self.sides = sides
        self.session = session

    def read(self, node: Any) -> Syntax:
        """Return a node as syntax."""
        raise NotImplementedError

    def sql(self, node: Any) -> str | None:
        """Return the text of a node that is SQL, from `expr`; None for any other node."""
        raise NotImplementedError

    def arguments(self, node: Any, name: str) -> Sequence[Any]:
        """Return the arguments of a node that is a call of this function; no arguments of any other node."""
        raise NotImplementedError

    def parsed(self, sql: str) -> Syntax:
        """Return SQL within a column, of which the other parts are not text."""
        return without_positions(parse(sql, dialect=Dialect.SPARK, zone=self.session.zone))

    def call(self, name: str, nodes: Sequence[Any]) -> Syntax:  # noqa: C901, PLR0911 - one line per form
        """Return a function call or an operator."""
        low = name.lower()
        if low in ("and", "or") and len(nodes) == len(("left", "right")):
            return self.chain(low, nodes)
        args = [self.read(node) for node in nodes]
        match low, args:
            case _, [left, right] if low in _BINARY:
                return Binary(_BINARY[low], left, right)
            case _, [arg] if low in _UNARY:
                return Unary(_UNARY[low], arg)
            case "isnull", [arg]:
                return Test(TestKind.NULL, arg)
            case "isnotnull", [arg]:
                return Unary("not", Test(TestKind.NULL, arg))
            case (("like" | "ilike" | "rlike"), [arg, pattern]):
                return Like(LikeKind(low), arg, (pattern,))
            case (("like" | "ilike"), [arg, pattern, Constant(Lit(str() as escape))]) if len(escape) == 1:
                return Like(LikeKind(low), arg, (pattern,), escape)
            case "in", [arg]:
                # Of no values: as Spark decides it, null for a null without ANSI mode.
                no = Constant(Lit(value=False, type=types.BOOLEAN))
                null = (Test(TestKind.NULL, arg), Constant(Lit(None, types.VOID)))
                return no if self.session.is_ansi else Case(None, (null,), no)
            case "in", [arg, *items]:
                constants = [item.lit for item in items if isinstance(item, Constant)]
                listed = literal_values(constants) if len(constants) == len(items) else None
                return InList(arg, tuple(items)) if listed is None else InValues(arg, listed)
            case "when", _:
                whens = tuple(zip(args[:-1:2], args[1::2], strict=False))
                return Case(None, whens, args[-1] if len(args) % 2 else None)
            case _:
                if not _WORD.fullmatch(name):
                    self.refuse(f"the operator {name}")
                return Func(low, tuple(args))

    def chain(self, op: str, nodes: Sequence[Any]) -> Logical:
        """Return a chain of AND or OR, which may be longer than Python's stack is deep."""
        args: list[Syntax] = []
        left: Any = None
        arguments: Sequence[Any] = nodes
        while len(arguments) == len(("left", "right")):
            left, right = arguments
            args.append(self.read(right))
            arguments = self.arguments(left, op)
        return Logical(op, (self.read(left), *reversed(args)))

    def name(self, parts: Sequence[str], number: int | None = None) -> Name:
        """Return a column, qualified with the alias of its side if its data frame is known."""
        owner = None if number is None else self.sides.owner(number)
        return Name(tuple(parts if owner is None else (owner, *parts)))

    def cast(self, node: Any, to: str, *, safe: bool) -> CastTo:
        """Return a cast to a type in DDL."""
        cursor = TokenCursor(to)
        kind = read_type(cursor)
        if cursor.token.kind is not token_kind.END:
            cursor.fail("expected the end of the type")
        return CastTo(self.read(node), kind, safe)

    def refuse(self, what: str) -> NoReturn:
        """Raise an error for an expression that cannot be written as SQL."""
        message = f"{what} of a Column cannot be written as SQL; give the condition or value as SQL text"
        raise UnsupportedExpressionError(message)


class _Classic(_Reader):
    """Expressions of classic sessions, which are Java objects."""

    def read(self, node: Any) -> Syntax:  # noqa: PLR0911 - one line per kind
        """Return a node as syntax."""
        class_name = _class_name(node)
        match class_name:
            case "SqlExpression":
                return self.parsed(str(node.expression()))
            case "UnresolvedAttribute":
                return self.name(_strings(node.nameParts()))
            case "UnresolvedFunction" if not node.isDistinct():
                return self.call(str(node.functionName()), _items(node.arguments()))
            case "Literal":
                return self.literal(node)
            case "Alias":
                return self.read(node.child())
            case "Cast":
                mode = node.evalMode()
                is_safe = mode.isDefined() and _class_name(mode.get()) == "Try$"
                return self.cast(node.child(), str(node.dataType().sql()), safe=is_safe)
            case "UnresolvedExtractValue":
                return Item(self.read(node.child()), self.read(node.extraction()))
            case "CaseWhenOtherwise":
                whens = [part for pair in _items(node.branches()) for part in (pair._1(), pair._2())]
                otherwise = node.otherwise()
                return self.call("when", [*whens, otherwise.get()] if otherwise.isDefined() else whens)
            case "ExpressionColumnNode":
                return self.resolved(node.expression())
            case _:
                self.refuse(f"the {class_name}")

    def sql(self, node: Any) -> str | None:
        """Return the text of a node that is SQL."""
        return str(node.expression()) if _class_name(node) == "SqlExpression" else None

    def arguments(self, node: Any, name: str) -> Sequence[Any]:
        """Return the arguments of a node that is a call of this function."""
        is_call = _class_name(node) == "UnresolvedFunction" and str(node.functionName()).lower() == name
        return _items(node.arguments()) if is_call else ()

    def resolved(self, expression: Any) -> Syntax:
        """Return a column that was taken from a data frame."""
        class_name = _class_name(expression)
        if class_name != "AttributeReference":
            self.refuse(f"the {class_name}")
        number, qualifier = int(expression.exprId().id()), _strings(expression.qualifier())
        alias = [] if self.sides.owner(number) is not None else qualifier[-1:]
        return self.name([*alias, str(expression.name())], number)

    def literal(self, node: Any) -> Constant:
        """Return a constant, which is a Java object if py4j has no Python type for it."""
        value: Any = node.value()
        if not hasattr(value, "getClass"):
            return constant(value)
        class_name = str(value.getClass().getName())
        match class_name:
            case "java.sql.Date":
                return Constant(Lit(value.toLocalDate().toEpochDay(), types.DATE))
            case "java.time.LocalDate":
                return Constant(Lit(value.toEpochDay(), types.DATE))
            case "java.sql.Timestamp":
                micros = value.getTime() // 1000 * 1_000_000 + value.getNanos() // 1000
                return Constant(Lit(micros, types.TIMESTAMP))
            case "java.time.Instant":
                micros = value.getEpochSecond() * 1_000_000 + value.getNano() // 1000
                return Constant(Lit(micros, types.TIMESTAMP))
            case "java.time.LocalDateTime":
                micros = value.toLocalDate().toEpochDay() * MICROS_PER_DAY + value.toLocalTime().toNanoOfDay() // 1000
                return Constant(Lit(micros, types.TIMESTAMP_NTZ))
            case _:
                self.refuse(f"the literal {node.sql()} ({class_name})")


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _items(sequence: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [sequence.apply(n) for n in range(sequence.size())]


class _Connect(_Reader):
    """Expressions of Connect sessions, which are Python objects."""

    def read(self, node: Any) -> Syntax:  # noqa: PLR0911 - one line per kind
        """Return a node as syntax."""
        class_name = type(node).__name__
        match class_name:
            case "SQLExpression":
                return self.parsed(str(node._expr))
            case "ColumnReference":
                return self.name(parts_of_text(str(node._unparsed_identifier)), node._plan_id)
            case "UnresolvedFunction" if not node._is_distinct:
                return self.call(str(node._name), node._args)
            case "LiteralExpression":
                return self.literal(node)
            case "ColumnAlias":
                return self.read(node._child)
            case "CastExpression":
                to = node._data_type if isinstance(node._data_type, str) else node._data_type.simpleString()
                return self.cast(node._expr, str(to), safe=node._eval_mode == "try")
            case "UnresolvedExtractValue":
                return Item(self.read(node._child), self.read(node._extraction))
            case "CaseWhen":
                whens = [part for pair in node._branches for part in pair]
                return self.call("when", whens if node._else_value is None else [*whens, node._else_value])
            case _:
                self.refuse(f"the {class_name}")

    def sql(self, node: Any) -> str | None:
        """Return the text of a node that is SQL."""
        return str(node._expr) if type(node).__name__ == "SQLExpression" else None

    def arguments(self, node: Any, name: str) -> Sequence[Any]:
        """Return the arguments of a node that is a call of this function."""
        return node._args if type(node).__name__ == "UnresolvedFunction" and node._name.lower() == name else ()

    def literal(self, node: Any) -> Constant:
        """Return a constant; a date is a number of days, and a timestamp one of microseconds."""
        value, class_name = node._value, type(node._dataType).__name__
        if value is None or class_name in ("BinaryType", "DecimalType"):
            return constant(value)
        kind: DataType | None = _LITERALS.get(class_name)
        if kind is None:
            self.refuse(f"the literal of type {class_name}")
        return Constant(Lit(value, kind))
