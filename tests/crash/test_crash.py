"""Killed writers lose nothing and double nothing; writers that do are found out."""

from __future__ import annotations

import os
import re

import pytest

from . import mini
from .run import Options, run

SEED = int(os.environ.get("DELTAFAST_CRASH_SEED", "0")) or int.from_bytes(os.urandom(3), "big")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_writers_lose_nothing_and_double_nothing(tmp_path, capsys):
    minutes = float(os.environ.get("DELTAFAST_CRASH_MINUTES", "1"))
    report = run(Options(seconds=60 * minutes, seed=SEED, least_kills=300), tmp_path)
    with capsys.disabled():
        print(f"\n{report}")
    assert not report.violations, str(report)
    assert report.kills >= 300, str(report)
    # Every operation came to an end; one that reads the whole table seldom comes to a good one among so many writers.
    from .operations import OPERATIONS

    ended = {end.partition(" ")[0] for end in report.ends}
    done = {end.removesuffix(" done") for end in report.ends if end.endswith(" done")}
    assert ended >= set(OPERATIONS), str(report)
    assert done >= set(OPERATIONS) - {"overwrite"}, str(report)
    assert report.increments > 0
    assert not any(name.startswith("increment gave up") for name in report.ends), str(report)


def sabotaged(tmp_path, wrong, seconds, **options):
    more = {"wrong": wrong}
    found = Options(seconds=seconds, writers=4, kills_per_second=6, seed=SEED, module="mini", more=more, **options)
    return run(found, tmp_path)


@pytest.mark.slow
def test_a_right_writer_is_found_right(tmp_path):
    report = sabotaged(tmp_path, None, 5)
    assert not report.violations, str(report)
    assert report.commits > 50, str(report)
    assert report.kills > 5, str(report)
    assert report.checkpoints > 0, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", mini.SABOTAGE, ids=lambda wrong: wrong.replace(" ", "-"))
def test_a_wrong_writer_is_found_out(tmp_path, wrong):
    report = sabotaged(tmp_path, wrong, 4, stop_early=True, readers=False)
    assert any(re.search(mini.SABOTAGE[wrong], violation) for violation in report.violations), str(report)
