"""Tests of sessions other than the main one; each module names its kind and runs in a child process."""

from __future__ import annotations

import pyspark
import pytest


@pytest.fixture(scope="session", autouse=True)
def release(request: pytest.FixtureRequest) -> str:
    """Give the release of PySpark, which is part of each test's name."""
    assert pyspark.__version__.startswith(f"{request.param}."), pyspark.__version__
    return request.param
