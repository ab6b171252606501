"""The readings of double quotes in the constraints and generated columns of the log, which other writers stored."""

import json

import deltalake
import pyarrow as pa
import pytest

import deltafast._deltalake.table as dropin
from deltafast import DeltaTable, Field, write_deltalake
from deltafast._expr import read_schema
from deltafast._expr.stored import constraint_sql, generation_sql
from deltafast.exceptions import ConstraintViolatedError, DeltaError, InvalidArgumentError

from .conftest import field, table

COLUMNS = {
    "name": "string",
    "Name": "string",
    "deleted": "string",
    "Other": "string",
    "Price": "double",
    "Low": "long",
    "price2": "double",
    "high price": "long",
    "é": "long",
    "2024": "long",
    "Day": "date",
    "Flag": "boolean",
    "id": "long",
    "st": {"type": "struct", "fields": [field("F g", "string"), field("h", "string")]},
}
COLUMNS.pop("Name")
SCHEMA = read_schema(table(*(field(name, of) for name, of in COLUMNS.items())))

CONSTRAINTS = [
    ('name <> "deleted"', "name <> 'deleted'"),
    ('"deleted" <> name', "'deleted' <> name"),
    ('name IN ("deleted", "other")', "name IN ('deleted', 'other')"),
    ('name <> "unknown"', "name <> 'unknown'"),
    ('name <> "Unknown"', "name <> 'Unknown'"),
    ('name <> "NAME"', "name <> 'NAME'"),
    ('"Price" >= 0', "`Price` >= 0"),
    ('"Price" >= "Low"', "`Price` >= `Low`"),
    ('"Price" >= id', "`Price` >= id"),
    ('id > "Low"', "id > `Low`"),
    ('"high price" > 0 AND "é" < 5', "`high price` > 0 AND `é` < 5"),
    ('NOT ("high price" > 0 OR name <> "deleted")', "NOT (`high price` > 0 OR name <> 'deleted')"),
    ('"Flag"', "`Flag`"),
    ("\"Day\" > DATE '2026-01-01'", "`Day` > DATE '2026-01-01'"),
    ('"Other" <> "Other"', "`Other` <> `Other`"),
    ('"Other" <> \'x\' AND name = "y"', "`Other` <> 'x' AND name = 'y'"),
    ('"Other" <> "deleted"', "`Other` <> 'deleted'"),
    ('"Other" IS NOT NULL', "`Other` IS NOT NULL"),
    ('length("Other") > 2', "length(`Other`) > 2"),
    ('"price2" >= 0', "`price2` >= 0"),
    ('st."F g" <> "deleted"', "st.`F g` <> 'deleted'"),
    ('"st"."F g" = \'x\'', "`st`.`F g` = 'x'"),
    ("name <> '\"Price\"'", "name <> '\"Price\"'"),
    ('name <> "it\'s"', "name <> 'it\\'s'"),
    ('`Price` >= 0 AND name LIKE "a%"', "`Price` >= 0 AND name LIKE 'a%'"),
]
AMBIGUOUS_CONSTRAINTS = [
    'name <> "Other"',
    "concat(\"Other\", name) <> 'x'",
    'id > 1 AND (name = "Other" OR id = 7)',
    "\"Other\" IN (name, 'x')",
    'id = "2024"',
    'name LIKE "high price"',
    'st.h = "Other"',
]
GENERATED = [
    ('"Price" * 2', "`Price` * 2"),
    ("concat(\"unknown\", '-', name)", "concat('unknown', '-', name)"),
    ('concat("Unknown", name)', "concat('Unknown', name)"),
    ("CAST(name AS STRING)", "CAST(name AS STRING)"),
    ('year("Day")', "year(`Day`)"),
    ('"st"."h"', "`st`.`h`"),
    ('id + "Low"', "id + `Low`"),
]
AMBIGUOUS_GENERATED = ["concat(\"name\", '-', name)", 'upper("Other")', '"name"', 'concat("deleted", name)']


@pytest.mark.parametrize(("stored", "expected"), CONSTRAINTS)
def test_a_constraint_of_the_log_has_one_reading(stored, expected):
    assert constraint_sql(stored, SCHEMA) == expected
    assert constraint_sql(expected, SCHEMA) == expected


@pytest.mark.parametrize("stored", AMBIGUOUS_CONSTRAINTS)
def test_a_constraint_with_two_readings_is_refused_with_both(stored):
    with pytest.raises(InvalidArgumentError, match=r"a string, as in Spark \(.*'.*or a column, as in delta-rs \(.*`"):
        constraint_sql(stored, SCHEMA)


@pytest.mark.parametrize(("stored", "expected"), GENERATED)
def test_a_generated_column_of_the_log_has_one_reading(stored, expected):
    assert generation_sql(stored, SCHEMA) == expected


