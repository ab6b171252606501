"""Killed writers lose nothing and double nothing; writers that do are found out."""

from __future__ import annotations

import os
import re
import uuid

import pytest

from tablekit import dv

from . import mini
from .operations import OPERATIONS
from .run import Options, run

pytestmark = pytest.mark.proof

SEED = int(os.environ.get("DELTAFAST_CRASH_SEED", "0")) or int.from_bytes(os.urandom(3), "big")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_killed_writers_lose_nothing_and_double_nothing(tmp_path, capsys, vectors):
    """Rows are deleted and updated by copies of their files in one table, by deletion vectors in the other."""
    minutes = float(os.environ.get("DELTAFAST_CRASH_MINUTES", "1"))
    more = {"configuration": {"delta.enableDeletionVectors": vectors}}
    report = run(Options(seconds=30 * minutes, seed=SEED, least_kills=150, more=more), tmp_path)
    with capsys.disabled():
        print(f"\ndeletion vectors {vectors}, {report}")
    assert not report.violations, str(report)
    assert report.increments > 0
    assert report.kills >= 150, str(report)
    # Every operation came to a good end, and whoever counts never gives up.
    assert {end.removesuffix(" done") for end in report.ends if end.endswith(" done")} >= set(OPERATIONS), str(report)
    assert not [end for end in report.ends if end.startswith("increment") and end.endswith("gave up")], str(report)


def test_the_replay_reads_vectors_of_every_kind(tmp_path):
    rows = [0, 7, *range(100, 9000, 2), *range(70_000, 75_000), 1 << 17, 1 << 20, 1 << 33]
    for run_lengths in (False, True):
        data = dv.treemap(rows, run=run_lengths)
        identifier = uuid.uuid4()
        name = tmp_path / "ab" / dv.file_name(identifier)
        name.parent.mkdir(exist_ok=True)
        name.write_bytes(b"\1" + dv.frame(data))
        found = {"storageType": "u", "pathOrInlineDv": dv.relative(identifier, "ab"), "offset": 1}
        found |= {"sizeInBytes": len(data), "cardinality": len(rows)}
        assert dv.deleted(tmp_path, found) == set(rows)
        for wrong in ({"cardinality": 3}, {"offset": 0}, {"sizeInBytes": len(data) - 1}):
            with pytest.raises(ValueError, match=r"cardinality|CRC|size"):
                dv.deleted(tmp_path, found | wrong)
    assert dv.deleted(tmp_path, dv.inline([3, 5])) == {3, 5}


def sabotaged(tmp_path, wrong, seconds, **options):
    more = {"wrong": wrong}
    found = Options(seconds=seconds, writers=4, kills_per_second=6, seed=SEED, module="mini", more=more, **options)
    return run(found, tmp_path)


def test_a_right_writer_is_found_right(tmp_path):
    report = sabotaged(tmp_path, None, 5)
    assert not report.violations, str(report)
    assert report.commits > 50, str(report)
    assert report.kills > 5, str(report)
    assert report.checkpoints > 0, str(report)


@pytest.mark.parametrize("wrong", mini.SABOTAGE, ids=lambda wrong: wrong.replace(" ", "-"))
def test_a_wrong_writer_is_found_out(tmp_path, wrong):
    report = sabotaged(tmp_path, wrong, 4, stop_early=True, readers=False)
    assert any(re.search(mini.SABOTAGE[wrong], violation) for violation in report.violations), str(report)
