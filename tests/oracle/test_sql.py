"""The same statements by deltafast.sql and by delta-spark, each on its own table: the same rows, schema, properties."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import deltafast
from deltafast import DeltaTable

from .recorded_answers import plain, refusal

if TYPE_CHECKING:
    import pathlib

    import pyarrow as pa

    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(600)

#: By script; `{t}` is the table, `{u}` another. A statement that begins with `!` must fail on both sides.
SCRIPTS: dict[str, list[str]] = {
    "rows": [
        "CREATE TABLE {t} (id BIGINT NOT NULL, name STRING COMMENT 'n', d DATE, x DECIMAL(8,2), f DOUBLE) USING delta",
        "INSERT INTO {t} VALUES (1, 'a', DATE'2026-01-01', 1.005, 1), (2, NULL, NULL, NULL, 1e3)",
        "INSERT INTO {t} VALUES (3, 'c', '2026-02-03', 12, 2.5)",
        "!INSERT INTO {t} VALUES ('abc', 'c', NULL, 12, 2.5)",
        "!INSERT INTO {t} VALUES (4)",
        "!INSERT INTO {t} VALUES (NULL, 'c', NULL, 12, 2.5)",
        "INSERT INTO {t} (f, id) VALUES (0.5, 4)",
        "INSERT INTO {t} SELECT id + 10, name || 'x', d, x, f FROM {t}",
        "INSERT INTO {t} BY NAME SELECT 1.5 AS x, 20 AS id",
        "UPDATE {t} SET name = upper(name), f = f * 2 WHERE id BETWEEN 1 AND 3",
        "UPDATE {t} AS s SET s.x = s.id WHERE s.id > 10 AND s.name IS NOT NULL",
        'UPDATE {t} SET name = "it\'s" WHERE id = 12',
        "DELETE FROM {t} WHERE d <=> NULL AND f = 2000",
        "DELETE FROM {t} AS s WHERE s.name LIKE 'A%'",
        "INSERT INTO {t} REPLACE WHERE id > 12 SELECT 30, 'r', NULL, NULL, NULL",
        "INSERT OVERWRITE {t} SELECT id, name, d, x, f FROM {t} WHERE id < 20",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
        "TRUNCATE TABLE {t}",
    ],
    "columns": [
        (
            "CREATE TABLE {t} (id INT NOT NULL, s STRUCT<a: INT, b: STRING>, v VARCHAR(3), arr ARRAY<INT>) USING delta "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', k = 1)"
        ),
        "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 'x'), 'abc', array(1, 2))",
        "!INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 'x'), 'abcd', array(1, 2))",
        "ALTER TABLE {t} ADD COLUMNS (n INT COMMENT 'new', m MAP<STRING, DOUBLE>)",
        "ALTER TABLE {t} ADD COLUMN s.c DATE",
        "ALTER TABLE {t} ADD COLUMNS (p INT FIRST, q STRUCT<z: INT> AFTER id)",
        "ALTER TABLE {t} ADD COLUMN s.d INT AFTER a",
        "ALTER TABLE {t} ALTER COLUMN s.d FIRST",
        "ALTER TABLE {t} ALTER COLUMN p AFTER v",
        "!ALTER TABLE {t} ADD COLUMN nope INT AFTER nothing",
        "UPDATE {t} SET s.d = s.a + 1, q.z = 5",
        "!UPDATE {t} SET s.d = 1, s = NULL",
        "!UPDATE {t} SET s.nope = 1",
        "ALTER TABLE {t} DROP COLUMN v",
        "ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT",
        "ALTER TABLE {t} RENAME COLUMN n TO `long name`",
        "ALTER TABLE {t} RENAME COLUMN s.a TO z",
        "ALTER TABLE {t} DROP COLUMN arr",
        "ALTER TABLE {t} ALTER COLUMN id COMMENT 'the key'",
        "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 40 days', k2 = 'w')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('k', 'none')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('k', 'none', 'delta.appendOnly')",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
        "!INSERT INTO {t} (id) VALUES (-1)",
        "INSERT INTO {t} (id, `long name`) VALUES (2, 1 << 33)",
        "ALTER TABLE {t} DROP CONSTRAINT positive",
        "!ALTER TABLE {t} DROP CONSTRAINT positive",
        "ALTER TABLE {t} DROP CONSTRAINT IF EXISTS positive",
    ],
    "nested": [
        (
            "CREATE TABLE {t} (id INT, arr ARRAY<STRUCT<x: INT, y: INT>>, m MAP<STRUCT<k: INT>, STRUCT<v: INT>>, "
            "aa ARRAY<ARRAY<STRUCT<q: INT>>>, s STRUCT<arr: ARRAY<STRUCT<w: INT>>>, ai ARRAY<INT>, "
            "se STRUCT<element: STRUCT<e: INT>>) USING delta"
        ),
        (
            "INSERT INTO {t} VALUES (1, array(named_struct('x', 1, 'y', 2)), map(named_struct('k', 1), "
            "named_struct('v', 1)), NULL, named_struct('arr', array(named_struct('w', 1))), array(1), NULL)"
        ),
        "ALTER TABLE {t} ADD COLUMNS (arr.element.z INT)",
        "ALTER TABLE {t} ADD COLUMNS (m.value.z INT, m.key.z INT COMMENT 'of keys')",
        "ALTER TABLE {t} ADD COLUMN aa.element.element.z INT",
        "ALTER TABLE {t} ADD COLUMNS (s.arr.element.z STRUCT<a: INT>, se.element.z INT)",
        "ALTER TABLE {t} ADD COLUMNS (arr.element.u STRING, arr.element.t INT, top INT)",
        "ALTER TABLE {t} ADD COLUMN s.arr.element.z.b INT",
        "!ALTER TABLE {t} ADD COLUMN arr.z2 INT",
        "!ALTER TABLE {t} ADD COLUMN arr.item.z2 INT",
        "!ALTER TABLE {t} ADD COLUMN arr.element INT",
        "!ALTER TABLE {t} ADD COLUMN arr.element.x INT",
        "!ALTER TABLE {t} ADD COLUMNS (arr.element.x INT, arr.element.z3 INT)",
        "!ALTER TABLE {t} ADD COLUMN ai.element INT",
        "!ALTER TABLE {t} ADD COLUMN ai.element.z INT",
        "!ALTER TABLE {t} ADD COLUMN m.z3 INT",
        "!ALTER TABLE {t} ADD COLUMN m.value INT",
        "!ALTER TABLE {t} ADD COLUMN m.value.n INT NOT NULL",
        "!ALTER TABLE {t} DROP COLUMN arr.element.z",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} ADD COLUMN m.value.n INT",
        "ALTER TABLE {t} DROP COLUMN IF EXISTS arr.element.y",
        "ALTER TABLE {t} DROP COLUMN IF EXISTS arr.element.y",
        "ALTER TABLE {t} RENAME COLUMN m.value.n TO o",
        "UPDATE {t} SET id = 2",
    ],
    "merge": [
        "CREATE TABLE {t} (id INT, name STRING, n BIGINT) USING delta",
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, NULL, 4)",
        (
            "MERGE INTO {t} AS t USING (SELECT id + 2 AS id, 's' AS name, 10 AS n FROM {t}) AS s ON t.id = s.id "
            "WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name, n = t.n + s.n "
            "WHEN NOT MATCHED AND s.id > 5 THEN INSERT (n, id) VALUES (s.n, s.id) "
            'WHEN NOT MATCHED BY SOURCE AND t.name = "a" THEN UPDATE SET n = -1'
        ),
        (
            "MERGE WITH SCHEMA EVOLUTION INTO {t} AS t USING (SELECT 6 AS id, true AS fresh) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        "!MERGE INTO {t} AS t USING (SELECT 6 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1",
    ],
    "replaced columns": [
        (
            "CREATE TABLE {t} (id INT NOT NULL, a INT COMMENT 'x', s STRUCT<x: INT NOT NULL, y: STRING COMMENT 'yy'>, "
            "l ARRAY<STRUCT<q: INT>>, d INT DEFAULT 3, v VARCHAR(5)) USING delta "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        ),
        "INSERT INTO {t} VALUES (1, 2, named_struct('x', 1, 'y', 'b'), array(named_struct('q', 1)), 4, 'abc')",
        (
            "ALTER TABLE {t} REPLACE COLUMNS (d INT, ID INT COMMENT 'key', a INT, "
            "s STRUCT<y: STRING COMMENT 'new', X: INT, z: DATE>, l ARRAY<STRUCT<q: INT, r: INT>>, v STRING, "
            "n BIGINT COMMENT 'new', st STRUCT<k: INT>)"
        ),
        "INSERT INTO {t} (id, v) VALUES (NULL, 'abcd')",
        "!INSERT INTO {t} (id, v) VALUES (2, 'abcdef')",
        "!ALTER TABLE {t} REPLACE COLUMNS (id INT NOT NULL)",
        "!ALTER TABLE {t} REPLACE COLUMNS (id INT DEFAULT 1)",
        "!ALTER TABLE {t} REPLACE COLUMNS (id INT GENERATED ALWAYS AS (1))",
        "!ALTER TABLE {t} REPLACE COLUMNS (id INT FIRST)",
        "!ALTER TABLE {t} REPLACE COLUMNS (s.x INT)",
        "!ALTER TABLE {t} REPLACE COLUMNS (id INT, id INT)",
        "!ALTER TABLE {t} REPLACE COLUMNS id INT",
        "!ALTER TABLE {t} REPLACE COLUMNS ()",
        # Dropped columns and fields, other types, nullable fields that become NOT NULL, renamed columns.
        "!ALTER TABLE {t} REPLACE COLUMNS (id INT, a INT)",
        "CREATE TABLE {u} (id INT, s STRUCT<x: INT, y: INT>, m MAP<INT, STRUCT<v: INT>>, c STRING) USING delta",
        "!ALTER TABLE {u} REPLACE COLUMNS (id INT, s STRUCT<x: INT>, m MAP<INT, STRUCT<v: INT>>, c STRING)",
        "!ALTER TABLE {u} REPLACE COLUMNS (id BIGINT, s STRUCT<x: INT, y: INT>, m MAP<INT, STRUCT<v: INT>>, c STRING)",
        (
            "!ALTER TABLE {u} REPLACE COLUMNS "
            "(id INT, s STRUCT<x: INT, y: INT NOT NULL>, m MAP<INT, STRUCT<v: INT>>, c INT)"
        ),
        "!ALTER TABLE {u} REPLACE COLUMNS (id INT, s INT, m MAP<INT, STRUCT<v: INT>>, c STRING)",
        "!ALTER TABLE {u} REPLACE COLUMNS (id INT, s STRUCT<x: INT, y: INT>, m MAP<INT, STRUCT<v: INT>>, c2 STRING)",
        (
            "ALTER TABLE {u} SET TBLPROPERTIES "
            "('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
        ),
        "INSERT INTO {u} VALUES (1, named_struct('x', 2, 'y', 3), map(4, named_struct('v', 5)), 'c')",
        (
            "ALTER TABLE {u} REPLACE COLUMNS "
            "(m MAP<BIGINT, STRUCT<v: BIGINT, w: INT>>, s STRUCT<y: DECIMAL(12,2)>, id DOUBLE)"
        ),
        "!ALTER TABLE {u} REPLACE COLUMNS (m MAP<BIGINT, STRUCT<v: BIGINT, w: INT>>, s STRUCT<y: INT>, id DOUBLE)",
        "!ALTER TABLE {u} REPLACE COLUMNS (m MAP<BIGINT, STRUCT<v: BIGINT, n: INT>>, s STRUCT<y: DECIMAL(12,2)>)",
        "INSERT INTO {u} VALUES (map(1, named_struct('v', 2, 'w', 3)), named_struct('y', 1.25), 0.5)",
        "ALTER TABLE {u} REPLACE COLUMNS (id DOUBLE)",
        "ALTER TABLE {u} REPLACE COLUMNS (id DOUBLE, `long name` INT)",
    ],
    "identity, replaced": [
        "CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT) USING delta",
        "!ALTER TABLE {t} REPLACE COLUMNS (a INT, id BIGINT)",
    ],
    "changed columns": [
        (
            "CREATE TABLE {t} (id INT NOT NULL, a INT COMMENT 'x', s STRUCT<x: INT NOT NULL, y: STRING>, "
            "l ARRAY<STRUCT<q: INT, r: INT>>, d INT, v VARCHAR(5), c CHAR(3)) USING delta "
            "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        ),
        (
            "INSERT INTO {t} VALUES (1, 2, named_struct('x', 1, 'y', 'b'), array(named_struct('q', 1, 'r', 2)), 4, "
            "'abc', 'abc')"
        ),
        "ALTER TABLE {t} CHANGE COLUMN a a INT COMMENT 'same type'",
        "ALTER TABLE {t} CHANGE a A BIGINT COMMENT 'all' AFTER d",
        "ALTER TABLE {t} CHANGE COLUMN a a BIGINT FIRST",
        "ALTER TABLE {t} CHANGE COLUMN a a BIGINT",
        "ALTER TABLE {t} CHANGE COLUMN id id INT COMMENT 'k'",
        "ALTER TABLE {t} CHANGE COLUMN s.x x BIGINT COMMENT 'sx' AFTER y",
        "ALTER TABLE {t} CHANGE COLUMN l l ARRAY<STRUCT<q: INT, r: INT>> COMMENT 'list'",
        "ALTER TABLE {t} CHANGE COLUMN l.element.q q BIGINT COMMENT 'q' AFTER r",
        "ALTER TABLE {t} CHANGE a COMMENT 'of Spark'",
        "ALTER TABLE {t} CHANGE COLUMN a TYPE DECIMAL(20,0)",
        "ALTER TABLE {t} CHANGE COLUMN s.x DROP NOT NULL",
        "ALTER TABLE {t} CHANGE COLUMN d COMMENT 'one', s.x FIRST",
        "!ALTER TABLE {t} CHANGE COLUMN a b DECIMAL(20,0) COMMENT 'renamed'",
        "!ALTER TABLE {t} CHANGE COLUMN a a STRING COMMENT 'x'",
        "!ALTER TABLE {t} CHANGE COLUMN id id INT NOT NULL",
        "!ALTER TABLE {t} CHANGE COLUMN d d INT DEFAULT 5",
        "!ALTER TABLE {t} CHANGE COLUMN s.x s.x INT",
        "!ALTER TABLE {t} CHANGE COLUMN s s STRUCT<x: INT> COMMENT 'less'",
        "!ALTER TABLE {t} CHANGE COLUMN l l ARRAY<STRUCT<q: INT>>",
        "!ALTER TABLE {t} CHANGE COLUMN nope nope INT",
        "!ALTER TABLE {t} CHANGE COLUMN a a DECIMAL(20,0) AFTER nope",
        "!ALTER TABLE {t} ALTER COLUMN a COMMENT 'x' FIRST",
        "!ALTER TABLE {t} ALTER COLUMN s COMMENT 'x', s.x FIRST",
        "ALTER TABLE {t} ALTER COLUMN v TYPE VARCHAR(6)",
        "INSERT INTO {t} (id, v) VALUES (2, 'abcdef')",
        "!INSERT INTO {t} (id, v) VALUES (2, 'abcdefg')",
        "!ALTER TABLE {t} ALTER COLUMN v TYPE VARCHAR(5)",
        "!ALTER TABLE {t} ALTER COLUMN v TYPE CHAR(6)",
        "ALTER TABLE {t} CHANGE COLUMN v v STRING COMMENT 'any length'",
        "!ALTER TABLE {t} ALTER COLUMN v TYPE VARCHAR(10)",
        "!ALTER TABLE {t} ALTER COLUMN c TYPE CHAR(5)",
        "!ALTER TABLE {t} ALTER COLUMN c TYPE VARCHAR(2)",
        "ALTER TABLE {t} ALTER COLUMN c TYPE VARCHAR(3)",
        "INSERT INTO {t} (id, v, c) VALUES (3, 'abcdefgh', 'ab')",
    ],
    "elements, keys and values": [
        (
            "CREATE TABLE {t} (id INT, l ARRAY<INT>, m MAP<INT, SMALLINT>, ls ARRAY<STRUCT<x: INT, y: INT>>, "
            "ms MAP<STRUCT<k: INT>, STRUCT<v: INT, w: INT>>, ll ARRAY<ARRAY<SMALLINT>>, "
            "s STRUCT<l: ARRAY<INT>, element: STRUCT<e: INT, f: INT>>) USING delta "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
        ),
        (
            "INSERT INTO {t} VALUES (1, array(1), map(1, 2), array(named_struct('x', 1, 'y', 2)), "
            "map(named_struct('k', 1), named_struct('v', 1, 'w', 2)), array(array(1)), NULL)"
        ),
        "ALTER TABLE {t} ALTER COLUMN l.element TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN m.key TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN m.value TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN m.value TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN ll.element.element TYPE INT, s.l.element TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN ls.element.x TYPE BIGINT",
        "ALTER TABLE {t} CHANGE COLUMN ms.key.k k BIGINT COMMENT 'of keys'",
        "INSERT INTO {t} (id, l, m) VALUES (2, array(1 << 40), map(1 << 41, 1 << 42))",
        "!ALTER TABLE {t} ALTER COLUMN l.element TYPE DOUBLE",
        "!ALTER TABLE {t} ALTER COLUMN l.element TYPE INT",
        "!ALTER TABLE {t} ALTER COLUMN l.element COMMENT 'x'",
        "!ALTER TABLE {t} ALTER COLUMN m.value COMMENT 'x'",
        "!ALTER TABLE {t} CHANGE COLUMN l.element element BIGINT COMMENT 'x'",
        "ALTER TABLE {t} ALTER COLUMN l.element DROP NOT NULL",
        "!ALTER TABLE {t} ALTER COLUMN l.element SET NOT NULL",
        "!ALTER TABLE {t} ALTER COLUMN m.key DROP NOT NULL",
        "ALTER TABLE {t} ALTER COLUMN l.element DROP DEFAULT",
        "!ALTER TABLE {t} ALTER COLUMN l TYPE ARRAY<DECIMAL(20,0)>",
        "!ALTER TABLE {t} ALTER COLUMN m TYPE MAP<BIGINT, DECIMAL(20,0)>",
        "ALTER TABLE {t} ALTER COLUMN ls.element.x COMMENT 'c'",
        "ALTER TABLE {t} ALTER COLUMN ls.element.y FIRST",
        "ALTER TABLE {t} ALTER COLUMN ls.element.y AFTER x",
        "ALTER TABLE {t} ALTER COLUMN ms.value.w FIRST",
        "!ALTER TABLE {t} ALTER COLUMN ms.value.w AFTER nope",
        "ALTER TABLE {t} ALTER COLUMN ms.value.w COMMENT 'c', ms.value.v COMMENT 'd', id COMMENT 'e'",
        "ALTER TABLE {t} ALTER COLUMN s.element.e AFTER f",
        "ALTER TABLE {t} ADD COLUMN ls.element.z INT FIRST",
        "ALTER TABLE {t} ADD COLUMNS (ms.value.z INT AFTER v, ms.key.z INT FIRST, ms.value.z2 INT AFTER z)",
        "ALTER TABLE {t} RENAME COLUMN ls.element.x TO xx",
        "!ALTER TABLE {t} RENAME COLUMN l.element TO xx",
        "!ALTER TABLE {t} RENAME COLUMN m.key TO xx",
        "ALTER TABLE {t} RENAME COLUMN ms.key.k TO kk",
        "ALTER TABLE {t} DROP COLUMN ms.value.w",
        "!ALTER TABLE {t} DROP COLUMN l.element",
        "!ALTER TABLE {t} DROP COLUMN m.value",
        "ALTER TABLE {t} DROP COLUMNS (ls.element.z, ms.value.z2)",
        "!ALTER TABLE {t} DROP COLUMNS (ls.element.xx, ls.element.y)",
        "!ALTER TABLE {t} DROP COLUMN ls.xx",
        "!ALTER TABLE {t} ALTER COLUMN ls.xx COMMENT 'no element'",
        "ALTER TABLE {t} ADD CONSTRAINT c CHECK (l IS NOT NULL)",
        "!ALTER TABLE {t} ALTER COLUMN l.element TYPE DECIMAL(20,0)",
        "UPDATE {t} SET id = 3",
    ],
    "names that only the source has": [
        "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: INT, q: STRUCT<z: INT, y: INT>>) USING delta",
        "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 2, 'q', named_struct('z', 3, 'y', 4))), (2, NULL)",
        (
            "CREATE TABLE {u} (id INT, n1 INT, n2 STRING, N3 INT, s STRUCT<c: INT, q: STRUCT<z: INT>>, "
            "st STRUCT<k: INT>) USING delta"
        ),
        (
            "INSERT INTO {u} VALUES (1, 5, 'x', 6, named_struct('c', 7, 'q', named_struct('z', 8)), "
            "named_struct('k', 9)), "
            "(3, 5, 'x', 6, named_struct('c', 7, 'q', named_struct('z', 8)), named_struct('k', 9))"
        ),
        "!MERGE INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n1 = u.n1",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n1 = u.n1 + n1",
        (
            "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id "
            "WHEN NOT MATCHED AND n2 = 'x' THEN INSERT (id, n2) VALUES (u.id, u.n2)"
        ),
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n3 = 1",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s.c = u.s.c",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET st.k = u.st.k",
        # Fields that the source lacks become null where the whole struct is assigned; `*` keeps them.
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s.q = u.s.q",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = u.s",
        "!MERGE INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = u.s",
        "!MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id WHEN MATCHED THEN UPDATE SET no = u.id",
        (
            "!MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {u} u ON t.id = u.id "
            "WHEN NOT MATCHED THEN INSERT (id, s.a) VALUES (u.id, 1)"
        ),
    ],
    "generated": [
        (
            "CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), a INT, "
            "g INT GENERATED ALWAYS AS (a * 2), z STRING DEFAULT 'dflt', p STRING) USING delta PARTITIONED BY (p) "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
        ),
        "INSERT INTO {t} (a, p) VALUES (1, 'x')",
        "INSERT INTO {t} (a, z, p) VALUES (2, DEFAULT, 'y')",
        "UPDATE {t} SET z = DEFAULT, a = a + 1",
        "INSERT INTO {t} (a, g, p) VALUES (3, 6, 'x')",
        "!INSERT INTO {t} (a, g, p) VALUES (3, 7, 'x')",
        "!INSERT INTO {t} (id, a) VALUES (3, 7)",
        "ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY",
        "!ALTER TABLE {t} ALTER COLUMN a SYNC IDENTITY",
        "ALTER TABLE {t} ALTER COLUMN z SET DEFAULT concat('a', 'b')",
        "INSERT INTO {t} (a) VALUES (9)",
        "ALTER TABLE {t} ALTER COLUMN z DROP DEFAULT",
        "INSERT INTO {t} (a) VALUES (10)",
    ],
    "partitions": [
        "CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1 AS id, 'x' AS p UNION SELECT 2, 'y'",
        "!CREATE TABLE {t} USING delta AS SELECT 1 AS id",
        "CREATE TABLE IF NOT EXISTS {t} (z INT) USING delta",
        "INSERT INTO {t} PARTITION (p = 'z') VALUES (3)",
        "INSERT INTO {t} PARTITION (p = 'z') SELECT 4",
        "DELETE FROM {t} WHERE p = 'y'",
        "OPTIMIZE {t} WHERE p = 'z'",
        "CREATE OR REPLACE TABLE {t} USING delta CLUSTER BY (x) COMMENT 'c' TBLPROPERTIES (k = 1) AS SELECT 1 AS x",
        "REPLACE TABLE {t} USING delta TBLPROPERTIES (l = 2) AS SELECT 1 AS id, 'x' AS p",
        "COMMENT ON TABLE {t} IS 'of the source'",
        "CREATE TABLE {u} SHALLOW CLONE {t} VERSION AS OF 1",
        "ALTER TABLE {u} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    ],
}
QUERIES = [
    "SELECT count(*) AS n, max(id) AS m FROM {t}",
    "SELECT id FROM {t} VERSION AS OF 1 ORDER BY id",
    "SELECT id FROM {t} FOR VERSION AS OF 2 AS a WHERE a.id > 1 ORDER BY id",
    "WITH a AS (SELECT * FROM {t}) SELECT b.id FROM a JOIN {t} VERSION AS OF 1 AS b ON a.id = b.id ORDER BY 1",
]
ANSWERS = ["DESCRIBE DETAIL {t}", "DESCRIBE HISTORY {t}", "DESCRIBE HISTORY {t} LIMIT 1", "SHOW TBLPROPERTIES {t}"]


def state(folder: pathlib.Path) -> dict[str, Any]:
    """Return what a table is and holds."""
    table = DeltaTable(folder)
    metadata = table.metadata()
    rows = sorted(json.dumps(row, default=str, sort_keys=True) for row in table.to_pyarrow_table().to_pylist())
    private = ("delta.rowTracking.", "delta.columnMapping.maxColumnId")
    return {
        "rows": rows,
        "schema": [visible(json.loads(field.to_json())) for field in table.schema().fields],
        "partitions": metadata.partition_columns,
        "properties": {k: v for k, v in metadata.configuration.items() if not k.startswith(private)},
        "description": metadata.description or None,
    }


def visible(node: Any) -> Any:
    """Return a field without what each writer chooses for itself."""
    if isinstance(node, dict):
        own = ("physicalName", "columnMapping.id", "EXISTS_DEFAULT")
        return {key: visible(value) for key, value in node.items() if not key.endswith(own)}
    return [visible(item) for item in node] if isinstance(node, list) else node


def tried(run: Any, text: str) -> str | None:
    """Run a statement and return what it fails with, or None."""
    try:
        run(text)
    except Exception as error:  # noqa: BLE001 - that both sides fail is what is compared
        return str(error)[:300] or repr(error)
    return None


def done(spark: Reference, script: str, base: pathlib.Path) -> dict[str, Any]:
    """Run a statement by the reference, and return what it is refused with and both tables."""
    places = {which: f"delta.`{base}/theirs-{which}`" for which in "tu"}
    return {"refused": refusal(spark.sql, script.removeprefix("!").format(**places)), **states(base, "theirs")}


def states(base: pathlib.Path, side: str) -> dict[str, Any]:
    """Return both tables of a side, if they are there."""
    folders = {which: base / f"{side}-{which}" for which in "tu"}
    return {which: state(folder) for which, folder in folders.items() if folder.exists()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_statements_leave_the_same_table(name: str, answers: Answers, tmp_path: pathlib.Path) -> None:
    differences: list[str] = []
    places = {which: f"delta.`{tmp_path}/ours-{which}`" for which in "tu"}
    for number, script in enumerate(SCRIPTS[name]):
        text = script.removeprefix("!")
        expected = answers(f"{number}: {script}", done, script, tmp_path)
        ours, theirs = tried(deltafast.sql, text.format(**places)), expected.pop("refused")
        if (ours is None) != (theirs is None) or (ours is not None) != script.startswith("!"):
            differences.append(f"{number} {text}: ours {ours}, theirs {theirs}")
        found = plain(states(tmp_path, "ours"))
        assert found.keys() == expected.keys(), f"{number} {text}"
        differences += [
            f"{number} {text}: {key} of {which}: ours {found[which][key]}, theirs {expected[which][key]}"
            for which in found
            for key in found[which]
            if found[which][key] != expected[which][key]
        ]
        if differences:
            break
    assert not differences, "\n".join(differences)


def asked(spark: Reference, text: str) -> dict[str, Any]:
    """Return the columns and the rows that the reference answers."""
    answer = spark.answer(text)
    return {"columns": answer.column_names, "rows": answer.to_pylist()}


def described(spark: Reference, text: str, ours: pa.Table) -> dict[str, Any]:
    """Return the columns and the rows that the reference answers; here sizes and ids, too, must be the same."""
    answer = spark.answer(text)
    assert comparable(ours) == comparable(answer), text
    return {"columns": answer.column_names, "rows": lasting(answer)}


def columns(spark: Reference, text: str) -> dict[str, Any]:
    """Return the columns that the reference answers, how many rows, and the fields of `metrics`, if there are."""
    answer = spark.answer(text)
    metrics = answer.schema.field("metrics").type if "metrics" in answer.column_names else ()
    return {"columns": answer.column_names, "rows": answer.num_rows, "metrics": [field.name for field in metrics]}


def test_queries_and_answers_are_the_same(answers: Answers, tmp_path: pathlib.Path) -> None:
    place = f"delta.`{tmp_path}`"
    deltafast.sql(f"CREATE TABLE {place} (id INT) TBLPROPERTIES (a = 'b')")
    for number in range(1, 4):
        deltafast.sql(f"INSERT INTO {place} VALUES ({number})")
    for query in QUERIES:
        text = query.format(t=place)
        ours = deltafast.sql(text).read_all()
        assert plain(ours.to_pylist()) == answers(query, asked, text)["rows"], query
    for answer in ANSWERS:
        text = answer.format(t=place)
        ours = deltafast.sql(text).read_all()
        theirs = answers(answer, described, text, ours)
        assert ours.column_names == theirs["columns"], answer
        assert plain(lasting(ours)) == theirs["rows"], answer
    for statement in ("DELETE FROM {t} WHERE id = 1", "UPDATE {t} SET id = id + 1"):
        ours = deltafast.sql(statement.format(t=place)).read_all()
        theirs = answers(statement, columns, statement.format(t=place))
        assert ours.column_names == theirs["columns"]
        assert ours.num_rows == theirs["rows"] == 1
    statement = "RESTORE TABLE {t} TO VERSION AS OF 1"
    ours = deltafast.sql(statement.format(t=place)).read_all()
    assert {*ours.column_names} == {*answers(statement, columns, statement.format(t=place))["columns"]}
    statement = "OPTIMIZE {t}"
    ours = deltafast.sql(statement.format(t=place)).read_all()
    theirs = answers(statement, columns, statement.format(t=place))
    assert ours.column_names == theirs["columns"]
    assert {field.name for field in ours.schema.field("metrics").type} <= {*theirs["metrics"]}


def comparable(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows without what each side spells in its own way."""
    rows = table.to_pylist()
    for row in rows:
        for key in ("location", "timestamp", "lastModified", "createdAt", "userId", "userName"):
            row.pop(key, None)
    return rows


def lasting(table: pa.Table) -> list[dict[str, Any]]:
    """Return comparable rows without what every run or version of deltafast has its own of."""
    rows = comparable(table)
    for row in rows:
        for key in ("id", "sizeInBytes", "engineInfo"):
            row.pop(key, None)
        if metrics := row.get("operationMetrics"):
            own = ("Bytes", "TimeMs")
            row["operationMetrics"] = [[key, value] for key, value in metrics if not key.endswith(own)]
    return rows
