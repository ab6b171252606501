"""Double quotes enclose a name in the API, in its exact case, and a name that is not found never becomes a string."""

import json

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, Field, Schema, write_deltalake
from deltafast._deltalake import table as dropin
from deltafast._expr import bind_predicate, read_schema
from deltafast._expr.context import ExpressionContext
from deltafast._expr.stored import sql_to_store
from deltafast.cli import main
from deltafast.exceptions import DeltaError, InvalidArgumentError

from .conftest import field, table

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", "b", None],
        "st": pa.array([{"f": "x", "G": "y"}, {"f": "z", "G": None}, None]),
        "Price": pa.array([1.0, 2.0, 3.0]),
        "day": ["mon", "mon", "tue"],
    }
)

#: Conditions with a name that does not exist as it is spelt. Most would be true for all rows if it were a string.
MISSING = [
    "\"nmae\" <> 'a'",
    "\"NAME\" <> 'a'",
    '"nmae" IS NOT NULL',
    "NOT \"nmae\" = 'a'",
    "\"st.f\" <> 'q'",
    "\"t.name\" <> 'q'",
    'st."F" IS NULL OR st."F" <> \'q\'',
    '"ST".f IS NULL OR id > 0',
    '"st"."g" IS NULL OR id > 0',
    'length("nmae") = 4',
    "\"nmae\" LIKE '%a%'",
    "'nmae' = \"nmae\"",
    '"price" > 0',
    "\"nmae\" IN ('nmae', 'x')",
    "\"nmae\" BETWEEN 'a' AND 'z'",
    "coalesce(name, \"nmae\") <> 'q'",
    "CASE WHEN \"nmae\" = 'nmae' THEN true END",
    "id > 0 AND (id < 0 OR \"nmae\" = 'nmae')",
    "cast(\"nmae\" AS string) <> 'a'",
    "\"\" <> 'a'",
    'name IS NULL OR name <> "q"',
    '"nmae" <> "other"',
    'id > 0 OR DATE "2026-01-31" IS NOT NULL',
    "id > 0 OR r\"a\" = 'a'",
    "id > 0 OR X\"1F\" <> X'00'",
    "name IS NULL OR name LIKE '!%' ESCAPE \"!\" OR id > 0",
    '"na""me" IS NOT NULL',
    "\"name\\\" <> 'q'",
    'name."f" IS NOT NULL OR id > 0',
]

#: Conditions with names as they are spelt, and the ids of their rows.
EXACT = [
    ("\"name\" = 'a'", [1]),
    ("NAME = 'a' AND `Name` = 'a'", [1]),
    ('"Price" >= 2 AND price < 3', [2]),
    ('"st"."f" = \'x\'', [1]),
    ("st.\"G\" = 'y'", [1]),
    ("ST.g = 'y'", [1]),
    ('"id" = 3 AND "name" IS NULL', [3]),
    ("name = 'a' -- \"nmae\"", [1]),
    ("name <> '\"nmae\"' AND id = 2", [2]),
    ('id = 2 /* "nmae" */', [2]),
]

SOURCE = {"id": [1, 9], "name": ["s", "n"], "Price": [5.0, 6.0]}


def merge(clause, *arguments):
    def run(handle, text):
        merger = handle.merge(SOURCE, "target.id = source.id", source_alias="source", target_alias="target")
        # The names of one side are those of the conditions only if they are qualified.
        return getattr(merger, clause)(
            *(argument if argument is not None else text for argument in arguments)
        ).execute()

    return run


def by_source(clause, *arguments):
    def run(handle, text):
        merger = handle.merge({"key": [1]}, "target.id = source.key", source_alias="source", target_alias="target")
        return getattr(merger, clause)(
            *(argument if argument is not None else text for argument in arguments)
        ).execute()

    return run


def merge_on(handle, text):
    merger = handle.merge({"key": [1]}, f"target.id = source.key AND ({text})", "source", "target")
    return merger.when_matched_delete().execute()


