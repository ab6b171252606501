"""A program that queries Delta tables with DuckDB, by way of deltalake. It imports nothing of deltafast."""

import sys
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

folder = Path(sys.argv[1])
place = str(folder / "t")
write_deltalake(place, duckdb.sql("SELECT range AS id, range % 3 AS part FROM range(100)"), partition_by=["part"])
table = DeltaTable(place)
events = table.to_pyarrow_dataset()
assert duckdb.sql("SELECT count(*), sum(id) FROM events WHERE part = 1 AND id > 50").fetchall() == [(16, 1192)]
whole = table.to_pyarrow_table()
assert duckdb.sql("SELECT max(id) FROM whole").fetchall() == [(99,)]
stream = table.scan(columns=["id"], predicate="id < 10")
assert duckdb.sql("SELECT count(*) FROM stream").fetchall() == [(10,)]
found = QueryBuilder().register("t", table).execute("SELECT part, count(*) AS n FROM t GROUP BY part ORDER BY part")
assert pa.table(found.read_all()).to_pydict() == {"part": [0, 1, 2], "n": [34, 33, 33]}
print("done")
