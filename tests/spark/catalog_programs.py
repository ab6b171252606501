"""What a session's catalog shows of tables: statements that define them, and the questions of notebooks and drivers.

`dev/make_catalog_answers.py` records delta-spark's answers in `tests/golden/spark_catalog.json`; deltafast must give the
same, other than in the entries of `test_catalog.DIFFERENCES`.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

#: Statements that define the table `t`, one list a scenario; the questions are asked after each statement that ends in
#: a comment `-- ask`, and after the last.
SCENARIOS: Final[dict[str, list[str]]] = {
    "columns": [
        (
            "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'the key', name STRING, price DECIMAL(10,2), day DATE, at TIMESTAMP, "
            "local TIMESTAMP_NTZ, c CHAR(3), v VARCHAR(5), flag BOOLEAN, bytes BINARY, f FLOAT) USING delta"
        ),
    ],
    "nested columns": [
        "CREATE TABLE t (s STRUCT<a: INT COMMENT 'in', b: ARRAY<STRUCT<x: STRING>>>, m MAP<STRING, INT>) USING delta",
    ],
    "partitions": [
        (
            "CREATE TABLE t (id BIGINT, p INT, q STRING) USING delta PARTITIONED BY (p, q) COMMENT 'sales' "
            "TBLPROPERTIES ('delta.appendOnly' = 'false', 'team' = 'me')"
        ),
        "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a'), (4, NULL, 'c d')  -- ask",
        "DELETE FROM t WHERE p = 2",
    ],
    "partition in the middle": [
        "CREATE TABLE t USING delta PARTITIONED BY (p) AS SELECT id, id % 2 p, 'x' name FROM range(4)",
        "INSERT INTO t SELECT 9L, 1L, 'y'",
    ],
    "clustering": ["CREATE TABLE t (id BIGINT, name STRING) USING delta CLUSTER BY (id, name)"],
    "query": [
        "CREATE TABLE t USING delta PARTITIONED BY (p) COMMENT 'of a query' AS SELECT id, id % 2 p FROM range(4)"
    ],
    "location": [
        "CREATE TABLE t (id INT, p STRING) USING delta PARTITIONED BY (p) LOCATION '{f}/there'",
        "INSERT INTO t VALUES (1, 'x')",
    ],
    "existing location": [
        "CREATE TABLE delta.`{f}/there` (id INT COMMENT 'key', p STRING) USING delta PARTITIONED BY (p)",
        "CREATE TABLE t USING delta LOCATION '{f}/there'",
    ],
    "added columns": [
        "CREATE TABLE t (id INT) USING delta",
        "ALTER TABLE t ADD COLUMNS (name STRING COMMENT 'of it', s STRUCT<a: INT>)  -- ask",
        "ALTER TABLE t ADD COLUMNS (first INT FIRST, later INT AFTER id, s.b INT)",
    ],
    "renamed and dropped columns": [
        (
            "CREATE TABLE t (id INT, name STRING, p INT) USING delta PARTITIONED BY (p) "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        ),
        "INSERT INTO t VALUES (1, 'x', 1)",
        "ALTER TABLE t RENAME COLUMN name TO title  -- ask",
        "ALTER TABLE t RENAME COLUMN p TO part  -- ask",
        "ALTER TABLE t DROP COLUMN title",
    ],
    "changed columns": [
        "CREATE TABLE t (id INT NOT NULL, b BYTE) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE t ALTER COLUMN id COMMENT 'new comment'  -- ask",
        "ALTER TABLE t ALTER COLUMN id DROP NOT NULL  -- ask",
        "ALTER TABLE t ALTER COLUMN b TYPE INT",
    ],
    "properties": [
        "CREATE TABLE t (id INT) USING delta",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 7 days', 'a' = 'it''s')  -- ask",
        "ALTER TABLE t UNSET TBLPROPERTIES ('a')  -- ask",
        "COMMENT ON TABLE t IS 'said later'",
    ],
    "defaults and generated columns": [
        (
            "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, n INT DEFAULT 7, d DATE, "
            "y INT GENERATED ALWAYS AS (year(d))) USING delta "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        ),
    ],
    "constraints": [
        "CREATE TABLE t (id INT) USING delta",
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)",
    ],
    "replaced": [
        "CREATE TABLE t (id INT) USING delta",
        "CREATE OR REPLACE TABLE t (name STRING, p INT) USING delta PARTITIONED BY (p)",
    ],
    "merged schema": [
        "CREATE TABLE t (id INT) USING delta",
        "SET spark.databricks.delta.schema.autoMerge.enabled=true",
        "MERGE INTO t USING (SELECT 1 id, 'x' more) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "RESET spark.databricks.delta.schema.autoMerge.enabled",
    ],
    "renamed": ["CREATE TABLE before (id INT, p INT) USING delta PARTITIONED BY (p)", "ALTER TABLE before RENAME TO t"],
    "like": [
        "CREATE TABLE model (id INT COMMENT 'x', p INT) USING delta PARTITIONED BY (p) COMMENT 'model'",
        "CREATE TABLE t LIKE model",
    ],
    "odd names": [
        (
            "CREATE TABLE t (`a b` INT, `c.d` STRING, `p q` INT) USING delta PARTITIONED BY (`p q`) "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        ),
        "INSERT INTO t VALUES (1, 'x', 2)",
    ],
    "variant": ["CREATE TABLE t (id INT, v VARIANT) USING delta"],
}

#: Questions that a list of rows answers.
STATEMENTS: Final = (
    "DESCRIBE t",
    "DESCRIBE EXTENDED t",
    "DESCRIBE TABLE t id",
    "DESCRIBE t p",
    "DESCRIBE EXTENDED t id",
    "DESCRIBE t missing",
    "SHOW CREATE TABLE t",
    "SHOW COLUMNS IN t",
    "SHOW PARTITIONS t",
    "SHOW PARTITIONS t PARTITION (p = 1)",
    "SHOW PARTITIONS t PARTITION (p = 7)",
    "SHOW TBLPROPERTIES t",
    "SHOW TBLPROPERTIES t ('team')",
    "SHOW TABLE EXTENDED LIKE 't'",
    "SHOW TABLES LIKE 't'",
    "SHOW VIEWS",
)
#: Facts that differ from run to run, or by the version of a program.
_VOLATILE: Final = re.compile(r"^(Created Time|Last Access|Created By|Owner|Statistics|Partition Provider|Catalog)\b")
_LINES: Final = re.compile(r"(?m)^(Created Time|Last Access|Created By|Owner|Statistics|Partition Provider): .*\n?")
_HIDDEN: Final = re.compile(r"delta\.(lastUpdateVersion|lastCommitTimestamp|columnMapping\.maxColumnId)")


def answers(spark: Any, folder: str) -> dict[str, Any]:
    """Run all scenarios; return the answers by scenario, number of the statement and question."""
    found: dict[str, Any] = {}
    for name, statements in SCENARIOS.items():
        database = "shown_" + re.sub(r"\W", "_", name)
        spark.sql(f"CREATE DATABASE {database} LOCATION '{folder}/{database}'")
        spark.sql(f"USE {database}")
        where = f"{folder}/{database}"
        try:
            for number, statement in enumerate(statements):
                spark.sql(statement.removesuffix("-- ask").format(f=where)).collect()
                if statement.endswith("-- ask") or number == len(statements) - 1:
                    asked = _ask(spark, where)
                    found[f"{name} {number}"] = json.loads(
                        json.dumps(asked).replace(where, "{f}").replace(database, "{d}")
                    )
        finally:
            spark.sql("USE default")
            spark.sql(f"DROP DATABASE {database} CASCADE")
    return found


def _ask(spark: Any, where: str) -> dict[str, Any]:
    asked = {text: _answer(lambda text=text: _rows(spark.sql(text))) for text in STATEMENTS}
    catalog = spark.catalog
    asked["listColumns"] = _answer(lambda: [list(column) for column in catalog.listColumns("t")])
    asked["getTable"] = _answer(lambda: list(catalog.getTable("t")))
    asked["tableExists"] = _answer(lambda: catalog.tableExists("t"))
    asked["columns of table"] = _answer(lambda: json.loads(spark.table("t").schema.json()))
    return asked


def _answer(ask: Any) -> Any:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - its condition is the answer
        condition = getattr(error, "getCondition", lambda: None)()
        return {"error": condition or str(error).splitlines()[0][:200]}


def _rows(frame: Any) -> dict[str, Any]:
    rows = [[None if value is None else _LINES.sub("", str(value)) for value in row] for row in frame.collect()]
    rows = [row for row in rows if not (_VOLATILE.match(row[0] or "") or _HIDDEN.match(row[0] or ""))]
    return {"columns": frame.columns, "rows": rows}
