"""DELETE, UPDATE, MERGE and OPTIMIZE as Spark jobs, for tables too large for one machine.

The core plans and commits. Spark's executors look for the rows, and read and write them; to the driver come only
bitmaps of the rows that were found. Expressions mean what they mean to the embedded commands: ANSI SQL.
"""

from __future__ import annotations

from deltafast.spark.jobs.change import delete, update
from deltafast.spark.jobs.merge import merge
from deltafast.spark.jobs.optimize import optimize

__all__ = ["delete", "merge", "optimize", "update"]
