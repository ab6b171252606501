"""The functions of a Spark session in the expressions of a command: which there are, and the types of their results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from deltafast import _core
from deltafast._expr import types
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.render import to_spark_sql
from deltafast._expr.session_calls import core_condition, core_expression, core_value
from deltafast._expr.tree import Bound, Lit, SessionCall, walk
from deltafast.exceptions import DeltaProtocolError, ErrorCode, InvalidArgumentError
from deltafast.spark._scan.physical_columns import plain_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltafast._core_types import BoundTree, ClausePlan, MergePlan
    from deltafast._expr.tree import Call, Node
    from deltafast._expr.types import DataType
    from deltafast.spark._session.session import Session

__all__ = ["SessionFunctions", "conditions_of", "core_plan", "values_of"]

#: The parts of a MERGE's condition besides its equalities, which have no functions of the session.
_PARTS = ("target_only", "source_only", "residual")

#: Functions whose result differs between two evaluations, where Spark cannot be asked: over Connect.
_NOT_DETERMINISTIC = frozenset(
    (
        "input_file_name",
        "monotonically_increasing_id",
        "rand",
        "randn",
        "random",
        "randstr",
        "shuffle",
        "uniform",
        "uuid",
    )
)


class SessionFunctions:
    """All functions that the session's SQL has: Spark's own, and those that the program registered.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._types: dict[str, DataType] = {}
        self._evaluated: dict[str, bool] = {}
        #: Names of functions that were asked for and whose result differs between two evaluations.
        self.not_deterministic: set[str] = set()

    def core_evaluates(self, call: Call) -> bool:
        """Return whether the core evaluates a call of one of its functions: it refuses some patterns."""
        import pyarrow as pa

        # The core reads the tree, and with it the literals, before any row.
        typed = Bound(call._replace(args=_without_columns(call.args)))
        key = repr(typed)
        if key not in self._evaluated:
            try:
                _core.evaluate(typed.to_tree(), cast("Any", pa.table({"nothing": pa.nulls(1)})))
                self._evaluated[key] = True
            except DeltaProtocolError:
                self._evaluated[key] = False
        return self._evaluated[key]

    def result_type(self, name: str, args: Sequence[Node]) -> DataType:
        """Return the type of a call's result, for which Spark analyzes a query without rows.

        Raises:
            InvalidArgumentError: The session has no such function, or the function does not take these arguments.
            UnsupportedExpressionError: The type is not one of a Delta table.
        """
        sql = to_spark_sql(SessionCall(name, _without_columns(args), types.VOID))
        if sql not in self._types:
            self._types[sql] = self._analyzed(name, sql)
        return self._types[sql]

    def _analyzed(self, name: str, sql: str) -> DataType:
        from pyspark.errors import AnalysisException

        try:
            # A condition refuses aggregates and generators.
            frame: Any = self._session.spark.range(0).where(f"({sql}) is not null").selectExpr(f"{sql} as value")
            found = plain_type(json.loads(frame.schema.json())["fields"][0]["type"])
        except AnalysisException as error:
            is_aggregate = error.getCondition() == "INVALID_WHERE_CONDITION"
            raise InvalidArgumentError(
                str(error).strip().partition("\n")[0],
                code=ErrorCode.AGGREGATE_IN_PREDICATE if is_aggregate else None,
                parameters={"expression": sql} if is_aggregate else None,
            ) from None
        if self._session.is_connect:
            is_deterministic = name.lower() not in _NOT_DETERMINISTIC
        else:
            is_deterministic = frame._jdf.queryExecution().analyzed().deterministic()
        if not is_deterministic:
            self.not_deterministic.add(name)
        if "interval" in json.dumps(found):
            message = f"the function {name}() returns an interval, which a Delta table does not have"
            raise UnsupportedExpressionError(message)
        return types.type_from_json(found)

    def check_deterministic(self, trees: Iterable[BoundTree]) -> None:
        """Refuse expressions whose value differs between two evaluations.

        Raises:
            InvalidArgumentError: There is one.
        """
        for tree in trees:
            for node in walk(Bound.from_tree(tree).expr):
                if isinstance(node, SessionCall) and node.f in self.not_deterministic:
                    message = f"`{node.f}()` gives another value each time; compute it in a table or data frame before"
                    raise InvalidArgumentError(
                        message,
                        code=ErrorCode.NON_DETERMINISTIC_EXPRESSION,
                        parameters={"expression": f"{node.f}()"},
                    )


def _without_columns(args: Sequence[Node]) -> tuple[Node, ...]:
    """Return literals of the arguments' types; literals stay, since the types of some results depend on them."""
    return tuple(arg if isinstance(arg, Lit) else Lit(None, arg.type) for arg in args)


def conditions_of(plan: MergePlan) -> Iterator[BoundTree]:
    """Yield the conditions of a MERGE that can have functions of the session."""
    conditions = [clause.get("condition") for clause in _clauses(plan)]
    trees = [plan.get(part) for part in _PARTS] + [one.get("tree") for one in conditions if one is not None]
    yield from (tree for tree in trees if tree is not None)


def values_of(plan: MergePlan) -> Iterator[BoundTree]:
    """Yield the new values of a MERGE."""
    for clause in _clauses(plan):
        yield from (value["tree"] for value in clause.get("values", ()))


def _clauses(plan: MergePlan) -> list[ClausePlan]:
    return [*plan["matched"], *plan["by_source"], *plan["not_matched"]]


def core_plan(plan: MergePlan) -> MergePlan:
    """Return the plan of a MERGE for the core, without functions of the session."""
    made: MergePlan = {
        **plan,
        "matched": [_core_clause(clause) for clause in plan["matched"]],
        "not_matched": [_core_clause(clause) for clause in plan["not_matched"]],
        "by_source": [_core_clause(clause) for clause in plan["by_source"]],
    }
    for part in _PARTS:
        tree = plan.get(part)
        made[part] = None if tree is None else core_condition(tree)
    return made


def _core_clause(clause: ClausePlan) -> ClausePlan:
    condition = clause.get("condition")
    return {
        **clause,
        "condition": None if condition is None else core_expression(condition),
        "values": [{**value, "tree": core_value(value["tree"])} for value in clause.get("values", ())],
    }
