"""Writes the modules of the Python package that repeat what the Rust core defines.

`python/deltafast/_core_types.py` has the shapes of dicts that `deltafast._core` takes and returns, and
`python/deltafast/_error_codes.py` the codes of errors.

The types are those that `FromPython<..>` (arguments) and `IntoPython<..>` (results) name in `src/py`, and all that they
contain, as Rust and serde define them. Keys of arguments that serde lets out are optional; in results every key is
there, unless serde skips it. With `--check` the files are compared instead, for `make check`.
"""

from __future__ import annotations

import argparse
import itertools
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "python/deltafast/_core_types.py"
ERROR_CODES = ROOT / "python/deltafast/_error_codes.py"
WIDTH = 120

SCALARS = {
    **dict.fromkeys(("String", "str", "char"), "str"),
    **dict.fromkeys(("u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"), "int"),
    **dict.fromkeys(("f32", "f64"), "float"),
    "bool": "bool",
    "Value": "Any",
}
LISTS = {"Vec", "BTreeSet", "HashSet"}
MAPS = {"BTreeMap", "HashMap", "Map", "IndexMap"}
POINTERS = {"Box", "Arc", "Cow"}
#: Types whose shape is not that of their fields.
BY_HAND = {
    "PartitionValues": "dict[str, str | None]",
    "SchemaJson": "list[dict[str, Any]]",
    "DataTypeJson": "str | dict[str, Any]",
}
#: Types of `CommitResult.metrics` that the core defines outside of `src/py`.
METRICS = ["VacuumResult", "RestoreResult", "RepairResult", "CloneResult", "ConvertResult"]

HEAD = '''"""Shapes of the dicts that `deltafast._core` takes and returns; written by `dev/make_core_types.py`."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
'''


ERROR_CODES_HEAD = '''"""The codes of errors, as the Rust core defines them; written by `dev/make_core_types.py`."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["ERROR_PARAMETERS", "ErrorCode"]


class ErrorCode(StrEnum):
    """The family of an error's message: `DeltaError.code`.

    Codes are stable, so programs may branch on them; messages are for people and change. Parameters of the message are
    in `DeltaError.parameters` by the names that are listed with each code.

    Examples:
        >>> from deltafast.exceptions import ErrorCode
        >>> ErrorCode.TABLE_NOT_FOUND == "TABLE_NOT_FOUND"
        True
    """

'''


class Field(NamedTuple):
    """A field of a struct, or a variant of an enum."""

    name: str
    type: str
    attributes: str
    doc: str


class Definition(NamedTuple):
    """A struct or an enum."""

    kind: str
    name: str
    attributes: str
    doc: str
    body: str


def fail(message: str) -> None:
    """End with a message."""
    sys.exit(f"{Path(__file__).name}: {message}")


def definitions() -> dict[str, Definition]:
    """Return all types of the crate that serde reads or writes, by name."""
    head = re.compile(
        r"^((?:[ ]*(?:///[^\n]*|#\[[^\n]*\])\n)*)(?:pub(?:\([^)]*\))? )?(struct|enum) (\w+)(?:<[^>{]*>)?\s*\{",
        re.MULTILINE,
    )
    found: dict[str, Definition] = {}
    for path in sorted((ROOT / "src").rglob("*.rs")):
        if path.stem.endswith("tests"):
            continue
        text = path.read_text("utf-8")
        for match in head.finditer(text):
            attributes, doc = attributes_and_doc(match[1])
            if "Serialize" not in attributes and "Deserialize" not in attributes:
                continue
            name = match[3]
            if name in found:
                fail(f"two types that serde knows are named {name}; the second is in {path.relative_to(ROOT)}")
            found[name] = Definition(match[2], name, attributes, doc, block(text, match.end()))
    return found


def block(text: str, start: int, brackets: str = "{}") -> str:
    """Return the text up to the bracket that closes the one before `start`."""
    opening, closing = brackets
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return text[start:at]
    fail(f"`{opening}` is not closed")
    return ""


def attributes_and_doc(lines: str) -> tuple[str, str]:
    """Split the lines above an item."""
    stripped = [line.strip() for line in lines.splitlines()]
    doc = " ".join(line[3:].strip() for line in stripped if line.startswith("///"))
    attributes = " ".join(line for line in stripped if line.startswith("#["))
    doc = re.sub(r"\[`([^`]*)`\](\([^)]*\))?", r"`\1`", doc).replace("`None`", "None")
    return attributes, doc


def parts(body: str) -> list[tuple[str, str]]:
    """Split at commas outside brackets, and each part into the lines above it and itself."""
    out: list[str] = [""]
    depth = 0
    in_comment = False
    for at, character in enumerate(body):
        if body.startswith("//", at):
            in_comment = True
        if character == "\n":
            in_comment = False
        if not in_comment:
            depth += (character in "<({[") - (character in ">)}]" and body[at - 1] != "-")
            if character == "," and depth == 0:
                out.append("")
                continue
        out[-1] += character
    found = []
    for part in out:
        lines = part.strip().splitlines()
        above = list(itertools.takewhile(lambda line: line.strip().startswith(("///", "#[")), lines))
        rest = "\n".join(lines[len(above) :]).strip()
        if rest:
            found.append(("\n".join(above), rest))
    return found