@pytest.mark.parametrize("stored", AMBIGUOUS_GENERATED)
def test_a_generated_column_with_two_readings_is_refused_with_both(stored):
    with pytest.raises(InvalidArgumentError, match=r"a string, as in Spark .* or a column, as in delta-rs"):
        generation_sql(stored, SCHEMA)


# --- tables


def store(path, *, checks=None, generated=None):
    """Commit constraints and generated columns as another writer stores them."""
    log = path / "_delta_log"
    version = len(list(log.glob("*.json")))
    actions = [json.loads(line) for file in sorted(log.glob("*.json")) for line in file.read_text("utf-8").splitlines()]
    metadata = [action["metaData"] for action in actions if "metaData" in action][-1]
    schema = json.loads(metadata["schemaString"])
    for of in schema["fields"]:
        if of["name"] in (generated or {}):
            of["metadata"]["delta.generationExpression"] = generated[of["name"]]
    metadata["schemaString"] = json.dumps(schema)
    metadata["configuration"] |= {f"delta.constraints.{name}": sql for name, sql in (checks or {}).items()}
    lines = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, {"metaData": metadata}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (log / f"{version:020}.json").write_text(text, "utf-8")
    return DeltaTable(path)


ROWS = pa.table({"name": ["a"], "deleted": ["a"], "Other": ["x"], "Price": [2.0], "Low": [1]})


def changes(handle):
    """Operations that write a row with other values."""
    row = {"name": ["z"], "deleted": ["z"], "Other": ["z"], "Price": [-1.0], "Low": [9]}
    merge = "target.name = source.name"
    yield lambda: write_deltalake(handle, row, mode="append")
    yield lambda: write_deltalake(handle, row, mode="overwrite")
    yield lambda: dropin.write_deltalake(handle.table_uri, pa.table(row), mode="append")
    yield lambda: handle.update({"name": "'z'"})
    yield lambda: handle.merge(row, merge, "source", "target").when_not_matched_insert_all().execute()
    yield lambda: handle.append(row)


@pytest.mark.parametrize("sql", ['name <> "Other"', '"Other" <> \'b\' AND name = "Other"'])
def test_no_operation_writes_to_a_table_whose_constraint_has_two_readings(tmp_path, sql):
    write_deltalake(tmp_path, ROWS)
    handle = store(tmp_path, checks={"c": sql})
    for change in changes(handle):
        with pytest.raises(DeltaError, match=r"the constraint `c` .* as in Spark .* as in delta-rs"):
            change()
        assert DeltaTable(tmp_path).version() == 1
    # The remedy of the message, and what does not evaluate the constraint.
    handle.alter.set_table_properties({"delta.appendOnly": "false"})
    handle.alter.drop_constraint("c")
    handle.alter.add_constraint({"c": "name <> 'Other'"})
    for change in changes(handle):
        change()
        handle.update_incremental()


def test_no_operation_writes_to_a_table_whose_generated_column_has_two_readings(tmp_path):
    write_deltalake(tmp_path, ROWS)
    handle = store(tmp_path, generated={"deleted": "concat(\"name\", '-', name)"})
    for change in changes(handle):
        with pytest.raises(DeltaError, match=r"the generated column `deleted` .* as in Spark .* as in delta-rs"):
            change()
    assert DeltaTable(tmp_path).version() == 1
    assert handle.count("name = 'a' AND deleted = 'a'") == 1


def test_a_string_of_spark_stays_a_string_where_a_column_has_its_name(tmp_path):
    write_deltalake(tmp_path, ROWS)
    handle = store(tmp_path, checks={"c": 'name <> "deleted"'})
    write_deltalake(handle, {"name": ["same"], "deleted": ["same"]}, mode="append")
    for write in (write_deltalake, dropin.write_deltalake):
        with pytest.raises(ConstraintViolatedError):
            write(handle, pa.table({"name": ["deleted"], "deleted": ["x"]}), mode="append")
    with pytest.raises(ConstraintViolatedError):
        handle.update({"name": "'deleted'"})


NAMES = ["Price", "high price", "é", "2024", "order", "name", "_x", "X_1", "a.b", "a-b", 'q"q']


@pytest.mark.parametrize("name", NAMES)
def test_constraints_that_deltalake_stores_hold_for_its_columns(tmp_path, name):
    quoted = '"' + name.replace('"', '""') + '"'
    rows = pa.table({name: [1, 2], "other": ["a", "b"]})
    deltalake.write_deltalake(tmp_path, rows)
    deltalake.DeltaTable(tmp_path).alter.add_constraint({"c": f"{quoted} >= 0 AND other <> '{name}'"})
    write_deltalake(tmp_path, rows, mode="append")
    for bad in (rows.set_column(0, name, pa.array([1, -1])), rows.set_column(1, "other", pa.array(["a", name]))):
        with pytest.raises(ConstraintViolatedError):
            write_deltalake(tmp_path, bad, mode="append")
        with pytest.raises(Exception, match=r"Invariant|constraint|invalid data|Invalid data"):
            deltalake.write_deltalake(tmp_path, bad, mode="append")
    assert DeltaTable(tmp_path).count() == 4


