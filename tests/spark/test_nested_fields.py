"""Fields of structs in writes: found by position or by name as in delta-spark, and never lost; empty partition values."""

from __future__ import annotations

import shutil
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import DeltaError

from .helpers import usual_and_proof

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

STRUCT = pa.struct([("x", pa.int32()), ("y", pa.int32())])
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("s", STRUCT),
        ("a", pa.list_(STRUCT)),
        ("m", pa.map_(pa.string(), STRUCT)),
        ("n", pa.struct([("s", STRUCT), ("i", pa.list_(pa.int32()))])),
        ("p", pa.string()),
    ]
)
ROWS = [
    {"id": 1, "s": {"x": 1, "y": 2}, "a": [{"x": 3, "y": 4}], "m": [("k", {"x": 5, "y": 6})], "p": "b"},
    {"id": 2, "s": None, "a": None, "m": None, "n": {"s": {"x": 7, "y": 8}, "i": [9]}, "p": None},
]
#: Values of the columns s, a, m, n in which a struct has these fields.
OF_STRUCT = (
    "{0}, NULL, NULL, NULL",
    "NULL, array({0}), NULL, NULL",
    "NULL, NULL, map('k', {0}), NULL",
    "NULL, NULL, NULL, named_struct('s', {0}, 'i', array(1))",
)
STRUCTS = (
    "struct(1, 2)",
    "named_struct('y', 1, 'x', 2)",
    "named_struct('p', 1, 'q', 2)",
    "named_struct('x', 1, 'y', 2, 'z', 3)",
    "named_struct('x', 1, 'z', 3, 'y', 2)",
    "named_struct('x', 1)",
    "NULL",
    "named_struct('x', 1L, 'y', '2')",
)
WAYS = ("INSERT INTO {0} SELECT 7, {1}, 'b'", "INSERT OVERWRITE {0} SELECT 7, {1}, 'b'")
INSERTS = [way.format("{0}", values.format(struct)) for way in WAYS for struct in STRUCTS for values in OF_STRUCT]
OTHERS = (
    "INSERT INTO {0} SELECT 7, NULL, array(), map(), NULL, 'b'",
    "INSERT INTO {0} SELECT 7, NULL, array(NULL), NULL, named_struct('s', NULL, 'i', array()), 'b'",
    "INSERT INTO {0} (s, id) SELECT struct(1, 2), 7",
    "INSERT INTO {0} BY NAME SELECT named_struct('y', 1, 'x', 2) s, 7 id",
    "INSERT INTO {0} BY NAME SELECT named_struct('x', 1, 'y', 2, 'z', 3) s, 7 id",
    "UPDATE {0} SET s = named_struct('y', 1, 'x', 2)",
    "UPDATE {0} SET s = named_struct('p', 1, 'q', 2)",
    "UPDATE {0} SET s = struct(1, 2)",
    "UPDATE {0} SET n.s = named_struct('y', n.s.x, 'x', n.s.y)",
    "UPDATE {0} SET n = named_struct('i', array(1), 's', s)",
    "UPDATE {0} SET s = n.s",
    "UPDATE {0} SET s = NULL",
    "MERGE INTO {0} t USING (SELECT 1 k) u ON t.id = u.k WHEN MATCHED THEN UPDATE SET s = named_struct('y', 1, 'x', 2)",
    # The empty string is null in a partition column.
    "INSERT INTO {0} SELECT 7, NULL, NULL, NULL, NULL, ''",
    "INSERT INTO {0} VALUES (7, NULL, NULL, NULL, NULL, '')",
    "UPDATE {0} SET p = ''",
    "INSERT INTO {0} REPLACE WHERE p = '' SELECT 7, NULL, NULL, NULL, NULL, ''",
    "INSERT INTO {0} REPLACE WHERE p IS NULL SELECT 7, NULL, NULL, NULL, NULL, ''",
    # A value in PARTITION and in the list.
    "INSERT INTO {0} PARTITION (p = 'b') (id, p) VALUES (7, 'c')",
    "INSERT OVERWRITE {0} PARTITION (p = 'b') (id, p) SELECT 7, 'c'",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("nested") / "t")
    write_deltalake(path, pa.Table.from_pylist(ROWS, SCHEMA), partition_by=["p"])
    return path


def rows_after(run: Any, path: str) -> list[str] | str:
    try:
        run()
    except (PySparkException, DeltaError):
        assert DeltaTable(path).version() == 0
        return "refused"
    return sorted(map(repr, DeltaTable(path).to_pyarrow_table().to_pylist()))


@pytest.mark.parametrize(
    "statement", [*usual_and_proof(INSERTS[::4], [s for n, s in enumerate(INSERTS) if n % 4]), *OTHERS]
)
def test_rows_are_those_of_delta_spark(reference, spark, table, tmp_path, statement):
    ours, theirs = (str(shutil.copytree(table, tmp_path / name)) for name in ("ours", "theirs"))
    found = rows_after(lambda: deltafast.spark.sql(spark, statement.format(f"delta.`{ours}`")), ours)
    reference.forget()
    expected = rows_after(lambda: reference.sql(statement.format(f"delta.`{theirs}`")), theirs)
    assert found == expected


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("INSERT INTO {0} BY NAME SELECT named_struct('z', 1) s, 7 id", "DELTA_METADATA_MISMATCH"),
        ("INSERT INTO {0} (id, s) SELECT 7, named_struct('x', 1)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("UPDATE {0} SET s = struct(1, 2)", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        (
            "INSERT INTO {0} PARTITION (p = 'b') (id, p) VALUES (7, 'c')",
            "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
        ),
    ],
)
def test_a_refusal_has_the_condition_of_delta_spark(spark, table, tmp_path, statement, condition):
    path = str(shutil.copytree(table, tmp_path / "t"))
    with pytest.raises(PySparkException) as refused:
        deltafast.spark.sql(spark, statement.format(f"delta.`{path}`"))
    assert refused.value.getCondition() == condition


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("values", OF_STRUCT)
@pytest.mark.parametrize(
    "struct", ["named_struct('x', 1, 'y', 2, 'z', 3)", "struct(1, 2)", "named_struct('p', 1, 'q', 2)"]
)
def test_a_frame_with_other_fields_is_refused(spark, table, tmp_path, struct, values, mode):
    path = str(shutil.copytree(table, tmp_path / "t"))
    columns = ", ".join(SCHEMA.names)
    frame = spark.sql(f"SELECT * FROM VALUES (7, {values.format(struct)}, 'b') AS t({columns})")
    with pytest.raises(DeltaError, match="the table lacks fields that the data has"):
        deltafast.spark.write(frame, path, mode)
    assert DeltaTable(path).version() == 0
    deltafast.spark.write(frame, path, mode, options={"mergeSchema": "true"})
    added = DeltaTable(path).schema().to_json()
    assert any(f'"name":"{name}"' in added for name in ("z", "col1", "p"))
