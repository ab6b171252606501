"""Predicates that `deltalake` refuses for file pruning; see `table`."""

from __future__ import annotations

from typing import Any

from deltafast._expr import syntax
from deltafast._expr.parser import parse
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError

__all__ = ["unsupported_in_pruning"]

#: Binary operators that delta-kernel evaluates on files; `AND`, `OR` and comparisons with lists are nodes of their own.
_OPERATORS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/"})


def unsupported_in_pruning(predicate: str) -> str | None:
    """Return the reason why `deltalake` cannot prune files by a predicate; None if it can, or if the syntax is invalid.

    Args:
        predicate: The SQL string.
    """
    try:
        root = parse(predicate, dialect=Dialect.DELTALAKE)
    except InvalidArgumentError:
        return None
    for node in syntax.parts(root):
        operator = _operator(node)
        # Without a column the value is computed before files are pruned.
        if operator is not None and any(isinstance(part, syntax.Name) for part in syntax.parts(node)):
            return f"{operator} of a column is not supported"
    return None


def _operator(node: Any) -> str | None:
    """Return the operator of a node that is refused; None for other nodes."""
    match node:
        case syntax.Like(kind=kind):
            return kind.upper()
        case syntax.Func(name=name):
            return f"the function {name}"
        case syntax.Binary(op=op) if op not in _OPERATORS:
            return f"the operator {op}"
        case syntax.Unary(op=op) if op.upper() != "NOT":
            return f"the operator {op}"
        case syntax.Test(kind=kind) if kind is not syntax.TestKind.NULL:
            return f"IS {kind.name}"
        case _:
            return None
