"""Tests in child processes: those that need another Spark session, or another PySpark, than the main one.

A process holds one Spark context and one PySpark. Modules marked ``child_session(kind, releases)`` therefore run in child
processes: one per kind of session and release of PySpark, which runs all tests of that kind one after the other in a pytest
session of its own (see `child_worker`) and keeps its Spark session meanwhile. This process selects, orders and reports
the tests, so that names, durations, failures, `-k`, `-x`, `--durations` and xdist work as for all other tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import quick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

#: The PySpark of the test environment.
USUAL = "4.2"
#: The PySpark installed alongside, for which there is no delta-spark; `make test` installs it.
OTHER = "4.3"
BOTH = (USUAL, OTHER)
#: Supported releases that the tests install when they first need them.
OLDER = ("4.0", "4.1")
ALL = (*OLDER, *BOTH)

MARK = "child_session"
#: The name under which `child_worker` registers itself in a child process.
WORKER = "child-worker"
#: Seconds that a test may take longer than its timeout before the child process is killed, which is to report the timeout
#: itself.
GRACE = 60.0
#: Seconds in which a release of PySpark is installed.
INSTALLING = 300.0
#: Seconds in which a child process collects its tests.
STARTING = 120.0
#: Seconds in which a child process stops Spark and ends.
CLOSING = 60.0

_TIMEOUT = pytest.StashKey[float]()
_NODE_ID = pytest.StashKey[str]()


class Group(NamedTuple):
    """Tests that share a child process."""

    kind: str
    release: str


def register(config: pytest.Config) -> None:
    """Register the plugins: all of them, or in a child process only what names the tests."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(kind, releases=('{USUAL}',)): runs in a child process with this kind of Spark session, "
        "once for each release of PySpark",
    )
    config.pluginmanager.register(Releases(), "child-session-releases")
    if not config.pluginmanager.has_plugin(WORKER):
        config.pluginmanager.register(Dispatcher(config), "child-session-dispatcher")


