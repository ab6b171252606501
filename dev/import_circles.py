"""Find import circles among the files of a Rust or Python tree, and among its folders.

    python dev/import_circles.py src python/deltafast [--list] [--most 0] [--folders]
    python dev/import_circles.py --self-test

Each circle is a set of files of which every one imports every other one, directly or through others. Imports within
functions and under `TYPE_CHECKING` count, since a reader follows them as well. Declarations of child modules
(`mod child;`) and re-exports do not: they do not use what they name. Rust is read as text, without its test code.

With `--folders`, the entries of each folder (its files and the folders in it) are regarded instead of files, so two
folders whose files import each other are a circle, too.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from check_layers import code, is_test, python_imports, python_modules

if TYPE_CHECKING:
    from collections.abc import Iterator

Graph = dict[str, set[str]]

#: The files that document and re-export a folder.
_HEADS = {"mod.rs", "lib.rs", "__init__.py"}
_RE_EXPORT = re.compile(r"\bpub(?:\([^)]*\))?\s+use\s+[^;]+;")
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:])([a-z_]\w*(?:::\w+)+)")


def python_graph(root: Path) -> Graph:
    """Return which files of a package import which."""
    modules = python_modules(root)
    graph: Graph = {}
    for name, path in modules.items():
        imported = {found for found, _, _ in python_imports(name, path, modules) if found != name}
        graph[str(path)] = {str(modules[found]) for found in imported}
    return graph


def rust_graph(root: Path) -> Graph:
    """Return which files of a crate import which."""
    files = [path for path in sorted(root.rglob("*.rs")) if not is_test(path.relative_to(root))]
    modules = {_rust_module(path, root): path for path in files}
    graph: Graph = {}
    for module, path in modules.items():
        text = _RE_EXPORT.sub("", code(path.read_text()))
        imported = {_owner(found, modules) for found in _rust_paths(text, module, modules)}
        graph[str(path)] = {str(modules[found]) for found in imported if found is not None and found != module}
    return graph


def _rust_module(path: Path, root: Path) -> tuple[str, ...]:
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts


def _rust_paths(text: str, module: tuple[str, ...], modules: dict[tuple[str, ...], Path]) -> Iterator[tuple[str, ...]]:
    """Yield the absolute paths that a file names."""
    names = [leaf for tree in _USE.findall(text) for leaf in _leaves(tree)]
    names += [tuple(path.split("::")) for path in _PATH.findall(_USE.sub("", text))]
    for name in names:
        if name[0] == "crate":
            yield name[1:]
        elif name[0] in {"super", "self"}:
            climbs = name.count("super")
            yield (*module[: len(module) - climbs], *(part for part in name if part not in {"super", "self"}))
        elif (*module, name[0]) in modules:
            yield (*module, *name)


def _leaves(tree: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a use-tree: `a::{b, c::D as E}` gives a::b and a::c::D."""
    tree = re.sub(r"\s+as\s+\w+|\s", "", tree)
    head, brace, _ = tree.partition("{")
    if not brace:
        yield tuple(part for part in tree.split("::") if part not in {"", "*"})
        return
    prefix = tuple(part for part in head.split("::") if part)
    depth, start, body = 0, 0, tree[len(head) + 1 : -1] + ","
    for index, char in enumerate(body):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if body[start:index]:
                yield from ((*prefix, *leaf) for leaf in _leaves(body[start:index]))
            start = index + 1


def _owner(path: tuple[str, ...], modules: dict[tuple[str, ...], Path]) -> tuple[str, ...] | None:
    """Return the deepest module that a path leads to."""
    return next((path[:depth] for depth in range(len(path), 0, -1) if path[:depth] in modules), None)


def circles(graph: Graph) -> list[list[str]]:
    """Return the circles, largest first, by reachability: trees here have some hundred files."""
    reached = {name: _reachable(name, graph) for name in graph}
    seen, found = set[str](), list[list[str]]()
    for name in sorted(graph):
        if name not in seen:
            circle = sorted({name} | {other for other in reached[name] if name in reached[other]})
            seen |= set(circle)
            found += [circle] if len(circle) > 1 else []
    return sorted(found, key=len, reverse=True)


