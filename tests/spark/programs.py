"""Programs that run in a process of their own, since one process holds one Spark, and on which PySpark they run."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import quick

#: The PySpark beside the usual one, for which there is no delta-spark; `make test` installs it.
OTHER = "4.3"


def run(name: str, *arguments: str, release: str | None = None, **environment: str) -> None:
    """Run a program of this folder, which says at its end that all is well.

    Args:
        name: Its name, without `.py`.
        arguments: Its arguments.
        release: The PySpark that it runs on; the usual one if None.
        environment: Other variables.
    """
    variables = os.environ | {"PYSPARK_PYTHON": sys.executable}
    if release is not None:
        packages = pathlib.Path(sys.prefix) / f"spark-{release}"
        assert packages.is_dir(), f"{packages} is missing: `make test` installs it"
        variables |= quick.settings(packages / "pyspark")
        variables["PYTHONPATH"] = os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    ran = subprocess.run(
        [sys.executable, str(pathlib.Path(__file__).with_name(f"{name}.py")), *arguments],
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
        env=variables | environment,
    )
    assert ran.stdout.endswith("all is well\n"), ran.stderr[-3000:]
    if release is not None:
        assert f"on PySpark {release}." in ran.stdout, ran.stdout
