"""Changes of what a table is: columns, constraints, properties, features."""

import json
import re

import deltalake
import pyarrow as pa
import pytest

from deltafast import DeltaTable, Field, Schema, StructType, TableFeatures, write_deltalake
from deltafast.exceptions import (
    CommitFailedError,
    ConcurrentAppendError,
    ConstraintViolatedError,
    DeltaProtocolError,
    InvalidArgumentError,
    MetadataChangedError,
)

ROWS = pa.table({"id": [1, 2, None], "s": [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}], "p": ["u", "v", "u"]})
NAMES = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def table(tmp_path):
    write_deltalake(tmp_path, ROWS, partition_by="p")
    return DeltaTable(tmp_path)


@pytest.fixture
def mapped(tmp_path):
    write_deltalake(tmp_path, ROWS, partition_by="p", configuration=NAMES)
    return DeltaTable(tmp_path)


def names(table):
    return [field.name for field in table.schema().fields]


def info(table):
    return table.history(1)[0]


def rows(table):
    return sorted(table.to_pyarrow_table().to_pylist(), key=repr)


def test_columns_are_added_at_the_end(table):
    table.alter.add_columns([Field("n", "integer", metadata={"comment": "c"}), Field("d", "date")])
    assert (table.version(), names(table)) == (1, ["id", "s", "p", "n", "d"])
    assert table.schema().fields[3].metadata == {"comment": "c"}
    table.alter.add_columns(Field("S", StructType([Field("z", "double")])))
    assert [field.name for field in table.schema().fields[1].type.fields] == ["x", "y", "z"]
    assert {row["n"] for row in rows(table)} == {None}
    assert deltalake.DeltaTable(table.table_uri).schema().to_json() is not None
    assert info(table)["operation"] == "ADD COLUMNS"
    for field, text in [
        (Field("ID", "long"), "the table has a column `ID` already"),
        (Field("q", "long", nullable=False), "a new column must be nullable"),
        (Field("q", "long", metadata={"CURRENT_DEFAULT": "1"}), "cannot be added with `CURRENT_DEFAULT`"),
        (Field("q", "long", metadata={"delta.generationExpression": "id"}), "New columns cannot be a generated column"),
        (Field("s", StructType([Field("x", "long")])), "the table has a column `s` already"),
    ]:
        with pytest.raises(InvalidArgumentError, match=re.escape(text)):
            table.alter.add_columns(field)
    assert table.version() == 2


def test_columns_are_dropped_and_renamed_where_they_are_mapped(mapped):
    before = rows(mapped)
    mapped.alter.rename_column("s.x", "new x")
    mapped.alter.rename_column("id", "key")
    mapped.alter.rename_column("p", "part")
    assert mapped.metadata().partition_columns == ["part"]
    assert [row["key"] for row in rows(mapped)] == [row["id"] for row in before]
    mapped.alter.drop_columns(["s.y", "key"])
    assert names(mapped) == ["s", "part"]
    assert info(mapped)["operationParameters"] == {"columns": '["s.y","key"]'}
    assert sorted(row["s"]["new x"] for row in rows(mapped) if row["s"]) == [1, 3]
    # A new column of an old name is another column.
    mapped.alter.add_columns(Field("key", "string"))
    assert {row["key"] for row in rows(mapped)} == {None}
    ids = [f.metadata["delta.columnMapping.id"] for f in mapped.schema().fields]
    assert ids[2] > max(ids[:2])
    for change, text in [
        (lambda: mapped.alter.drop_columns("part"), "the table's partitioning uses it"),
        (lambda: mapped.alter.drop_columns("nothing"), "the table has no column `nothing`"),
        (lambda: mapped.alter.drop_columns("s.new x"), "a struct must keep at least one field"),
        (lambda: mapped.alter.rename_column("key", "S"), "occurs twice"),
    ]:
        with pytest.raises(InvalidArgumentError, match=re.escape(text)):
            change()
    write_deltalake(mapped, pa.table({"key": ["k"], "part": ["z"]}), mode="append")
    assert mapped.count() == 4


