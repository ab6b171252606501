"""Statements that Java code of the driver passes to the session, and the catalog with time travel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast._sql.reading import read_statement
from deltafast._sql.result_columns import columns_of
from spark.child_session import ALL
from spark.helpers import ids

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=ALL),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def java(spark, text, *args):
    """Run a statement as Java code does, past PySpark's methods."""
    return DataFrame(spark._jsparkSession.sql(text, *args), spark)


@pytest.fixture
def table(tmp_path) -> str:
    """Give a table of two versions: ten rows, then twenty."""
    path = str(tmp_path / "t")
    for start in (0, 10):
        rows = pa.table({"id": pa.array(range(start, start + 10), pa.int64()), "s": ["x"] * 10})
        write_deltalake(path, rows, mode="append")
    return path


def test_each_statement_has_the_columns_of_its_result(spark, table, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "files.parquet")
    (tmp_path / "files").mkdir()
    (tmp_path / "files.parquet").rename(tmp_path / "files" / "a.parquet")
    t = f"delta.`{table}`"
    statements = {
        f"INSERT INTO {t} VALUES (20, 'y')": [(1, 1)],
        f"INSERT INTO {t} SELECT id, 'z' FROM range(21, 23)": [(2, 2)],
        f"DELETE FROM {t} WHERE id < 2": [(2,)],
        f"UPDATE {t} SET s = (SELECT 'u') WHERE id = 5": [(1,)],
        f"MERGE INTO {t} t USING (SELECT 5L id, 'm' s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *": [(1, 1, 0, 0)],
        f"MERGE INTO {t} t USING (SELECT 6L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = (SELECT 'u')": [
            (1, 1, 0, 0)
        ],
        f"CREATE TABLE delta.`{tmp_path}/c` (a INT) USING delta": [],
        f"CREATE OR REPLACE TABLE delta.`{tmp_path}/c` USING delta AS SELECT 1 a": [],
        f"CREATE TABLE delta.`{tmp_path}/clone` SHALLOW CLONE {t}": None,
        f"ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')": [],
        f"OPTIMIZE {t}": None,
        f"REORG TABLE {t} APPLY (PURGE)": None,
        f"VACUUM {t}": [(f"file:{table}",)],
        f"RESTORE TABLE {t} TO VERSION AS OF 1": None,
        f"CONVERT TO DELTA parquet.`{tmp_path}/files`": [],
        f"GENERATE symlink_format_manifest FOR TABLE {t}": [],
    }
    for text, rows in statements.items():
        frame = java(spark, text)
        known = columns_of(read_statement(text.replace("(SELECT 'u')", "'u'"), zone="UTC"))
        assert known is not None, text
        assert frame.schema == from_arrow_schema(known), text
        found = [tuple(row) for row in frame.collect()]
        assert found == rows or (rows is None and len(found) == 1), (text, found)
    assert DeltaTable(table).history(1)[0]["operation"] == "RESTORE"
    assert ids(DataFrame(spark._jsparkSession.read().format("delta").load(table), spark)) == list(range(20))


def test_statements_that_read(spark, table):
    t = f"delta.`{table}`"
    assert java(spark, f"SELECT count(*) FROM {t} VERSION AS OF 0").collect() == [(10,)]
    assert java(spark, f"SELECT count(*) FROM {t}").collect() == [(20,)]
    assert java(spark, f"DESCRIBE HISTORY {t} LIMIT 1").first().version == 1
    assert java(spark, f"SELECT count(*) FROM delta_files('{table}')").collect() == [(2,)]
    java(spark, f"CREATE TEMP VIEW old AS SELECT * FROM {t} VERSION AS OF 0")
    assert java(spark, "SELECT count(*) FROM old").collect() == [(10,)]
    assert java(spark, "SELECT count(*) FROM range(3)").collect() == [(3,)]
    assert "Execute Delete" in java(spark, f"EXPLAIN DELETE FROM {t}").first().plan
    assert DeltaTable(table).version() == 1


def test_a_statement_runs_once(spark, table):
    frame = java(spark, f"DELETE FROM delta.`{table}` WHERE id = 3")
    assert frame.collect() == frame.collect() == [(1,)]
    assert frame.selectExpr("num_affected_rows + 1 n").collect() == [(2,)]
    assert DeltaTable(table).version() == 2
    # A plan that is not executed changes nothing.
    spark._jsparkSession.sessionState().sqlParser().parsePlan(f"DELETE FROM delta.`{table}`")
    assert DeltaTable(table).version() == 2


def test_parameters(spark, table, release):
    assert spark.sql(f"DELETE FROM delta.`{table}` WHERE id < :n", {"n": 2}).collect() == [(2,)]
    literal = spark._jvm.java.util.HashMap()
    literal.put("n", 4)
    text = f"DELETE FROM delta.`{table}` WHERE id < :n AND s = 'x'"
    if release == "4.0":
        # Its parser does not receive them.
        with pytest.raises(deltafast.exceptions.DeltaError, match="parameters are not supported"):
            java(spark, text, literal)
        return
    assert java(spark, text, literal).collect() == [(2,)]
    marks = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.Object, 2)
    marks[0], marks[1] = 6, "x"
    assert java(spark, f"DELETE FROM delta.`{table}` WHERE id < ? AND s = ?", marks).collect() == [(2,)]
    assert java(spark, f"SELECT count(*) FROM delta.`{table}` VERSION AS OF 0 WHERE id < :n", literal).collect() == [
        (4,)
    ]


