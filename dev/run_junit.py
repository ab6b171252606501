#!/usr/bin/env python3
"""Compile the Java sources and their tests, and run the tests with JUnit."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import build_jar
import java_tools

TESTS = build_jar.ROOT / "java/src/test/java"


def main() -> None:
    """Run the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=Path, help="a folder for the results as XML")
    chosen = parser.parse_args()
    junit = java_tools.fetched(build_jar.CACHE, java_tools.JUNIT)[0]
    files = [*build_jar.SOURCES.rglob("*.java"), *TESTS.rglob("*.java")]
    # Spark accesses internals of the JDK, as its own launcher allows.
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.nio", "sun.nio.ch", "java.lang")]
    with tempfile.TemporaryDirectory(prefix="deltafast-") as out:
        path = f"{junit}:{build_jar.classpath()}"
        command = [java_tools.program("javac"), "--release", "17", "-proc:none", "-nowarn", "-cp", path, "-d", out]
        subprocess.run([*command, *map(str, files)], check=True)
        command = [java_tools.program("java"), *opened, "-Xmx512m", f"-Ddeltafast.sources={build_jar.SOURCES}"]
        command += ["-cp", f"{path}:{out}"]
        command += ["org.junit.platform.console.ConsoleLauncher", "execute", "--scan-classpath", out]
        command += ["--disable-banner", "--details", "tree"]
        command += ["--reports-dir", str(chosen.reports)] if chosen.reports else []
        sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
