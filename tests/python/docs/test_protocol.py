"""The protocol coverage names tests that exist, and each of its rules has some."""

import re
from pathlib import Path

import pytest

from hostile.generate import load

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "protocol.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(\w+)::(\w+)`", TEXT)))
HOSTILE = {case.name for case in load()}


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_a_named_test_exists(module, name):
    if module == "hostile":
        assert name in HOSTILE
        return
    (file,) = (file for folder in ("conformance", "python") for file in (ROOT / "tests" / folder).rglob(f"{module}.py"))
    assert re.search(rf"^ *def {name}\(", file.read_text("utf-8"), re.MULTILINE)


def test_each_rule_has_a_test():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ")]
    rules = [row for row in rows if not row.endswith("| tests |")]
    assert len(rules) > 50
    assert not [row for row in rules if "::" not in row.split("|")[2]]
