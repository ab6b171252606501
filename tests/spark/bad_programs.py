"""Programs that fail with delta-spark: what each does wrong, to a table that all of them find.

`dev/make_spark_errors.py` records delta-spark's errors in `tests/golden/spark_errors.json`; deltafast must raise errors
that a program can distinguish by the same means.
"""

from __future__ import annotations

from typing import Any, Final


class Scene:
    """A session, and a folder with tables: `t`, partitioned by `part`; `parquet` and `json`, which are not tables."""

    def __init__(self, spark: Any, folder: str, table_class: Any) -> None:
        self.spark, self.folder, self.table_class = spark, folder, table_class
        self.table = f"{folder}/t"
        self.sql_name = f"delta.`{self.table}`"

    def build(self) -> None:
        """Create the tables."""
        rows = self.spark.sql("SELECT id, CAST(id % 2 AS INT) part, CAST(id AS STRING) text FROM range(4)")
        rows.write.format("delta").partitionBy("part").save(self.table)
        self.spark.range(2).write.parquet(f"{self.folder}/parquet")
        self.spark.range(2).write.json(f"{self.folder}/json")
        for name, properties in (
            ("checked", "'delta.constraints.positive' = 'id > 0'"),
            ("append_only", "'delta.appendOnly' = 'true'"),
        ):
            where = f"'{self.folder}/{name}'"
            self.spark.sql(
                f"CREATE TABLE {name} (id BIGINT NOT NULL, even BOOLEAN GENERATED ALWAYS AS (id % 2 = 0)) USING delta "
                f"LOCATION {where} TBLPROPERTIES ({properties})"
            )
        self.spark.sql(
            "CREATE TABLE limited (id BIGINT, v VARCHAR(3), s STRUCT<a: VARCHAR(3), b: CHAR(3)>, l ARRAY<VARCHAR(3)>, "
            f"m MAP<VARCHAR(3), CHAR(3)>) USING delta LOCATION '{self.folder}/limited'"
        )
        self.spark.sql("INSERT INTO limited (id, s) SELECT 0L, named_struct('a', 'x', 'b', 'y')")
        self.spark.sql("INSERT INTO append_only (id) VALUES (1)")
        self.spark.sql(
            "CREATE TABLE nested (id INT, l ARRAY<INT>, m MAP<INT, INT>, s STRUCT<x: INT>, v VARCHAR(3), checked INT, "
            f"base INT, made INT GENERATED ALWAYS AS (base + 1)) USING delta LOCATION '{self.folder}/nested' "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', "
            "'delta.feature.allowColumnDefaults' = 'supported', 'delta.constraints.positive' = 'checked > 0')"
        )
        self.spark.sql(
            "CREATE TABLE numbered (n BIGINT GENERATED ALWAYS AS IDENTITY, x INT) USING delta "
            f"LOCATION '{self.folder}/numbered'"
        )

    def load(self, path: str, **options: Any) -> None:
        """Read a table."""
        self.spark.read.format("delta").options(**options).load(path).collect()

    def save(self, query: str, mode: str = "append", path: str | None = None, **options: Any) -> None:
        """Write the rows of a query."""
        self.spark.sql(query).write.format("delta").mode(mode).options(**options).save(path or self.table)

    def sql(self, text: str) -> None:
        """Run a statement; `{t}` is the table, `{f}` the folder."""
        self.spark.sql(text.format(t=self.sql_name, f=self.folder)).collect()


ROW: Final = "SELECT 9L id, 1 part, 'x' text"
LATE: Final = "2999-01-01 00:00:00"

