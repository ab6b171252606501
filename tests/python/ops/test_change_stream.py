"""`DeltaTable.stream_changes`: every row once, in bounded batches, whatever happens in between."""

import json
import random
import re
from itertools import chain
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

from deltafast import (
    ChangeDataNotRecordedError,
    DeltaProtocolError,
    DeltaTable,
    InvalidArgumentError,
    VersionNotFoundError,
    write_deltalake,
)
from deltafast.catalog import FolderCommitter

FEED = {"delta.enableChangeDataFeed": "true"}


def append(path, *values, **options):
    write_deltalake(path, pa.table({"id": pa.array(values, pa.int64())}), mode="append", **options)


def drained(table, cursor=None, **options):
    """All batches: the ids of each, and the last cursor, through JSON as everybody keeps it."""
    out = []
    for batch in table.stream_changes(cursor, **options):
        out.append(sorted(batch.rows.read_all()["id"].to_pylist()))
        cursor = json.loads(json.dumps(batch.cursor))
    return out, cursor


@pytest.fixture
def path(tmp_path):
    for number in range(4):
        append(tmp_path / "t", 2 * number, 2 * number + 1, configuration=FEED if number == 0 else None)
    return tmp_path / "t"


def test_the_rows_that_are_there_then_the_new_ones(path):
    batches, cursor = drained(DeltaTable(path))
    assert batches == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert drained(DeltaTable(path), cursor) == ([], cursor)
    append(path, 10)
    append(path, 11)
    batches, cursor = drained(DeltaTable(path), cursor)
    assert batches == [[10, 11]]
    assert cursor["batch"] == 2


def test_batches_are_bounded_by_files(path):
    batches, cursor = drained(DeltaTable(path), max_files=3)
    assert batches == [[0, 1, 2, 3, 4, 5], [6, 7]]
    for number in range(5):
        append(path, 100 + number)
    assert drained(DeltaTable(path), cursor, max_files=2)[0] == [[100, 101], [102, 103], [104]]


def test_batches_are_bounded_by_bytes_but_never_empty(path):
    size = DeltaTable(path).get_add_actions()["size_bytes"].to_pylist()[0]
    assert [len(batch) for batch in drained(DeltaTable(path), max_bytes=2 * size)[0]] == [4, 4]
    assert [len(batch) for batch in drained(DeltaTable(path), max_bytes=1)[0]] == [2, 2, 2, 2]
    assert [len(batch) for batch in drained(DeltaTable(path), starting_version=0, max_bytes=1)[0]] == [2, 2, 2, 2]


def test_a_commit_is_cut_where_the_batch_is_full(tmp_path):
    data = pa.table({"id": range(10), "p": range(10)})
    write_deltalake(tmp_path, data, partition_by=["p"])
    write_deltalake(tmp_path, data, mode="append")
    batches, _ = drained(DeltaTable(tmp_path), starting_version=0, max_files=4)
    assert [len(batch) for batch in batches] == [4, 4, 4, 4, 4]
    assert sorted(chain(*batches)) == sorted([*range(10), *range(10)])


def test_a_stream_goes_on_from_each_of_its_cursors(path):
    for number in range(3):
        append(path, 50 + number)
    table = DeltaTable(path, version=3)
    whole, _ = drained(table, max_files=2)
    seen, cursor = [], None
    for expected in whole:
        batch = next(
            iter(DeltaTable(path).stream_changes(cursor, max_files=2) if cursor else table.stream_changes(max_files=2))
        )
        assert sorted(batch.rows.read_all()["id"].to_pylist()) == expected
        seen += expected
        cursor = batch.cursor
    assert sorted(seen) == [0, 1, 2, 3, 4, 5, 6, 7, 50, 51, 52]


def test_where_it_begins(path):
    table = DeltaTable(path)
    assert drained(table, starting_version=2)[0] == [[4, 5, 6, 7]]
    batches, _ = drained(table, starting_version="latest")
    assert batches == []
    assert drained(DeltaTable(path, version=1))[0] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_compaction_gives_no_rows(path):
    _, cursor = drained(DeltaTable(path))
    DeltaTable(path).optimize.compact()
    batches, after = drained(DeltaTable(path), cursor)
    assert batches == [[]]
    assert (after["version"], after["batch"]) == (cursor["version"] + 1, cursor["batch"] + 1)
    append(path, 9)
    assert drained(DeltaTable(path), after)[0] == [[9]]


def test_rows_that_are_deleted_by_vectors_are_not_there(path):
    table = DeltaTable(path)
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id in (1, 4)")
    assert drained(table)[0] == [[0, 2, 3, 5, 6, 7]]


