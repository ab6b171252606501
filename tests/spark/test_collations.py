"""Strings with a collation compare as in delta-spark, or the column and its collation are named in an error."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

import deltafast.spark
from deltafast import DeltaTable
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast.exceptions import (
    DeltaError,
    DeltaProtocolError,
    InvalidArgumentError,
)
from deltafast.spark import _jobs as jobs

from .helpers import files_read, usual_and_proof

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

COLUMNS = """
    id int, p string, s string collate UTF8_LCASE, u string collate UNICODE, r string collate UTF8_BINARY_RTRIM,
    st struct<a: string collate UTF8_LCASE, b: struct<c: array<string collate UNICODE_CI>>>,
    l array<string collate UTF8_LCASE>, m map<string, string collate UTF8_LCASE>
"""
ROWS = """
    select cast(id as int) id, x p, x s, x u, concat(x, ' ') r, named_struct('a', x, 'b', named_struct('c', array(x))) st,
    array(x, null) l, map('k', x) m from values (1, 'ABC'), (2, 'abc'), (3, 'Abc'), (4, 'b'), (5, null) as t(id, x)
"""
CONDITIONS = (
    "s = 'ABC'",
    "s <> 'ABC'",
    "s <=> null",
    "s in ('ABC', 'x')",
    "s like 'AB%'",
    "startswith(s, 'AB') and contains(s, 'BC')",
    "s > 'AA' and s < 'ABD'",
    "u = 'ABC'",
    "r = 'abc'",
    "st.a = 'aBC'",
    "st.b.c[0] = 'aBC'",
    "array_contains(l, 'ABC')",
    "m['k'] = 'ABC'",
    "p = 'ABC'",
    "p = 'ABC' collate UTF8_LCASE",
    "p collate UTF8_LCASE in ('abc', 'q')",
    "s collate UTF8_BINARY = 'abc'",
)


@pytest.fixture(scope="module")
def start(reference, tmp_path_factory) -> pathlib.Path:
    """Give a table of delta-spark with one file for each row, which statistics of bytes would skip."""
    folder = tmp_path_factory.mktemp("collations") / "t"
    # delta-spark reads such tables of other writers, and creates them itself only without this check.
    with reference.configured({"spark.databricks.delta.schema.typeCheck.enabled": "false"}):
        reference.sql(
            f"create table delta.`{folder}` ({COLUMNS}) using delta partitioned by (p) "
            "tblproperties ('delta.enableChangeDataFeed' = 'true')"
        )
        reference.sql(f"insert into delta.`{folder}` {ROWS}")
    return folder


@pytest.fixture
def folder(start, tmp_path) -> str:
    return str(shutil.copytree(start, tmp_path / "t"))


def chosen(frame, condition: str) -> list[int]:
    return sorted(row[0] for row in frame.where(condition).select("id").collect())


def test_strings_compare_by_their_collation(reference, spark, start, way):
    theirs = reference._load(start)
    ours = deltafast.spark.read(spark, str(start), read_mode=way)
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    for condition in CONDITIONS:
        assert chosen(ours, condition) == chosen(theirs, condition), condition
    assert chosen(ours, "s = 'ABC'") == [1, 2, 3]
    for frame in (ours, theirs):
        assert sorted(row[1] for row in frame.groupBy("s").count().collect()) == [1, 1, 3]
        assert frame.select("s").distinct().count() == 3
        assert frame.alias("a").join(frame.alias("b"), "s").count() == 10
        assert [row[0] for row in frame.orderBy("s", "id").select("id").collect()] == [5, 1, 2, 3, 4]
        assert frame.count() == 5


def test_files_are_skipped_by_other_columns(spark, start):
    frame = deltafast.spark.read(spark, str(start))
    assert files_read(frame.where("id = 1 and s = 'abc'")) == 1
    # Only the file whose value is null.
    assert files_read(frame.where("s = 'abc'")) == 4
    assert files_read(frame.where("p collate UTF8_LCASE = 'abc'")) == 3


@pytest.mark.proof
def test_feeds_streams_and_sql_compare_by_collation(spark, start, tmp_path):
    folder = str(start)
    feed = deltafast.spark.read(spark, folder, options={"readChangeFeed": True, "startingVersion": 0})
    assert chosen(feed, "s = 'ABC'") == [1, 2, 3]
    assert deltafast.spark.sql(spark, f"SELECT count(*) FROM delta.`{folder}` WHERE s = 'ABC'").collect()[0][0] == 3
    batches = []

    def each_batch(frame, _) -> None:
        batches.extend(chosen(frame, "s = 'ABC'"))

    query = deltafast.spark.stream(spark, folder, each_batch, str(tmp_path / "checkpoint"))
    query.processAllAvailable()
    query.stop()
    assert sorted(batches) == [1, 2, 3]


def test_writes_keep_the_collation(reference, spark, folder):
    schema = reference._load(folder).schema
    collated = "select 7 id, 'k' p, 'N' collate UNICODE s, array('N' collate UNICODE) l"
    for query in ("select 6 id, 'k' p, 'N' s, array('N') l", collated):
        deltafast.spark.write(spark.sql(query), folder, "append")
    deltafast.spark.write(deltafast.spark.read(spark, folder).where("id = 6"), folder, "append", writer="driver")
    deltafast.spark.sql(spark, f"INSERT INTO delta.`{folder}` (id, p, s) SELECT 8, 'k', 'n' COLLATE UNICODE_CI")
    table = DeltaTable(folder)
    jobs.update(spark, table, {"s": "p", "st.a": "'n'"}, "id = 2")
    source = spark.sql("select 1 id, 'n' n")
    plan = table.merge(source.limit(0).toArrow(), "t.id = s.id", source_alias="s", target_alias="t")
    jobs.merge(spark, table, source, plan.when_matched_update({"s": "s.n"}))
    deltafast.spark.sql(spark, f"UPDATE delta.`{folder}` SET s = 'N' WHERE id = 3")
    theirs, ours = reference._load(folder), deltafast.spark.read(spark, folder)
    assert theirs.schema == ours.schema == schema
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))
    assert chosen(ours, "s = 'n'") == chosen(theirs, "s = 'n'") == [1, 3, 6, 6, 7, 8]
    for log in pathlib.Path(folder).glob("_delta_log/*.json"):
        for action in map(json.loads, log.read_text().splitlines()):
            assert (
                not {"s", "u", "r", "st"}
                & json.loads(action.get("add", {}).get("stats", "{}")).get("minValues", {}).keys()
            )


def test_constraints_compare_by_collation(reference, spark, folder):
    with reference.configured({"spark.databricks.delta.schema.typeCheck.enabled": "false"}):
        reference.sql(f"alter table delta.`{folder}` add constraint c check (s is null or s <> 'X')")
    with pytest.raises(DeltaError, match=r"rows break c: .*`s`|rows break c: s"):
        deltafast.spark.write(spark.sql("select 6 id, 'k' p, 'x' s"), folder, "append")
    deltafast.spark.write(spark.sql("select 6 id, 'k' p, 'y' s"), folder, "append")


REFUSED = r"the column `(target\.)?s` has the collation spark\.UTF8_LCASE, by which deltafast cannot compare strings"


@pytest.mark.parametrize("engine", usual_and_proof(["driver"], ["jobs"]))
def test_commands_that_would_compare_bytes_are_refused(spark, folder, engine):
    name = f"delta.`{folder}`"
    spark.conf.set("spark.deltafast.engine", engine)
    version = DeltaTable(folder).version()
    try:
        for statement in (
            "DELETE FROM {t} WHERE s = 'ABC'",
            "DELETE FROM {t} WHERE id = 1 AND s IN ('ABC', 'b')",
            "UPDATE {t} SET id = 9 WHERE s LIKE 'A%'",
            "UPDATE {t} SET s = upper(s)",
            "MERGE INTO {t} t USING (SELECT 'ABC' k) q ON t.s = q.k WHEN MATCHED THEN DELETE",
            "MERGE INTO {t} t USING (SELECT 1 k) q ON t.id = q.k WHEN MATCHED AND s = 'ABC' THEN DELETE",
        ):
            with pytest.raises(UnsupportedExpressionError, match=REFUSED):
                deltafast.spark.sql(spark, statement.format(t=name))
        source = "(SELECT 'abc' COLLATE UTF8_LCASE k)"
        with pytest.raises(InvalidArgumentError, match="the column `k` of the source has the collation UTF8_LCASE"):
            deltafast.spark.sql(spark, f"MERGE INTO {name} t USING {source} q ON t.p = q.k WHEN MATCHED THEN DELETE")
    finally:
        spark.conf.unset("spark.deltafast.engine")
    with pytest.raises(UnsupportedExpressionError, match=REFUSED):
        deltafast.spark.read(spark, folder, filters="s = 'ABC'")
    with pytest.raises(UnsupportedExpressionError, match=REFUSED):
        deltafast.spark.write(spark.sql("select 6 id"), folder, "overwrite", replace_where="s = 'ABC'")
    assert DeltaTable(folder).version() == version


@pytest.mark.parametrize("writer", usual_and_proof(["jvm"], ["arrow", "driver"]))
def test_new_columns_with_a_collation_are_refused(spark, folder, tmp_path, writer):
    message = "the column `n` has the collation UNICODE: deltafast creates no columns with a collation"
    frame = spark.sql("select 6 id, 'k' p, 'x' collate UNICODE n")
    with pytest.raises(InvalidArgumentError, match=message):
        deltafast.spark.write(frame, tmp_path / "new", writer=writer)
    with pytest.raises(InvalidArgumentError, match=message):
        deltafast.spark.write(frame, folder, "append", options={"mergeSchema": True}, writer=writer)
    assert not (tmp_path / "new").exists()


def test_unknown_collations_are_named(spark, tmp_path):
    for name in ("icu.nowhere", "other.UTF8_LCASE"):
        folder = tmp_path / name
        deltafast.spark.write(spark.sql("select 'x' s"), folder)
        log = folder / "_delta_log" / f"{0:020}.json"
        log.write_text(
            log.read_text().replace(r"\"metadata\":{}", rf"\"metadata\":{{\"__COLLATIONS\":{{\"s\":\"{name}\"}}}}")
        )
        for checksum in folder.glob("_delta_log/*.crc"):
            checksum.unlink()
        with pytest.raises(
            DeltaProtocolError, match=rf"the column `s` has the collation {name.removeprefix('icu.')}, which"
        ):
            deltafast.spark.read(spark, folder)
