"""The documentation site builds without a warning, and its reference has every public name."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import zlib

import pytest

import deltafast

ROOT = pathlib.Path(__file__).parents[3]
#: Names that are values or versions.
LEFT_OUT = {"__version__", "build_profile", "rust_core_version", "install_as_deltalake"}


@pytest.mark.slow
def test_the_site_builds_strictly_and_has_all_public_names(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    inventory = (tmp_path / "site" / "objects.inv").read_bytes().split(b"\n", 4)[4]
    described = {line.split(" ", 1)[0].rpartition(".")[2] for line in zlib.decompress(inventory).decode().splitlines()}
    assert set(deltafast.__all__) - LEFT_OUT - described == set()
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "deltafast[all]" in start
    pages = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in (ROOT / "docs").rglob("*.md")}
    pages = {page.removesuffix("/index") for page in pages}
    built = {str(page.parent.relative_to(tmp_path / "site")) for page in (tmp_path / "site").rglob("index.html")}
    assert pages - built == {"README"}
