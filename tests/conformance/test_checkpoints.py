"""Checkpoints: classic, multi-part, V2 with and without sidecars, and which one is read."""

from __future__ import annotations

import json
import random
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast.stores import FsspecStore
from tablekit import log

from . import helpers

FIVE = list(range(50))


@pytest.fixture
def five(tmp_path: Any) -> log.Table:
    """Give a table of five commits with the feature of V2 checkpoints."""
    table = log.basic(tmp_path / "five", 5)
    table.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), table.actions(0, 0)[-1])
    return table


def test_a_classic_checkpoint_replaces_the_commits_up_to_it(five: log.Table) -> None:
    five.checkpoint(3)
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_a_checkpoint_holds_tombstones_that_do_not_live_again(five: log.Table) -> None:
    five.commit(5, log.remove("part-0.parquet"))
    five.checkpoint(5)
    five.drop_commits(0, 5)
    assert helpers.ids(five) == list(range(10, 50))


def test_a_multi_part_checkpoint_is_read_whole(five: log.Table) -> None:
    five.checkpoint(3, parts=4)
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_incomplete_multi_part_sets_are_ignored(five: log.Table) -> None:
    five.checkpoint(2)
    five.checkpoint(4, parts=3)[1].unlink()
    five.drop_commits(0, 2)
    assert helpers.ids(five) == FIVE


def test_of_several_checkpoints_of_a_version_any_complete_one_will_do(five: log.Table) -> None:
    five.checkpoint(3, parts=2)[0].unlink()
    five.checkpoint(3, parts=3)
    five.v2_checkpoint(3, kind="json")
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.parametrize("sidecars", [0, 1, 3])
def test_a_v2_checkpoint_is_read(five: log.Table, kind: str, sidecars: int) -> None:
    five.v2_checkpoint(3, kind=kind, sidecars=sidecars)
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_a_v2_checkpoint_may_have_a_classic_name(five: log.Table) -> None:
    five.v2_checkpoint(3, kind="parquet", sidecars=2, name="")
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_sidecar_paths_may_be_full_addresses(five: log.Table) -> None:
    side = five.sidecar([a for a in five.actions(0, 3) if "add" in a])
    side["sidecar"]["path"] = (five.log / "_sidecars" / side["sidecar"]["path"]).as_uri()
    rest = [a for a in five.actions(0, 3) if "add" not in a]
    five.v2_checkpoint(3, rest, kind="json", head=[{"checkpointMetadata": {"version": 3}}, side])
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_tags_of_checkpoint_metadata_and_sidecars_are_ignored(five: log.Table) -> None:
    head = [{"checkpointMetadata": {"version": 3, "tags": {"a": "b"}, "future": 1}}]
    five.v2_checkpoint(3, kind="json", head=head)
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_files_of_a_checkpoint_are_removed_by_later_commits(five: log.Table) -> None:
    five.v2_checkpoint(3, kind="parquet", sidecars=2)
    five.drop_commits(0, 3)
    five.commit(5, log.remove("part-1.parquet"))
    assert helpers.ids(five) == [*range(10), *range(20, 50)]


def test_unknown_checkpoint_columns_are_ignored(five: log.Table) -> None:
    rows = log.checkpoint_table(five.actions(0, 3))
    rows = rows.append_column("tomorrow", pa.array([{"path": "part-0.parquet"}] * len(rows)))
    pq.write_table(rows, five.checkpoint_file(3))
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_missing_checkpoint_columns_are_null(five: log.Table) -> None:
    """Only the columns that say something are there: no txn, remove, tags, deletionVector, readerFeatures."""
    actions = [a for a in five.actions(0, 3) if "add" in a or "metaData" in a] + [log.protocol()]
    narrow = pa.struct(
        [f for f in log.ADD if f.name in {"path", "partitionValues", "size", "modificationTime", "dataChange"}]
    )
    protocol = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
    types: dict[str, Any] = {"txn": None, "remove": None, "domainMetadata": None, "add": narrow, "protocol": protocol}
    pq.write_table(log.checkpoint_table(actions, types), five.checkpoint_file(3))
    five.drop_commits(0, 3)
    assert helpers.ids(five) == FIVE


