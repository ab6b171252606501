"""Streams from and to tables, and a MERGE of each batch."""

import sys

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.appName("streams")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
source, copy, target, marks = (f"{sys.argv[1]}/{name}" for name in ("source", "copy", "target", "marks"))

spark.range(10).write.format("delta").save(source)
spark.range(5).selectExpr("id", "0 AS n").write.format("delta").save(target)

query = (
    spark.readStream.format("delta")
    .load(source)
    .writeStream.format("delta")
    .outputMode("append")
    .option("checkpointLocation", marks + "/copy")
    .trigger(availableNow=True)
    .start(copy)
)
query.awaitTermination()
assert spark.read.format("delta").load(copy).count() == 10


def upsert(batch, batch_id):
    (
        DeltaTable.forPath(batch.sparkSession, target)
        .alias("t")
        .merge(batch.alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"n": "t.n + 1"})
        .whenNotMatchedInsert(values={"id": "s.id", "n": "1"})
        .execute()
    )


query = (
    spark.readStream.format("delta")
    .load(source)
    .writeStream.foreachBatch(upsert)
    .option("checkpointLocation", marks + "/target")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
assert [row.n for row in spark.read.format("delta").load(target).collect()] == [1] * 10
print("done")
