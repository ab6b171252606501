"""Fixtures of the conformance tests; failed comparisons in the helpers show both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tablekit import log

if TYPE_CHECKING:
    import pathlib

pytest.register_assert_rewrite("conformance.compare", "conformance.corpus", "conformance.helpers")


@pytest.fixture
def table(tmp_path: pathlib.Path) -> log.Table:
    """Give an empty table folder."""
    return log.Table(tmp_path / "table")


@pytest.fixture
def three(tmp_path: pathlib.Path) -> log.Table:
    """Give a table of three commits, each adding ten ids: 0 to 9, 10 to 19, 20 to 29."""
    return log.basic(tmp_path / "three")
