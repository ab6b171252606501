"""`DeltaTable.explain`: what it counts is what a scan reads."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltafast import BloomFilterProperties, ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from deltafast.exceptions import DataFileNotFoundError, InvalidArgumentError


def ids(start: int, count: int, step: int = 1) -> pa.Array:
    return pa.array(range(start, start + count * step, step), pa.int64())


@pytest.fixture
def table(tmp_path) -> DeltaTable:
    """Three files in each of two partitions: `id` is in order, `mixed` is not, `s` is a string."""
    path = str(tmp_path / "t")
    for n in range(3):
        part = pa.table(
            {
                "p": ["a"] * 500 + ["b"] * 500,
                "id": ids(1000 * n, 1000),
                "mixed": pa.array([(i * 7919 + n) % 100_000 for i in range(1000)], pa.int64()),
                "s": [str(i % 10) for i in range(1000)],
            }
        )
        write_deltalake(path, part, mode="append", partition_by="p")
    return DeltaTable(path)


@pytest.mark.parametrize(
    ("predicate", "by_partition", "by_statistics"),
    [
        (None, 0, 0),
        ("p = 'a'", 3, 0),
        ("id >= 2000", 0, 4),
        ("p = 'a' AND id < 10", 3, 2),
        ("p = 'c'", 6, 0),
        ("id < 0", 0, 6),
        ("upper(s) = '3'", 0, 0),
    ],
)
def test_files_are_those_that_a_scan_reads(table, predicate, by_partition, by_statistics):
    found = table.explain(predicate)
    assert (found.files_total, found.excluded_by_partition, found.excluded_by_statistics) == (
        6,
        by_partition,
        by_statistics,
    )
    remaining = table.get_add_actions(flatten=True, predicate=predicate) if predicate else table.get_add_actions()
    sizes = pa.table(remaining)["size_bytes"].to_pylist()
    assert (found.files, found.bytes) == (len(sizes), sum(sizes))
    assert found.bytes_total == table.detail()["sizeInBytes"]
    assert found.row_groups is not None
    assert found.row_groups.row_groups == found.files
    assert found.pruning == pytest.approx(1 - found.bytes / found.bytes_total)


def test_each_condition_is_explained_alone(table):
    found = table.explain("p = 'a' AND id >= 2000 AND mixed = 50000 AND upper(s) = '3'")
    assert [(c.columns, c.excluded_by_partition, c.excluded_by_statistics) for c in found.conditions] == [
        (["p"], 3, 0),
        (["id"], 0, 4),
        (["mixed"], 0, 0),
        (["s"], 0, 0),
    ]
    assert found.files_per_lookup["id"] == 1
    assert found.files_per_lookup["mixed"] == 6
    # A function of a column is not decided by bounds, whatever the order of the rows.
    assert [text.split(" in ")[1].split()[0] for text in found.advice] == ["mixed"]
    assert table.explain("id = 5").advice == []


def test_columns_without_bounds_are_named(tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(
        path,
        pa.table({"id": ids(0, 10), "v": ids(0, 10)}),
        configuration={"delta.dataSkippingStatsColumns": "id"},
    )
    (advice,) = DeltaTable(path).explain("v = 3 AND id = 3").advice
    assert advice.startswith("v has no bounds in 1 of 1 files; add it to delta.dataSkippingStatsColumns")


def test_row_groups_are_excluded_by_statistics_and_the_page_index(tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(
        path,
        pa.table({"id": ids(0, 40_000), "v": ids(0, 40_000)}),
        writer_properties=WriterProperties(max_row_group_size=10_000, data_page_row_count_limit=1000),
    )
    table = DeltaTable(path)
    (file,) = table.file_uris()
    stored = pq.ParquetFile(file).metadata
    found = table.explain("id BETWEEN 12000 AND 12100", ["v"]).row_groups
    assert found is not None
    assert (found.row_groups, found.excluded_by_statistics, found.row_groups_read) == (4, 3, 1)
    assert (found.rows, found.rows_read) == (40_000, 1000)
    # Both the column that is returned and that of the predicate are read.
    assert found.bytes == sum(stored.row_group(n).column(c).total_compressed_size for n in range(4) for c in range(2))
    assert 0 < found.bytes_read < found.bytes / 10
    whole = table.explain("id >= 10000", ["id"]).row_groups
    assert whole is not None
    wanted = sum(stored.row_group(n).column(0).total_compressed_size for n in range(1, 4))
    assert (whole.row_groups_read, whole.rows_read, whole.bytes_read) == (3, 30_000, wanted)


def test_row_groups_are_excluded_by_bloom_filters(tmp_path):
    path = str(tmp_path / "t")
    bloom = ColumnProperties(bloom_filter_properties=BloomFilterProperties(set_bloom_filter_enabled=True))
    write_deltalake(
        path,
        pa.table({"id": ids(0, 20_000, 2)}),
        writer_properties=WriterProperties(max_row_group_size=5000, column_properties={"id": bloom}),
    )
    table = DeltaTable(path)
    missing, present = table.explain("id = 5001").row_groups, table.explain("id = 5002").row_groups
    assert missing is not None
    assert present is not None
    assert (missing.excluded_by_statistics, missing.excluded_by_bloom_filter, missing.row_groups_read) == (3, 1, 0)
    assert (present.excluded_by_statistics, present.excluded_by_bloom_filter, present.row_groups_read) == (3, 0, 1)


def test_row_groups_of_deleted_rows_are_counted(tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(
        path,
        pa.table({"id": ids(0, 20_000)}),
        configuration={"delta.enableDeletionVectors": "true"},
        writer_properties=WriterProperties(max_row_group_size=5000),
    )
    table = DeltaTable(path)
    table.delete("id < 5000 OR id = 7000")
    found = table.explain().row_groups
    assert found is not None
    assert (found.row_groups, found.excluded_by_deletion_vector, found.row_groups_read) == (4, 1, 3)


def test_names_may_be_mapped(tmp_path):
    path = str(tmp_path / "t")
    for n in range(5):
        write_deltalake(
            path,
            pa.table({"a b": ids(10 * n, 10), "s": pa.array([{"x": n}] * 10)}),
            mode="append",
            configuration={"delta.columnMapping.mode": "name"} if n == 0 else None,
        )
    found = DeltaTable(path).explain("`a b` = 7 AND s.x = 0")
    assert (found.files, found.excluded_by_statistics) == (1, 4)
    assert found.files_per_lookup == {"a b": 1.0, "s.x": 1.0}


def test_footers_are_read_only_when_asked_for(table):
    import pathlib

    for file in table.file_uris():
        pathlib.Path(file.removeprefix("file://")).unlink()
    found = table.explain("id = 5", row_groups=False)
    assert (found.files, found.row_groups) == (1, None)
    with pytest.raises(DataFileNotFoundError, match=r"\.parquet"):
        table.explain("id = 5")


def test_invalid_arguments_are_refused(table):
    with pytest.raises(InvalidArgumentError, match="nope"):
        table.explain("nope = 1")
    with pytest.raises(InvalidArgumentError, match="nope"):
        table.explain("id = 1", ["nope"])


def test_it_is_shown_as_text_html_and_json(table):
    found = table.explain("p = 'a' AND mixed = 50000")
    text = str(found)
    assert "3 of 6; excluded by partition values 3" in text
    assert "3 of 6 files by partition values" in text
    assert found._repr_html_().count("<table>") == 3
    assert json.loads(json.dumps(found.to_dict()))["pruning"] == found.pruning


def test_an_empty_table_is_explained(tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": pa.array([], pa.int64())}))
    table = DeltaTable(path)
    table.delete()
    found = table.explain("id = 1")
    assert (found.files_total, found.pruning) == (0, 0.0)
