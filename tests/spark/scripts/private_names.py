"""A program that uses names of delta-spark that are not documented, as delta-spark's own tests do."""

import sys

import delta
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession
from pyspark.sql.classic.column import _to_seq

assert captured.convert_exception.__module__ == "delta.exceptions.captured"
builder = delta.configure_spark_with_delta_pip(SparkSession.builder, ["io.delta:delta-spark_2.12:4.0.0"])
spark = builder.getOrCreate()
packages = spark.conf.get("spark.jars.packages").split(",")
assert packages == ["io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-spark_2.12:4.0.0"], packages
assert captured.convert_exception.__module__ == "delta.exceptions.captured"

jvm = spark.sparkContext._jvm
errors = jvm.org.apache.spark.sql.delta.DeltaErrors
invalid_name, invalid_argument = errors.invalidColumnName("a b"), errors.throwDeltaIllegalArgumentException()
for kind, error, condition, state in (
    (AnalysisException, invalid_name, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME", "42K05"),
    (IllegalArgumentException, invalid_argument, "DELTA_UNRECOGNIZED_INVARIANT", "56038"),
):
    try:
        jvm.scala.util.Failure(error).get()
        raise SystemExit("no error")
    except kind as found:
        assert found.getCondition() == condition, found.getCondition()
        assert found.getSqlState() == state, found.getSqlState()
try:
    jvm.scala.util.Failure(jvm.io.delta.exceptions.MetadataChangedException("it changed")).get()
    raise SystemExit("no error")
except delta.exceptions.MetadataChangedException as found:
    assert "it changed" in str(found), found

for method, column in (("partitionedBy", "partitionColumns"), ("clusterBy", "clusteringColumns")):
    table = DeltaTable.create(spark).location(f"{sys.argv[1]}/{method}").addColumn("a", "INT").addColumn("b", "INT")
    table._jbuilder = getattr(table._jbuilder, method)(_to_seq(spark._sc, ["b"]))
    assert table.execute().detail().first()[column] == ["b"]
spark.stop()

# The next session of the process, with a builder that names the package only.
spark = SparkSession.builder.config("spark.jars.packages", packages[0]).getOrCreate()
assert spark.conf.get("spark.jars.packages") == packages[0]
assert DeltaTable.forPath(spark, f"{sys.argv[1]}/clusterBy").toDF().count() == 0
print("done")
