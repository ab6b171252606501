"""Change Data Files: the feed of a version comes from its cdc actions, or from what it added and removed."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import deltafast
from tablekit import log

from . import helpers

ON = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def fed(tmp_path: Any) -> log.Table:
    """Give a table with the feed on and two commits of ten ids each."""
    return log.basic(tmp_path / "fed", 2, configuration=ON)


def _cdc(table: log.Table, path: str, rows: list[tuple[int, str]], **columns: Any) -> log.Action:
    data = {
        "id": pa.array([i for i, _ in rows], pa.int64()),
        "name": ["x"] * len(rows),
        "_change_type": [c for _, c in rows],
    }
    size = table.data(path, data | columns)["add"]["size"]
    return {"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False}}


def _all(kind: str, version: int, start: int, stop: int) -> list[tuple[int, str, int]]:
    return [(i, kind, version) for i in range(start, stop)]


def test_adds_are_inserts(fed: log.Table) -> None:
    assert helpers.changes(fed, 0) == _all("insert", 0, 0, 10) + _all("insert", 1, 10, 20)


def test_removes_are_deletes(fed: log.Table) -> None:
    fed.commit(2, log.remove("part-0.parquet", extendedFileMetadata=True, partitionValues={}))
    assert helpers.changes(fed, 2) == _all("delete", 2, 0, 10)


def test_a_version_with_cdc_actions_is_read_from_these_alone(fed: log.Table) -> None:
    changes = [(3, "update_preimage"), (3, "update_postimage")]
    fed.commit(
        2, _cdc(fed, "_change_data/c.parquet", changes), log.remove("part-0.parquet"), fed.ids("new.parquet", 0, 10)
    )
    assert helpers.changes(fed, 2) == [(3, "update_postimage", 2), (3, "update_preimage", 2)]


def test_actions_without_data_change_are_no_changes(fed: log.Table) -> None:
    compacted = fed.ids("big.parquet", 0, 20, add_dataChange=False)
    fed.commit(2, compacted, *(log.remove(f"part-{i}.parquet", dataChange=False) for i in range(2)))
    assert helpers.changes(fed, 2) == []


def test_both_ends_are_included(fed: log.Table) -> None:
    fed.commit(2, fed.ids("part-2.parquet", 20, 30))
    assert helpers.changes(fed, 1, 1) == _all("insert", 1, 10, 20)
    assert helpers.changes(fed, 0, 1) == _all("insert", 0, 0, 10) + _all("insert", 1, 10, 20)


def test_the_three_columns_come_last(fed: log.Table) -> None:
    feed = pa.table(helpers.open_table(fed).load_cdf(starting_version=0))
    assert feed.column_names == ["id", "name", "_change_type", "_commit_version", "_commit_timestamp"]
    assert feed.schema.field("_commit_version").type == pa.int64()
    assert pa.types.is_timestamp(feed.schema.field("_commit_timestamp").type)


def test_deletion_vectors_are_compared(fed: log.Table) -> None:
    """A grown vector deletes, a shrunk one (as RESTORE writes it) inserts."""
    add = fed.actions(0, 0)[-1]["add"]
    small, large = fed.vector([1, 2]), fed.vector([1, 2, 3])
    fed.commit(2, log.protocol(features=["deletionVectors"], writer_only=["changeDataFeed"]))
    fed.commit(3, log.remove("part-0.parquet"), {"add": add | {"deletionVector": small}})
    fed.commit(4, log.remove("part-0.parquet", deletionVector=small), {"add": add | {"deletionVector": large}})
    fed.commit(5, log.remove("part-0.parquet", deletionVector=large), {"add": add | {"deletionVector": small}})
    fed.commit(6, log.remove("part-0.parquet", deletionVector=small), {"add": add})
    expected = [
        (1, "delete", 3),
        (2, "delete", 3),
        (3, "delete", 4),
        (3, "insert", 5),
        (1, "insert", 6),
        (2, "insert", 6),
    ]
    assert helpers.changes(fed, 3) == expected


def test_a_removed_file_with_a_vector_deletes_what_was_left(fed: log.Table) -> None:
    add = fed.actions(0, 0)[-1]["add"]
    vector = fed.vector(range(8))
    fed.commit(2, log.protocol(features=["deletionVectors"], writer_only=["changeDataFeed"]))
    fed.commit(3, log.remove("part-0.parquet"), {"add": add | {"deletionVector": vector}})
    fed.commit(4, log.remove("part-0.parquet", deletionVector=vector))
    assert helpers.changes(fed, 4) == [(8, "delete", 4), (9, "delete", 4)]


def test_an_added_file_with_a_vector_inserts_what_is_left(fed: log.Table) -> None:
    fed.commit(2, log.protocol(features=["deletionVectors"], writer_only=["changeDataFeed"]))
    fed.commit(3, fed.ids("c.parquet", 20, 25, add_deletionVector=fed.vector([0, 4])))
    assert helpers.changes(fed, 3) == _all("insert", 3, 21, 24)


def test_partition_values_are_those_of_the_action(table: log.Table) -> None:
    metadata = log.metadata([("id", "long"), ("p", "integer")], ["p"], ON)
    table.commit(0, log.protocol(), metadata, table.data("a.parquet", {"id": [1]}, add_partitionValues={"p": "5"}))
    data = table.data("_change_data/p=6/c.parquet", {"id": [2], "_change_type": ["insert"]})
    table.commit(
        1,
        {
            "cdc": {
                "path": "_change_data/p=6/c.parquet",
                "partitionValues": {"p": "6"},
                "size": data["add"]["size"],
                "dataChange": False,
            }
        },
    )
    feed = pa.table(helpers.open_table(table).load_cdf(starting_version=0)).sort_by("id")
    assert feed.column("p").to_pylist() == [5, 6]
    assert feed.column_names[:2] == ["id", "p"]


def test_a_null_change_type_inside_data_files_is_dropped_by_normal_reads(fed: log.Table) -> None:
    """Some writers put the change column into data files; in those rows it is null."""
    data = {"id": pa.array([50], pa.int64()), "name": ["x"], "_change_type": pa.nulls(1, pa.string())}
    fed.commit(2, fed.data("mixed.parquet", data))
    assert helpers.read(fed).column_names == ["id", "name"]
    assert helpers.changes(fed, 2) == [(50, "insert", 2)]


def test_from_a_version_before_the_feed_was_on_it_is_an_error(three: log.Table) -> None:
    three.commit(3, log.metadata(configuration=ON))
    three.commit(4, three.ids("part-4.parquet", 40, 50))
    assert helpers.changes(three, 3) == _all("insert", 4, 40, 50)
    with pytest.raises(deltafast.exceptions.ChangeDataNotRecordedError):
        helpers.changes(three, 2)


def test_a_range_in_which_the_feed_was_off_is_an_error(fed: log.Table) -> None:
    fed.commit(2, log.metadata(configuration={"delta.enableChangeDataFeed": "false"}))
    fed.commit(3, fed.ids("part-3.parquet", 30, 40))
    fed.commit(4, log.metadata(configuration=ON))
    with pytest.raises(deltafast.exceptions.ChangeDataNotRecordedError):
        helpers.changes(fed, 0)
    assert helpers.changes(fed, 0, 1) == _all("insert", 0, 0, 10) + _all("insert", 1, 10, 20)


def test_a_start_after_the_newest_version_is_an_error_unless_allowed(fed: log.Table) -> None:
    with pytest.raises(deltafast.exceptions.VersionNotFoundError, match=r"invalid table version: 7, where .* is 1"):
        helpers.changes(fed, 7)
    opened = helpers.open_table(fed)
    with pytest.raises(deltafast.exceptions.VersionNotFoundError, match="is greater than latest commit timestamp"):
        opened.load_cdf(starting_timestamp="2999-01-01T00:00:00Z")
    assert pa.table(opened.load_cdf(starting_version=7, allow_out_of_range=True)).num_rows == 0


def test_a_range_of_timestamps(fed: log.Table) -> None:
    import os

    for version in range(2):
        os.utime(fed.commit_file(version), (1_700_000_000 + 100 * version,) * 2)
    opened = helpers.open_table(fed)
    timestamp = dt.datetime.fromtimestamp(1_700_000_050, dt.UTC)
    late = pa.table(opened.load_cdf(starting_timestamp=timestamp))
    assert set(late.column("_commit_version").to_pylist()) == {1}
    early = pa.table(opened.load_cdf(ending_timestamp=timestamp))
    assert set(early.column("_commit_version").to_pylist()) == {0}


def test_columns_and_predicates(fed: log.Table) -> None:
    opened = helpers.open_table(fed)
    feed = pa.table(
        opened.load_cdf(starting_version=0, columns=["_change_type", "id"], predicate="id >= 8 and _commit_version = 0")
    )
    assert feed.column_names == ["_change_type", "id"]
    assert sorted(feed.column("id").to_pylist()) == [8, 9]


def test_the_schema_is_the_newest(fed: log.Table) -> None:
    """Columns added later are null in older changes."""
    fed.commit(2, log.metadata([*log.ID_NAME, ("extra", "long")], configuration=ON))
    feed = pa.table(helpers.open_table(fed).load_cdf(starting_version=0))
    assert feed.column_names[:3] == ["id", "name", "extra"]
    assert feed.column("extra").null_count == 20
