"""DELETE, UPDATE and MERGE with functions that only Spark has: the rows are those of delta-spark."""

from __future__ import annotations

import shutil
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import deltafast.spark
from deltafast import DeltaTable, write_deltalake

from .helpers import usual_and_proof
from .test_jobs import FEED, NAMES, VECTORS, content, reported_changes

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

LAYOUTS = {
    "plain": ({}, []),
    "vectors": (VECTORS | FEED, ["p"]),
    "names": (NAMES | FEED, ["p"]),
}
MERGE = "MERGE INTO delta.`{}` t USING session_source r ON "
STATEMENTS = (
    "DELETE FROM delta.`{}` WHERE regexp_extract(name, '[0-9]+', 0) = '3'",
    "DELETE FROM delta.`{}` WHERE p = 'a' AND array_max(tags) > 5",
    "DELETE FROM delta.`{}` WHERE p = 'b' OR array_max(tags) = 5",
    "DELETE FROM delta.`{}` WHERE sha1(p) = sha1('a')",
    "DELETE FROM delta.`{}` WHERE name rlike '(?<=n)[34]'",
    "UPDATE delta.`{}` SET name = date_format(date_add(DATE'2026-01-01', cast(id as int)), 'QQQ E')",
    "UPDATE delta.`{}` SET name = regexp_replace(name, 'n', 'x') WHERE id > 4",
    "UPDATE delta.`{}` SET tags = array_union(tags, array(cast(9 as int))), name = split(name, 'n')[1]",
    "UPDATE delta.`{}` SET id = bit_count(id) WHERE upper(translate(name, 'n', 'm')) = 'M3'",
    "UPDATE delta.`{}` SET s.y = to_json(s) WHERE levenshtein(name, 'n1') < 2",
    MERGE + "t.id = r.id "
    "WHEN MATCHED AND regexp_like(r.name, '^r[0-3]$') THEN UPDATE SET tags = array_union(t.tags, r.tags), "
    "name = substring_index(concat(t.name, '-', r.name), '-', -1) "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (r.id, base64(r.name), reverse(r.name))",
    MERGE + "t.name = regexp_replace(r.name, 'r', 'n') "
    "WHEN MATCHED THEN UPDATE SET tags = r.tags WHEN NOT MATCHED AND bit_count(r.id) = 2 THEN INSERT (id) VALUES (r.id) "
    "WHEN NOT MATCHED BY SOURCE AND array_min(t.tags) > 6 THEN DELETE",
    MERGE + "t.id = r.id AND array_max(t.tags) > 2 WHEN MATCHED THEN UPDATE SET name = r.name",
)


@pytest.fixture(scope="module", params=usual_and_proof(["vectors"], ["plain", "names"]))
def table(request, tmp_path_factory) -> str:
    """Give a table of two files for each value of `p`."""
    configuration, partition = LAYOUTS[request.param]
    path = str(tmp_path_factory.mktemp("functions") / "t")
    for first in (0, 5):
        ids = list(range(first, first + 5))
        rows = {
            "id": pa.array(ids, pa.int64()),
            "p": ["ab"[n % 2] for n in ids],
            "name": [None if n == 7 else f"n{n}" for n in ids],
            "tags": pa.array([[n, n + 1] for n in ids], pa.list_(pa.int32())),
            "s": pa.array([{"x": n, "y": "y"} for n in ids], pa.struct({"x": pa.int32(), "y": pa.string()})),
        }
        write_deltalake(path, pa.table(rows), mode="append", partition_by=partition, configuration=configuration)
    return path


@pytest.fixture
def session(spark) -> Any:
    """Give the session with a function of the program and the source of MERGE."""
    spark.udf.register("twice", lambda value: None if value is None else 2 * value, "long")
    source = spark.range(2, 13, 2).selectExpr("id", "concat('r', id) name", "array(cast(id as int), 1) tags")
    source.createOrReplaceTempView("session_source")
    return spark


def changes(path: str) -> list[str]:
    """The change data feed of the newest version."""
    table = DeltaTable(path)
    has_feed = "delta.enableChangeDataFeed" in table.metadata().configuration
    return reported_changes(path, table.version()) if has_feed else []


@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_are_those_of_delta_spark(reference, session, table, tmp_path, statement):
    ours, theirs = (str(shutil.copytree(table, tmp_path / name)) for name in ("ours", "theirs"))
    deltafast.spark.sql(session, statement.format(ours))
    reference.forget()
    reference.sql(statement.format(theirs))
    assert content(ours) == content(theirs) != content(table)
    assert changes(ours) == changes(theirs)
    assert DeltaTable(ours).history(1)[0]["operationParameters"].keys() == (
        DeltaTable(theirs).history(1)[0]["operationParameters"].keys()
    )


