"""A program for delta-spark on a session whose paths are HDFS's, without Delta's jar."""

from __future__ import annotations

import pathlib
import sys
import tempfile
import warnings

from pyspark.sql import SparkSession

import deltafast.spark
from deltafast import DeltaTable as Handle
from deltafast.spark.session import Session
from deltafast.spark.storage import place_of

warnings.filterwarnings("ignore", category=FutureWarning)


def main(cluster: str, folder: str) -> None:
    """Run; the last line says that all is well."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.log.level", "OFF")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.hadoop.fs.defaultFS", cluster)
    spark = builder.config("spark.sql.warehouse.dir", f"{cluster}/warehouse").getOrCreate()
    deltafast.spark.enable(spark)
    from delta.tables import DeltaTable

    assert place_of(Session(spark), "t").hadoop.startswith(f"{cluster}/user/")
    spark.range(10).write.format("delta").save("/plain/t")
    spark.range(10, 12).write.format("delta").mode("append").save(f"{cluster}/plain/t")
    assert spark.read.format("delta").load("/plain/t").count() == 12
    assert spark.sql("SELECT count(*) FROM delta.`/plain/t` VERSION AS OF 0").first()[0] == 10
    DeltaTable.forPath(spark, "/plain/t").delete("id = 3")
    spark.sql("UPDATE delta.`/plain/t` SET id = 100 WHERE id = 4")
    stream = spark.readStream.format("delta").option("ignoreChanges", "true").load("/plain/t")
    writer = stream.writeStream.format("delta").option("checkpointLocation", "/plain/checkpoint")
    writer.trigger(availableNow=True).start("/plain/u").awaitTermination()
    assert spark.read.format("delta").load("/plain/u").agg({"id": "sum"}).first()[0] == 66 - 3 - 4 + 100
    spark.range(3).write.format("delta").saveAsTable("named")
    spark.sql("INSERT INTO named VALUES (7)")
    assert sorted(row[0] for row in spark.table("named").collect()) == [0, 1, 2, 7]
    place = place_of(Session(spark), f"{cluster}/warehouse/named")
    assert Handle(place.uri, storage_options=place.options).version() == 1
    # What is of this machine has to say so.
    spark.range(5).write.format("delta").save(f"file:{folder}/t")
    spark.sql(f"DELETE FROM delta.`file:{folder}/t` WHERE id = 1")
    assert spark.read.format("delta").load(f"file:{folder}/t").count() == 4
    assert Handle(str(pathlib.Path(folder, "t"))).version() == 1
    spark.stop()
    sys.stdout.write("all is well\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as there:
        main(sys.argv[1], there)
