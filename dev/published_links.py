"""Write the address of the repository into what the package index shows: `[project.urls]` and the links of README.md.

The project names no address of its own: the workflow that publishes a release knows where it runs, and gives it.
`python dev/published_links.py ADDRESS REVISION` changes pyproject.toml and README.md in place.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_BEFORE = "[project.scripts]\n"
_LINK = re.compile(r"(?<=\]\()(?![a-z+]+:|#)(?P<path>[^)#\s]+)")


def project_urls(address: str, revision: str) -> dict[str, str]:
    """The labels and addresses of `[project.urls]`."""
    return {
        "Repository": address,
        "Documentation": f"{address}/blob/{revision}/docs/README.md",
        "Changelog": f"{address}/blob/{revision}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def with_urls(project: str, address: str, revision: str) -> str:
    """The text of a pyproject.toml with the table `[project.urls]`, before the table of scripts."""
    if "urls" in tomllib.loads(project)["project"]:
        sys.exit("pyproject.toml has [project.urls] already")
    if project.count(_BEFORE) != 1:
        sys.exit(f"pyproject.toml must have one line {_BEFORE.strip()}")
    lines = [f'{label} = "{url}"\n' for label, url in project_urls(address, revision).items()]
    return project.replace(_BEFORE, "".join(["[project.urls]\n", *lines, "\n", _BEFORE]))


def with_absolute_links(readme: str, address: str, revision: str) -> str:
    """The text of a README.md whose links to files of the repository name the revision."""
    return _LINK.sub(lambda link: f"{address}/blob/{revision}/{link['path']}", readme)


def main() -> None:
    """Change the two files, or exit with one line that says why not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="the repository, as https://HOST/OWNER/NAME")
    parser.add_argument("revision", help="the tag or branch that links to files name")
    options = parser.parse_args()
    address = options.address.rstrip("/")
    if not re.fullmatch(r"https://[^/\s]+/[^\s\"]+", address):
        sys.exit(f"the address of the repository must be https://HOST/OWNER/NAME, not {options.address!r}")
    for name, change in (("pyproject.toml", with_urls), ("README.md", with_absolute_links)):
        file = _ROOT / name
        file.write_text(change(file.read_text(), address, options.revision))


if __name__ == "__main__":
    main()