def _reachable(name: str, graph: Graph) -> set[str]:
    found, todo = set[str](), [name]
    while todo:
        new = graph.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def folder_graph(graph: Graph) -> Graph:
    """Return which entry of a folder imports which other entry of the same folder, for all folders."""
    entries: Graph = {}
    for name, imported in graph.items():
        for other in imported:
            own, others = Path(name).parts, Path(other).parts
            depth = next((n for n, pair in enumerate(zip(own, others, strict=False)) if pair[0] != pair[1]), 0)
            # The head of a folder is the folder itself, not an entry of it.
            if own[depth] in _HEADS or others[depth] in _HEADS:
                continue
            entry, target = (str(Path(*parts[: depth + 1])) for parts in (own, others))
            entries.setdefault(entry, set()).add(target)
            entries.setdefault(target, set())
    return entries


def self_test() -> None:
    """Plant circles and clean code, and see that the first are found and the second pass."""
    planted = {
        "function": {"p/a.py": "def f():\n    from p import b", "p/b.py": "from .a import f", "p/__init__.py": ""},
        "typing": {
            "p/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .c import C",
            "p/b.py": "import p.a",
            "p/c.py": "from . import b",
            "p/__init__.py": "",
        },
        "typing in a stub": {
            "p/a.py": "from p import _core",
            "p/_core.pyi": "from p.a import A",
            "p/__init__.py": "",
        },
        "source beside a stub": {
            "p/a.py": "from p.b import f",
            "p/b.py": "from p.a import g",
            "p/b.pyi": "",
            "p/__init__.py": "",
        },
        "rust": {"p/a/mod.rs": "mod b;\nuse self::b::B;", "p/a/b.rs": "use super::{c, D};", "p/lib.rs": "mod a;"},
        "rust without use": {
            "p/a/mod.rs": "mod b;\nfn f() { b::g() }",
            "p/a/b.rs": "use super::f;",
            "p/lib.rs": "mod a;",
        },
        "nested": {"p/a.rs": "use crate::{x::Y, b::{self, C as Z}};", "p/b.rs": "fn f() { super::a::g() }"},
    }
    clean = {
        "python": {"p/a.py": "from p.b import x", "p/b.py": "import os", "p/__init__.py": "from .a import x"},
        "stub": {"p/a.py": "from p import _core", "p/_core.pyi": "", "p/__init__.py": "from .a import x"},
        "rust": {"p/a/mod.rs": "mod b;\npub use b::B;", "p/a/b.rs": "use super::super::c;", "p/c.rs": "fn a() {}"},
    }
    for name, files in (planted | {f"clean {name}": files for name, files in clean.items()}).items():
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text)
            found = circles(graph_of(Path(folder) / "p"))
            if bool(found) == name.startswith("clean"):
                sys.exit(f"self-test: {name}: {found}")
    folders = {"s/a/x.rs": {"s/b/y.rs"}, "s/b/z.rs": {"s/a/w.rs"}, "s/b/y.rs": {"s/b/mod.rs"}}
    if circles(folder_graph(folders)) != [["s/a", "s/b"]] or circles(folder_graph({"s/a/x.rs": {"s/b/y.rs"}})):
        sys.exit("self-test: folders")
    print("import circles self-test ok")


def graph_of(root: Path) -> Graph:
    """Return the graph of a tree of Rust or Python files."""
    graph = rust_graph(root) if any(root.rglob("*.rs")) else python_graph(root)
    if not graph:
        sys.exit(f"{root}: no Rust or Python files found")
    return graph


def main() -> None:
    """Print how many circles there are, with `--list` which, and fail where more than `--most` files are in one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roots", nargs="*", type=Path)
    parser.add_argument("--list", action="store_true", help="print the files of each circle")
    parser.add_argument("--most", type=int, help="largest number of files in circles")
    parser.add_argument("--folders", action="store_true", help="regard the entries of each folder")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        self_test()
    for root in options.roots:
        graph = graph_of(root)
        found = circles(folder_graph(graph) if options.folders else graph)
        for circle in found if options.list else ():
            print(f"{len(circle)} files: {', '.join(circle)}")
        files, kind = sum(map(len, found)), "entries" if options.folders else "files"
        print(f"{root}: {len(found)} import circles with {files} {kind}")
        if options.most is not None and files > options.most:
            sys.exit(f"{root}: {files} {kind} are in import circles, at most {options.most}")


if __name__ == "__main__":
    main()
