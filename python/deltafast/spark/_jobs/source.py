"""The source of a MERGE: read once, kept by the executors, with statistics of its keys that select files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from deltafast import _core
from deltafast._types import PRIMITIVES
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._jobs.sides import SOURCE, flat, named
from deltafast.spark._scan.physical_columns import quoted, string_collations, with_collations
from deltafast.spark._session.session import quiet
from deltafast.spark._write.identity_columns import PLACE, TASK

if TYPE_CHECKING:
    import pyarrow as pa

    from deltafast._core_types import MergePlan, SourceStatistics
    from deltafast.spark._session.session import Session

__all__ = ["SOURCE_ROW", "Source", "check_source"]

#: The number of each row.
SOURCE_ROW = "__deltafast_source_row"

#: Bytes of values; most primitive types have up to eight, nested ones, binary and variant more.
_WIDTH = dict.fromkeys(PRIMITIVES.keys() - {"binary", "variant", "void"}, 8) | {"decimal": 16, "string": 32}

#: Spark's threshold for broadcasts is for files, whose rows take about so many times their size in memory.
_DECODED = 4

#: Maximum number of distinct key values that are listed, as in the core (`NAMED` in `src/ops/partition_predicate.rs`).
_NAMED = 1000


def check_source(frame: Any) -> None:
    """Reject a source with a collation, by which the expressions of a MERGE would not compare.

    Raises:
        InvalidArgumentError: A column has a collation.
    """
    for field in json.loads(frame.schema.json())["fields"]:
        for path, name in string_collations(with_collations(field)).items():
            if name is not None:
                message = (
                    f"the column `{path}` of the source has the collation {name}, by which a MERGE cannot compare "
                    "strings: cast it to STRING COLLATE UTF8_BINARY"
                )
                raise InvalidArgumentError(message)


class Source:
    """A source, which executors keep.

    Rows that are computed a second time could have another order and so other numbers; therefore the loss of an
    executor that holds some of them fails the command.

    Args:
        session: The session.
        frame: Its rows.
    """

    def __init__(self, session: Session, frame: Any) -> None:
        from pyspark.sql import functions

        rows = named(frame, SOURCE, frame.columns)
        self._session = session
        #: Its columns, named `source.id`, and `SOURCE_ROW`.
        self.frame = rows.withColumn(SOURCE_ROW, functions.monotonically_increasing_id()).localCheckpoint()
        task, place = TASK.format(quoted(SOURCE_ROW)), PLACE.format(quoted(SOURCE_ROW))
        found = self.frame.selectExpr("count(*)", f"max({task})", f"max({place})").first()
        #: The number of rows.
        self.count: int = found[0]
        #: The number of tasks that numbered them, and an upper bound of the numbers that they used in total.
        self.tasks = 1 + (found[1] or 0)
        self.max_new_rows: int = self.tasks * (1 + found[2]) if self.count else 0

    def joined(self) -> Any:
        """The frame for a join: broadcast if it is small."""
        from pyspark.sql import functions

        return functions.broadcast(self.frame) if self.is_broadcast(self.count) else self.frame

    def is_broadcast(self, rows: int) -> bool:
        """Return whether this number of its rows is small enough for a broadcast."""
        most = _core.parse_byte_size(self._session.conf("spark.sql.autoBroadcastJoinThreshold", "10485760") or "-1")
        width = sum(_WIDTH.get(field.dataType.typeName(), 100) for field in self.frame.schema.fields)
        return most is not None and rows * width <= _DECODED * most

    def statistics(self, plan: MergePlan) -> tuple[SourceStatistics, pa.Table]:
        """Return statistics and the values or bounds of each key, as `TableMerge.plan_job` takes them."""
        import pyarrow as pa
        from pyspark.sql import functions

        equalities = plan["equalities"]
        matchable = self.frame
        source_only = plan.get("source_only")
        if source_only is not None:
            matchable = matchable.where(flat(source_only, SOURCE))
        keys = [functions.expr(flat(one["source"], SOURCE)).alias(f"k{n}") for n, one in enumerate(equalities)]
        if not keys:
            return self._statistics(matchable.count(), []), pa.table({"none": pa.array([], pa.int64())})
        matchable = matchable.select(*keys)
        for n, one in enumerate(equalities):
            matchable = matchable if one["null_safe"] else matchable.where(f"k{n} is not null")
        asked = [functions.count("*").alias("rows")]
        for n in range(len(keys)):
            asked += [functions.min(f"k{n}").alias(f"least{n}"), functions.max(f"k{n}").alias(f"most{n}")]
            asked += [functions.count(f"k{n}").alias(f"there{n}")]
            asked += [functions.approx_count_distinct(f"k{n}", 0.05).alias(f"distinct{n}")]
        with quiet():
            answer = matchable.agg(*asked).toArrow()
        number = answer.column("rows")[0].as_py()
        columns: list[Any] = []
        complete: list[bool] = []
        for n in range(len(keys)):
            values: Any = None
            if answer.column(f"distinct{n}")[0].as_py() <= 2 * _NAMED:
                with quiet():
                    distinct = matchable.select(f"k{n}").distinct().limit(_NAMED + 1).toArrow()
                values = distinct.column(0).combine_chunks()
            complete.append(values is not None and len(values) <= _NAMED)
            if values is None or not complete[-1]:
                chunks: list[Any] = [*answer.column(f"least{n}").chunks, *answer.column(f"most{n}").chunks]
                values = cast("Any", pa).concat_arrays(chunks)
                if answer.column(f"there{n}")[0].as_py() < number:
                    values = cast("Any", pa).concat_arrays([values, pa.nulls(1, values.type)])
            columns.append(values)
        longest = max(map(len, columns)) if number else 0
        table = pa.table({f"k{n}": _stretched(values, longest) for n, values in enumerate(columns)})
        return self._statistics(number, complete), table

    def _statistics(self, matchable_rows: int, complete: list[bool]) -> SourceStatistics:
        return {
            "rows": self.count,
            "matchable_rows": matchable_rows,
            "complete": complete,
            "max_new_rows": self.max_new_rows,
        }


def _stretched(values: Any, length: int) -> Any:
    """Return the values with the last one repeated up to a length."""
    import pyarrow as pa

    last = len(values) - 1
    return values.take(pa.array([min(n, last) for n in range(length)], pa.int64()))
