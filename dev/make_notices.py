"""Writes `THIRD_PARTY_NOTICES.txt`: the crates that the wheel contains, with their licenses.

The crates are those that `cargo metadata` resolves for the features of the wheel, on all systems, without those that
only builds and tests need. Each license must be allowed by `deny.toml`. With `--check` the file is compared instead.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "THIRD_PARTY_NOTICES.txt"
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
LINE = "=" * 80
HEAD = "The wheels of deltafast contain the following crates. Written by dev/make_notices.py.\n"


def _crates() -> list[dict[str, Any]]:
    """Return the crates that are linked into the extension, in order."""
    features = ",".join(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["maturin"]["features"])
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--features", features]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found: set[str] = set()
    pending = [metadata["resolve"]["root"]]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            kinds = {dependency["pkg"]: dependency["dep_kinds"] for dependency in nodes[name]["deps"]}
            pending.extend(other for other, found_as in kinds.items() if any(not kind["kind"] for kind in found_as))
    linked = (packages[name] for name in found if packages[name]["source"])
    return sorted(linked, key=lambda package: (package["name"], package["version"]))


def _is_allowed(expression: str, allowed: set[str]) -> bool:
    """Evaluate an SPDX expression; a slash is an OR in older manifests."""
    tokens = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.+-]+)?", expression.replace("/", " OR "))
    words = {"(": "(", ")": ")", "AND": "and", "OR": "or"}
    return bool(tokens and eval(" ".join(words.get(token, str(token in allowed)) for token in tokens)))


def _files(crate: dict[str, Any]) -> list[str]:
    """Return the content of the crate's licenses and notices; of several licenses to choose from, Apache-2.0."""
    folder = Path(crate["manifest_path"]).parent
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NAMES))
    if _is_allowed(crate["license"], {"Apache-2.0"}) and any("APACHE" in path.name.upper() for path in paths):
        paths = [path for path in paths if not re.search("MIT|BSD|ZLIB|ISC|BOOST|UNLICENSE", path.name.upper())]
    return ["\n".join(line.rstrip() for line in path.read_text("utf-8", "replace").splitlines()) for path in paths]


def notices() -> str:
    """Return the file: a list of crates, and each text once."""
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))["licenses"]["allow"])
    parts, used_by, originals = [HEAD], dict[str, list[str]](), dict[str, str]()
    for crate in _crates():
        name = f"{crate['name']} {crate['version']}"
        if not _is_allowed(crate["license"] or "", allowed):
            sys.exit(f"the license of {name}, {crate['license']}, is not allowed by deny.toml")
        parts.append(f"{name} ({crate['license']}): {crate['repository'] or ''}".rstrip(" :"))
        for text in _files(crate):
            words = " ".join(text.split())
            used_by.setdefault(words, []).append(name)
            originals.setdefault(words, text.strip("\n"))
    for words, names in used_by.items():
        parts.append(f"\n{LINE}\n{', '.join(dict.fromkeys(names))}\n{LINE}\n\n{originals[words]}")
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write or compare the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the file instead of writing it")
    written = notices()
    if not parser.parse_args().check:
        OUTPUT.write_text(written, encoding="utf-8")
    elif OUTPUT.read_text(encoding="utf-8") != written:
        sys.exit(f"{OUTPUT.name} is not up to date: run dev/make_notices.py")


if __name__ == "__main__":
    main()
