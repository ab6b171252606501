"""A cluster on loopback: a master and two workers, each a process with an address of its own, and Pythons for executors."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Spark runs no task twice on one host: with one address there would be no speculation.
ADDRESSES = ("127.0.0.2", "127.0.0.3")


class Cluster(NamedTuple):
    """A running cluster."""

    master: str
    #: A Python that has the standard library alone.
    bare: str
    #: A folder with what the tests' own Python has, but for deltafast.
    packages: str


@contextlib.contextmanager
def running(root: pathlib.Path, home: pathlib.Path) -> Iterator[Cluster]:
    """Run it.

    Args:
        root: A folder of its own.
        home: The folder of PySpark.
    """
    bare = root / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    packages = root / "packages"
    packages.mkdir()
    for folder in map(pathlib.Path, sys.path):
        if folder.name == "site-packages":
            for found in folder.iterdir():
                if not re.match(r"(?i)deltafast|pyspark|.*\.pth$", found.name) and not (packages / found.name).exists():
                    (packages / found.name).symlink_to(found)
    with contextlib.ExitStack() as stack:
        arguments = ("--host", "127.0.0.1", "--port", "0")
        master = stack.enter_context(_daemon(home, root / "master.log", "master.Master", *arguments))()
        workers = []
        for number, address in enumerate(ADDRESSES):
            arguments = ("--host", address, "--cores", "1", "--memory", "700m", "--work-dir", str(root / f"w{number}"))
            log = root / f"worker{number}.log"
            workers.append(stack.enter_context(_daemon(home, log, "worker.Worker", *arguments, master)))
        for wait in workers:
            wait()
        yield Cluster(master, str(bare / "bin" / "python"), str(packages))


def _end_with_the_tests() -> None:
    """Have Linux end this process when the one that started it is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


@contextlib.contextmanager
def _daemon(home: pathlib.Path, log: pathlib.Path, name: str, *arguments: str) -> Iterator[Callable[[], str]]:
    """Run one of Spark's own processes; give what waits until it says that it is there, and has a master's address."""
    java = pathlib.Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.nio", "sun.nio.ch")]
    command = [
        str(java),
        "-Xmx192m",
        *opened,
        "-cp",
        str(home / "jars" / "*"),
        f"org.apache.spark.deploy.{name}",
    ]
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))
    }
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *arguments],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment | {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
            preexec_fn=_end_with_the_tests,  # noqa: PLW1509 - it takes no lock
        )

    def wait() -> str:
        end = time.monotonic() + 60
        while True:
            text = log.read_text()
            if found := re.search(r"Starting Spark master at (\S+)|Successfully registered with master", text):
                return found[1] or ""
            assert process.poll() is None, text[-3000:]
            assert time.monotonic() < end, text[-3000:]
            time.sleep(0.1)

    try:
        yield wait
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