def fields(body: str) -> list[Field]:
    """Return the fields of a struct."""
    found = []
    for above, rest in parts(body):
        attributes, doc = attributes_and_doc(above)
        name, _, kind = re.sub(r"^pub(\([^)]*\))? ", "", rest).partition(":")
        found.append(Field(name.strip(), " ".join(kind.split()), attributes, doc))
    return found


def serde(attributes: str, key: str) -> str | None:
    """Return the value of a key of `#[serde(..)]`; an empty string if it has none."""
    for group in re.findall(r"#\[serde\((.*?)\)\]", attributes):
        for item in group.split(","):
            name, _, value = item.strip().partition("=")
            if name.strip() == key:
                return value.strip().strip('"')
    return None


def renamed(name: str, rule: str | None) -> str:
    """Return a name by a rule of `rename_all`."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    lower = [word.lower() for word in words]
    if rule is None:
        return name
    if rule == "lowercase":
        return "".join(lower)
    if rule == "snake_case":
        return "_".join(lower)
    if rule == "camelCase":
        return lower[0] + "".join(word.capitalize() for word in lower[1:])
    fail(f"unknown rule {rule!r}")
    return ""


def generic(name: str, items: list[str]) -> str:
    """Return the Python type of a generic Rust type."""
    if name == "Option":
        return f"{items[0]} | None"
    if name in LISTS or name in MAPS:
        return f"{'list' if name in LISTS else 'dict'}[{', '.join(items)}]"
    if name not in POINTERS:
        fail(f"the generic type `{name}` is unknown")
    return items[-1]


class Writer:
    """Writes each type that is reached from the signatures."""

    def __init__(self) -> None:
        self.known = definitions()
        self.results: set[str] = set()
        self.written: dict[str, str] = {}

    def reach_results(self, kind: str) -> None:
        """Note the types that results contain."""
        for name in re.findall(r"\w+", kind):
            if name in self.known and name not in self.results and name not in BY_HAND:
                self.results.add(name)
                self.reach_results(self.known[name].body)

    def type_of(self, kind: str, field: str = "") -> str:
        """Return the Python type of a Rust type."""
        kind = re.sub(r"^&\s*('\w+ )?(mut )?", "", kind.strip())
        if kind.startswith("["):
            return f"list[{self.type_of(kind[1:-1], field)}]"
        if kind.startswith("("):
            return f"tuple[{', '.join(self.type_of(item, field) for _, item in parts(kind[1:-1]))}]"
        name, _, inner = kind.partition("<")
        name = name.rpartition("::")[2]
        items = [self.type_of(item, field) for _, item in parts(inner[:-1]) if not item.startswith("'")]
        simple = BY_HAND.get(name) or SCALARS.get(name)
        if items:
            return generic(name, items)
        if simple is not None:
            return simple
        if name not in self.known:
            fail(f"the type `{kind}` of `{field}` is unknown")
        self.write(name)
        return name

    def write(self, name: str) -> None:
        """Write a type after those that it contains."""
        if name in self.written:
            return
        self.written[name] = ""
        it = self.known[name]
        text = self.struct(it) if it.kind == "struct" else self.enum(it)
        del self.written[name]
        self.written[name] = text

    def struct(self, it: Definition) -> str:
        """Return the TypedDict of a struct."""
        rule = serde(it.attributes, "rename_all")
        is_partial = serde(it.attributes, "default") is not None
        bases = []
        own = []
        for field in fields(it.body):
            if serde(field.attributes, "skip") is not None:
                continue
            if serde(field.attributes, "flatten") is not None:
                bases.append(self.type_of(field.type))
                continue
            own.append(self.field(field, rule, it.name, is_partial))
        return typed_dict(it.name, it.doc, own, bases)

    def field(self, field: Field, rule: str | None, owner: str, is_partial: bool) -> str:
        """Return the line of a field."""
        key = serde(field.attributes, "rename") or renamed(field.name, rule)
        kind = self.type_of(field.type, field.name)
        if owner in self.results:
            optional = serde(field.attributes, "skip_serializing_if") is not None
        else:
            optional = is_partial or serde(field.attributes, "default") is not None or field.type.startswith("Option<")
        line = f"    {key}: NotRequired[{kind}]" if optional else f"    {key}: {kind}"
        return line + ("\n" + wrapped(field.doc, 4) if field.doc else "")

    def enum(self, it: Definition) -> str:
        """Return a Literal, or a union of TypedDicts with a tag."""
        rule = serde(it.attributes, "rename_all")
        tag = serde(it.attributes, "tag")
        is_untagged = serde(it.attributes, "untagged") is not None
        literals: list[str] = []
        union: list[str] = []
        before = ""
        for above, rest in parts(it.body):
            attributes, doc = attributes_and_doc(above)
            name = re.match(r"\w+", rest)
            if name is None:
                fail(f"a variant of {it.name} has no name: {rest}")
                continue
            value = serde(attributes, "rename") or renamed(name[0], rule)
            content = rest[name.end() :].strip()
            if tag is not None:
                inner = fields(content[1:-1]) if content.startswith("{") else []
                own = [f'    {tag}: Literal["{value}"]']
                own += [self.field(field, None, it.name, is_partial=False) for field in inner]
                before += "\n\n" + typed_dict(name[0], doc, own, [])
                union.append(name[0])
            elif is_untagged:
                union.append(self.type_of(content[1:-1].rstrip(",")))
            elif content and not content.startswith("="):
                own = [self.type_of(content[1:-1])]
                union.append(f'dict[Literal["{value}"], {own[0]}]')
            else:
                literals.append(f'"{value}"')
        if literals:
            union.insert(0, f"Literal[{', '.join(literals)}]")
        return f"{before}\n{it.name}: TypeAlias = {' | '.join(union)}\n" + (wrapped(it.doc, 0) + "\n" if it.doc else "")


def typed_dict(name: str, doc: str, lines: list[str], bases: list[str]) -> str:
    """Return the text of a class."""
    head = f"class {name}({', '.join(bases or ['TypedDict'])}):\n{wrapped(doc, 4)}\n"
    return head + ("\n" + "\n".join(lines) + "\n" if lines else "")


def wrapped(doc: str, indent: int) -> str:
    """Return a docstring within 120 columns."""
    space = " " * indent
    doc = doc if doc.endswith((".", "!", "?")) else doc + "."
    line = f'{space}"""{doc}"""'
    if len(line) <= WIDTH:
        return line
    lines = textwrap.wrap(doc, WIDTH - indent, initial_indent=space + '"""', subsequent_indent=space)
    return "\n".join([*lines, space + '"""'])


