"""Version Checksum File: a short cut when it is right, a warning at most when it is not."""

from __future__ import annotations

import pytest

from tablekit import log

from . import helpers

pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_right_checksum_changes_nothing(three: log.Table) -> None:
    three.crc(2)
    opened = helpers.open_table(three)
    assert helpers.ids(three) == list(range(30))
    assert [f.name for f in opened.schema().fields] == ["id", "name"]


def test_a_checksum_over_a_checkpoint(three: log.Table) -> None:
    three.checkpoint(2)
    three.crc(2)
    three.drop_commits(0, 1)
    assert helpers.ids(three) == list(range(30))


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\x00" * 64, '{"protocol":1,"metadata":2}'])
def test_an_unreadable_checksum_is_no_error(three: log.Table, content: str) -> None:
    (three.log / "00000000000000000002.crc").write_text(content)
    assert helpers.ids(three) == list(range(30))


def test_a_checksum_that_contradicts_the_log_is_ignored(three: log.Table) -> None:
    three.crc(2, numFiles=77, tableSizeBytes=1)
    opened = helpers.open_table(three)
    assert opened.get_add_actions().num_rows == 3
    assert opened.count() == 30


def test_a_checksum_of_another_schema_is_ignored(three: log.Table) -> None:
    three.crc(2, metadata=log.metadata([("other", "string")])["metaData"])
    assert helpers.read(three).column_names == ["id", "name"]


def test_a_checksum_of_an_older_version_is_not_the_newest_metadata(three: log.Table) -> None:
    three.crc(2)
    three.commit(3, log.metadata([*log.ID_NAME, ("extra", "long")]))
    assert helpers.read(three).column_names == ["id", "name", "extra"]


def test_transactions_and_domains_are_the_logs(three: log.Table) -> None:
    three.commit(
        3,
        {"txn": {"appId": "a", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "x", "removed": False}},
    )
    three.crc(3, setTransactions=[], domainMetadata=[])
    opened = helpers.open_table(three)
    assert opened.transaction_version("a") == 1
    assert opened.domain_metadata() == {"d": "x"}
