"""Strings of CHAR(n) are padded and compared as in delta-spark, at any depth."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import deltafast.spark
from deltafast import DeltaTable
from deltafast.spark import _jobs as jobs
from deltafast.spark._scan.char_padding import Parts, char_lengths

from .helpers import rows

if TYPE_CHECKING:
    import pathlib

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

COLUMNS = """
    id int, c char(3), v varchar(3), s struct<a: varchar(3), b: char(3), cd: struct<e: array<char(2)>>, n: decimal(5, 2)>,
    l array<char(3)>, m map<char(2), char(3)>, ls array<struct<x: char(4), y: int>>, k map<string, varchar(3)>
"""
ROWS = """
    select cast(id as int) id, x c, x v, named_struct('a', x, 'b', x, 'cd', named_struct('e', array(x, null)), 'n', 1.5) s,
    array(x, null) l, map('k', x) m, array(named_struct('x', x, 'y', 1), null) ls, map('k', x) k
    from values (1, 'a'), (2, 'ab'), (3, 'ä'), (4, ''), (5, null) as t(id, x)
"""
CONDITIONS = (
    "c = 'a'",
    "c = 'a '",
    "c in ('a', 'ab', 'abcd')",
    "c > 'a'",
    "c like 'a'",
    "length(c) = 3",
    "v = 'a'",
    "s.b = 'a'",
    "s.b = 'a  '",
    "length(s.cd.e[0]) = 2",
    "m['k '] = 'a  '",
    "l[0] = 'a  '",
    "c = v",
)


@pytest.fixture(scope="module", params=["none", pytest.param("name", marks=pytest.mark.proof)])
def start(request, reference, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("char") / "t"
    reference.sql(
        f"create table delta.`{folder}` ({COLUMNS}) using delta tblproperties "
        f"('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = '{request.param}')"
    )
    reference.sql(f"insert into delta.`{folder}` {ROWS}")
    return folder


def chosen(frame, condition: str) -> list[int]:
    return sorted(row[0] for row in frame.where(condition).select("id").collect())


def test_strings_are_padded_when_they_are_read(reference, spark, start, way):
    theirs = reference._load(start)
    ours = deltafast.spark.read(spark, str(start), read_mode=way)
    assert rows(ours) == rows(theirs)
    assert ours.where("id = 1").collect()[0].s.b == "a  "
    for condition in CONDITIONS:
        assert chosen(ours, condition) == chosen(theirs, condition), condition
    assert ours.count() == 5


def test_feeds_are_padded_unless_the_session_says_otherwise(spark, start):
    options = {"readChangeFeed": True, "startingVersion": 0}
    (row,) = deltafast.spark.read(spark, str(start), options=options).where("id = 1").collect()
    assert (row.c, row.s.b, row.l, row.m, row.ls[0].x) == ("a  ", "a  ", ["a  ", None], {"k ": "a  "}, "a   ")
    spark.conf.set("spark.sql.readSideCharPadding", "false")
    try:
        (row,) = deltafast.spark.read(spark, str(start)).where("c = 'a'").collect()
        assert (row.c, row.s.b) == ("a", "a")
    finally:
        spark.conf.unset("spark.sql.readSideCharPadding")


@pytest.mark.proof
@pytest.mark.parametrize("engine", ["driver", "jobs"])
def test_commands_compare_with_the_padding(reference, spark, start, tmp_path, engine):
    folders = [str(shutil.copytree(start, tmp_path / name)) for name in ("theirs", "ours")]
    spark.conf.set("spark.deltafast.engine", engine)
    try:
        for statement in (
            "UPDATE {t} SET v = 'new' WHERE c = 'a'",
            "UPDATE {t} SET c = 'x' WHERE c IN ('ä', 'q')",
            "DELETE FROM {t} WHERE 'ab' = c",
        ):
            reference.sql(statement.format(t=f"delta.`{folders[0]}`"))
            deltafast.spark.sql(spark, statement.format(t=f"delta.`{folders[1]}`"))
    finally:
        spark.conf.unset("spark.deltafast.engine")
    theirs, ours = reference._load(folders[0]), deltafast.spark.read(spark, folders[1])
    assert rows(ours) == rows(theirs)
    assert chosen(ours, "v = 'new'") == [1]
    # Rows that are written again are stored as they were.
    jobs.optimize(spark, DeltaTable(folders[1])).compact()
    stored = DeltaTable(folders[1]).to_pyarrow_table().sort_by("id")
    assert stored.column("c").to_pylist() == ["a", "x", "", None]


@pytest.mark.parametrize(
    ("declared", "lengths"),
    [
        ("char(3)", 3),
        ("CHAR( 3 )", 3),
        ("varchar(3)", None),
        ("array<varchar(3)>", None),
        ("array<char(3)>", Parts("array", {"element": 3})),
        ("map<decimal(5,2),char(3)>", Parts("map", {"key": None, "value": 3})),
        (
            "struct<`a``:b`:char(1),c:string collate UNICODE,d:array<map<char(2),int>>>",
            Parts(
                "struct",
                {"a`:b": 1, "c": None, "d": Parts("array", {"element": Parts("map", {"key": 2, "value": None})})},
            ),
        ),
        ("array<char(3)", None),
        ("struct<char(3)>", None),
        ("array<char(3)>>", None),
    ],
)
def test_declared_types_are_read(declared, lengths):
    assert char_lengths({"name": "c", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": declared}}) == lengths
