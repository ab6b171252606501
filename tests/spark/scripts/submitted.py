"""A job of `spark-submit` whose session is configured on the command line, and never imports `delta` first."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("nightly").getOrCreate()
spark.range(10).write.format("delta").mode("overwrite").saveAsTable("numbers")
spark.sql("DELETE FROM numbers WHERE id > 6")
spark.sql("OPTIMIZE numbers")
assert spark.table("numbers").count() == 7
assert spark.newSession().sql("SELECT count(*) n FROM numbers").first().n == 7

from delta.tables import DeltaTable  # noqa: E402

assert DeltaTable.forName(spark, "numbers").history(1).first().operation == "OPTIMIZE"
path = sys.argv[1] + "/copy"
spark.table("numbers").selectExpr("id", "id % 2 part").write.format("delta").partitionBy("part").save(path)
assert DeltaTable.isDeltaTable(spark, path)
print("done", spark.conf.get("spark.sql.catalog.spark_catalog", None))
