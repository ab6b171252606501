"""DELETE, UPDATE, MERGE and `replaceWhere` evaluate expressions in the session's ANSI mode, as delta-spark does."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, write_deltalake

from .helpers import usual_and_proof
from .test_bad_input import settings
from .test_jobs import content

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

ENGINES = usual_and_proof(["driver"], ["jobs"])
CONDITIONS = (
    "cast(s as int) = 7",
    "cast(s as date) is null",
    "s = 7",
    "i = s",
    "i + 1 < 0",
    "i in ('7', 8)",
    "1 / (id - 2) > 0",
    "element_at(a, 5) is null",
    "a[5] is null",
    "size(a) = -1",
)
#: Assignments. Values that do not fit the type of their column are errors in both modes.
VALUES = (
    "i = cast(s as int)",
    "i = i + 1",
    "i = s",
    "i = id * 3000000000",
    "d = 1 / (id - 2)",
    "d = s + 1",
    "s = a[5]",
    "a = array(5000000000, 1)",
    "a = array(cast(s as int))",
    "t.x = i + 1",
    "t.x = id * 3000000000",
)
MERGES = (
    "ON t.id = r.k WHEN MATCHED THEN DELETE",
    "ON t.id = r.id AND r.n + 1 < 0 WHEN MATCHED THEN DELETE",
    "ON t.id = r.id WHEN MATCHED AND cast(r.k as int) IS NULL THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (r.n)",
    "ON t.id = r.id WHEN MATCHED THEN UPDATE SET i = r.n + 1, d = r.k",
    "ON t.id = r.id WHEN NOT MATCHED THEN INSERT (id, i) VALUES (r.id, cast(r.k as int))",
    "ON t.id = r.id WHEN MATCHED THEN UPDATE SET i = cast(r.k as int), t.x = r.n * 2",
    "ON t.id = r.id WHEN NOT MATCHED THEN INSERT (id, i) VALUES (r.id, r.id * 3000000000)",
    "ON t.id = r.id WHEN MATCHED THEN UPDATE SET a = array(r.id * 3000000000)",
    "ON t.id = r.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET i = t.i + 1",
)


INSERTS = (
    "INSERT INTO delta.`{}` (id, i, s) VALUES (CAST('x' AS BIGINT), 2147483647 + 1, 'q')",
    "INSERT INTO delta.`{}` (id, i) VALUES (9, 3000000000)",
    "INSERT INTO delta.`{}` (id, i) SELECT 9, CAST('x' AS INT)",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> str:
    """Give a table of two files, with values that expressions in ANSI mode refuse."""
    path = str(tmp_path_factory.mktemp("ansi") / "t")
    for ids in ([1, 2], [3, 4]):
        rows = {
            "id": pa.array(ids, pa.int64()),
            "i": pa.array([7 if n == 1 else 2147483647 for n in ids], pa.int32()),
            "s": [{1: "7", 2: "x", 3: "2020-01-01", 4: None}[n] for n in ids],
            "d": pa.array([n / 4 for n in ids]),
            "a": pa.array([None if n == 4 else [n] for n in ids], pa.list_(pa.int32())),
            "t": pa.array([{"x": n, "y": "y"} for n in ids], pa.struct({"x": pa.int32(), "y": pa.string()})),
        }
        write_deltalake(path, pa.table(rows), mode="append")
    return path


@pytest.fixture
def source(spark) -> None:
    """Register the view that MERGE reads."""
    spark.sql(
        "SELECT * FROM VALUES (2L, '2', 2147483647), (3L, 'x', 3), (9L, '9', 2147483647) AS r(id, k, n)"
    ).createOrReplaceTempView("ansi_source")


#: Errors of expressions and assignments. Where a task fails, delta-spark's error begins with another condition.
REFUSED = re.compile(
    "CAST_OVERFLOW|CAST_INVALID_INPUT|ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|INVALID_ARRAY_INDEX|INVALID_INLINE_TABLE"
    "|does not fit|without a loss"
)


def outcome(run: Callable[[str], Any], folder: str) -> list[str] | str:
    """Return the rows of a changed copy of the table, or that a value was refused."""
    try:
        run(folder)
    except Exception as error:  # noqa: BLE001 - both implementations have their own classes
        return "refused" if REFUSED.search(str(error)) else str(error)
    return content(folder)


def outcomes(run: Callable[[str], Any], table: str, statements: list[str], folder: str) -> dict[str, list[str] | str]:
    """Run each statement, with `{}` for the table, on a copy."""
    found: dict[str, list[str] | str] = {}
    for statement in statements:
        path = shutil.copytree(table, folder)
        found[statement] = outcome(lambda at, text=statement: run(text.format(at)), path)
        shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ansi", usual_and_proof(["false"], ["true"]))
@pytest.mark.parametrize("command", ["delete", "update", "merge", "insert"])
def test_changes_follow_the_session(reference, spark, table, source, tmp_path, command, ansi, engine):
    statements = {
        "delete": [f"DELETE FROM delta.`{{}}` WHERE {condition}" for condition in CONDITIONS],
        "update": [f"UPDATE delta.`{{}}` SET {value} WHERE id < 4" for value in VALUES],
        "insert": list(INSERTS),
        "merge": [f"MERGE INTO delta.`{{}}` t USING ansi_source r {clauses}" for clauses in MERGES],
    }[command]
    spark.conf.set("spark.deltafast.engine", engine)
    try:
        with settings(spark, ansi=ansi):
            ours = outcomes(lambda text: deltafast.spark.sql(spark, text), table, statements, str(tmp_path / "ours"))
            reference.forget()
            theirs = outcomes(reference.sql, table, statements, str(tmp_path / "theirs"))
            assert spark.conf.get("spark.sql.ansi.enabled") == ansi
    finally:
        spark.conf.unset("spark.deltafast.engine")
    assert ours == theirs
    refused = sum(isinstance(one, str) for one in ours.values())
    assert refused > len(statements) // 2 if ansi == "true" else refused <= len(statements) // 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_object_follows_the_session(spark, table, tmp_path, engine):
    path = shutil.copytree(table, tmp_path / "t")
    made = deltafast.spark.DeltaTable.forPath(spark, str(path))
    spark.conf.set("spark.deltafast.engine", engine)
    try:
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            made.update("id = 2", {"i": "cast(s as int)"})
        with settings(spark, ansi="false", zone="America/St_Johns"):
            made.update("id = 2", {"i": "cast(s as int)"})
            made.update("id = 3", {"i": "hour(timestamp'2020-06-01T00:00:00Z')"})
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            made.update("id = 2", {"i": "cast(s as int)"})
    finally:
        spark.conf.unset("spark.deltafast.engine")
    assert DeltaTable(path).to_pyarrow_table().sort_by("id")["i"].to_pylist() == [7, None, 21, 2147483647]


def test_constraints_and_generated_columns_follow_the_session(reference, spark, tmp_path):
    path = str(tmp_path / "t")
    made = deltafast.spark.DeltaTable.create(spark).location(path).addColumn("id", "INT").addColumn("s", "STRING")
    made.addColumn("n", "INT", generatedAlwaysAs="CAST(s AS INT)").execute()
    deltafast.spark.sql(
        spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (coalesce(CAST(s AS INT), 0) < 9)"
    )
    deltafast.spark.write(spark.sql("SELECT 1 id, '1' s"), path, mode="append")
    statements = [
        "UPDATE delta.`{}` SET s = 'x'",
        "UPDATE delta.`{}` SET s = '9'",
        "MERGE INTO delta.`{}` t USING (SELECT 2 k) r ON t.id = r.k WHEN NOT MATCHED THEN INSERT (id, s) VALUES (k, 'y')",
    ]
    for ansi in ("false", "true"):
        with settings(spark, ansi=ansi):
            ours = outcomes(lambda text: deltafast.spark.sql(spark, text), path, statements, str(tmp_path / "ours"))
            reference.forget()
            theirs = outcomes(reference.sql, path, statements, str(tmp_path / "theirs"))
        assert [isinstance(ours[one], list) for one in statements] == [ansi == "false", False, ansi == "false"]
        assert {one: found for one, found in ours.items() if isinstance(found, list)} == {
            one: found for one, found in theirs.items() if isinstance(found, list)
        }


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_replace_where_follows_the_session(reference, spark, table, tmp_path, ansi):
    frame, where = spark.sql("SELECT 9L id, 9 i, 'z' s"), "coalesce(cast(s as int), 8) > 7"
    theirs = frame.write.format("delta").mode("overwrite").option("replaceWhere", where)
    ways = {
        "ours": lambda at: deltafast.spark.write(frame, at, mode="overwrite", replace_where=where),
        "theirs": theirs.save,
    }
    with settings(spark, ansi=ansi):
        reference.forget()
        found = [outcome(write, str(shutil.copytree(table, tmp_path / name))) for name, write in ways.items()]
    assert found[0] == found[1]
    assert isinstance(found[0], str) == (ansi == "true")
