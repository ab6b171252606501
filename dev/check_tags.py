"""Checks that no program compares a tag with a string, and that a Delta key is spelt once.

    python dev/check_tags.py
    python dev/check_tags.py --self-test

A tag is a kind, mode, action or the like: a value from a closed set. It is an `Enum`, so that the type checker reports
a misspelt or forgotten one. Strings from callers become one where they are checked. Names of properties, of keys of a
field's metadata and of domains (`delta.columnMapping.mode`) that two places need are in `deltafast/_delta_keys.py`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "deltafast"
KEYS = PACKAGE / "_delta_keys.py"

#: Last words of the names of tags.
TAGS = {
    *("action", "engine", "how", "kind", "level", "manifest", "mapping", "mode", "operation"),
    *("policy", "rule", "scale", "scope", "stage", "state", "status", "strategy", "task", "verdict"),
}

#: Files that compare strings of a format or of another library, and which.
OTHERS: dict[str, str] = {
    "_expr/polars_expression.py": "the nodes of Polars' expressions in JSON",
    "_expr/types.py": "the types of a schema in JSON",
    "_expr/value_lists.py": "the kinds of NumPy's types",
    "_catalog/glue/client.py": "the errors of AWS Glue",
    "_catalog/rest_client.py": "the errors of servers",
    "_catalog/sharing/profile.py": "the types of credentials in a profile",
    "_catalog/sharing/response_lines.py": "the actions of a response in JSON",
    "_catalog/sharing/shared_table.py": "the actions of a response in JSON",
    "_catalog/unity/client.py": "the errors and types of tables of Unity Catalog",
    "_catalog/unity/committer.py": "the errors of Unity Catalog",
    "_catalog/unity/staged_table.py": "the errors of Unity Catalog",
    "spark/_commands/column_syntax.py": "the nodes of PySpark's expressions",
}

#: Methods and functions whose result names the same value.
SAME = {"lower", "upper", "strip", "str"}
_KEY = re.compile(r"delta\.[A-Za-z][\w.]*\w")


def tag_comparisons(source: str) -> list[int]:
    """Return the lines of a module that compare a tag with a string."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                lines.update(
                    node.lineno
                    for first, operator, second in zip([left, *comparators], ops, comparators, strict=False)
                    if _compares(first, operator, second)
                )
            case ast.Match(subject=subject, cases=cases) if _is_tag(subject):
                lines.update(case.pattern.lineno for case in cases if _has_string(case.pattern))
            case ast.MatchClass(kwd_attrs=names, kwd_patterns=patterns):
                found = zip(names, patterns, strict=True)
                lines.update(pattern.lineno for name, pattern in found if _names_tag(name) and _has_string(pattern))
            case ast.Call(func=ast.Attribute(attr="_replace"), keywords=keywords):
                # The type checker does not see the fields of a named tuple there.
                lines.update(k.value.lineno for k in keywords if _names_tag(k.arg or "") and _is_string(k.value))
            case _:
                pass
    return sorted(lines)


def _compares(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
    """Return whether one side is a tag, and the other a string or a collection of strings."""
    match operator:
        case ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot():
            return (_is_tag(left) and _is_string(right)) or (_is_tag(right) and _is_string(left))
        case ast.In() | ast.NotIn() if isinstance(right, ast.Tuple | ast.List | ast.Set):
            return _is_tag(left) and any(map(_is_string, right.elts))
        case _:
            return False


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _has_string(pattern: ast.pattern) -> bool:
    """Return whether a pattern is a string, or alternatives with one."""
    match pattern:
        case ast.MatchValue(value=value):
            return _is_string(value)
        case ast.MatchOr(patterns=patterns):
            return any(map(_has_string, patterns))
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _has_string(inner)
        case _:
            return False


def _is_tag(node: ast.expr) -> bool:
    """Return whether the name of an expression is that of a tag."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _names_tag(name)
        case ast.NamedExpr(target=inner):
            return _is_tag(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in SAME:
            return _is_tag(inner)
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in SAME:
            return _is_tag(inner)
        case ast.Call(func=inner):
            return _is_tag(inner)
        case _:
            return False


def _names_tag(name: str) -> bool:
    return name.rpartition("_")[2].lower() in TAGS


def key_literals(source: str) -> list[tuple[str, int]]:
    """Return the Delta keys that a module spells, with their lines."""
    strings = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return [(node.value, node.lineno) for node in strings if isinstance(node.value, str) and _KEY.fullmatch(node.value)]


def repeated_keys(keys: list[tuple[str, str]], constants: set[str]) -> list[str]:
    """Return the lines about keys that are spelt twice, or despite a constant.

    Args:
        keys: Each key with its place.
        constants: The keys that have a constant.
    """
    places: dict[str, list[str]] = defaultdict(list)
    for key, place in keys:
        places[key].append(place)
    return [
        f"{place}: {key!r} is a constant of `_delta_keys`, or has to be one"
        for key, found in places.items()
        if len(found) > 1 or key in constants
        for place in found
    ]


SELF_TEST = """
table = table._replace(mode="create", name="t")  # compares
if kind == "string" or "string" != token.kind:             # compares
    pass
if self.save_mode.lower() in ("append", "overwrite"):      # compares
    pass
if str(mode) not in {"a", *MODES} or _engine(x) == "auto": # compares
    pass
while (kind := next_kind()) == "x":                        # compares
    pass
match token.kind:
    case "name" | "op":                                    # compares
        pass
    case Kind.END:
        pass
match statement:
    case Describe(kind="history"):                         # compares
        pass
    case Describe(name="history", kind=Kind.DETAIL):
        pass
if kind is Kind.STRING or kind in (Kind.A, Kind.B) or name == "x" or kind == other or "key" in action:
    pass
keys = {"delta.columnMapping.mode": 1, "delta.feature.": 2}
"""


def self_test() -> None:
    """Fail unless the rules find what they should."""
    expected = [number for number, line in enumerate(SELF_TEST.splitlines(), 1) if "# compares" in line]
    if tag_comparisons(SELF_TEST) != expected:
        sys.exit(f"self-test: {tag_comparisons(SELF_TEST)} instead of {expected}")
    if [key for key, _ in key_literals(SELF_TEST)] != ["delta.columnMapping.mode"]:
        sys.exit("self-test: the keys of a module")
    keys = [("delta.a", "x:1"), ("delta.a", "y:1"), ("delta.b", "x:2"), ("delta.c", "x:3")]
    if [line.partition(": ")[0] for line in repeated_keys(keys, {"delta.c"})] != ["x:1", "y:1", "x:3"]:
        sys.exit("self-test: repeated keys")
    print("tags self-test ok")


def main() -> None:
    """Run the self-test, or print the places and fail if there are any."""
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    found: list[str] = []
    keys: list[tuple[str, str]] = []
    compared: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name, source = str(path.relative_to(PACKAGE)), path.read_text("utf-8")
        lines = tag_comparisons(source)
        if lines:
            compared.add(name)
        if name not in OTHERS:
            found += [f"{path.relative_to(ROOT)}:{line}: a tag is compared with a string" for line in lines]
        if path != KEYS:
            keys += [(key, f"{path.relative_to(ROOT)}:{line}") for key, line in key_literals(source)]
    found += [f"{name} needs no exception" for name in sorted(OTHERS.keys() - compared)]
    found += repeated_keys(keys, {key for key, _ in key_literals(KEYS.read_text("utf-8"))} if KEYS.exists() else set())
    if found:
        print("\n".join(found))
        sys.exit(f"{len(found)} places: a tag is an Enum, and a key that is needed twice a constant")
    print("tags ok")


if __name__ == "__main__":
    main()
