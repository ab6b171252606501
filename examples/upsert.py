"""Upsert: rows that are there get new values, the others are added.

python examples/upsert.py
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltafast import DeltaTable, write_deltalake

if TYPE_CHECKING:
    from deltafast.writer import Data


def upsert(table: DeltaTable, rows: Data, keys: list[str]) -> dict[str, Any]:
    """Give rows with known keys their new values, and add the others."""
    on = " AND ".join(f"target.`{key}` = source.`{key}`" for key in keys)
    return table.merge(rows, on).when_matched_update_all().when_not_matched_insert_all().execute()


def main() -> None:
    """Show it."""
    with tempfile.TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
        table = DeltaTable(folder)
        metrics = upsert(table, pa.table({"id": [2, 3], "city": ["Roma", "Lima"]}), ["id"])
        print(metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"])
        print(table.to_pyarrow_table().sort_by("id").to_pylist())


if __name__ == "__main__":
    main()
