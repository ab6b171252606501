"""The closed typed tree: a few kinds of nodes, fully resolved; the core refuses `SessionCall`.

Input: the binder's result (names resolved, casts inserted, result types determined). Output: the `BoundTree` that the
Rust core reads, which can also be read back.

Literal values are plain Python: `int` for integers, dates (days) and timestamps (microseconds since the epoch), `float`
(a `FLOAT` is held as the double equal to it), `decimal.Decimal` at the type's scale, `str`, `bytes`, `bool`, `None`.

Rejected: an open tree (any function name, types inferred by the core). The same name might have another meaning, so the
core must not infer anything.
"""

from __future__ import annotations

import decimal
import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from deltafast._expr import types
from deltafast._expr.types import DataType, Decimal
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltafast._core_types import BoundTree, CallNode, ExpressionNode

__all__ = [
    "Bound",
    "Call",
    "Cast",
    "CastMode",
    "Col",
    "In",
    "Lit",
    "Node",
    "SessionCall",
    "TypedValues",
    "Value",
    "call",
    "columns_of",
    "decode_values",
    "encode_values",
    "joined",
    "walk",
]

Value: TypeAlias = bool | int | float | decimal.Decimal | str | bytes | None


class Col(NamedTuple):
    """A column or, with more than one part, a field inside a struct column."""

    path: tuple[str, ...]
    type: DataType


class Lit(NamedTuple):
    """A constant."""

    value: Value
    type: DataType


class TypedValues(NamedTuple):
    """Constants of one kind, none of them null: the list of an IN before its values have the operand's type."""

    #: As in `Lit`.
    values: tuple[Value, ...]
    #: The types that the constants have as literals, each once, in the order of the constants.
    types: tuple[DataType, ...]


class Call(NamedTuple):
    """A function of the table in `deltafast._expr.functions`."""

    f: str
    args: tuple[Node, ...]
    type: DataType


class CastMode(StrEnum):
    """The result of a cast of a value that the type does not have."""

    #: An error.
    ANSI = "ansi"
    #: Null, or for integers the lower bits.
    LEGACY = "legacy"
    #: Null.
    TRY = "try"


class Cast(NamedTuple):
    """A cast."""

    arg: Node
    type: DataType
    mode: CastMode


class In(NamedTuple):
    """Membership in a list of constants of the operand's type; three-valued."""

    arg: Node
    values: tuple[Value, ...]

    @property
    def type(self) -> DataType:
        """Always boolean."""
        return types.BOOLEAN


class SessionCall(NamedTuple):
    """A function of a Spark session that the core does not have: only Spark evaluates it, as SQL."""

    f: str
    args: tuple[Node, ...]
    type: DataType


Node: TypeAlias = Col | Lit | Call | Cast | In | SessionCall


#: The classes of nodes by their names in the dict.
class Bound(NamedTuple):
    """A tree with the settings it was bound under."""

    expr: Node
    ansi: bool = True
    zone: str = "UTC"

    def to_tree(self) -> BoundTree:
        """Return the dict for `deltafast._core`: JSON types only."""
        return {"expr": _encode(self.expr), "ansi": self.ansi, "zone": self.zone}

    @staticmethod
    def from_tree(tree: BoundTree) -> Bound:
        """Read such a dict.

        Raises:
            InvalidArgumentError: The dict is not a tree.
        """
        try:
            return Bound(_decode(tree["expr"]), bool(tree["ansi"]), str(tree["zone"]))
        except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            msg = f"not a bound expression tree: {type(error).__name__}: {error}"
            raise InvalidArgumentError(msg) from error


def call(f: str, *args: Node, type: DataType = types.BOOLEAN) -> Call:  # noqa: A002 - reads as the node's own field
    """Return a `Call`, boolean by default."""
    return Call(f, args, type)


def joined(op: str, nodes: Sequence[Node]) -> Node:
    """Return a chain of AND or OR as one call with many arguments; a single node is returned unchanged."""
    flat: list[Node] = []
    for node in nodes:
        flat.extend(node.args if isinstance(node, Call) and node.f == op else (node,))
    return flat[0] if len(flat) == 1 else Call(op, tuple(flat), types.BOOLEAN)


