"""A session for programs for delta-spark whose paths are those of HDFS, without Delta's jar."""

from __future__ import annotations

import pytest
from pyspark import SparkContext

import deltafast.spark
from deltafast import DeltaTable as Handle
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from spark import hdfs

from .started import Started, builder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.proof,
    pytest.mark.timeout(300),
    pytest.mark.child_session("hdfs"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture(scope="session")
def cluster():
    """Give the root of a running HDFS."""
    # Java alone, which resolves the cluster's jars: the session's settings name the cluster.
    SparkContext._ensure_initialized()
    with hdfs.running(SparkContext._jvm) as url:
        yield url


@pytest.fixture(scope="session")
def started(cluster):
    """Give the session."""

    def build():
        made = builder("local[2]").config("spark.log.level", "OFF").config("spark.hadoop.fs.defaultFS", cluster)
        return made.config("spark.sql.warehouse.dir", f"{cluster}/warehouse").getOrCreate()

    started = Started(build)
    yield started
    started.stop()


@pytest.fixture
def spark(started):
    """Give the session with deltafast enabled."""
    deltafast.spark.enable(started.session())
    yield from started.isolated()


def test_paths_without_a_scheme(spark, cluster):
    assert place_of(Session(spark), "t").hadoop.startswith(f"{cluster}/user/")
    spark.range(10).write.format("delta").save("/plain/t")
    spark.range(10, 12).write.format("delta").mode("append").save(f"{cluster}/plain/t")
    assert spark.read.format("delta").load("/plain/t").count() == 12
    assert spark.sql("SELECT count(*) FROM delta.`/plain/t` VERSION AS OF 0").first()[0] == 10


def test_changes_and_streams(spark):
    from delta.tables import DeltaTable

    spark.range(12).write.format("delta").save("/changed/t")
    DeltaTable.forPath(spark, "/changed/t").delete("id = 3")
    spark.sql("UPDATE delta.`/changed/t` SET id = 100 WHERE id = 4")
    stream = spark.readStream.format("delta").option("ignoreChanges", "true").load("/changed/t")
    writer = stream.writeStream.format("delta").option("checkpointLocation", "/changed/checkpoint")
    writer.trigger(availableNow=True).start("/changed/u").awaitTermination()
    assert spark.read.format("delta").load("/changed/u").agg({"id": "sum"}).first()[0] == 66 - 3 - 4 + 100


def test_managed_tables(spark, cluster):
    spark.range(3).write.format("delta").saveAsTable("named")
    spark.sql("INSERT INTO named VALUES (7)")
    assert sorted(row[0] for row in spark.table("named").collect()) == [0, 1, 2, 7]
    place = place_of(Session(spark), f"{cluster}/warehouse/named")
    assert Handle(place.uri, storage_options=place.options).version() == 1


def test_local_paths_need_their_scheme(spark, tmp_path):
    spark.range(5).write.format("delta").save(f"file:{tmp_path}/t")
    spark.sql(f"DELETE FROM delta.`file:{tmp_path}/t` WHERE id = 1")
    assert spark.read.format("delta").load(f"file:{tmp_path}/t").count() == 4
    assert Handle(str(tmp_path / "t")).version() == 1