#: Operations that change rows or metadata.
CHANGES = {
    "delete": lambda t, text: t.delete(text),
    "update predicate": lambda t, text: t.update({"name": "'all'"}, predicate=text),
    "update new_values": lambda t, text: t.update(new_values={"name": "all"}, predicate=text),
    "update value": lambda t, text: t.update({"name": f"CASE WHEN {text} THEN 'x' END"}),
    "merge on": merge_on,
    "merge matched update": by_source("when_matched_update", {"name": "'m'"}, None),
    "merge matched delete": by_source("when_matched_delete", None),
    "merge by source update": by_source("when_not_matched_by_source_update", {"name": "'m'"}, None),
    "merge by source delete": by_source("when_not_matched_by_source_delete", None),
    "merge insert condition": merge("when_not_matched_insert_all", None),
    "merge insert value": lambda t, text: (
        t.merge(SOURCE, "target.id = source.id", "source", "target")
        .when_not_matched_insert({"id": "source.id", "name": f"CASE WHEN {text} THEN 'x' END"})
        .execute()
    ),
    "overwrite by handle": lambda t, text: write_deltalake(t, ROWS, mode="overwrite", predicate=text),
    "overwrite by path": lambda t, text: write_deltalake(t.table_uri, ROWS, mode="overwrite", predicate=text),
    "add_constraint": lambda t, text: t.alter.add_constraint({"c": text}),
    "compact": lambda t, text: t.optimize.compact(text),
    "z_order": lambda t, text: t.optimize.z_order(["id"], text),
    "purge": lambda t, text: t.optimize.purge(text),
}
READS = {
    "count": lambda t, text: t.count(text),
    "scan": lambda t, text: pa.table(t.scan(predicate=text)),
    "to_pyarrow_table": lambda t, text: t.to_pyarrow_table(filters=text),
    "to_pandas": lambda t, text: t.to_pandas(filters=text),
    "to_polars": lambda t, text: t.to_polars(predicate=text),
    "file_uris": lambda t, text: t.file_uris(file_pruning_predicate=text),
    "get_add_actions": lambda t, text: t.get_add_actions(predicate=text),
    "plan": lambda t, text: t.plan(text),
    "explain": lambda t, text: t.explain(text),
    "load_cdf": lambda t, text: pa.table(t.load_cdf(predicate=text)),
    "to_pyarrow_dataset": lambda t, text: t.to_pyarrow_dataset(file_pruning_predicate=text).to_table(),
}


def opened(path, surface):
    return (dropin.DeltaTable if surface == "deltalake" else DeltaTable)(path)


@pytest.fixture
def written(tmp_path):
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path / "t", ROWS, partition_by=["day"], configuration=feed)
    return tmp_path / "t"


def state(path):
    found = DeltaTable(path)
    return found.version(), found.to_pyarrow_table().sort_by("id").to_pylist(), found.metadata().configuration


@pytest.mark.parametrize("surface", ["deltafast", "deltalake"])
@pytest.mark.parametrize("operation", CHANGES)
def test_no_row_changes_where_a_name_is_not_found(written, operation, surface):
    before = state(written)
    for text in MISSING:
        with pytest.raises(DeltaError) as caught:
            CHANGES[operation](opened(written, surface), text)
        assert state(written) == before, text
        assert isinstance(caught.value, InvalidArgumentError), text


@pytest.mark.parametrize("surface", ["deltafast", "deltalake"])
@pytest.mark.parametrize("operation", READS)
def test_a_name_that_is_not_found_is_an_error_of_each_read(written, operation, surface):
    if not hasattr(opened(written, surface), operation):
        pytest.skip("the surface has no such method")
    for text in MISSING:
        with pytest.raises(InvalidArgumentError):
            READS[operation](opened(written, surface), text)


@pytest.mark.parametrize("arguments", [["head"], ["files"], ["optimize"], ["explain"], ["delete"], ["count"]], ids=str)
def test_a_name_that_is_not_found_is_an_error_of_each_command(written, arguments, capsys):
    before = state(written)
    for text in MISSING:
        assert main([*arguments, str(written), "--where", text]) != 0, text
    capsys.readouterr()
    assert state(written) == before


@pytest.mark.parametrize("surface", ["deltafast", "deltalake"])
@pytest.mark.parametrize(("text", "ids"), EXACT)
def test_names_are_found_as_they_are_spelt(written, text, ids, surface):
    handle = opened(written, surface)
    assert handle.to_pyarrow_table(filters=text).sort_by("id")["id"].to_pylist() == ids
    handle.delete(text)
    assert set(handle.to_pyarrow_table()["id"].to_pylist()) == {1, 2, 3} - set(ids)


