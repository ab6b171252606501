"""Tables of the catalog: builders, MERGE, isDeltaTable, forName, history, OPTIMIZE and VACUUM."""

import sys

from delta.tables import DeltaTable, IdentityGenerator
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

spark = (
    SparkSession.builder.appName("customers")
    .config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    .getOrCreate()
)
folder = sys.argv[1]
assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled") == "false"

DeltaTable.createIfNotExists(spark).tableName("customers").addColumn("id", LongType()).addColumn(
    "name", StringType()
).addColumn("visits", IntegerType()).addColumn("key", LongType(), generatedAlwaysAs=IdentityGenerator()).property(
    "delta.enableChangeDataFeed", "true"
).execute()
spark.sql("INSERT INTO customers (id, name, visits) VALUES (1, 'a', 1), (2, 'b', 1)")

schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
updates = spark.createDataFrame([(2, "B"), (3, "C")], schema)
(
    DeltaTable.forName(spark, "customers")
    .alias("c")
    .merge(updates.alias("u"), "c.id = u.id")
    .whenMatchedUpdate(condition=F.col("u.name") != "", set={"name": "u.name", "visits": F.col("c.visits") + 1})
    .whenNotMatchedInsert(values={"id": "u.id", "name": "u.name", "visits": F.lit(1)})
    .whenNotMatchedBySourceUpdate(set={"visits": "0"})
    .execute()
)
rows = spark.table("customers").select("id", "name", "visits").orderBy("id").collect()
assert [tuple(row) for row in rows] == [(1, "a", 0), (2, "B", 2), (3, "C", 1)], rows

feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).table("customers")
assert {row._change_type for row in feed.collect()} == {"insert", "update_preimage", "update_postimage"}
assert spark.sql("SELECT * FROM table_changes('customers', 2)").count() == feed.count()

path = folder + "/parquet"
spark.range(3).write.parquet(path)
assert not DeltaTable.isDeltaTable(spark, path)
DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
assert DeltaTable.isDeltaTable(spark, path)

table = DeltaTable.forPath(spark, path)
assert table.history(1).first().operation == "CONVERT"
table.optimize().executeCompaction()
table.vacuum(1000)
spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY (id)")
assert table.detail().first().format == "delta"
table.restoreToVersion(0)
assert sorted(row.id for row in table.toDF().collect()) == [0, 1, 2]

spark.sql("CREATE OR REPLACE TABLE travel USING delta AS SELECT 1 AS id")
spark.sql("UPDATE travel SET id = 2")
assert spark.sql("SELECT id FROM travel VERSION AS OF 0").first().id == 1
assert spark.sql("SELECT id FROM travel@v0").first().id == 1
assert spark.sql("DESCRIBE HISTORY travel").count() == 2
spark.sql("DROP TABLE travel")
print("done")
