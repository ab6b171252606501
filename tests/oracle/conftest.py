"""One Spark for all tests against the reference; failed comparisons in the helpers show both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .reference import Reference

pytest.register_assert_rewrite("conformance.compare", "conformance.corpus", "oracle.reference")


@pytest.fixture(scope="session")
def spark() -> Iterator[Reference]:
    """Give the running reference."""
    from . import reference

    with reference.running() as running:
        yield running
