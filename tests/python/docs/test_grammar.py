"""The grammar page has the keywords that the parsers read, and no others; its rules are complete."""

import ast
import re
from pathlib import Path

import pytest

from deltafast._expr.functions import CAST_FUNCTIONS, FUNCTIONS
from deltafast._expr.lexer import tokenize
from deltafast._expr.type_parser import SIMPLE_TYPES
from deltafast._sql import read_columns, reading

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "grammar.md").read_text("utf-8")
#: The rules of each module, without comments.
SECTIONS = {
    section.partition("`")[0]: re.sub(r"\(\*.*?\*\)", "", section.partition("```ebnf\n")[2].partition("```")[0])
    for section in TEXT.split("\n### `")[1:]
}
#: What no rule describes: the search for tables that Spark knows by a name.
NO_RULE = ("named_tables", "_WITH_FROM", "_BEHIND_TABLES")
#: Constants that are no keywords: a time zone, and a key of field metadata.
NO_KEYWORDS = {"UTC", "CURRENT_DEFAULT"}
#: Words that a module compares with the token before another one; they are keywords or functions of other rules.
EARLIER_TOKENS = {"_expr.lexer": {"IN"}, "_expr.parser": {"LTRIM", "RTRIM"}}
#: Modules that read types, and those of one word.
TYPES = {"_expr.type_parser": SIMPLE_TYPES, "_sql.read_columns": read_columns._SIMPLE}
#: Modules that find their statements by regular expressions.
BY_PATTERN = {name for name in SECTIONS if name.startswith("spark.")}
KEYWORD = re.compile(r"[A-Z][A-Z_]+")


def keywords(rules):
    return set(re.findall(r"\b[A-Z][A-Z_]+\b", re.sub(r"'[^']*'", "", rules)))


def source(module):
    return ast.parse((ROOT / "python" / "deltafast" / f"{module.replace('.', '/')}.py").read_text("utf-8"))


def strings(tree):
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def compared(tree):
    """Words of any case to which a token is compared: those of types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            yield from (text for other in node.comparators for text in strings(other) if text.isidentifier())


def defined(node):
    """The name that a statement of a module defines."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return getattr(node, "name", None) or getattr(targets[0], "id", None)


def read_by(module):
    """The keywords in the code of a module: constants in upper case, and the names of types."""
    tree = source(module)
    kept = [node for node in tree.body if defined(node) not in (*NO_RULE, "__all__")]
    values = [text for node in kept for text in strings(node) if KEYWORD.fullmatch(text.replace(" ", ""))]
    out = {word for text in values for word in text.split()}
    if module in TYPES:
        tables = [node for node in kept if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)]
        names = {key.value for node in tables for key in node.value.keys}
        out |= {name.upper() for name in names | TYPES[module].keys() | set(compared(tree))}
    return out


def test_each_section_has_rules_of_a_module():
    assert len(SECTIONS) == TEXT.count("```ebnf") == TEXT.count("\n### ")
    assert all(rules.count("=") for rules in SECTIONS.values())


def test_each_rule_is_defined_once_and_used_rules_exist():
    rules = "".join(SECTIONS.values())
    plain = re.sub(r"'[^']*'", "", rules)
    names = re.findall(r"^(\w+)\s*=", plain, re.MULTILINE)
    assert sorted(names) == sorted(set(names))
    assert set(re.findall(r"\b[a-z]\w*", plain)) <= set(names)


@pytest.mark.parametrize("module", [name for name in SECTIONS if name not in {*BY_PATTERN, "_sql.reading"}])
def test_each_keyword_of_a_module_is_in_its_rules(module):
    assert read_by(module) - NO_KEYWORDS - EARLIER_TOKENS.get(module, set()) - keywords(SECTIONS[module]) == set()


@pytest.mark.parametrize("module", SECTIONS)
def test_each_keyword_of_the_rules_is_in_the_module(module):
    values = [*strings(source(module)), *SIMPLE_TYPES, *reading._STATEMENTS, "DELTA"]
    known = {word.upper() for text in values for word in re.findall(r"\w+", re.sub(r"\\[a-zA-Z]", " ", text))}
    assert keywords(SECTIONS[module]) - known == set()


@pytest.mark.parametrize("word", reading._STATEMENTS)
def test_a_rule_begins_with_each_statement(word):
    rules = "".join(SECTIONS.values())
    assert re.search(rf"^ *\w* *[=|] \(? ?([A-Z]+ (\[.*?\] )?\| )*{word}\b", rules, re.MULTILINE)


@pytest.mark.parametrize("word", reading.QUERY_WORDS)
def test_each_word_that_begins_a_query_is_on_the_page(word):
    assert re.search(rf"^query_begin +=.*\b{word}\b", TEXT, re.MULTILINE)


def test_each_module_that_reads_from_a_cursor_has_a_section():
    folders = ("_expr", "_sql")
    calls = re.compile(r"\b(?:_?cursor|reader|self)\.(?:accept|expect|peek)\w*\(")
    files = [file for folder in folders for file in (ROOT / "python" / "deltafast" / folder).glob("*.py")]
    readers = {f"{file.parent.name}.{file.stem}" for file in files if calls.search(file.read_text("utf-8"))}
    assert readers - {"_expr.cursor"} <= set(SECTIONS)
    assert {"_sql.reader", "_expr.parser"} <= readers


def test_each_operator_of_the_rules_is_one_token():
    for operator in set(re.findall(r"'([^']+)'", "".join(SECTIONS.values()))) - {";"}:
        assert [token.text for token in tokenize(operator)] == [operator, ""]


def test_the_page_on_sql_names_the_functions_that_can_be_used():
    section = (ROOT / "docs" / "sql.md").read_text("utf-8").partition("\n## Functions\n")[2].partition("\n## ")[0]
    assert re.findall(r"`(\w+)`", section) == sorted({*FUNCTIONS, *CAST_FUNCTIONS})
