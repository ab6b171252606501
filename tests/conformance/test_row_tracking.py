"""Row Tracking: ids and commit versions of rows, on request."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tablekit import log

from . import helpers

ID_COLUMN, VERSION_COLUMN = "_row-id-col-1", "_row-commit-version-col-1"
METADATA = log.metadata(
    configuration={
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": ID_COLUMN,
        "delta.rowTracking.materializedRowCommitVersionColumnName": VERSION_COLUMN,
    }
)


def _tracked(table: log.Table, *adds: log.Action) -> None:
    table.commit(0, log.protocol(writer_only=["rowTracking", "domainMetadata"]), METADATA, *adds)


def _scan(table: log.Table, *names: str, **options: Any) -> dict[str, list[Any]]:
    rows = pa.table(helpers.open_table(table).scan(columns=["id"], metadata_columns=list(names), **options))
    return rows.sort_by("id").to_pydict()


def test_a_fresh_row_id_is_the_base_row_id_plus_the_position(table: log.Table) -> None:
    adds = [
        table.ids("a.parquet", 0, 3, add_baseRowId=100, add_defaultRowCommitVersion=7),
        table.ids("b.parquet", 3, 5, add_baseRowId=0, add_defaultRowCommitVersion=9),
    ]
    _tracked(table, *adds)
    found = _scan(table, "row_id", "row_commit_version", "base_row_id")
    assert found["row_id"] == [100, 101, 102, 0, 1]
    assert found["row_commit_version"] == [7, 7, 7, 9, 9]
    assert found["base_row_id"] == [100, 100, 100, 0, 0]


def test_materialized_row_ids_win_where_they_are_not_null(table: log.Table) -> None:
    data = {
        "id": pa.array([1, 2, 3], pa.int64()),
        ID_COLUMN: pa.array([50, None, 52], pa.int64()),
        VERSION_COLUMN: pa.array([None, 4, None], pa.int64()),
    }
    _tracked(table, table.data("a.parquet", data, add_baseRowId=10, add_defaultRowCommitVersion=8))
    found = _scan(table, "row_id", "row_commit_version")
    assert found["row_id"] == [50, 11, 52]
    assert found["row_commit_version"] == [8, 4, 8]


def test_materialized_columns_do_not_show_in_plain_reads(table: log.Table) -> None:
    data = {"id": pa.array([1], pa.int64()), "name": ["x"], ID_COLUMN: pa.array([5], pa.int64())}
    _tracked(table, table.data("a.parquet", data, add_baseRowId=0, add_defaultRowCommitVersion=0))
    assert helpers.read(table).column_names == ["id", "name"]


def test_row_ids_count_deleted_rows(table: log.Table) -> None:
    """The position is that in the file, whatever a deletion vector or a filter takes away."""
    vector = table.vector([0, 2])
    add = table.ids("a.parquet", 0, 5, add_baseRowId=10, add_defaultRowCommitVersion=0, add_deletionVector=vector)
    protocol = log.protocol(features=["deletionVectors"], writer_only=["rowTracking", "domainMetadata"])
    table.commit(0, protocol, METADATA, add)
    assert _scan(table, "row_id")["row_id"] == [11, 13, 14]
    assert _scan(table, "row_id", predicate="id >= 4")["row_id"] == [14]


def test_files_without_base_row_ids_have_no_row_ids(table: log.Table) -> None:
    _tracked(table, table.ids("a.parquet", 0, 2))
    assert _scan(table, "row_id", "base_row_id")["row_id"] == [None, None]


def test_row_ids_survive_a_checkpoint(table: log.Table) -> None:
    _tracked(table, table.ids("a.parquet", 0, 3, add_baseRowId=100, add_defaultRowCommitVersion=7))
    table.checkpoint(0)
    table.commit(1, {"commitInfo": {}})
    table.drop_commits(0, 0)
    assert _scan(table, "row_id")["row_id"] == [100, 101, 102]


def test_paths_and_positions_need_no_feature(three: log.Table) -> None:
    found = _scan(three, "file_path", "row_index")
    assert found["row_index"] == list(range(10)) * 3
    assert [path.rsplit("/", 1)[-1] for path in found["file_path"]] == [f"part-{i // 10}.parquet" for i in range(30)]


@pytest.mark.parametrize("size", [3, 4])
def test_positions_go_on_over_row_groups(table: log.Table, size: int) -> None:
    table.commit(0, log.protocol(), log.metadata(), table.ids("a.parquet", 0, 10, row_group_size=size))
    assert _scan(table, "row_index")["row_index"] == list(range(10))
    assert _scan(table, "row_index", predicate="id in (2, 9)")["row_index"] == [2, 9]
