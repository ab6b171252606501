"""What works where only deltafast is installed, and what errors say where a library is missing."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import polars as pl
import pytest

import deltafast
from deltafast import write_deltalake
from deltafast._libraries import EXTRAS

#: Runs in an environment with nothing but deltafast.
ALONE = """
import sys
import deltafast
from deltafast import DeltaTable, write_deltalake

source = DeltaTable("source")
write_deltalake("copy", source, partition_by="kind")
write_deltalake("copy", source.scan(predicate="id < 3"), mode="append")
table = DeltaTable("copy")
assert sum(batch.num_rows for batch in table.scan(predicate="amount > 10")) == 1
assert table.count() == 5
assert len(table.files()) == len(table.file_uris()) == 4
assert table.delete("id = 1")["num_deleted_rows"] == 2
assert table.update({"amount": "amount + 1"}, predicate="id = 2")["num_updated_rows"] == 2
assert table.append(source.scan(predicate="id = 2"))["num_added_rows"] == 1
assert table.optimize.compact()["numFilesRemoved"] == 2
assert table.optimize.z_order(["id"])["numFilesAdded"] == 1
table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
table.delete("id = 2")
assert table.load_cdf(starting_version=table.version()).read_all().num_rows == 3
table.restore(1)
assert len(table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)) > 0
table.create_checkpoint()
actions = table.get_add_actions(flatten=True)
assert (actions.num_rows, len(actions)) == (4, 4)
assert "partition.kind" in actions.column_names
assert actions.__arrow_c_stream__() is not None
assert [commit["operation"] for commit in table.history(1)] == ["VACUUM END"]
assert [field.name for field in table.schema().fields] == ["id", "kind", "amount"]
assert DeltaTable.create("memory://made", table.schema()).version() == 0
for library in ("pyarrow", "duckdb", "pandas", "polars", "numpy"):
    assert library not in sys.modules, library
"""

#: Calls that need a library, and how the error begins.
MISSING = {
    "table.to_pandas()": "DeltaTable.to_pyarrow_table needs pyarrow",
    "table.to_pyarrow_table()": "DeltaTable.to_pyarrow_table needs pyarrow",
    "table.to_pyarrow_dataset()": "DeltaTable.to_pyarrow_dataset needs pyarrow",
    "table.to_polars()": "DeltaTable.to_polars needs polars",
    "table.scan_polars()": "DeltaTable.scan_polars needs polars",
    "deltafast.polars.scan_delta(table)": "scan_delta needs polars",
    "deltafast.polars.read_delta('source')": "read_delta needs polars",
    "deltafast.polars.scan_cdf('source')": "scan_cdf needs polars",
    "deltafast.polars.write_delta({'id': [1]}, 'x')": "write_delta needs polars",
    "deltafast.polars.sink_delta({'id': [1]}, 'x')": "sink_delta needs polars",
    "table.to_duckdb()": "DeltaTable.to_duckdb needs duckdb",
    "table.scan().schema": "RecordBatchReader.schema needs pyarrow",
    "table.scan().to_pyarrow()": "RecordBatchReader.to_pyarrow needs pyarrow",
    "table.schema().to_arrow()": "Schema.to_arrow needs pyarrow",
    "list(table.stream_changes())": "stream_changes needs pyarrow",
    "table.merge(table, 't.id = s.id', source_alias='s', target_alias='t').when_matched_delete().execute()": (
        "TableMerger.execute needs duckdb"
    ),
    "deltafast.sql('SELECT 1')": "deltafast.sql needs duckdb",
    "deltafast.QueryBuilder()": "deltafast.QueryBuilder needs duckdb",
    "deltafast.doctor.examine('source')": "examine needs duckdb",
    "deltafast.layout.measure(table)": "measure needs duckdb",
    "write_deltalake('memory://x', {'id': [1]})": "write_deltalake needs pyarrow",
}


@pytest.fixture
def run(tmp_path):
    """Run a program in a folder with a table, in an environment with deltafast and some packages."""
    rows = pl.DataFrame({"id": [1, 2, 3], "kind": ["a", "b", "b"], "amount": [0.0, 0.0, 19.9]})
    write_deltalake(tmp_path / "source", rows)
    packages = tmp_path / "packages"
    packages.mkdir()

    def given(program: str, *others: str) -> str:
        package = pathlib.Path(deltafast.__file__).parent
        site = pathlib.Path(pl.__file__).parents[1]
        for folder in (package, *(found for name in others for found in site.glob(name))):
            (packages / folder.name).symlink_to(folder)
        # Without `site`, nothing else is found.
        command = [sys.executable, "-S", "-c", program]
        done = subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": str(packages)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return given


def test_the_wheel_alone_reads_writes_and_maintains(run):
    run(ALONE)


def test_an_error_names_the_library_and_the_command(run):
    program = f"""
