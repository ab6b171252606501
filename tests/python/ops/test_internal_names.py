"""Every operation on a table whose columns have the names that the code itself adds to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import InvalidArgumentError
from round_trips.names import INTERNAL_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

TRACKED, VECTORS = {"delta.enableRowTracking": "true"}, {"delta.enableDeletionVectors": "true"}
TABLES = {
    "plain": ({}, []),
    "tracked": (TRACKED, []),
    "tracked vectors": (TRACKED | VECTORS, []),
    "vectors": (VECTORS, []),
    "mapped": ({"delta.columnMapping.mode": "name"}, []),
    "partitioned": ({}, ["file_path"]),
    "partitioned tracked": (TRACKED, ["row_commit_version"]),
    "partitioned vectors": (TRACKED | VECTORS, ["file_path"]),
}
CHANGE_FEED_NAMES = {"_change_type", "_commit_version", "_commit_timestamp"}
ALL_NAMES = [*dict.fromkeys(name.lower() for name in INTERNAL_NAMES)]


def rows(*ids: int, names: list[str] = ALL_NAMES) -> pa.Table:
    columns = {"id": ids} | {name: [number * 100 + place for number in ids] for place, name in enumerate(names)}
    return pa.table(columns)


def merge(table: DeltaTable, source: pa.Table, on: str) -> None:
    merger = table.merge(source, on, source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


def upsert_by_names(table: DeltaTable, source: pa.Table) -> None:
    table.upsert(source, [name for name in source.column_names if name != "id"])


def merge_by_source(table: DeltaTable, _source: pa.Table) -> None:
    source = pa.table({"id": [1], "row_id": [0], "row_index": [0]})
    merger = table.merge(source, "t.id = s.id AND t.row_id > s.row_id", source_alias="s", target_alias="t")
    merger.when_matched_update({"row_index": "t.row_index + s.row_index"})
    merger.when_not_matched_by_source_delete("t.row_index > 300 AND t.row_id >= 300").execute()


OPERATIONS: dict[str, tuple[Callable[[DeltaTable, pa.Table], Any], list[int]]] = {
    "append": (lambda table, source: write_deltalake(table, source, mode="append"), [1, 2, 3, 3, 4]),
    "delete": (lambda table, _: table.delete("row_id = 200 AND row_index > 0"), [1, 3]),
    "delete by position": (lambda table, _: table.delete("id = 2"), [1, 3]),
    "update": (
        lambda table, _: table.update({"row_id": "row_id + row_index - row_index"}, predicate="id = 2"),
        [1, 2, 3],
    ),
    "update of all rows": (lambda table, _: table.update({"row_index": "row_index"}), [1, 2, 3]),
    "merge": (lambda table, source: merge(table, source, "t.id = s.id"), [1, 2, 3, 4]),
    "merge by names": (
        lambda table, source: merge(table, source, "t.row_id = s.row_id AND t.file = s.file"),
        [1, 2, 3, 4],
    ),
    "merge by inequality": (lambda table, source: merge(table, source.slice(1), "t.row_id > s.row_id"), [1, 2, 3, 4]),
    "merge by source": (merge_by_source, [1, 2]),
    "upsert": (lambda table, source: table.upsert(source, "id"), [1, 2, 3, 4]),
    "upsert by names": (upsert_by_names, [1, 2, 3, 4]),
    "replace keys": (
        lambda table, source: write_deltalake(table, source, mode="overwrite", replace_using=["row_index", "row_id"]),
        [1, 2, 3, 4],
    ),
    "replace where": (
        lambda table, source: write_deltalake(table, source, mode="overwrite", predicate="row_index >= 300"),
        [1, 2, 3, 4],
    ),
    "compact": (lambda table, _: table.optimize.compact(), [1, 2, 3]),
    "z-order": (lambda table, _: table.optimize.z_order(["row_id", "row_index"]), [1, 2, 3]),
    "purge": (lambda table, _: (table.delete("id = 2"), table.optimize.purge()), [1, 3]),
    "restore": (lambda table, _: (table.delete("id = 2"), table.restore(1)), [1, 2, 3]),
    "checkpoint": (lambda table, _: table.create_checkpoint(), [1, 2, 3]),
    "sql": (lambda table, _: deltafast.sql("UPDATE t SET row_id = row_id WHERE row_index = 201", t=table), [1, 2, 3]),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if place < 3 else [pytest.mark.proof]) for place, kind in enumerate(TABLES)]
)
def test_columns_may_have_the_names_that_operations_add_to_rows(tmp_path, operation, kind):
    path = str(tmp_path / "t")
    configuration, partition_by = TABLES[kind]
    for ids in ((1, 2), (3,)):
        write_deltalake(path, rows(*ids), mode="append", partition_by=partition_by or None, configuration=configuration)
    run, ids = OPERATIONS[operation]
    run(DeltaTable(path), rows(3, 4))
    assert pa.table(DeltaTable(path).scan()).sort_by("id").to_pylist() == rows(*ids).to_pylist()


def test_every_reader_returns_such_columns(tmp_path):
    write_deltalake(str(tmp_path / "t"), rows(1, 2, 3), configuration=TRACKED | VECTORS)
    table = DeltaTable(str(tmp_path / "t"))
    table.delete("row_id = 200")
    for found in (
        table.to_pyarrow_table(),
        table.to_pyarrow_dataset().to_table(),
        table.to_polars().to_arrow(),
        table.scan_polars().collect().to_arrow(),
        pa.table(table.to_duckdb().to_arrow_table()),
        deltafast.sql("SELECT * FROM t", t=table).read_all(),
    ):
        assert found.sort_by("id").to_pylist() == rows(1, 3).to_pylist()


@pytest.mark.parametrize("operation", ["delete by position", "update", "merge", "upsert", "replace where"])
def test_the_change_feed_of_such_columns_has_their_values(tmp_path, operation):
    names = [name for name in ALL_NAMES if name not in CHANGE_FEED_NAMES]
    path = str(tmp_path / "t")
    write_deltalake(path, rows(1, 2, 3, names=names), configuration={"delta.enableChangeDataFeed": "true"})
    run, ids = OPERATIONS[operation]
    run(DeltaTable(path), rows(3, 4, names=names))
    table = DeltaTable(path)
    assert pa.table(table.scan()).sort_by("id").to_pylist() == rows(*ids, names=names).to_pylist()
    changes = table.load_cdf(0).read_all()
    by_id = {row["id"]: row for row in rows(1, 2, 3, 4, names=names).to_pylist()}
    for change in changes.to_pylist():
        assert {name: change[name] for name in ["id", *names]} == by_id[change["id"]]


def test_a_metadata_column_of_a_scan_has_no_name_of_a_requested_column(tmp_path):
    write_deltalake(str(tmp_path / "t"), {"id": [1, 2], "row_index": [7, 8]})
    table = DeltaTable(str(tmp_path / "t"))
    with pytest.raises(InvalidArgumentError, match=r"`row_index` has the name of a column of the table; .* `columns`"):
        table.scan(metadata_columns=["row_index"])
    with pytest.raises(InvalidArgumentError, match="`file_path` is asked for twice"):
        table.scan(metadata_columns=["file_path", "file_path"])
    found = pa.table(table.scan(columns=["id"], metadata_columns=["row_index"]))
    assert found.to_pylist() == [{"id": 1, "row_index": 0}, {"id": 2, "row_index": 1}]
    found = pa.table(table.scan(metadata_columns=["file_path"]))
    assert found.column_names == ["id", "row_index", "file_path"]
