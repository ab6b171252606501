"""What `deltafast.sql` returns: a stream that shows itself."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltafast


@pytest.fixture
def many():
    return deltafast.sql("SELECT i AS id, 'v' || i AS s FROM range(100000) t(i)")


def test_a_shell_shows_the_first_rows(many):
    shown = repr(many)
    assert "│ v19" in shown
    assert "v20" not in shown
    assert shown.endswith("... and more rows")
    # The rows that were shown are not lost.
    assert repr(many) == shown
    assert many.read_all()["id"].to_pylist() == list(range(100_000))


def test_a_notebook_shows_a_table():
    result = deltafast.sql("SELECT * FROM (VALUES (1, '<b>'), (2, NULL)) t(a, b)")
    html = result._repr_html_()
    assert "&lt;b&gt;" in html
    assert html.count("<tr>") == 3
    assert "more rows" not in html
    assert result.read_pandas()["a"].to_list() == [1, 2]


def test_what_was_shown_comes_again_in_every_way_of_reading(many):
    repr(many)
    first = many.read_next_batch()
    assert first["id"][0].as_py() == 0
    repr(many)
    rest = sum(batch.num_rows for batch in many)
    assert first.num_rows + rest == 100_000


@pytest.mark.parametrize(
    "read",
    [
        lambda result: pl.DataFrame(result).height,
        lambda result: pa.table(result).num_rows,
        lambda result: len(pd.DataFrame.from_arrow(result)),
        lambda result: duckdb.from_arrow(result.to_pyarrow()).count("*").fetchall()[0][0],
        lambda result: result.cast(pa.schema([("id", pa.int32()), ("s", pa.string())])).read_all().num_rows,
    ],
    ids=["polars", "pyarrow", "pandas", "duckdb", "cast"],
)
def test_other_libraries_read_all_of_it(many, read):
    repr(many)
    assert read(many) == 100_000


def test_commands_have_their_result(tmp_path):
    place = f"delta.`{tmp_path}/t`"
    assert repr(deltafast.sql(f"CREATE TABLE {place} (id BIGINT)")) == "<deltafast.QueryResult without columns>"
    assert "num_affected_rows" in repr(deltafast.sql(f"INSERT INTO {place} VALUES (1), (2)"))
    with deltafast.sql(f"SELECT * FROM {place}") as result:
        assert result.schema == pa.schema([("id", pa.int64())])
        assert next(result).num_rows == 2
        with pytest.raises(StopIteration):
            next(result)


def test_an_interactive_shell_prints_it():
    program = "import deltafast\ndeltafast.sql('SELECT 42 AS answer')\n"
    command = [sys.executable, "-i", "-q", "-c", ""]
    done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=60, check=True)
    assert "│     42 │" in done.stdout
