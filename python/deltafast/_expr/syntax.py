"""Parsed expressions, independent of the table: untyped nodes with their position.

Input to the binder from every front end (Spark SQL, DNF tuples, expressions of pyarrow and Polars, PySpark's columns).
`pos`, the last field of each node, is an offset into the SQL string, or None if there is no string. The nodes are named
tuples: such a class is created in a seventh of a dataclass's time, and the first predicate of a process waits for all
of them.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltafast._expr.tree import Lit, TypedValues
    from deltafast._expr.types import DataType

__all__ = [
    "NODES",
    "Between",
    "Binary",
    "Case",
    "CastTo",
    "Constant",
    "ExactName",
    "FieldOf",
    "Func",
    "InList",
    "InValues",
    "IntervalLit",
    "Item",
    "Like",
    "LikeKind",
    "Logical",
    "Name",
    "Syntax",
    "Test",
    "TestKind",
    "Unary",
    "parts",
    "with_parts",
    "without_positions",
]


class ExactName(str):
    """A part of a name that was written in double quotes: it is found in its exact case only."""

    __slots__ = ()


class Name(NamedTuple):
    """A column reference, still as its dotted parts, which may be `ExactName`s."""

    parts: tuple[str, ...]
    pos: int | None = None


class Constant(NamedTuple):
    """A literal."""

    lit: Lit
    pos: int | None = None


class IntervalLit(NamedTuple):
    """An ANSI interval: months, or microseconds which are whole `DAY`s by type if `day_only`."""

    months: int | None
    micros: int
    day_only: bool
    pos: int | None = None


class Unary(NamedTuple):
    """`NOT`, `-`, `+`, `~`."""

    op: str
    arg: Syntax
    pos: int | None = None


class Binary(NamedTuple):
    """Arithmetic, bits, comparison, `||`."""

    op: str
    left: Syntax
    right: Syntax
    pos: int | None = None


class Logical(NamedTuple):
    """A chain of `AND` or of `OR`, flat, so that a chain of thousands is not deep."""

    op: str
    args: tuple[Syntax, ...]
    pos: int | None = None


class Between(NamedTuple):
    """`arg BETWEEN low AND high`."""

    arg: Syntax
    low: Syntax
    high: Syntax
    pos: int | None = None


class InList(NamedTuple):
    """`arg IN (items)`."""

    arg: Syntax
    items: tuple[Syntax, ...]
    pos: int | None = None


class InValues(NamedTuple):
    """`arg IN (values)` with a long list of constants of one kind."""

    arg: Syntax
    listed: TypedValues
    pos: int | None = None


class LikeKind(StrEnum):
    """The kind of a match with a pattern, as a function's name."""

    LIKE = "like"
    ILIKE = "ilike"
    RLIKE = "rlike"


class Like(NamedTuple):
    """`LIKE`, `ILIKE` or `RLIKE`; with `ANY` or `ALL` several patterns, to each of which `NOT` applies."""

    kind: LikeKind
    arg: Syntax
    patterns: tuple[Syntax, ...]
    escape: str = "\\"
    every: bool = False
    negated: bool = False
    pos: int | None = None


class TestKind(Enum):
    """What `IS` tests a value for."""

    NULL = "null"
    UNKNOWN = "unknown"
    TRUE = "true"
    FALSE = "false"


class Test(NamedTuple):
    """`IS NULL`, `IS UNKNOWN`, `IS TRUE`, `IS FALSE`."""

    kind: TestKind
    arg: Syntax
    pos: int | None = None


class Case(NamedTuple):
    """`CASE [operand] WHEN .. THEN .. ELSE .. END`."""

    operand: Syntax | None
    whens: tuple[tuple[Syntax, Syntax], ...]
    otherwise: Syntax | None
    pos: int | None = None


class CastTo(NamedTuple):
    """`CAST`, `TRY_CAST` or `::`."""

    arg: Syntax
    type: DataType
    safe: bool
    pos: int | None = None


class Func(NamedTuple):
    """A function call by its SQL name."""

    name: str
    args: tuple[Syntax, ...]
    pos: int | None = None


class FieldOf(NamedTuple):
    """`arg.name` where `arg` is not a plain name."""

    arg: Syntax
    name: str
    pos: int | None = None


class Item(NamedTuple):
    """`arg[at]`."""

    arg: Syntax
    at: Syntax
    pos: int | None = None


Syntax: TypeAlias = (
    Name
    | Constant
    | IntervalLit
    | Unary
    | Binary
    | Logical
    | Between
    | InList
    | InValues
    | Like
    | Test
    | Case
    | CastTo
    | Func
    | FieldOf
    | Item
)


#: The classes of nodes.
NODES: Final = get_args(Syntax)


def parts(node: Syntax) -> Iterator[Syntax]:
    """Yield the node and all nodes below it."""
    waiting: list[Any] = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, NODES):
            yield item
        if isinstance(item, tuple) and not isinstance(item, Constant):
            waiting += cast("tuple[Any, ...]", item)


def with_parts(node: Syntax, replace: Callable[[Syntax], Syntax | None]) -> Syntax:
    """Return the node in which those below it for which `replace` returns another node are replaced."""
    return cast("Syntax", _replaced(node, replace))


def _replaced(item: Any, replace: Callable[[Syntax], Syntax | None]) -> Any:
    if isinstance(item, NODES):
        other = replace(item)
        if other is not None or isinstance(item, Constant):
            return item if other is None else other
        return item._make(_replaced(part, replace) for part in cast("tuple[Any, ...]", item))
    if type(item) is tuple:
        return tuple(_replaced(part, replace) for part in cast("tuple[Any, ...]", item))
    return item


def without_positions(node: Syntax) -> Syntax:
    """Return the node as a part of an expression that is not the SQL string which it was parsed from."""
    return cast("Syntax", _unpositioned(node))


def _unpositioned(item: Any) -> Any:
    if isinstance(item, NODES):
        return item._make((*map(_unpositioned, item[:-1]), None))
    return tuple(map(_unpositioned, cast("tuple[Any, ...]", item))) if type(item) is tuple else item
