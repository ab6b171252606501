"""What the catalog of a session without Delta's jar shows of tables: what delta-spark's shows, from the log."""

from __future__ import annotations

import json
import pathlib

import pytest

from spark.catalog_programs import SCENARIOS, STATEMENTS, answers
from spark.child_session import USUAL

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=(USUAL,)),
]

RECORDED = json.loads((pathlib.Path(__file__).parents[3] / "golden" / "spark_catalog.json").read_text("utf-8"))[
    "answers"
]
#: Questions whose answer differs for all tables, and why.
QUESTIONS = {
    "SHOW CREATE TABLE t": "delta-spark refuses it",
}
#: Answers that differ, and why.
DIFFERENCES = {
    ("clustering 0", "DESCRIBE t"): "the clustering columns are shown as the partition columns are",
    ("clustering 0", "DESCRIBE EXTENDED t"): "the same, and they are not repeated as a property",
    ("clustering 0", "SHOW TBLPROPERTIES t"): "clustering columns are not a property",
    ("existing location 1", "SHOW TABLE EXTENDED LIKE 't'"): "Spark makes the entry, with the columns of that day",
    ("replaced 1", "SHOW TABLE EXTENDED LIKE 't'"): "delta-spark puts the columns of a replaced table into the entry",
    **{
        (scenario, "SHOW TABLE EXTENDED LIKE 't'"): "the entry has no comment"
        for scenario in ("partitions 1", "partitions 2", "query 0", "like 1")
    },
    ("nested columns 0", "columns of table"): "frames have no comments of fields",
    ("defaults and generated columns 0", "columns of table"): "frames have no defaults of columns",
    **{
        (f"{scenario}", question): "column mapping needs the writer version 5; delta-spark takes version 7"
        for scenario in (*(f"renamed and dropped columns {n}" for n in (2, 3, 4)), "odd names 1")
        for question in ("DESCRIBE EXTENDED t", "SHOW TBLPROPERTIES t")
    },
}


def _sorted(answer):
    return {**answer, "rows": sorted(answer["rows"], key=str)} if "rows" in answer else answer


def test_all_questions_are_recorded():
    assert {name.rpartition(" ")[0] for name in RECORDED} == set(SCENARIOS)
    assert all(asked.keys() >= set(STATEMENTS) for asked in RECORDED.values())


def test_the_catalog_shows_what_delta_spark_shows(spark, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    ours = answers(spark, str(tmp_path))
    assert ours.keys() == RECORDED.keys()
    wrong = {}
    for scenario, asked in RECORDED.items():
        for question, theirs in asked.items():
            mine, expected = ours[scenario][question], theirs
            if question.startswith("SHOW PARTITIONS"):
                mine, expected = _sorted(mine), _sorted(theirs)
            differs = question in QUESTIONS or (scenario, question) in DIFFERENCES
            if (mine == expected) == differs:
                wrong[scenario, question] = (theirs, mine)
    assert not wrong


@pytest.mark.parametrize("scenario", sorted(SCENARIOS.keys() - {"merged schema"}))
def test_the_statement_that_is_shown_makes_such_a_table(spark, tmp_path, scenario):
    database = f"copied_{scenario.replace(' ', '_')}"
    spark.sql(f"CREATE DATABASE {database} LOCATION '{tmp_path}/{database}'")
    spark.sql(f"USE {database}")
    try:
        for statement in SCENARIOS[scenario]:
            spark.sql(statement.removesuffix("-- ask").format(f=tmp_path)).collect()
        text = spark.sql("SHOW CREATE TABLE t").first()[0]
        copy = text.replace(f"{database}.t (", f"{database}.copy (", 1)
        spark.sql(copy if "LOCATION" not in copy else copy.replace("/there'", "/copy'")).collect()
        for question in ("DESCRIBE {}", "SHOW TBLPROPERTIES {}"):
            first, second = (spark.sql(question.format(name)).collect() for name in ("t", "copy"))
            hidden = "delta.columnMapping.maxColumnId"
            assert [row for row in first if row[0] != hidden] == [row for row in second if row[0] != hidden]
        assert spark.table("t").schema == spark.table("copy").schema
        again = spark.sql("SHOW CREATE TABLE copy").first()[0]
        assert again.partition("LOCATION")[0] == copy.partition("LOCATION")[0]
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {database} CASCADE")
