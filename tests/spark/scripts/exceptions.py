"""Programs that tell Delta's errors apart, as Delta's documentation does."""

import sys

from delta import DeltaTable, configure_spark_with_delta_pip
from delta.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

spark = configure_spark_with_delta_pip(SparkSession.builder).getOrCreate()
path = sys.argv[1] + "/parquet"
spark.range(2).write.parquet(path)
assert issubclass(ConcurrentAppendException, DeltaConcurrentModificationException)
try:
    DeltaTable.forPath(spark, path)
    raise SystemExit("no error")
except AnalysisException as error:
    assert "is not a Delta table" in str(error), error
    assert error.getCondition() == "DELTA_MISSING_DELTA_TABLE", error.getCondition()
try:
    spark.read.format("delta").load(path + "-nothing").show()
    raise SystemExit("no error")
except AnalysisException as error:
    assert "Path does not exist" in str(error), error
    assert error.getCondition() == "PATH_NOT_FOUND", error.getCondition()
    assert error.getSqlState() == "42K03", error.getSqlState()
print("done")
