"""Rows that take megabytes in a file, and what became of their row groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from deltafast import DeltaTable


def large(number: int, count: int = 300_000) -> pa.Table:
    """Return rows that take several megabytes in a file, whatever the codec."""
    chance = np.random.default_rng(number)
    floats = chance.standard_normal(count)
    floats[number * 7 % count] = np.nan if number == 1 else -0.0
    ids = np.arange(number * count, (number + 1) * count)
    strings = pa.array([f"é{n:05}-" + "x" * 40 for n in range(1000)])
    columns = {
        "id": pa.array(ids),
        "value": pa.array(floats, mask=ids % 1000 == 0),
        "noise": pa.array(chance.integers(0, 2**62, count)),
        "price": pa.array(chance.integers(0, 10**6, count)).cast(pa.decimal128(21, 2)),
        "text": strings.take(pa.array(chance.integers(0, 1000, count))),
        "tags": pa.array([["a", None], None, [], ["b"]]).take(pa.array(ids % 4)),
        "deep": pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "z"}]).take(pa.array(ids % 3)),
        "at": pa.array(ids * 1_000_001, pa.timestamp("us", "UTC")),
        "p": pa.array(np.full(count, number % 2)),
    }
    return pa.table(columns)


def whole(rows: pa.Table) -> pa.Table:
    """Return rows by `id`, floats as their bits: `NaN` equals nothing."""
    rows = rows.sort_by("id")
    place = rows.column_names.index("value")
    values = rows["value"].combine_chunks()
    bits = pa.array(
        values.fill_null(0.5).to_numpy(zero_copy_only=False).view(np.int64), mask=np.asarray(values.is_null())
    )
    return rows.set_column(place, "value", bits)


def chunks(table: DeltaTable) -> list[Any]:
    """Return the metadata of every row group of a table's files."""
    files = [pq.ParquetFile(path.removeprefix("file://")).metadata for path in table.file_uris()]
    return [file.row_group(n) for file in files for n in range(file.num_row_groups)]
