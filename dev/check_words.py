"""Find words in prose and in names for which the field has a standard term.

    python dev/check_words.py [path ..] [--list] [--count-by-file] [--most 100]
    python dev/check_words.py --self-test

Reads the comments, docstrings and string literals of Rust, Python and Java, and Markdown. Ignored are identifiers,
string literals of one word (they are keys), string literals of test code, code blocks, names in backquotes, and
quotations ("..."). With `--most`, a greater number of words is an error.

Also reads the names of files and the identifiers of Python, split at underscores and capital letters. A name may have
the words that also have a technical sense, such as `lay` or `figure`.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from check_layers import is_test

if TYPE_CHECKING:
    from collections.abc import Iterator

PATHS = ("src", "python", "docs", "README.md", "CHANGELOG.md")
#: Where names are read.
NAME_PATHS = ("python", "tests", "benches", "dev", "examples", "compat")

#: Patterns of words in all their forms, and the terms to write instead. A space also matches a line break.
WORDS = (
    (r"texts", "strings"),
    (r"moments?", "timestamp"),
    (r"tells?|told|telling", "report, distinguish"),
    (r"beside", "alongside, next to"),
    (r"anew", "again"),
    (r"(?:is|are|was|were|be) none", "is not a .."),
    (r"figures?", "metrics, number"),
    (r"pass(?:es|ed|ing)? over", "ignore, skip"),
    (r"(?:do|does|did|done|doing) without", "skip"),
    (r"by way of", "through"),
    (r"lie|lies|lay|lays|lain|lying", "is located, is laid out"),
    (r"ail(?:s|ed|ing)?", "is wrong with"),
    (r"upkeep", "maintenance"),
    (r"mend(?:s|ed|ing)?", "repair"),
    (r"put(?:s|ting)? up with", "tolerate"),
    (r"(?:come|comes|came|coming) to be", "exist, be created"),
)

#: Patterns of text in which these words are right, and the reason.
ALLOWED = (
    (r"(?i:lay|lays|laying) out", "the term for arranging data in files and in memory"),
    (r"(?:lie|lies|lying) between", "the term for a value within an interval"),
    (r"(?:a|one) pass over", "a noun: reading everything once"),
    (r"(?i:there) (?:is|are|was|were) none", "says that something does not exist"),
    (r"(?:be|is|are) (?:None|NONE|none(?=,))", "a value that options have"),
)

#: Patterns of words that no name may have, and the terms to use instead.
NAME_WORDS = (
    (r"texts", "strings"),
    (r"moments?", "timestamp"),
    (r"tells?|told|telling", "report, distinguish"),
    (r"beside", "alongside, next to"),
    (r"anew", "again"),
    (r"figures", "metrics, numbers"),
    (r"ail(?:s|ed|ing)?", "is wrong with"),
    (r"upkeep", "maintenance"),
    (r"mend(?:s|ed|ing)?", "repair"),
    (r"deeds?", "action"),
    (r"wish(?:es|ed)?", "request, options"),
)

#: Names in which these words are right, and the reason.
ALLOWED_NAMES = {
    "tell": "the method of files that returns the position",
}

_SPACE = r"[ \t]*\n?[ \t]*"
_CODE = "\0"
_C_LIKE = r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<raw> \b[bc]?r(?P<hashes>\#*)".*?"(?P=hashes) )
  | (?P<string> \b[bc]?"(?:\\.|[^"\\])*" | "(?:\\.|[^"\\])*" )
  | (?P<character> '(?:\\[^\n']+|\\'|[^'\\\n])' )
"""
_RUST = re.compile(_C_LIKE, re.DOTALL | re.VERBOSE)
_JAVA = re.compile(rf'(?P<block> """.*?""" ) | {_C_LIKE}', re.DOTALL | re.VERBOSE)
_TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
_COMMENT_MARK = re.compile(r"^[ \t]*(?://[/!]?|/?\*+/?)|\*/", re.MULTILINE)
_DELIMITER = re.compile(r"^\w*#*(?:\"\"\"|'''|\"|')|(?:\"\"\"|'''|\"|')#*$")
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_FIELD = re.compile(r"\{[^{}]*\}")
_NOT_PROSE = (
    re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1", re.DOTALL | re.MULTILINE),
    re.compile(r"^[ \t]*(?:>>>|\.\.\. ).*", re.MULTILINE),
    re.compile(r"`[^`\n\0]*(?:\n(?![ \t]*\n)[^`\n\0]*)?`"),
    re.compile(r"(?<=\])\([^)\s]*\)|<[a-z/][^>\n]*>|https?://\S+"),
    re.compile(r'"[^"\n]*"|“[^”]*”'),
)