class Releases:
    """Parametrizes marked tests by the release of PySpark."""

    # First, wherever this was registered: the tests have the same names in this process and in a child process.
    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize the fixture `release`; releases other than the usual one belong to the proof tier."""
        mark = metafunc.definition.get_closest_marker(MARK)
        if mark is not None:
            releases = mark.kwargs.get("releases", (USUAL,))
            values = [pytest.param(release, marks=_marks_of(release)) for release in releases]
            metafunc.parametrize("release", values, indirect=True, scope="session")


def _marks_of(release: str) -> list[pytest.MarkDecorator]:
    marks = [] if release == USUAL else [pytest.mark.proof]
    if release in OLDER:
        # Their py4j leaves sockets to the garbage collector.
        marks += [
            pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
            pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
        ]
    return marks


@functools.cache
def _settings(packages: pathlib.Path) -> dict[str, str]:
    return quick.settings(packages / "pyspark")


def environment(release: str) -> dict[str, str]:
    """Return the environment of a child process."""
    # Options of this run, and its xdist worker, are none of the child's.
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    variables["PYSPARK_PYTHON"] = sys.executable
    if release != USUAL:
        packages = pathlib.Path(sys.prefix) / f"spark-{release}"
        if release in OLDER:
            _install(release, packages)
        if not packages.is_dir():
            pytest.fail(f"{packages} is missing: `make test` installs it", pytrace=False)
        variables |= _settings(packages)
        variables["PYTHONPATH"] = os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return variables


def _install(release: str, packages: pathlib.Path) -> None:
    """Install a release of PySpark alongside, once for all processes."""
    root = pathlib.Path(__file__).parents[2]
    with packages.with_name(f"{packages.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if packages.is_dir():
            return
        target = packages.with_name(f"{packages.name}.part")
        shutil.rmtree(target, ignore_errors=True)
        uv = f"{sys.prefix}/bin/uv"
        export = [uv, "export", "--quiet", "--frozen", "--only-group", f"spark{release.replace('.', '')}"]
        locked = subprocess.run(export, cwd=root, check=True, timeout=INSTALLING, stdout=subprocess.PIPE)
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", str(target)]
        command += ["--requirements", "-"]
        subprocess.run(command, cwd=root, check=True, timeout=INSTALLING, input=locked.stdout)
        target.rename(packages)


class ChildEndedError(Exception):
    """The child process ended, or was killed, while it ran a test."""


class Child:
    """A child process, which runs tests of one group.

    Args:
        config: The configuration of this process, most of which the child takes over.
        group: The group.
        files: The modules with tests of the group.
        folder: A new folder for its temporary files and its output.
    """

    def __init__(self, config: pytest.Config, group: Group, files: list[str], folder: pathlib.Path) -> None:
        self.group = group
        self._is_ready = False
        self._outputs: dict[str, BinaryIO] = {}
        outputs: dict[str, Any] = {}
        variables = environment(group.release)
        folder.mkdir(parents=True)
        with contextlib.ExitStack() as opened:
            # With `-s` its output is shown at once, like that of other tests.
            if config.getoption("capture") != "no":
                for name in ("stdout", "stderr"):
                    outputs[name] = opened.enter_context((folder / name).open("wb"))
                    self._outputs[name] = (folder / name).open("rb")
            self._connection, theirs = Pipe()
            opened.enter_context(theirs)
            command = [sys.executable, "-P", str(pathlib.Path(__file__).with_name("child_worker.py"))]
            self._process = subprocess.Popen(
                [
                    *command,
                    str(theirs.fileno()),
                    json.dumps([*_options(config), f"--basetemp={folder / 'tmp'}", *files]),
                ],
                stdin=subprocess.DEVNULL,
                **outputs,
                cwd=config.invocation_params.dir,
                env=variables,
                pass_fds=[theirs.fileno()],
                # A group of its own, which is killed with its Java.
                start_new_session=True,
            )

    def run(self, node_id: str, next_id: str | None, limit: float | None) -> Iterator[tuple[dict[str, Any], list[Any]]]:
        """Run a test; yields each report as data, with sections of what was written to stdout and stderr meanwhile.

        Args:
            node_id: The test.
            next_id: The test of the same group that is to run next, for which fixtures are kept.
            limit: Seconds until the process is killed; None for no limit.

        Raises:
            ChildEndedError: If the process ended before the test did.
        """
        try:
            if not self._is_ready:
                self._receive(STARTING, STARTING)
                self._is_ready = True
            end = None if limit is None else time.monotonic() + limit
            self._connection.send((node_id, next_id))
            while True:
                kind, *content = self._receive(None if end is None else end - time.monotonic(), limit)
                if kind == "report":
                    data, sizes = content
                    yield data, self.output(data["when"], sizes)
                elif kind == "failure":
                    raise ChildEndedError(f"{self} cannot run this test: {content[0]}")
                else:
                    if not content[0]:
                        self.close()
                    return
        except (EOFError, ConnectionError):
            raise ChildEndedError(f"{self} {self._ending()} while it ran this test") from None

    def _receive(self, seconds: float | None, limit: float | None) -> tuple[Any, ...]:
        if not self._connection.poll(None if seconds is None else max(0, seconds)):
            self.kill()
            raise ChildEndedError(f"{self} was killed: it did not report within {limit:.0f} s")
        return self._connection.recv()

    def __str__(self) -> str:
        return f"the child process of the session {self.group.kind!r} on PySpark {self.group.release}"

    def _ending(self) -> str:
        try:
            code = self._process.wait(CLOSING)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def output(self, when: str, sizes: dict[str, int] | None = None) -> list[tuple[str, str]]:
        """Return report sections of what was written since the last call: all, or up to these sizes of the files."""
        sections = []
        for name, file in self._outputs.items():
            content = file.read() if sizes is None else file.read(max(0, sizes[name] - file.tell()))
            if content:
                sections.append((f"Captured {name} {when}", content.decode(errors="replace")))
        return sections

    @property
    def is_alive(self) -> bool:
        """Whether it can take another test."""
        return not self._connection.closed and self._process.poll() is None

    def kill(self) -> None:
        """End the process, and its Java, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._connection.send(None)
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSING)
        # What is left of the group: Java after a Python that was killed.
        self.kill()
        for file in self._outputs.values():
            file.close()
        self._outputs.clear()


