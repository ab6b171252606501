"""Helpers shared by test modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def one_in(count: int, values: Iterable[Any]) -> list[Any]:
    """Return values of a parameter: tests with each `count`th one always run, the others belong to the proof tier."""
    return [pytest.param(value, marks=[pytest.mark.proof] if n % count else []) for n, value in enumerate(values)]


def same_rows(found, expected) -> None:
    """The two tables hold the same rows in any order."""
    found, expected = pa.table(found), pa.table(expected)
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))
