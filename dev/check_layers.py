"""Fail when a Rust or Python module imports one of its own rank or above.

    python dev/check_layers.py src python/deltafast
    python dev/check_layers.py --self-test

The ranks are those of docs/design.md: a module imports only modules of lower rank, so there are no
cycles. Reads the use-trees and paths of non-test code as text, without a build. Climbing out of a
module by `super::super` and names re-exported at the crate root are refused too, since they would
hide where an import comes from. A `mod.rs` documents and re-exports: functions in it are refused.

Of Python every import counts, those within functions and under `TYPE_CHECKING` too, but for `import deltafast`, by
which code asks for the installed package. Names and modules with an underscore are private to the package that they
are in.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    "file_writer": 9,
    "rewrite": 10,
    "checkpoint": 10,
    "manifest": 10,
    "commit": 11,
    "ops": 12,
    "py": 13,
}
#: Of each Python module or package; those within it that are not named here have its rank, and import each other.
PYTHON_RANK = {
    "_error_codes": 0,
    "_call_options": 0,
    "_delta_keys": 0,
    "_types": 0,
    "exceptions": 1,
    "_util.fork_lock": 0,
    "_catalog.committer": 1,
    "_catalog.folder": 3,
    "_catalog": 4,
    "catalog": 5,
    "_core_types": 0,
    "_core": 2,
    "_display": 2,
    "_libraries": 2,
    "_logging": 3,
    "_credentials": 3,
    "credentials": 4,
    "progress": 3,
    "transaction": 3,
    "schema": 3,
    "_util": 4,
    "stores": 5,
    "_expr": 5,
    "_handle": 6,
    "_catalog_tables": 7,
    "check": 7,
    "filesystem": 7,
    "_interop": 8,
    "writer": 9,
    "_ops": 10,
    "table": 11,
    "_sql": 12,
    "_deltalake": 12,
    "_layout": 12,
    "layout": 13,
    "polars": 12,
    "_doctor": 13,
    "doctor": 14,
    "_cli": 15,
    "cli": 16,
    "spark._option_names": 11,
    "spark._conditions": 12,
    "spark.exceptions": 13,
    "spark._session": 14,
    "spark._scan": 15,
    "spark._write": 16,
    "spark._jobs": 17,
    "spark._streaming": 17,
    "spark._commands": 18,
    "spark.tables": 19,
    "spark._enable": 20,
    "spark._delta": 21,
    "spark": 22,
    "__main__": 23,
    "": 23,
}
#: The modules that programs may import, each described in the API reference (`dev/site_hooks.py`) or the entry point.
PUBLIC_MODULES = {
    *("", "catalog", "catalog.unity", "check", "cli", "credentials", "doctor", "exceptions", "filesystem", "layout"),
    "layout.picture",
    *("polars", "progress", "schema", "spark", "spark.exceptions", "spark.tables", "stores", "table", "transaction"),
    "writer",
}
_ROOTS = {"lib", "main", "bin"}
_LINE_COMMENT = re.compile(r"//[^\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
_CRATE_PATH = re.compile(r"\bcrate::\s*(\{.*?\}\s*;|\w+)", re.DOTALL)
_FUNCTION = re.compile(r"\bfn\s+(\w+)")
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
    if path.name == "mod.rs":
        bad += [f"{path}: {name} is a function; a mod.rs documents and re-exports" for name in _FUNCTION.findall(text)]
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


def python_modules(root: Path) -> dict[str, Path]:
    """Return the files of a package by module; a stub counts as the module if there is no source file of that name."""
    return {_module(path, root): path for end in ("*.pyi", "*.py") for path in sorted(root.rglob(end))}


def _module(path: Path, root: Path) -> str:
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python_imports(module: str, path: Path, modules: dict[str, Path]) -> Iterator[tuple[str, str | None, int]]:
    """Every import of a module of the same package: that module, the name if it is of one, and the line."""
    parent = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None, node.lineno) for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                climbed = parent.rsplit(".", node.level - 1)[0] if node.level > 1 else parent
                base = f"{climbed}.{base}".rstrip(".")
            for alias in node.names:
                if (inner := f"{base}.{alias.name}") in modules:
                    yield inner, None, node.lineno
                elif base in modules:
                    yield base, alias.name, node.lineno


def python_violations(root: Path, rank: dict[str, int], listed: set[str]) -> list[str]:
    """Imports of Python that ranks or privacy forbid, and public modules that are not listed, as one line each."""
    modules = python_modules(root)
    names = {module.removeprefix(root.name).removeprefix(".") for module in modules}
    public = {name for name in names if not any(part.startswith("_") for part in name.split("."))}
    bad = [
        f"{root}: {name or root.name} is public, or listed as public, but not both" for name in sorted(public ^ listed)
    ]
    for module, path in modules.items():
        own = _ranked(module, rank)
        if own is None:
            bad.append(f"{path}: {module} has no rank in dev/check_layers.py")
            continue
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for target, name, line in python_imports(module, path, modules):
            other = _ranked(target, rank)
            is_own_package = target == root.name and name is None
            if other is not None and other != own and rank[own] <= rank[other] and not is_own_package:
                said = f"{own or root.name} ({rank[own]}) imports {other or root.name} ({rank[other]})"
                bad.append(f"{path}:{line}: {said}")
            if (hidden := _private(target, name, modules, package)) is not None:
                bad.append(f"{path}:{line}: {hidden} is private to its package")
    return bad


def _ranked(module: str, rank: dict[str, int]) -> str | None:
    """The name under which a module has its rank: its own, or the package's that it is in; the root is by itself."""
    parts = module.split(".")[1:]
    found = (".".join(parts[:depth]) for depth in range(len(parts), 0, -1))
    return next((name for name in found if name in rank), None) if parts else ""


