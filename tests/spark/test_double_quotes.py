"""In a session of Spark, double quotes enclose a string, also one that equals the name of a column, as in delta-spark."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, write_deltalake

from .test_jobs import content

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

STATEMENTS = (
    'DELETE FROM delta.`{}` WHERE name = "name"',
    "DELETE FROM delta.`{}` WHERE \"name\" = 'name' AND id < 2",
    "DELETE FROM delta.`{}` WHERE \"nmae\" <> 'a'",
    'DELETE FROM delta.`{}` t WHERE t.name IN ("name", "it\'s") OR "id" IS NULL',
    'UPDATE delta.`{}` SET name = "id" WHERE name <> "name"',
    'UPDATE delta.`{}` SET name = concat("name", \'-\', name), id = length("name")',
    'INSERT INTO delta.`{}` REPLACE WHERE name = "name" VALUES (7, "name")',
    'INSERT INTO delta.`{}` VALUES (9, "name")',
    (
        'MERGE INTO delta.`{}` t USING (SELECT 1 AS key) s ON t.id = s.key AND t.name <> "key" '
        'WHEN MATCHED THEN UPDATE SET name = "name" WHEN NOT MATCHED BY SOURCE AND t.name = "name" THEN DELETE'
    ),
)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("quotes") / "t")
    write_deltalake(path, pa.table({"id": [1, 2, 3, 4], "name": ["a", "name", None, "id"]}))
    return path


@pytest.mark.parametrize("engine", ["driver", "jobs"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_are_those_of_delta_spark(reference, spark, table, tmp_path, statement, engine):
    if engine == "driver" and statement.startswith("INSERT"):
        pytest.skip("INSERT has one engine")
    ours, theirs = (str(shutil.copytree(table, tmp_path / name)) for name in ("ours", "theirs"))
    spark.conf.set("spark.deltafast.engine", engine)
    try:
        deltafast.spark.sql(spark, statement.format(ours))
    finally:
        spark.conf.unset("spark.deltafast.engine")
    reference.forget()
    reference.sql(statement.format(theirs))
    assert content(ours) == content(theirs)


def test_the_builders_read_strings_as_spark_does(spark, table, tmp_path):
    path = str(shutil.copytree(table, tmp_path / "t"))
    made = deltafast.spark.DeltaTable.forPath(spark, path)
    made.update('name = "name"', {"name": '"id"'})
    made.delete('"id" = name AND id = 4')
    source = spark.range(1, 2)
    merge = made.alias("t").merge(source.alias("s"), 't.id = s.id AND t.name = "a"')
    merge.whenMatchedUpdate(set={"name": '"name"'}).execute()
    found = {row["id"]: row["name"] for row in DeltaTable(path).to_pyarrow_table().to_pylist()}
    assert found == {1: "name", 2: "id", 3: None}
    assert deltafast.spark.read(spark, path, filters='name = "id"').count() == 1
    rows = spark.createDataFrame([(8, "id")], "id long, name string")
    deltafast.spark.write(rows, path, "overwrite", replace_where='name = "id"')
    assert DeltaTable(path).count("id = 8") == 1


def test_constraints_and_generated_columns_compare_with_strings(spark, tmp_path):
    path = str(tmp_path / "t")
    deltafast.spark.sql(
        spark,
        f"CREATE TABLE delta.`{path}` (name STRING, label STRING GENERATED ALWAYS AS (concat(\"name\", '-', name)))",
    )
    deltafast.spark.sql(spark, f'ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (name <> "label")')
    deltafast.spark.sql(spark, f'INSERT INTO delta.`{path}` (name) VALUES ("a")')
    assert DeltaTable(path).to_pyarrow_table()["label"].to_pylist() == ["name-a"]
    with pytest.raises(Exception, match="constraint"):
        deltafast.spark.sql(spark, f'INSERT INTO delta.`{path}` (name) VALUES ("label")')
