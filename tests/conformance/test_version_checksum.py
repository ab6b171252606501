"""Version Checksum File: a short cut when it is right, a warning that names the field when it is not."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

from deltafast import DeltaTable, DeltaWarning
from tablekit import log

from . import helpers

if TYPE_CHECKING:
    from collections.abc import Callable

FEATURES = ["columnMapping", "deletionVectors"]


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
def test_an_unreadable_checksum_is_neither_an_error_nor_a_warning(three: log.Table, content: str) -> None:
    (three.log / "00000000000000000002.crc").write_text(content)
    assert helpers.ids(three) == list(range(30))


def _metadata(**changes: Any) -> dict[str, Any]:
    return log.metadata()["metaData"] | changes


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("protocol.minReaderVersion", {"protocol": {"minReaderVersion": 99, "minWriterVersion": 2}}),
        ("protocol.minWriterVersion", {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}),
        ("metadata.id", {"metadata": _metadata(id="another")}),
        ("metadata.name", {"metadata": _metadata(name="another")}),
        ("metadata.description", {"metadata": _metadata(description="another")}),
        ("metadata.format", {"metadata": _metadata(format={"provider": "orc", "options": {}})}),
        ("metadata.schemaString", {"metadata": log.metadata([("other", "string")])["metaData"]}),
        ("metadata.schemaString", {"metadata": _metadata(schemaString="{")}),
        ("metadata.partitionColumns", {"metadata": _metadata(partitionColumns=["name"])}),
        ("metadata.configuration", {"metadata": _metadata(configuration={"a": "b"})}),
        ("metadata.createdTime", {"metadata": _metadata(createdTime=5)}),
    ],
)
def test_a_checksum_that_contradicts_the_log_is_ignored_with_a_warning_that_names_the_field(
    three: log.Table, field: str, changes: dict[str, Any]
) -> None:
    three.checkpoint(1)
    three.crc(2, **changes)
    with pytest.warns(DeltaWarning, match=rf"00000000000000000002\.crc contradicts the log in `{field}` and") as caught:
        opened = helpers.open_table(three)
    assert len(caught) == 1
    assert [f.name for f in opened.schema().fields] == ["id", "name"]
    assert opened.metadata().configuration == {}
    assert opened.to_pyarrow_table().num_rows == 30


def test_the_warning_names_every_field_and_the_line_that_opened_the_table(three: log.Table) -> None:
    three.crc(2, protocol=log.protocol(99, 99)["protocol"], metadata=_metadata(name="x"))
    with pytest.warns(DeltaWarning) as caught:
        DeltaTable(str(three))
    assert "`protocol.minReaderVersion`, `protocol.minWriterVersion`, `metadata.name`" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_order_of_features_and_the_layout_of_the_schema_do_not_count(table: log.Table) -> None:
    meta = log.metadata()
    table.commit(0, log.protocol(features=FEATURES), meta, table.ids("a.parquet", 0, 10))
    protocol = log.protocol(features=FEATURES[::-1])["protocol"]
    spaced = meta["metaData"]["schemaString"].replace(",", " , ")
    table.crc(0, protocol=protocol, metadata=meta["metaData"] | {"schemaString": spaced})
    assert helpers.ids(table) == list(range(10))


def test_features_that_the_log_lacks_are_named(table: log.Table) -> None:
    table.commit(0, log.protocol(features=FEATURES), log.metadata(), table.ids("a.parquet", 0, 10))
    table.crc(0, protocol=log.protocol(features=[*FEATURES, "quantumRows"])["protocol"])
    with pytest.warns(DeltaWarning, match=r"`protocol.readerFeatures`, `protocol.writerFeatures`"):
        assert helpers.ids(table) == list(range(10))


def _plan(opened: DeltaTable) -> object:
    return opened.plan()


@pytest.mark.parametrize("read", [DeltaTable.file_uris, DeltaTable.to_pyarrow_table, _plan])
def test_numbers_of_files_and_bytes_are_compared_once_a_plan_has_read_all_files(
    three: log.Table, read: Callable[[DeltaTable], object]
) -> None:
    three.crc(2, numFiles=77, tableSizeBytes=1)
    opened = helpers.open_table(three)
    with pytest.warns(DeltaWarning, match=r"`numFiles`, `tableSizeBytes`"):
        read(opened)
    # Once is enough.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(opened)
        assert opened.count("id > 5") == 24


def test_numbers_of_deleted_rows_are_compared_too(three: log.Table) -> None:
    vector = three.vector([1, 2])
    three.commit(
        3, log.protocol(features=["deletionVectors"]), three.ids("dv.parquet", 30, 40, add_deletionVector=vector)
    )
    three.crc(3, numDeletedRecordsOpt=2, numDeletionVectorsOpt=1)
    assert helpers.open_table(three).count("id >= 0") == 38
    three.crc(3, numDeletedRecordsOpt=3, numDeletionVectorsOpt=2)
    with pytest.warns(DeltaWarning, match=r"`numDeletionVectorsOpt`, `numDeletedRecordsOpt`"):
        assert helpers.open_table(three).count("id >= 0") == 38


def test_transactions_and_domains_are_the_logs(three: log.Table) -> None:
    three.commit(
        3,
        {"txn": {"appId": "a", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "x", "removed": False}},
    )
    three.crc(3)
    opened = helpers.open_table(three)
    assert opened.transaction_version("a") == 1
    assert opened.domain_metadata() == {"d": "x"}
    three.crc(3, setTransactions=[], domainMetadata=[])
    opened = helpers.open_table(three)
    with pytest.warns(DeltaWarning, match=r"`setTransactions`, `domainMetadata`"):
        assert opened.transaction_version("a") == 1
    assert opened.domain_metadata() == {"d": "x"}


def test_the_in_commit_timestamp_is_the_commits(table: log.Table) -> None:
    properties = {"delta.enableInCommitTimestamps": "true"}
    info = {"commitInfo": {"inCommitTimestamp": 1_700_000_000_000, "operation": "WRITE"}}
    protocol = log.protocol(writer_only=["inCommitTimestamp"])
    table.commit(0, info, protocol, log.metadata(configuration=properties), table.ids("a.parquet", 0, 10))
    table.crc(0, inCommitTimestampOpt=1_700_000_000_000)
    assert helpers.open_table(table).timestamp().timestamp() == 1_700_000_000
    table.crc(0, inCommitTimestampOpt=5)
    opened = helpers.open_table(table)
    with pytest.warns(DeltaWarning, match="`inCommitTimestampOpt`"):
        assert opened.timestamp().timestamp() == 1_700_000_000


def test_a_checksum_of_an_older_version_is_not_the_newest_metadata(three: log.Table) -> None:
    three.crc(2)
    three.commit(3, log.metadata([*log.ID_NAME, ("extra", "long")]))
    assert helpers.read(three).column_names == ["id", "name", "extra"]


def test_moving_to_a_version_warns_of_its_checksum(three: log.Table) -> None:
    three.crc(1, metadata=_metadata(name="another"))
    opened = helpers.open_table(three)
    with pytest.warns(DeltaWarning, match=r"00000000000000000001\.crc"):
        opened.load_as_version(1)
    assert opened.version() == 1
