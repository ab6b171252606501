"""The places in the code that a new type must visit are these; a new place, or one that is gone, fails.

A place that has cases for types names the youngest one: `timestamp_ntz` of the primitive types, the map of the nested
ones. It is a function, a class of a type or a table of a module in Python, and a file in Rust. Docstrings, imports and
the table feature `timestampNtz` do not count.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dev.check_layers import code, is_test

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / "python" / "deltafast"
RUST = ROOT / "src"

#: Names of the youngest types: in the log and SQL, of Python's classes, of Spark's, of Rust's.
PRIMITIVE = re.compile(r"(?<![a-zA-Z_])(?:timestamp_ntz|TIMESTAMP_NTZ|TimestampN(?:TZ|tz)(?:Type)?)(?![a-zA-Z_])")
NESTED = re.compile(r"keyType|valueType|valueContainsNull|key_type|MapType|Map|is_map|map<|=map")

PRIMITIVE_PLACES: dict[str, set[str]] = {
    "_expr/coercion.py": {"_FROM"},
    "_expr/functions.py": {"_CLASSES"},
    "_expr/generated.py": {"_local"},
    "_expr/render.py": {"literal_sql"},
    "_expr/rules.py": {"TO_TIMESTAMP_NTZ", "_localtimestamp"},
    "_expr/types.py": {"TIMESTAMP_NTZ", "is_timestamp", "timestamp_type"},
    "_types.py": {"PRIMITIVES", "WIDER_TYPES"},
    "schema.py": {"_ALIASES", "_arrow_primitive", "_primitive_name"},
    "spark/_commands/column_syntax.py": {"_Classic.literal", "_LITERALS"},
    "spark/_write/physical_schema.py": {"_as_text"},
    "spark/_jobs/curve.py": {"_WORDS"},
}
NESTED_PLACES: dict[str, set[str]] = {
    "__init__.py": {"_HOME"},
    "_deltalake/preview.py": {"_cell"},
    "_expr/binder.py": {"Binder._field", "Binder._item", "_collation"},
    "_expr/coercion.py": {"_nested", "is_ordered"},
    "_expr/merge.py": {"lacks_fields"},
    "_expr/rules.py": {"_element_at", "_map", "_map_part", "_size"},
    "_expr/simplify.py": {"simplify"},
    "_expr/type_parser.py": {"read_type"},
    "_expr/types.py": {"DataType", "NESTED", "sql_name", "to_json", "type_from_json", "types_within"},
    "_sql/read_columns.py": {"_read_type"},
    "_types.py": {"map_of", "nullable", "parts"},
    "_util/arrow_types.py": {"with_leaves"},
    "schema.py": {"DataType", "MapType", "_arrow_type", "_from_pyarrow", "parse_type", "parts_of"},
}
RUST_PLACES: set[str] = {
    "expr/eval/cast.rs",
    "expr/function.rs",
    "expr/text/datetime.rs",
    "expr/tree.rs",
    "parse/stats.rs",
    "pq/decode/column_mapping.rs",
    "protocol/evolution.rs",
    "protocol/partition_value.rs",
    "protocol/schema.rs",
    "protocol/table.rs",
    "prune/evaluator.rs",
    "file_writer/partition.rs",
    "file_writer/stats.rs",
}


def words(tree: ast.AST) -> Iterator[str]:
    """Yield the names and the strings of code, without docstrings; a compared string also with `=` before it."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    docstrings = {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if id(node) not in docstrings:
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Compare() | ast.MatchValue():
                yield from (f"={part.value}" for part in ast.walk(node) if isinstance(part, ast.Constant))
            case _:
                pass


def parts(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Yield the functions and tables of a module with their names; the class of a type is one part."""
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) if not NESTED.fullmatch(name):
                yield from parts(statement.body, f"{prefix}{name}.")
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield prefix + name, statement
            case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target) if ast.unparse(target) != "__all__":
                yield prefix + ast.unparse(target), statement
            case _:
                pass


def places(type_name: re.Pattern[str], *, is_word: bool) -> dict[str, set[str]]:
    """Return the parts of each Python file that name a type."""
    matches = type_name.fullmatch if is_word else type_name.search
    names_by_file: dict[str, set[str]] = {}
    for path in sorted(PYTHON.rglob("*.py")):
        for name, part in parts(ast.parse(path.read_text(encoding="utf-8")).body):
            if any(map(matches, words(part))):
                names_by_file.setdefault(path.relative_to(PYTHON).as_posix(), set()).add(name)
    return names_by_file


def test_places_of_a_new_primitive_type():
    assert places(PRIMITIVE, is_word=False) == PRIMITIVE_PLACES


def test_places_of_a_new_kind_of_nested_type():
    assert places(NESTED, is_word=True) == NESTED_PLACES


def test_rust_files_of_a_new_primitive_type():
    sources = {path.relative_to(RUST): path.read_text(encoding="utf-8") for path in RUST.rglob("*.rs")}
    files = {path.as_posix() for path, text in sources.items() if not is_test(path) and PRIMITIVE.search(code(text))}
    assert files == RUST_PLACES
    assert len(PRIMITIVE_PLACES) + len(RUST_PLACES) <= 25
