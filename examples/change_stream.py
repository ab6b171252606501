"""Apply a stream of changes with several changes a key: only the newest of each counts.

A row of the stream has the key, the values, `op` (`upsert` or `delete`) and `seq`, which grows. The table keeps the
`seq` that it saw last, so that a batch which comes twice, or late, does no harm to rows that are there.

python examples/change_stream.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import duckdb
import pyarrow as pa

from deltafast import DeltaTable, write_deltalake


def newest(changes: pa.Table, key: str) -> pa.Table:
    """Keep the last change of each key: a MERGE takes one row of its source for one of the table."""
    relation = duckdb.from_arrow(changes)
    picked = relation.query(
        "c", f'SELECT * FROM c QUALIFY row_number() OVER (PARTITION BY "{key}" ORDER BY seq DESC) = 1'
    )
    return picked.to_arrow_table()


def apply(table: DeltaTable, changes: pa.Table, key: str) -> dict[str, Any]:
    """Bring the table to where the stream is."""
    values = [name for name in changes.column_names if name != "op"]
    return (
        table.merge(newest(changes, key), f"t.`{key}` = s.`{key}`", source_alias="s", target_alias="t")
        .when_matched_delete("s.op = 'delete' AND s.seq > t.seq")
        .when_matched_update({name: f"s.`{name}`" for name in values}, "s.seq > t.seq")
        .when_not_matched_insert({name: f"s.`{name}`" for name in values}, "s.op <> 'delete'")
        .execute()
    )


def main() -> None:
    """Show it."""
    with tempfile.TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({"id": [1, 2], "v": ["a", "b"], "seq": [1, 1]}))
        table = DeltaTable(folder)
        changes = pa.table(
            {
                "id": [1, 1, 2, 3, 3],
                "v": ["a2", "a3", None, "c", "c2"],
                "seq": [2, 3, 2, 1, 2],
                "op": ["upsert", "upsert", "delete", "upsert", "upsert"],
            }
        )
        apply(table, changes, "id")
        print(table.to_pyarrow_table().sort_by("id").to_pylist())


if __name__ == "__main__":
    main()
