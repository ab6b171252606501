"""What is easy to get wrong is taken as it is meant, or refused by a message that says how to write it."""

import pyarrow as pa
import pytest

from deltafast import DeltaTable, Field, write_deltalake
from deltafast.exceptions import InvalidArgumentError

ROWS = pa.table({"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0], "name": ["a", "b", "c"]})


@pytest.fixture
def table(tmp_path):
    write_deltalake(tmp_path / "t", ROWS)
    return DeltaTable(tmp_path / "t")


def merge(table, predicate, source_alias="s", target_alias="t"):
    merger = table.merge(ROWS, predicate, source_alias=source_alias, target_alias=target_alias)
    return merger.when_matched_update_all().execute()


REFUSED = {
    "constraint without a name": (
        lambda t: t.alter.add_constraint("id > 0"),
        '`constraints` takes Spark SQL by name, like {"positive": "id > 0"}',
    ),
    "constraint that is a number": (
        lambda t: t.alter.add_constraint({"c": 5}),
        "`c` in `constraints` must be Spark SQL",
    ),
    "value that is a number": (
        lambda t: t.update({"amount": 5}),
        "`amount` in `updates` must be Spark SQL.*`new_values`",
    ),
    "value that is None": (lambda t: t.update({"amount": None}), "`amount` in `updates` must be Spark SQL"),
    "updates that are a name": (lambda t: t.update("amount"), "`updates` takes Spark SQL by name"),
    "predicate by position": (lambda t: t.update({"amount": "1"}, "id<3"), "write predicate='id<3'"),
    "word that is a string": (lambda t: t.update({"name": "hello"}), "for the string itself, write \"'hello'\""),
    "words that are a string": (lambda t: t.update({"name": "it's so"}), r"for the string itself, write"),
    "alias of a merge": (
        lambda t: merge(t, "target.id = source.id"),
        "no column and no alias 'target' .* the table is called 't' here, the source 's'",
    ),
    "alias of a merge without aliases": (
        lambda t: merge(t, "t.id = s.id", None, None),
        "no alias 't' .* the table is called 'target' here, the source 'source'",
    ),
    "column of a merge": (lambda t: merge(t, "t.id = s.id AND nope > 1"), "no column 'nope' at"),
    "value of a merge": (
        lambda t: t.merge(ROWS, "target.id = source.id").when_matched_update({"amount": 5}),
        "`amount` in `updates` must be Spark SQL",
    ),
    "string of a merge": (
        lambda t: t.merge(ROWS, "target.id = source.id").when_matched_update({"name": "hello"}).execute(),
        "for the string itself, write \"'hello'\"",
    ),
    "predicate of a merge": (lambda t: merge(t, 5), "the predicate of a merge must be Spark SQL"),
    "property that is a list": (
        lambda t: t.alter.set_table_properties({"delta.checkpointInterval": [5]}),
        "the property `delta.checkpointInterval` must be a string, a boolean or an integer",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_how_to_write_it(table, case):
    work, message = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=message):
        work(table)
    assert table.version() == 0


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bigint", "long"),
        ("int", "integer"),
        ("VARCHAR(5)", "string"),
        ("Long", "long"),
        ("number", "primitive types are"),
    ],
)
def test_a_type_of_another_system_is_refused_with_the_one_that_is_meant(name, meant):
    with pytest.raises(InvalidArgumentError, match=rf"invalid type string: .*{meant}"):
        Field("x", name)


def test_more_than_38_digits_are_refused_as_an_argument(tmp_path):
    wide = pa.table({"a": pa.array([1], pa.decimal256(39, 2))})
    with pytest.raises(InvalidArgumentError, match=r"Delta has no type for Arrow's .*39"):
        write_deltalake(tmp_path, wide)
    fits = pa.table({"a": pa.array([1], pa.decimal256(38, 2))})
    write_deltalake(tmp_path, fits)
    assert DeltaTable(tmp_path).schema().fields[0].type.type == "decimal(38,2)"


@pytest.mark.parametrize(
    "schema",
    [{"a": "long", "b": "string"}, {"a": "int64", "b": pa.string()}, [("a", pa.int64()), ("b", pa.string())]],
)
def test_a_schema_may_be_names_and_types(tmp_path, schema):
    made = DeltaTable.create(tmp_path, schema=schema)
    assert [(field.name, field.type.type) for field in made.schema().fields] == [("a", "long"), ("b", "string")]


@pytest.mark.parametrize("schema", [{"a": "number"}, [("a", "number")], "a long", 5])
def test_what_is_not_a_schema_is_refused(tmp_path, schema):
    with pytest.raises(InvalidArgumentError, match=r"not a schema|invalid type string"):
        DeltaTable.create(tmp_path, schema=schema)


def test_one_column_may_be_given_alone(table):
    assert table.to_pyarrow_table(columns="id").column_names == ["id"]
    assert table.scan(columns="id").schema.names == ["id"]
    assert list(table.to_pandas(columns="id").columns) == ["id"]


def test_properties_may_be_booleans_and_numbers(tmp_path):
    given = {"delta.appendOnly": True, "delta.checkpointInterval": 5, "mine": "x", "none": None}
    kept = {"delta.appendOnly": "true", "delta.checkpointInterval": "5", "mine": "x"}
    created = DeltaTable.create(tmp_path / "a", schema=ROWS.schema, configuration=given)
    assert created.metadata().configuration == kept
    write_deltalake(tmp_path / "b", ROWS, configuration=given)
    written = DeltaTable(tmp_path / "b")
    assert written.metadata().configuration == kept
    written.alter.set_table_properties({"delta.appendOnly": False, "delta.checkpointInterval": 7})
    assert written.metadata().configuration == kept | {"delta.appendOnly": "false", "delta.checkpointInterval": "7"}
