"""`enable` in a session that has Delta's own jar; see `sessions/enabled` for sessions that have not."""

from __future__ import annotations

import pytest

import deltafast.spark
from deltafast.exceptions import InvalidArgumentError

pytestmark = pytest.mark.spark


def test_a_session_with_deltas_jar_is_left_alone(spark):
    with pytest.raises(InvalidArgumentError, match="Delta's own jar is in this session"):
        deltafast.spark.enable(spark)
    deltafast.spark.disable(spark)
