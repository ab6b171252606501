"""Fail when a Rust module imports one of its own rank or above.

    python dev/check_layers.py src
    python dev/check_layers.py --self-test

The ranks are those of docs/design.md: a module imports only modules of lower rank, so there are no
cycles. Reads the use-trees and paths of non-test code as text, without a build. Climbing out of a
module by `super::super` and names re-exported at the crate root are refused too, since they would
hide where an import comes from.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

RANK = {
    "error": 0,
    "process": 0,
    "protocol": 1,
    "exec": 1,
    "store": 2,
    "expr": 2,
    "dv": 3,
    "prune": 3,
    "log": 3,
    "pq": 4,
    "parse": 5,
    "reconcile": 6,
    "snapshot": 7,
    "history": 8,
    "scan": 9,
    "write": 9,
    "rewrite": 10,
    "checkpoint": 10,
    "manifest": 10,
    "commit": 11,
    "ops": 12,
    "py": 13,
}
_ROOTS = {"lib", "main", "bin"}
_LINE_COMMENT = re.compile(r"//[^\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
_CRATE_PATH = re.compile(r"\bcrate::\s*(\{.*?\}\s*;|\w+)", re.DOTALL)
_CLIMB = re.compile(r"\b((?:super::)+)")


def code(text: str) -> str:
    """The text without comments and without an inline test module (by convention the end of a file)."""
    bare = _BLOCK_COMMENT.sub("", _LINE_COMMENT.sub("", text))
    return _TEST_MODULE.split(bare)[0]


def heads(tree: str) -> list[str]:
    """First names of the branches of a use-tree: `{error, snapshot::{A, B}};` gives error and snapshot."""
    if not tree.startswith("{"):
        return re.findall(r"^\w+", tree)
    out: list[str] = []
    depth, start = 0, 1
    for index, char in enumerate(tree):
        depth += (char == "{") - (char == "}")
        if (char == "," and depth == 1) or (char == "}" and depth == 0):
            out += re.findall(r"^\w+", tree[start:index].strip())
            start = index + 1
        if depth == 0:
            break
    return out


def module_of(path: Path) -> str:
    """The top-level module that a file (relative to the source folder) belongs to."""
    return path.parts[0].removesuffix(".rs")


def is_test(path: Path) -> bool:
    """Whether the whole file is test code."""
    names = {part.removesuffix(".rs") for part in path.parts}
    return "tests" in names or any(name.endswith("_tests") for name in names)


def violations(src: Path, rank: dict[str, int]) -> list[str]:
    """Every import that the ranks forbid, as one line each."""
    tops = {path.stem if path.suffix == ".rs" else path.name for path in src.iterdir()} - _ROOTS
    bad = [f"{top} has no rank in dev/check_layers.py" for top in sorted(tops) if top not in rank]
    for path in sorted(src.rglob("*.rs")):
        relative = path.relative_to(src)
        top = module_of(relative)
        if top in tops and top in rank and not is_test(relative):
            bad += _violations_of(relative, code(path.read_text()), tops, rank)
    return bad


def _violations_of(path: Path, text: str, tops: set[str], rank: dict[str, int]) -> list[str]:
    top = module_of(path)
    depth = len(path.parts) - 1 - (path.name == "mod.rs")
    bad: list[str] = []
    climbs = _CLIMB.findall(text)
    bad += [f"{path}: {climb}.. climbs out of its module" for climb in climbs if climb.count("super") > max(depth, 1)]
    for tree in _CRATE_PATH.findall(text):
        for name in heads(tree):
            if name in tops:
                if name != top and rank[top] <= rank.get(name, len(RANK)):
                    bad.append(f"{path}: {top} ({rank[top]}) imports {name} ({rank.get(name)})")
            elif name[0].isupper():
                bad.append(f"{path}: crate::{name} hides its module")
    return bad


def self_test() -> None:
    """Plant each kind of violation and see that it is found, and that clean code passes."""
    rank = {"error": 0, "log": 3, "snapshot": 6, "scan": 7}
    plants = {
        "log/names.rs": "use crate::{error, snapshot};",
        "log/nested.rs": "use crate::{\n    error::Error,\n    scan::{Plan, read},\n};",
        "log/deep/climb.rs": "use super::super::super::scan::Plan;",
        "log/plain.rs": "use crate::snapshot::Snapshot;",
        "log/root.rs": "fn f(s: &crate::Snapshot) {}",
        "error.rs": "pub fn f() { crate::log::g(); }",
        "extra.rs": "",
    }
    for name, text in plants.items():
        with tempfile.TemporaryDirectory() as folder:
            _plant(Path(folder), rank, name, text)
            if not violations(Path(folder), rank):
                sys.exit(f"self-test: not found in {name}: {text}")
    clean = "use crate::{error::Error, log, snapshot::Snapshot};\n#[cfg(test)]\nmod tests {\n use crate::py::x;\n}"
    with tempfile.TemporaryDirectory() as folder:
        _plant(Path(folder), rank, "scan.rs", clean)
        if found := violations(Path(folder), rank):
            sys.exit(f"self-test: wrongly found: {found}")
    print("layers self-test ok")


def _plant(src: Path, rank: dict[str, int], name: str, text: str) -> None:
    for top in rank:
        if not name.startswith(f"{top}/"):
            (src / f"{top}.rs").write_text("")
    (src / name).parent.mkdir(parents=True, exist_ok=True)
    (src / name).write_text(text)


def main() -> None:
    """Run the self-test, or check a source folder."""
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    found = violations(Path(sys.argv[1]), RANK)
    print("\n".join(found) or "layers ok")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
