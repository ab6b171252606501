"""Use an installed deltafast where nothing but the wheel may be installed: create, change and read a table."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import deltafast
from deltafast import DeltaTable, Field, Schema, write_deltalake


def main() -> None:
    """Check the installed package, or exit with the first difference."""
    with tempfile.TemporaryDirectory() as folder:
        source, copy = Path(folder) / "source", Path(folder) / "copy"
        table = DeltaTable.create(source, Schema([Field("id", "long"), Field("name", "string")]))
        write_deltalake(copy, table)
        counts = DeltaTable(copy).count(), DeltaTable(copy).delete("id = 1")["num_deleted_rows"]
        if counts != (0, 0):
            sys.exit(f"a copy of an empty table has these rows and deleted rows: {counts}")
        answer = subprocess.run(["deltafast", "history", str(copy)], capture_output=True, text=True, check=True).stdout
        if "WRITE" not in answer:
            sys.exit(f"the command `deltafast history` printed: {answer}")
    print(f"deltafast {deltafast.__version__} of {Path(deltafast.__file__).parent} works")


if __name__ == "__main__":
    main()
