"""The Java tools of the build: a JDK (from `dev/system_package java`), and jars of PySpark and Maven Central."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["JUNIT", "classpath", "fetched", "program", "pyspark_jars"]

#: The runner of the JUnit tests, with all that it depends on.
JUNIT = ("org.junit.platform", "junit-platform-console-standalone", "1.14.1")


def program(name: str) -> str:
    """Return the path of a program of the JDK.

    Raises:
        SystemExit: There is no JDK.
    """
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", name) if home else None
    if found is not None and found.is_file():
        return str(found)
    on_path = shutil.which(name)
    if on_path is None:
        sys.exit(f"{name} is missing: run dev/system_package java, or set JAVA_HOME to a JDK")
    return on_path


def pyspark_jars() -> Path:
    """Return the folder with the jars inside the PySpark package.

    Raises:
        SystemExit: PySpark is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        sys.exit("pyspark is missing: make build-jar installs it")
    return Path(found.origin).with_name("jars")


def classpath() -> str:
    """Return the class path with PySpark's jars."""
    return str(pyspark_jars() / "*")


def fetched(cache: Path, coordinates: tuple[str, str, str], *, with_dependencies: bool = False) -> list[Path]:
    """Return jars from Maven Central, which the Ivy inside PySpark downloads.

    Args:
        cache: The folder for the jars.
        coordinates: Group, name and version.
        with_dependencies: Whether to return the jars that it depends on, too.

    Raises:
        subprocess.CalledProcessError: It cannot be downloaded.
    """
    folder = cache / "-".join(coordinates[1:])
    marker = folder / "complete"
    if not marker.exists():
        ivy = next(pyspark_jars().glob("ivy-*.jar"))
        command = [program("java"), "-jar", str(ivy), "-warn", "-confs", "default", "-dependency", *coordinates]
        command += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
        command += [] if with_dependencies else ["-notransitive"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        marker.touch()
    return sorted(folder.glob("*.jar"))
