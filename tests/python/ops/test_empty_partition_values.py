"""The empty string in a partition column is null, as it is in the log: for conditions and constraints, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import ConstraintViolatedError

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

TYPES = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "binary": pa.binary(),
}


def rows(kind: pa.DataType, *values: str | None) -> pa.Table:
    plain: Any = [value if value is None or kind != pa.binary() else value.encode() for value in values]
    return pa.table(
        {"p": pa.array(plain, pa.string() if pa.types.is_dictionary(kind) else kind).cast(kind), "v": [1] * len(values)}
    )


def partitions(path: pathlib.Path) -> list[Any]:
    return sorted(DeltaTable(path).to_pyarrow_table()["p"].to_pylist(), key=str)


@pytest.mark.parametrize("kind", TYPES)
def test_rows_that_replace_others_are_compared_as_they_are_read(tmp_path, kind):
    given = TYPES[kind]
    is_binary = given == pa.binary()
    write_deltalake(tmp_path, rows(given, "", "b"), partition_by=["p"])
    empty = "X''" if is_binary else "''"
    with pytest.raises(ConstraintViolatedError):
        write_deltalake(tmp_path, rows(given, ""), mode="overwrite", predicate=f"p = {empty}")
    write_deltalake(tmp_path, rows(given, ""), mode="overwrite", predicate="p IS NULL")
    assert partitions(tmp_path) == [None, b"b"] if is_binary else [None, "b"]


WRITES: dict[str, Callable[[pathlib.Path], object]] = {
    "append": lambda path: write_deltalake(path, rows(pa.string(), ""), mode="append"),
    "insert": lambda path: deltafast.sql(f"INSERT INTO delta.`{path}` VALUES ('', 2)"),
    "update": lambda path: DeltaTable(path).update({"p": "''"}),
    "merge": lambda path: (
        DeltaTable(path)
        .merge(rows(pa.string(), ""), "t.v = s.v", source_alias="s", target_alias="t")
        .when_matched_update({"p": "s.p"})
        .execute()
    ),
}


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("constraint", ["not null", "check"])
def test_constraints_see_null(tmp_path, constraint, way):
    nullable = constraint == "check"
    schema = pa.schema([pa.field("p", pa.string(), nullable), ("v", pa.int64())])
    write_deltalake(tmp_path, pa.table([["b"], [1]], schema), partition_by=["p"])
    if nullable:
        DeltaTable(tmp_path).alter.add_constraint({"has_p": "p IS NOT NULL"})
    version = DeltaTable(tmp_path).version()
    with pytest.raises(ConstraintViolatedError):
        WRITES[way](tmp_path)
    assert DeltaTable(tmp_path).version() == version
    assert partitions(tmp_path) == ["b"]


@pytest.mark.parametrize("way", WRITES)
def test_without_constraints_null_is_written(tmp_path, way):
    write_deltalake(tmp_path, rows(pa.string(), "b"), partition_by=["p"])
    WRITES[way](tmp_path)
    assert None in partitions(tmp_path)
    assert "" not in partitions(tmp_path)
