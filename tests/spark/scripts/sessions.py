"""Sessions in every order: stopped and started again, configured while one runs, made anew, and by other threads."""

import sys
import threading

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

EXTENSIONS, CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
DELTA = {
    EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def works(spark, name):
    path = f"{sys.argv[1]}/{name}"
    spark.range(3).write.format("delta").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    DeltaTable.forPath(spark, path).update(set={"id": "id + 1"})
    spark.range(3).write.format("delta").saveAsTable(name)
    assert sorted(row.id for row in spark.read.format("delta").load(path).collect()) == [1, 3]
    assert spark.sql(f"SELECT count(*) n FROM {name}").first().n == 3


# A session without Delta first: the builder's settings are applied to it while it runs.
plain = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
assert plain.range(2).count() == 2
builder = SparkSession.builder
for key, value in DELTA.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
assert spark is plain
works(spark, "running")
# Again, as each function of a job does.
assert builder.getOrCreate() is spark
works(spark, "again")
works(spark.newSession(), "made")
problems = []


def in_thread():
    try:
        works(builder.getOrCreate(), "threaded")
    except BaseException as error:  # noqa: BLE001
        problems.append(error)


thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
assert not problems, problems
spark.stop()

spark = builder.config(EXTENSIONS, f"{DELTA[EXTENSIONS]},org.example.NotThere").getOrCreate()
assert spark.conf.get(EXTENSIONS) == "org.example.NotThere", "other extensions stay"
works(spark, "second")
spark.stop()

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
try:
    spark.range(1).write.format("delta").save(sys.argv[1] + "/nothing")
except Exception as error:  # noqa: BLE001
    print("not enabled:", str(error).splitlines()[0][:80])
print("done")
