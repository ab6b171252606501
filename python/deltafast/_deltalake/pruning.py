"""Which predicates `deltalake` refuses where it chooses files; see `table`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from deltafast._expr import syntax
from deltafast._expr.lexer import spark_text
from deltafast._expr.parser import parse
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

__all__ = ["unsupported_in_pruning"]

#: Binary operators that delta-kernel evaluates on files; `AND`, `OR` and comparisons with lists are nodes of their own.
_OPERATORS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/"})


def unsupported_in_pruning(predicate: str, columns: Container[str]) -> str | None:
    """The reason why `deltalake` cannot choose files by a predicate; None where it can, or where the syntax is wrong.

    Args:
        predicate: SQL text.
        columns: Names of the table's columns.
    """
    try:
        root = parse(spark_text(predicate, columns))
    except InvalidArgumentError:
        return None
    for node in _nodes(root):
        operator = _operator(node)
        # Without a column the value is computed before files are chosen.
        if operator is not None and any(isinstance(part, syntax.Name) for part in _nodes(node)):
            return f"{operator} of a column is not supported"
    return None


def _operator(node: Any) -> str | None:
    """The operator of a node that is refused; None for others."""
    match node:
        case syntax.Like(kind=kind):
            return kind.upper()
        case syntax.Func(name=name):
            return f"the function {name}"
        case syntax.Binary(op=op) if op not in _OPERATORS:
            return f"the operator {op}"
        case syntax.Unary(op=op) if op.upper() != "NOT":
            return f"the operator {op}"
        case syntax.Test(kind=kind) if "NULL" not in kind.upper():
            return f"IS {kind.upper()}"
        case _:
            return None


def _nodes(node: Any) -> Iterator[Any]:
    """The node and all that it is made of."""
    waiting: list[Any] = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, tuple):
            parts = cast("tuple[Any, ...]", found)
            if hasattr(parts, "_fields"):
                yield parts
            waiting += parts