@pytest.mark.parametrize("surface", ["deltafast", "deltalake"])
@pytest.mark.parametrize("name", ['"nmae"', '"NAME"', '"st"."F"', 'st."g"', '"ST"."f"', '"t"."name"'])
def test_assigned_names_are_found_as_they_are_spelt(written, name, surface):
    before = state(written)
    handle = opened(written, surface)
    with pytest.raises(DeltaError, match=r"name|field|column"):
        handle.update({name: "'x'"})
    merger = handle.merge(SOURCE, "target.id = source.id", "source", "target")
    with pytest.raises(DeltaError):
        merger.when_matched_update({name: "'x'"}).execute()
    assert state(written) == before
    handle.update({'"name"': "'x'", 'st."G"': "'y'"}, predicate='"id" = 1')
    assert handle.to_pyarrow_table(filters="id = 1")["name"].to_pylist() == ["x"]


def test_the_sides_of_a_merge_are_found_as_they_are_spelt(written):
    handle = DeltaTable(written)
    for text in ('"T".id = s.id', '"t".id = "S"."id"', '"t".id = "s"."ID"'):
        with pytest.raises(InvalidArgumentError):
            handle.merge(SOURCE, text, "s", "t").when_matched_delete().execute()
    handle.merge(SOURCE, '"t"."id" = "s"."id"', "s", "t").when_matched_delete('"s"."name" = \'s\'').execute()
    assert sorted(handle.to_pyarrow_table()["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\"nmae\" <> 'a'", r"no column 'nmae' at character 1 .*did you mean 'name'\? \(.* single quotes a string\)"),
        ("\"NAME\" <> 'a'", r"did you mean 'name'\?"),
        ('name = "a"', r"no column 'a' .*\(double quotes enclose a name in its exact case"),
        ("id = 1 OR DATE \"2026-01-31\" > '1'", "found '2026-01-31'.*single quotes a string"),
    ],
)
def test_the_error_suggests_the_name_and_the_quotes_of_strings(written, text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        DeltaTable(written).count(text)


# --- expressions that are stored


def generated(expression):
    return Schema([Field("name", "string"), Field("g", "string", metadata={"delta.generationExpression": expression})])


@pytest.mark.parametrize("expression", ["concat(\"nmae\", 'x')", '"NAME"', 'concat(name, "x")', 'upper("g"."x")'])
def test_a_generated_column_or_constraint_of_a_name_that_is_not_found_is_refused(tmp_path, expression):
    with pytest.raises(InvalidArgumentError, match=r"single quotes|no column|only structs"):
        DeltaTable.create(tmp_path / "g", generated(expression))
    check = {"delta.constraints.c": f"{expression} <> 'q'"}
    with pytest.raises(InvalidArgumentError):
        DeltaTable.create(tmp_path / "c", Schema([Field("name", "string")]), configuration=check)
    with pytest.raises(InvalidArgumentError):
        write_deltalake(tmp_path / "w", {"name": ["a"]}, configuration=check)
    default = Field("d", "string", metadata={"CURRENT_DEFAULT": expression})
    with pytest.raises(InvalidArgumentError):
        DeltaTable.create(tmp_path / "d", Schema([Field("name", "string"), default]))
    assert not list(tmp_path.iterdir())


def test_expressions_of_the_api_are_stored_in_backquotes_and_single_quotes(tmp_path):
    made = DeltaTable.create(
        tmp_path / "g",
        generated('concat("name", \'-\', "name")'),
        configuration={"delta.constraints.c": "\"name\" > 'A'"},
    )
    made.alter.add_constraint({"d": '"g" <> \'"q"\''})
    stored = made.metadata().configuration
    assert stored["delta.constraints.c"] == "`name` > 'A'"
    assert stored["delta.constraints.d"] == "`g` <> '\"q\"'"
    assert made.schema().fields[1].metadata["delta.generationExpression"] == "concat(`name`, '-', `name`)"
    write_deltalake(made, {"name": ["a"]}, mode="append")
    assert made.to_pyarrow_table()["g"].to_pylist() == ["a-a"]
    write_deltalake(tmp_path / "w", {"Price": [1]}, configuration={"delta.constraints.p": '"Price" >= 0'})
    assert DeltaTable(tmp_path / "w").metadata().configuration["delta.constraints.p"] == "`Price` >= 0"


def test_a_default_is_no_column(tmp_path):
    write_deltalake(tmp_path, {"name": ["a"]}, configuration={"delta.feature.allowColumnDefaults": "supported"})
    handle = DeltaTable(tmp_path)
    for text in ('"name"', '"x"', "concat(\"name\", 'x')"):
        with pytest.raises(InvalidArgumentError):
            handle.alter.set_column_metadata("name", {"CURRENT_DEFAULT": text})
    handle.alter.set_column_metadata("name", {"CURRENT_DEFAULT": "'x'"})


# --- statements


SPARK_SCHEMA = table(field("id", "integer"), field("name", "string"))


@pytest.mark.parametrize(
    "text", ["\"nmae\" <> 'a'", "\"name\" <> 'a'", 'name = "a"', 'name = "it\'s"', 'name = "a\\"b"']
)
def test_in_spark_a_text_in_double_quotes_is_always_a_string(text):
    tree = bind_predicate(text, SPARK_SCHEMA, ExpressionContext())
    plain = sql_to_store(text, read_schema(SPARK_SCHEMA), ExpressionContext())
    assert '"' not in plain.replace('a"b', "")
    assert repr(bind_predicate(plain, SPARK_SCHEMA, ExpressionContext())) == repr(tree)


STATEMENTS = [
    "DELETE FROM t WHERE {}",
    "UPDATE t SET name = 'q' WHERE {}",
    "INSERT INTO t REPLACE WHERE {} VALUES (1, 'a', 'b')",
    "MERGE INTO t USING s ON t.id = s.id AND {} WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND {} THEN DELETE",
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED AND {} THEN INSERT *",
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND {} THEN DELETE",
]
AMBIGUOUS = [
    "\"nmae\" <> 'a'",
    "\"NAME\" <> 'a'",
    '"nmae" IS NOT NULL',
    "NOT \"nmae\" = 'a'",
    'length("nmae") = 4',
    "(\"nmae\" <> 'a' OR t.id = 7)",
    "t.id > 0 AND \"nmae\" <> 'a'",
    "true AND \"nmae\" LIKE 'n%'",
    "\"name\" = 'a'",
    't.name = "id"',
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("condition", AMBIGUOUS)
def test_a_statement_whose_string_may_be_a_column_is_refused(tmp_path, statement, condition):
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "name": ["a", "b"], "other": ["c", "d"]}))
    handle = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match="is a string in Spark SQL"):
        deltafast.sql(statement.format(condition), t=handle, s=pa.table({"id": [1], "name": ["s"], "other": ["u"]}))
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize("statement", STATEMENTS[:2])
def test_a_string_in_double_quotes_that_is_compared_with_a_column_is_a_string(tmp_path, statement):
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "name": ["a", "b"], "other": ["c", "d"]}))
    deltafast.sql(statement.format('name = "a" AND other IN ("c", "x")'), t=DeltaTable(tmp_path))
    assert "a" not in DeltaTable(tmp_path).to_pyarrow_table()["name"].to_pylist()


