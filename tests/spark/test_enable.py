"""Programs for delta-spark on deltafast."""

from __future__ import annotations

import pytest

import deltafast.spark
from deltafast.exceptions import InvalidArgumentError

from .programs import OTHER, run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("release", [None, OTHER])
def test_programs_for_delta_spark_run_unchanged(tmp_path, release):
    run("enabled", str(tmp_path), release=release)


def test_a_session_with_deltas_jar_is_left_alone(spark):
    with pytest.raises(InvalidArgumentError, match="Delta's own jar is in this session"):
        deltafast.spark.enable(spark)
    deltafast.spark.disable(spark)