class Word(NamedTuple):
    """A word that was found in a file."""

    path: Path
    line: int
    text: str
    instead: str


def _pattern(words: str) -> str:
    return words.replace(" ", _SPACE)


_WORDS = [(re.compile(rf"(?<![\w-])(?:{_pattern(words)})(?![\w-])", re.IGNORECASE), to) for words, to in WORDS]
_NAME_WORDS = [(re.compile(words), to) for words, to in NAME_WORDS]
_PART_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALLOWED = [re.compile(rf"\b(?:{_pattern(text)})") for text, _ in ALLOWED]


def words(path: Path, text: str) -> Iterator[Word]:
    """Yield the words in the prose of a file."""
    found = prose(path, text)
    allowed = [match.span() for pattern in _ALLOWED for match in pattern.finditer(found)]
    for pattern, instead in _WORDS:
        for match in pattern.finditer(found):
            if not any(start <= match.start() and match.end() <= end for start, end in allowed):
                line = found.count("\n", 0, match.start()) + 1
                yield Word(path, line, " ".join(match[0].split()), instead)


def names(path: Path, text: str) -> Iterator[Word]:
    """Yield the identifiers of a Python file that have one of the words."""
    if path.suffix in {".py", ".pyi"}:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string not in ALLOWED_NAMES:
                yield from _in_name(path, token.start[0], token.string)


def file_names(top: Path) -> Iterator[Word]:
    """Yield the files below a path, and the path itself, whose names have one of the words."""
    for path in (top, *sorted(top.rglob("*"))):
        if not any(part.startswith((".", "__pycache__")) for part in path.relative_to(top).parts):
            yield from _in_name(path, 1, path.name)


def _in_name(path: Path, line: int, name: str) -> Iterator[Word]:
    parts = {part.lower() for part in _PART_OF_NAME.findall(name)}
    for pattern, instead in _NAME_WORDS:
        if any(pattern.fullmatch(part) for part in parts):
            yield Word(path, line, name, instead)


def prose(path: Path, text: str) -> str:
    """Return the text with everything but prose replaced, at the same positions."""
    if path.suffix == ".md":
        found = text
    elif path.suffix in {".py", ".pyi"}:
        found = _place(text, _python_prose(text))
    else:
        found = _place(text, _c_like_prose(path, text))
    for pattern in _NOT_PROSE:
        found = pattern.sub(_without, found)
    return found


def _without(match: re.Match[str], filling: str = _CODE) -> str:
    """Replace a match, except for its line breaks."""
    return re.sub(r"[^\n]", filling, match[0])


def _blank(match: re.Match[str]) -> str:
    return _without(match, " ")


def _place(text: str, parts: Iterator[tuple[int, str]]) -> str:
    """Return code without its visible characters, and prose in its places."""
    out: list[str] = []
    end = 0
    for start, part in parts:
        out += [re.sub(r"\S", _CODE, text[end:start]), part]
        end = start + len(part)
    return "".join(out) + re.sub(r"\S", _CODE, text[end:])


def _literal(text: str, *, raw: bool = False) -> str:
    """Return the prose of a string literal: nothing of a literal of one word."""
    inside = _FIELD.sub(_without, _DELIMITER.sub(_blank, text))
    if not raw:
        inside = _ESCAPE.sub(_blank, inside)
    return inside if re.search(r"\s", inside[1:-1]) else re.sub(r"\S", _CODE, text)


