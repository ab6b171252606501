"""Delta's quick start for Python: the builder of `pip install delta-spark`, and the commands of the first page."""

import sys

import pyspark
from delta import *
from delta.tables import *
from pyspark.sql.functions import *

path = sys.argv[1] + "/delta-table"
builder = (
    pyspark.sql.SparkSession.builder.appName("MyApp")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

data = spark.range(0, 5)
data.write.format("delta").save(path)
df = spark.read.format("delta").load(path)
assert sorted(row.id for row in df.collect()) == [0, 1, 2, 3, 4]

data = spark.range(5, 10)
data.write.format("delta").mode("overwrite").save(path)

deltaTable = DeltaTable.forPath(spark, path)
# Update every even value by adding 100 to it
deltaTable.update(condition=expr("id % 2 == 0"), set={"id": expr("id + 100")})
# Delete every even value
deltaTable.delete(condition=expr("id % 2 == 0"))
# Upsert (merge) new data
newData = spark.range(0, 20)
deltaTable.alias("oldData").merge(newData.alias("newData"), "oldData.id = newData.id").whenMatchedUpdate(
    set={"id": col("newData.id")}
).whenNotMatchedInsert(values={"id": col("newData.id")}).execute()
assert sorted(row.id for row in deltaTable.toDF().collect()) == list(range(20))

df = spark.read.format("delta").option("versionAsOf", 0).load(path)
assert df.count() == 5

spark.sql(f"CREATE TABLE events (date DATE, eventId STRING) USING DELTA LOCATION '{sys.argv[1]}/events'")
spark.sql("INSERT INTO events VALUES (DATE'2024-01-01', 'a'), (DATE'2024-01-02', 'b')")
spark.sql("UPDATE events SET eventId = 'c' WHERE eventId = 'b'")
assert [row.eventId for row in spark.table("events").orderBy("date").collect()] == ["a", "c"]
assert spark.sql(f"SELECT * FROM delta.`{path}`").count() == 20
assert [row.operation for row in deltaTable.history().collect()] == ["MERGE", "DELETE", "UPDATE", "WRITE", "WRITE"]

streamingDf = spark.readStream.format("rate").load()
stream = (
    streamingDf.selectExpr("value as id")
    .writeStream.format("delta")
    .option("checkpointLocation", sys.argv[1] + "/checkpoint")
    .trigger(availableNow=True)
    .start(path)
)
stream.awaitTermination()
print("done", spark.conf.get("spark.sql.catalog.spark_catalog", None))
