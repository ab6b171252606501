"""Errors in a session without Delta's jar: those of delta-spark, as programs tell them apart."""

from __future__ import annotations

import json
import pathlib
import re

import pytest
from pyspark.errors import PySparkException

from deltafast.spark.tables import DeltaTable
from spark.bad_programs import PROGRAMS, Scene, error_of
from spark.child_session import BOTH

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.child_session("enabled", releases=BOTH),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

RECORDED = json.loads((pathlib.Path(__file__).parents[3] / "golden" / "spark_errors.json").read_text("utf-8"))["errors"]
#: Programs to which delta-spark raises an exception of Java without a condition.
WITHOUT = {
    "RESTORE of nothing",
    "CONVERT of other files",
    "MERGE that sets an unknown column",
    "wrong value of a property",
}
#: For a null, delta-spark reports that a CHECK constraint does not hold before it reports NOT NULL.
OTHERS = {"null where NOT NULL": "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"}
_NAMED = re.compile(r"\[([A-Z_.]+)\]")


@pytest.fixture
def scene(spark, tmp_path) -> Scene:
    made = Scene(spark, str(tmp_path), DeltaTable)
    made.build()
    return made


def test_all_programs_are_recorded():
    assert list(RECORDED) == list(PROGRAMS)


def test_errors_are_those_of_delta_spark(scene):
    wrong = {}
    for name, theirs in RECORDED.items():
        ours = error_of(scene, name)
        if theirs is None or ours is None:
            assert ours is theirs is None, (name, theirs, ours)
            continue
        if name in WITHOUT:
            continue
        named = theirs["condition"] or (found[1] if (found := _NAMED.search(theirs["message"])) else None)
        states = theirs["sql_state"] in (None, ours["sql_state"])
        classes = ours["is_analysis"] or not theirs["is_analysis"]
        if ours["condition"] != OTHERS.get(name, named) or not (states and classes and ours["sql_state"]):
            wrong[name] = (theirs, ours)
    assert not wrong


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("forPath of a folder with other files", "/parquet` is not a Delta table"),
        ("load of nothing", "Path does not exist: "),
        ("versionAsOf beyond the newest", "Cannot time travel Delta table to version 9. Available versions: [0, 0]"),
        ("new column", "A metadata mismatch was detected when writing to the Delta table"),
        ("other type", "Failed to merge fields 'id' and 'id'"),
        ("replaceWhere that rows do not match", "Written data does not conform to partial table overwrite condition"),
        ("row that breaks a CHECK", "CHECK constraint positive (id > 0) violated by row with values"),
        ("string in a struct that is too long", "exceeds char/varchar type length limitation. Failed check: "),
        ("DELETE from an append-only table", "This table is configured to only allow appends"),
        ("MERGE with several matches", "Cannot perform Merge as multiple source rows matched and attempted to modify"),
        ("VACUUM of a short period", "The specified VACUUM retention period is too low"),
    ],
)
def test_the_sentence_of_delta_spark_is_in_the_message(scene, name, text):
    assert text in RECORDED[name]["message"]
    with pytest.raises(PySparkException) as caught:
        PROGRAMS[name](scene)
    assert text in str(caught.value)
    assert str(caught.value).startswith(f"[{caught.value.getCondition()}] ")
