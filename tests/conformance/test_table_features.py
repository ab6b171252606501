"""Table Features and protocol versions: what is needed is checked first and refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import deltafast
from tablekit import log

from . import helpers

READER_FEATURES = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "typeWidening",
    "typeWidening-preview",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
]
WRITER_FEATURES = [
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "rowTracking",
    "domainMetadata",
    "inCommitTimestamp",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "clustering",
    "allowColumnDefaults",
    "collations",
    "checkpointProtection",
    "materializePartitionColumns",
    "someFeatureOfTheFuture",
]


def _with(table: log.Table, protocol: log.Action) -> None:
    table.commit(0, protocol, log.metadata(), table.ids("a.parquet", 0, 5))


def _body(reader: int, writer: int, **lists: list[str]) -> log.Action:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **lists}}


@pytest.mark.parametrize("feature", READER_FEATURES)
def test_a_known_reader_feature_is_read(table: log.Table, feature: str) -> None:
    _with(table, log.protocol(features=[feature]))
    assert helpers.ids(table) == list(range(5))
    assert feature in (helpers.open_table(table).protocol().reader_features or [])


@pytest.mark.parametrize("feature", WRITER_FEATURES)
def test_a_writer_feature_never_stops_a_read(table: log.Table, feature: str) -> None:
    _with(table, log.protocol(writer_only=[feature]))
    assert helpers.ids(table) == list(range(5))


@pytest.mark.parametrize(("reader", "writer"), [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6), (1, 7), (2, 7)])
def test_legacy_protocols_are_read(table: log.Table, reader: int, writer: int) -> None:
    lists = {"writerFeatures": ["columnMapping"] if reader == 2 else []} if writer == 7 else {}
    _with(table, _body(reader, writer, **lists))
    assert helpers.ids(table) == list(range(5))


def test_an_unknown_reader_feature_is_refused_by_name(table: log.Table) -> None:
    _with(table, log.protocol(features=["deletionVectors", "quantumRows"]))
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match="quantumRows") as caught:
        helpers.open_table(table)
    assert "deletionVectors" not in str(caught.value)


def test_all_unknown_reader_features_are_named(table: log.Table) -> None:
    _with(table, log.protocol(features=["quantumRows", "darkColumns"]))
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match="quantumRows") as caught:
        helpers.open_table(table)
    assert "darkColumns" in str(caught.value)


def test_the_refusal_of_a_newer_protocol_names_both_version_pairs_and_says_to_upgrade(table: log.Table) -> None:
    _with(table, _body(4, 8))
    with pytest.raises(deltafast.exceptions.DeltaProtocolError) as caught:
        helpers.open_table(table)
    message = str(caught.value)
    for text in ["4", "8", "3", "7", "upgrade", "deltafast"]:
        assert text in message.lower() if text.isalpha() else text in message


def test_a_refusal_is_a_not_implemented_error(table: log.Table) -> None:
    _with(table, log.protocol(features=["quantumRows"]))
    with pytest.raises(NotImplementedError):
        helpers.open_table(table)


@pytest.mark.parametrize(
    ("feature", "writer_only", "missing"),
    [
        ("catalogManaged", ["inCommitTimestamp"], "vacuumProtocolCheck"),
        ("variantShredding", [], "variantType"),
        ("variantShredding", ["variantType-preview"], "variantType"),
        (None, ["clustering"], "domainMetadata"),
    ],
)
def test_a_feature_without_what_it_needs_is_not_written(
    table: log.Table, feature: str | None, writer_only: list[str], missing: str
) -> None:
    _with(table, log.protocol(features=[feature] if feature else None, writer_only=writer_only))
    opened = helpers.open_table(table, max_table_version=0)
    assert opened.count() == 5
    with pytest.raises(deltafast.exceptions.DeltaError, match=f"but not `{missing}`, which it needs"):
        deltafast.write_deltalake(opened, opened.to_pyarrow_table(), mode="append")
    assert table.commit_file(1).exists() is False


def test_an_old_name_of_timestamp_ntz_is_read_and_written(table: log.Table) -> None:
    columns = [("id", "long"), ("t", "timestamp_ntz")]
    add = table.data("a.parquet", {"id": [1], "t": pa.array([7], pa.timestamp("us"))})
    table.commit(0, log.protocol(features=["timestampWithoutTimezone"]), log.metadata(columns), add)
    opened = helpers.open_table(table)
    rows = opened.to_pyarrow_table()
    assert rows.column("t").cast(pa.int64()).to_pylist() == [7]
    deltafast.write_deltalake(opened, rows, mode="append")
    assert not any("protocol" in action for action in table.actions(1, 1))
    opened.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    protocol = opened.protocol()
    assert protocol.reader_features == ["deletionVectors", "timestampNtz"]
    assert "timestampWithoutTimezone" not in (protocol.writer_features or [])
    assert opened.count() == 2


@pytest.mark.parametrize("name", ["catalogOwned", "catalogOwned-preview"])
def test_the_old_catalog_owned_is_refused_by_name(table: log.Table, name: str) -> None:
    _with(table, log.protocol(features=[name], writer_only=["inCommitTimestamp"]))
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match=name):
        helpers.open_table(table)


def _catalog_managed(table: log.Table) -> tuple[str, int, int]:
    """Write a catalog-managed table whose version 1 is staged; return the staged commit."""
    protocol = log.protocol(features=["catalogManaged"], writer_only=["inCommitTimestamp"])
    metadata = log.metadata(configuration={"delta.enableInCommitTimestamps": "true"})
    info = {"commitInfo": {"inCommitTimestamp": 1_700_000_000_000, "txnId": "t0"}}
    table.commit(0, info, protocol, metadata, table.ids("a.parquet", 0, 5))
    staged = table.log / "_staged_commits" / "00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    staged.parent.mkdir()
    second = {"commitInfo": {"inCommitTimestamp": 1_700_000_001_000, "txnId": "t1"}}
    lines = [second, table.ids("b.parquet", 5, 10)]
    staged.write_text("".join(log.dumps(line) + "\n" for line in lines))
    return str(staged), 1, staged.stat().st_size


def test_a_catalog_managed_table_is_read_with_the_catalogs_commits(table: log.Table) -> None:
    staged = _catalog_managed(table)
    opened = helpers.open_table(table, log_tail=[staged])
    assert opened.version() == 1
    assert sorted(opened.to_pyarrow_table().column("id").to_pylist()) == list(range(10))


def test_a_catalog_managed_table_without_its_catalog_is_refused(table: log.Table) -> None:
    _catalog_managed(table)
    with pytest.raises(deltafast.exceptions.DeltaProtocolError, match="catalog"):
        helpers.open_table(table).to_pyarrow_table()


def test_staged_commits_that_no_catalog_names_are_ignored(three: log.Table) -> None:
    staged = three.log / "_staged_commits"
    staged.mkdir()
    (staged / "00000000000000000003.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json").write_text("junk")
    assert helpers.ids(three) == list(range(30))


@pytest.mark.parametrize(
    "protocol",
    [
        _body(2, 7, readerFeatures=["columnMapping"], writerFeatures=["columnMapping"]),
        _body(3, 6, readerFeatures=[], writerFeatures=[]),
        _body(3, 7, readerFeatures=["deletionVectors"], writerFeatures=[]),
        _body(3, 7),
    ],
    ids=["reader list below reader 3", "reader 3 with writer 6", "reader list alone", "no lists"],
)
def test_feature_lists_that_contradict_the_versions_are_corrupt(table: log.Table, protocol: Any) -> None:
    _with(table, protocol)
    with pytest.raises((deltafast.exceptions.CorruptLogError, deltafast.exceptions.DeltaProtocolError)):
        helpers.open_table(table)


def test_a_feature_that_was_dropped_does_not_stop_a_read(table: log.Table) -> None:
    _with(table, log.protocol(features=["quantumRows"]))
    table.commit(1, log.protocol(1, 2))
    assert helpers.ids(table) == list(range(5))


def test_another_format_than_parquet_is_refused_by_name(table: log.Table) -> None:
    table.commit(0, log.protocol(), log.metadata(format={"provider": "avro", "options": {}}))
    with pytest.raises(deltafast.exceptions.DeltaError, match="avro"):
        helpers.open_table(table)