def _python_prose(text: str) -> Iterator[tuple[int, str]]:
    lines = [0, *(match.end() for match in re.finditer("\n", text))]
    middle = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = lines[token.start[0] - 1] + token.start[1]
        source = text[start : lines[token.end[0] - 1] + token.end[1]]
        if token.type == tokenize.COMMENT:
            yield start, source.replace("#", " ")
        elif token.type == tokenize.STRING:
            yield start, _literal(source)
        elif token.type == middle:
            yield start, _ESCAPE.sub(_blank, source)


def _c_like_prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    java = path.suffix == ".java"
    module = None if java else _TEST_MODULE.search(text)
    tests = 0 if is_test(path) else module.start() if module else len(text)
    for match in (_JAVA if java else _RUST).finditer(text):
        if match["comment"]:
            yield match.start(), _COMMENT_MARK.sub(_blank, match[0])
        elif not match["character"] and match.start() < tests:
            yield match.start(), _literal(match[0], raw=bool(match["raw"]))


def files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files below paths that have prose."""
    suffixes = {".rs", ".py", ".pyi", ".java", ".md"}
    for path in paths:
        if not path.exists():
            sys.exit(f"{path}: no such file or directory")
        yield from [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in suffixes)


def self_test() -> None:
    """Plant words in each kind of prose and in names and see that they are found, and that nothing else is."""
    plants = {
        "a.md": ("Values are texts.\nA file is passed\nover.", 2),
        "b.md": ('Write `moment`, "told" or [text](lies.md).\n\n```\nupkeep\n```\nThere is\nnone.', 0),
        "c.rs": ('/// It mends\n//! anew.\nfn f() { g("the log ails", "moment", r#"was told so"#); }', 4),
        "d.rs": ('fn lay(moment: u64) { let told = \'"\'; h("a {moment} b"); } // done', 0),
        "e.rs": ('#[cfg(test)]\nmod tests {\n // Beside.\n fn f() { g("it lies there"); }\n}', 1),
        "f.py": (
            '"""By way of.\n\n>>> moment\n"""\nx = "is " "none here" + f"puts up {told} with" # Comes to be\n',
            3,
        ),
        "g.py": ('x = {"moment": lie, "figures": 1}\ny = "a\\ntell-tale {moment}"\n', 0),
        "h.java": ('class A { /* Does\n * without. */ String a = """\n  The upkeep of it"""; }', 2),
        "i.py": ("def _moment(rowTexts, MEND_FIRST, ToldBy):\n    return momentum(file.tell(), contexts, figure)\n", 4),
        "read_upkeep.jsonl": ("{}", 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, count) in plants.items():
            path = Path(folder, name)
            path.write_text(text)
            found = [word.text for word in (*words(path, text), *names(path, text), *file_names(path))]
            if len(found) != count:
                sys.exit(f"self-test: {count} words expected in {name}, found: {found}")
    print("words self-test ok")


def main() -> None:
    """Print the number of words, with `--list` each of them, and fail above a limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders to read instead of all")
    parser.add_argument("--list", action="store_true", help="print each word with its place and what to write instead")
    parser.add_argument("--count-by-file", action="store_true", help="print the number of words of each file")
    parser.add_argument("--most", type=int, help="largest number of words")
    parser.add_argument("--self-test", action="store_true", help="check this check first")
    options = parser.parse_args()
    if options.self_test:
        self_test()
    prose_paths = options.paths or [Path(path) for path in PATHS]
    name_paths = options.paths or [Path(path) for path in NAME_PATHS]
    found = [word for path in files(prose_paths) for word in words(path, path.read_text("utf-8"))]
    found += [word for path in files(name_paths) for word in names(path, path.read_text("utf-8"))]
    found += [word for path in name_paths for word in file_names(path)]
    found.sort()
    if options.list:
        for word in found:
            print(f'{word.path}:{word.line}: "{word.text}"; better: {word.instead}')
    counts = Counter(word.path for word in found)
    if options.count_by_file:
        for path, count in counts.most_common():
            print(f"{count:5} {path}")
    print(f"{len(found)} words in {len(counts)} files have a standard term")
    if options.most is not None and len(found) > options.most:
        sys.exit(f"too many words have a standard term: {len(found)}, at most {options.most}; see --list")


if __name__ == "__main__":
    main()
