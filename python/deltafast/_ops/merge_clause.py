"""The clauses of a MERGE as their author wrote them."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltafast._expr.syntax import Syntax

__all__ = ["ClauseKind", "MergeAction", "MergeClause"]


class ClauseKind(Enum):
    """The rows that a clause is for; the value is its beginning in SQL."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class MergeAction(StrEnum):
    """What a clause does with a row, by the core's name."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


class MergeClause(NamedTuple):
    """A clause, in Spark SQL or its syntax; `updates` is None for all columns of the source."""

    kind: ClauseKind
    action: MergeAction
    predicate: str | Syntax | None = None
    updates: Mapping[str, str | Syntax] | None = None
    except_cols: Sequence[str] = ()
