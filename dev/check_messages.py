"""Checks that no program branches on the message of an error: errors have codes and parameters for that.

In Python, an exception's text may be shown, shortened and put into another message, but not compared, searched or
matched. In Rust, the same holds for `what` and `to_string()` of an error. Errors of other libraries that have no codes
are listed in `LIBRARIES` with the reason.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Files that read messages of other libraries, and why there is no other way.
LIBRARIES: dict[str, str] = {
    "python/deltafast/_interop/duckdb_query.py": "DuckDB's exceptions have no codes",
    "python/deltafast/spark/_write/row_errors.py": "a task's error reaches the driver as text, with JSON of ours in it",
    "src/store/remote.rs": "object_store has no kind of error for a list that ends early",
    "src/error/call_option.rs": "a mark in a message is replaced",
}

#: Methods of strings that find something in them; `partition` and the like also shorten.
SEARCHES = {"startswith", "endswith", "find", "rfind", "index", "rindex", "count"}
SPLITS = {"partition", "rpartition", "split", "rsplit"}
MATCHERS = {"search", "match", "fullmatch", "findall", "finditer"}
#: Separators of the lines and parts of a message, at which it is shortened.
LINES = {"\n", "\n\n", None}
#: A comparison of an error's text in Rust.
RUST = re.compile(r"\b(?:what|message|to_string\(\))\.(?:contains|starts_with|ends_with|find|strip_prefix)\(")


class Branches(ast.NodeVisitor):
    """Finds the places of a module where the text of an exception decides."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        #: Names of exceptions, and of strings that were made from them.
        self._errors: set[str] = set()
        self._messages: set[str] = set()

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Visit a handler, in which its name is an exception."""
        if node.name is not None:
            self._errors.add(node.name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit a function, whose parameters of an exception's type are exceptions."""
        before = set(self._errors), set(self._messages)
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if one.annotation is not None and re.search(r"Error\b|Exception\b", ast.unparse(one.annotation)):
                self._errors.add(one.arg)
        self.generic_visit(node)
        self._errors, self._messages = before

    def visit_Assign(self, node: ast.Assign) -> None:
        """Visit an assignment: a name of a text of an exception is one, too."""
        self.generic_visit(node)
        if self._has_text(node.value):
            self._messages.update(
                name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)
            )

    def visit_Call(self, node: ast.Call) -> None:
        """Visit a call of a method that searches."""
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return
        name, arguments = node.func.attr, node.args
        if name in MATCHERS and any(self._is_text(argument) for argument in arguments):
            self.lines.append(node.lineno)
        if name in SEARCHES and self._is_text(node.func.value):
            self.lines.append(node.lineno)
        if name in SPLITS and self._is_text(node.func.value):
            separator = arguments[0] if arguments else ast.Constant(None)
            if not (isinstance(separator, ast.Constant) and separator.value in LINES):
                self.lines.append(node.lineno)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Visit a comparison."""
        self.generic_visit(node)
        sides = (node.left, *node.comparators)
        is_none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
        if not is_none and any(self._is_text(side) for side in sides):
            self.lines.append(node.lineno)

    def _is_text(self, node: ast.AST) -> bool:
        """Return whether an expression is an exception's text, or a part of it."""
        match node:
            case ast.Name(id=name):
                return name in self._messages
            case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
                return name in self._errors
            case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
                return self._is_text(value)
            case ast.Attribute(value=ast.Name(id=name), attr="message" | "args" | "strerror" | "reason"):
                return name in self._errors
            case _:
                return False

    def _has_text(self, node: ast.AST) -> bool:
        return any(self._is_text(part) for part in ast.walk(node) if isinstance(part, ast.expr)) and not any(
            isinstance(part, ast.JoinedStr) for part in ast.walk(node)
        )


def python_branches(source: str) -> list[int]:
    """Return the lines of a module in which an exception's text decides."""
    branches = Branches()
    branches.visit(ast.parse(source))
    return branches.lines


def rust_branches(source: str) -> list[int]:
    """Return the lines of a module outside of its tests in which an error's text decides."""
    text = source.partition("#[cfg(test)]")[0]
    return [number for number, line in enumerate(text.splitlines(), 1) if RUST.search(line)]


SELF_TEST = """
try:
    run()
except ValueError as error:
    text = str(error)
    found = PATTERN.search(text)                    # decides
    if "missing" in str(error):                     # decides
        pass
    if error.message.startswith("no table"):        # decides
        pass
    name, _, rest = text.partition(": ")            # decides
    raise TypeError(f"cannot run: {error}") from None
    first = text.partition("\\n")[0]
    if error.code == "NO_TABLE" or error.detail is None:
        pass
"""


def self_test() -> None:
    """Fail unless the rules find what they should."""
    expected = [number for number, line in enumerate(SELF_TEST.splitlines(), 1) if "# decides" in line]
    if python_branches(SELF_TEST) != expected:
        sys.exit(f"self-test: {python_branches(SELF_TEST)} instead of {expected}")
    if rust_branches('if what.ends_with("x") {\n#[cfg(test)]\nwhat.contains("y")') != [1]:
        sys.exit("self-test: the rule for Rust")


def main() -> None:
    """Print the places and fail if there are any."""
    self_test()
    found: list[str] = []
    for path in sorted((ROOT / "python").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if name not in LIBRARIES:
            found += [f"{name}:{line}" for line in python_branches(path.read_text("utf-8"))]
    for path in sorted((ROOT / "src").rglob("*.rs")):
        name = str(path.relative_to(ROOT))
        if name not in LIBRARIES and not path.name.endswith("tests.rs"):
            found += [f"{name}:{line}" for line in rust_branches(path.read_text("utf-8"))]
    if found:
        print("\n".join(found))
        sys.exit("an error's message decides; branch on its code and parameters")


if __name__ == "__main__":
    main()
