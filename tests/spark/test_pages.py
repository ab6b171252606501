"""The examples of the pages on Spark run exactly as they stand, each page in an empty folder and a process of its own."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "spark.md", *sorted((DOCS / "spark").glob("*.md"))]
BLOCKS = {
    page: re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE) for page in PAGES
}


@pytest.mark.parametrize(
    "page",
    [
        # The first page is run each time; the others belong to the proof tier.
        pytest.param(page, id=page.stem, marks=[] if page.parent == DOCS else pytest.mark.proof)
        for page, blocks in BLOCKS.items()
        if blocks
    ],
)
def test_the_examples_of_a_page_run_as_they_stand(page, tmp_path):
    script = "\n".join(BLOCKS[page])
    # In an environment that was activated: Spark's workers run the `python3` of the path.
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-"],
        input=script,
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    # A comment after `print` is what it prints.
    lines, expected = done.stdout.splitlines(), re.findall(r"^print\(.*\)  # (.*)$", script, re.MULTILINE)
    assert [line for line in expected if line not in lines] == []


def test_each_page_but_that_on_stores_has_examples():
    assert [page.stem for page, blocks in BLOCKS.items() if not blocks] == ["stores"]
