"""What the README shows, works."""

import datetime as dt
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltafast
from deltafast.cli import main

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    days = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)] * 10
    rows = pa.table({"id": range(20), "amount": [float(i) for i in range(20)], "day": days})
    deltalake.write_deltalake("events", rows, partition_by=["day"])


@pytest.mark.usefixtures("folder")
def test_the_quick_start_is_six_lines_that_run(capsys):
    lines = [line for line in BLOCKS[0].splitlines() if line]
    assert len(lines) == 6
    exec(BLOCKS[0], {})
    printed = capsys.readouterr().out
    assert "0 Schema(" in printed
    assert printed.splitlines()[-1] == "4"


@pytest.mark.usefixtures("folder")
def test_each_line_on_other_libraries_runs():
    names = {
        "table": deltafast.DeltaTable("events"),
        "QueryBuilder": deltafast.QueryBuilder,
        "pl": pl,
        "pa": pa,
        "pc": pc,
    }
    results = [eval(line.split("  #")[0], names) for line in BLOCKS[1].splitlines()]
    assert len(results) == 8
    assert all(len(result) > 0 for result in results)


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
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert not set(re.findall(r"(?:`|^)make ([a-z]+)", text, flags=re.MULTILINE)) - set(targets)
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text)
    assert not [link for link, _ in links if not (document.parent / link).exists()]
    sections = [(document.parent / link if link else document, section) for link, section in links if section]
    assert not [(page.name, section) for page, section in sections if section not in sections_of(page)]
    paths = re.findall(r"`((?:tests|dev|docs|benches|src)/[\w./-]+)`", text)
    assert not [path for path in paths if not (ROOT / path).exists()]


@pytest.mark.usefixtures("folder")
def test_the_section_on_deltalake_runs():
    (block,) = [block for block in BLOCKS if "install_as_deltalake" in block]
    done = subprocess.run([sys.executable, "-c", block], check=True, capture_output=True, text=True)
    assert done.stdout == "4 20\n"
    version = re.search(r"dist/deltalake-(.+)-py3-none-any.whl", README)
    assert version is not None
    assert version[1] == deltalake.__version__


@pytest.mark.usefixtures("folder")
def test_the_section_on_sql_runs():
    (block,) = [block for block in BLOCKS if "deltafast.sql" in block]
    names = {"deltafast": deltafast, "DeltaTable": deltafast.DeltaTable}
    exec(block, names)
    assert [commit["operation"] for commit in names["events"].history(3)] == ["DELETE", "UPDATE", "WRITE"]
    assert names["events"].count() == 12


def test_the_example_of_the_document_on_sql_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sql.md").read_text("utf-8"), flags=re.DOTALL)
    exec(block, {})
    expected = "[{'day': datetime.date(2026, 1, 1), 's': 9.5}, {'day': datetime.date(2026, 1, 2), 's': 0.0}]"
    assert capsys.readouterr().out.splitlines() == [expected, "2"]


@pytest.mark.usefixtures("folder")
def test_the_section_on_the_command_line_runs(capsys):
    (block,) = re.findall(r"```console\n(deltafast info.*?)```", README, flags=re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert len(lines) == 4
    assert [main(line[1:]) for line in lines] == [0, 0, 0, 0]
    assert "events is well" in capsys.readouterr().out
    assert Path("layout.svg").exists()


@pytest.mark.usefixtures("folder")
def test_the_section_on_writing_runs():
    names = {name: getattr(deltafast, name) for name in ("DeltaTable", "Field", "Schema", "write_deltalake")}
    exec(BLOCKS[2], {**names, "pa": pa, "dt": dt})
    table = deltafast.DeltaTable("events")
    assert table.version() == 6
    assert table.count("day = '2026-01-03'") == 4
    assert deltafast.DeltaTable("people").metadata().configuration["delta.constraints.age"] == "age >= 0"


@pytest.mark.usefixtures("folder")
def test_the_section_on_older_versions_and_changes_runs(capsys):
    names = {name: getattr(deltafast, name) for name in ("DeltaTable", "Field", "Schema", "write_deltalake")}
    names |= {"pa": pa, "dt": dt}
    exec(BLOCKS[2], names)
    (block,) = [block for block in BLOCKS if "load_cdf" in block]
    exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "20"
    assert "_change_type: string" in "\n".join(printed)
    changes = names["people"].load_cdf(starting_version=names["since"]).read_all()
    assert sorted(changes["_change_type"].to_pylist()) == ["insert", "insert", "update_postimage", "update_preimage"]
    assert [line for line in printed if line.startswith("4 {")]
