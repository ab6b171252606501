"""The programs on the pages of libraries run as they stand, in environments with nothing but what the pages install."""

from __future__ import annotations

import pathlib
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from support import RELEASED_BEFORE

from .blocks import run_page

ROOT = pathlib.Path(__file__).parents[3]
PAGES = sorted(page for page in (ROOT / "docs" / "libraries").glob("*.md") if page.stem != "index")


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
    install = [uv, "pip", "install", "--quiet", "--python", python, "--exclude-newer", RELEASED_BEFORE]
    subprocess.run([*install, *requirements(page)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "deltafast.pth").write_text(f"{ROOT / 'python'}\n", encoding="utf-8")
    command = folder / "bin" / "deltafast"
    command.write_text(f'#!/bin/sh\nexec "{python}" -m deltafast "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return python


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_program_runs_as_it_stands(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    (tmp_path / "work").mkdir()
    run_page(text, tmp_path / "work", environment(text, tmp_path / "environment"))