def _options(config: pytest.Config) -> list[str]:
    """Return the options that a child process takes over: what decides on how tests run and how failures look."""
    option = config.option
    # Output is captured by file, here: what a process wrote before it was killed would be lost otherwise.
    options = ["-s", "-p", "no:cacheprovider", f"--rootdir={config.rootpath}"]
    if config.inipath is not None:
        options += ["-c", str(config.inipath)]
    options += ["-v"] * option.verbose + ["-q"] * -option.verbose
    options.append(f"--tb={option.tbstyle}")
    options += ["--showlocals"] * bool(option.showlocals)
    options += [f"-o{setting}" for setting in option.override_ini or ()]
    options += [f"-W{setting}" for setting in option.pythonwarnings or ()]
    if getattr(option, "timeout", None) is not None:
        options.append(f"--timeout={option.timeout}")
    return options


def group_of(item: pytest.Item) -> Group | None:
    """Return the group of a test, or None if it runs in this process."""
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return None
    assert isinstance(item, pytest.Function)
    return Group(mark.args[0], item.callspec.params["release"])


class Dispatcher:
    """Has child processes run the marked tests; there is one at a time."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._child: Child | None = None
        self._numbers = itertools.count()

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Remember how children name the test: xdist appends names of groups."""
        item.stash[_NODE_ID] = item.nodeid

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put tests of one group next to each other, before all others.

        xdist's work stealing takes tests from the end of a worker's queue, so that groups at its beginning are seldom
        split between workers, each of which would start a child.
        """
        order: dict[Group | None, int] = {}
        for item in items:
            if group := group_of(item):
                order.setdefault(group, len(order))
        order[None] = len(order)
        items.sort(key=lambda item: order[group_of(item)])

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool | None:
        """Leave the timeout of a test to its child process."""
        if group_of(item) is None:
            return None
        item.stash[_TIMEOUT] = settings.timeout
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a marked test in the child process of its group."""
        group = group_of(item)
        if group is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            for report in self._reports(item, group, nextitem):
                item.ihook.pytest_runtest_logreport(report=report)
        finally:
            if nextitem is None or group_of(nextitem) != group:
                self._end()
        # Fixtures of this process that were kept for this test, as far as the next one does not use them.
        teardown = functools.partial(item.session._setupstate.teardown_exact, nextitem)
        call = pytest.CallInfo.from_call(teardown, "teardown", reraise=(KeyboardInterrupt, pytest.exit.Exception))
        if call.excinfo is not None:
            item.ihook.pytest_runtest_logreport(report=pytest.TestReport.from_item_and_call(item, call))
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_sessionfinish(self) -> None:
        """End the child process of an interrupted run."""
        self._end()

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None

    def _reports(self, item: pytest.Item, group: Group, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
        """Yield the reports of a test; where the child process ends too early, one that says so."""
        hook = item.config.hook
        next_id = nextitem.stash[_NODE_ID] if nextitem is not None and group_of(nextitem) == group else None
        timeout = item.stash.get(_TIMEOUT, None)
        # A child may still end after its last report.
        phases = ["setup", "call", "teardown", "teardown"]
        start, message = time.time(), None
        try:
            child = self._child_of(item, group)
            for data, sections in child.run(item.stash[_NODE_ID], next_id, timeout and timeout + GRACE):
                report = hook.pytest_report_from_serializable(config=item.config, data=data)
                report.nodeid = item.nodeid
                report.sections += sections
                if report.when in phases:
                    phases.remove(report.when)
                yield report
                start = time.time()
        except (ChildEndedError, pytest.fail.Exception) as error:
            message = str(error)
        if message is not None:
            failure = functools.partial(pytest.fail, message[:1].upper() + message[1:], pytrace=False)
            report = pytest.TestReport.from_item_and_call(item, pytest.CallInfo.from_call(failure, phases[0]))
            report.start, report.duration = start, time.time() - start
            if self._child is not None:
                report.sections += self._child.output(report.when)
            self._end()
            yield report
            if report.when != "teardown":
                yield pytest.TestReport.from_item_and_call(item, pytest.CallInfo.from_call(lambda: None, "teardown"))

    def _child_of(self, item: pytest.Item, group: Group) -> Child:
        """Return the running child process of a group, or a new one."""
        if self._child is not None and (self._child.group != group or not self._child.is_alive):
            self._end()
        if self._child is None:
            files = {str(other.path): None for other in item.session.items if group_of(other) == group}
            base = self._config._tmp_path_factory.getbasetemp()
            folder = base / f"{group.kind}-{group.release}-{next(self._numbers)}"
            self._child = Child(self._config, group, list(files), folder)
        return self._child
