"""A program that has nothing to do with Delta."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.sql.extensions", "org.example.Other").getOrCreate()
spark.range(5).write.parquet(sys.argv[1] + "/parquet")
assert spark.read.parquet(sys.argv[1] + "/parquet").count() == 5
assert spark.newSession().sql("SELECT 1").count() == 1
assert spark.conf.get("spark.sql.extensions") == "org.example.Other"
assert not [name for name in sys.modules if name.partition(".")[0] in ("deltafast", "delta")]
print("done")
