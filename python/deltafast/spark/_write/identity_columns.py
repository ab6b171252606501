"""Values of identity columns, which tasks generate independently of each other.

As in delta-spark: with P tasks, row k of task p has the value start + step * (k * P + p), so no two rows have the same
value, whatever the number of rows of each task. Rows must be numbered in the stage that writes them: a retry of an
earlier stage could give a row a value that another row already has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast.spark._scan.physical_columns import quoted
from deltafast.spark._write.row_errors import row_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._core_types import IdentityColumn

__all__ = ["PLACE", "TASK", "counted", "value_of"]


#: Maximum number of tasks of a write whose rows are numbered: their actual number is not known before they run.
_TASKS = 1000

_NUMBER = "__deltafast_number"
#: A row's position within its task and its task, from the number that `monotonically_increasing_id` returns.
PLACE, TASK = "({} & 8589934591L)", "shiftright({}, 33)"


def counted(rows: Any, identities: Sequence[IdentityColumn]) -> Any:
    """Add values of identity columns to rows, which may not be shuffled afterwards.

    Args:
        rows: A frame.
        identities: The columns, as the core reports them.
    """
    from pyspark.sql import functions

    if not identities:
        return rows
    numbered = rows.coalesce(_TASKS).withColumn(_NUMBER, functions.monotonically_increasing_id())
    return numbered.withColumns({one["column"]: value_of(one, _NUMBER, _TASKS) for one in identities}).drop(_NUMBER)


def value_of(identity: IdentityColumn, number: str, tasks: int) -> Any:
    """Return the value of a row.

    Args:
        identity: The identity column.
        number: The column with the row's number, from `monotonically_increasing_id`.
        tasks: Maximum number of tasks.
    """
    from pyspark.sql import functions

    name = quoted(number)
    task, place = functions.expr(TASK.format(name)), functions.expr(PLACE.format(name))
    many = functions.lit(row_error(f"rows are counted by more than {tasks} tasks"))
    steps = functions.when(task < tasks, place * tasks + task).otherwise(functions.raise_error(many).cast("bigint"))
    first, step = (functions.lit(value).cast("bigint") for value in (identity["next"], identity["step"]))
    ended = functions.lit(row_error(f"the identity column {identity['column']!r} has come to the end of its numbers"))
    made = functions.try_add(first, functions.try_multiply(step, steps))
    return functions.coalesce(made, functions.raise_error(ended).cast("bigint"))
