"""The cost of each operation grows with the number of columns, not with its square."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

import deltafast

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

COLUMNS: Final = 1_500
#: Four times the columns may take this many times the seconds. A quadratic part that matters takes sixteen.
FACTOR: Final = 8


def rows(columns: int) -> pa.Table:
    return pa.table({f"c{n}": pa.array([1, 2], pa.int64()) for n in range(columns)})


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of all threads."""
    start = os.times()
    work()
    end = os.times()
    return end.user + end.system - start.user - start.system


def append(table: deltafast.DeltaTable, data: pa.Table) -> None:
    deltafast.write_deltalake(table, data, mode="append")


def append_with_new_column(table: deltafast.DeltaTable, data: pa.Table) -> None:
    more = data.append_column("added", pa.array([1, 2]))
    deltafast.write_deltalake(table, more, mode="append", schema_mode="merge")


def update_every_column(table: deltafast.DeltaTable, data: pa.Table) -> None:
    table.update(dict.fromkeys(data.column_names, "7"), predicate="c0 = 1")


def merge(table: deltafast.DeltaTable, data: pa.Table) -> None:
    merger = table.merge(data, "t.c0 = s.c0", source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


def scan(table: deltafast.DeltaTable, data: pa.Table) -> None:
    assert table.scan().read_all().num_columns == data.num_columns


def scan_of_half_the_columns(table: deltafast.DeltaTable, data: pa.Table) -> None:
    assert table.scan(columns=data.column_names[::2]).read_all().num_rows == 2


def filter_many_columns(table: deltafast.DeltaTable, data: pa.Table) -> None:
    predicate = " and ".join(f"c{n} = 1" for n in range(0, data.num_columns, 50))
    assert table.scan(predicate=predicate).read_all().num_rows == 1


def checkpoint(table: deltafast.DeltaTable, data: pa.Table) -> None:
    table.create_checkpoint()
    assert deltafast.DeltaTable(table.table_uri).count() == data.num_rows


def optimize(table: deltafast.DeltaTable, data: pa.Table) -> None:
    append(table, data)
    table.optimize.compact()


def file_list(table: deltafast.DeltaTable, _: pa.Table) -> None:
    assert pa.table(table.get_add_actions(flatten=True)).num_rows == 1


def dataset(table: deltafast.DeltaTable, data: pa.Table) -> None:
    assert table.to_pyarrow_dataset().to_table().num_columns == data.num_columns


OPERATIONS: Final = [
    append,
    append_with_new_column,
    checkpoint,
    dataset,
    file_list,
    filter_many_columns,
    merge,
    optimize,
    scan,
    scan_of_half_the_columns,
    update_every_column,
]


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(operation, marks=[] if operation in (append, scan) else [pytest.mark.proof])
        for operation in OPERATIONS
    ],
    ids=lambda operation: operation.__name__,
)
def test_four_times_the_columns_take_about_four_times_the_time(
    tmp_path: pathlib.Path, operation: Callable[[deltafast.DeltaTable, pa.Table], None]
) -> None:
    """With statistics of every column, the fastest of two runs each."""

    def fastest(columns: int, runs: int) -> float:
        data = rows(columns)
        times: list[float] = []
        for run in range(runs):
            path = str(tmp_path / f"{columns}-{run}")
            everywhere = {"delta.dataSkippingNumIndexedCols": "-1"}
            deltafast.write_deltalake(path, data, configuration=everywhere)
            table = deltafast.DeltaTable(path)
            times.append(seconds(lambda table=table: operation(table, data)))
        return min(times)

    few = fastest(COLUMNS, 2)
    many = fastest(COLUMNS * 4, 2)
    # What takes no time at all is measured too coarsely.
    assert many < FACTOR * max(few, 0.05), f"{COLUMNS} columns {few:.2f} s, four times as many {many:.2f} s"


def test_an_empty_table_of_forty_thousand_columns_is_scanned_at_once(tmp_path: pathlib.Path) -> None:
    """Each column was looked up among all: 20 seconds; without this, less than one, and in this test some more."""
    path = str(tmp_path / "table")
    schema = pa.schema([(f"c{n}", pa.int64()) for n in range(40_000)])
    deltafast.write_deltalake(path, schema.empty_table())
    table = deltafast.DeltaTable(path)
    assert seconds(lambda: table.scan().read_all()) < 4
