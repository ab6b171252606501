"""Spark without Delta's jar."""

from __future__ import annotations

import pytest

from .programs import OTHER, run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("release", [None, OTHER])
def test_no_jar_is_needed(tmp_path, release):
    run("without_jar", str(tmp_path), release=release)
