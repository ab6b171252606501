"""A program that follows a table into another one; `killing` ends it before a commit."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any

from pyspark.sql import SparkSession

import deltafast.spark


def follow(spark: Any, way: str, root: pathlib.Path) -> None:
    """Run until nothing is left."""
    checkpoint, now = str(root / f"{way}-checkpoint"), {"availableNow": True}
    if way == "format":
        deltafast.spark.register(spark)
        read = spark.readStream.format("deltafast").option("maxFilesPerTrigger", 1).load(str(root / "source"))
        writer = read.writeStream.format("deltafast").option("checkpointLocation", checkpoint)
        query = writer.trigger(**now).start(str(root / way))
    else:
        sink = deltafast.spark.sink(root / way)
        query = deltafast.spark.stream(spark, root / "source", sink, checkpoint, trigger=now, maxFilesPerTrigger=1)
    query.awaitTermination()


def main(way: str, root: pathlib.Path) -> None:
    """Start Spark, tell `killing` its process, and follow."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.log.level", "OFF")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    pathlib.Path(os.environ["DEADLY"]).write_text(f"{java} {os.getpid()}")
    follow(spark, way, root)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