PROGRAMS: Final = {
    # tables that do not exist
    "forPath of a folder with other files": lambda s: s.table_class.forPath(s.spark, f"{s.folder}/parquet"),
    "forPath of nothing": lambda s: s.table_class.forPath(s.spark, f"{s.folder}/nothing"),
    "forName of nothing": lambda s: s.table_class.forName(s.spark, "nothing"),
    "load of nothing": lambda s: s.load(f"{s.folder}/nothing"),
    "load of a folder with other files": lambda s: s.load(f"{s.folder}/parquet"),
    "DELETE from nothing": lambda s: s.sql("DELETE FROM delta.`{f}/nothing`"),
    "UPDATE of a folder with other files": lambda s: s.sql("UPDATE delta.`{f}/parquet` SET id = 1"),
    "MERGE into nothing": lambda s: s.sql(
        "MERGE INTO delta.`{f}/nothing` t USING (SELECT 1 id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    ),
    "DESCRIBE HISTORY of nothing": lambda s: s.sql("DESCRIBE HISTORY delta.`{f}/nothing`"),
    "OPTIMIZE of nothing": lambda s: s.sql("OPTIMIZE delta.`{f}/nothing`"),
    "VACUUM of nothing": lambda s: s.sql("VACUUM delta.`{f}/nothing`"),
    "RESTORE of nothing": lambda s: s.sql("RESTORE TABLE delta.`{f}/nothing` TO VERSION AS OF 0"),
    "table name of nothing": lambda s: s.sql("SELECT * FROM nothing"),
    "CONVERT of other files": lambda s: s.sql("CONVERT TO DELTA parquet.`{f}/json`"),
    "stream of nothing": lambda s: s.spark.readStream.format("delta").load(f"{s.folder}/nothing"),
    # versions
    "versionAsOf beyond the newest": lambda s: s.load(s.table, versionAsOf=9),
    "versionAsOf not a number": lambda s: s.load(s.table, versionAsOf="x"),
    "timestampAsOf after the newest": lambda s: s.load(s.table, timestampAsOf=LATE),
    "timestampAsOf before the first": lambda s: s.load(s.table, timestampAsOf="1990-01-01"),
    "timestampAsOf not a timestamp": lambda s: s.load(s.table, timestampAsOf="x"),
    "both kinds of time travel": lambda s: s.load(s.table, versionAsOf=0, timestampAsOf=LATE),
    "VERSION AS OF beyond the newest": lambda s: s.sql("SELECT * FROM {t} VERSION AS OF 9"),
    "RESTORE to a version beyond the newest": lambda s: s.sql("RESTORE TABLE {t} TO VERSION AS OF 9"),
    "RESTORE to a time after the newest": lambda s: s.sql("RESTORE TABLE {t} TO TIMESTAMP AS OF '2999-01-01'"),
    "change feed that is not enabled": lambda s: s.load(s.table, readChangeFeed="true", startingVersion=0),
    "change feed without a start": lambda s: s.load(s.table, readChangeFeed="true"),
    "change feed that ends before it starts": lambda s: s.load(
        s.table, readChangeFeed="true", startingVersion=1, endingVersion=0
    ),
    # writes
    "save to an existing table": lambda s: s.save(ROW, "error"),
    "new column": lambda s: s.save("SELECT 9L id, 1 part, 'x' text, 1 more"),
    "other type": lambda s: s.save("SELECT array(1) id, 1 part, 'x' text"),
    "other type with mergeSchema": lambda s: s.save("SELECT array(1) id, 1 part, 'x' text", mergeSchema="true"),
    "other partitioning": lambda s: (
        s.spark.sql(ROW).write.format("delta").mode("append").partitionBy("text").save(s.table)
    ),
    "replaceWhere that rows do not match": lambda s: s.save(ROW, "overwrite", replaceWhere="part = 0"),
    "replaceWhere of an unknown column": lambda s: s.save(ROW, "overwrite", replaceWhere="nothing = 0"),
    "replaceWhere that is not SQL": lambda s: s.save(ROW, "overwrite", replaceWhere="part = = 0"),
    "replaceWhere with dynamic partitions": lambda s: s.save(
        ROW, "overwrite", replaceWhere="part = 1", partitionOverwriteMode="dynamic"
    ),
    "null where NOT NULL": lambda s: s.sql("INSERT INTO checked (id) VALUES (CAST(NULL AS BIGINT))"),
    "string that is too long": lambda s: s.sql("INSERT INTO limited (id, v) SELECT id, 'abcd' FROM range(1)"),
    "string in a struct that is too long": lambda s: s.sql(
        "INSERT INTO limited (id, s) SELECT id, named_struct('a', 'abcd', 'b', 'ab') FROM range(1)"
    ),
    "string in a list that is too long": lambda s: s.sql(
        "INSERT INTO limited (id, l) SELECT id, array('ab', 'abcd') FROM range(1)"
    ),
    "key that is too long": lambda s: s.sql("INSERT INTO limited (id, m) SELECT id, map('abcd', 'a') FROM range(1)"),
    "UPDATE to a string that is too long": lambda s: s.sql("UPDATE limited SET s.b = 'abcd'"),
    "row that breaks a CHECK": lambda s: s.sql("INSERT INTO checked (id) VALUES (-1)"),
    "row that breaks a generated column": lambda s: s.save("SELECT 1L id, true even", path=f"{s.folder}/checked"),
    "space in a column's name": lambda s: s.save("SELECT 1 `a b`", path=f"{s.folder}/new"),
    "a column twice": lambda s: s.save("SELECT 1 a, 2 A", path=f"{s.folder}/new"),
    "partition column that does not exist": lambda s: (
        s.spark.sql(ROW).write.format("delta").partitionBy("nothing").save(f"{s.folder}/new")
    ),
    "only partition columns": lambda s: (
        s.spark.sql("SELECT 1 a").write.format("delta").partitionBy("a").save(f"{s.folder}/new")
    ),
    "txnVersion without txnAppId": lambda s: s.save(ROW, txnVersion=1),
    "INSERT of too few columns": lambda s: s.sql("INSERT INTO {t} VALUES (1)"),
    # changes
    "DELETE from an append-only table": lambda s: s.sql("DELETE FROM append_only WHERE id = 1"),
    "overwrite of an append-only table": lambda s: s.save("SELECT 2L id", "overwrite", f"{s.folder}/append_only"),
    "DELETE by an unknown column": lambda s: s.sql("DELETE FROM {t} WHERE nothing = 1"),
    "UPDATE of an unknown column": lambda s: s.sql("UPDATE {t} SET nothing = 1"),
    "UPDATE of a column twice": lambda s: s.sql("UPDATE {t} SET id = 1, id = 2"),
    "MERGE with several matches": lambda s: s.sql(
        "MERGE INTO {t} t USING (SELECT 1 id, explode(array(1, 2)) n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET text = n"
    ),
    "MERGE that sets an unknown column": lambda s: s.sql(
        "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1"
    ),
    "OPTIMIZE by a column that is no partition": lambda s: s.sql("OPTIMIZE {t} WHERE id = 1"),
    "ZORDER BY a partition column": lambda s: s.sql("OPTIMIZE {t} ZORDER BY (part)"),
    "ZORDER BY an unknown column": lambda s: s.sql("OPTIMIZE {t} ZORDER BY (nothing)"),
    "VACUUM of a short period": lambda s: s.sql("VACUUM {t} RETAIN 0 HOURS"),
    # definitions
    "ADD COLUMNS of an existing one": lambda s: s.sql("ALTER TABLE {t} ADD COLUMNS (id INT)"),
    "DROP COLUMN without column mapping": lambda s: s.sql("ALTER TABLE {t} DROP COLUMN text"),
    "RENAME COLUMN without column mapping": lambda s: s.sql("ALTER TABLE {t} RENAME COLUMN text TO words"),
    "ALTER COLUMN to a narrower type": lambda s: s.sql("ALTER TABLE {t} ALTER COLUMN id TYPE INT"),
    "ALTER COLUMN that does not exist": lambda s: s.sql("ALTER TABLE {t} ALTER COLUMN nothing COMMENT 'x'"),
    "ALTER COLUMN after one that does not exist": lambda s: s.sql("ALTER TABLE {t} ALTER COLUMN id AFTER nothing"),
    "ALTER COLUMN of a column twice": lambda s: s.sql("ALTER TABLE {t} ALTER COLUMN id COMMENT 'x', id FIRST"),
    "CHANGE COLUMN to another type": lambda s: s.sql("ALTER TABLE {t} CHANGE COLUMN text text DATE COMMENT 'x'"),
    "SYNC IDENTITY of another column": lambda s: s.sql("ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY"),
    "longer values than a VARCHAR has": lambda s: s.sql("ALTER TABLE nested ALTER COLUMN v TYPE VARCHAR(2)"),
    "COMMENT of an element": lambda s: s.sql("ALTER TABLE nested ALTER COLUMN l.element COMMENT 'x'"),
    "ALTER COLUMN of a whole list": lambda s: s.sql("ALTER TABLE nested ALTER COLUMN l TYPE ARRAY<BIGINT>"),
    "ALTER COLUMN of a whole map": lambda s: s.sql("ALTER TABLE nested ALTER COLUMN m TYPE MAP<INT, BIGINT>"),
    "ALTER COLUMN of a whole struct": lambda s: s.sql("ALTER TABLE nested ALTER COLUMN s TYPE STRUCT<x: BIGINT>"),
    "ALTER COLUMN of elements to a narrower type": lambda s: s.sql(
        "ALTER TABLE nested ALTER COLUMN l.element TYPE SMALLINT"
    ),
    "DROP COLUMN of an element": lambda s: s.sql("ALTER TABLE nested DROP COLUMN l.element"),
    "DROP COLUMN of the only field": lambda s: s.sql("ALTER TABLE nested DROP COLUMN s.x"),
    "DROP COLUMN that a CHECK uses": lambda s: s.sql("ALTER TABLE nested DROP COLUMN checked"),
    "DROP COLUMN that a generated column uses": lambda s: s.sql("ALTER TABLE nested DROP COLUMN base"),
    "RENAME COLUMN of a key": lambda s: s.sql("ALTER TABLE nested RENAME COLUMN m.key TO k"),
    "REPLACE COLUMNS without one": lambda s: s.sql("ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, part INT)"),
    "REPLACE COLUMNS with another type": lambda s: s.sql(
        "ALTER TABLE {t} REPLACE COLUMNS (id INT, part INT, text STRING)"
    ),
    "REPLACE COLUMNS with another name": lambda s: s.sql(
        "ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, part INT, words STRING)"
    ),
    "REPLACE COLUMNS with one twice": lambda s: s.sql(
        "ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, part INT, ID BIGINT)"
    ),
    "REPLACE COLUMNS of a table with identity columns": lambda s: s.sql(
        "ALTER TABLE numbered REPLACE COLUMNS (x INT, n BIGINT)"
    ),
    "wider type without type widening": lambda s: s.sql("ALTER TABLE {t} ALTER COLUMN part TYPE BIGINT"),
    "ALTER COLUMN to a string": lambda s: s.sql("ALTER TABLE nested ALTER COLUMN id TYPE STRING"),
    "unknown property": lambda s: s.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.nothing' = '1')"),
    "wrong value of a property": lambda s: s.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'maybe')"),
    "UNSET of a property that is not set": lambda s: s.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('nothing')"),
    "constraint that rows break": lambda s: s.sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 2)"),
    "constraint of an existing name": lambda s: s.sql("ALTER TABLE checked ADD CONSTRAINT positive CHECK (id > 2)"),
    "DROP CONSTRAINT that does not exist": lambda s: s.sql("ALTER TABLE {t} DROP CONSTRAINT nothing"),
    "CREATE TABLE of an existing name": lambda s: s.sql("CREATE TABLE checked (id INT) USING delta"),
    "CREATE TABLE with another schema than the location": lambda s: s.sql(
        "CREATE TABLE other (x INT) USING delta LOCATION '{f}/t'"
    ),
    "ADD FEATURE that does not exist": lambda s: s.table_class.forPath(s.spark, s.table).addFeatureSupport("nothing"),
}


def error_of(scene: Scene, name: str) -> dict[str, Any] | None:
    """Run a program and return its error by what programs look at; None if there is none.

    Returns:
        Whether it is an `AnalysisException`, the condition, the SQLSTATE, and the first line of the message. PySpark
        does not convert some of delta-spark's exceptions: these have no condition, and the message is Java's.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    try:
        PROGRAMS[name](scene)
    except Exception as error:  # noqa: BLE001 - any error is the result
        is_spark = isinstance(error, PySparkException)
        text = str(error)
        if isinstance(error, Py4JJavaError):
            thrown = error.java_exception
            text = str(thrown.toString() if thrown.getCause() is None else thrown.getCause().toString())
        return {
            "is_analysis": isinstance(error, AnalysisException),
            "condition": error.getCondition() if is_spark else None,
            "sql_state": error.getSqlState() if is_spark else None,
            "message": text.replace(scene.folder, "{f}").partition("\n")[0],
        }
    return None
