"""Tests against the reference call it `spark`; failed comparisons in the helpers show both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from oracle.reference import Reference

pytest.register_assert_rewrite("conformance.corpus")


@pytest.fixture(scope="session")
def spark(reference: Reference) -> Reference:
    """Give the running reference."""
    return reference
