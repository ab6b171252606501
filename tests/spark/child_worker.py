"""The program of a child process: a pytest session that runs the tests it is told to (see `child_session`)."""

from __future__ import annotations

import json
import os
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


class Worker:
    """Runs the tests that the parent names, and sends it their reports."""

    def __init__(self, connection: Connection) -> None:
        #: The plugin's name, by which `child_session` knows that it is in a child process.
        self.__name__ = "child-worker"
        self._connection = connection

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep pytest's own lines out of the output."""
        config.pluginmanager.unregister(name="terminalreporter")
        reporter = pytest.TerminalReporter(config, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - as long as the process
        config.pluginmanager.register(reporter, "terminalreporter")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Keep all tests: the parent has selected already."""
        collected = items[:]
        yield
        items[:] = collected

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run tests until the parent closes the connection, or says that there are no more."""
        items = {item.nodeid: item for item in session.items}
        self._connection.send(("ready",))
        while (order := self._next()) is not None:
            item, nextitem = (items.get(node_id) for node_id in order)
            if item is None:
                self._connection.send(("failure", f"{order[0]} is not among the tests that it collected"))
                continue
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            self._connection.send(("finished", not _java_ended()))
        return True

    def _next(self) -> tuple[str, str] | None:
        try:
            return self._connection.recv()
        except (EOFError, ConnectionError):
            return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report, and how much was written up to now."""
        data: dict[str, Any] = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        sys.stdout.flush()
        sys.stderr.flush()
        sizes = {name: os.fstat(number).st_size for number, name in ((1, "stdout"), (2, "stderr"))}
        self._connection.send(("report", data, sizes))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the configuration, which reports need."""
        self._config = session.config


def _java_ended() -> bool:
    """Whether Spark's Java has ended, so that no test after it could succeed."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = getattr(context, "_gateway", None)
    return gateway is not None and gateway.proc.poll() is not None


def main(number: str, arguments: str) -> int:
    """Run; returns the exit code of pytest.

    Args:
        number: The file descriptor of the connection to the parent.
        arguments: The arguments of pytest, as JSON.
    """
    os.set_inheritable(int(number), False)
    return pytest.main(json.loads(arguments), plugins=[Worker(Connection(int(number)))])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
