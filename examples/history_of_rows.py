"""Slowly changing dimension of type 2: the table keeps every value that a row ever had, and since when.

A row whose values changed goes into the source twice: once with its key, which ends the current row, and once without,
which matches nothing and so is added.

python examples/history_of_rows.py
"""

from __future__ import annotations

import datetime as dt
import tempfile
from typing import Any

import duckdb
import pyarrow as pa

from deltafast import DeltaTable, write_deltalake


def record(table: DeltaTable, rows: pa.Table, key: str, value: str, when: dt.date) -> dict[str, Any]:
    """End the rows whose value changed, and add the new ones."""
    connection = duckdb.connect()
    connection.register("new", rows)
    connection.register("current", table.to_pyarrow_table(filters=[("current", "=", True)]))
    both = connection.sql(
        f"""
        SELECT "{key}" AS merge_key, "{key}", "{value}" FROM new
        UNION ALL
        SELECT NULL, new."{key}", new."{value}" FROM new JOIN current USING ("{key}")
        WHERE new."{value}" IS DISTINCT FROM current."{value}"
        """
    ).to_arrow_table()
    day = f"DATE '{when.isoformat()}'"
    return (
        table.merge(both, f"t.`{key}` = s.merge_key AND t.current", source_alias="s", target_alias="t")
        .when_matched_update({"current": "false", "until": day}, f"NOT t.`{value}` <=> s.`{value}`")
        .when_not_matched_insert(
            {key: f"s.`{key}`", value: f"s.`{value}`", "since": day, "until": "NULL", "current": "true"}
        )
        .execute()
    )


def main() -> None:
    """Show it."""
    with tempfile.TemporaryDirectory() as folder:
        start = pa.table(
            {
                "id": [1, 2],
                "city": ["Oslo", "Rome"],
                "since": [dt.date(2025, 1, 1)] * 2,
                "until": pa.array([None, None], pa.date32()),
                "current": [True, True],
            }
        )
        write_deltalake(folder, start)
        table = DeltaTable(folder)
        record(
            table, pa.table({"id": [1, 2, 3], "city": ["Bergen", "Rome", "Lima"]}), "id", "city", dt.date(2026, 1, 1)
        )
        for row in table.to_pyarrow_table().sort_by([("id", "ascending"), ("since", "ascending")]).to_pylist():
            print(row)


if __name__ == "__main__":
    main()
