"""Expressions with functions that only a Spark session has -> what the core can use of them.

The core prunes files and detects conflicts by such expressions, and Spark evaluates them. So conditions may hold for
more rows than the whole expression, never for fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._expr.tree import Bound, Call, Lit, SessionCall, joined, walk
from deltafast._expr.types import BOOLEAN

if TYPE_CHECKING:
    from deltafast._core_types import BoundTree, NamedExpression
    from deltafast._expr.tree import Node

__all__ = ["core_condition", "core_expression", "core_value", "uses_session"]


def uses_session(tree: BoundTree | Node) -> bool:
    """Return whether an expression has a function that the core does not have."""
    node = Bound.from_tree(tree).expr if isinstance(tree, dict) else tree
    return any(isinstance(item, SessionCall) for item in walk(node))


def core_condition(tree: BoundTree) -> BoundTree | None:
    """Return the conjuncts of a condition that the core can evaluate; None if it can evaluate no conjunct."""
    if not uses_session(tree):
        return tree
    bound = Bound.from_tree(tree)
    node = bound.expr
    parts = node.args if isinstance(node, Call) and node.f == "and" else (node,)
    kept = [part for part in parts if not uses_session(part)]
    return bound._replace(expr=joined("and", kept)).to_tree() if kept else None


def core_expression(condition: NamedExpression) -> NamedExpression:
    """Return a condition with the tree for the core: always true if it can evaluate no part of it."""
    tree = condition.get("tree")
    if tree is None:
        return condition
    every = Bound.from_tree(tree)._replace(expr=Lit(value=True, type=BOOLEAN)).to_tree()
    return {**condition, "tree": core_condition(tree) or every}


def core_value(tree: BoundTree) -> BoundTree:
    """Return a new value for the core, which only checks its type: null if it uses the session."""
    bound = Bound.from_tree(tree)
    return bound._replace(expr=Lit(None, bound.expr.type)).to_tree() if uses_session(bound.expr) else tree