def test_rows_of_a_checkpoint_may_be_in_any_order_and_many_row_groups(five: log.Table) -> None:
    actions = list(reversed(five.actions(0, 4)))
    pq.write_table(log.checkpoint_table(actions), five.checkpoint_file(4), row_group_size=2)
    five.drop_commits(0, 4)
    assert helpers.ids(five) == FIVE


def test_transactions_and_domains_of_a_checkpoint_count(five: log.Table) -> None:
    five.commit(
        5,
        {"txn": {"appId": "a", "version": 7}},
        {"domainMetadata": {"domain": "d", "configuration": "x", "removed": False}},
    )
    five.checkpoint(5)
    five.drop_commits(0, 5)
    opened = helpers.open_table(five)
    assert opened.transaction_version("a") == 7
    assert opened.domain_metadata() == {"d": "x"}


def _parsed(table: log.Table, version: int, *, stats: bool) -> None:
    """Write a checkpoint with `stats_parsed` and, if not `stats`, without JSON statistics."""
    bounds = pa.struct([("id", pa.int64()), ("name", pa.string())])
    parsed = pa.struct(
        [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", bounds_of_nulls())]
    )
    actions = table.actions(0, version)
    for action in actions:
        if "add" in action:
            action["add"]["stats_parsed"] = json.loads(action["add"]["stats"])
            if not stats:
                del action["add"]["stats"]
    add = pa.struct([*log.ADD, pa.field("stats_parsed", parsed)])
    pq.write_table(log.checkpoint_table(actions, {"add": add}), table.checkpoint_file(version))


def bounds_of_nulls() -> pa.DataType:
    return pa.struct([("id", pa.int64()), ("name", pa.int64())])


@pytest.mark.parametrize("stats", [True, False])
def test_parsed_statistics_of_a_checkpoint_prune(five: log.Table, *, stats: bool) -> None:
    _parsed(five, 4, stats=stats)
    five.drop_commits(0, 4)
    assert helpers.planned(five, "id = 15") == ["part-1.parquet"]
    assert helpers.filtered(five, "id = 15") == [15]
    adds = helpers.open_table(five).get_add_actions(flatten=True)
    assert sorted(adds.column("min.id").to_pylist()) == [0, 10, 20, 30, 40]
    assert adds.column("num_records").to_pylist() == [10] * 5


def test_parsed_partition_values_of_a_checkpoint_prune(table: log.Table) -> None:
    adds = [table.data(f"{i}.parquet", {"id": [i]}, add_partitionValues={"p": str(i)}) for i in range(4)]
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("p", "integer")], ["p"]), *adds)
    actions = table.actions(0, 0)
    for action in actions:
        if "add" in action:
            action["add"]["partitionValues_parsed"] = {"p": int(action["add"]["partitionValues"]["p"])}
    kind = pa.struct([*log.ADD, pa.field("partitionValues_parsed", pa.struct([("p", pa.int32())]))])
    pq.write_table(log.checkpoint_table(actions, {"add": kind}), table.checkpoint_file(0))
    table.commit(1, {"commitInfo": {}})
    table.drop_commits(0, 0)
    assert helpers.planned(table, "p = 2") == ["2.parquet"]
    assert helpers.column(table, "p") == [0, 1, 2, 3]


def test_a_broken_checkpoint_is_passed_over_while_the_commits_are_there(five: log.Table) -> None:
    (file,) = five.checkpoint(3)
    file.write_bytes(file.read_bytes()[:500])
    five.last_checkpoint(3)
    with pytest.warns(
        deltafast.DeltaWarning, match=r"00000000000000000003\.checkpoint.*read without this file"
    ) as caught:
        assert helpers.ids(five) == FIVE
    assert len(caught) == 1