def error_codes() -> str:
    """Return the module with the codes of errors, from the macro call in `src/error/code.rs`."""
    text = (ROOT / "src/error/code.rs").read_text("utf-8")
    text = text[text.index("error_codes! {\n") :]
    entries = re.findall(r'((?: +/// .*\n)+) +\w+\s*=\s*"(\w+)"\s*\[([\w\s]*)\],', text)
    members, parameters = [], []
    for doc, name, names in entries:
        sentence = " ".join(line.strip().removeprefix("///").strip() for line in doc.splitlines())
        listed = names.split()
        if listed:
            sentence += f" Parameters: {', '.join(f'`{one}`' for one in listed)}."
        members.append(f'    {name} = "{name}"\n{wrapped(sentence, 4)}\n')
        quoted = ", ".join(f'"{one}"' for one in listed)
        parameters.append(f"    ErrorCode.{name}: ({quoted}{',' if listed else ''}),\n")
    table = "#: The names of a code's parameters.\nERROR_PARAMETERS: Final[dict[ErrorCode, tuple[str, ...]]] = {\n"
    return ERROR_CODES_HEAD + "\n" + "".join(members) + "\n\n" + table + "".join(parameters) + "}\n"


def formatted(text: str, path: Path) -> str:
    """Return the module as ruff formats it."""
    return subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", path, "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def main() -> None:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the file is not what would be written")
    check = parser.parse_args().check
    writer = Writer()
    text = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "src/py").glob("*.rs")))
    roots = [(match[1], block(text, match.end(), "<>")) for match in re.finditer(r"\b(FromPython|IntoPython)<", text)]
    if not roots:
        fail("src/py names no types")
    roots += [("IntoPython", name) for name in METRICS]
    # Results that are made within a function.
    roots += [("IntoPython", name) for name in re.findall(r"^(?:pub\(super\) )?struct (\w+)", text, re.MULTILINE)]
    roots = [(side, kind) for side, kind in roots if any(name in writer.known for name in re.findall(r"\w+", kind))]
    arguments = {kind for side, kind in roots if side == "FromPython"}
    roots = [(side, kind) for side, kind in roots if side == "FromPython" or kind not in arguments]
    for side, kind in roots:
        if side == "IntoPython":
            writer.reach_results(kind)
    for _, kind in sorted(roots, key=lambda root: root[1]):
        writer.type_of(kind)
    out = HEAD + "".join("\n\n" + body.rstrip() + "\n" for body in writer.written.values())
    for path, text in ((OUTPUT, out), (ERROR_CODES, error_codes())):
        module = formatted(text, path)
        if not check:
            path.write_text(module, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != module:
            fail(f"{path.relative_to(ROOT)} differs from the Rust types; run dev/make_core_types.py")


if __name__ == "__main__":
    main()
