"""Spark Connect."""

from __future__ import annotations

import pytest

from .programs import OTHER, run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("release", [None, OTHER])
def test_tables_statements_jobs_and_streams_work_over_connect(tmp_path, release):
    run("over_connect", str(tmp_path), release=release)
