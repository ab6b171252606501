"""Tables of Unity Catalog by their names in Spark: SQL, frames, Delta's Python API."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import AnalysisException

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.catalog import UnityCatalog
from deltafast.exceptions import InvalidArgumentError
from spark.child_session import ALL
from spark.helpers import ids
from unity import UnityServer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=ALL),
]
NAME = "main.sales.orders"


@pytest.fixture
def server(spark, tmp_path):
    """A server whose catalog `main` the session has."""
    with UnityServer().running() as running:
        running.warehouse = tmp_path.as_uri()
        deltafast.spark.enable(spark, catalogs={"main": UnityCatalog(running.url, running.token)})
        yield running
        deltafast.spark.enable(spark)
        assert running.violations == []


@pytest.fixture
def catalog(server):
    return UnityCatalog(server.url, server.token)


def opened(catalog, name=NAME):
    return DeltaTable(f"uc://{name}", catalog=catalog)


def test_the_life_of_a_managed_table(spark, server, catalog):
    spark.sql(
        f"CREATE TABLE {NAME} (id BIGINT, state STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
    )
    (state,) = server.tables.values()
    assert state["kind"] == "MANAGED"
    spark.sql(f"INSERT INTO {NAME} VALUES (1, 'new'), (2, 'new'), (3, 'new')")
    spark.range(4, 6).selectExpr("id", "'new' state").write.format("delta").mode("append").saveAsTable(NAME)
    spark.sql(f"UPDATE {NAME} SET state = 'paid' WHERE id = 1")
    spark.sql(
        f"MERGE INTO {NAME} t USING (SELECT 2L id, 'sent' state UNION ALL SELECT 6L, 'new') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM {NAME} WHERE id = 3")
    spark.sql(f"OPTIMIZE {NAME}")
    assert ids(spark.sql(f"SELECT * FROM {NAME}")) == ids(spark.table(NAME)) == [1, 2, 4, 5, 6]
    assert {row.state for row in spark.table(NAME).where("id < 3").collect()} == {"paid", "sent"}
    table = opened(catalog)
    assert table.version() == state["latest"] >= 6
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 4, 5, 6]
    assert ids(spark.sql(f"SELECT * FROM {NAME} VERSION AS OF 1")) == [1, 2, 3]
    changes = spark.sql(f"SELECT * FROM table_changes('{NAME}', 1)")
    assert changes.where("_change_type = 'delete'").count() == 1
    newest = spark.sql(f"DESCRIBE HISTORY {NAME}").first()
    assert (newest.version, newest.operation) == (table.version(), "OPTIMIZE")


def test_external_tables_and_deltas_api(spark, server, catalog, tmp_path):
    from delta.tables import DeltaTable as Table

    write_deltalake(tmp_path / "t", {"id": [1, 2]})
    catalog.register(NAME, DeltaTable(tmp_path / "t"))
    table = Table.forName(spark, NAME)
    table.delete("id = 1")
    rows = spark.createDataFrame([(2,), (3,)], "id bigint")
    table.alias("t").merge(rows.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    spark.range(4, 5).writeTo(NAME).append()
    assert ids(table.toDF()) == ids(spark.read.table(NAME)) == [2, 3, 4]
    assert DeltaTable(tmp_path / "t").version() == 3
    assert spark.sql(f"DESCRIBE DETAIL {NAME}").first().format == "delta"
    stream = spark.readStream.table(NAME).writeStream.format("memory").queryName("orders")
    stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert ids(spark.table("orders")) == [2, 3, 4]


def test_external_tables_are_created_at_their_location(spark, server, catalog, tmp_path):
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT, day STRING) USING delta PARTITIONED BY (day) LOCATION '{tmp_path}/t'")
    (state,) = server.tables.values()
    assert (state["kind"], state["location"]) == ("EXTERNAL", (tmp_path / "t").as_uri())
    spark.sql(f"INSERT INTO {NAME} VALUES (1, 'mon')")
    assert DeltaTable(tmp_path / "t").metadata().partition_columns == ["day"]
    # It is there.
    spark.sql(f"CREATE TABLE IF NOT EXISTS {NAME} (id BIGINT, day STRING) USING delta LOCATION '{tmp_path}/t'")
    with pytest.raises(InvalidArgumentError, match="already exists"):
        spark.sql(f"CREATE TABLE {NAME} (id BIGINT, day STRING) USING delta LOCATION '{tmp_path}/t'")
    with pytest.raises(InvalidArgumentError, match="so its location cannot be"):
        spark.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta LOCATION '{tmp_path}/u'")
    assert not (tmp_path / "u").exists()
    spark.sql(f"CREATE TABLE main.sales.made USING delta LOCATION '{tmp_path}/v' AS SELECT id FROM {NAME}")
    assert ids(spark.table("main.sales.made")) == [1]
    # A table that exists gets a name; columns that are given must be its own.
    write_deltalake(tmp_path / "w", {"id": [7, 8]})
    with pytest.raises(InvalidArgumentError, match="does not match the existing schema"):
        spark.sql(f"CREATE TABLE main.sales.there (v STRING) USING delta LOCATION '{tmp_path}/w'")
    spark.sql(f"CREATE TABLE main.sales.there USING delta LOCATION '{tmp_path}/w'")
    assert ids(spark.table("main.sales.there")) == [7, 8]
    # The files of an external table stay.
    spark.sql("DROP TABLE main.sales.there")
    assert DeltaTable(tmp_path / "w").count() == 2
    assert catalog.tables("main", "sales") == ["made", "orders"]


def test_writers_and_deltas_builder_create_tables(spark, server, catalog, tmp_path):
    from delta.tables import DeltaTable as Table

    rows = spark.range(3)
    # A writer without a format writes Delta tables: the catalog has no others.
    rows.write.saveAsTable("main.sales.a")
    rows.write.format("delta").mode("append").option("path", str(tmp_path / "b")).saveAsTable("main.sales.b")
    rows.writeTo("main.sales.c").using("delta").create()
    builder = Table.create(spark).tableName("main.sales.d").addColumn("id", "BIGINT")
    builder.location(str(tmp_path / "d")).execute()
    rows.write.insertInto("main.sales.d")
    kinds = {name[2]: table["kind"] for name, table in server.tables.items()}
    assert kinds == {"a": "MANAGED", "b": "EXTERNAL", "c": "MANAGED", "d": "EXTERNAL"}
    for name in kinds:
        assert ids(spark.table(f"main.sales.{name}")) == [0, 1, 2]
    assert DeltaTable(tmp_path / "b").count() == DeltaTable(tmp_path / "d").count() == 3
    rows.write.mode("ignore").saveAsTable("main.sales.a")
    with pytest.raises(Exception, match=r"(?i)already exists"):
        rows.write.saveAsTable("main.sales.a")
    rows.write.mode("overwrite").saveAsTable("main.sales.a")
    assert ids(spark.table("main.sales.a")) == [0, 1, 2]
    assert opened(catalog, "main.sales.a").history(1)[0]["operation"] == "WRITE"


def test_names_are_listed_renamed_and_dropped(spark, server, catalog, tmp_path):
    for name in ("a", "b"):
        write_deltalake(tmp_path / name, {"id": [1]})
        catalog.register(f"main.sales.{name}", DeltaTable(tmp_path / name))
    assert [row.namespace for row in spark.sql("SHOW SCHEMAS IN main").collect()] == ["sales"]
    assert [row.tableName for row in spark.sql("SHOW TABLES IN main.sales").collect()] == ["a", "b"]
    assert spark.catalog.tableExists("main.sales.a")
    assert not spark.catalog.tableExists("main.sales.c")
    spark.sql("ALTER TABLE main.sales.a RENAME TO sales.z")
    spark.sql("DROP TABLE main.sales.b")
    assert catalog.tables("main", "sales") == ["z"]
    assert ids(spark.table("main.sales.z")) == [1]
    # The name leads to the new table, at another location.
    spark.sql("CREATE TABLE main.sales.b (v STRING) USING delta")
    spark.sql("INSERT INTO main.sales.b VALUES ('x')")
    assert [row.v for row in spark.table("main.sales.b").collect()] == ["x"]
    spark.sql("USE main.sales")
    try:
        assert ids(spark.sql("SELECT * FROM z")) == [1]
        spark.sql("DELETE FROM z")
        assert spark.table("main.sales.z").count() == 0
    finally:
        spark.sql("USE spark_catalog.default")


def test_settings_name_a_catalog(spark, tmp_path):
    settings = {"": "io.deltafast.spark.UnityCatalog", ".uri": "", ".token": "word"}
    with UnityServer().running() as server:
        try:
            for name, value in (settings | {".uri": server.url, ".token": server.token}).items():
                spark.conf.set(f"spark.sql.catalog.main{name}", value)
            deltafast.spark.enable(spark)
            write_deltalake(tmp_path / "t", {"id": [1, 2]})
            UnityCatalog(server.url, server.token).register(NAME, DeltaTable(tmp_path / "t"))
            spark.sql(f"DELETE FROM {NAME} WHERE id = 1")
            assert ids(spark.table(NAME)) == [2]
            spark.conf.unset("spark.sql.catalog.main.uri")
            with pytest.raises(InvalidArgumentError, match=r"give its server as spark\.sql\.catalog\.main\.uri"):
                deltafast.spark.enable(spark)
        finally:
            for name in settings:
                spark.conf.unset(f"spark.sql.catalog.main{name}")
            deltafast.spark.enable(spark)
        assert server.violations == []


def test_what_is_wrong_names_it(spark, server):
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("main.sales.missing")
    spark.sql("CREATE OR REPLACE TABLE main.sales.made USING delta AS SELECT 1 id")
    assert ids(spark.table("main.sales.made")) == [1]
    with pytest.raises(InvalidArgumentError, match="is not replaced by a query"):
        spark.sql("CREATE OR REPLACE TABLE main.sales.made USING delta AS SELECT 2 id")
    answer = {"error": {"message": "not yours", "type": "PermissionDeniedException", "code": 403}}
    from servers import Answer

    server.disturb = lambda _: Answer(403, {}, json.dumps(answer).encode())
    with pytest.raises(Exception, match="PermissionDeniedException not yours"):
        spark.table(NAME)
    server.disturb = None
