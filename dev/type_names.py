"""Report Rust type names of one word, and names that several types share.

    python dev/type_names.py [src] [--list] [--most-one-word 0.15] [--most-repeated 9]

Reads the definitions (`struct`, `enum`, `trait`, `union`, `type`) of non-test code as text. A name of one word such as
`Place` says little and cannot be searched for; a name that two types share makes a reader look twice. With a limit,
exceeding it is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

from check_layers import code, is_test

# Associated types (`type Error = ..`) are indented deeper than the items of a module.
_DEFINITION = re.compile(
    r"^(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|union|type)\s+([A-Z]\w*)", re.MULTILINE
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


def definitions(src: Path) -> dict[str, list[str]]:
    """Return the files that define each type name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(src.rglob("*.rs")):
        relative = path.relative_to(src)
        if not is_test(relative):
            for name in _DEFINITION.findall(code(path.read_text())):
                found[name].append(str(relative))
    return found


def is_one_word(name: str) -> bool:
    """Whether a name in camel case is a single word."""
    return len(_WORD.findall(name)) == 1


def main() -> None:
    """Print the counts, with `--list` the names, and fail above a limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src", nargs="?", type=Path, default=Path("src"))
    parser.add_argument("--list", action="store_true", help="print each name with its files")
    parser.add_argument("--most-one-word", type=float, help="largest share of types whose name is one word")
    parser.add_argument("--most-repeated", type=int, help="largest number of names that several types share")
    options = parser.parse_args()
    found = definitions(options.src)
    types = sum(map(len, found.values()))
    if types == 0:
        sys.exit(f"{options.src}: no Rust types found")
    one_word = {name: files for name, files in found.items() if is_one_word(name)}
    repeated = {name: files for name, files in found.items() if len(files) > 1}
    share = sum(map(len, one_word.values())) / types
    if options.list:
        for title, names in (("one word", one_word), ("repeated", repeated)):
            print(f"{title}:")
            for name, files in sorted(names.items()):
                print(f"  {name}: {', '.join(files)}")
    print(f"{types} types; {share:.1%} have a name of one word; {len(repeated)} names are defined more than once")
    if options.most_one_word is not None and share > options.most_one_word:
        sys.exit(f"too many types have a name of one word: {share:.1%}, at most {options.most_one_word:.1%}")
    if options.most_repeated is not None and len(repeated) > options.most_repeated:
        sys.exit(f"too many names are defined more than once: {len(repeated)}, at most {options.most_repeated}")


if __name__ == "__main__":
    main()
