"""Predicates: one tree, evaluated over a row, and written for each surface that takes predicates."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import random

    from .types import ColumnType

Row: TypeAlias = dict[str, Any]
Predicate: TypeAlias = "Comparison | NullCheck | Membership | Connective | Negation"

#: Expressions are at most 4 MiB long.
_LONGEST_LITERAL = 1000
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_SQL_TYPES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "timestamp_ntz": "timestamp_ntz",
    "timestamp": "timestamp",
    "date": "date",
}


def sql_name(name: str) -> str:
    """Return a column's name in Delta's SQL."""
    return "`" + name.replace("`", "``") + "`"


def duckdb_name(name: str) -> str:
    """Return a column's name in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_literal(value: Any, column_type: ColumnType) -> str:
    """Return a value in Delta's SQL."""
    family = column_type.family
    if value is None:
        return "null"
    if family == "string":
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if family == "binary":
        return f"X'{value.hex()}'"
    if family == "boolean":
        return str(value).lower()
    if family == "decimal":
        return f"cast('{value:f}' as {column_type.delta})"
    return f"cast('{_plain_text(value)}' as {_SQL_TYPES[family]})"


def duckdb_literal(value: Any, column_type: ColumnType) -> str:  # noqa: PLR0911 - one line a type
    """Return a value in DuckDB's SQL."""
    family = column_type.family
    if family == "string":
        return "'" + value.replace("'", "''") + "'"
    if family == "binary":
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::blob"
    if family == "timestamp":
        return f"'{_plain_text(value)}+00'::timestamptz"
    if family == "timestamp_ntz":
        return f"'{_plain_text(value)}'::timestamp"
    if family == "boolean":
        return str(value).lower()
    if family == "decimal":
        return f"'{value:f}'::{column_type.delta}"
    return f"'{_plain_text(value)}'::{_SQL_TYPES[family]}"


def _plain_text(value: Any) -> str:
    """Return a number, date or timestamp as SQL casts it from a string; `strftime` does not pad years."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if isinstance(value, float) and math.isnan(value) else str(value)


def sort_key(value: Any) -> Any:
    """Return a key by which Spark compares: NaN equals itself and exceeds all numbers, zeros are equal."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def _is_nan(value: Any) -> bool:
    """Return whether filters refuse a value."""
    return isinstance(value, float) and math.isnan(value)


def _polars_literal(value: Any, column_type: ColumnType) -> pl.Expr:
    if isinstance(value, decimal.Decimal):
        return pl.lit(value, dtype=pl.Decimal(column_type.arrow.precision, column_type.arrow.scale))
    if isinstance(value, dt.datetime):
        return pl.lit(value, dtype=pl.Datetime("us", "UTC" if value.tzinfo else None))
    if column_type.family in ("string", "binary", "boolean", "date"):
        return pl.lit(value)
    return pl.lit(value, dtype=_POLARS_NUMBERS[column_type.family])


_POLARS_NUMBERS = {
    "byte": pl.Int8(),
    "short": pl.Int16(),
    "integer": pl.Int32(),
    "long": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
}


