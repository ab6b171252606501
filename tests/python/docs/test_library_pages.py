"""The programs on the pages of libraries run as they stand, with what the pages say must be installed."""

from __future__ import annotations

import pathlib
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from .blocks import run_page

ROOT = pathlib.Path(__file__).parents[3]
PAGES = sorted(page for page in (ROOT / "docs" / "libraries").glob("*.md") if page.stem != "index")
#: Pages whose libraries are those of the tests. The others get an environment of their own.
OF_THE_TESTS = {"dask", "dlt", "duckdb", "pandas", "polars", "pyarrow"}


def requirements(page: str) -> list[str]:
    """Return what the page's installation command installs, deltafast's extras resolved."""
    command = re.search(r"^pip install (.*)$", page, re.MULTILINE)
    assert command is not None
    first, *others = shlex.split(command[1])
    extras = re.fullmatch(r"deltafast\[([\w,]+)\]", first)
    assert extras is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [name for extra in extras[1].split(",") for name in project["optional-dependencies"][extra]] + others


def environment(page: str, folder: pathlib.Path) -> pathlib.Path:
    """Make an environment with these libraries and this tree's deltafast; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    uv = pathlib.Path(sys.executable).with_name("uv")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *requirements(page)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "deltafast.pth").write_text(f"{ROOT / 'python'}\n", encoding="utf-8")
    command = folder / "bin" / "deltafast"
    command.write_text(f'#!/bin/sh\nexec "{python}" -m deltafast "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return python


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OF_THE_TESTS))
def test_a_program_runs_with_the_libraries_of_the_tests(name, tmp_path):
    page = (ROOT / "docs" / "libraries" / f"{name}.md").read_text(encoding="utf-8")
    assert requirements(page)
    run_page(page, tmp_path)


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in OF_THE_TESTS], ids=lambda page: page.stem)
def test_a_program_runs_in_an_environment_of_its_own(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    (tmp_path / "work").mkdir()
    run_page(text, tmp_path / "work", environment(text, tmp_path / "environment"))
