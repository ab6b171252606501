"""Deletion Vectors: where they lie, what they say, which rows are gone."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import deltafast
from tablekit import dv, log

from . import helpers

EXAMPLE = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
ROWS = [3, 4, 7, 11, 18, 29]


def _with(table: log.Table, vector: dict[str, Any], rows: int = 30, **options: Any) -> None:
    """Write one file of so many rows with a deletion vector."""
    data = {"id": pa.array(range(rows), pa.int64()), "name": pa.array(["x"] * rows)}
    add = table.data("a.parquet", data, add_deletionVector=vector, **options)
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata(), add)


def _left(gone: list[int], rows: int = 30) -> list[int]:
    return [i for i in range(rows) if i not in gone]


def test_the_name_ab_and_z85_of_the_protocols_example(table: log.Table) -> None:
    """`ab^-aqEH.-t@S}K{vb[*k^` is `ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin`, offset 4."""
    data = dv.treemap(ROWS)
    file = table.folder / "ab" / f"deletion_vector_{EXAMPLE}.bin"
    file.parent.mkdir()
    file.write_bytes(b"\x01\x00\x00\x00" + dv.frame(data))
    descriptor = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": len(data),
        "cardinality": 6,
    }
    _with(table, descriptor)
    assert helpers.ids(table) == _left(ROWS)


def test_the_inline_example_of_the_protocol(table: log.Table) -> None:
    """Rows 3, 4, 7, 11, 18 and 29 are gone; the example's bytes are of an older layout than the text around it."""
    text = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    _with(table, {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 40, "cardinality": 6})
    assert helpers.ids(table) == _left(ROWS)


def test_the_inline_example_in_the_present_layout(table: log.Table) -> None:
    vector = dv.inline(ROWS)
    assert vector["pathOrInlineDv"] == "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    _with(table, vector)
    assert helpers.ids(table) == _left(ROWS)


def test_a_vector_by_absolute_path(table: log.Table) -> None:
    _with(table, table.vector([0, 5], storage="p"))
    assert helpers.ids(table) == _left([0, 5])


def test_a_vector_without_offset_starts_at_the_framing(table: log.Table) -> None:
    """Without an offset the vector starts after the version byte."""
    _with(table, table.vector([0, 5], offset=None))
    assert helpers.ids(table) == _left([0, 5])


def test_many_vectors_in_one_file(table: log.Table) -> None:
    identifier, content, adds = uuid.uuid4(), b"\x01", []
    for i in range(4):
        data = dv.treemap([i])
        vector = {
            "storageType": "u",
            "pathOrInlineDv": dv.relative(identifier),
            "offset": len(content),
            "sizeInBytes": len(data),
            "cardinality": 1,
        }
        content += dv.frame(data)
        adds.append(table.ids(f"{i}.parquet", 10 * i, 10 * i + 10, add_deletionVector=vector))
    (table.folder / dv.file_name(identifier)).write_bytes(content)
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata(), *adds)
    assert helpers.ids(table) == _left([0, 11, 22, 33], 40)


@pytest.mark.parametrize("run", [True, False])
@pytest.mark.parametrize(
    "gone",
    [[], [0], [29], list(range(30)), list(range(5, 25)), list(range(0, 30, 2))],
    ids=["none", "first", "last", "all", "a run", "every second"],
)
def test_array_and_run_containers(table: log.Table, gone: list[int], *, run: bool) -> None:
    _with(table, table.vector(gone, run=run and bool(gone)))
    assert helpers.ids(table) == _left(gone)


def test_bitmap_containers_and_several_of_them(table: log.Table) -> None:
    gone = [*range(0, 60_000, 3), *range(65_530, 65_545), *range(140_000, 150_000)]
    _with(table, table.vector(gone), 200_000, row_group_size=30_000)
    found = set(helpers.ids(table))
    assert found == set(range(200_000)) - set(gone)


def test_a_wholly_deleted_row_group(table: log.Table) -> None:
    _with(table, table.vector(range(10, 20)), row_group_size=10)
    assert helpers.ids(table) == _left(list(range(10, 20)))