class Comparison(NamedTuple):
    """A column compared with a literal."""

    column: str
    column_type: ColumnType
    operator: str
    value: Any

    def holds(self, row: Row) -> bool | None:
        if row[self.column] is None:
            return None
        left, right = sort_key(row[self.column]), sort_key(self.value)
        return {
            "=": left == right,
            "<>": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[self.operator]

    def sql(self) -> str:
        return f"{sql_name(self.column)} {self.operator} {sql_literal(self.value, self.column_type)}"

    def duckdb(self) -> str:
        return f"{duckdb_name(self.column)} {self.operator} {duckdb_literal(self.value, self.column_type)}"

    def polars(self) -> pl.Expr:
        column, literal = cs.by_name(self.column), _polars_literal(self.value, self.column_type)
        return _compare(self.operator, column, literal)

    def pyarrow(self) -> pc.Expression:
        return _compare(
            self.operator, pc.field((self.column,)), pc.scalar(pa.scalar(self.value, self.column_type.arrow))
        )

    def filters(self) -> list[Any] | None:
        if _is_nan(self.value):
            return None
        return [[(self.column, {"<>": "!="}.get(self.operator, self.operator), self.value)]]


def _compare(operator: str, left: Any, right: Any) -> Any:
    match operator:
        case "=":
            return left == right
        case "<>":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


class NullCheck(NamedTuple):
    """Whether a column is null, or is not."""

    column: str
    negated: bool

    def holds(self, row: Row) -> bool | None:
        return (row[self.column] is None) != self.negated

    def sql(self) -> str:
        return f"{sql_name(self.column)} is {'not ' if self.negated else ''}null"

    def duckdb(self) -> str:
        return f"{duckdb_name(self.column)} is {'not ' if self.negated else ''}null"

    def polars(self) -> pl.Expr:
        column = cs.by_name(self.column)
        return column.is_not_null() if self.negated else column.is_null()

    def pyarrow(self) -> pc.Expression:
        field = pc.field((self.column,))
        return field.is_valid() if self.negated else field.is_null()

    def filters(self) -> list[Any] | None:
        return None


class Membership(NamedTuple):
    """A column that is one of some literals."""

    column: str
    column_type: ColumnType
    values: tuple[Any, ...]

    def holds(self, row: Row) -> bool | None:
        if row[self.column] is None:
            return None
        return sort_key(row[self.column]) in [sort_key(value) for value in self.values]

    def sql(self) -> str:
        literals = ", ".join(sql_literal(value, self.column_type) for value in self.values)
        return f"{sql_name(self.column)} in ({literals})"

    def duckdb(self) -> str:
        literals = ", ".join(duckdb_literal(value, self.column_type) for value in self.values)
        return f"{duckdb_name(self.column)} in ({literals})"

    def polars(self) -> pl.Expr:
        comparisons = [Comparison(self.column, self.column_type, "=", value).polars() for value in self.values]
        return pl.any_horizontal(*comparisons) if len(comparisons) > 1 else comparisons[0]

    def pyarrow(self) -> pc.Expression:
        return pc.field((self.column,)).isin(pa.array(self.values, self.column_type.arrow))

    def filters(self) -> list[Any] | None:
        # pyarrow's `isin` tells the two floating zeros from each other, a list of filters does not.
        is_unlike = any(_is_nan(value) or (isinstance(value, float) and value == 0) for value in self.values)
        return None if is_unlike else [[(self.column, "in", list(self.values))]]


class Connective(NamedTuple):
    """Two predicates joined by `and` or `or`."""

    operator: str
    left: Predicate
    right: Predicate

    def holds(self, row: Row) -> bool | None:
        sides = [self.left.holds(row), self.right.holds(row)]
        decisive = self.operator == "or"
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive

    def sql(self) -> str:
        return f"({self.left.sql()} {self.operator} {self.right.sql()})"

    def duckdb(self) -> str:
        return f"({self.left.duckdb()} {self.operator} {self.right.duckdb()})"

    def polars(self) -> pl.Expr:
        left, right = self.left.polars(), self.right.polars()
        return left & right if self.operator == "and" else left | right

    def pyarrow(self) -> pc.Expression:
        left, right = self.left.pyarrow(), self.right.pyarrow()
        return left & right if self.operator == "and" else left | right

    def filters(self) -> list[Any] | None:
        left, right = self.left.filters(), self.right.filters()
        if left is None or right is None:
            return None
        return [a + b for a in left for b in right] if self.operator == "and" else left + right


class Negation(NamedTuple):
    """A predicate that is false."""

    operand: Predicate

    def holds(self, row: Row) -> bool | None:
        holds = self.operand.holds(row)
        return None if holds is None else not holds

    def sql(self) -> str:
        return f"not ({self.operand.sql()})"

    def duckdb(self) -> str:
        return f"not ({self.operand.duckdb()})"

    def polars(self) -> pl.Expr:
        return ~self.operand.polars()

    def pyarrow(self) -> pc.Expression:
        return ~self.operand.pyarrow()

    def filters(self) -> list[Any] | None:
        return None


def draw_predicate(chance: random.Random, columns: dict[str, ColumnType], rows: list[Row], *, first: str) -> Predicate:
    """Draw a predicate over columns, of which the first comparison reads `first`."""
    predicate = _draw_leaf(chance, first, columns[first], rows)
    if chance.randrange(3) == 0:
        name = chance.choice(list(columns))
        other = _draw_leaf(chance, name, columns[name], rows)
        predicate = Connective(chance.choice(["and", "or"]), predicate, other)
    return Negation(predicate) if chance.randrange(5) == 0 else predicate


def _draw_leaf(chance: random.Random, name: str, column_type: ColumnType, rows: list[Row]) -> Predicate:
    if not column_type.is_ordered or chance.randrange(5) == 0:
        return NullCheck(name, chance.random() < 0.5)
    if chance.randrange(4) == 0:
        values = [_draw_literal(chance, name, column_type, rows) for _ in range(chance.randint(1, 3))]
        return Membership(name, column_type, tuple(values))
    return Comparison(name, column_type, chance.choice(OPERATORS), _draw_literal(chance, name, column_type, rows))


def _draw_literal(chance: random.Random, name: str, column_type: ColumnType, rows: list[Row]) -> Any:
    """Draw a value that is likely to be in the table; SQL text holds no NUL."""
    present = [row[name] for row in rows if row[name] is not None]
    value = chance.choice(present) if present and chance.random() < 0.7 else column_type.draw_value(chance)
    if isinstance(value, str):
        return "a" if "\x00" in value or len(value) > _LONGEST_LITERAL else value
    return b"a" if isinstance(value, bytes) and len(value) > _LONGEST_LITERAL else value
