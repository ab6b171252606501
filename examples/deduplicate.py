"""Append only what is new: rows whose keys the table has are left out, files are never rewritten.

python examples/deduplicate.py
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltafast import DeltaTable, write_deltalake

if TYPE_CHECKING:
    from deltafast.writer import Data


def append_new(table: DeltaTable, rows: Data, keys: list[str]) -> dict[str, Any]:
    """Add the rows whose keys are not there; the batch itself must have each key once."""
    on = " AND ".join(f"target.`{key}` = source.`{key}`" for key in keys)
    return table.merge(rows, on).when_not_matched_insert_all().execute()


def main() -> None:
    """Show it."""
    with tempfile.TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({"event": ["a", "b"], "n": [1, 2]}))
        table = DeltaTable(folder)
        print(append_new(table, pa.table({"event": ["b", "c"], "n": [9, 3]}), ["event"])["num_target_rows_inserted"])
        print(table.to_pyarrow_table().sort_by("event").to_pylist())


if __name__ == "__main__":
    main()
