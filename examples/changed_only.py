"""Update only rows that differ: a hash of the values decides, so that nothing is written for the others.

python examples/changed_only.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa

from deltafast import DeltaTable, write_deltalake


def digest(side: str, columns: list[str]) -> str:
    """Spark SQL for a hash of some columns; a null is not the same as an empty text."""
    parts = ", ".join(f"coalesce(concat('=', cast({side}.`{name}` AS string)), '-')" for name in columns)
    return f"sha2(concat_ws('|', {parts}), 256)"


def update_changed(table: DeltaTable, rows: pa.Table, key: str) -> dict[str, Any]:
    """Give rows new values whose hash is another, and add the others."""
    columns = [name for name in rows.column_names if name != key]
    return (
        table.merge(rows, f"t.`{key}` = s.`{key}`", source_alias="s", target_alias="t")
        .when_matched_update_all(f"{digest('t', columns)} <> {digest('s', columns)}")
        .when_not_matched_insert_all()
        .execute()
    )


def main() -> None:
    """Show it."""
    with tempfile.TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({"id": [1, 2, 3], "a": ["x", None, "z"], "b": [1, 2, 3]}))
        table = DeltaTable(folder)
        rows = pa.table({"id": [1, 2, 3, 4], "a": ["x", "", "z", "w"], "b": [1, 2, 3, 4]})
        metrics = update_changed(table, rows, "id")
        print(metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"])
        print(table.to_pyarrow_table().sort_by("id").to_pylist())


if __name__ == "__main__":
    main()
