"""`deltafast.sql`: every statement, by the rows, schema and history that it leaves."""

import datetime as dt
import gc
import json
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import (
    CommitProperties,
    ConstraintViolatedError,
    DeltaError,
    DeltaTable,
    DeltaWarning,
    InvalidArgumentError,
    TableNotFoundError,
    write_deltalake,
)
from deltafast._expr import UnsupportedExpressionError
from deltafast._sql.reading import read_statement
from deltafast._sql.run_changes import merge_sql, rows_of
from deltafast._util.dialect import Dialect

FEED = {"delta.enableChangeDataFeed": "true"}
NAMES = {"delta.columnMapping.mode": "name"}


def sql(text, **given):
    return deltafast.sql(text, **given).read_all()


def rows(table, order="id"):
    return DeltaTable(table.table_uri).to_pyarrow_table().sort_by(order).to_pylist()


def operation(table):
    return DeltaTable(table.table_uri).history(1)[0]["operation"]


@pytest.fixture
def table(tmp_path):
    """Five rows in three versions."""
    path = tmp_path / "t"
    first = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"], "amount": [1.0, 2.0]})
    write_deltalake(path, first, configuration=FEED)
    write_deltalake(path, pa.table({"id": [3], "name": ["c"], "amount": [3.0]}), mode="append")
    write_deltalake(path, pa.table({"id": [4, 5], "name": [None, "e"], "amount": [4.0, None]}), mode="append")
    return DeltaTable(path)


@pytest.fixture
def parted(tmp_path):
    path = tmp_path / "p"
    write_deltalake(path, pa.table({"id": [1, 2, 3], "p": ["x", "x", "y"], "n": [1, 2, 3]}), partition_by=["p"])
    return DeltaTable(path)


class TestQueries:
    def test_a_table_by_its_place(self, table, tmp_path):
        found = sql(f"SELECT max(id) AS m, count(*) AS c FROM delta.`{tmp_path}/t`")
        assert found.to_pylist() == [{"m": 5, "c": 5}]

    def test_a_table_by_name_in_any_case(self, table):
        assert sql("select ID from T where name = 'c'", t=table).to_pylist() == [{"id": 3}]

    def test_a_place_as_an_argument(self, table, tmp_path):
        assert sql("FROM t", t=tmp_path / "t").num_rows == 5
        assert sql("FROM t", t=str(tmp_path / "t")).num_rows == 5

    @pytest.mark.parametrize(
        ("version", "expected"),
        [
            ("t VERSION AS OF 0", 2),
            ("t FOR VERSION AS OF 1", 3),
            ("t for system_version as of 1", 3),
            ("t VERSION AS OF '1'", 3),
            ("t@v1", 3),
            ("t@V0 AS x", 2),
            ("t TIMESTAMP AS OF '9999-01-01'", 5),
            ("t TIMESTAMP AS OF TIMESTAMP'9999-01-01 00:00:00'", 5),
            ("t TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY", 5),
            ("t@99990101000000000", 5),
        ],
    )
    def test_older_versions(self, table, version, expected):
        assert sql(f"SELECT count(*) AS n FROM {version}", t=table)["n"].to_pylist() == [expected]

    def test_older_versions_of_a_place(self, table, tmp_path):
        for reference in (
            f"delta.`{tmp_path}/t@v1`",
            f"delta.`{tmp_path}/t`@v1",
            f"DELTA.`{tmp_path}/t` VERSION AS OF 1",
        ):
            assert sql(f"SELECT * FROM {reference}").num_rows == 3

    def test_a_timestamp_between_two_versions(self, table):
        first = dt.datetime.fromtimestamp(table.history()[1]["timestamp"] / 1000, dt.UTC)
        stamp = first.strftime("%Y%m%d%H%M%S") + f"{first.microsecond // 1000:03}"
        assert sql(f"SELECT * FROM t@{stamp}", t=table).num_rows == 3
        assert sql(f"SELECT * FROM t TIMESTAMP AS OF '{first.isoformat()}'", t=table).num_rows == 3

    def test_two_versions_of_one_table(self, table):
        text = "SELECT t.id FROM t LEFT JOIN t@v0 AS old USING (id) WHERE old.id IS NULL ORDER BY 1"
        assert sql(text, t=table)["id"].to_pylist() == [3, 4, 5]

    def test_columns_go_by_the_name_of_an_older_version(self, table):
        assert sql("SELECT t.id FROM t VERSION AS OF 0 WHERE t.name = 'a'", t=table).to_pylist() == [{"id": 1}]

    def test_columns_go_by_the_place(self, table, tmp_path):
        place = f"delta.`{tmp_path}/t`"
        assert sql(f"SELECT {place}.id FROM {place} WHERE {place}.name = 'a'").to_pylist() == [{"id": 1}]

    def test_the_change_feed(self, table, tmp_path):
        found = sql("SELECT id, _change_type, _commit_version AS v FROM table_changes('t', 1) ORDER BY id", t=table)
        assert found.to_pylist() == [
            {"id": 3, "_change_type": "insert", "v": 1},
            {"id": 4, "_change_type": "insert", "v": 2},
            {"id": 5, "_change_type": "insert", "v": 2},
        ]
        assert sql("FROM table_changes('t', 0, 1)", t=table).num_rows == 3
        assert sql("SELECT sum(num_records) AS n FROM delta_files('t')", t=table).to_pylist() == [{"n": table.count()}]
        found = sql(f"SELECT h.version FROM delta_history('{tmp_path}/t', 2) AS h ORDER BY ALL")
        assert found["version"].to_pylist() == [table.version() - 1, table.version()]
        assert sql("SELECT format FROM delta_detail('t')", t=table).to_pylist() == [{"format": "delta"}]
        assert sql(f"FROM table_changes('delta.`{tmp_path}/t`', 2)").num_rows == 2
        assert sql(f"FROM table_changes_by_path('{tmp_path}/t', 0, 0)").num_rows == 2
        text = "FROM table_changes('t', '2020-01-01', '9999-01-01') AS a JOIN table_changes('t', 0) AS b USING (id)"
        assert sql(text, t=table).num_rows == 5

    def test_other_data_takes_part(self, table):
        for keys in (pa.table({"id": [1, 4]}), pl.DataFrame({"id": [1, 4]}), pd.DataFrame({"id": [1, 4]})):
            assert sql("SELECT count(*) AS n FROM t JOIN keys USING (id)", t=table, keys=keys)["n"].to_pylist() == [2]

    def test_a_stream_may_be_read_twice(self):
        stream = pa.table({"a": [1, 2]}).to_reader()
        assert sql("SELECT count(*) AS n FROM s AS x, s AS y", s=stream)["n"].to_pylist() == [4]

    def test_names_in_backquotes(self, table):
        assert sql('SELECT `id` AS `the "id"` FROM `t` LIMIT 1', t=table).column_names == ['the "id"']

    def test_queries_of_every_beginning(self, table):
        assert sql("WITH x AS (SELECT id FROM t) SELECT * FROM x", t=table).num_rows == 5
        assert sql("(SELECT id FROM t) UNION ALL (SELECT 1)", t=table).num_rows == 6
        assert sql("VALUES (1), (2)").num_rows == 2
        assert sql("  /* one */ SELECT 1 -- two\n ;").num_rows == 1

    def test_strings_and_comments_are_not_looked_into(self, table):
        text = """SELECT 'delta.`x` VERSION AS OF 1; ''t@v1' AS a, $$ t@v9 $$ AS b, E'\\'t@v7' AS c -- t@v9
            /* delta.`nowhere` /* nested */ */ FROM t LIMIT 1"""
        expected = {"a": "delta.`x` VERSION AS OF 1; 't@v1", "b": " t@v9 ", "c": "'t@v7"}
        assert sql(text, t=table).to_pylist() == [expected]

    def test_rows_are_read_when_asked_for(self, table):
        reader = deltafast.sql("SELECT id FROM t", t=table)
        table.delete()
        gc.collect()
        assert reader.read_all().num_rows == 5

    def test_variables_of_the_caller_are_no_tables(self):
        secret = pa.table({"a": [1]})
        assert secret.num_rows == 1
        with pytest.raises(InvalidArgumentError, match=r"there is no table `secret`"):
            sql("SELECT * FROM secret")


