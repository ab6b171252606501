"""Action Reconciliation: which files, transactions, domains, protocol and metadata a version has."""

from __future__ import annotations

import time
import urllib.parse
from typing import TYPE_CHECKING

import pytest

import deltafast
from tablekit import log

from . import helpers

if TYPE_CHECKING:
    import pathlib


def test_a_removed_file_is_gone(three: log.Table) -> None:
    three.commit(3, log.remove("part-1.parquet"))
    assert helpers.ids(three) == [*range(10), *range(20, 30)]


def test_a_file_added_again_after_its_removal_is_there(three: log.Table) -> None:
    add = three.actions(1, 1)[0]
    three.commit(3, log.remove("part-1.parquet"))
    three.commit(4, add)
    assert helpers.ids(three) == list(range(30))


def test_a_file_added_twice_is_there_once(three: log.Table) -> None:
    three.commit(3, *three.actions(1, 1))
    assert helpers.ids(three) == list(range(30))


def test_the_newest_add_of_a_path_counts(three: log.Table) -> None:
    add = three.actions(1, 1)[0]
    add["add"]["tags"] = {"a": "b"}
    add["add"]["modificationTime"] = 1800000000000
    three.commit(3, add)
    adds = helpers.open_table(three).get_add_actions()
    times = adds.column("modification_time").to_pylist()
    found = dict(zip(adds.column("path").to_pylist(), times, strict=True))
    assert found["part-1.parquet"] == 1800000000000
    assert found["part-0.parquet"] == 1700000000000


def test_a_remove_names_a_file_by_path_and_deletion_vector(three: log.Table) -> None:
    """A remove with another deletion vector than the live add's takes nothing away."""
    three.commit(3, log.protocol(features=["deletionVectors"]))
    three.commit(4, log.remove("part-1.parquet", deletionVector=three.vector([1])))
    assert helpers.ids(three) == list(range(30))


def test_an_add_and_a_remove_of_one_path_are_legal_in_a_commit_if_their_vectors_differ(three: log.Table) -> None:
    add = three.actions(1, 1)[0]["add"]
    three.commit(3, log.protocol(features=["deletionVectors"]))
    changed = {"add": add | {"deletionVector": three.vector([0, 1])}}
    three.commit(4, changed, log.remove("part-1.parquet"))
    assert helpers.ids(three) == [*range(10), *range(12, 30)]
    again = {"add": add | {"deletionVector": three.vector([0, 1, 2])}}
    three.commit(5, log.remove("part-1.parquet", deletionVector=changed["add"]["deletionVector"]), again)
    assert helpers.ids(three) == [*range(10), *range(13, 30)]


def test_a_replaced_deletion_vector_leaves_one_file(three: log.Table) -> None:
    add = three.actions(1, 1)[0]["add"]
    three.commit(3, log.protocol(features=["deletionVectors"]))
    three.commit(4, {"add": add | {"deletionVector": three.vector([0])}}, log.remove("part-1.parquet"))
    opened = helpers.open_table(three)
    assert opened.get_add_actions().num_rows == 3
    assert opened.count() == 29


@pytest.mark.parametrize("spelling", ["{p}", "file:{p}", "file://{p}", "file:///{s}"])
def test_spellings_of_an_absolute_path_are_one_file(three: log.Table, spelling: str) -> None:
    outside = three.folder.parent / "clone.parquet"
    (three.folder / "part-2.parquet").rename(outside)
    three.commit(2, log.add(str(outside), outside.stat().st_size))
    assert helpers.ids(three) == list(range(30))
    three.commit(3, log.remove(spelling.format(p=outside, s=str(outside)[1:])))
    assert helpers.ids(three) == list(range(20))


def test_equal_encodings_of_a_path_are_one_file(three: log.Table) -> None:
    three.commit(3, log.remove("%70art-1.parquet"))
    assert helpers.ids(three) == [*range(10), *range(20, 30)]


def test_a_path_is_decoded_once(table: log.Table) -> None:
    """`a%2525b` in the log is the file `a%25b`."""
    add = table.ids("a%25b.parquet", 0, 3)
    assert add["add"]["path"] == "a%2525b.parquet"
    table.commit(0, log.protocol(), log.metadata(), add)
    assert helpers.ids(table) == [0, 1, 2]
    (uri,) = helpers.open_table(table).file_uris()
    assert urllib.parse.unquote(uri).endswith("a%25b.parquet") or uri.endswith("a%25b.parquet")


def test_the_latest_version_of_each_transaction_counts(three: log.Table) -> None:
    for version, (app, number) in enumerate([("a", 1), ("b", 5), ("a", 2)], start=3):
        three.commit(version, {"txn": {"appId": app, "version": number, "lastUpdated": 1}})
    opened = helpers.open_table(three)
    assert opened.transaction_version("a") == 2
    assert opened.transaction_version("b") == 5
    assert opened.transaction_version("never") is None
    assert helpers.open_table(three, version=4).transaction_version("a") == 1


def test_a_transaction_version_may_go_down(three: log.Table) -> None:
    three.commit(3, {"txn": {"appId": "a", "version": 9}})
    three.commit(4, {"txn": {"appId": "a", "version": 3}})
    assert helpers.open_table(three).transaction_version("a") == 3


def test_the_latest_state_of_each_domain_counts(three: log.Table) -> None:
    three.commit(3, log.protocol(writer_only=["domainMetadata"]))
    for version, configuration in enumerate(["one", "two"], start=4):
        three.commit(version, {"domainMetadata": {"domain": "d", "configuration": configuration, "removed": False}})
    assert helpers.open_table(three).domain_metadata() == {"d": "two"}