def test_without_mapping_columns_stay(table):
    for change, text in [
        (lambda: table.alter.drop_columns("id"), "columns can be dropped where the table maps columns"),
        (lambda: table.alter.rename_column("id", "key"), "set `delta.columnMapping.mode` to `name` first"),
    ]:
        with pytest.raises(InvalidArgumentError, match=re.escape(text)):
            change()
    before = rows(table)
    table.alter.set_table_properties(NAMES)
    table.alter.rename_column("id", "key")
    assert [row["key"] for row in rows(table)] == [row["id"] for row in before]


def test_what_rules_read_is_protected(tmp_path):
    generated = {"delta.generationExpression": "a + 1"}
    fields = [Field("a", "long"), Field("b", "long"), Field("g", "long", metadata=generated), Field("c", "integer")]
    configuration = {**NAMES, "delta.constraints.k": "b > 0", "delta.enableTypeWidening": "true"}
    table = DeltaTable.create(tmp_path, Schema(fields), configuration=configuration, cluster_by="c")
    for change, text in [
        (lambda: table.alter.drop_columns("a"), "`a` cannot be dropped: the generated column `g` uses it"),
        (lambda: table.alter.rename_column("b", "x"), "`b` cannot be renamed: the constraint `k` uses it"),
        (lambda: table.alter.drop_columns("c"), "`c` cannot be dropped: the table's clustering uses it"),
    ]:
        with pytest.raises(InvalidArgumentError, match=re.escape(text)):
            change()
    table.alter.drop_constraint("K")
    table.alter.drop_columns("b")
    table.alter.cluster_by(None)
    table.alter.drop_columns("c")
    assert names(table) == ["a", "g"]
    assert table.detail()["clusteringColumns"] == []
    table.alter.cluster_by(["a"])
    assert table.detail()["clusteringColumns"] == ["a"]