def test_deletion_vectors_are_applied_whatever_the_property_says(table: log.Table) -> None:
    data = {"id": pa.array(range(5), pa.int64()), "name": pa.array(["x"] * 5)}
    add = table.data("a.parquet", data, add_deletionVector=table.vector([1]))
    metadata = log.metadata(configuration={"delta.enableDeletionVectors": "false"})
    table.commit(0, log.protocol(features=["deletionVectors"]), metadata, add)
    assert helpers.ids(table) == [0, 2, 3, 4]


def test_filters_columns_and_limits_after_deletions(table: log.Table) -> None:
    _with(table, table.vector(ROWS))
    assert helpers.filtered(table, "id < 8") == [0, 1, 2, 5, 6]
    names = pa.table(helpers.open_table(table).scan(columns=["name"]))
    assert names.num_rows == 24
    limited = pa.table(helpers.open_table(table).scan(limit=3))
    assert limited.num_rows == 3
    assert not set(limited.column("id").to_pylist()) & set(ROWS)


def test_row_indexes_are_those_of_the_file(table: log.Table) -> None:
    _with(table, table.vector(ROWS), row_group_size=7)
    rows = pa.table(helpers.open_table(table).scan(metadata_columns=["row_index"]))
    assert rows.column("row_index").to_pylist() == rows.column("id").to_pylist()


def test_counts_leave_deleted_rows_out(table: log.Table) -> None:
    _with(table, table.vector(ROWS), add_stats='{"numRecords":30}')
    assert helpers.open_table(table).count() == 24


def test_deletion_vectors_are_reported_as_selections(table: log.Table) -> None:
    """`selection_vector` is true where a row is kept; files without a vector are left out."""
    add = table.ids("b.parquet", 30, 40)
    _with(table, table.vector(ROWS))
    table.commit(1, add)
    reported = pa.table(helpers.open_table(table).deletion_vectors())
    assert reported.num_rows == 1
    assert reported.column("filepath")[0].as_py().endswith("a.parquet")
    selection = reported.column("selection_vector")[0].as_py()
    assert [i for i, kept in enumerate(selection) if not kept] == ROWS


def test_descriptors_are_in_the_add_actions(table: log.Table) -> None:
    vector = table.vector(ROWS)
    _with(table, vector)
    reported = helpers.open_table(table).get_add_actions().column("deletion_vector")[0].as_py()
    assert reported == vector


@pytest.mark.parametrize("damage", [{"cardinality": 5}, {"sizeInBytes": 10}, {"offset": 3}], ids=str)
def test_a_vector_that_contradicts_its_descriptor_is_corrupt(table: log.Table, damage: dict[str, int]) -> None:
    _with(table, table.vector(ROWS, **damage))
    with pytest.raises(deltafast.exceptions.CorruptDataError, match="deletion_vector_"):
        helpers.ids(table)


def test_a_wrong_checksum_is_corrupt(table: log.Table) -> None:
    _with(table, table.vector(ROWS, framed=dv.frame(dv.treemap(ROWS), crc=1)))
    with pytest.raises(deltafast.exceptions.CorruptDataError, match="deletion_vector_"):
        helpers.ids(table)


def test_a_missing_vector_is_a_missing_file(table: log.Table) -> None:
    vector = table.vector(ROWS)
    next(table.folder.glob("*.bin")).unlink()
    _with(table, vector)
    with pytest.raises(FileNotFoundError, match="deletion_vector_"):
        helpers.ids(table)


def test_vectors_of_partitioned_tables_are_next_to_the_log(table: log.Table) -> None:
    """Relative means to the table's folder, not to the data file's."""
    add = table.ids("p=1/a.parquet", 0, 10, add_partitionValues={"p": "1"}, add_deletionVector=table.vector([0]))
    metadata = log.metadata([*log.ID_NAME, ("p", "integer")], ["p"])
    table.commit(0, log.protocol(features=["deletionVectors"]), metadata, add)
    assert helpers.ids(table) == list(range(1, 10))
