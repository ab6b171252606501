"""Log Compaction Files: an equal result with fewer reads, whoever wrote them."""

from __future__ import annotations

import pytest

import deltafast
from tablekit import log

from . import helpers

APP = "3ae45b72-24e1-865a-a211-34987ae02f2a"


def _example(table: log.Table) -> None:
    """Write the protocol's example: f1 in version 3, then versions 4 to 6."""
    f1, f2, f3, f4 = (table.ids(f"f{i}", 10 * i, 10 * i + 10) for i in range(1, 5))
    table.commit(0, log.protocol(), log.metadata())
    for version in (1, 2):
        table.commit(version, {"commitInfo": {}})
    table.commit(3, f1)
    table.commit(4, {"commitInfo": {}}, f2, log.remove("f1"))
    table.commit(5, {"commitInfo": {}}, f3, f4, {"txn": {"appId": APP, "version": 4389}})
    table.commit(6, {"commitInfo": {}}, log.remove("f3"), {"txn": {"appId": APP, "version": 4390}})


def test_the_compaction_of_versions_4_to_6(table: log.Table) -> None:
    """The example's compaction stands for its commits: they are gone, and the state is the same."""
    _example(table)
    expected = (helpers.ids(table), helpers.paths(table), helpers.open_table(table).transaction_version(APP))
    assert expected == ([*range(20, 30), *range(40, 50)], ["f2", "f4"], 4390)
    actions = table.actions(4, 6)
    assert sorted(next(iter(a)) for a in actions) == ["add", "add", "remove", "remove", "txn"]
    table.compacted(4, 6, actions)
    assert (helpers.ids(table), helpers.paths(table), helpers.open_table(table).transaction_version(APP)) == expected


def test_a_version_inside_the_range_is_read_from_its_commits(table: log.Table) -> None:
    _example(table)
    table.compacted(4, 6)
    assert helpers.paths(table, version=5) == ["f2", "f3", "f4"]
    assert helpers.paths(table, version=4) == ["f2"]
    assert helpers.open_table(table, version=5).transaction_version(APP) == 4389


@pytest.mark.parametrize("versions", [(4, 5, 6), (6, 5, 4)], ids=["oldest first", "newest first"])
def test_unreconciled_actions_give_the_result_of_the_commits(table: log.Table, versions: tuple[int, ...]) -> None:
    """Other writers may just append the commits to each other, in either order: such a file is left out."""
    _example(table)
    lines = [line for v in versions for line in table.commit_file(v).read_text().splitlines()]
    table.compacted(4, 6, lines)
    unreconciled = r"\.compacted\.json: .*not reconciled.*read without this file|not reconciled.*\.compacted\.json"
    with pytest.warns(deltafast.DeltaWarning, match=unreconciled):
        assert helpers.paths(table) == ["f2", "f4"]
    with pytest.warns(deltafast.DeltaWarning, match="two actions `txn`"):
        assert helpers.open_table(table).transaction_version(APP) == 4390


def test_two_actions_of_one_file_in_a_compaction_are_no_reason_to_lose_any(table: log.Table) -> None:
    """The add and the remove of each file, the newest first, as a published test table has them."""
    table.commit(0, log.protocol(), log.metadata())
    for version in range(1, 8):
        adds = [table.ids(f"{version}-{n}.parquet", 20 * version + 10 * n, 20 * version + 10 * n + 10) for n in (0, 1)]
        removes = [log.remove(f"{version - 1}-{n}.parquet") for n in (0, 1)] if version > 1 else []
        table.commit(version, *adds, *removes)
    newest_first = [line for v in range(7, 0, -1) for line in table.commit_file(v).read_text().splitlines()]
    table.compacted(1, 7, newest_first)
    with pytest.warns(deltafast.DeltaWarning, match="not reconciled"):
        assert helpers.paths(table) == ["7-0.parquet", "7-1.parquet"]


def test_files_with_several_deletion_vectors_are_reconciled(table: log.Table) -> None:
    """One path with two deletion vectors is two logical files."""
    _example(table)
    vector = table.vector([1])
    table.commit(7, log.protocol(features=["deletionVectors"]))
    with_vector = table.actions(4, 4)[0]["add"] | {"deletionVector": vector}
    table.commit(8, log.remove("f2"), {"add": with_vector})
    table.compacted(4, 8)
    assert helpers.paths(table) == ["f2", "f4"]
    assert len(helpers.ids(table)) == 19


def test_a_compaction_from_the_first_version_holds_protocol_and_metadata(three: log.Table) -> None:
    three.compacted(0, 2)
    assert helpers.ids(three) == list(range(30))


def test_compactions_above_a_checkpoint(table: log.Table) -> None:
    _example(table)
    table.checkpoint(3)
    table.compacted(4, 5)
    table.drop_commits(0, 2)
    assert helpers.paths(table) == ["f2", "f4"]


def test_a_compaction_that_starts_below_the_checkpoint(table: log.Table) -> None:
    _example(table)
    table.checkpoint(4)
    table.compacted(3, 6)
    assert helpers.paths(table) == ["f2", "f4"]


def test_overlapping_compactions(table: log.Table) -> None:
    _example(table)
    table.compacted(3, 5)
    table.compacted(4, 6)
    table.compacted(0, 6)
    assert helpers.paths(table) == ["f2", "f4"]


def test_a_broken_compaction_is_passed_over(table: log.Table) -> None:
    _example(table)
    table.compacted(4, 6).write_text('{"add":{"pa')
    with pytest.warns(deltafast.DeltaWarning, match=r"\.compacted\.json.*read without this file"):
        assert helpers.paths(table) == ["f2", "f4"]


def test_the_history_is_that_of_the_commits(table: log.Table) -> None:
    _example(table)
    table.compacted(4, 6)
    assert [entry["version"] for entry in helpers.open_table(table).history()] == [6, 5, 4, 3, 2, 1, 0]
