"""Arrays, maps and structs made in SQL: in values, UPDATE and MERGE. Answers by row are in the golden file."""

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast._expr import bind_expression
from deltafast._expr.context import ExpressionContext
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.render import to_spark_sql
from deltafast.exceptions import DeltaError, InvalidArgumentError

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "i", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "d", "type": "double", "nullable": True, "metadata": {}},
        {"name": "Sq", "type": "string", "nullable": True, "metadata": {}},
    ],
}


@pytest.fixture
def table(tmp_path):
    columns = "id bigint, l array<bigint>, m map<string, double>, s struct<a: bigint, b: struct<c: string, d: date>>"
    deltafast.sql(f"CREATE TABLE delta.`{tmp_path}/t` ({columns}) USING delta")
    return tmp_path / "t"


def run(table, text):
    return deltafast.sql(text.format(t=f"delta.`{table}`"))


def rows(table):
    return sorted(DeltaTable(table).to_pyarrow_table().to_pylist(), key=lambda row: row["id"])


def test_values_are_cast_to_the_columns(table):
    run(
        table,
        "INSERT INTO {t} VALUES (1, array(1, 2Y, null), map('x', 1, 'y', null), "
        "struct(1, named_struct('q', 'c', 'r', date'2024-01-02'))), (2, array(), map(), null), (3, null, null, null)",
    )
    first, second, third = rows(table)
    assert first["l"] == [1, 2, None]
    assert dict(first["m"]) == {"x": 1.0, "y": None}
    assert first["s"]["a"] == 1
    assert first["s"]["b"]["c"] == "c"
    assert str(first["s"]["b"]["d"]) == "2024-01-02"
    assert (second["l"], second["m"], second["s"]) == ([], [], None)
    assert (third["l"], third["m"]) == (None, None)


@pytest.mark.parametrize("keys", ["'x', 1, 'x', 2", "'x', 1, null, 2", "null, 1"])
def test_wrong_keys_of_a_map_are_refused(table, keys):
    with pytest.raises(DeltaError):
        run(table, f"INSERT INTO {{t}} VALUES (1, null, map({keys}), null)")
    assert DeltaTable(table).version() == 0


def test_rows_are_updated_and_merged_with_made_values(table):
    run(table, "INSERT INTO {t} VALUES (1, array(1), map('x', 1), struct(1, struct('c', null))), (2, null, null, null)")
    run(table, "UPDATE {t} SET l = array(id, size(coalesce(l, array()))), m = map(concat('k', id), id / 2)")
    run(table, "UPDATE {t} SET s = named_struct('a', id, 'b', named_struct('c', 'u', 'd', null)) WHERE id = 2")
    assert [row["l"] for row in rows(table)] == [[1, 1], [2, 0]]
    assert [dict(row["m"]) for row in rows(table)] == [{"k1": 0.5}, {"k2": 1.0}]
    assert rows(table)[1]["s"] == {"a": 2, "b": {"c": "u", "d": None}}
    source = table.parent / "source"
    write_deltalake(source, pa.table({"id": [2, 3], "v": ["p", "q"]}))
    run(
        table,
        f"MERGE INTO {{t}} t USING delta.`{source}` s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET m = map(s.v, t.m['k2']), l = concat(t.l, array(s.id)) "
        "WHEN NOT MATCHED THEN INSERT (id, l, s) "
        "VALUES (s.id, array(7), named_struct('a', s.id, 'b', named_struct('c', s.v, 'd', null)))",
    )
    assert [row["l"] for row in rows(table)] == [[1, 1], [2, 0, 2], [7]]
    assert dict(rows(table)[1]["m"]) == {"p": 1.0}
    assert rows(table)[2]["s"] == {"a": 3, "b": {"c": "q", "d": None}}


def test_struct_names_its_values_as_they_are_written():
    tree = bind_expression("struct(I, sQ, i + 1)", SCHEMA, ExpressionContext())
    assert to_spark_sql(tree) == "named_struct('I', `i`, 'sQ', `Sq`, 'col3', (`i` + 1))"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("map('a')", "keys and values in turn"),
        ("named_struct('a')", "takes at least 2"),
        ("named_struct('a', 1, 'b')", "names and values in turn"),
        ("named_struct(Sq, 1)", "string literals as names"),
        ("array(1, true)", "does not take"),
        ("map(map('a', 1), 1)", "does not take MAP"),
        ("struct()", "without fields"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises((InvalidArgumentError, UnsupportedExpressionError), match=words):
        bind_expression(text, SCHEMA, ExpressionContext())
