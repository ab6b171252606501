"""The examples of pages run as they stand, each page in an empty folder and a process of its own."""

import pathlib

import pytest

from .blocks import processes, run, run_page

DOCS = pathlib.Path(__file__).parents[3] / "docs"
pytestmark = pytest.mark.slow
#: The page on cloud stores needs servers.
#: They have tests of their own.
_WITH_SERVERS = ("cloud_stores", "glue", "sharing", "unity_catalog")
PAGES = [
    DOCS / "tutorial.md",
    *(page for page in sorted((DOCS / "howto").glob("*.md")) if page.stem not in _WITH_SERVERS),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_run_as_they_stand(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    (blocks,) = processes(text)
    assert blocks
    assert all(printed for code, printed in blocks if "print(" in code and "def process" not in code)
    if 'title="' in text:
        run_page(text, tmp_path)
    else:  # its commands are for tables that are elsewhere
        run(blocks, tmp_path)