def test_errors(spark, table, tmp_path):
    for run in (java, type(spark).sql):
        with pytest.raises(AnalysisException, match="is not a Delta table") as raised:
            run(spark, f"DESCRIBE HISTORY delta.`{tmp_path}/nothing`")
        assert raised.value.getCondition() == "DELTA_TABLE_ONLY_OPERATION"
        with pytest.raises(deltafast.exceptions.TableNotFoundError):
            run(spark, f"DELETE FROM delta.`{tmp_path}/nothing`")
        with pytest.raises(deltafast.exceptions.InvalidArgumentError):
            run(spark, f"DELETE FROM delta.`{table}` WHERE nope = 1")
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
            run(spark, f"SELECT nope FROM delta.`{table}` VERSION AS OF 0")
        with pytest.raises(ParseException) as wrong:
            run(spark, "SELEC 1")
        # The statement as it was given, without deltafast's mark.
        assert "SELEC 1\n^^^" in str(wrong.value)
    assert DeltaTable(table).version() == 1


def test_tables_of_the_catalog_at_a_version(spark, table):
    spark.sql("CREATE TABLE known (id BIGINT) USING delta")
    spark.sql("INSERT INTO known VALUES (1)")
    spark.sql("INSERT INTO known VALUES (2)")
    reader = spark._jsparkSession.read().option("versionAsOf", "1")
    assert ids(DataFrame(reader.table("known"), spark)) == [1]
    # By Spark's own parser.
    parser = spark._jsparkSession.sessionState().sqlParser()
    for name, version, found in (("known", 1, 1), ("known", 2, 2), (f"delta.`{table}`", 0, 10)):
        plan = parser.parsePlan(f"/* Spark's own */ SELECT * FROM {name} VERSION AS OF {version}")
        frame = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
        assert frame.count() == found
    newest = spark.sql("SELECT unix_micros(timestamp) FROM delta_history('known') ORDER BY 1 DESC").first()[0]
    text = f"/* Spark's own */ SELECT * FROM known TIMESTAMP AS OF timestamp_micros({newest})"
    assert java(spark, text).count() == 2
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 a")
    assert java(spark, "SELECT * FROM plain").collect() == [(1,)]
    with pytest.raises(AnalysisException, match=r"TIME_TRAVEL|time travel"):
        java(spark, "/* Spark's own */ SELECT * FROM plain VERSION AS OF 1")


def test_other_sessions_and_the_way_back(spark, table):
    catalog = "spark.sql.catalog.spark_catalog"
    assert spark.conf.get(catalog) == "io.deltafast.spark.DeltafastCatalog"
    other = spark.newSession()
    assert java(other, f"DELETE FROM delta.`{table}` WHERE id = 0").collect() == [(1,)]
    assert java(spark.active(), "SELECT 1").collect() == [(1,)]
    deltafast.spark.disable(spark)
    older = spark.newSession()
    deltafast.spark.enable(spark)
    assert older.sql(f"UPDATE delta.`{table}` SET s = 'older' WHERE id = 1").collect() == [(1,)]
    assert java(older, f"SELECT s FROM delta.`{table}` WHERE id = 1").collect() == [("older",)]
    assert older.conf.get(catalog) == "io.deltafast.spark.DeltafastCatalog"
    deltafast.spark.disable(spark)
    assert older.conf.get(catalog, "builtin") == "builtin"
    assert spark.conf.get(catalog, "builtin") == "builtin"
    with pytest.raises(AnalysisException):
        java(spark, f"DELETE FROM delta.`{table}`")
    spark.sql("CREATE TABLE plain2 USING parquet AS SELECT 1 a")
    assert java(spark, "SELECT * FROM plain2").collect() == [(1,)]
    deltafast.spark.enable(spark)
    assert java(spark, f"DELETE FROM delta.`{table}`").collect() == [(19,)]


def test_threads_get_their_own_errors_and_results(spark, table, tmp_path):
    def failing(number):
        with pytest.raises(deltafast.exceptions.TableNotFoundError) as raised:
            spark.sql(f"DELETE FROM delta.`{tmp_path}/nothing-{number}`")
        return f"nothing-{number}" in str(raised.value) and raised.value.getCondition() is not None

    def counting(number):
        version = number % 2
        return (
            spark.sql(f"SELECT count(*) FROM delta.`{table}` VERSION AS OF {version}").first()[0] == 10 + 10 * version
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda number: (failing, counting)[number % 2](number // 2), range(48)))


def test_statements_within_statements(spark, table):
    spark.sql(f"EXECUTE IMMEDIATE 'DELETE FROM delta.`{table}` WHERE id < 3'")
    assert spark.sql(f"SELECT count(*) FROM delta.`{table}`").first()[0] == 17

    def each(rows, number):
        rows.sparkSession.sql(f"DELETE FROM delta.`{table}` WHERE id = 5 + {number}")

    query = spark.readStream.format("delta").option("ignoreChanges", "true").load(table).writeStream.foreachBatch(each)
    query = query.option("checkpointLocation", f"{table}-checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None
    assert spark.sql(f"SELECT count(*) FROM delta.`{table}` WHERE id = 5").first()[0] == 0
