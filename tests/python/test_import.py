"""Importing the package is cheap and its public names are what they say."""

import subprocess
import sys

import pytest

import deltafast

HEAVY = (
    "pyarrow",
    "pyspark",
    "duckdb",
    "click",
    "rich",
    "matplotlib",
    "sqlglot",
    "polars",
    "pandas",
    "numpy",
    "fsspec",
    "obstore",
    "tqdm",
)


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import deltafast",
        "from deltafast import DeltaTable, Schema, Field, DeltaError",
        "import deltafast.stores, deltafast.progress",
        "import deltafast.spark",
    ],
)
def test_importing_loads_no_other_library(code):
    assert modules_after(code).isdisjoint(HEAVY)


def test_reading_a_statement_loads_no_other_library():
    code = "from deltafast._sql.reading import read_statement as read\nread('DELETE FROM t WHERE a = 1')"
    assert modules_after(code).isdisjoint(HEAVY)


def test_opening_a_table_loads_no_other_library(events_path):
    code = f"""
from deltafast import DeltaTable
table = DeltaTable({str(events_path)!r})
table.version(), table.schema(), table.metadata(), table.protocol(), table.history(), table.count()
"""
    assert modules_after(code).isdisjoint(HEAVY)


@pytest.mark.parametrize("name", deltafast.__all__)
def test_every_public_name_is_there(name):
    assert getattr(deltafast, name) is not None
    assert name in dir(deltafast)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="write_nothing"):
        _ = deltafast.write_nothing


def test_star_import_gives_the_public_names():
    names: dict[str, object] = {}
    exec("from deltafast import *", names)
    assert set(deltafast.__all__) <= set(names)
