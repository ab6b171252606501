"""Column Mapping: logical names for people, physical names and ids for files."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import deltafast
from tablekit import log

from . import helpers


def _column(name: str, kind: Any, identifier: int, physical: str) -> tuple[str, Any, dict[str, Any]]:
    return name, kind, {"delta.columnMapping.id": identifier, "delta.columnMapping.physicalName": physical}


def _field(name: str, kind: Any, identifier: int, physical: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": _column(name, kind, identifier, physical)[2]}


COLUMNS = [_column("id", "long", 1, "col-1"), _column("name", "string", 2, "col-2")]


def _metadata(mode: str, columns: Any = COLUMNS, **changes: Any) -> log.Action:
    configuration = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"}
    return log.metadata(columns, configuration=configuration, **changes)


def _with_id(name: str, kind: pa.DataType, identifier: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(identifier)})


def test_name_mode_finds_columns_by_physical_name(table: log.Table) -> None:
    add = table.data("a.parquet", {"col-1": [1, 2], "col-2": ["x", "y"], "id": [8, 9]})
    table.commit(0, log.protocol(2, 5), _metadata("name"), add)
    assert helpers.read(table).sort_by("id").to_pydict() == {"id": [1, 2], "name": ["x", "y"]}


def test_id_mode_finds_columns_by_field_id(table: log.Table) -> None:
    """Names in the file do not matter: they are swapped here."""
    schema = pa.schema([_with_id("col-2", pa.int64(), 1), _with_id("col-1", pa.string(), 2)])
    add = table.data("a.parquet", pa.table([[1, 2], ["x", "y"]], schema=schema))
    table.commit(0, log.protocol(2, 5), _metadata("id"), add)
    assert helpers.read(table).sort_by("id").to_pydict() == {"id": [1, 2], "name": ["x", "y"]}


def test_a_field_id_that_no_column_of_the_file_has_is_null(table: log.Table) -> None:
    schema = pa.schema([_with_id("anything", pa.int64(), 1)])
    add = table.data("a.parquet", pa.table([[1, 2]], schema=schema))
    table.commit(0, log.protocol(2, 5), _metadata("id"), add)
    assert helpers.column(table, "name") == [None, None]


def test_mapping_by_table_features(table: log.Table) -> None:
    add = table.data("a.parquet", {"col-1": [1], "col-2": ["x"]})
    table.commit(0, log.protocol(features=["columnMapping"]), _metadata("name"), add)
    assert helpers.ids(table) == [1]


def test_supported_is_not_active(table: log.Table) -> None:
    """The mode on a (1, 2) table is ignored: files are read by the names of the schema."""
    add = table.data("a.parquet", {"id": [1], "name": ["x"], "col-1": [7]})
    table.commit(0, log.protocol(1, 2), _metadata("name"), add)
    assert helpers.read(table).to_pydict() == {"id": [1], "name": ["x"]}


def test_a_supported_feature_without_the_property_maps_nothing(table: log.Table) -> None:
    add = table.data("a.parquet", {"id": [1], "name": ["x"]})
    table.commit(0, log.protocol(features=["columnMapping"]), log.metadata(COLUMNS), add)
    assert helpers.read(table).to_pydict() == {"id": [1], "name": ["x"]}


def test_an_unknown_mode_is_refused_by_name(table: log.Table) -> None:
    table.commit(0, log.protocol(2, 5), _metadata("sideways"))
    with pytest.raises(deltafast.exceptions.DeltaError, match="sideways"):
        helpers.read(table)


def test_a_renamed_column_keeps_its_data(table: log.Table) -> None:
    add = table.data("a.parquet", {"col-1": [1], "col-2": ["x"]})
    table.commit(0, log.protocol(2, 5), _metadata("name"), add)
    table.commit(1, _metadata("name", [COLUMNS[0], _column("title", "string", 2, "col-2")]))
    assert helpers.read(table).to_pydict() == {"id": [1], "title": ["x"]}
    assert helpers.read(table, version=0).to_pydict() == {"id": [1], "name": ["x"]}


def test_a_dropped_and_added_column_does_not_show_old_data(table: log.Table) -> None:
    add = table.data("a.parquet", {"col-1": [1], "col-2": ["x"]})
    table.commit(0, log.protocol(2, 5), _metadata("name"), add)
    table.commit(1, _metadata("name", [COLUMNS[0], _column("name", "string", 3, "col-3")]))
    assert helpers.read(table).to_pydict() == {"id": [1], "name": [None]}


def _point(first: int) -> dict[str, Any]:
    """Return a struct of `x` and `y`; every nested field of a table has an id of its own."""
    fields = [_field("x", "long", first, f"col-{first}"), _field("y", "string", first + 1, f"col-{first + 1}")]
    return {"type": "struct", "fields": fields}


def _stored(first: int) -> tuple[pa.DataType, dict[str, Any]]:
    """Return how a file holds such a struct, its fields in another order, and one value."""
    kind = pa.struct([(f"col-{first + 1}", pa.string()), (f"col-{first}", pa.int64())])
    return kind, {f"col-{first}": 1, f"col-{first + 1}": "a"}


def test_nested_fields_are_mapped(table: log.Table) -> None:
    elements = {"type": "array", "elementType": _point(13), "containsNull": True}
    entries = {"type": "map", "keyType": "string", "valueType": _point(15), "valueContainsNull": True}
    columns = [
        COLUMNS[0],
        _column("s", _point(11), 5, "col-5"),
        _column("l", elements, 6, "col-6"),
        _column("m", entries, 7, "col-7"),
    ]
    (s, one), (e, two), (v, three) = _stored(11), _stored(13), _stored(15)
    data = pa.table(
        {
            "col-1": pa.array([1], pa.int64()),
            "col-5": pa.array([one], s),
            "col-6": pa.array([[two, None]], pa.list_(e)),
            "col-7": pa.array([[("k", three)]], pa.map_(pa.string(), v)),
        }
    )
    table.commit(0, log.protocol(2, 5), _metadata("name", columns), table.data("a.parquet", data))
    (row,) = helpers.read(table).to_pylist()
    assert row == {"id": 1, "s": {"x": 1, "y": "a"}, "l": [{"x": 1, "y": "a"}, None], "m": [("k", {"x": 1, "y": "a"})]}


def test_partition_values_are_keyed_by_physical_name(table: log.Table) -> None:
    adds = [table.data(f"{i}.parquet", {"col-1": [i]}, add_partitionValues={"col-2": f"p{i}"}) for i in range(3)]
    table.commit(0, log.protocol(2, 5), _metadata("name", partitionColumns=["name"]), *adds)
    assert helpers.column(table, "name") == ["p0", "p1", "p2"]
    assert helpers.planned(table, "name = 'p1'") == ["1.parquet"]
    adds = helpers.open_table(table).get_add_actions(flatten=True)
    assert sorted(adds.column("partition.name").to_pylist()) == ["p0", "p1", "p2"]


def test_statistics_are_keyed_by_physical_name(table: log.Table) -> None:
    adds = []
    for i in range(3):
        stats = {
            "numRecords": 1,
            "minValues": {"col-1": i, "id": 99},
            "maxValues": {"col-1": i, "id": 99},
            "nullCount": {"col-1": 0},
        }
        adds.append(table.data(f"{i}.parquet", {"col-1": [i], "col-2": ["x"]}, add_stats=json.dumps(stats)))
    table.commit(0, log.protocol(2, 5), _metadata("name"), *adds)
    assert helpers.planned(table, "id = 1") == ["1.parquet"]
    assert helpers.filtered(table, "id = 1") == [1]
    flat = helpers.open_table(table).get_add_actions(flatten=True)
    assert sorted(flat.column("min.id").to_pylist()) == [0, 1, 2]


def test_names_may_hold_any_letters(table: log.Table) -> None:
    columns = [COLUMNS[0], _column("a b;,(){}=\n.x", "string", 2, "col-2")]
    table.commit(
        0, log.protocol(2, 5), _metadata("name", columns), table.data("a.parquet", {"col-1": [1], "col-2": ["x"]})
    )
    assert helpers.column(table, "a b;,(){}=\n.x") == ["x"]


def test_the_schema_keeps_its_mapping(table: log.Table) -> None:
    table.commit(0, log.protocol(2, 5), _metadata("name"))
    fields = json.loads(helpers.open_table(table).schema().to_json())["fields"]
    assert fields[0]["metadata"] == {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}


@pytest.mark.parametrize("key", ["delta.columnMapping.nested.ids", "parquet.field.nested.ids"])
def test_nested_ids_under_either_name_do_not_disturb(table: log.Table, key: str) -> None:
    kind = {"type": "array", "elementType": "long", "containsNull": True}
    column = _column("l", kind, 2, "col-2")
    column[2][key] = {"col-2.element": 5}
    data = pa.table({"col-1": [1], "col-2": pa.array([[1, 2]])})
    table.commit(0, log.protocol(2, 5), _metadata("name", [COLUMNS[0], column]), table.data("a.parquet", data))
    assert helpers.column(table, "l") == [[1, 2]]
