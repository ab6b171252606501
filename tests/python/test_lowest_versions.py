"""The tests of the front surfaces with the lowest versions that `pyproject.toml` declares, and on Python 3.13."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

from support import RELEASED_BEFORE

ROOT = pathlib.Path(__file__).parents[2]
UV = pathlib.Path(sys.executable).with_name("uv")
EXTRAS = ("catalogs", "duckdb", "pandas", "polars", "pyarrow")
#: What these tests import besides the extras.
TOOLS = (
    "deltalake",
    "fsspec",
    "hypothesis",
    "jsonschema",
    "numpy",
    "obstore",
    "opentelemetry-sdk",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "pyyaml",
    "tqdm",
    "tzdata",
)
FILES = (
    "test_append_upsert.py",
    "test_handle.py",
    "test_libraries.py",
    "test_polars.py",
    "test_schema.py",
    "test_table.py",
    "test_writer.py",
    "expr",
    "interop/test_consumers.py",
    "interop/test_duckdb_query.py",
    "interop/test_pyarrow_dataset.py",
    "interop/test_views.py",
    "sql/test_statements.py",
)


def requirements():
    """What is installed, as the project declares it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tools = [text for text in declared["dependency-groups"]["test"] if isinstance(text, str)]
    named = [text for text in tools if re.split(r"[\[<>=]", text)[0] in TOOLS]
    extras = declared["project"]["optional-dependencies"]
    return named + [text for extra in EXTRAS for text in extras[extra]]


def python313():
    """The interpreter of Python 3.13: pyenv's, where it is installed, since its `python3.13` may be off."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    return next(iter(sorted(pyenv.glob("versions/3.13.*/bin/python3"))), "3.13")


@pytest.fixture(scope="module", params=["lowest versions", "Python 3.13"])
def python(request, tmp_path_factory):
    """The interpreter of an environment with these libraries."""
    folder = tmp_path_factory.mktemp("environment")
    is_lowest = request.param == "lowest versions"
    interpreter = sys.executable if is_lowest else python313()
    install = [UV, "pip", "install", "--quiet", "--python", folder / "bin/python", "--exclude-newer", RELEASED_BEFORE]
    resolution = ["--resolution", "lowest-direct"] if is_lowest else []
    environment = os.environ | {"UV_PYTHON_DOWNLOADS": "never"}
    subprocess.run([UV, "venv", "--quiet", "--clear", "--python", interpreter, folder], check=True, env=environment)
    subprocess.run([*install, *resolution, *requirements()], check=True, env=environment)
    return folder / "bin/python"


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("file", FILES)
def test_the_front_surfaces_work_with_other_versions(python, file):
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not proof and not slow and not spark"]
    ran = subprocess.run(
        [*command, f"tests/python/{file}"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}"
