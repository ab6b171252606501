#!/usr/bin/env python3
"""Format the Java sources with google-java-format."""

from __future__ import annotations

import argparse
import subprocess
import sys

import build_jar
import java_tools

_TOOL = ("com.google.googlejavaformat", "google-java-format", "1.28.0")
#: The parts of the compiler that the tool uses.
_PARTS = ("api", "code", "file", "main", "parser", "tree", "util")


def main() -> None:
    """Format the sources, or check their format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="list the files with another format and change none")
    chosen = parser.parse_args()
    jars = java_tools.fetched(build_jar.CACHE, _TOOL, with_dependencies=True)
    command = [java_tools.program("java"), "-cp", ":".join(map(str, jars))]
    command += [f"--add-exports=jdk.compiler/com.sun.tools.javac.{part}=ALL-UNNAMED" for part in _PARTS]
    command += ["com.google.googlejavaformat.java.Main"]
    command += ["--dry-run", "--set-exit-if-changed"] if chosen.check else ["--replace"]
    files = sorted((build_jar.ROOT / "java").rglob("*.java"))
    sys.exit(subprocess.run([*command, *map(str, files)], check=False).returncode)


if __name__ == "__main__":
    main()
