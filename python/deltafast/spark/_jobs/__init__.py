"""DELETE, UPDATE, MERGE and OPTIMIZE as Spark jobs, for tables too large for one machine.

The core plans and commits. Spark's executors find, read and write the rows; the driver only receives bitmaps of the
rows that were found. Expressions have the semantics of the embedded commands, in the session's ANSI mode.
"""

from __future__ import annotations

from deltafast.spark._jobs.change import delete, update
from deltafast.spark._jobs.merge import merge
from deltafast.spark._jobs.optimize import optimize

__all__ = ["delete", "merge", "optimize", "update"]