def test_types_widen(tmp_path):
    write_deltalake(tmp_path, pa.table({"i": pa.array([1], pa.int32()), "l": pa.array([[1]], pa.list_(pa.int16()))}))
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"set `delta.enableTypeWidening` to `true` first"):
        table.alter.set_column_type("i", "long")
    table.alter.set_table_properties({"delta.enableTypeWidening": "true"})
    with pytest.raises(InvalidArgumentError, match="the type integer cannot become string"):
        table.alter.set_column_type("i", "string")
    table.alter.set_column_type("i", "long")
    table.alter.set_column_type("i", "long")
    assert table.version() == 2
    assert table.schema().fields[0].metadata == {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    write_deltalake(table, pa.table({"i": [2**40]}), mode="append")
    assert sorted(row["i"] for row in rows(table)) == [1, 2**40]


def test_elements_keys_and_values_widen(tmp_path):
    data = pa.table(
        {
            "l": pa.array([[1]], pa.list_(pa.int32())),
            "m": pa.array([[(1, [2])]], pa.map_(pa.int16(), pa.list_(pa.int8()))),
        }
    )
    write_deltalake(tmp_path, data, configuration={"delta.enableTypeWidening": "true"})
    table = DeltaTable(tmp_path)
    for column, kind in (("l.element", "long"), ("m.key", "integer"), ("m.value.element", "short")):
        table.alter.set_column_type(column, kind)
    changes = [json.loads(field.to_json())["metadata"]["delta.typeChanges"] for field in table.schema().fields]
    assert changes == [
        [{"fromType": "integer", "toType": "long", "fieldPath": "element"}],
        [
            {"fromType": "short", "toType": "integer", "fieldPath": "key"},
            {"fromType": "byte", "toType": "short", "fieldPath": "value.element"},
        ],
    ]
    wide = pa.table(
        {"l": [[1 << 40]], "m": pa.array([[(1 << 20, [1 << 10])]], pa.map_(pa.int32(), pa.list_(pa.int16())))}
    )
    write_deltalake(table, wide, mode="append")
    assert rows(table) == [{"l": [1 << 40], "m": [(1 << 20, [1 << 10])]}, {"l": [1], "m": [(1, [2])]}]
    table.alter.drop_column_not_null("l.element")
    for change, text in (
        (lambda: table.alter.set_column_type("l.element", "string"), "the type long cannot become string"),
        (lambda: table.alter.set_column_metadata("l.element", {"comment": "c"}), "elements of a list cannot have"),
        (lambda: table.alter.move_column("l.element"), "only columns and fields of structs have a place"),
        (lambda: table.alter.drop_column_not_null("m.key"), "the keys of a map are never null"),
        (lambda: table.alter.set_column_type("l.item", "string"), "no column `l.item`"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            change()


def test_columns_are_replaced(mapped):
    fields = [
        Field("s", StructType([Field("y", "string", metadata={"comment": "c"})])),
        Field("P", "string"),
        Field("id", "long", metadata={"comment": "key", "other": 1}),
    ]
    before = {field.name: field.metadata for field in mapped.schema().fields}
    mapped.alter.replace_columns(fields)
    assert names(mapped) == ["s", "p", "id"]
    assert [field.name for field in mapped.schema().fields[0].type.fields] == ["y"]
    assert mapped.schema().fields[2].metadata == before["id"] | {"comment": "key"}
    assert rows(mapped) == sorted(
        [
            {"s": {"y": "a"}, "p": "u", "id": 1},
            {"s": None, "p": "v", "id": 2},
            {"s": {"y": None}, "p": "u", "id": None},
        ],
        key=repr,
    )
    assert info(mapped)["operation"] == "REPLACE COLUMNS"
    mapped.alter.replace_columns(Schema([*fields, Field("n", "date")]))
    assert names(mapped) == ["s", "p", "id", "n"]
    mapped.alter.replace_columns(fields)
    assert names(mapped) == ["s", "p", "id"]
    version = mapped.version()
    for given, text in (
        (fields[2:], "`p`.*partitioning uses it"),
        ([*fields[:2], Field("key", "long")], "drop `id` and add `key`"),
        ([*fields[:2], Field("id", "string")], "change the type of `id` from long to string"),
        ([*fields, Field("v", "long", metadata={"delta.generationExpression": "1"})], "cannot be a generated column"),
        ([*fields, Field("S", "long")], "the field name `S` occurs twice"),
        ([], "at least one column"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            mapped.alter.replace_columns(given)
    assert mapped.version() == version


def test_dropped_columns_need_mapping_where_columns_are_replaced(table):
    with pytest.raises(InvalidArgumentError, match="cannot drop `s` where the table does not map columns"):
        table.alter.replace_columns([Field("id", "long"), Field("p", "string")])
    assert table.version() == 0


def test_strings_get_longer(tmp_path):
    length = "__CHAR_VARCHAR_TYPE_STRING"
    schema = Schema(
        [Field("v", "string", metadata={length: "varchar(2)"}), Field("c", "string", metadata={length: "char(3)"})]
    )
    table = DeltaTable.create(tmp_path, schema)
    table.alter.set_column_type("v", "string", length="varchar(4)")
    write_deltalake(table, pa.table({"v": ["abcd"], "c": ["abc"]}), mode="append")
    for column, kind, text in (
        ("v", "varchar(3)", r"varchar\(4\) cannot become varchar\(3\): existing values may be longer"),
        ("v", "char(4)", r"cannot become char\(4\)"),
        ("c", "varchar(2)", r"char\(3\) cannot become varchar\(2\)"),
        ("v", "nonsense", "cannot become nonsense"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            table.alter.set_column_type(column, "string", length=kind)
    table.alter.set_column_type("v", "string")
    assert table.schema().fields[0].metadata == {}
    with pytest.raises(InvalidArgumentError, match="string cannot become varchar"):
        table.alter.set_column_type("v", "string", length="varchar(9)")


def test_not_null_comes_and_goes(table):
    with pytest.raises(ConstraintViolatedError, match="the column `id` is null in a row that is there"):
        table.alter.set_column_not_null("id")
    table.alter.set_column_not_null("p")
    assert not table.schema().fields[2].nullable
    with pytest.raises(ConstraintViolatedError):
        write_deltalake(table, pa.table({"id": [1], "p": pa.array([None], pa.string())}), mode="append")
    table.alter.drop_column_not_null("p")
    assert table.schema().fields[2].nullable


def test_column_metadata_is_set_and_removed(table):
    table.alter.set_column_metadata("id", {"comment": "what", "x": 1})
    table.alter.set_column_metadata("s.x", {"comment": "inner"})
    table.alter.set_column_metadata("id", {"x": None})
    assert table.schema().fields[0].metadata == {"comment": "what"}
    assert table.schema().fields[1].type.fields[0].metadata == {"comment": "inner"}
    with pytest.raises(
        InvalidArgumentError,
        match=re.escape("the key `delta.columnMapping.id` of a column's metadata is the protocol's"),
    ):
        table.alter.set_column_metadata("id", {"delta.columnMapping.id": 4})
    with pytest.raises(InvalidArgumentError, match="the default of `id` cannot be evaluated"):
        table.alter.set_column_metadata("id", {"CURRENT_DEFAULT": "nothing"})
    table.alter.set_column_metadata("id", {"CURRENT_DEFAULT": "40 + 2"})
    assert "allowColumnDefaults" in table.protocol().writer_features
    write_deltalake(table, pa.table({"p": ["new"]}), mode="append")
    assert [row["id"] for row in rows(table) if row["p"] == "new"] == [42]


def test_constraints_hold_for_rows_that_are_there(table):
    with pytest.raises(ConstraintViolatedError) as caught:
        table.alter.add_constraint({"c": "id < 2 OR id IS NULL"})
    assert (
        str(caught.value) == "the constraint `c` (id < 2 OR id IS NULL) does not hold for a row that is there: id = 2"
    )
    with pytest.raises(ConstraintViolatedError, match="id = NULL"):
        table.alter.add_constraint({"c": "id < 5"})
    table.alter.add_constraint({"c": "id < 5 OR id IS NULL", "d": "p <> 'w'"})
    assert table.metadata().configuration == {
        "delta.constraints.c": "id < 5 OR id IS NULL",
        "delta.constraints.d": "p <> 'w'",
    }
    assert table.protocol().min_writer_version == 3
    assert deltalake.DeltaTable(table.table_uri).metadata().configuration == table.metadata().configuration
    with pytest.raises(InvalidArgumentError, match="the constraint `C` is there already"):
        table.alter.add_constraint({"C": "true"})
    with pytest.raises(ConstraintViolatedError):
        write_deltalake(table, pa.table({"id": [5], "p": ["u"]}), mode="append")
    table.alter.drop_constraint("d")
    assert info(table)["operation"] == "DROP CONSTRAINT"
    with pytest.raises(InvalidArgumentError, match="the table has no constraint `d`"):
        table.alter.drop_constraint("d")
    table.alter.drop_constraint("d", raise_if_not_exists=False)
    with pytest.raises(InvalidArgumentError, match="the constraint `bad` cannot be evaluated"):
        table.alter.add_constraint({"bad": "nothing > 1"})
    with pytest.raises(InvalidArgumentError, match="add the constraint"):
        table.alter.set_table_properties({"delta.constraints.e": "id > 0"})


def test_a_constraint_and_an_append_do_not_pass_each_other(table):
    stale = DeltaTable(table.table_uri)
    write_deltalake(table, pa.table({"id": [100], "p": ["u"]}), mode="append")
    with pytest.raises(ConcurrentAppendError):
        stale.alter.add_constraint({"c": "id < 50 OR id IS NULL"})
    one, two = DeltaTable(table.table_uri), DeltaTable(table.table_uri)
    one.alter.set_table_properties({"a": "1"})
    with pytest.raises(MetadataChangedError):
        two.alter.set_table_properties({"b": "1"})


def test_properties_are_set_and_unset(table):
    table.alter.set_table_properties({"k": "v", "delta.appendOnly": "true", "delta.checkpointinterval": "7"})
    assert table.metadata().configuration == {"k": "v", "delta.appendOnly": "true", "delta.checkpointInterval": "7"}
    assert json.loads(info(table)["operationParameters"]["properties"])["k"] == "v"
    version = table.version()
    table.alter.set_table_properties({"k": "v"})
    assert table.version() == version
    table.alter.unset_table_properties(["k", "delta.appendOnly"])
    assert table.metadata().configuration == {"delta.checkpointInterval": "7"}
    for change, text in [
        (lambda: table.alter.set_table_properties({"delta.chekpoint": "1"}), "no table property `delta.chekpoint`"),
        (lambda: table.alter.set_table_properties({"delta.columnMapping.mode": "id"}), "cannot go from `none` to `id`"),
        (lambda: table.alter.unset_table_properties("k"), "no property `k` to unset"),
        (
            lambda: table.alter.set_table_properties({"delta.enableIcebergCompatV2": "true"}),
            "needs `delta.columnMapping.mode` to be `name`",
        ),
    ]:
        with pytest.raises(InvalidArgumentError, match=re.escape(text)):
            change()
    table.alter.unset_table_properties("k", raise_if_not_exists=False)
    table.alter.set_table_properties({"delta.future": "1"}, raise_if_not_exists=False)
    assert table.metadata().configuration["delta.future"] == "1"


def test_names_and_descriptions(table):
    table.alter.set_table_name("n")
    table.alter.set_table_description("d")
    assert (table.metadata().name, table.metadata().description) == ("n", "d")


def test_in_commit_timestamps_are_switched_on_and_off(table):
    table.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"})
    configuration = table.metadata().configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    assert int(configuration["delta.inCommitTimestampEnablementTimestamp"]) == int(
        table.timestamp().timestamp() * 1000 + 0.5
    )
    table.alter.drop_feature("inCommitTimestamp")
    assert [entry["operation"] for entry in table.history(2)] == ["DROP FEATURE", "UNSET TBLPROPERTIES"]
    assert table.metadata().configuration == {"delta.enableInCommitTimestamps": "false"}
    assert (table.protocol().min_writer_version, table.protocol().writer_features) == (2, None)


def test_features_come_and_go(table):
    with pytest.raises(InvalidArgumentError, match="allow_protocol_versions_increase=True"):
        table.alter.add_feature(TableFeatures.DeletionVectors)
    table.alter.add_feature([TableFeatures.DeletionVectors, "rowTracking"], allow_protocol_versions_increase=True)
    assert table.protocol().reader_features == ["deletionVectors"]
    assert {"rowTracking", "domainMetadata"} <= set(table.protocol().writer_features)
    assert info(table)["operationParameters"] == {"name": '["deletionVectors","rowTracking"]'}
    with pytest.raises(
        InvalidArgumentError, match="`domainMetadata` cannot be dropped while the table has `rowTracking`"
    ):
        table.alter.drop_feature("domainMetadata")
    with pytest.raises(DeltaProtocolError, match="`invariants` cannot be dropped") as caught:
        table.alter.drop_feature(TableFeatures.Invariants)
    assert caught.value.feature == "invariants"
    with pytest.raises(DeltaProtocolError, match="no table feature `nothing`"):
        table.alter.add_feature("nothing", allow_protocol_versions_increase=True)
    table.alter.add_constraint({"c": "true"})
    with pytest.raises(
        InvalidArgumentError,
        match=r"the feature `checkConstraints` is in use: there are the constraints `c`; drop them first",
    ):
        table.alter.drop_feature("checkConstraints")
    table.alter.drop_constraint("c")
    table.alter.drop_feature("checkConstraints")
    assert "checkConstraints" not in table.protocol().writer_features
    with pytest.raises(InvalidArgumentError, match="does not have the feature `clustering`"):
        table.alter.drop_feature("clustering")


def test_a_feature_that_is_there_makes_a_version(table):
    before, version = table.protocol(), table.version()
    table.alter.add_feature(TableFeatures.AppendOnly)
    assert (table.version(), table.protocol()) == (version + 1, before)
    assert info(table)["operation"] == "ADD FEATURE"
    assert info(table)["operationParameters"] == {"name": '["appendOnly"]'}


def test_domains_of_the_users_are_kept(table, tmp_path):
    with pytest.raises(DeltaProtocolError, match="domainMetadata"):
        table.alter.set_domain_metadata("mine", "{}")
    table.alter.add_feature("domainMetadata", allow_protocol_versions_increase=True)
    before = table.version()
    table.alter.set_domain_metadata("mine", '{"a": "ü"}')
    stale = DeltaTable(tmp_path)
    table.alter.set_domain_metadata("mine", "two")
    table.alter.set_domain_metadata("yours", "")
    assert table.domain_metadata() == DeltaTable(tmp_path).domain_metadata() == {"mine": "two", "yours": ""}
    assert table.version() == before + 3
    with pytest.raises(CommitFailedError, match="mine"):
        stale.alter.set_domain_metadata("mine", "three")
    stale = DeltaTable(tmp_path)
    table.alter.remove_domain_metadata("mine")
    stale.alter.set_domain_metadata("theirs", "x")
    table = DeltaTable(tmp_path)
    assert table.domain_metadata() == {"yours": "", "theirs": "x"}
    version = table.version()
    table.alter.remove_domain_metadata("never there")
    assert table.version() == version
    assert info(table)["operation"] == "SET DOMAIN METADATA"
    for act in (
        lambda: table.alter.set_domain_metadata("delta.x", ""),
        lambda: table.alter.remove_domain_metadata("delta.x"),
    ):
        with pytest.raises(InvalidArgumentError, match="protocol"):
            act()


class TestStatisticsColumns:
    KEY = "delta.dataSkippingStatsColumns"

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("nope", "`nope`, which is not in the schema"),
            ("id,s.nope", "`s.nope`, which is not in the schema"),
            ("p", "`p`, a partition column"),
            ("id,id", "`id`, more than once"),
            ("s,s.x", "`s.x`, more than once"),
            ("l", "`l`, a column of type array<long>"),
        ],
    )
    def test_they_are_checked_when_they_are_set(self, tmp_path, value, message):
        rows = ROWS.append_column("l", pa.array([[1], [2], [3]]))
        for place, write in (
            ("new", lambda path: write_deltalake(path, rows, partition_by="p", configuration={self.KEY: value})),
            ("old", lambda path: DeltaTable(path).alter.set_table_properties({self.KEY: value})),
        ):
            path = tmp_path / place
            if place == "old":
                write_deltalake(path, rows, partition_by="p")
            with pytest.raises(InvalidArgumentError, match=re.escape(message)):
                write(path)

    def test_columns_that_are_there_are_taken(self, table):
        for value in ("", "id", "ID", "s", "s.x", "S.X,id"):
            table.alter.set_table_properties({self.KEY: value})
            assert table.metadata().configuration[self.KEY] == value

    def test_a_schema_without_them_is_refused(self, tmp_path):
        write_deltalake(tmp_path, ROWS, configuration={self.KEY: "id,s.x"})
        other = pa.table({"other": [1]})
        with pytest.raises(InvalidArgumentError, match="`id`, which is not in the schema"):
            write_deltalake(tmp_path, other, mode="overwrite", schema_mode="overwrite")
        assert DeltaTable(tmp_path).version() == 0

    def test_they_follow_dropped_and_renamed_columns(self, mapped):
        mapped.alter.set_table_properties({self.KEY: "ID,s.x,S.y"})
        mapped.alter.rename_column("id", "key")
        assert mapped.metadata().configuration[self.KEY] == "key,s.x,S.y"
        mapped.alter.drop_columns(["s.x"])
        assert mapped.metadata().configuration[self.KEY] == "key,S.y"
        mapped.alter.drop_columns(["s"])
        assert mapped.metadata().configuration[self.KEY] == "key"
        write_deltalake(mapped, pa.table({"key": [7], "p": ["u"]}), mode="append")
        mapped.alter.add_columns([Field("more", "long")])
        mapped.alter.drop_columns(["key"])
        assert mapped.metadata().configuration[self.KEY] == ""

    def test_an_older_list_that_names_nothing_stops_no_write(self, tmp_path):
        write_deltalake(tmp_path, ROWS)
        log = tmp_path / "_delta_log" / f"{1:020}.json"
        first = (tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
        metadata = next(json.loads(line) for line in first if "metaData" in line)
        metadata["metaData"]["configuration"] = {self.KEY: "nope"}
        log.write_text(json.dumps(metadata) + "\n")
        write_deltalake(tmp_path, ROWS, mode="append")
        table = DeltaTable(tmp_path)
        table.alter.set_table_properties({"a": "b"})
        with pytest.raises(InvalidArgumentError, match="`nope`"):
            table.alter.add_columns([Field("more", "long")])
        table.alter.set_table_properties({self.KEY: "id"})
        table.alter.add_columns([Field("more", "long")])
