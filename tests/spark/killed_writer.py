"""A program that appends rows to a table of Unity Catalog until it is killed; it prints the id of each committed one."""

from __future__ import annotations

import itertools
import json
import sys

from pyspark.sql import SparkSession

import deltafast.spark
from deltafast.catalog import UnityCatalog


def main(url: str, token: str, name: str, settings: dict[str, str]) -> None:
    """Start Spark and append."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "600m").config("spark.log.level", "OFF")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    deltafast.spark.enable(spark, catalogs={"main": UnityCatalog(url, token)})
    for number in itertools.count():
        spark.range(number, number + 1).writeTo(name).append()
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:4], json.loads(sys.argv[4]))
