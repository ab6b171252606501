"""A pipeline on Spark without a jar: bronze -> silver -> gold.

Orders and their corrections are appended to bronze as they come. A MERGE brings silver up to date, once per order; its
change data feed says what gold has to be told. OPTIMIZE and VACUUM keep silver in shape, and time travel looks back.

python examples/pipeline.py
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import deltafast.spark
from deltafast.spark import DeltaTable

COLUMNS = "id bigint, customer string, amount double, seq bigint, op string"
MONDAY = [(1, "ada", 10.0, 1, "new"), (2, "bob", 20.0, 1, "new"), (3, "ada", 30.0, 1, "new")]
TUESDAY = [
    (2, "bob", 25.0, 2, "fix"),
    (2, "bob", 26.0, 3, "fix"),
    (3, "ada", 0.0, 2, "cancel"),
    (4, "cy", 40.0, 1, "new"),
]


def make_tables(spark: Any, root: str) -> None:
    """Make the three tables, where they are not there yet."""
    bronze = DeltaTable.createIfNotExists(spark).location(f"{root}/bronze")
    bronze.addColumn("id", "bigint").addColumn("customer", "string").addColumn("amount", "double")
    bronze.addColumn("seq", "bigint").addColumn("op", "string").execute()
    silver = DeltaTable.createIfNotExists(spark).location(f"{root}/silver")
    silver.addColumn("id", "bigint", nullable=False).addColumn("customer", "string").addColumn("amount", "double")
    silver.addColumn("seq", "bigint", comment="the newest change of the order that is in here")
    silver.property("delta.enableChangeDataFeed", "true").property("delta.enableDeletionVectors", "true").execute()
    gold = DeltaTable.createIfNotExists(spark).location(f"{root}/gold")
    gold.addColumn("customer", "string").addColumn("orders", "bigint").addColumn("total", "double").execute()


def to_bronze(spark: Any, root: str, rows: list[tuple[Any, ...]], batch: int) -> None:
    """Append a batch; one that comes again is passed over.

    In a stream this is what `foreachBatch` calls with its frame and its number.
    """
    frame = spark.createDataFrame(rows, COLUMNS)
    deltafast.spark.write(frame, f"{root}/bronze", "append", options={"txnAppId": "orders", "txnVersion": batch})


def to_silver(spark: Any, root: str) -> Any:
    """Bring each order up to its newest change; how many rows changed in which way."""
    newest = deltafast.spark.sql(
        spark,
        f"""SELECT id, max_by(struct(customer, amount, seq, op), seq) AS new
            FROM delta.`{root}/bronze` GROUP BY id""",
    ).select("id", "new.*")
    merge = DeltaTable.forPath(spark, f"{root}/silver").alias("t").merge(newest.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedDelete("s.op = 'cancel' AND s.seq > t.seq").whenMatchedUpdateAll("s.seq > t.seq")
    return merge.whenNotMatchedInsertAll("s.op != 'cancel'").execute().first()


def to_gold(spark: Any, root: str, since: int) -> None:
    """Recompute the customers that silver's feed names."""
    feed = {"readChangeFeed": True, "startingVersion": since}
    changed = deltafast.spark.read(spark, f"{root}/silver", options=feed).select("customer").distinct()
    orders = deltafast.spark.read(spark, f"{root}/silver")
    of_customers = orders.groupBy("customer")
    totals = of_customers.agg(F.count("*").alias("orders"), F.sum("amount").alias("total"))
    rows = changed.join(totals, "customer", "left").selectExpr("customer", "coalesce(orders, 0) orders", "total")
    merge = DeltaTable.forPath(spark, f"{root}/gold").alias("t").merge(rows.alias("s"), "t.customer = s.customer")
    merge = merge.whenMatchedDelete("s.orders = 0").whenMatchedUpdateAll()
    merge.whenNotMatchedInsertAll("s.orders > 0").execute()


def run(spark: Any, root: str) -> dict[str, Any]:
    """Run two days of it."""
    make_tables(spark, root)
    silver = DeltaTable.forPath(spark, f"{root}/silver")
    for batch, rows in enumerate((MONDAY, TUESDAY)):
        to_bronze(spark, root, rows, batch)
        to_bronze(spark, root, rows, batch)  # the sender was not sure
        before = silver.history(1).first().version
        changed = to_silver(spark, root)
        new, fixed, gone = changed.num_inserted_rows, changed.num_updated_rows, changed.num_deleted_rows
        print(f"silver: {new} new, {fixed} fixed, {gone} gone")
        to_gold(spark, root, before + 1)
    metrics = silver.optimize().executeCompaction().first().metrics
    print(f"silver: {metrics.numFilesRemoved} files are {metrics.numFilesAdded} now")
    silver.vacuum()  # nothing is older than a week yet
    monday = deltafast.spark.sql(spark, f"SELECT sum(amount) AS total FROM delta.`{root}/silver` VERSION AS OF 1")
    gold = deltafast.spark.read(spark, f"{root}/gold").orderBy("customer")
    return {
        "monday": monday.first().total,
        "gold": [tuple(row) for row in gold.collect()],
        "history": [row.operation for row in silver.history().collect()],
    }


def main() -> None:
    """Show it."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.executorEnv.PYSPARK_PYTHON", sys.executable).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        print(run(spark, folder))
    spark.stop()


if __name__ == "__main__":
    main()
