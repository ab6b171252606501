"""Each name in the glossary occurs in the code, and each of its protocol sections has a link."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.splitlines()
    if line.startswith("| ") and not line.startswith("| term ")
]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`(\w+)`", row[2])})


def test_each_name_occurs_in_the_code():
    files = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "python").rglob("*.py"), *(ROOT / "python").rglob("*.pyi")]
    words = {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}
    assert [name for name in NAMES if name not in words] == []


def test_each_term_has_a_name_and_is_listed_once():
    terms = [row[0] for row in ROWS]
    assert len(terms) > 60
    assert len(set(terms)) == len(terms)
    assert not [row for row in ROWS if len(row) != 4 or not re.fullmatch(r"`\w+`(, `\w+`)*", row[2])]


def test_each_protocol_section_has_a_link():
    links = dict(re.findall(r"^\[(.+)\]: (\S+)$", GLOSSARY, re.MULTILINE))
    sections = {row[1] for row in ROWS if row[1]}
    assert sections == {f"[{section}]" for section in links}
    assert {url.partition("#")[0] for url in links.values()} == {
        "https://github.com/delta-io/delta/blob/master/PROTOCOL.md"
    }