def walk(node: Node) -> Iterator[Node]:
    """Yield every node, parents first; iterative, so that deep trees need no stack."""
    todo: list[Node] = [node]
    while todo:
        item = todo.pop()
        yield item
        match item:
            case Call(args=args) | SessionCall(args=args):
                todo.extend(reversed(args))
            case Cast(arg=arg) | In(arg=arg):
                todo.append(arg)
            case Col() | Lit():
                pass


def columns_of(tree: BoundTree | Bound | Node) -> list[tuple[str, ...]]:
    """Return the column paths that a tree reads, in the table's exact case, each once, in order of appearance."""
    if isinstance(tree, dict):
        tree = Bound.from_tree(tree)
    node = tree.expr if isinstance(tree, Bound) else tree
    return list(dict.fromkeys(item.path for item in walk(node) if isinstance(item, Col)))


def encode_value(value: Value, t: DataType) -> Any:
    """Return a constant as in the tree's dict."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, decimal.Decimal):
        scale = t.scale if isinstance(t, Decimal) else 0
        return f"{value:.{scale}f}"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def decode_value(value: object, t: DataType) -> Value:
    """The inverse of `encode_value`."""
    if value is None or isinstance(value, bool):
        return value
    if t == types.BINARY:
        return bytes.fromhex(cast("str", value))
    if isinstance(t, Decimal):
        return decimal.Decimal(cast("str", value))
    if t in (types.FLOAT, types.DOUBLE):
        return float(cast("float", value))
    if types.is_string(t):
        return str(value)
    return int(cast("int", value))


def _encode(node: Node) -> ExpressionNode:
    match node:
        case Col(path=path, type=t):
            return {"column": {"path": list(path), "data_type": types.to_json(t)}}
        case Lit(value=value, type=t):
            return {"literal": {"value": encode_value(value, t), "data_type": types.to_json(t)}}
        case Call():
            return {"call": _encode_call(node)}
        case SessionCall():
            return {"session_call": _encode_call(node)}
        case Cast(arg=arg, type=t, mode=mode):
            return {"cast": {"argument": _encode(arg), "data_type": types.to_json(t), "mode": mode.value}}
        case In(arg=arg, values=values):
            return {"in_list": {"argument": _encode(arg), "values": encode_values(values, arg.type)}}


def _encode_call(node: Call | SessionCall) -> CallNode:
    arguments = [_encode(argument) for argument in node.args]
    return {"function": node.f, "arguments": arguments, "data_type": types.to_json(node.type)}


def encode_values(values: Sequence[Value], t: DataType) -> list[Any]:
    """Return constants as in the tree's dict."""
    # The values of these types are those of the dict.
    if set(map(type, values)) <= {int, str, bool}:
        return list(values)
    return [encode_value(value, t) for value in values]


def decode_values(raw: Sequence[object], t: DataType) -> tuple[Value, ...]:
    """The inverse of `encode_values`."""
    kind = str if types.is_string(t) else int if types.is_integral(t) or types.is_datetime(t) else None
    if kind is not None and set(map(type, raw)) <= {kind}:
        return tuple(cast("Sequence[Value]", raw))
    return tuple(decode_value(value, t) for value in raw)


def _decode(node: ExpressionNode) -> Node:
    match node:
        case {"column": column}:
            return Col(tuple(column["path"]), types.type_from_json(column["data_type"]))
        case {"literal": literal}:
            t = types.type_from_json(literal["data_type"])
            return Lit(decode_value(literal["value"], t), t)
        case {"call": call}:
            return Call(*_decode_call(call))
        case {"session_call": call}:
            return SessionCall(*_decode_call(call))
        case {"cast": cast_node}:
            t = types.type_from_json(cast_node["data_type"])
            return Cast(_decode(cast_node["argument"]), t, CastMode(cast_node["mode"]))
        case {"in_list": in_list}:
            arg = _decode(in_list["argument"])
            return In(arg, decode_values(in_list["values"], arg.type))
        case _:
            msg = f"unknown node {node!r:.50}"
            raise ValueError(msg)


def _decode_call(call: CallNode) -> tuple[str, tuple[Node, ...], DataType]:
    args = tuple(_decode(arg) for arg in call["arguments"])
    return call["function"], args, types.type_from_json(call["data_type"])
