#!/usr/bin/env python3
"""Compile the Java sources against PySpark's jars into the jar that the wheel contains.

The name of the package gets the hash of the release and of the sources, so that releases of deltafast that share a
driver have classes of their own. The jar also contains the sources, which Janino compiles in the driver where a
release of Spark differs from the one of the build. Equal sources give equal bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import java_tools

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "java/src/main/java"
JAR = ROOT / "python/deltafast/spark/jars/deltafast-spark.jar"
CACHE = ROOT / "target/java"
_PACKAGE = "io.deltafast.spark"
#: Classes that settings of Spark name, so that they have the same name in all releases.
_NAMED = ("DeltafastCatalog", "DeltafastExtension", "UnityCatalog")
#: Libraries for S3, Azure and Google Cloud Storage, which whoever has tables there adds to Spark.
_S3 = ("software.amazon.awssdk", "auth", "2.29.52")
_AZURE = ("org.apache.hadoop", "hadoop-azure", "3.4.2")
_GOOGLE = ("com.google.cloud.bigdataoss", "util-hadoop", "hadoop3-2.2.26")
#: Annotations and manifests inside PySpark's jars refer to classes and jars that it does not contain.
_LINT = "-Xlint:all,-classfile,-path"


def release() -> str:
    """Return the version of deltafast."""
    found = re.search(r'^version = "(.+?)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        sys.exit("Cargo.toml has no version")
    return found[1]


def sources() -> dict[str, str]:
    """Return the sources by their paths below the folder of the sources."""
    return {
        file.relative_to(SOURCES).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(SOURCES.rglob("*.java"))
    }


def package_of(version: str, files: dict[str, str]) -> str:
    """Return the package of the classes of a release."""
    text = "\0".join([version, *(part for item in files.items() for part in item)])
    return f"{_PACKAGE}.x{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def classpath() -> str:
    """Return the class path of the sources: PySpark's jars, and the libraries for stores."""
    stores = java_tools.fetched(CACHE, _S3, with_dependencies=True)
    stores += java_tools.fetched(CACHE, _AZURE) + java_tools.fetched(CACHE, _GOOGLE)
    return ":".join([java_tools.classpath(), *map(str, stores)])


def compile_sources(files: dict[str, str], folder: Path) -> dict[str, bytes]:
    """Compile sources, with every warning as an error; return the class files by their paths."""
    written = [folder / "sources" / path for path in files]
    for file, text in zip(written, files.values(), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    out = folder / "classes"
    command = [java_tools.program("javac"), "--release", "17", "-encoding", "UTF-8", _LINT, "-Werror"]
    command += ["-proc:none", "-implicit:none", "-cp", classpath(), "-d", str(out), *map(str, written)]
    if subprocess.run(command, check=False).returncode:
        sys.exit("javac failed")
    return {file.relative_to(out).as_posix(): file.read_bytes() for file in sorted(out.rglob("*.class"))}


def _moved(path: str, text: str, package: str) -> tuple[str, str]:
    """Return the path and the text of a source in the package of a release."""
    if Path(path).stem in _NAMED:
        return path, text.replace(f"package {_PACKAGE};", f"package {_PACKAGE};\n\nimport {package}.*;", 1)
    moved = text.replace(f"package {_PACKAGE};", f"package {package};", 1)
    return path.replace(_PACKAGE.replace(".", "/"), package.replace(".", "/")), moved


def build(target: Path, version: str, files: dict[str, str]) -> None:
    """Write the jar."""
    package = package_of(version, files)
    folder = package.replace(".", "/")
    renamed = dict(_moved(path, text, package) for path, text in files.items())
    with tempfile.TemporaryDirectory(prefix="deltafast-") as scratch:
        classes = compile_sources(renamed, Path(scratch))
    manifest = f"Manifest-Version: 1.0\r\nDeltafast-Release: {version}\r\nDeltafast-Package: {package}\r\n\r\n"
    content = {"META-INF/MANIFEST.MF": manifest.encode()} | classes
    content |= {path: text.encode() for path, text in renamed.items() if path.startswith(folder)}
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


def main() -> None:
    """Build the jar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=JAR)
    parser.add_argument("--release", default=release(), help="the version of deltafast")
    chosen = parser.parse_args()
    build(chosen.out, chosen.release, sources())
    print(f"{chosen.out} {chosen.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
