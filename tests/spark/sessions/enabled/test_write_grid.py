"""Statements and writers in a session without Delta's jar leave the tables that delta-spark leaves."""

from __future__ import annotations

import json
import pathlib
from urllib.parse import urlsplit

import pytest

from spark.helpers import usual_and_proof
from spark.write_grid import CASES, CREATIONS, outcome, state_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

RECORDED = json.loads((pathlib.Path(__file__).parents[3] / "golden" / "spark_writes.json").read_text("utf-8"))["tables"]
#: The cases that run each time; the others belong to the proof tier.
USUAL = {
    "partitioned: VALUES: dynamic in the session",
    "partitioned: columns, VALUES: dynamic in the session",
    "partitioned: partition, SELECT: dynamic in the session",
    "partitioned: partition, no rows: dynamic in the session",
    "partitioned: REPLACE WHERE, SELECT: dynamic in the session",
    "partitioned: overwrite: dynamic in the session",
    "partitioned: VALUES: dynamic by SET",
    "partitioned: partition, VALUES: default",
    "two partition columns: partly dynamic partition, VALUES: dynamic in the session",
    "unpartitioned: no rows: dynamic in the session",
}


def test_all_cases_are_recorded():
    assert list(RECORDED) == list(CASES)
    assert set(CASES) >= USUAL


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in USUAL else pytest.mark.proof) for name in CASES]
)
def test_a_write_leaves_the_table_that_delta_spark_leaves(spark, tmp_path, name):
    assert outcome(spark, tmp_path, CASES[name]) == RECORDED[name]


NEW = "saveAsTable, partitionBy"


@pytest.mark.parametrize("name", usual_and_proof([NEW], [name for name in CREATIONS if name != NEW]))
def test_a_new_table_has_its_columns_in_the_order_of_the_frame(spark, tmp_path, name):
    CREATIONS[name](spark, "new", str(tmp_path / "new"))
    columns = ["id", "q", "v", "p"] if name == "CREATE with a partition column" else ["p", "id", "q", "v"]
    assert spark.table("new").columns == columns
    values = {"p": "'y'", "id": "10", "q": "'b'", "v": "'m'"}
    # By position.
    spark.sql(f"INSERT INTO new SELECT {', '.join(values[column] for column in columns)}")
    location = spark.sql("DESCRIBE DETAIL new").first().location
    state = state_of(pathlib.Path(urlsplit(location).path))
    assert list(state["columns"]) == columns
    by = {"saveAsTable": [], "saveAsTable, clusterBy": [], "saveAsTable, partitionBy of two": ["q", "p"]}
    assert state["partition columns"] == by.get(name, ["p"])
    written = [] if name.startswith("CREATE") and name != "CREATE AS" else [{"p": "x", "id": 9, "q": "a", "v": "n"}]
    rows = [*written, {"p": "y", "id": 10, "q": "b", "v": "m"}]
    assert state["rows"] == sorted(([row[column] for column in columns] for row in rows), key=repr)
