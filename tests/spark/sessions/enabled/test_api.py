"""The Python API of delta-spark."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from deltafast import DeltaTable
from spark.child_session import BOTH
from spark.helpers import ids

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=BOTH),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def test_python_api_of_delta_spark(spark, tmp_path, warehouse):
    from delta import configure_spark_with_delta_pip
    from delta.exceptions import DeltaConcurrentModificationException
    from delta.tables import DeltaTable as Table

    assert issubclass(DeltaConcurrentModificationException, Exception)
    builder = SparkSession.builder
    assert configure_spark_with_delta_pip(builder) is builder
    path = str(tmp_path / "letters")
    letters = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3)], ["key", "value"])
    letters.write.format("delta").save(path)
    Table.forPath(spark, path).delete("key = 'a'")
    assert sorted(map(tuple, Table.forPath(spark, path).toDF().collect())) == [("b", 2), ("c", 3)]
    assert Table.isDeltaTable(spark, path)
    assert not Table.isDeltaTable(spark, str(tmp_path))
    letters.write.format("delta").saveAsTable("letters")
    table = Table.forName(spark, "letters")
    source = spark.createDataFrame([("a", -1), ("e", 5)], ["k", "v"])
    merge = table.merge(source, "key = k").whenMatchedUpdate(set={"value": "v"})
    merge.whenNotMatchedInsert(values={"key": "k", "value": "v"}).execute()
    assert sorted(map(tuple, spark.table("letters").collect())) == [("a", -1), ("b", 2), ("c", 3), ("e", 5)]
    spark.range(5).write.parquet(str(tmp_path / "parquet"))
    Table.convertToDelta(spark, f"parquet.`{tmp_path}/parquet`")
    assert spark.read.format("delta").load(str(tmp_path / "parquet")).count() == 5
    spark.sql("CREATE TABLE made (a INT, b STRING) USING delta PARTITIONED BY (b)")
    spark.sql("INSERT INTO made VALUES (1, 'x'), (2, 'y')")
    spark.sql("UPDATE made SET a = a + 10 WHERE b = 'x'")
    assert ids(spark.table("made")) == [2, 11]
    assert ids(spark.sql("SELECT * FROM made VERSION AS OF 1")) == [1, 2]
    assert ids(spark.sql(f"SELECT value FROM delta.`{path}` WHERE value > 2")) == [3]
    assert [row.operation for row in spark.sql("DESCRIBE HISTORY made").collect()] == [
        "UPDATE",
        "WRITE",
        "CREATE TABLE",
    ]
    Table.create(spark).tableName("built").addColumn("x", "INT").addColumn("y", "INT").partitionedBy("x").execute()
    assert Table.forName(spark, "built").detail().collect()[0].partitionColumns == ["x"]
    for name in ("made", "built"):
        spark.sql(f"DROP TABLE {name}")
        assert not (warehouse / name).exists()
    spark.sql("CREATE TABLE made (c INT) USING delta")
    assert spark.table("made").columns == ["c"]
    # What was given a place stays there.
    spark.sql(f"CREATE TABLE placed (c INT) USING delta LOCATION '{tmp_path}/placed'")
    spark.sql("DROP TABLE placed")
    assert DeltaTable(str(tmp_path / "placed")).version() == 0
    spark.range(3).writeTo("written").using("delta").create()
    assert ids(spark.table("written")) == [0, 1, 2]
    assert DeltaTable(str(warehouse / "written")).version() == 0


def test_schemas_and_error_messages(spark):
    from delta.tables import DeltaTable as Table

    builder = Table.createOrReplace(spark).tableName("sensors").comment("readings").property("owner", "me")
    builder = builder.addColumn("day", "INT", nullable=False, comment="since 1970").addColumn("level", "BIGINT")
    table = builder.addColumn("next", "INT", generatedAlwaysAs="day + 1").partitionedBy("day").execute()
    expected = StructType(
        [
            StructField("day", IntegerType(), nullable=False, metadata={"comment": "since 1970"}),
            StructField("level", LongType()),
            StructField("next", IntegerType()),
        ]
    )
    assert table.toDF().schema == spark.read.table("sensors").schema == expected
    for day in (1, 2, 2):
        spark.sql(f"INSERT INTO sensors (day, level) VALUES ({day}, {day * 10})")
    assert sorted(map(tuple, table.toDF().collect())) == [(1, 10, 2), (2, 20, 3), (2, 20, 3)]
    words = "Predicate references non-partition column 'level'. Only the partition columns may be referenced: [day]"
    with pytest.raises(AnalysisException, match=re.escape(words)):
        table.optimize().where("level = 10").executeCompaction()
    with pytest.raises(
        AnalysisException, match=r"day is a partition column\. Z-Ordering can only be performed on data columns"
    ):
        table.optimize().executeZOrderBy("day")
    assert table.optimize().where("day = 2").executeCompaction().first().metrics.numFilesRemoved == 2
    with pytest.raises(AnalysisException, match="already exists") as found:
        Table.create(spark).tableName("sensors").addColumn("day", "INT").execute()
    assert "sensors" in str(found.value)
    with pytest.raises(AnalysisException, match=r"cannot be found|did not exist"):
        Table.replace(spark).tableName("nobody").addColumn("day", "INT").execute()
    spark.sql("DROP TABLE sensors")
