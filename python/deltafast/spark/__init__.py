"""Delta tables through PySpark, without a jar: the core plans and commits, Spark's own reader and writer move the data.

    >>> import deltafast.spark
    >>> frame = deltafast.spark.read(spark, "/data/events")                        # doctest: +SKIP
    >>> deltafast.spark.write(frame, "/data/copy", mode="append")                  # doctest: +SKIP

`pip install deltafast[spark]` on the driver is all that is needed, with Java 17 and PySpark 4.0 to 4.3,
classic or Connect.
What each way of reading and writing can do stands in `docs/spark.md`.
"""

from __future__ import annotations

from deltafast.spark.reader import read
from deltafast.spark.writer import write

__all__ = ["read", "write"]
