"""What the README shows, works."""

import importlib.util
import re
import shlex
from pathlib import Path

import deltalake
import pytest

import deltafast
from deltafast import DeltaTable
from deltafast.cli import main

from .blocks import processes, run

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The empty folder in which the examples run, after those of the first process."""
    folder = tmp_path_factory.mktemp("readme")
    run(processes(README)[0], folder)
    return folder


def test_the_examples_run_as_they_stand(folder):
    first, *others = processes(README)
    assert (len(first), [len(blocks) for blocks in others]) == (12, [1, 1])
    assert all(printed for code, printed in first if "print(" in code and "batch.cursor" not in code)
    assert DeltaTable(folder / "sales").history(1)[0]["operation"] == "DELETE"


def test_the_example_of_a_replacement_for_deltalake_runs_as_it_stands(folder):
    (blocks,) = [blocks for blocks in processes(README) if "install_as_deltalake" in blocks[0][0]]
    run(blocks, folder)
    version = re.search(r"dist/deltalake-(.+)-py3-none-any.whl", README)
    assert version is not None
    assert version[1] == deltalake.__version__


@pytest.mark.spark
def test_the_example_of_spark_runs_as_it_stands(tmp_path):
    (blocks,) = [blocks for blocks in processes(README) if "pyspark" in blocks[0][0]]
    run(blocks, tmp_path)


def test_methods_named_in_the_readme_exist():
    named = re.search(r"Further methods: (.*?)\n\n", README, flags=re.DOTALL)
    assert named is not None
    for name in re.findall(r"`(\w+)`", named[1]):
        assert hasattr(deltafast.DeltaTable, name), name


def sections_of(page):
    """Return the anchors of a page: those that it names, and those of its headings, as GitHub forms them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    named = re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)
    return {*named, *(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_documents_name_is_there(document):
    """Names after `deltafast.` and `DeltaTable.`, targets after `make`, linked files, paths into the project."""
    text = document.read_text(encoding="utf-8")
    for owner, name in re.findall(r"`(?:[\w.]*\()?(deltafast|DeltaTable)\.(\w+)", text):
        where = deltafast if owner == "deltafast" else deltafast.DeltaTable
        assert hasattr(where, name) or importlib.util.find_spec(f"deltafast.{name}"), f"{owner}.{name}"
    rules = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    targets = set(" ".join(rules).split())
    assert not set(re.findall(r"(?:`|^)make ([a-z-]+)", text, flags=re.MULTILINE)) - targets
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text)
    assert not [link for link, _ in links if not (document.parent / link).exists()]
    sections = [(document.parent / link if link else document, section) for link, section in links if section]
    assert not [(page.name, section) for page, section in sections if section not in sections_of(page)]
    paths = re.findall(r"`((?:tests|dev|docs|benches|src)/[\w./-]+)`", text)
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_example_of_the_document_on_sql_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sql.md").read_text("utf-8"), flags=re.DOTALL)
    exec(block, {})
    expected = "[{'day': datetime.date(2026, 1, 1), 's': 9.5}, {'day': datetime.date(2026, 1, 2), 's': 0.0}]"
    assert capsys.readouterr().out.splitlines() == [expected, "2"]


def test_the_section_on_the_command_line_runs(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (block,) = re.findall(r"```console\n(deltafast info.*?)```", README, flags=re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert len(lines) == 4
    assert [main(line[1:]) for line in lines] == [0, 0, 0, 0]
    assert "events is well" in capsys.readouterr().out
    assert Path("layout.svg").exists()
