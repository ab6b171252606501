"""Ids and commit versions of rows in `_metadata` are delta-spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import deltafast.spark
from deltafast import DeltaTable
from deltafast.exceptions import DeltaWarning
from deltafast.spark._scan import file_index
from deltafast.spark._session import java_library

from .helpers import usual_and_proof

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture(scope="module", params=["none", "name"])
def tracked(request: pytest.FixtureRequest, reference, spark, tmp_path_factory) -> str:
    """Some rows were deleted, some have moved, written by both."""
    path = str(tmp_path_factory.mktemp("tracked") / "t")
    reference.sql(
        f"create table delta.`{path}` (id bigint, p string) using delta partitioned by (p) tblproperties ("
        "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true', "
        f"'delta.columnMapping.mode' = '{request.param}')"
    )
    deltafast.spark.write(spark.range(0, 1000, 1, 4).selectExpr("id", "concat('p', id % 3) p"), path, "append")
    DeltaTable(path).delete("id % 10 = 3")
    reference.sql(f"update delta.`{path}` set id = id + 5000 where id % 7 = 1")
    deltafast.spark.write(spark.range(2000, 2010, 1, 1).selectExpr("id", "'p1' p"), path, "append")
    return path


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def _joined(frame: Any) -> Any:
    other = frame.selectExpr("id other", "_metadata.row_id + 1 row_id")
    return frame.select("id", "_metadata.row_id").join(other, "row_id").where("id < 50")


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "all": lambda frame: frame.selectExpr("id", "p", "_metadata.*").drop("file_path", "file_modification_time"),
    "some": lambda frame: frame.selectExpr("id", "_metadata.row_commit_version"),
    "the whole": lambda frame: frame.selectExpr("id", "_metadata m").selectExpr("id", "m.row_id", "m.file_size > 0"),
    "those of files": lambda frame: frame.selectExpr("_metadata.base_row_id", "_metadata.default_row_commit_version"),
    "filters": lambda frame: frame.where("_metadata.row_id > 990 and id < 3000").select("id", "_metadata.row_id"),
    "only a filter": lambda frame: frame.where("_metadata.row_commit_version = 3").select("id"),
    "a partition": lambda frame: frame.where("p = 'p2' and _metadata.row_index > 3").select("_metadata.row_id"),
    "groups": lambda frame: frame.groupBy("_metadata.row_commit_version").count(),
    "a join": _joined,
    "both": lambda frame: frame.select("_metadata.row_id").union(frame.select("_metadata.base_row_id")),
}


#: The questions of the spark tier.
USUAL_QUESTIONS = ["all", "some", "the whole", "those of files", "filters"]


@pytest.mark.parametrize(
    "name", usual_and_proof(USUAL_QUESTIONS, [name for name in QUESTIONS if name not in USUAL_QUESTIONS])
)
def test_they_are_those_of_the_reference(reference, spark, tracked, name):
    ask = QUESTIONS[name]
    ours, theirs = ask(deltafast.spark.read(spark, tracked)), ask(reference._load(tracked))
    assert [(field.name, field.dataType) for field in ours.schema.fields] == (
        [(field.name, field.dataType) for field in theirs.schema.fields]
    )
    expected = _rows(theirs)
    assert expected
    assert _rows(ours) == expected


def test_they_are_those_of_the_columns(spark, tracked):
    named = deltafast.spark.read(spark, tracked, metadata_columns=["row_id", "row_commit_version"])
    for version in (1, 2, None):
        frame = deltafast.spark.read(spark, tracked, version).select(
            "id", "_metadata.row_id", "_metadata.row_commit_version"
        )
        assert len({row.row_id for row in frame.collect()}) == frame.count() > 800
    assert _rows(frame) == _rows(named.select("id", "row_id", "row_commit_version"))


def test_other_tables_have_none(spark, tmp_path, tracked, monkeypatch):
    deltafast.spark.write(spark.range(3), str(tmp_path / "t"))
    with pytest.raises(AnalysisException, match="FIELD_NOT_FOUND"):
        deltafast.spark.read(spark, str(tmp_path / "t")).select("_metadata.row_id")
    # Nor where nobody would complete them.

    def refused(_: Any) -> None:
        raise java_library.UnavailableError("not here")

    monkeypatch.setattr(file_index, "_REPORTED", set())
    monkeypatch.setattr(file_index, "add_row_tracking_rule", refused)
    with pytest.warns(DeltaWarning, match=r"\(not here\); _metadata has no row_id and row_commit_version"):
        frame = deltafast.spark.read(spark, tracked)
    # A second warning would be an error.
    again = deltafast.spark.read(spark, tracked)
    for each in (frame, again):
        with pytest.raises(AnalysisException, match="FIELD_NOT_FOUND"):
            each.select("_metadata.row_id")


def test_a_session_that_cannot_complete_them_says_so(spark, tracked):
    deltafast.spark.read(spark, tracked).selectExpr("id", "_metadata.row_id r").createOrReplaceGlobalTempView("ids")
    other = spark.newSession()
    with pytest.raises(Exception, match="read any table that tracks rows with deltafast in it first"):
        other.table("global_temp.ids").collect()
    deltafast.spark.read(other, tracked)
    assert _rows(other.table("global_temp.ids")) == _rows(spark.table("global_temp.ids"))