def test_a_source_column_of_a_merge_is_no_string(tmp_path):
    write_deltalake(tmp_path, {"id": [1, 2], "name": ["a", "b"]})
    merge_text = 'MERGE INTO t USING s ON t.id = s.id AND t.name <> "label" WHEN MATCHED THEN DELETE'
    with pytest.raises(InvalidArgumentError, match='"label" is a string in Spark SQL, and a column here'):
        deltafast.sql(merge_text, t=DeltaTable(tmp_path), s=pa.table({"id": [1], "label": ["a"]}))


def test_statements_store_strings_in_single_quotes(tmp_path):
    deltafast.sql(
        f'CREATE TABLE delta.`{tmp_path}` (name STRING DEFAULT "x", g STRING GENERATED ALWAYS AS (concat(name, "-"))) '
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    name, g = json.loads(DeltaTable(tmp_path).schema().to_json())["fields"]
    assert name["metadata"]["CURRENT_DEFAULT"] == "'x'"
    assert g["metadata"]["delta.generationExpression"] == "concat(name, '-')"
    with pytest.raises(InvalidArgumentError, match='"name" is a string in Spark SQL'):
        deltafast.sql(f'CREATE TABLE delta.`{tmp_path}/2` (name STRING, g STRING GENERATED ALWAYS AS (upper("name")))')