class TestInsert:
    def test_values_by_place(self, table):
        found = sql("INSERT INTO t VALUES (6, 'f', 6), (7, NULL, 7.5)", t=table)
        assert found.to_pylist() == [{"num_affected_rows": 2, "num_inserted_rows": 2}]
        assert rows(table)[5:] == [
            {"id": 6, "name": "f", "amount": 6.0},
            {"id": 7, "name": None, "amount": 7.5},
        ]
        assert table.version() == 3

    def test_values_are_sparks(self, tmp_path):
        place = f"delta.`{tmp_path}/v`"
        sql(
            f"CREATE TABLE {place} (id BIGINT, d DATE, ts TIMESTAMP, dec DECIMAL(10,2), b BINARY, s STRING, "
            "a ARRAY<INT>, m MAP<STRING, INT>, st STRUCT<x: INT, y: STRING>, f BOOLEAN, n TIMESTAMP_NTZ)"
        )
        sql(
            f"INSERT INTO {place} VALUES (1 + 1, DATE'2026-01-31', '2026-01-31 12:00:00', 1.005, X'1F', "
            "concat('a', 'b'), array(1, 2 * 2), "
            "map('k', 3), named_struct('x', 1, 'y', 'z'), 1 < 2, TIMESTAMP_NTZ'2026-01-31 12:00:00')"
        )
        (row,) = DeltaTable(tmp_path / "v").to_pyarrow_table().to_pylist()
        assert row == {
            "id": 2,
            "d": dt.date(2026, 1, 31),
            "ts": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC),
            "dec": Decimal("1.01"),
            "b": b"\x1f",
            "s": "ab",
            "a": [1, 4],
            "m": [("k", 3)],
            "st": {"x": 1, "y": "z"},
            "f": True,
            "n": dt.datetime(2026, 1, 31, 12),  # noqa: DTZ001
        }

    def test_the_zone_of_the_session(self, tmp_path):
        sql(f"CREATE TABLE delta.`{tmp_path}/z` (id INT, ts TIMESTAMP)")
        deltafast.sql(f"INSERT INTO delta.`{tmp_path}/z` VALUES (1, '2026-01-31 12:00:00')", time_zone="+02:00")
        found = DeltaTable(tmp_path / "z").to_pyarrow_table()["ts"][0].as_py()
        assert found == dt.datetime(2026, 1, 31, 10, tzinfo=dt.UTC)

    def test_a_value_that_does_not_fit(self, table):
        with pytest.raises(InvalidArgumentError, match=r"a value of `id`.*'abc'.*cannot be cast"):
            sql("INSERT INTO t VALUES ('abc', 'f', 1)", t=table)
        with pytest.raises(
            InvalidArgumentError, match=r"3 columns \(id, name, amount\) are to get values, the rows have 2"
        ):
            sql("INSERT INTO t VALUES (1, 'f')", t=table)
        with pytest.raises(InvalidArgumentError, match="row 2 has 1 values, the first has 3"):
            sql("INSERT INTO t VALUES (1, 'f', 1), (2)", t=table)
        assert table.version() == 2

    def test_named_columns(self, table):
        sql("INSERT INTO t (amount, ID) VALUES (9.5, 9)", t=table)
        assert rows(table)[-1] == {"id": 9, "name": None, "amount": 9.5}
        with pytest.raises(InvalidArgumentError, match="has no column `nope`"):
            sql("INSERT INTO t (id, nope) VALUES (1, 2)", t=table)
        with pytest.raises(InvalidArgumentError, match="named twice"):
            sql("INSERT INTO t (id, ID) VALUES (1, 2)", t=table)

    def test_a_query_by_place_and_by_name(self, table):
        sql("INSERT INTO t SELECT id + 100 AS amount, 'new', 1 FROM t WHERE id <= 2", t=table)
        assert rows(table)[-2:] == [
            {"id": 101, "name": "new", "amount": 1.0},
            {"id": 102, "name": "new", "amount": 1.0},
        ]
        sql("INSERT INTO t BY NAME SELECT 1.5 AS amount, 200 AS id", t=table)
        assert rows(table)[-1] == {"id": 200, "name": None, "amount": 1.5}

    def test_a_table_and_other_data(self, table, tmp_path):
        more = pa.table({"id": [10], "name": ["j"], "amount": [1.0]})
        sql("INSERT INTO t TABLE more", t=table, more=more)
        sql(f"INSERT INTO TABLE t FROM delta.`{tmp_path}/t@v0`", t=table)
        assert [row["id"] for row in rows(table)] == [1, 1, 2, 2, 3, 4, 5, 10]

    def test_a_query_is_cast_as_spark_stores_values(self, tmp_path):
        sql(f"CREATE TABLE delta.`{tmp_path}/c` (id BIGINT, s STRING, d DATE, x DECIMAL(10,2))")
        text = "SELECT sum(i), max(i), '2026-01-31', 1.5::DOUBLE FROM (VALUES (1), (2)) AS v (i)"
        sql(f"INSERT INTO delta.`{tmp_path}/c` {text}")
        expected = {"id": 3, "s": "2", "d": dt.date(2026, 1, 31), "x": Decimal("1.50")}
        assert DeltaTable(tmp_path / "c").to_pyarrow_table().to_pylist() == [expected]

    def test_defaults_generated_and_identity_columns(self, tmp_path):
        place = f"delta.`{tmp_path}/d`"
        sql(
            f"CREATE TABLE {place} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), "
            "a INT DEFAULT 40 + 2, b INT, g INT GENERATED ALWAYS AS (a + 1))"
        )
        sql(f"INSERT INTO {place} (b) VALUES (1), (2)")
        sql(f"INSERT INTO {place} VALUES (DEFAULT, DEFAULT, DEFAULT, DEFAULT), (DEFAULT, 7, 8, DEFAULT)")
        found = DeltaTable(tmp_path / "d").to_pyarrow_table().sort_by("id").to_pylist()
        assert [(row["a"], row["b"], row["g"]) for row in found] == [
            (42, 1, 43),
            (42, 2, 43),
            (42, None, 43),
            (7, 8, 8),
        ]
        assert [row["id"] for row in found] == [10, 15, 20, 25]

    def test_overwrite(self, table):
        sql("INSERT OVERWRITE t VALUES (1, 'z', 0)", t=table)
        assert rows(table) == [{"id": 1, "name": "z", "amount": 0.0}]
        sql("INSERT OVERWRITE TABLE t SELECT id + 1, name, amount FROM t", t=table)
        assert rows(table) == [{"id": 2, "name": "z", "amount": 0.0}]

    def test_partitions(self, parted):
        sql("INSERT INTO t PARTITION (p = 'z') VALUES (4, 4)", t=parted)
        sql("INSERT INTO t PARTITION (p) VALUES (5, 'w', 5)", t=parted)
        sql("INSERT OVERWRITE t PARTITION (p = 'x') SELECT 9, 9", t=parted)
        assert [(row["id"], row["p"]) for row in rows(parted)] == [(3, "y"), (4, "z"), (5, "w"), (9, "x")]
        sql("INSERT OVERWRITE t PARTITION (p = NULL) SELECT 8, 8", t=parted)
        assert len(rows(parted)) == 5
        with pytest.raises(InvalidArgumentError, match="`n` is not a partition column; the table has p"):
            sql("INSERT INTO t PARTITION (n = 1) VALUES (1, 'x')", t=parted)

    def test_replace_where(self, parted):
        sql("INSERT INTO t REPLACE WHERE p = 'x' AND id >= 2 SELECT 20 AS id, 'x' AS p, 0 AS n", t=parted)
        assert [(row["id"], row["p"]) for row in rows(parted)] == [(1, "x"), (3, "y"), (20, "x")]
        with pytest.raises(DeltaError):
            sql("INSERT INTO t REPLACE WHERE p = 'x' VALUES (1, 'y', 1)", t=parted)

    def test_replace_using_and_on(self, parted):
        sql("INSERT INTO t REPLACE USING (id) VALUES (1, 'q', 10), (7, 'q', 70)", t=parted)
        assert [(row["id"], row["p"]) for row in rows(parted)] == [(1, "q"), (2, "x"), (3, "y"), (7, "q")]
        text = "INSERT INTO t AS old REPLACE ON old.id = new.id (SELECT 2 AS id, 'r' AS p, 0 AS n) AS new"
        sql(text, t=parted)
        assert [(row["id"], row["p"]) for row in rows(parted)] == [(1, "q"), (2, "r"), (3, "y"), (7, "q")]

    def test_schema_evolution(self, table):
        sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 6 AS id, true AS fresh", t=table)
        assert rows(table)[-1] == {"id": 6, "name": None, "amount": None, "fresh": True}

    def test_schema_evolution_by_place(self, table, parted):
        sql("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 6, 'f', 6.0, true AS fresh, 'x' AS more", t=table)
        assert rows(table)[-1] == {"id": 6, "name": "f", "amount": 6.0, "fresh": True, "more": "x"}
        assert rows(table)[0]["fresh"] is None
        sql("INSERT WITH SCHEMA EVOLUTION INTO p PARTITION (p = 'z') SELECT 4, 4, 5 AS o", p=parted)
        assert rows(parted)[-1] == {"id": 4, "p": "z", "n": 4, "o": 5}
        for text, message in (
            ("SELECT 7, 'g', 7.0, true, 'y', 1 AS NAME", "`NAME` is to be added, and the table has it"),
            ("SELECT 7, 'g', 7.0, true, 'y', 1 AS one, 2 AS ONE", "`ONE` is to be added"),
            ("SELECT 7, 'g'", "5 columns .* are to get values, the rows have 2"),
            ("VALUES (7, 'g', 7.0, true, 'y', 1)", "the type of the new column `col6` is not known"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                sql(f"INSERT WITH SCHEMA EVOLUTION INTO t {text}", t=table)
        with pytest.raises(InvalidArgumentError, match=r"5 columns .* are to get values, the rows have 6"):
            sql("INSERT INTO t SELECT 7, 'g', 7.0, true, 'y', 1 AS one", t=table)
        assert table.version() == 3

    def test_queries_named_before(self, table, tmp_path):
        place = f"delta.`{tmp_path}/t`"
        sql(f"WITH q AS (SELECT id + 10 AS id, name FROM {place}@v0) INSERT INTO t (id, name) SELECT * FROM q", t=table)
        assert [row["id"] for row in rows(table)] == [1, 2, 3, 4, 5, 11, 12]
        text = """
            WITH RECURSIVE a (n) AS (SELECT 20 UNION ALL SELECT n + 1 FROM a WHERE n < 21), -- , b AS (SELECT 1)
            "b c" AS MATERIALIZED (SELECT n, ')' || 'q' AS name FROM a), `q` AS (FROM "b c")
            INSERT INTO t (id, name) WITH r AS (SELECT * FROM q WHERE n > 20) SELECT * FROM r -- all of it
        """
        sql(text, t=table)
        assert rows(table)[-1] == {"id": 21, "name": ")q", "amount": None}
        sql("WITH q AS (SELECT 30 AS id, name, 1.0 FROM s) INSERT INTO t TABLE Q", t=table, s=pa.table({"name": ["s"]}))
        assert rows(table)[-1] == {"id": 30, "name": "s", "amount": 1.0}
        sql("WITH q AS (SELECT 31) INSERT INTO t (id) FROM q", t=table)
        sql(
            "WITH q AS (SELECT 30 AS id) INSERT INTO t AS a REPLACE ON a.id = b.id (SELECT id, 'o', 2.0 FROM q) b",
            t=table,
        )
        assert rows(table)[-2:] == [{"id": 30, "name": "o", "amount": 2.0}, {"id": 31, "name": None, "amount": None}]
        sql("INSERT INTO t WITH q AS (SELECT 32, 'w', 3.0) SELECT * FROM q", t=table)
        assert rows(table)[-1] == {"id": 32, "name": "w", "amount": 3.0}

    def test_queries_named_before_what_is_no_insert(self, table):
        text = "WITH q AS (SELECT 1 AS id), r AS (SELECT id FROM q) MERGE INTO t USING"
        sql(f"{text} r ON t.id = r.id WHEN MATCHED THEN UPDATE SET name = concat('r', r.id)", t=table)
        sql(f"{text} (SELECT id + 1 AS id FROM r) x ON t.id = x.id WHEN MATCHED THEN DELETE", t=table)
        assert [row["name"] for row in rows(table)] == ["r1", "c", None, "e"]
        with pytest.raises(UnsupportedExpressionError, match="WITH before DELETE is not supported"):
            sql("WITH q AS (SELECT 1) DELETE FROM t WHERE id = 1", t=table)
        assert sql('WITH q AS (SELECT 1 AS "insert") (SELECT "insert" FROM q)')["insert"].to_pylist() == [1]

    def test_constraints_hold(self, table):
        sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)", t=table)
        with pytest.raises(ConstraintViolatedError, match="positive"):
            sql("INSERT INTO t VALUES (-1, 'x', 1)", t=table)

    def test_commit_properties(self, table):
        sql(
            "INSERT INTO t VALUES (6, 'f', 6)",
            t=table,
            commit_properties=CommitProperties(custom_metadata={"job": "7"}),
        )
        assert table.history(1)[0]["job"] == "7"


class TestDeleteAndUpdate:
    def test_delete(self, table):
        assert sql("DELETE FROM t WHERE id > 3", t=table).to_pylist() == [{"num_affected_rows": 2}]
        assert [row["id"] for row in rows(table)] == [1, 2, 3]
        assert table.version() == 3

    def test_delete_everything(self, table, parted):
        assert sql("DELETE FROM t", t=table)["num_affected_rows"].to_pylist() == [5]
        sql("TRUNCATE TABLE t", t=parted)
        assert rows(table) == []
        assert rows(parted) == []

    def test_by_an_alias_or_the_name(self, table):
        sql("DELETE FROM t AS x WHERE x.id = 1 AND x.name = 'a'", t=table)
        sql("DELETE FROM t x WHERE X.id = 2", t=table)
        sql("DELETE FROM t WHERE t.id = 3", t=table)
        assert [row["id"] for row in rows(table)] == [4, 5]

    def test_by_the_place(self, table):
        place = f"delta.`{table.table_uri}`"
        sql(f"UPDATE {place} SET {place}.name = concat({place}.name, '!') WHERE {place}.id < 3 OR {place}.amount = 3")
        sql(f"DELETE FROM {place} WHERE `{table.table_uri}`.id = 1 AND {place}.name = 'a!'")
        assert [row["name"] for row in rows(table)] == ["b!", "c!", None, "e"]
        with pytest.raises(InvalidArgumentError, match="delta"):
            sql("DELETE FROM t AS a WHERE delta.`t`.id = 1", t=table)

    def test_a_column_of_the_alias_name(self, tmp_path):
        write_deltalake(tmp_path / "s", pa.table({"id": [1, 2], "t": [{"id": 9}, {"id": 8}]}))
        sql("DELETE FROM t WHERE t.id = 9", t=DeltaTable(tmp_path / "s"))
        assert DeltaTable(tmp_path / "s").to_pyarrow_table()["id"].to_pylist() == [2]

    def test_conditions_are_sparks(self, table):
        sql("DELETE FROM t WHERE name <=> NULL OR name RLIKE '^[ab]$' AND id DIV 2 = 1", t=table)
        assert [row["id"] for row in rows(table)] == [1, 3, 5]

    def test_a_text_in_double_quotes(self, table):
        sql('DELETE FROM t WHERE name = "a"', t=table)
        assert len(rows(table)) == 4
        with pytest.raises(InvalidArgumentError, match='"name" is a string in Spark SQL, and a column here'):
            sql("DELETE FROM t WHERE \"name\" = 'b'", t=table)

    def test_update(self, table):
        found = sql("UPDATE t SET amount = amount * 10, name = upper(name) WHERE id <= 2", t=table)
        assert found.to_pylist() == [{"num_affected_rows": 2}]
        assert rows(table)[:2] == [
            {"id": 1, "name": "A", "amount": 10.0},
            {"id": 2, "name": "B", "amount": 20.0},
        ]
        sql("UPDATE t AS x SET x.name = 'all', Amount = x.id", t=table)
        assert {row["name"] for row in rows(table)} == {"all"}
        assert [row["amount"] for row in rows(table)] == [1.0, 2.0, 3.0, 4.0, 5.0]

    def test_update_to_the_default(self, tmp_path):
        place = f"delta.`{tmp_path}/d`"
        sql(f"CREATE TABLE {place} (id INT, a INT DEFAULT 42, b INT)")
        sql(f"INSERT INTO {place} VALUES (1, 1, 1)")
        sql(f"UPDATE {place} SET a = DEFAULT, b = DEFAULT")
        assert DeltaTable(tmp_path / "d").to_pyarrow_table().to_pylist() == [{"id": 1, "a": 42, "b": None}]

    def test_what_cannot_be_set(self, table, tmp_path):
        with pytest.raises(InvalidArgumentError, match="has no column `nope`"):
            sql("UPDATE t SET nope = 1", t=table)
        with pytest.raises(InvalidArgumentError, match="`name` is given a value twice"):
            sql("UPDATE t SET name = 'a', NAME = 'b'", t=table)
        with pytest.raises(InvalidArgumentError, match="`name` has no field `a`; it is not a struct"):
            sql("UPDATE t SET name.a = 1", t=table)
        with pytest.raises(InvalidArgumentError, match=r"the field `name\.a` has no default"):
            sql("UPDATE t SET name.a = DEFAULT", t=table)

    def test_fields_are_set(self, tmp_path):
        data = [{"id": 1, "s": {"a": 1, "b": {"c": "x", "d": 2}}}, {"id": 2, "s": None}, {"id": 3, "s": {"a": 3}}]
        write_deltalake(tmp_path, pa.Table.from_pylist(data))
        table = DeltaTable(tmp_path)
        sql("UPDATE t AS u SET u.s.a = u.s.a + 1, s.B.c = upper(concat(s.b.c, id)) WHERE id < 3", t=table)
        assert rows(table)[:2] == [
            {"id": 1, "s": {"a": 2, "b": {"c": "X1", "d": 2}}},
            {"id": 2, "s": {"a": None, "b": {"c": None, "d": None}}},
        ]
        assert rows(table)[2] == {"id": 3, "s": {"a": 3, "b": None}}
        with pytest.raises(InvalidArgumentError, match="`s` has no field `z`; it has a, b"):
            sql("UPDATE t SET s.z = 1", t=table)
        with pytest.raises(InvalidArgumentError, match=r"`s\.b\.c` is given a value twice"):
            sql("UPDATE t SET s.b = NULL, s.b.c = 'x'", t=table)
        assert table.version() == 1


class TestMerge:
    def changes(self):
        return pa.table({"id": [2, 3, 9], "name": ["B", "gone", "new"], "amount": [20.0, None, 90.0]})

    def test_every_kind_of_clause(self, table):
        text = """
            MERGE INTO t AS old USING changes AS new ON old.id = new.id
            WHEN MATCHED AND new.name = "gone" THEN DELETE
            WHEN MATCHED THEN UPDATE SET old.name = new.name, amount = old.amount + new.amount
            WHEN NOT MATCHED BY TARGET THEN INSERT (id, name) VALUES (new.id, upper(new.name))
            WHEN NOT MATCHED BY SOURCE AND old.id = 5 THEN DELETE
            WHEN NOT MATCHED BY SOURCE AND old.id = 1 THEN UPDATE SET name = 'left'
        """
        found = sql(text, t=table, changes=self.changes()).to_pylist()
        assert found == [{"num_affected_rows": 5, "num_updated_rows": 2, "num_deleted_rows": 2, "num_inserted_rows": 1}]
        assert rows(table) == [
            {"id": 1, "name": "left", "amount": 1.0},
            {"id": 2, "name": "B", "amount": 22.0},
            {"id": 4, "name": None, "amount": 4.0},
            {"id": 9, "name": "NEW", "amount": None},
        ]
        assert operation(table) == "MERGE"
        assert table.version() == 3

    def test_stars_and_names_without_aliases(self, table):
        text = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        sql(text, t=table, s=self.changes())
        assert [row["name"] for row in rows(table)] == ["a", "B", "gone", None, "e", "new"]

    def test_places_and_a_query(self, table, tmp_path):
        text = f"""
            MERGE INTO delta.`{tmp_path}/t` AS t
            USING (SELECT id + 100 AS id, 'q' AS name FROM delta.`{tmp_path}/t@v0`) AS s
            ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)
        """
        assert sql(text)["num_inserted_rows"].to_pylist() == [2]
        assert [row["id"] for row in rows(table)] == [1, 2, 3, 4, 5, 101, 102]

    def test_columns_go_by_the_places(self, table, tmp_path):
        write_deltalake(tmp_path / "s", self.changes())
        old, new = f"delta.`{tmp_path}/t`", f"delta.`{tmp_path}/s`"
        text = f"""
            MERGE INTO {old} USING {new} ON {old}.id = {new}.id
            WHEN MATCHED AND {new}.name = 'gone' THEN DELETE
            WHEN MATCHED THEN UPDATE SET {old}.name = concat({old}.name, {new}.name)
            WHEN NOT MATCHED THEN INSERT (id, name) VALUES ({new}.id, {new}.name)
            WHEN NOT MATCHED BY SOURCE AND {old}.id = 5 THEN UPDATE SET {old}.name = 'left'
        """
        sql(text)
        assert [row["name"] for row in rows(table)] == ["a", "bB", None, "left", "new"]
        sql(f"MERGE INTO {old} USING q ON {old}.id = q.id WHEN MATCHED THEN DELETE", q=self.changes())
        assert [row["id"] for row in rows(table)] == [1, 4, 5]

    @pytest.mark.spark
    def test_names_of_several_parts(self, table):
        """What stands in a statement on Spark, where tables are in databases."""
        from deltafast.spark._commands.statements import _SparkReader

        def rendered(text):
            return merge_sql(read_statement(text, reader=_SparkReader), table, Dialect.SPARK)

        found = rendered(
            "MERGE INTO db.t USING other.`a s` ON db.t.id = other.`a s`.id AND t.id > `a s`.id AND spark.db.t.id = 1 "
            "WHEN MATCHED THEN UPDATE SET db.t.name = other.`a s`.name"
        )
        assert found.on == "`t`.id = `a s`.id AND t.id > `a s`.id AND spark.db.t.id = 1"
        assert (found.target, found.source) == ("t", "a s")
        assert found.clauses[0].updates == {"`t`.`name`": "`a s`.name"}
        found = rendered("MERGE INTO db.t USING db.s AS x ON db.t.id = x.id AND db.s.id = 1 WHEN MATCHED THEN DELETE")
        assert found.on == "`t`.id = x.id AND db.s.id = 1"
        found = rendered("MERGE INTO delta.`/s` USING q AS s ON delta.`/s`.id = s.id WHEN MATCHED THEN DELETE")
        assert found.on == "`target`.id = s.id"
        named = read_statement("WITH q AS (SELECT '`' x FROM delta.`/a`) INSERT INTO db.t TABLE q", reader=_SparkReader)
        assert named.source.text == "WITH q AS (SELECT '`' x FROM delta.`/a`) (SELECT * FROM `q`\n)"
        assert (
            "".join(part if isinstance(part, str) else "delta.`/a`" for part in named.source.parts) == named.source.text
        )
        delete = read_statement("DELETE FROM c.db.t WHERE c.db.t.id = 1 AND db.t.id = t.id", reader=_SparkReader)
        assert rows_of(delete, table, Dialect.SPARK) == "id = 1 AND id = id"

    @pytest.mark.parametrize(
        ("kind", "action"),
        [("MATCHED", "DELETE"), ("NOT MATCHED", "INSERT *"), ("NOT MATCHED BY SOURCE", "DELETE")],
    )
    def test_only_the_last_clause_of_a_kind_takes_all_rows(self, table, kind, action):
        text = "MERGE INTO t USING s ON t.id = s.id"
        with pytest.raises(InvalidArgumentError, match=f"only the last {kind} clause can omit the condition"):
            sql(f"{text} WHEN {kind} THEN {action} WHEN {kind} AND true THEN {action}", t=table, s=self.changes())
        assert table.version() == 2
        sql(f"{text} WHEN {kind} AND false THEN {action} WHEN {kind} THEN {action}", t=table, s=self.changes())
        assert table.version() == 3

    def test_values_with_names(self, table):
        text = """
            MERGE INTO t USING (VALUES (1, 'one'), (7, 'seven')) AS s (key, text) ON t.id = s.key
            WHEN MATCHED THEN UPDATE SET name = s.text
            WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (key, text, DEFAULT)
        """
        sql(text, t=table)
        assert [row["name"] for row in rows(table)] == ["one", "b", "c", None, "e", "seven"]

    def test_schema_evolution(self, table):
        more = pa.table({"id": [1], "fresh": [True]})
        text = "INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        sql(f"MERGE {text}", t=table, s=more)
        assert "fresh" not in rows(table)[0]
        sql(f"MERGE WITH SCHEMA EVOLUTION {text}", t=table, s=more)
        assert [row["fresh"] for row in rows(table)] == [True, None, None, None, None]

    def test_several_rows_for_one(self, table):
        twice = pa.table({"id": [1, 1], "name": ["x", "y"]})
        with pytest.raises(DeltaError):
            sql("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name", t=table, s=twice)
        assert table.version() == 2

    def test_a_column_with_two_values(self, table):
        text = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'a', name = 'b'"
        with pytest.raises(InvalidArgumentError, match="two values"):
            sql(text, t=table, s=self.changes())


class TestCreate:
    def test_columns_of_every_type(self, tmp_path):
        place = tmp_path / "c"
        sql(
            f"""CREATE TABLE delta.`{place}` (
                a TINYINT, b SMALLINT, c INT NOT NULL COMMENT 'the c', d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(12, 3),
                h STRING, i VARCHAR(5), j CHAR(2), k BINARY, l BOOLEAN, m DATE, n TIMESTAMP, o TIMESTAMP_NTZ,
                p ARRAY<STRUCT<x: INT NOT NULL, y: ARRAY<MAP<STRING, DECIMAL(3,1)>>>>, q MAP<INT, STRING>, `r s` INT)
            USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name', owner = 'me')
            COMMENT 'what it is' PARTITIONED BY (c)"""
        )
        table = DeltaTable(place)
        assert [json.loads(field.to_json())["type"] for field in table.schema().fields][:15] == [
            *("byte", "short", "integer", "long", "float", "double", "decimal(12,3)"),
            *("string", "string", "string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"),
        ]
        fields = {field.name: field for field in table.schema().fields}
        assert fields["c"].metadata["comment"] == "the c"
        assert not fields["c"].nullable
        assert fields["i"].metadata["__CHAR_VARCHAR_TYPE_STRING"] == "varchar(5)"
        assert fields["p"].type.element_type.fields[0].nullable is False
        assert "r s" in fields
        assert table.metadata().description == "what it is"
        assert table.metadata().partition_columns == ["c"]
        assert table.metadata().configuration["owner"] == "me"

    @pytest.mark.parametrize("mode", ["CREATE", "CREATE OR REPLACE"])
    def test_a_generated_column_of_a_generated_one(self, tmp_path, mode):
        place = f"delta.`{tmp_path}`"
        if mode != "CREATE":
            sql(f"CREATE TABLE {place} (a INT)")
        for column in ("B + 1", "c + 1"):
            text = f"(a INT, b INT GENERATED ALWAYS AS (a + 1), c INT GENERATED ALWAYS AS ({column}))"
            with pytest.raises(
                InvalidArgumentError, match=r"the generated column `c` is made from `[bc]`, which is gen"
            ):
                sql(f"{mode} TABLE {place} {text}")
        assert DeltaTable.is_deltatable(str(tmp_path)) == (mode != "CREATE")

    def test_partition_columns_with_their_types_come_last(self, tmp_path):
        sql(f"CREATE TABLE delta.`{tmp_path}` (a INT) USING DELTA PARTITIONED BY (p STRING)")
        table = DeltaTable(tmp_path)
        assert [field.name for field in table.schema().fields] == ["a", "p"]
        assert table.metadata().partition_columns == ["p"]

    def test_clustering(self, tmp_path):
        sql(f"CREATE TABLE delta.`{tmp_path}` (a INT, s STRUCT<b: INT>) CLUSTER BY (a, s.b)")
        assert DeltaTable(tmp_path).detail()["clusteringColumns"] == ["a", "s.b"]

    def test_where_there_is_a_table(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(f"CREATE TABLE {place} (a INT)")
        with pytest.raises(InvalidArgumentError):
            sql(f"CREATE TABLE {place} (a INT)")
        sql(f"CREATE TABLE IF NOT EXISTS {place} (b INT)")
        assert DeltaTable(tmp_path).version() == 0
        sql(f"CREATE OR REPLACE TABLE {place} (b STRING)")
        assert [field.name for field in DeltaTable(tmp_path).schema().fields] == ["b"]
        sql(f"REPLACE TABLE {place} (c STRING)")
        assert DeltaTable(tmp_path).version() == 2
        with pytest.raises(TableNotFoundError, match="CREATE OR REPLACE"):
            sql(f"REPLACE TABLE delta.`{tmp_path}/none` (c STRING)")

    def test_a_place_by_location_or_argument(self, tmp_path):
        sql(f"CREATE TABLE people (a INT) LOCATION '{tmp_path}/one'")
        sql("CREATE TABLE people (a INT)", people=str(tmp_path / "two"))
        assert DeltaTable(tmp_path / "one").version() == DeltaTable(tmp_path / "two").version() == 0
        with pytest.raises(InvalidArgumentError, match="there is no table `people`"):
            sql("CREATE TABLE people (a INT)")

    def test_a_handle_follows(self, table):
        sql("CREATE OR REPLACE TABLE t (z INT)", t=table)
        assert [field.name for field in table.schema().fields] == ["z"]

    def test_as_select(self, table, tmp_path):
        sql(
            f"CREATE TABLE delta.`{tmp_path}/n` USING delta PARTITIONED BY (name) COMMENT 'c' "
            "TBLPROPERTIES ('delta.appendOnly' = 'true') AS SELECT id, name FROM t WHERE id < 3",
            t=table,
        )
        made = DeltaTable(tmp_path / "n")
        assert made.metadata().partition_columns == ["name"]
        assert made.metadata().configuration["delta.appendOnly"] == "true"
        assert made.metadata().description == "c"
        assert rows(made) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
        with pytest.raises(InvalidArgumentError, match="CREATE OR REPLACE TABLE"):
            sql(f"CREATE TABLE delta.`{tmp_path}/n` AS SELECT 1 AS id")
        sql(f"CREATE TABLE IF NOT EXISTS delta.`{tmp_path}/n` AS SELECT 1 AS id")
        assert DeltaTable(tmp_path / "n").version() == 0
        sql(f"CREATE TABLE delta.`{tmp_path}/k` CLUSTER BY (id) AS TABLE t", t=table)
        assert DeltaTable(tmp_path / "k").detail()["clusteringColumns"] == ["id"]

    def test_replaced_by_a_query(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(f"CREATE OR REPLACE TABLE {place} AS SELECT 1 AS a")
        sql(f"CREATE OR REPLACE TABLE {place} PARTITIONED BY (c) AS SELECT a + 1 AS b, 'x' AS c FROM {place}")
        table = DeltaTable(tmp_path)
        assert table.to_pyarrow_table().to_pylist() == [{"b": 2, "c": "x"}]
        assert table.metadata().partition_columns == ["c"]
        assert table.version() == 1

    def test_replaced_by_a_query_with_all_that_it_is(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(
            f"CREATE TABLE {place} PARTITIONED BY (p) COMMENT 'c' TBLPROPERTIES (a = 1, b = 2) AS SELECT 1 AS i, 2 AS p"
        )
        table = DeltaTable(tmp_path)
        sql("REPLACE TABLE t CLUSTER BY (x) COMMENT 'd' TBLPROPERTIES (b = 3) AS SELECT i AS x FROM t", t=table)
        metadata = table.metadata()
        assert (metadata.partition_columns, metadata.description, metadata.configuration) == ([], "d", {"b": "3"})
        assert table.detail()["clusteringColumns"] == ["x"]
        assert table.to_pyarrow_table().to_pylist() == [{"x": 1}]
        info = table.history(1)[0]
        assert info["operation"] == "REPLACE TABLE AS SELECT"
        assert info["operationParameters"]["properties"] == '{"b":"3"}'
        assert int(info["operationMetrics"]["numRemovedFiles"]) == 1
        sql("CREATE OR REPLACE TABLE t AS SELECT 7 AS y", t=table)
        assert (table.metadata().configuration, table.detail()["clusteringColumns"]) == ({}, [])
        assert (table.version(), table.metadata().description) == (2, None)
        assert DeltaTable(tmp_path, version=0).metadata().id == table.metadata().id

    def test_a_failing_query_leaves_the_table(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(f"CREATE TABLE {place} AS SELECT 1 AS a")
        with pytest.raises(Exception, match="nope"):
            sql(f"CREATE OR REPLACE TABLE {place} AS SELECT error('nope') AS a")
        assert DeltaTable(tmp_path).version() == 0

    def test_shallow_clone(self, table, tmp_path):
        table.alter.set_table_description("the source's own")
        text = f"CREATE TABLE delta.`{tmp_path}/clone` SHALLOW CLONE t VERSION AS OF 1 TBLPROPERTIES (a = 'b')"
        found = sql(text, t=table).to_pylist()[0]
        clone = DeltaTable(tmp_path / "clone")
        assert found["source_num_of_files"] == 2
        assert len(rows(clone)) == 3
        assert clone.metadata().configuration["a"] == "b"
        assert clone.metadata().description is None
        sql(f"CREATE TABLE IF NOT EXISTS delta.`{tmp_path}/clone` SHALLOW CLONE t", t=table)
        assert DeltaTable(tmp_path / "clone").version() == clone.version()
        again = f"CREATE OR REPLACE TABLE delta.`{tmp_path}/clone` SHALLOW CLONE t"
        with pytest.raises(InvalidArgumentError, match="the place of an empty table only"):
            sql(again, t=table)
        with pytest.raises(TableNotFoundError, match="to be replaced"):
            sql(f"REPLACE TABLE delta.`{tmp_path}/none` SHALLOW CLONE t", t=table)
        clone.delete()
        assert sql(again, t=table).to_pylist()[0]["source_num_of_files"] == len(table.file_uris())
        clone.update_incremental()
        assert sorted(map(str, rows(clone))) == sorted(map(str, rows(table)))
        assert "a" not in clone.metadata().configuration
        assert clone.history(1)[0]["operation"] == "CLONE"


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        ("STRUCT<a: VARCHAR(3), b CHAR(2) COMMENT 'x', c: INT>", "struct<a:varchar(3),b:char(2),c:int>"),
        ("ARRAY<CHARACTER(3)>", "array<char(3)>"),
        ("MAP<STRING, VARCHAR(3)>", "map<string,varchar(3)>"),
        ("MAP<CHAR(1), STRUCT<`a b`: BIGINT>>", "map<char(1),struct<`a b`:bigint>>"),
        (
            "ARRAY<STRUCT<x: ARRAY<VARCHAR(3)>, y: MAP<INT, DECIMAL(5, 2)>, z: ARRAY<VARIANT>>>",
            "array<struct<x:array<varchar(3)>,y:map<int,decimal(5,2)>,z:array<variant>>>",
        ),
        ("STRUCT<a: STRING>", None),
    ],
)
def test_lengths_inside_of_types_are_stored_with_the_column(tmp_path, kind, declared):
    sql(f"CREATE TABLE delta.`{tmp_path}` (c {kind})")
    (field,) = DeltaTable(tmp_path).schema().fields
    assert field.metadata.get("__CHAR_VARCHAR_TYPE_STRING") == declared
    assert "varchar" not in str(field.type)


class TestAlter:
    def test_columns(self, table):
        sql("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", t=table)
        sql("ALTER TABLE t ADD COLUMNS (x INT COMMENT 'new', s STRUCT<a: INT>)", t=table)
        sql("ALTER TABLE t ADD COLUMN s.b STRING", t=table)
        sql("ALTER TABLE t RENAME COLUMN name TO `full name`", t=table)
        sql("ALTER TABLE t RENAME COLUMN s.a TO c", t=table)
        sql("ALTER TABLE t DROP COLUMN IF EXISTS nope", t=table)
        sql("ALTER TABLE t DROP COLUMNS (amount)", t=table)
        fields = {field.name: field for field in table.schema().fields}
        assert list(fields) == ["id", "full name", "x", "s"]
        assert fields["x"].metadata["comment"] == "new"
        assert [field.name for field in fields["s"].type.fields] == ["c", "b"]
        with pytest.raises(InvalidArgumentError):
            sql("ALTER TABLE t DROP COLUMN nope", t=table)

    def test_one_column(self, table):
        sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = true)", t=table)
        sql("ALTER TABLE t ADD COLUMN n INT", t=table)
        sql("ALTER TABLE t ALTER COLUMN n TYPE BIGINT", t=table)
        sql("ALTER TABLE t ALTER COLUMN id SET NOT NULL", t=table)
        sql("ALTER TABLE t CHANGE COLUMN id COMMENT 'the key'", t=table)
        sql("ALTER TABLE t CHANGE COLUMN name name STRING COMMENT 'called'", t=table)
        sql("ALTER TABLE t SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')", t=table)
        sql("ALTER TABLE t ALTER COLUMN n SET DEFAULT 6 * 7", t=table)
        fields = {field.name: field for field in table.schema().fields}
        assert fields["n"].type.type == "long"
        assert fields["n"].metadata["CURRENT_DEFAULT"] == "6 * 7"
        assert not fields["id"].nullable
        assert (fields["id"].metadata["comment"], fields["name"].metadata["comment"]) == ("the key", "called")
        sql("ALTER TABLE t ALTER COLUMN n DROP DEFAULT", t=table)
        sql("ALTER TABLE t ALTER COLUMN id DROP NOT NULL", t=table)
        fields = {field.name: field for field in table.schema().fields}
        assert "CURRENT_DEFAULT" not in fields["n"].metadata
        assert fields["id"].nullable

    def test_several_columns_in_one_commit(self, table):
        sql("ALTER TABLE t ALTER id COMMENT 'alone'", t=table)
        text = "ALTER TABLE t ALTER COLUMN id COMMENT 'the key', name SET NOT NULL, amount FIRST"
        with pytest.raises(ConstraintViolatedError, match="the column `name` is null"):
            sql(text, t=table)
        assert table.version() == 3
        sql("DELETE FROM t WHERE name IS NULL", t=table)
        sql(text, t=table)
        assert table.version() == 5
        schema = table.schema()
        assert [(field.name, field.nullable) for field in schema.fields] == [
            ("amount", True),
            ("id", True),
            ("name", False),
        ]
        assert schema.fields[1].metadata == {"comment": "the key"}
        said = table.history(1)[0]
        assert said["operation"] == "CHANGE COLUMNS"
        first, _, last = json.loads(said["operationParameters"]["columns"])
        assert first["name"] == "id"
        assert last["position"] == "FIRST"
        sql("ALTER TABLE t CHANGE amount COMMENT 'money', id AFTER name", t=table)
        assert [field.name for field in table.schema().fields] == ["amount", "name", "id"]
        for wrong, message in (
            ("id COMMENT 'x', ID DROP NOT NULL", "`ID` is changed twice"),
            ("id COMMENT 'x', nope COMMENT 'y'", "nope"),
            ("id COMMENT 'x', name", "expected TYPE, COMMENT"),
            ("id COMMENT 'x', amount TYPE STRING", "type"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                sql(f"ALTER TABLE t ALTER COLUMN {wrong}", t=table)
        assert table.version() == 6

    def test_change_column_changes_a_column_in_one_commit(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(
            f"CREATE TABLE {place} (a INT, comment STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<q: INT, r: INT>>) "
            "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        )
        for text, position in (
            ("a A BIGINT COMMENT 'wide' AFTER comment", "AFTER comment"),
            ("comment.y y BIGINT COMMENT 'y' FIRST", "FIRST"),
            ("l.element.r r BIGINT COMMENT 'r' FIRST", "FIRST"),
            ("comment comment STRUCT<y: BIGINT, x: INT> COMMENT 'struct'", None),
            ("comment COMMENT 'of Spark'", None),
        ):
            sql(f"ALTER TABLE {place} CHANGE COLUMN {text}")
            said = DeltaTable(tmp_path).history(1)[0]
            assert (said["operation"], said["operationParameters"].get("position")) == ("CHANGE COLUMN", position), text
            assert json.loads(said["operationParameters"]["column"])["name"] == text.partition(" ")[0]
        schema = DeltaTable(tmp_path).schema()
        assert [(field.name, field.metadata.get("comment")) for field in schema.fields] == [
            ("comment", "of Spark"),
            ("a", "wide"),
            ("l", None),
        ]
        found = [(field.name, str(field.type)) for field in schema.fields[0].type.fields]
        assert [name for name, _ in found] == ["y", "x"]
        assert [field.name for field in schema.fields[2].type.element_type.fields] == ["r", "q"]
        for wrong, message in (
            ("a b BIGINT", "CHANGE COLUMN does not rename a column.*RENAME COLUMN a TO b"),
            ("a a STRING COMMENT 'x'", "long cannot become string"),
            ("comment comment STRUCT<y: BIGINT> COMMENT 'x'", "as a whole; change its fields"),
            ("a a BIGINT AFTER nope", "no `nope`"),
            ("a a", "expected a type"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                sql(f"ALTER TABLE {place} CHANGE COLUMN {wrong}")
        assert DeltaTable(tmp_path).version() == 5

    def test_several_types_in_one_commit(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(f"CREATE TABLE {place} (a INT, b SMALLINT, c INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        sql(f"ALTER TABLE {place} ALTER COLUMN a TYPE BIGINT, b TYPE INT, c SET DEFAULT 5")
        table = DeltaTable(tmp_path)
        assert [str(field.type.type) for field in table.schema().fields[:2]] == ["long", "integer"]
        assert table.version() == 1
        sql(f"INSERT INTO {place} (a) VALUES (5000000000)")
        assert rows(table, "a") == [{"a": 5000000000, "b": None, "c": 5}]

    def test_places(self, table):
        sql("ALTER TABLE t ADD COLUMNS (x INT FIRST, s STRUCT<a: INT> AFTER ID, z INT)", t=table)
        sql("ALTER TABLE t ADD COLUMN s.b INT FIRST", t=table)
        sql("ALTER TABLE t ALTER COLUMN amount AFTER x", t=table)
        sql("ALTER TABLE t CHANGE COLUMN z z INT AFTER id", t=table)
        assert [field.name for field in table.schema().fields] == ["x", "amount", "id", "z", "s", "name"]
        sql("ALTER TABLE t CHANGE COLUMN z FIRST", t=table)
        fields = table.schema().fields
        assert [field.name for field in fields] == ["z", "x", "amount", "id", "s", "name"]
        assert [field.name for field in fields[4].type.fields] == ["b", "a"]
        assert [row["amount"] for row in rows(table)] == [1.0, 2.0, 3.0, 4.0, None]
        for text in ("ADD COLUMN q INT AFTER nope", "ALTER COLUMN z AFTER nope", "ADD COLUMN s.q INT AFTER id"):
            with pytest.raises(InvalidArgumentError, match="that it could stand behind"):
                sql(f"ALTER TABLE t {text}", t=table)
        assert table.version() == 7

    def test_an_identity_column_follows_its_values(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(f"CREATE TABLE {place} (i BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY -4), n INT)")
        table = DeltaTable(tmp_path)
        sql("ALTER TABLE t ALTER COLUMN i SYNC IDENTITY", t=table)
        assert "delta.identity.highWaterMark" not in table.schema().fields[0].metadata
        # Written past the mark, as other writers do.
        deltalog = tmp_path / "_delta_log" / "00000000000000000000.json"
        deltalog.write_text(deltalog.read_text().replace("identity.start", "identity.begin"))
        write_deltalake(tmp_path, pa.table({"i": [10, 1], "n": pa.array([0, 0], pa.int32())}), mode="append")
        deltalog.write_text(deltalog.read_text().replace("identity.begin", "identity.start"))
        for checksum in deltalog.parent.glob("*.crc"):
            checksum.unlink()
        table = DeltaTable(tmp_path)
        sql("ALTER TABLE t ALTER COLUMN i SYNC IDENTITY", t=table)
        assert table.schema().fields[0].metadata["delta.identity.highWaterMark"] == -2
        sql("INSERT INTO t (n) VALUES (1)", t=table)
        assert sorted(row["i"] for row in table.to_pyarrow_table().to_pylist()) == [-6, 1, 10]
        with pytest.raises(InvalidArgumentError, match="is not an identity column"):
            sql("ALTER TABLE t ALTER COLUMN n SYNC IDENTITY", t=table)

    def test_a_column_with_a_limit_of_its_own_goes(self, tmp_path):
        place = f"delta.`{tmp_path}`"
        sql(f"CREATE TABLE {place} (v VARCHAR(3), n INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        table = DeltaTable(tmp_path)
        sql("ALTER TABLE t RENAME COLUMN v TO w", t=table)
        with pytest.raises(ConstraintViolatedError):
            sql("INSERT INTO t VALUES ('long', 1)", t=table)
        sql("ALTER TABLE t DROP COLUMN w", t=table)
        sql("INSERT INTO t VALUES (1)", t=table)
        assert table.to_pyarrow_table().to_pylist() == [{"n": 1}]

    def test_properties_and_comment(self, table):
        sql(
            "ALTER TABLE t SET TBLPROPERTIES ('a.b' = 'x', delta.logRetentionDuration = 'interval 8 days', n = 5)",
            t=table,
        )
        sql("ALTER TABLE t UNSET TBLPROPERTIES ('n')", t=table)
        sql("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS (zzz)", t=table)
        sql("COMMENT ON TABLE t IS 'all of it'", t=table)
        assert table.metadata().configuration == FEED | {"a.b": "x", "delta.logRetentionDuration": "interval 8 days"}
        assert table.metadata().description == "all of it"

    def test_commits_are_kept_as_long_as_removed_files(self, table, tmp_path):
        log, files = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
        with pytest.raises(InvalidArgumentError, match=r"needs to be greater than or equal to delta\.deletedFile"):
            sql(f"ALTER TABLE t SET TBLPROPERTIES ({log} = 'interval 3 days')", t=table)
        with pytest.raises(InvalidArgumentError, match=r"needs to be less than or equal to delta\.logRetention"):
            sql(f"ALTER TABLE t SET TBLPROPERTIES ({files} = 'interval 40 days')", t=table)
        with pytest.raises(InvalidArgumentError, match="needs to be greater"):
            sql(f"CREATE TABLE delta.`{tmp_path}/n` (a INT) TBLPROPERTIES ({log} = '1 day')")
        assert not DeltaTable.is_deltatable(str(tmp_path / "n"))
        sql(f"ALTER TABLE t SET TBLPROPERTIES ({log} = 'interval 3 days', {files} = 'interval 2 days')", t=table)
        # As in delta-spark, a statement is looked at by itself.
        with pytest.raises(InvalidArgumentError, match="needs to be greater"):
            sql(f"ALTER TABLE t SET TBLPROPERTIES ({log} = 'interval 3 days')", t=table)

    def test_constraints(self, table):
        sql('ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0 AND (name IS NULL OR name <> "z"))', t=table)
        assert table.metadata().configuration["delta.constraints.c"] == "id > 0 AND (name IS NULL OR name <> 'z')"
        sql("ALTER TABLE t DROP CONSTRAINT c", t=table)
        sql("ALTER TABLE t DROP CONSTRAINT IF EXISTS c", t=table)
        assert "delta.constraints.c" not in table.metadata().configuration

    def test_clustering(self, table):
        sql("ALTER TABLE t CLUSTER BY (id, name)", t=table)
        assert table.detail()["clusteringColumns"] == ["id", "name"]
        sql("ALTER TABLE t CLUSTER BY NONE", t=table)
        assert table.detail()["clusteringColumns"] == []

    def test_features(self, table):
        sql("ALTER TABLE t SET TBLPROPERTIES ('delta.feature.v2Checkpoint' = 'supported')", t=table)
        assert "v2Checkpoint" in table.detail()["tableFeatures"]
        sql("ALTER TABLE t DROP FEATURE v2Checkpoint", t=table)
        assert "v2Checkpoint" not in table.detail()["tableFeatures"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("ALTER TABLE t RENAME TO u", "RENAME TO"),
            ("ALTER TABLE t REPLACE COLUMNS (id BIGINT NOT NULL)", "NOT NULL in REPLACE COLUMNS"),
            ("ALTER TABLE t REPLACE COLUMNS (id BIGINT AFTER a)", "AFTER in REPLACE COLUMNS"),
            ("ALTER TABLE t CHANGE COLUMN id id BIGINT NOT NULL", "NOT NULL in CHANGE COLUMN"),
            ("ALTER TABLE t DROP PARTITION (p = 1)", "DROP PARTITION"),
            ("ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (id)", "other than CHECK"),
        ],
    )
    def test_what_is_refused_by_name(self, table, text, message):
        with pytest.raises(UnsupportedExpressionError, match=message):
            sql(text, t=table)
        assert table.version() == 2


class TestMaintenance:
    def test_optimize(self, table, parted):
        (row,) = sql("OPTIMIZE t", t=table).to_pylist()
        assert row["path"] == table.table_uri
        assert (row["metrics"]["numFilesAdded"], row["metrics"]["numFilesRemoved"]) == (1, 3)
        assert row["metrics"]["filesRemoved"]["totalFiles"] == 3
        assert operation(table) == "OPTIMIZE"
        sql("INSERT INTO t VALUES (9, 'x', 1), (8, 'y', 1)", t=parted)
        sql("OPTIMIZE t WHERE p = 'x'", t=parted)
        assert len(parted.files([("p", "=", "x")])) == 1
        assert len(parted.files()) == 3

    def test_z_order(self, table, parted):
        (row,) = sql("OPTIMIZE t ZORDER BY (id, name)", t=table).to_pylist()
        assert (row["metrics"]["numFilesAdded"], row["metrics"]["numFilesRemoved"]) == (1, 3)
        assert "zOrderBy" in table.history(1)[0]["operationParameters"]
        sql("OPTIMIZE t WHERE p = 'x' ZORDER BY id", t=parted)
        assert operation(parted) == "OPTIMIZE"
        with pytest.raises(InvalidArgumentError, match="clustering columns"):
            sql("OPTIMIZE t FULL", t=table)

    def test_vacuum(self, table, tmp_path):
        sql("OPTIMIZE t", t=table)
        sql("ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')", t=table)
        would = sql(f"VACUUM '{tmp_path}/t' RETAIN 0 HOURS DRY RUN")
        assert len(would) == 3
        assert all(path.startswith(f"{tmp_path}/t/") for path in would["path"].to_pylist())
        assert sql("VACUUM t LITE DRY RUN RETAIN 0 HOURS", t=table).num_rows == 3
        assert sql("VACUUM t", t=table).to_pylist() == [{"path": f"{tmp_path}/t/"}]
        assert len(list((tmp_path / "t").glob("*.parquet"))) == 1
        with pytest.raises(InvalidArgumentError, match="given twice"):
            sql("VACUUM t LITE FULL", t=table)

    def test_vacuum_refuses_a_short_retention(self, table):
        with pytest.raises(InvalidArgumentError, match=r"set `enforce_ret\w+=False` of `DeltaTable\.vacuum`"):
            sql("VACUUM t RETAIN 1 HOURS", t=table)

    def test_vacuum_by_an_inventory(self, table, tmp_path):
        old = tmp_path / "t" / "orphan.parquet"
        pq.write_table(pa.table({"a": [1]}), old)
        entry = {"path": "orphan.parquet", "length": 1, "isDir": False, "modificationTime": 1000}
        inventory = pa.Table.from_pylist([entry])
        found = sql("VACUUM t USING INVENTORY (SELECT * FROM files) DRY RUN", t=table, files=inventory)
        assert found["path"].to_pylist() == [str(old)]
        assert sql("VACUUM t USING INVENTORY files DRY RUN", t=table, files=inventory).num_rows == 1

    def test_restore(self, table, tmp_path):
        (row,) = sql("RESTORE TABLE t TO VERSION AS OF 0", t=table).to_pylist()
        assert (row["num_removed_files"], row["num_restored_files"]) == (2, 0)
        assert row["num_of_files_after_restore"] == 1
        assert len(rows(table)) == 2
        with pytest.raises(InvalidArgumentError, match="cannot be restored to 9999-01-01"):
            sql("RESTORE t TO TIMESTAMP AS OF '9999-01-01'", t=table)
        written = (tmp_path / f"t/_delta_log/{table.version():020}.json").stat().st_mtime
        newest = dt.datetime.fromtimestamp(written, dt.UTC)
        sql(f"RESTORE t TO TIMESTAMP AS OF '{newest:%Y-%m-%d %H:%M:%S.%f}'", t=table)
        assert operation(table) == "RESTORE"

    def test_describe_detail_and_history(self, table, tmp_path):
        (detail,) = sql(f"DESCRIBE DETAIL delta.`{tmp_path}/t`").to_pylist()
        assert (detail["format"], detail["numFiles"], dict(detail["properties"])) == ("delta", 3, FEED)
        history = sql("DESCRIBE HISTORY t LIMIT 2", t=table)
        assert history["version"].to_pylist() == [2, 1]
        assert dict(history["operationMetrics"][0].as_py())["numOutputRows"] == "2"
        assert history["timestamp"][0].as_py().tzinfo is not None
        assert sql(f"DESC HISTORY '{tmp_path}/t'").num_rows == 3

    def test_describe_table(self, parted):
        found = sql("DESCRIBE TABLE t", t=parted).to_pylist()
        assert [(row["col_name"], row["data_type"]) for row in found] == [
            ("id", "bigint"),
            ("p", "string"),
            ("n", "bigint"),
            ("# Partition Information", ""),
            ("# col_name", "data_type"),
            ("p", "string"),
        ]
        assert sql("DESC t", t=parted).num_rows == 6

    def test_show(self, parted):
        assert sql("SHOW COLUMNS IN t", t=parted)["col_name"].to_pylist() == ["id", "p", "n"]
        assert sorted(sql("SHOW PARTITIONS t", t=parted)["p"].to_pylist()) == ["x", "y"]
        sql("ALTER TABLE t SET TBLPROPERTIES (a = 'b')", t=parted)
        properties = {row["key"]: row["value"] for row in sql("SHOW TBLPROPERTIES t", t=parted).to_pylist()}
        assert properties["a"] == "b"
        assert "delta.minReaderVersion" in properties
        assert sql("SHOW TBLPROPERTIES t (a)", t=parted).to_pylist() == [{"key": "a", "value": "b"}]
        with pytest.raises(UnsupportedExpressionError, match="SHOW TABLES"):
            sql("SHOW TABLES")

    def test_convert(self, tmp_path):
        (tmp_path / "d=1").mkdir()
        pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "d=1" / "f.parquet")
        sql(f"CONVERT TO DELTA parquet.`{tmp_path}` NO STATISTICS PARTITIONED BY (d INT)")
        assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [{"a": 1, "d": 1}, {"a": 2, "d": 1}]
        with pytest.raises(UnsupportedExpressionError, match="Iceberg"):
            sql("CONVERT TO DELTA iceberg.`/x`")

    def test_generate(self, table, tmp_path):
        assert sql("GENERATE symlink_format_manifest FOR TABLE t", t=table).num_rows == 0
        assert len((tmp_path / "t" / "_symlink_format_manifest" / "manifest").read_text().split()) == 3

    def test_reorg(self, table):
        (row,) = sql("REORG TABLE t APPLY (PURGE)", t=table).to_pylist()
        assert row["metrics"]["numFilesRemoved"] == 0
        with pytest.raises(InvalidArgumentError, match="non-partition column 'id'"):
            sql("REORG TABLE t WHERE id = 1 APPLY (PURGE)", t=table)
        with pytest.raises(InvalidArgumentError, match="UPGRADE UNIFORM is of the whole table"):
            sql("REORG TABLE t WHERE p = 1 APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", t=table)
        with pytest.warns(DeltaWarning, match="an engine that has a converter"):
            upgraded = sql("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", t=table).to_pylist()
        assert upgraded[0]["metrics"]["numFilesRemoved"] == 3
        assert sql("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", t=table).num_rows == 0


class TestExternalAccess:
    @pytest.mark.parametrize(
        "text",
        [
            "SELECT * FROM '{0}/f.csv'",
            "SELECT * FROM read_text('{0}/f.csv')",
            "INSERT INTO t (id) SELECT * FROM read_csv('{0}/f.csv')",
            "CREATE TABLE delta.`{0}/new` AS SELECT * FROM read_csv('{0}/f.csv')",
            "MERGE INTO t USING (SELECT * FROM read_csv('{0}/f.csv')) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        ],
    )
    def test_queries_have_none_unless_asked_for(self, table, tmp_path, text):
        (tmp_path / "f.csv").write_text("id\n1\n")
        with pytest.raises(InvalidArgumentError, match=r"sql\(.., external_access=True\) allows it"):
            sql(text.format(tmp_path), t=table)
        assert table.version() == 2
        assert sorted(path.name for path in tmp_path.iterdir()) == ["f.csv", "t"]
        sql(text.format(tmp_path), t=table, external_access=True)

    def test_sources_of_a_merge_have_none(self, table, tmp_path):
        (tmp_path / "f.csv").write_text("id\n1\n")
        with pytest.raises(InvalidArgumentError, match="external_access=True"):
            table.merge(f"SELECT * FROM read_csv('{tmp_path}/f.csv')", "target.id = source.id")


class TestPlainData:
    """Rows as Python has them, and pyarrow's datasets, where a query or a statement reads data."""

    @pytest.mark.parametrize(
        "data",
        [
            {"id": [7, 8]},
            [{"id": 7}, {"id": 8}],
            pads.dataset(pa.table({"id": [7, 8]})),
            pa.record_batch({"id": [7, 8]}),
        ],
        ids=["dict", "rows", "dataset", "batch"],
    )
    def test_is_read_by_queries_and_statements(self, table, tmp_path, data):
        assert sql("SELECT sum(id) AS s FROM src", src=data).to_pylist() == [{"s": 15}]
        sql("INSERT INTO t (id) SELECT id FROM src", t=table, src=data)
        assert table.count("id > 5") == 2
        sql(f"CREATE TABLE delta.`{tmp_path}/new` AS SELECT * FROM src", src=data)
        assert DeltaTable(tmp_path / "new").to_pyarrow_table()["id"].to_pylist() == [7, 8]
        both = "MERGE INTO t USING src ON t.id = src.id WHEN MATCHED THEN UPDATE SET name = 'm'"
        sql(both, t=table, src=data)
        assert table.count("name = 'm'") == 2


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "nothing begins no statement"),
            ("FLY TO t", "'FLY' begins no statement"),
            ("DROP TABLE t", "'DROP' begins no statement"),
            ("DELETE t", "expected FROM, found 't' at character 8"),
            ("DELETE FROM t WHERE", "expected a value, found the end at character 20"),
            ("DELETE FROM t WHERE id = 1 id", "expected the end of the statement, found 'id' at character 28"),
            ("DELETE FROM t WHERE name = 'a", "a ' is never closed at character 28"),
            ("DELETE FROM t WHERE id IN (SELECT 1)", "subqueries are not supported"),
            ("DELETE FROM t; DELETE FROM t", "one statement at a time at character 14"),
            ("SELECT 1; SELECT 2", "one statement at a time at character 9"),
            ("SELECT 'a", "a ' is never closed at character 8"),
            ("SELECT /* 1", r"a /\* comment is never closed"),
            ("UPDATE t id = 1", "expected SET"),
            ("INSERT t VALUES (1)", "expected INTO"),
            ("INSERT INTO t", "expected SELECT, VALUES or TABLE, found the end"),
            ("INSERT INTO a.b.c VALUES (1)", "there is no catalog to look a table up in"),
            ("INSERT INTO 't' VALUES (1)", "expected a table"),
            ("CREATE TABLE t (a INTERVAL)", "the type INTERVAL is not supported"),
            ("CREATE TABLE t (a VARCHAR)", "needs a length"),
            ("CREATE TABLE t (a INT) USING parquet", "only tables of Delta"),
            ("CREATE TABLE t (a INT) PARTITIONED BY (days(a))", "a partition transform is not supported"),
            ("CREATE VIEW v AS SELECT 1", "CREATE VIEW is not supported"),
            ("CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY)", "must be BIGINT"),
            ("CREATE TABLE t DEEP CLONE u", "a deep CLONE is not supported"),
            ("OPTIMIZE t ZORDER (a)", "expected the end of the statement"),
            ("VACUUM t RETAIN many HOURS", "expected a number of hours"),
            ("RESTORE t TO 5", "expected TO VERSION AS OF"),
            ("SELECT * FROM t VERSION AS OF x", "expected a version number"),
            ("SELECT * FROM table_changes(t, 1)", "table_changes takes a table, and versions or timestamps"),
            ("SELECT * FROM delta_files(t)", "delta_files takes a table"),
            ("SELECT * FROM delta_detail('t', 1)", "delta_detail takes a table"),
            (
                "SELECT * FROM nowhere",
                r"there is no table `nowhere` .*give it as an argument, sql\(text, nowhere=table\)",
            ),
            ("SELEC 1", "'SELEC' begins no statement"),
            ("MERGE INTO t USING s ON t.id = s.id", "expected WHEN"),
            ("MERGE INTO t USING s ON true WHEN NOT MATCHED THEN DELETE", "expected INSERT"),
            ("GENERATE hudi FOR TABLE t", "'hudi' cannot be generated"),
            ("DELETE FROM t WHERE " + "(" * 5000 + "1" + ")" * 5000, "nests"),
            ("DELETE FROM t WHERE " + "not " * 5000 + "true", "nests"),
            ("CREATE TABLE t (a " + "ARRAY<" * 5000 + "INT" + ">" * 5000 + ")", "expected a type"),
            ("DELETE FROM u", "there is no table `u`"),
        ],
    )
    def test_one_clear_line(self, table, text, message):
        with pytest.raises(InvalidArgumentError, match=message) as caught:
            sql(text, t=table)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 700
        assert table.version() == 2

    def test_no_text_is_too_strange_to_be_refused(self, table):
        """Cut and doubled statements are read or refused, and nothing else."""
        rendered = [
            "MERGE INTO t AS a USING (SELECT 1 AS id) AS s (id) ON a.id = s.id WHEN MATCHED AND a.id > 1 THEN DELETE",
            "CREATE OR REPLACE TABLE t (a INT NOT NULL DEFAULT 5, b STRUCT<x: ARRAY<INT>>) CLUSTER BY (a) COMMENT 'x'",
            'INSERT INTO t PARTITION (p = 1) (a, b) VALUES (1, DEFAULT), (array(1), "x")',
            "ALTER TABLE delta.`/x` ALTER COLUMN a.b SET DEFAULT current_date()",
            "SELECT * FROM delta.`/x@v1` TIMESTAMP AS OF '2026' - INTERVAL 1 DAY WHERE a = $$x$$",
            "VACUUM t USING INVENTORY (SELECT 1) RETAIN 5 HOURS DRY RUN",
        ]
        read, lines = 0, set[int]()
        for text in rendered:
            for cut in range(len(text)):
                for broken in (text[:cut], text[cut:], text[:cut] + "(" + text[cut:], text[:cut] + "'" + text[cut:]):
                    try:
                        read_statement(broken)
                        read += 1
                    except InvalidArgumentError as error:
                        lines.add(str(error).count("\n"))
        assert lines == {0}
        assert read > 20

    def test_arguments_that_are_no_tables(self, table):
        with pytest.raises(InvalidArgumentError, match="to be changed it must be a DeltaTable or a place"):
            sql("DELETE FROM x", x=pa.table({"a": [1]}))
        with pytest.raises(InvalidArgumentError, match="`x` is a int"):
            sql("SELECT * FROM x", x=5)
        with pytest.raises(InvalidArgumentError, match="only Delta tables have versions"):
            sql("SELECT * FROM x@v1", x=pa.table({"a": [1]}))
        with pytest.raises(InvalidArgumentError, match="a statement must be a string"):
            sql(5)
        with pytest.raises(InvalidArgumentError, match="time zone"):
            sql("SELECT 1", time_zone="Mars")
        with pytest.raises(InvalidArgumentError, match="longer than 4 MiB"):
            sql("SELECT " + "1," * (2 << 20) + "1")
