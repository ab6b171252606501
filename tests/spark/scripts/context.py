"""A session of a context that the program starts itself, with another extension and another package in its settings."""

import sys

from delta.tables import *
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

conf = SparkConf().setAppName("context")
conf.set("spark.sql.extensions", "org.example.Other,io.delta.sql.DeltaSparkSessionExtension")
conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
conf.set("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0")
sc = SparkContext(conf=conf)
spark = SparkSession(sc)
assert spark.conf.get("spark.sql.extensions") == "org.example.Other"
path = sys.argv[1] + "/t"
sc.parallelize([(1, "a"), (2, "b")]).toDF(["id", "name"]).write.format("delta").save(path)
assert DeltaTable.forPath(spark, path).toDF().count() == 2
print("done")
