"""Checks that only public functions of the Python package have more than seven parameters.

    python dev/check_parameters.py
    python dev/check_parameters.py --self-test

Users name the parameters of a public function one by one. Below it, parameters that travel together are one object: the
options of the core as it takes them (`CommitOptions`, `WriteOptions`), or a named tuple (`OpenOptions`,
`ExpressionContext`). `self` and `cls` do not count, nor do declarations with `@overload`.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "deltafast"
MOST = 7

#: The public functions with more parameters, by file.
PUBLIC = {
    "_cli/table_commands.py": {"alter"},
    "_deltalake/table.py": {"DeltaTable.create", "create_deltalake"},
    "_ops/add_actions.py": {"create_table_with_add_actions"},
    "_ops/convert_parquet.py": {"convert_to_deltalake"},
    "_ops/optimize.py": {"TableOptimizer.cluster", "TableOptimizer.compact", "TableOptimizer.z_order"},
    "_util/writer_properties.py": {"WriterProperties.__init__"},
    "exceptions.py": {"DeltaError.__init__"},
    "polars.py": {"read_delta", "scan_cdf", "sink_delta"},
    "spark/_scan/reader.py": {"read"},
    "spark/_write/writer.py": {"write"},
    "table.py": {
        *("DeltaTable.__init__", "DeltaTable.create", "DeltaTable.load_cdf", "DeltaTable.merge"),
        *("DeltaTable.stream_changes", "DeltaTable.update", "DeltaTable.upsert", "DeltaTable.vacuum"),
    },
    "writer.py": {"write_deltalake"},
}


def long_functions(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield the functions with too many parameters: the qualified name, the line and the number of parameters."""
    for node in ast.iter_child_nodes(tree):
        name = owner
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{owner}.{node.name}".lstrip(".")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_overload(node):
            parameters = [parameter.arg for parameter in _parameters(node.args)]
            count = len(parameters) - (parameters[:1] in (["self"], ["cls"]))
            if count > MOST:
                yield name, node.lineno, count
        yield from long_functions(node, name)


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list)


SELF_TEST = """
def eight(a, b, /, c, d, *, e, f, g, h): ...               # long
def seven(a, b, c, d, e, f, g, *more, **others): ...
class Table:
    def eight(self, a, b, c, d, e, f, g, h): ...           # long
    def seven(self, a, b, c, d, e, f, g): ...
    @classmethod
    async def create(cls, a, b, c, d, e, f, g):
        def inner(a, b, c, d, e, f, g, h): ...             # long
    if True:
        @overload
        def declared(self, a, b, c, d, e, f, g, h): ...
"""


def self_test() -> None:
    """Fail unless the rules find what they should."""
    expected = [number for number, line in enumerate(SELF_TEST.splitlines(), 1) if "# long" in line]
    functions = list(long_functions(ast.parse(SELF_TEST)))
    if [line for _, line, _ in functions] != expected:
        sys.exit(f"self-test: {functions} instead of the lines {expected}")
    if [name for name, _, _ in functions] != ["eight", "Table.eight", "Table.create.inner"]:
        sys.exit(f"self-test: the names of {functions}")
    print("parameters self-test ok")


def main() -> None:
    """Run the self-test, or print the functions and fail if there are any."""
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    problems: list[str] = []
    stale_entries = {(file, name) for file, names in PUBLIC.items() for name in names}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = str(path.relative_to(PACKAGE))
        for name, line, count in long_functions(ast.parse(path.read_text("utf-8"))):
            if name not in PUBLIC.get(file, ()):
                problems.append(f"{file}:{line}: {name} has {count} parameters, at most {MOST}: make some one object")
            stale_entries.discard((file, name))
    problems += [f"{file}: {name} needs no exception" for file, name in sorted(stale_entries)]
    if problems:
        sys.exit("\n".join(problems))
    print(f"parameters ok: {sum(map(len, PUBLIC.values()))} public functions have more than {MOST}")


if __name__ == "__main__":
    main()