def test_a_broken_checkpoint_without_commits_is_named(five: log.Table) -> None:
    (file,) = five.checkpoint(3)
    file.write_bytes(b"")
    five.drop_commits(0, 2)
    with pytest.raises(deltafast.exceptions.CorruptLogError, match=r"00000000000000000003\.checkpoint"):
        helpers.ids(five)


def test_an_older_version_is_read_from_the_checkpoint_before_it(five: log.Table) -> None:
    five.checkpoint(2)
    five.checkpoint(4)
    five.drop_commits(0, 1)
    assert helpers.ids(five, version=3) == list(range(40))
    assert helpers.ids(five, version=2) == list(range(30))


def test_opening_does_not_need_the_files_of_a_checkpoint(five: log.Table) -> None:
    """Version, schema and protocol are there although a sidecar is gone: files are read when they are asked for."""
    five.v2_checkpoint(4, kind="parquet", sidecars=2)
    five.drop_commits(0, 4)
    five.commit(5, {"commitInfo": {}})
    next((five.log / "_sidecars").iterdir()).unlink()
    opened = helpers.open_table(five)
    assert opened.version() == 5
    assert [f.name for f in opened.schema().fields] == ["id", "name"]
    with pytest.raises(deltafast.exceptions.CorruptLogError, match="_sidecars"):
        opened.to_pyarrow_table()


def _four(tmp_path: Any) -> log.Table:
    """Return a table of four files, one of them with a transaction and a domain, and an empty commit after them."""
    table = log.basic(tmp_path / "four", 4)
    table.commit(
        4,
        {"txn": {"appId": "app", "version": 7}},
        {"domainMetadata": {"domain": "d", "configuration": "x", "removed": False}},
    )
    table.commit(5, {"commitInfo": {}})
    return table


NOT_USED = r"00000000000000000004\.checkpoint\.parquet.*read without this file"


def test_a_checkpoint_that_the_version_checksum_contradicts_is_compared_with_the_commits(tmp_path: Any) -> None:
    table = _four(tmp_path)
    table.checkpoint(4, [a for a in table.actions(0, 4) if a.get("add", {}).get("path") != "part-2.parquet"])
    table.crc(5)
    opened = helpers.open_table(table)
    with pytest.warns(deltafast.DeltaWarning, match=NOT_USED) as caught:
        assert len(opened.file_uris()) == 4
    assert len(caught) == 1
    assert "3 live files" in str(caught[0].message)
    assert "4 live files" in str(caught[0].message)
    # What was found once is known from then on.
    assert opened.to_pyarrow_table().num_rows == 40
    assert opened.count() == 40


def test_a_version_checksum_that_commits_and_checkpoint_contradict_is_ignored(tmp_path: Any) -> None:
    table = _four(tmp_path)
    table.checkpoint(4)
    table.last_checkpoint(4, 7, numOfAddFiles=4)
    table.crc(5, numFiles=3)
    opened = helpers.open_table(table)
    with pytest.warns(deltafast.DeltaWarning, match=r"\.crc contradicts the log in `numFiles`"):
        assert len(opened.file_uris()) == 4
    assert opened.to_pyarrow_table().num_rows == 40


def test_a_deletion_vector_that_a_checkpoint_lost_is_found_by_the_checksum(tmp_path: Any) -> None:
    table = log.basic(tmp_path / "vectors")
    vector = table.vector([1, 2, 3])
    old = table.actions(2, 2)[0]["add"]
    table.commit(3, log.protocol(features=["deletionVectors"]))
    table.commit(4, log.remove(old["path"]), {"add": old | {"deletionVector": vector}})
    actions = [a for a in table.actions(0, 4) if a.get("add", {}).get("path") != old["path"] and "remove" not in a]
    table.checkpoint(4, [*actions, {"add": old}])
    table.crc(4, numDeletionVectorsOpt=1, numDeletedRecordsOpt=3)
    with pytest.warns(deltafast.DeltaWarning, match="1 of them with a deletion vector"):
        assert len(helpers.ids(table)) == 27