def test_a_removed_domain_is_gone(three: log.Table) -> None:
    three.commit(3, {"domainMetadata": {"domain": "d", "configuration": "one", "removed": False}})
    three.commit(4, {"domainMetadata": {"domain": "d", "configuration": "one", "removed": True}})
    assert helpers.open_table(three).domain_metadata() == {}
    assert helpers.open_table(three, version=3).domain_metadata() == {"d": "one"}


def test_unknown_domains_survive_checkpoints_and_compaction(three: log.Table) -> None:
    three.commit(3, {"domainMetadata": {"domain": "mine", "configuration": '{"x":1}', "removed": False}})
    three.compacted(2, 3)
    assert helpers.open_table(three).domain_metadata() == {"mine": '{"x":1}'}
    three.checkpoint(3)
    three.drop_commits(0, 2)
    assert helpers.open_table(three).domain_metadata() == {"mine": '{"x":1}'}


def test_the_newest_metadata_counts(three: log.Table) -> None:
    three.commit(3, log.metadata([*log.ID_NAME, ("extra", "long")], name="renamed", configuration={"k": "v"}))
    opened = helpers.open_table(three)
    assert opened.metadata().name == "renamed"
    assert opened.metadata().configuration == {"k": "v"}
    assert helpers.column(three, "extra") == [None] * 30
    assert helpers.open_table(three, version=2).metadata().name is None


def test_the_newest_protocol_counts(three: log.Table) -> None:
    three.commit(3, log.protocol(1, 4))
    assert helpers.open_table(three).protocol().min_writer_version == 4
    assert helpers.open_table(three, version=2).protocol().min_writer_version == 2


def test_tombstones_are_reported(three: log.Table) -> None:
    three.commit(3, log.remove("part-1.parquet", deletionTimestamp=4102444800000))
    tombstones = helpers.open_table(three).tombstones().read_all()
    assert tombstones.column("path").to_pylist() == ["part-1.parquet"]


def test_tombstones_without_extended_metadata_are_read(three: log.Table) -> None:
    three.commit(3, '{"remove":{"path":"part-1.parquet","dataChange":true}}')
    assert helpers.ids(three) == [*range(10), *range(20, 30)]


def test_a_foreign_path_of_a_removed_file_does_not_stop_a_snapshot(three: log.Table) -> None:
    three.commit(3, log.add("s3://bucket/x.parquet", 5))
    three.commit(4, log.remove("s3://bucket/x.parquet"))
    assert helpers.ids(three) == list(range(30))


def test_a_foreign_path_is_refused_when_its_file_would_be_opened(three: log.Table) -> None:
    three.commit(
        3, log.add("s3://bucket/x.parquet", 5, stats='{"numRecords":1,"minValues":{"id":100},"maxValues":{"id":100}}')
    )
    assert len(helpers.paths(three)) == 4
    assert helpers.filtered(three, "id < 5") == list(range(5))
    with pytest.raises(deltafast.exceptions.DeltaError, match="bucket"):
        helpers.ids(three)


def test_the_directory_name_is_never_parsed(table: log.Table) -> None:
    """Partition values are the log's, whatever the folder is called."""
    add = table.data("p=wrong/a.parquet", {"id": [1]}, add_partitionValues={"p": "right"})
    table.commit(0, log.protocol(), log.metadata([("id", "long"), ("p", "string")], ["p"]), add)
    assert helpers.column(table, "p") == ["right"]


def test_unknown_actions_and_fields_are_ignored(three: log.Table) -> None:
    add = three.actions(1, 1)[0]["add"] | {"unknown": {"deep": [1, {"path": "x"}]}}
    three.commit(3, '{"tomorrow":{"path":"part-0.parquet"}}', {"add": add})
    assert helpers.ids(three) == list(range(30))


def test_another_table_id_after_a_refresh_is_an_error(three: log.Table) -> None:
    """The id of a table never changes: another means that the table was replaced."""
    opened = helpers.open_table(three)
    three.commit(3, log.metadata(id="11111111-1111-1111-1111-111111111111"))
    with pytest.raises(deltafast.exceptions.DeltaError):
        opened.update_incremental()


def test_transactions_beyond_their_retention_are_forgotten(table: log.Table) -> None:
    now = int(time.time() * 1000)
    retention = {"delta.setTransactionRetentionDuration": "interval 1 days"}
    table.commit(0, log.protocol(), log.metadata(configuration=retention), table.ids("a.parquet", 0, 10))
    table.commit(1, {"txn": {"appId": "old", "version": 1, "lastUpdated": now - 2 * 86_400_000}})
    table.commit(2, {"txn": {"appId": "new", "version": 2, "lastUpdated": now - 3_600_000}})
    table.commit(3, {"txn": {"appId": "timeless", "version": 3}})
    opened = helpers.open_table(table)
    assert [opened.transaction_version(app) for app in ("old", "new", "timeless")] == [None, 2, None]


@pytest.mark.parametrize("how", ["all", "by prefix", "by another prefix"])
def test_foreign_paths_are_opened_where_the_caller_allows_them(tmp_path: pathlib.Path, how: str) -> None:
    table = log.basic(tmp_path / "table", 1)
    other = log.Table(tmp_path / "other").ids("x.parquet", 10, 20)
    other["add"]["path"] = "../other/x.parquet"
    table.commit(1, other)
    allowed = {"all": True, "by prefix": ["../other/"], "by another prefix": ["../elsewhere/"]}[how]
    if how == "by another prefix":
        with pytest.raises(deltafast.exceptions.StorageError, match=r"climbs out of the table.*allow_external_paths"):
            helpers.ids(table, allow_external_paths=allowed)
    else:
        assert helpers.ids(table, allow_external_paths=allowed) == list(range(20))
