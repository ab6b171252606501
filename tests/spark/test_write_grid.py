"""delta-spark leaves the tables that are recorded, with which `sessions/enabled/test_write_grid.py` compares."""

from __future__ import annotations

import json
import pathlib

import pytest

from .write_grid import CASES, outcome

pytestmark = [pytest.mark.spark, pytest.mark.proof, pytest.mark.timeout(600)]

RECORDED = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "spark_writes.json").read_text("utf-8"))["tables"]


@pytest.mark.parametrize("share", range(4))
def test_the_recorded_tables_are_those_of_delta_spark(spark, tmp_path, share):
    for name in list(CASES)[share::4]:
        assert outcome(spark, tmp_path, CASES[name]) == RECORDED[name], name
