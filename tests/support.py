"""Helpers shared by test modules."""

import pyarrow as pa


def same_rows(found, expected) -> None:
    """The two tables hold the same rows in any order."""
    found, expected = pa.table(found), pa.table(expected)
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))
