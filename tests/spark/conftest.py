"""The session of the tests against the reference: Delta's jar and deltafast live side by side in it.

`test_without_jar.py` runs a session of its own, with Spark's usual settings and nothing of Delta's.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from oracle.reference import Reference

pytest.register_assert_rewrite("spark.helpers")


@pytest.fixture(scope="session")
def spark(reference: Reference):
    """Give the session itself, whose executors run this Python."""
    reference._spark.sparkContext.pythonExec = sys.executable
    return reference._spark