import json
import deltafast
import deltafast.doctor
import deltafast.layout
import deltafast.polars
from deltafast import DeltaTable, write_deltalake

table, said = DeltaTable("source"), []
for call in {list(MISSING)!r}:
    try:
        eval(call)
    except deltafast.MissingLibraryError as error:
        assert isinstance(error, ImportError)
        said.append(str(error))
    else:
        said.append("nothing is missing")
print(json.dumps(said))
"""
    for message, begin in zip(json.loads(run(program)), MISSING.values(), strict=True):
        library = begin.rpartition(" ")[2]
        assert message == f"{begin}, which is not installed: pip install 'deltafast[{EXTRAS[library]}]'"


#: Arguments of commands that need a library, and how the line on standard error begins.
COMMANDS = {
    "files source": "files needs pyarrow",
    "head source": "DeltaTable.to_pyarrow_table needs pyarrow",
    "tail source": "stream_changes needs pyarrow",
    "export source -": "export needs pyarrow",
    "append source rows.csv": "append needs pyarrow",
    "merge source rows.csv --on id": "merge needs pyarrow",
    "layout source": "measure needs duckdb",
    "doctor source": "examine needs duckdb",
    "sql SELECT": "sql needs duckdb",
    "alter source --set a=b": "alter needs duckdb",
    "create new a_INT": "create needs duckdb",
    "convert new": "convert needs duckdb",
}


def test_a_command_without_its_library_prints_one_line(run):
    program = f"""
import contextlib, io, json
from deltafast.cli import main

said = []
for command in {list(COMMANDS)!r}:
    with contextlib.redirect_stderr(io.StringIO()) as lines:
        assert main([word.replace("_", " ") for word in command.split()]) == 2, command
    said.append(lines.getvalue())
print(json.dumps(said))
"""
    for line, begin in zip(json.loads(run(program)), COMMANDS.values(), strict=True):
        library = begin.rpartition(" ")[2]
        assert line == f"error: {begin}, which is not installed: pip install 'deltafast[{EXTRAS[library]}]'\n"


def test_polars_is_enough_to_exchange_rows(run):
    run(
        """
import polars as pl
from deltafast import DeltaTable, write_deltalake

table = DeltaTable("source")
write_deltalake(table, {"id": [4], "kind": ["c"], "amount": [1.0]}, mode="append")
write_deltalake(table, [{"id": 5, "kind": "c"}, {"id": 6, "amount": 2.0}], mode="append")
assert table.to_polars(predicate="id > 3").sort("id")["amount"].to_list() == [1.0, None, 2.0]
assert table.scan_polars().filter(pl.col("id") == 2).collect().height == 1
assert pl.DataFrame(table.get_add_actions(flatten=True))["num_records"].sum() == 6
assert pl.DataFrame(table.scan(columns=["id"])).height == 6
assert [pl.DataFrame(batch).height for batch in table.scan(predicate="id = 1")] == [1]
""",
        "polars",
        "_polars_runtime*",
    )
