"""What tests in several folders share: one Spark with delta-spark, since a process holds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oracle.reference import Reference

pytest.register_assert_rewrite("conformance.compare", "oracle.reference")


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    """Give the running reference."""
    from oracle import reference

    with reference.running() as running:
        yield running
