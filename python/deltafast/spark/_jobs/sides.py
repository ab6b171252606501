"""The two sides of a MERGE in Spark: columns called `target.id` and `source.id`, and expressions over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast._expr.render import to_spark_sql
from deltafast._expr.tree import Bound, Call, Cast, Col, In, Node, SessionCall
from deltafast._ops.merge_clause import MergeAction
from deltafast.spark._jobs.values import type_of, uncast
from deltafast.spark._scan.physical_columns import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltafast._core_types import BoundTree, ClausePlan, MergePlan

__all__ = [
    "BY_SOURCE",
    "MATCHED",
    "NOT_MATCHED",
    "SOURCE",
    "TARGET",
    "Clause",
    "clauses_of",
    "condition_of",
    "flat",
    "named",
]

TARGET, SOURCE = "target", "source"

#: Numbers of clauses by kind: the first clause of each kind has the next number.
MATCHED, BY_SOURCE, NOT_MATCHED = 0, 1000, 2000


class Clause(NamedTuple):
    """A clause of a MERGE as Spark SQL."""

    number: int
    action: MergeAction
    #: Spark SQL; None for all rows.
    condition: str | None
    #: Path, Spark SQL and type of each new value.
    values: list[tuple[list[str], str, Any]]

    @property
    def given(self) -> set[str]:
        """The columns that it assigns."""
        return {path[0] for path, _, _ in self.values}


def flat(tree: BoundTree, side: str | None = None) -> str:
    """Return a bound tree over both sides, or over the plain names of one, as Spark SQL."""
    return to_spark_sql(_flat(Bound.from_tree(tree).expr, side))


def _flat(node: Node, side: str | None) -> Node:
    match node:
        case Col(path=path, type=t):
            first, name, *rest = path if side is None else (side, *path)
            return Col((f"{first}.{name}", *rest), t)
        case Call(f=f, args=args, type=t):
            return Call(f, tuple(_flat(arg, side) for arg in args), t)
        case SessionCall(f=f, args=args, type=t):
            return SessionCall(f, tuple(_flat(arg, side) for arg in args), t)
        case Cast(arg=arg, type=t, mode=mode):
            return Cast(_flat(arg, side), t, mode)
        case In(arg=arg, values=values):
            return In(_flat(arg, side), values)
        case _:
            return node


def named(frame: Any, side: str, columns: Iterable[str], more: Iterable[str] = ()) -> Any:
    """Return the frame with these columns named after their side, and others unchanged."""
    from pyspark.sql import functions

    own = [functions.col(quoted(name)).alias(f"{side}.{name}") for name in columns]
    return frame.select(*own, *(functions.col(quoted(name)) for name in more))


def clauses_of(plans: list[ClausePlan], first: int, side: str | None) -> list[Clause]:
    """Return the clauses of a kind; `side` is the only side that they can refer to, None for both."""
    out: list[Clause] = []
    for number, plan in enumerate(plans, first + 1):
        given = plan.get("condition")
        # The core refuses a condition that is not bound.
        condition = None if given is None else given.get("tree")
        nodes = [(value["path"], uncast(value["tree"])) for value in plan.get("values", ())]
        values = [(path, to_spark_sql(_flat(node, side)), type_of(node)) for path, node in nodes]
        out.append(
            Clause(number, MergeAction(plan["action"]), None if condition is None else flat(condition, side), values)
        )
    return out


def condition_of(plan: MergePlan) -> str:
    """Return the whole condition, as Spark SQL over both sides."""
    parts: list[str] = []
    for equality in plan["equalities"]:
        sign = "<=>" if equality["null_safe"] else "="
        parts.append(f"({flat(equality['target'], TARGET)} {sign} {flat(equality['source'], SOURCE)})")
    conjuncts = (
        (plan.get("target_only"), TARGET),
        (plan.get("source_only"), SOURCE),
        (plan.get("residual"), None),
    )
    parts += [f"({flat(tree, side)})" for tree, side in conjuncts if tree is not None]
    return " AND ".join(parts) or "true"
