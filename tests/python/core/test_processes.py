"""Processes whose threads come and go, that fork, that have interpreters within: none of them dies or waits for ever.

The thread that first uses the extension is rarely the main one: web servers and pools import it in a worker thread
that ends some time later. Each program runs in a process of its own, under this Python and under the newest one that
is installed here; the extension is built for the stable ABI, so both load the same file.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest

import deltafast
from deltafast import write_deltalake

PACKAGE = pathlib.Path(deltafast.__file__).parent
ROWS = 3


def newest_python() -> str:
    """Return the newest Python that is installed here; this one if there is no newer one."""
    folders = [pathlib.Path(folder) for folder in os.get_exec_path()]
    folders += sorted(pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")).glob("versions/*/bin"))
    best, version = sys.executable, sys.version_info[:2]
    for folder in folders:
        for found in folder.glob("python3.*"):
            named = re.fullmatch(r"python3\.(\d+)", found.name)
            if named is None or (3, int(named[1])) <= version:
                continue
            # A shim of a version manager may stand for nothing.
            answer = subprocess.run([found, "-c", "print(1)"], capture_output=True, text=True, check=False)
            if answer.stdout == "1\n":
                best, version = str(found), (3, int(named[1]))
    return best


PYTHONS = sorted({sys.executable, newest_python()})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table of three commits and a checkpoint."""
    root = str(tmp_path_factory.mktemp("processes") / "t")
    for _ in range(ROWS):
        write_deltalake(root, pa.table({"id": [1]}), mode="append")
    deltafast.DeltaTable(root).create_checkpoint()
    return root


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder with deltafast alone: another Python could not load the other packages of this environment."""
    folder = tmp_path_factory.mktemp("package")
    (folder / PACKAGE.name).symlink_to(PACKAGE, target_is_directory=True)
    return folder


def run(python: str, package: pathlib.Path, table: str, program: str) -> None:
    """Run a program that defines nothing of its own; it has `look`, which opens and reads the table."""
    head = f"""
        import importlib, os, sys, threading
        from concurrent.futures import ThreadPoolExecutor

        def look():
            from deltafast import DeltaTable
            table = DeltaTable({table!r})
            assert table.version() == {ROWS - 1}
            assert table.count() == len(table.history()) == {ROWS}

        def in_thread(work):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    """
    text = textwrap.dedent(head) + textwrap.dedent(program) + "\nprint('whole')\n"
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [python, "-c", text], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr[-2000:]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            """
            in_thread(lambda: importlib.import_module("deltafast._core"))
            look()
            in_thread(look)
            look()
            """,
            id="imported-in-a-thread-that-ended",
        ),
        pytest.param(
            """
            import ctypes
            in_thread(lambda: ctypes.CDLL(importlib.util.find_spec("deltafast._core").origin))
            look()
            in_thread(look)
            """,
            id="loaded-in-a-thread-that-ended",
        ),
        pytest.param(
            """
            for _ in range(50):
                in_thread(look)
            """,
            id="a-thread-a-request",
        ),
        pytest.param(
            """
            for _ in range(10):
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(look).result()
                    pool.submit(look).result()
            """,
            id="pools-of-one-thread",
        ),
        pytest.param(
            """
            start = threading.Barrier(4)
            failures = []

            def first():
                start.wait()
                try:
                    look()
                except BaseException as error:
                    failures.append(error)

            threads = [threading.Thread(target=first) for _ in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            assert not failures, failures
            look()
            """,
            id="four-threads-at-first-use",
        ),
        pytest.param(
            """
            def forked():
                child = os.fork()
                if child == 0:
                    try:
                        look()
                        in_thread(look)
                    except BaseException:
                        os._exit(1)
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0

            in_thread(look)
            for _ in range(5):
                forked()
                in_thread(forked)
            stop = threading.Event()

            def busy():
                while not stop.is_set():
                    look()

            threads = [threading.Thread(target=busy) for _ in range(3)]
            for thread in threads: thread.start()
            for _ in range(20):
                forked()
            stop.set()
            for thread in threads: thread.join()
            """,
            id="forks",
        ),
        pytest.param(
            """
            # An interpreter within the process may be refused, by an ImportError; nothing may be harmed by the try.
            try:
                import _interpreters
            except ImportError:
                import _xxsubinterpreters as _interpreters
            text = "try: import deltafast._core\\nexcept ImportError as e: assert 'interpreter' in str(e), e"

            def within():
                name = _interpreters.create()
                try:
                    failed = _interpreters.run_string(name, text)
                    assert failed is None, failed
                finally:
                    _interpreters.destroy(name)

            within()
            look()
            within()
            in_thread(within)
            look()
            in_thread(look)
            """,
            id="interpreters-within",
        ),
    ],
)
def test_a_process_goes_on(python: str, package: pathlib.Path, table: str, program: str) -> None:
    run(python, package, table, program)