@pytest.mark.parametrize("name", NAMES)
def test_constraints_that_deltafast_stores_hold_in_deltalake(tmp_path, name):
    quoted = '"' + name.replace('"', '""') + '"'
    rows = pa.table({name: [1, 2], "other": ["a", "b"]})
    write_deltalake(tmp_path, rows)
    DeltaTable(tmp_path).alter.add_constraint({"c": f"{quoted} >= 0 AND other <> '{name}'"})
    deltalake.write_deltalake(tmp_path, rows, mode="append")
    for bad in (rows.set_column(0, name, pa.array([1, -1])), rows.set_column(1, "other", pa.array(["a", name]))):
        with pytest.raises(ConstraintViolatedError):
            write_deltalake(tmp_path, bad, mode="append")
        with pytest.raises(Exception, match=r"Invariant|constraint|invalid data|Invalid data"):
            deltalake.write_deltalake(tmp_path, bad, mode="append")


# --- new columns


def new_columns(handle):
    """Changes that give the table a column `gone`."""
    rows = {"name": ["b"], "gone": ["x"]}
    merge = handle.merge(rows, "target.name = source.name", "source", "target", merge_schema=True)
    yield lambda: handle.alter.add_columns(Field("gone", "string"))
    yield lambda: handle.alter.replace_columns([*handle.schema().fields, Field("gone", "string")])
    yield lambda: handle.alter.rename_column("Low", "gone")
    yield lambda: write_deltalake(handle, rows, mode="append", schema_mode="merge")
    yield lambda: write_deltalake(handle, rows, mode="overwrite", schema_mode="merge")
    yield lambda: handle.append(rows, schema_mode="merge")
    yield lambda: merge.when_not_matched_insert_all().execute()


STORED = [
    ({"checks": {"c": 'name <> "gone"'}}, "the constraint `c`"),
    ({"checks": {"c": "name <> 'x' AND \"gone\" <> name"}}, "the constraint `c`"),
    ({"generated": {"deleted": 'concat("gone", name)'}}, "the generated column `deleted`"),
]


@pytest.mark.parametrize(("stored", "what"), STORED, ids=str)
def test_no_column_gets_a_name_in_double_quotes_of_a_stored_expression(tmp_path, stored, what):
    write_deltalake(tmp_path, ROWS, configuration={"delta.columnMapping.mode": "name"})
    handle = DeltaTable(tmp_path)
    log = sorted((tmp_path / "_delta_log").glob("*.json"))
    protocol = next(json.loads(line) for line in log[0].read_text().splitlines() if "protocol" in line)
    handle = store(tmp_path, **stored)
    text = (tmp_path / "_delta_log" / f"{1:020}.json").read_text()
    features = protocol["protocol"].get("writerFeatures")
    if features is not None:
        protocol["protocol"]["writerFeatures"] = [*features, "checkConstraints", "generatedColumns"]
    else:
        protocol["protocol"]["minWriterVersion"] = max(5, protocol["protocol"]["minWriterVersion"])
    lines = [json.dumps(protocol) if "protocol" in line else line for line in text.splitlines()]
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines) + "\n")
    handle = DeltaTable(tmp_path)
    for change in new_columns(handle):
        with pytest.raises(DeltaError) as caught:
            change()
        # A column that a write adds also gives the expression of a generated column two readings.
        assert what in str(caught.value)
        assert "`gone` stands in double quotes" in str(caught.value) or "as in delta-rs" in str(caught.value)
        assert DeltaTable(tmp_path).version() == 1
    handle.alter.add_columns(Field("Gone", "string"))
    if "checks" in stored:
        handle.alter.drop_constraint("c")
        handle.alter.rename_column("Gone", "gone")


# --- replacements by keys


@pytest.mark.parametrize("condition", ['target."ID" = source.id', 'target.id = source."Id"', '"T".id = s.id'])
def test_keys_of_replaced_rows_are_found_as_they_are_spelt(tmp_path, condition):
    write_deltalake(tmp_path, {"id": [1, 2], "v": ["a", "b"]})
    with pytest.raises(InvalidArgumentError):
        write_deltalake(tmp_path, {"id": [1], "v": ["c"]}, mode="overwrite", replace_on=condition)
    assert DeltaTable(tmp_path).version() == 0
    write_deltalake(tmp_path, {"id": [1], "v": ["c"]}, mode="overwrite", replace_on='target."id" = source."id"')
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["v"].to_pylist()) == ["b", "c"]
