"""Helpers shared by test modules."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Tests install libraries that `uv.lock` does not have, or has in other versions, as they were before this day.
RELEASED_BEFORE = "2026-11-30"


def one_in(count: int, values: Iterable[Any]) -> list[Any]:
    """Return values of a parameter: tests with each `count`th one always run, the others belong to the proof tier."""
    return [pytest.param(value, marks=_tier(n, count)) for n, value in enumerate(values)]


def one_in_product(count: int, *values: Iterable[Any]) -> list[Any]:
    """Return the combinations of the values of several parameters; each `count`th one always runs."""
    return [pytest.param(*case, marks=_tier(n, count)) for n, case in enumerate(itertools.product(*values))]


def _tier(n: int, count: int) -> list[Any]:
    return [pytest.mark.proof] if n % count else []


def same_rows(found, expected) -> None:
    """The two tables hold the same rows in any order."""
    found, expected = pa.table(found), pa.table(expected)
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))