def _private(target: str, name: str | None, modules: dict[str, Path], package: str) -> str | None:
    """What an import names that is private to a package which the importer is not in; None if it does not."""
    parts = target.split(".")
    for depth, part in enumerate(parts):
        if part.startswith("_") and not _is_within(package, ".".join(parts[:depth])):
            return ".".join(parts[: depth + 1])
    if name is not None and name.startswith("_") and not name.startswith("__"):
        owner = target if modules[target].name == "__init__.py" else target.rpartition(".")[0]
        return None if _is_within(package, owner) else f"{target}.{name}"
    return None


def _is_within(package: str, outer: str) -> bool:
    return package == outer or package.startswith(f"{outer}.")


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
        "log/mod.rs": "mod names;\npub use names::f;\nfn g() {}",
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
    _python_self_test()
    print("layers self-test ok")


def _python_self_test() -> None:
    rank = {"low": 0, "_mid": 1, "high": 2, "high._in": 3, "": 4}
    base = {f"{name}/__init__.py": "" for name in (".", "low", "_mid", "high", "high/_in")}
    plants = {
        "upward": {"low/a.py": "from p.high import b"},
        "upward in a function": {"low/a.py": "def f():\n    import p._mid"},
        "upward for types": {
            "low/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .. import high"
        },
        "upward to the root": {"low/a.py": "from p import __version__"},
        "a private name": {"high/a.py": "from p._mid.b import _c", "_mid/b.py": "_c = 1"},
        "a private module": {"a.py": "from p.high._in import c"},
        "without a rank": {"other.py": ""},
        "not listed as public": {"high/c.py": ""},
    }
    clean = {
        "high/a.py": "from p import low\nfrom p._mid import b\nfrom .b import _c\nimport p\nimport os",
        "high/b.py": "_c = 1",
        "_mid/b.py": "from p.low import c",
        "high/_in/d.py": "from p.high.b import _c",
    }
    for name, files in (plants | {"": clean}).items():
        public = {"", "low", "high", *(path[:-3].replace("/", ".") for path in files if path != "high/c.py")}
        public = {module for module in public if "_" not in module}
        with tempfile.TemporaryDirectory() as folder:
            for path, text in (base | files).items():
                (Path(folder) / "p" / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / "p" / path).write_text(text)
            found = python_violations(Path(folder) / "p", rank | ({"a": 5} if "a.py" in files else {}), public)
            if bool(found) != bool(name):
                sys.exit(f"self-test: Python: {name}: {found}")


def _plant(src: Path, rank: dict[str, int], name: str, text: str) -> None:
    for top in rank:
        if not name.startswith(f"{top}/"):
            (src / f"{top}.rs").write_text("")
    (src / name).parent.mkdir(parents=True, exist_ok=True)
    (src / name).write_text(text)


def main() -> None:
    """Run the self-test, or check source folders."""
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    found: list[str] = []
    for root in map(Path, sys.argv[1:]):
        is_rust = any(root.rglob("*.rs"))
        found += violations(root, RANK) if is_rust else python_violations(root, PYTHON_RANK, PUBLIC_MODULES)
    print("\n".join(found) or "layers ok")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
