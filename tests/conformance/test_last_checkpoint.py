"""Last Checkpoint File: a hint with a checksum of its canonical JSON."""

from __future__ import annotations

import json

import pytest

from tablekit import log

from . import helpers

FIVE = list(range(50))
EXAMPLE = {
    "k0": "'v 0'",
    "checksum": "adsaskfljadfkjadfkj",
    "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
}


@pytest.fixture
def checkpointed(three: log.Table) -> log.Table:
    """Give a table of five commits with checkpoints at 1 and 3, and only the commits since the second."""
    for version in (3, 4):
        three.commit(version, three.ids(f"part-{version}.parquet", version * 10, version * 10 + 10))
    three.checkpoint(3)
    return three


def test_the_checksum_of_the_protocols_example() -> None:
    """The helper that writes hints here agrees with the protocol's worked example."""
    assert log.checksum(EXAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_a_right_checksum_is_accepted(checkpointed: log.Table) -> None:
    checkpointed.last_checkpoint(3, checksummed=True, sizeInBytes=100, tags={"a b": "c/d", "\N{SNOWMAN}": "~._-"})
    assert helpers.ids(checkpointed) == FIVE


def test_a_wrong_checksum_makes_the_hint_void_not_the_table(checkpointed: log.Table) -> None:
    checkpointed.last_checkpoint(99, checksum="0" * 32)
    assert helpers.ids(checkpointed) == FIVE


def test_a_hint_without_checksum_is_accepted(checkpointed: log.Table) -> None:
    checkpointed.last_checkpoint(3)
    assert helpers.ids(checkpointed) == FIVE


def test_a_hint_with_duplicate_keys_is_invalid(checkpointed: log.Table) -> None:
    (checkpointed.log / "_last_checkpoint").write_text('{"version":99,"version":3,"size":7}')
    assert helpers.ids(checkpointed) == FIVE


def test_a_stale_hint_does_not_hide_newer_checkpoints_or_commits(checkpointed: log.Table) -> None:
    checkpointed.checkpoint(1)
    checkpointed.last_checkpoint(1)
    assert helpers.ids(checkpointed) == FIVE
    checkpointed.drop_commits(0, 2)
    assert helpers.ids(checkpointed) == FIVE


def test_an_old_version_is_not_read_from_a_newer_checkpoint(checkpointed: log.Table) -> None:
    checkpointed.last_checkpoint(3)
    assert helpers.ids(checkpointed, version=1) == list(range(20))


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "not json", '{"version":"x"}', "\x00" * 100])
def test_a_corrupt_hint_leads_to_a_full_listing(checkpointed: log.Table, content: str) -> None:
    (checkpointed.log / "_last_checkpoint").write_text(content)
    assert helpers.ids(checkpointed) == FIVE


def test_actions_embedded_in_the_hint_of_a_v2_checkpoint(three: log.Table) -> None:
    three.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), three.actions(0, 0)[-1])
    file = three.v2_checkpoint(2, kind="parquet", sidecars=2)
    sidecars = [
        {"path": f.name, "sizeInBytes": f.stat().st_size, "modificationTime": 1}
        for f in (three.log / "_sidecars").iterdir()
    ]
    embedded = {
        "path": file.name,
        "sizeInBytes": file.stat().st_size,
        "modificationTime": 1,
        "nonFileActions": [a for a in three.actions(0, 2) if "add" not in a] + [{"checkpointMetadata": {"version": 2}}],
        "sidecarFiles": sidecars,
    }
    three.last_checkpoint(2, v2Checkpoint=embedded, checksummed=True)
    three.drop_commits(0, 2)
    three.commit(3, {"commitInfo": {}})
    assert helpers.ids(three) == list(range(30))


def test_the_schema_of_the_checkpoint_in_the_hint_is_not_trusted(checkpointed: log.Table) -> None:
    schema = json.loads(log.schema_string([("add", "long")]))
    checkpointed.last_checkpoint(3, checkpointSchema=schema)
    assert helpers.ids(checkpointed) == FIVE