def test_commits_that_change_rows(path):
    _, cursor = drained(DeltaTable(path))
    DeltaTable(path).delete("id = 0")
    append(path, 8)
    with pytest.raises(DeltaProtocolError, match="version 4 deletes or changes rows"):
        drained(DeltaTable(path), cursor)
    assert drained(DeltaTable(path), cursor, on_change="skip")[0] == [[8]]
    assert drained(DeltaTable(path), cursor, on_change="rows")[0] == [[1, 8]]


def test_the_change_feed(path):
    changes = []
    cursor = None
    for batch in DeltaTable(path).stream_changes(change_data_feed=True):
        found = batch.rows.read_all()
        assert found.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
        assert set(found["_change_type"].to_pylist()) == {"insert"}
        assert set(found["_commit_version"].to_pylist()) == {3}
        changes += found["id"].to_pylist()
        cursor = batch.cursor
    assert sorted(changes) == list(range(8))
    table = DeltaTable(path)
    table.update({"id": "id + 100"}, predicate="id = 7")
    table.delete("id = 0")
    table.optimize.compact()
    append(path, 8)
    (batch,) = DeltaTable(path).stream_changes(cursor, change_data_feed=True)
    expected = pa.table(DeltaTable(path).load_cdf(4))
    found = batch.rows.read_all()
    assert found.schema.names == expected.schema.names
    order = [("_commit_version", "ascending"), ("_change_type", "ascending")]
    assert found.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()
    versions = [
        sorted(set(batch.rows.read_all()["_commit_version"].to_pylist()))
        for batch in DeltaTable(path).stream_changes(cursor, change_data_feed=True, max_files=1)
    ]
    assert versions == [[4], [5], [7]]


def test_a_feed_that_was_off(tmp_path):
    append(tmp_path, 1)
    append(tmp_path, 2)
    with pytest.raises(ChangeDataNotRecordedError):
        list(DeltaTable(tmp_path).stream_changes(change_data_feed=True, starting_version=1))


def test_columns_and_predicates(path):
    (batch,) = DeltaTable(path).stream_changes(columns=["id"], predicate="id > 5")
    assert sorted(batch.rows.read_all()["id"].to_pylist()) == [6, 7]
    (batch,) = DeltaTable(path).stream_changes(
        change_data_feed=True, starting_version=2, columns=["_change_type", "id"], predicate="id = 5"
    )
    assert batch.rows.read_all().to_pylist() == [{"_change_type": "insert", "id": 5}]


def test_a_new_schema_begins_a_batch(path):
    _, cursor = drained(DeltaTable(path))
    append(path, 8)
    write_deltalake(path, pa.table({"id": [9], "b": ["x"]}), mode="append", schema_mode="merge")
    append(path, 10)
    found = [batch.rows.read_all() for batch in DeltaTable(path).stream_changes(cursor)]
    assert [table.schema.names for table in found] == [["id"], ["id", "b"]]
    assert found[1].sort_by("id").to_pylist() == [{"id": 9, "b": "x"}, {"id": 10, "b": None}]


