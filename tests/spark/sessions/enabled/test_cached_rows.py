"""What Spark has cached of a table is read again after each change by this session, as in delta-spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions

from deltafast import DeltaTable, write_deltalake
from deltafast.spark.tables import DeltaTable as Tables
from spark.child_session import BOTH
from spark.helpers import plan, usual_and_proof

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=BOTH),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

#: With column mapping, a table of the catalog is a relation of another class.
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"


def row(spark: Any, number: int) -> Any:
    """Return a frame of one row."""
    return spark.range(number, number + 1).selectExpr("id", "id % 2 p")


#: By name: the change, which gets the session, the name of the table and its path, and the ids after it.
CHANGES: dict[str, tuple[Callable[[Any, str, str], Any], list[int]]] = {
    "save": (lambda s, _, p: row(s, 10).write.format("delta").mode("append").save(p), [0, 1, 2, 3, 10]),
    "INSERT of VALUES": (lambda s, n, _: s.sql(f"INSERT INTO {n} VALUES (11, 1)"), [0, 1, 2, 3, 10, 11]),
    "insertInto": (lambda s, n, _: row(s, 12).write.insertInto(n), [0, 1, 2, 3, 10, 11, 12]),
    "DELETE by path": (lambda s, _, p: s.sql(f"DELETE FROM delta.`{p}` WHERE id > 10"), [0, 1, 2, 3, 10]),
    "UPDATE": (lambda s, n, _: s.sql(f"UPDATE {n} SET id = 20 WHERE id = 10"), [0, 1, 2, 3, 20]),
    "MERGE": (
        lambda s, n, _: s.sql(f"MERGE INTO {n} t USING (SELECT 3L id) s ON t.id = s.id WHEN MATCHED THEN DELETE"),
        [0, 1, 2, 20],
    ),
    "delete": (lambda s, _, p: Tables.forPath(s, p).delete("id = 20"), [0, 1, 2]),
    "RESTORE": (lambda s, n, _: s.sql(f"RESTORE TABLE {n} TO VERSION AS OF 0"), [0, 1, 2, 3]),
    "restoreToVersion": (lambda s, n, _: Tables.forName(s, n).restoreToVersion(1), [0, 1, 2, 3, 10]),
    "saveAsTable": (lambda s, n, _: row(s, 30).write.format("delta").mode("overwrite").saveAsTable(n), [30]),
    "CREATE OR REPLACE": (
        lambda s, n, _: s.sql(f"CREATE OR REPLACE TABLE {n} USING delta PARTITIONED BY (p) AS SELECT 40L id, 0L p"),
        [40],
    ),
}


#: CREATE OR REPLACE without the properties ends the mapping, so an older frame has other columns than the table.
assert (*CHANGES,)[-1] == "CREATE OR REPLACE"
#: The changes that are made each time; the proof tier makes all.
USUAL = ("save", "INSERT of VALUES", "RESTORE")


@pytest.mark.parametrize("case", usual_and_proof([(MAPPED, USUAL)], [(MAPPED, (*CHANGES,)[:-1]), ("", (*CHANGES,))]))
def test_cached_rows_are_read_again_after_a_change(spark, tmp_path, case):
    properties, changes = case
    name, path = "changed", str(tmp_path / "changed")
    rows = "SELECT id, id % 2 p FROM range(4)"
    spark.sql(f"CREATE TABLE {name} USING delta PARTITIONED BY (p) LOCATION '{path}' {properties} AS {rows}")

    def load(**options: Any) -> Any:
        return spark.read.format("delta").options(**options).load(path)

    load().where("id >= 0").createOrReplaceTempView("seen")
    persisted = [load().persist(), load().where("id < 1000").persist(), load(versionAsOf=0).persist()]
    sums = load().groupBy("p").agg(functions.sum("id").alias("total")).persist()
    found = spark.range(100).where(f"id IN (SELECT id FROM {name})").persist()
    for cached in (name, "seen"):
        spark.catalog.cacheTable(cached)
    try:
        for change, (run, ids) in ((change, CHANGES[change]) for change in changes):
            run(spark, name, path)
            frames = [*persisted[:2], spark.table(name), spark.table("seen"), load(), found]
            assert [frame.count() for frame in frames] == [len(ids)] * 6, change
            assert sums.agg(functions.sum("total")).first()[0] == sum(ids), change
            assert spark.sql(f"SELECT sum(id) FROM {name}").first()[0] == sum(ids), change
            # An older version does not change.
            assert persisted[2].count() == 4, change
            for cached in (name, "seen"):
                assert spark.catalog.isCached(cached), change
                assert "InMemory" in plan(spark.table(cached)), change
        spark.catalog.uncacheTable(name)
        assert not spark.catalog.isCached(name)
    finally:
        spark.catalog.clearCache()


def test_rows_that_are_cached_of_an_older_version_are_not_those_of_a_newer_one(spark, tmp_path):
    path = str(tmp_path / "committed")
    spark.range(4).write.format("delta").save(path)
    frame = spark.read.format("delta").load(path).persist()
    try:
        assert frame.count() == 4
        # Another writer: Spark is not told.
        DeltaTable(path).delete("id = 3")
        newer = spark.read.format("delta").load(path)
        assert newer.count() == 3
        assert "InMemory" not in plan(newer)
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
        assert frame.count() == spark.read.format("delta").load(path).count() == 2
    finally:
        spark.catalog.clearCache()


def test_a_new_table_at_the_place_of_a_cached_one_is_read_itself(spark, tmp_path):
    path = tmp_path / "place"
    spark.range(4).write.format("delta").save(str(path))
    frame = spark.read.format("delta").load(str(path)).persist()
    try:
        assert frame.count() == 4
        path.rename(tmp_path / "elsewhere")
        write_deltalake(path, spark.range(1).toArrow())
        assert spark.read.format("delta").load(str(path)).count() == 1
    finally:
        spark.catalog.clearCache()


@pytest.mark.parametrize("properties", usual_and_proof([MAPPED], [""]))
def test_a_self_join_exchanges_the_rows_of_a_table_once(spark, tmp_path, properties):
    path = str(tmp_path / "joined")
    spark.sql(f"CREATE TABLE joined USING delta LOCATION '{path}' {properties} AS SELECT id, id v FROM range(8)")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")

    def load() -> Any:
        return spark.read.format("delta").load(path)

    for left, right in ((load(), load()), (spark.table("joined"), spark.table("joined"))):
        joined = left.alias("a").join(right.alias("b"), functions.expr("a.id = b.v")).selectExpr("a.v", "b.id")
        assert joined.count() == 8
        same = left.alias("a").join(right.alias("b"), functions.expr("a.id = b.id"))
        assert same.count() == 8
        # The plan as it is run: the adaptive one is final afterwards.
        same.collect()
        assert "ReusedExchange" in plan(same)
    # Frames of other versions have other rows.
    spark.sql("DELETE FROM joined WHERE id > 3")
    old = spark.read.format("delta").option("versionAsOf", 0).load(path)
    both = old.alias("a").join(load().alias("b"), functions.expr("a.id = b.id"), "left")
    assert both.where("b.id IS NULL").count() == 4