def test_transactions_and_domains_of_a_checkpoint_are_compared_with_the_checksum(tmp_path: Any) -> None:
    table = _four(tmp_path)
    kept = [a for a in table.actions(0, 4) if "txn" not in a and "domainMetadata" not in a]
    table.checkpoint(4, [*kept, {"txn": {"appId": "app", "version": 5}}])
    table.crc(5)
    opened = helpers.open_table(table)
    with pytest.warns(deltafast.DeltaWarning, match=NOT_USED):
        assert opened.transaction_version("app") == 7
    assert opened.domain_metadata() == {"d": "x"}


def test_a_schema_of_a_checkpoint_is_compared_with_the_checksum(tmp_path: Any) -> None:
    table = _four(tmp_path)
    other = log.metadata([("ie", "long"), ("name", "string")])
    table.checkpoint(4, [other if "metaData" in a else a for a in table.actions(0, 4)])
    table.crc(5)
    with pytest.warns(deltafast.DeltaWarning, match=r"`metadata.schemaString` .*00000000000000000004\.checkpoint"):
        opened = helpers.open_table(table)
    assert [f.name for f in opened.schema().fields] == ["id", "name"]


def _large(tmp_path: Any, change: Any) -> log.Table:
    """Return a table whose checkpoint is too large to be read before the first batch is given out."""
    table = log.Table(tmp_path / "large")
    generator = random.Random(5)
    adds = [log.add(f"{generator.randbytes(240).hex()}.parquet", n) for n in range(20_000)]
    table.commit(0, log.protocol(), log.metadata(), *adds)
    table.commit(1, log.remove(adds[10_000]["add"]["path"]))
    table.checkpoint(1, change(table.actions(0, 1), adds))
    assert table.checkpoint_file(1).stat().st_size > 4 << 20
    table.commit(2, {"commitInfo": {}})
    table.crc(2)
    return table


def test_a_stream_gives_the_files_that_a_large_checkpoint_lacks(tmp_path: Any) -> None:
    table = _large(tmp_path, lambda actions, adds: [a for a in actions if a not in (adds[7], adds[17_000])])
    opened = helpers.open_table(table)
    found = pa.table(opened.get_add_actions()).column("path").to_pylist()
    # Behind a stream nothing calls Python, so the next call warns.
    with pytest.warns(deltafast.DeltaWarning, match=r"19997 live files.*19999 live files"):
        opened.file_uris()
    assert len(found) == len(set(found)) == 19_999


def test_a_stream_of_a_large_checkpoint_with_a_file_too_many_ends_in_an_error(tmp_path: Any) -> None:
    table = _large(tmp_path, lambda actions, adds: [a for a in actions if "remove" not in a] + [adds[10_000]])
    opened = helpers.open_table(table)
    with pytest.raises(deltafast.CorruptLogError, match="1 files that a damaged checkpoint named"):
        pa.table(opened.get_add_actions())
    with pytest.warns(deltafast.DeltaWarning, match="20000 live files"):
        opened.file_uris()
    assert pa.table(opened.get_add_actions()).num_rows == 19_999
    assert pa.table(helpers.open_table(table, version=0).get_add_actions()).num_rows == 20_000


def test_a_damaged_checkpoint_is_read_once(three: log.Table) -> None:
    """Without compactions there is nothing to leave out before the checkpoint itself."""

    class CountingStore(FsspecStore):
        """Notes the files that are read."""

        def get_range(self, path: str, start: int, end: int) -> bytes:
            """Read a range."""
            read.append(path)
            return super().get_range(path, start, end)

    read: list[str] = []
    helpers.open_table(three).create_checkpoint()
    three.checkpoint_file(2).write_bytes(b"PAR1" + bytes(500) + b"PAR1")
    store = CountingStore(fsspec.filesystem("file"), str(three))
    with pytest.warns(deltafast.DeltaWarning, match="the table was read without this file"):
        opened = deltafast.DeltaTable(str(three), store=store)
    assert opened.version() == 2
    assert [path for path in read if "checkpoint.parquet" in path] == [f"_delta_log/{three.checkpoint_file(2).name}"]
