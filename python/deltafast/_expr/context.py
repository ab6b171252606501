"""`ExpressionContext`: how expressions are read and evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deltafast._util.dialect import Dialect

if TYPE_CHECKING:
    from deltafast._expr.binding import SessionFunctions

__all__ = ["ExpressionContext"]


class ExpressionContext(NamedTuple):
    """How expressions are read and evaluated."""

    #: The meaning of double quotes in SQL.
    dialect: Dialect = Dialect.SPARK
    #: Time zone of timestamps without one, and of dates.
    zone: str = "UTC"
    #: Spark's ANSI mode: overflow, division by zero and bad casts raise instead of giving null.
    ansi: bool = True
    #: Functions of a Spark session that expressions may use besides the core's.
    functions: SessionFunctions | None = None
    #: Microseconds since the epoch for `current_timestamp()`; the clock if None.
    now: int | None = None

    def for_log(self) -> ExpressionContext:
        """Return the context of expressions in the log, which are Spark SQL without functions of a session."""
        return self._replace(dialect=Dialect.SPARK, functions=None)
