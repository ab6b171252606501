"""Checkpoints: classic, multi-part, V2 with and without sidecars, and which one is read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
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