def test_functions_of_the_program(session, table, tmp_path):
    # delta-spark rewrites other files than those with these rows, if Python evaluates the condition.
    path = str(shutil.copytree(table, tmp_path / "t"))
    deltafast.spark.sql(session, f"DELETE FROM delta.`{path}` WHERE p = 'b' OR twice(id) = 8")
    deltafast.spark.sql(session, f"UPDATE delta.`{path}` SET id = twice(id) WHERE twice(id) > 10")
    deltafast.spark.sql(
        session,
        f"MERGE INTO delta.`{path}` t USING session_source r ON t.id = r.id WHEN MATCHED THEN UPDATE SET id = "
        "twice(t.id) + twice(r.id) WHEN NOT MATCHED THEN INSERT (id) VALUES (-twice(r.id))",
    )
    found = DeltaTable(path).to_pyarrow_table()["id"].to_pylist()
    assert sorted(found) == [-20, -16, -12, -8, 0, 8, 16, 48]


def test_columns_of_pyspark_use_them(session, table, tmp_path):
    path = str(shutil.copytree(table, tmp_path / "t"))
    made = deltafast.spark.DeltaTable.forPath(session, path)
    made.update(F.array_max("tags") > 9, {"name": F.regexp_replace("name", "n", "z")})
    made.delete(F.array_contains(F.array_distinct("tags"), 1) & (F.call_function("twice", F.col("id")) == 2))
    source = session.table("session_source").alias("r")
    merge = made.alias("t").merge(source, F.col("t.id") == F.col("r.id"))
    merge.whenMatchedUpdate(set={"tags": F.array_except("t.tags", "r.tags")}).execute()
    found = {row["id"]: row for row in DeltaTable(path).to_pyarrow_table().to_pylist()}
    assert found[9]["name"] == "z9"
    assert found.keys() == set(range(10)) - {1}
    assert found[2]["tags"] == [3]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM delta.`{}` WHERE nosuch(id) = 1", "UNRESOLVED_ROUTINE"),
        ("DELETE FROM delta.`{}` WHERE array_max(name) = 1", "DATATYPE_MISMATCH"),
        ("DELETE FROM delta.`{}` WHERE count(id) = 1", "INVALID_WHERE_CONDITION|UNSUPPORTED"),
        ("DELETE FROM delta.`{}` WHERE explode(tags) = 1", "UNSUPPORTED_GENERATOR"),
        ("DELETE FROM delta.`{}` WHERE rand() > 0.5", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("UPDATE delta.`{}` SET name = uuid()", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        (
            "MERGE INTO delta.`{}` t USING session_source r ON t.id = r.id WHEN MATCHED AND rand() > 2 THEN DELETE",
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        ),
        ("DELETE FROM delta.`{}` WHERE make_interval(1) = make_interval(2)", "returns an interval"),
        ("UPDATE delta.`{}` SET id = regexp_count(nosuch, 'n')", "no column 'nosuch'"),
    ],
)
def test_wrong_calls_are_refused(session, table, statement, message):
    before = DeltaTable(table).version()
    with pytest.raises(Exception, match=message):
        deltafast.spark.sql(session, statement.format(table))
    assert DeltaTable(table).version() == before


def test_the_driver_alone_refuses_them(session, table):
    session.conf.set("spark.deltafast.engine", "driver")
    try:
        with pytest.raises(Exception, match=r"the function array_max\(\) is not supported"):
            deltafast.spark.sql(session, f"DELETE FROM delta.`{table}` WHERE array_max(tags) = 1")
    finally:
        session.conf.unset("spark.deltafast.engine")


def test_new_rows_of_a_merge_get_random_values(session, tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": pa.array([1], pa.int64()), "key": ["k"]}))
    merge = (
        "MERGE INTO delta.`{}` t USING session_source r ON t.id = r.id WHEN NOT MATCHED THEN INSERT (id, key) "
        "VALUES (r.id, uuid())"
    )
    deltafast.spark.sql(session, merge.format(path))
    keys = DeltaTable(path).to_pyarrow_table()["key"].to_pylist()
    assert len(set(keys)) == 7
    DeltaTable(path).alter.set_table_properties(FEED)
    with pytest.raises(Exception, match="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"):
        deltafast.spark.sql(session, merge.format(path))