def test_commits_that_are_gone(path):
    _, cursor = drained(DeltaTable(path))
    append(path, 8)
    DeltaTable(path).create_checkpoint()
    (path / "_delta_log" / f"{4:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="commit of version 4 is gone"):
        drained(DeltaTable(path), cursor)


def test_cursors_of_something_else(path, tmp_path):
    _, cursor = drained(DeltaTable(path))
    append(tmp_path / "other", 1)
    with pytest.raises(InvalidArgumentError, match="of another table"):
        DeltaTable(tmp_path / "other").stream_changes(cursor)
    with pytest.raises(InvalidArgumentError, match="feed=False"):
        DeltaTable(path).stream_changes(cursor, change_data_feed=True)
    with pytest.raises(InvalidArgumentError, match="not both"):
        DeltaTable(path).stream_changes(cursor, starting_version=1)
    for broken in ({}, {**cursor, "index": "1"}, {**cursor, "format": 2}, {**cursor, "version": -1}):
        with pytest.raises(InvalidArgumentError, match="not a cursor of stream_changes"):
            DeltaTable(path).stream_changes(broken)


def test_wrong_arguments(path):
    table = DeltaTable(path)
    for options in ({"max_files": 0}, {"max_bytes": -1}, {"starting_version": -1}, {"on_change": "x"}):
        with pytest.raises(InvalidArgumentError):
            table.stream_changes(**options)


def test_random_histories_arrive_whole(tmp_path):
    """Appends and compactions in any order, drained at any time with any bounds: each row once."""
    chance = random.Random(11)
    for run in range(6):
        path = tmp_path / str(run)
        append(path, -1)
        cursor, got, expected, number = None, [], [-1], 0
        for _ in range(25):
            chosen = chance.random()
            if chosen < 0.6:
                values = list(range(number, number + chance.randint(1, 5)))
                number += len(values)
                append(path, *values)
                expected += values
            elif chosen < 0.7:
                DeltaTable(path).optimize.compact()
            else:
                for batch in DeltaTable(path).stream_changes(cursor, max_files=chance.choice([1, 2, 5, None])):
                    got += batch.rows.read_all()["id"].to_pylist()
                    cursor = json.loads(json.dumps(batch.cursor))
                    if chance.random() < 0.3:
                        break
        batches, _ = drained(DeltaTable(path), cursor)
        assert sorted(chain(got, *batches)) == sorted(expected)


def test_the_recipe_copies_each_row_once_whenever_it_dies(path, tmp_path, monkeypatch):
    text = (Path(__file__).parents[3] / "docs" / "writing.md").read_text("utf-8")
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "def copy" in block]
    names = {}
    exec(block, names)
    sink = tmp_path / "sink"
    real = DeltaTable.stream_changes
    monkeypatch.setattr(DeltaTable, "stream_changes", lambda self, cursor: real(self, cursor, max_files=1))
    chance = random.Random(5)
    write = names["write_deltalake"]

    def dying(*args, **options):
        if chance.random() < 0.3:
            raise KeyboardInterrupt
        write(*args, **options)
        if chance.random() < 0.3:
            raise KeyboardInterrupt

    names["write_deltalake"] = dying
    for number in range(100, 104):
        append(path, number)
    died = 0
    while True:
        try:
            names["copy"](path, sink)
            break
        except KeyboardInterrupt:
            died += 1
    assert died > 2
    found = sorted(DeltaTable(sink).to_pyarrow_table()["id"].to_pylist())
    assert found == [*range(8), *range(100, 104)]


@pytest.mark.parametrize("feed", [False, True], ids=["rows", "feed"])
def test_a_table_in_a_store_made_in_python(path, feed):
    memory = fsspec.filesystem("memory")
    memory.put(str(path), f"/{path.parent.name}", recursive=True)
    uri = f"memory://{path.parent.name}"
    table = DeltaTable(uri, store=memory)
    batches, cursor = drained(table, change_data_feed=feed)
    assert list(chain(*batches)) == list(range(8))
    write_deltalake(table, pa.table({"id": pa.array([8, 9], pa.int64())}), mode="append")
    DeltaTable(uri, store=memory).optimize.compact()
    assert drained(DeltaTable(uri, store=memory), cursor, change_data_feed=feed)[0] == [[8, 9]]
    assert drained(DeltaTable(uri, store=memory), starting_version=1, max_files=1)[0] == [
        [2, 3],
        [4, 5],
        [6, 7],
        [8, 9],
    ]


class Keeping(FolderCommitter):
    """A catalog that publishes nothing, so that commits are staged for ever."""

    def published(self, version):
        pass


def test_a_table_that_a_catalog_manages(tmp_path):
    committer = Keeping(tmp_path / "catalog")
    for number in range(3):
        append(tmp_path / "t", number, committer=committer)
    table = DeltaTable(tmp_path / "t", committer=committer)
    batches, cursor = drained(table)
    assert batches == [[0, 1, 2]]
    append(tmp_path / "t", 3, committer=committer)
    append(tmp_path / "t", 4, committer=committer)
    DeltaTable(tmp_path / "t", committer=committer).delete("id = 4")
    assert drained(table, cursor, on_change="skip")[0] == [[3, 4]]
    with pytest.raises(DeltaProtocolError, match="version 5 deletes"):
        drained(table, cursor)
    # The same table, its newest commits known by a log tail alone.
    tail = [(commit.path, commit.version, commit.size) for commit in committer.log_tail().commits]
    for file in (tmp_path / "t" / "_delta_log").glob("*.json"):
        assert int(file.stem) == 0 or file.unlink() is None
    pinned = DeltaTable(tmp_path / "t", log_tail=tail)
    assert drained(pinned, starting_version=1, on_change="skip", max_files=1)[0] == [[1], [2], [3], [4]]


def test_a_commit_that_lays_files_out_again_counts_no_files(path):
    _, cursor = drained(DeltaTable(path), change_data_feed=True)
    DeltaTable(path).optimize.compact()
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"})
    append(path, 8)
    batches = list(DeltaTable(path).stream_changes(cursor, change_data_feed=True, max_files=1))
    assert [batch.rows.read_all()["id"].to_pylist() for batch in batches] == [[8]]
    assert batches[-1].cursor["version"] == 7
