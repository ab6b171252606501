"""A program whose executors are processes of their own, which get the reader of deletion vectors by a jar."""

from __future__ import annotations

import pathlib
import sys
import warnings

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

import deltafast.spark
from deltafast import DeltaTable
from deltafast.exceptions import DeltaWarning
from deltafast.spark import compiled

warnings.filterwarnings("ignore", category=FutureWarning)


def session() -> SparkSession:
    """Start Spark with two executors that are processes."""
    builder = SparkSession.builder.master("local-cluster[2,1,512]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.executor.memory", "512m")
    builder = builder.config("spark.log.level", "OFF").config("spark.driver.host", "127.0.0.1")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def read(spark: SparkSession, path: str) -> tuple[int, int, bool]:
    """How many rows there are, their sum, and whether a join is needed."""
    frame = deltafast.spark.read(spark, path)
    row = frame.selectExpr("count(v)", "sum(v)").collect()[0]
    return row[0], row[1], "Join" in frame._jdf.queryExecution().executedPlan().toString()


def main(root: pathlib.Path) -> None:
    """Run everything."""
    path = str(root / "t")
    spark = session()
    properties = {"delta.enableDeletionVectors": "true"}
    deltafast.spark.write(spark.range(0, 10_000, 1, 4).selectExpr("id", "id v"), path, configuration=properties)
    DeltaTable(path).delete("id % 10 = 3")
    expected = 9000, sum(n for n in range(10_000) if n % 10 != 3)
    assert read(spark, path) == (*expected, False)
    assert deltafast.spark.read(spark, path).count() == 9000

    def fails(rows):
        found = [row.id for row in rows]
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("this attempt fails after its rows were read")
        return found

    assert sorted(deltafast.spark.read(spark, path).rdd.mapPartitions(fails).collect()) == [
        n for n in range(10_000) if n % 10 != 3
    ]
    # Another context in the same Java has executors of its own.
    spark.stop()
    spark = session()
    assert read(spark, path) == (*expected, False)
    # Where no jar may be added a join stands in.
    compiled._SENT.clear()
    whole = type(spark.sparkContext._jsc).__getattr__

    def refused(this, name):
        if name == "addJar":
            raise PermissionError("no jars here")
        return whole(this, name)

    type(spark.sparkContext._jsc).__getattr__ = refused
    try:
        with pytest.warns(DeltaWarning, match="no jars here"):
            assert read(spark, path) == (*expected, True)
    finally:
        type(spark.sparkContext._jsc).__getattr__ = whole
    assert {failure for failure in compiled._SENT.values() if failure} == {"no jars here"}
    spark.stop()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
    sys.stdout.write("all is well\n")
