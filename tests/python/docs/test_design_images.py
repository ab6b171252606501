"""The pictures of the design page are those that dev/draw_design.py draws, and the page shows each of them."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[3]
#: The page of results has a picture of its own.
IMAGES = sorted(path for path in (ROOT / "docs" / "images").iterdir() if path.stem not in ("benchmarks", "layout"))
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


def test_the_pictures_are_up_to_date():
    command = [sys.executable, ROOT / "dev" / "draw_design.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr


def test_the_page_shows_each_picture():
    shown = re.findall(r"!\[[^\]]+\]\(images/(\w+\.svg)\)", PAGE)
    assert sorted(shown) == sorted(path.name for path in IMAGES)


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_a_picture_is_well_formed(path):
    assert ET.parse(path).getroot().get("viewBox")


@pytest.mark.parametrize("half", ["Rust", "Python"])
def test_the_page_has_the_ranks_that_are_checked(half, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "dev"))
    import draw_design

    ranks = draw_design.rust_ranks() if half == "Rust" else draw_design.python_ranks()
    section = PAGE.split(f"\n## {half} modules\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+) \| ([^|]+) \|", section, re.MULTILINE)
    pairs = [(ranks.split(", "), re.findall(r"`(\w+)`", names)) for ranks, names in rows]
    page = {name: int(ranks[-1] if index else ranks[0]) for ranks, names in pairs for index, name in enumerate(names)}
    assert page == {name: rank for rank, names in ranks.items() for name in names}
