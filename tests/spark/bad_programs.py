"""Programs that fail with delta-spark: what each does wrong, to a table that all of them find.

`dev/make_spark_errors.py` records delta-spark's errors in `tests/golden/spark_errors.json`; deltafast must raise errors
that a program can distinguish by the same means.
"""

from __future__ import annotations

import functools
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

    def stream(self, **options: Any) -> None:
        """Read a table as a stream, which starts."""
        rows = self.spark.readStream.format("delta").options(**options).load(self.table)
        writer = rows.writeStream.format("noop").option("checkpointLocation", f"{self.folder}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    def dropped_column(self) -> None:
        """Read a column of a frame that is older than the column's end."""
        frame = self.spark.table("nested").select("v")
        self.spark.sql("ALTER TABLE nested DROP COLUMN v").collect()
        frame.collect()

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


#: Programs of one statement; `{t}` is the table, `{f}` the folder.
STATEMENTS: Final = {
    # what a definition cannot be
    "ADD COLUMN NOT NULL": "ALTER TABLE {t} ADD COLUMN n INT NOT NULL",
    "ADD COLUMN with a default": "ALTER TABLE {t} ADD COLUMN n INT DEFAULT 1",
    "SET DEFAULT without the feature": "ALTER TABLE {t} ALTER COLUMN text SET DEFAULT 'x'",
    "SET NOT NULL": "ALTER TABLE nested ALTER COLUMN base SET NOT NULL",
    "SET LOCATION to another schema": "ALTER TABLE checked SET LOCATION '{f}/limited'",
    "SET LOCATION to nothing": "ALTER TABLE checked SET LOCATION '{f}/nothing'",
    "SET LOCATION of a path": "ALTER TABLE {t} SET LOCATION '{f}/limited'",
    "RENAME of a path": "ALTER TABLE {t} RENAME TO other",
    "CREATE EXTERNAL TABLE without a location": "CREATE EXTERNAL TABLE ex (a INT) USING delta",
    "CREATE TABLE without columns": "CREATE TABLE empty_one USING delta LOCATION '{f}/empty'",
    "CREATE TABLE with a default and no feature": "CREATE TABLE d1 (a INT DEFAULT 1) USING delta LOCATION '{f}/d1'",
    "CREATE TABLE of a partition that is not a column": "CREATE TABLE d2 (a INT) USING delta PARTITIONED BY (b) LOCATION '{f}/d2'",
    "CREATE TABLE of a column twice": "CREATE TABLE d3 (a INT, A INT) USING delta LOCATION '{f}/d3'",
    "CREATE TABLE in buckets": "CREATE TABLE d4 (a INT) USING delta CLUSTERED BY (a) INTO 2 BUCKETS LOCATION '{f}/d4'",
    "CREATE TABLE by an interval": "CREATE TABLE d5 (a INTERVAL DAY) USING delta LOCATION '{f}/d5'",
    "CREATE TABLE clustered and partitioned": (
        "CREATE TABLE d6 (a INT, b INT) USING delta PARTITIONED BY (a) CLUSTER BY (b) LOCATION '{f}/d6'"
    ),
    "CREATE TABLE clustered by five": (
        "CREATE TABLE d7 (a INT, b INT, c INT, d INT, e INT) USING delta CLUSTER BY (a, b, c, d, e) LOCATION '{f}/d7'"
    ),
    "CREATE TABLE clustered by nothing known": "CREATE TABLE d8 (a INT) USING delta CLUSTER BY (b) LOCATION '{f}/d8'",
    "CREATE TABLE partitioned by a list": "CREATE TABLE d9 (a INT, l ARRAY<INT>) USING delta PARTITIONED BY (l) LOCATION '{f}/d9'",
    "CREATE TABLE with an unknown property": (
        "CREATE TABLE d10 (a INT) USING delta LOCATION '{f}/d10' TBLPROPERTIES ('delta.nothing' = '1')"
    ),
    "CREATE TABLE with a protocol that is not one": (
        "CREATE TABLE d11 (a INT) USING delta LOCATION '{f}/d11' TBLPROPERTIES ('delta.minReaderVersion' = '99')"
    ),
    "CREATE OR REPLACE with a location that is not empty": (
        "CREATE OR REPLACE TABLE delta.`{f}/json` (a INT) USING delta"
    ),
    "REPLACE of nothing": "REPLACE TABLE d12 (a INT) USING delta",
    "CREATE TABLE LIKE nothing": "CREATE TABLE d13 LIKE nothing USING delta",
    # generated, default and identity columns
    "generated by rand()": "CREATE TABLE g1 (a INT, b DOUBLE GENERATED ALWAYS AS (rand())) USING delta LOCATION '{f}/g1'",
    "generated by an aggregate": "CREATE TABLE g2 (a INT, b INT GENERATED ALWAYS AS (max(a))) USING delta LOCATION '{f}/g2'",
    "generated by a generated column": (
        "CREATE TABLE g3 (a INT, b INT GENERATED ALWAYS AS (a + 1), c INT GENERATED ALWAYS AS (b + 1)) USING delta "
        "LOCATION '{f}/g3'"
    ),
    "generated by nothing known": "CREATE TABLE g4 (a INT, b INT GENERATED ALWAYS AS (nothing)) USING delta LOCATION '{f}/g4'",
    "generated with another type": (
        "CREATE TABLE g5 (a INT, b INT GENERATED ALWAYS AS (CAST(a AS STRING))) USING delta LOCATION '{f}/g5'"
    ),
    "generated by a subquery": "CREATE TABLE g6 (a INT, b INT GENERATED ALWAYS AS ((SELECT 1))) USING delta LOCATION '{f}/g6'",
    "identity of an INT": "CREATE TABLE i1 (a INT GENERATED ALWAYS AS IDENTITY) USING delta LOCATION '{f}/i1'",
    "identity with step 0": (
        "CREATE TABLE i2 (a BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0), b INT) USING delta LOCATION '{f}/i2'"
    ),
    "identity as a partition": (
        "CREATE TABLE i3 (a BIGINT GENERATED ALWAYS AS IDENTITY, b INT) USING delta PARTITIONED BY (a) LOCATION '{f}/i3'"
    ),
    "INSERT of an identity value": "INSERT INTO numbered (n, x) VALUES (1, 1)",
    "INSERT SELECT of an identity value": "INSERT INTO numbered (n, x) SELECT 1L, 1",
    "UPDATE of an identity column": "UPDATE numbered SET n = 1",
    "MERGE that updates an identity column": (
        "MERGE INTO numbered t USING (SELECT 1 x) s ON t.x = s.x WHEN MATCHED THEN UPDATE SET n = 2"
    ),
    "MERGE that inserts an identity value": (
        "MERGE INTO numbered t USING (SELECT 1 x) s ON t.x = s.x WHEN NOT MATCHED THEN INSERT (n, x) VALUES (7, 8)"
    ),
    "ADD COLUMN identity": "ALTER TABLE {t} ADD COLUMN n BIGINT GENERATED ALWAYS AS IDENTITY",
    "ALTER COLUMN type of an identity column": "ALTER TABLE numbered ALTER COLUMN n TYPE INT",
    "UPDATE of a generated column": "UPDATE checked SET even = true",
    "INSERT that breaks a generated column": "INSERT INTO checked (id, even) VALUES (1, true)",
    "INSERT of DEFAULT": "INSERT INTO {t} (id) VALUES (DEFAULT)",
    "SELECT of DEFAULT": "INSERT INTO {t} SELECT DEFAULT, 1, 'x'",
    # constraints
    "CHECK that is no condition": "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id + 1)",
    "CHECK by nothing known": "ALTER TABLE {t} ADD CONSTRAINT c CHECK (nothing > 1)",
    "CHECK by a subquery": "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id IN (SELECT 1))",
    "CHECK that is not SQL": "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > > 1)",
    "UPDATE that breaks a CHECK": "UPDATE checked SET id = -1 WHERE id = 5",
    # changes of rows
    "DELETE with rand()": "DELETE FROM {t} WHERE rand() > 0.5",
    "UPDATE with rand() in its condition": "UPDATE {t} SET id = 1 WHERE rand() > 0.5",
    "DELETE by an aggregate": "DELETE FROM {t} WHERE max(id) > 1",
    "DELETE by a column that is no condition": "DELETE FROM {t} WHERE text",
    "DELETE by a number": "DELETE FROM {t} WHERE id + 1",
    "UPDATE to a wrong type": "UPDATE {t} SET id = array(1)",
    "UPDATE to text that is no number": "UPDATE {t} SET id = 'x' WHERE id = 0",
    "UPDATE of a field that does not exist": "UPDATE nested SET s.nothing = 1",
    "UPDATE of a struct and its field": "UPDATE nested SET s = NULL, s.x = 1",
    "UPDATE of an element": "UPDATE nested SET l[0] = 1",
    "DELETE that is not SQL": "DELETE FROM {t} WHERE id > > 1",
    "MERGE by rand()": (
        "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id AND rand() > 0.5 WHEN MATCHED THEN DELETE"
    ),
    "MERGE by nothing known": "MERGE INTO {t} t USING (SELECT 1 id) s ON t.nothing = s.id WHEN MATCHED THEN DELETE",
    "MERGE without a clause": "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id",
    "MERGE with a condition only on the last": (
        "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET id = 1"
    ),
    "MERGE that sets a column twice": (
        "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 1, id = 2"
    ),
    "MERGE that inserts a column twice": (
        "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)"
    ),
    "MERGE that inserts an unknown column": (
        "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (nothing) VALUES (1)"
    ),
    "MERGE with an ambiguous column": "MERGE INTO {t} t USING (SELECT 1 id) s ON id = 1 WHEN MATCHED THEN DELETE",
    "MERGE of all columns without one": (
        "MERGE INTO {t} t USING (SELECT 1 id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    ),
    "MERGE that casts text that is no number": (
        "MERGE INTO {t} t USING (SELECT 1 id, 'x' v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = s.v"
    ),
    "INSERT of too many columns": "INSERT INTO {t} VALUES (1, 2, 'x', 4)",
    "INSERT into an unknown column": "INSERT INTO {t} (nothing) VALUES (1)",
    "INSERT of a column twice": "INSERT INTO {t} (id, id) VALUES (1, 2)",
    "INSERT of a list for a number": "INSERT INTO {t} VALUES (array(1), 1, 'x')",
    "INSERT of text that is no number": "INSERT INTO {t} VALUES ('x', 1, 'x')",
    "INSERT of a number that is too large": "INSERT INTO {t} VALUES (1, 99999999999, 'x')",
    "INSERT into a partition that is not one": "INSERT INTO {t} PARTITION (id = 1) VALUES (1, 'x')",
    "INSERT REPLACE WHERE that rows do not match": "INSERT INTO {t} REPLACE WHERE part = 0 SELECT 9L, 1, 'x'",
    "INSERT REPLACE WHERE rand()": "INSERT INTO {t} REPLACE WHERE rand() > 0.5 SELECT 9L, 1, 'x'",
    "INSERT that violates a CHECK by a query": "INSERT INTO checked (id) SELECT -1L",
    # other commands
    "OPTIMIZE ZORDER BY a partition": "OPTIMIZE {t} ZORDER BY (part)",
    "OPTIMIZE FULL of a table without clustering": "OPTIMIZE {t} FULL",
    "OPTIMIZE WHERE that is not SQL": "OPTIMIZE {t} WHERE part = = 1",
    "CLUSTER BY of a partitioned table": "ALTER TABLE {t} CLUSTER BY (id)",
    "CLUSTER BY of an unknown column": "ALTER TABLE checked CLUSTER BY (nothing)",
    "VACUUM of negative hours": "VACUUM {t} RETAIN -1 HOURS",
    "RESTORE to a time before the first": "RESTORE TABLE {t} TO TIMESTAMP AS OF '1990-01-01'",
    "RESTORE to a time that is not one": "RESTORE TABLE {t} TO TIMESTAMP AS OF 'x'",
    "TIMESTAMP AS OF that is not one": "SELECT * FROM {t} TIMESTAMP AS OF 'x'",
    "GENERATE of something else": "GENERATE nothing FOR TABLE {t}",
    "CLONE to an existing table": "CREATE TABLE delta.`{f}/checked` SHALLOW CLONE {t}",
    "CLONE of nothing": "CREATE TABLE delta.`{f}/cloned` SHALLOW CLONE delta.`{f}/nothing`",
    "DROP FEATURE that is not there": "ALTER TABLE {t} DROP FEATURE deletionVectors",
    "DROP FEATURE that is not one": "ALTER TABLE {t} DROP FEATURE nothing",
    "DROP FEATURE of appendOnly": "ALTER TABLE nested DROP FEATURE appendOnly",
    "DROP COLUMN of a partition": "ALTER TABLE nested DROP COLUMN nothing",
    "RENAME COLUMN to an existing one": "ALTER TABLE nested RENAME COLUMN id TO base",
    "RENAME COLUMN that does not exist": "ALTER TABLE nested RENAME COLUMN nothing TO it",
    "column mapping to id": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
    "column mapping to nonsense": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'nothing')",
    "a lower protocol": "ALTER TABLE nested SET TBLPROPERTIES ('delta.minReaderVersion' = '1')",
    "DESCRIBE of an unknown column": "DESCRIBE checked nothing",
    "SHOW PARTITIONS of a table without": "SHOW PARTITIONS checked",
    "SHOW PARTITIONS of no partition": "SHOW PARTITIONS {t} PARTITION (id = 1)",
    "ADD PARTITION": "ALTER TABLE {t} ADD PARTITION (part = 3)",
    "DROP PARTITION": "ALTER TABLE {t} DROP PARTITION (part = 3)",
    "ANALYZE TABLE": "ANALYZE TABLE checked COMPUTE STATISTICS",
    "TRUNCATE of a partition": "TRUNCATE TABLE checked PARTITION (id = 1)",
    "LOAD DATA": "LOAD DATA INPATH '{f}/parquet' INTO TABLE checked",
    "table_changes without the feed": "SELECT * FROM table_changes('checked', 0)",
    "table_changes of nothing": "SELECT * FROM table_changes('nothing', 0)",
}
PROGRAMS.update({name: functools.partial(Scene.sql, text=text) for name, text in STATEMENTS.items()})
PROGRAMS.update(
    {
        "replaceWhere with rand()": lambda s: s.save(ROW, "overwrite", replaceWhere="rand() > 0.5"),
        "replaceWhere by a number": lambda s: s.save(ROW, "overwrite", replaceWhere="part + 1"),
        "overwriteSchema with dynamic partitions": lambda s: s.save(
            ROW, "overwrite", overwriteSchema="true", partitionOverwriteMode="dynamic"
        ),
        "partitionOverwriteMode of nothing": lambda s: s.save(ROW, "overwrite", partitionOverwriteMode="nothing"),
        "replaceUsing an unknown column": lambda s: s.save(ROW, "overwrite", replaceUsing="nothing"),
        "replaceUsing with replaceWhere": lambda s: s.save(
            ROW, "overwrite", replaceUsing="part", replaceWhere="part = 1"
        ),
        "change feed from a version that is not a number": lambda s: s.load(
            s.table, readChangeFeed="true", startingVersion="x"
        ),
        "change feed from two starts": lambda s: s.load(
            s.table, readChangeFeed="true", startingVersion=0, startingTimestamp=LATE
        ),
        "change feed that starts late": lambda s: s.load(s.table, readChangeFeed="true", startingVersion=99),
        "a column that was dropped": lambda s: s.dropped_column(),
        "saveAsTable of another format": lambda s: (
            s.spark.sql(ROW).write.format("parquet").mode("append").saveAsTable("checked")
        ),
        "insertInto too few columns": lambda s: s.spark.sql("SELECT 1L id").write.insertInto("limited"),
        "writeTo of nothing": lambda s: s.spark.sql(ROW).writeTo("nothing").append(),
        "writeTo create of an existing table": lambda s: s.spark.sql(ROW).writeTo("checked").using("delta").create(),
        "writeTo replace of nothing": lambda s: s.spark.sql(ROW).writeTo("nothing").using("delta").replace(),
        "stream from a version that is not a number": lambda s: s.stream(startingVersion="x"),
        "stream from two starts": lambda s: s.stream(startingVersion="0", startingTimestamp=LATE),
    }
)


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
