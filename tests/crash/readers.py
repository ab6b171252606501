"""Reads a table with deltafast and with `deltalake`, in a process of its own, and vacuums it; answers as JSON.

python -m crash.readers TABLE VERSION...             # what both find at these versions
python -m crash.readers TABLE --vacuum HOURS
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

import deltalake
import pyarrow as pa

import deltafast

COLUMNS = ["id", "p", "k", "v"]


def by_deltafast(place: str, version: int) -> pa.Table:
    """All rows as deltafast reads them."""
    return deltafast.DeltaTable(place, version=version).to_pyarrow_table(columns=COLUMNS)


def by_deltalake(place: str, version: int) -> pa.Table:
    """All rows as deltalake's engine reads them, which knows deletion vectors."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(place, version=version))
    return pa.table(query.execute(f"select {', '.join(COLUMNS)} from t"))


def rows(found: pa.Table) -> list[list[Any]]:
    """All rows, sorted."""
    return sorted(list(row.values()) for row in found.to_pylist())


def main() -> None:
    """Do what the command line says."""
    place, *rest = sys.argv[1:]
    warnings.simplefilter("error", deltafast.DeltaWarning)
    if rest[0] == "--vacuum":
        table = deltafast.DeltaTable(place)
        found: Any = table.vacuum(float(rest[1]), dry_run=False, enforce_retention_duration=False, full=True)
    else:
        found = {
            name: {version: rows(read(place, int(version))) for version in rest}
            for name, read in (("deltafast", by_deltafast), ("deltalake", by_deltalake))
        }
    print(json.dumps(found), flush=True)
    # Threads of pyarrow that are still there make the end of the interpreter a gamble.
    os._exit(0)


if __name__ == "__main__":
    main()
