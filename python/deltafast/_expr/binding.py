"""The interface of the binder for the rules of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.coercion import TypeClass
    from deltafast._expr.tree import Call, CastMode, Node
    from deltafast._expr.types import DataType

__all__ = ["Binding", "SessionFunctions"]


class SessionFunctions(Protocol):
    """The functions of a Spark session."""

    def core_evaluates(self, call: Call) -> bool:
        """Return whether the core evaluates a call of one of its functions: it refuses some patterns."""
        ...

    def result_type(self, name: str, args: Sequence[Node]) -> DataType:
        """Return the type of a call's result.

        Raises:
            InvalidArgumentError: The session has no such function, or the function does not take these arguments.
            UnsupportedExpressionError: The type is not one of a Delta table.
        """
        ...


class Binding(Protocol):
    """Creates typed nodes, and errors with a position in the SQL string; implemented by `Binder`."""

    ansi: bool
    #: Mode of explicit casts: `ANSI` or `LEGACY`.
    mode: CastMode

    def now(self) -> int:
        """The time of the statement."""
        ...

    # --- nodes

    def emit(self, f: str, args: Sequence[Node], kind: DataType, pos: int | None = None) -> Node:
        """A call of a function of the core."""
        ...

    def cast(self, node: Node, to: DataType, pos: int | None = None) -> Node:
        """The node in another type."""
        ...

    def coerce(self, node: Node, to: DataType | TypeClass, name: str, pos: int | None) -> Node:
        """The node in the type that a parameter takes."""
        ...

    def same(
        self, nodes: Sequence[Node], what: str, pos: int | None, *, strings: bool = True
    ) -> tuple[list[Node], DataType]:
        """The nodes in one type, and that type."""
        ...

    def arithmetic(self, op: str, left: Node, right: Node, pos: int | None) -> Node:
        """An arithmetic operation."""
        ...

    def compare(self, op: str, left: Node, right: Node, pos: int | None) -> Node:
        """A comparison."""
        ...

    def concat(self, nodes: Sequence[Node], pos: int | None) -> Node:
        """A concatenation."""
        ...

    # --- errors

    def mismatch(self, what: str, kinds: Sequence[DataType], pos: int | None) -> NoReturn:
        """Refuse types that do not go together."""
        ...

    def refuse(self, what: str, pos: int | None, hint: str) -> NoReturn:
        """Refuse what this release does not evaluate."""
        ...

    def wrong(self, what: str, pos: int | None, hint: str) -> NoReturn:
        """Refuse what is an error in Spark, too."""
        ...
