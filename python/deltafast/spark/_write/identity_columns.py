"""Values of identity columns, which tasks give that know nothing of each other.

As in delta-spark: with P tasks, row k of task p has the value start + step * (k * P + p). So no two rows have the same,
whatever each task has. Rows must be counted where they are written: in a stage before, one that runs again could give
a value that another row has by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast.spark._scan.physical_columns import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ENDED", "PLACE", "TASK", "counted", "value_of"]

#: Begins what is said of a column without further values, so that it is known again in Spark's error.
ENDED = "deltafast: the identity column"

#: Tasks of a write whose rows are counted, at most: how many there will be is not known before they run.
_TASKS = 1000

_NUMBER = "__deltafast_number"
#: A row's place within its task and its task, of the number that `monotonically_increasing_id` gives.
PLACE, TASK = "({} & 8589934591L)", "shiftright({}, 33)"


def counted(rows: Any, identities: Sequence[dict[str, Any]]) -> Any:
    """The same rows with values of identity columns; they may go through no shuffle behind it.

    Args:
        rows: A frame.
        identities: `column`, `next` and `step` of each, as the core says them.
    """
    from pyspark.sql import functions

    if not identities:
        return rows
    numbered = rows.coalesce(_TASKS).withColumn(_NUMBER, functions.monotonically_increasing_id())
    return numbered.withColumns({one["column"]: value_of(one, _NUMBER, _TASKS) for one in identities}).drop(_NUMBER)


def value_of(identity: dict[str, Any], number: str, tasks: int) -> Any:
    """The value of a row.

    Args:
        identity: `column`, `next` and `step`.
        number: The column with the row's number, as `monotonically_increasing_id` gives it.
        tasks: How many tasks there are at most.
    """
    from pyspark.sql import functions

    name = quoted(number)
    task, place = functions.expr(TASK.format(name)), functions.expr(PLACE.format(name))
    many = functions.lit(f"deltafast: rows are counted by more than {tasks} tasks")
    steps = functions.when(task < tasks, place * tasks + task).otherwise(functions.raise_error(many).cast("bigint"))
    first, step = (functions.lit(identity[key]).cast("bigint") for key in ("next", "step"))
    ended = functions.lit(f"{ENDED} {identity['column']!r} has come to the end of its numbers")
    made = functions.try_add(first, functions.try_multiply(step, steps))
    return functions.coalesce(made, functions.raise_error(ended).cast("bigint"))
