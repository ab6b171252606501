"""A Spark session that lives as long as its process."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def builder(master: str) -> Any:
    """Return a builder with what all sessions have in common.

    Args:
        master: Spark's master; `remote` for a server of Spark Connect with the master `local[2]`.
    """
    made = _connecting() if master == "remote" else SparkSession.builder.master(master)
    made = made.config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    return made.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")


def _connecting() -> Any:
    """Return a builder that starts a server at a free port; PySpark's own is the same for all processes."""
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)
    return SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", str(port))


class Started:
    """A session that is started when it is first needed, and again after a test has stopped it."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        self._session: Any = None

    def session(self) -> Any:
        """Return the session."""
        if self._session is None or _is_stopped(self._session):
            self._session = self._build()
        return self._session

    def isolated(self) -> Iterator[Any]:
        """Yield the session to one test; tables, views and settings that the test leaves are removed after it."""
        session = self.session()
        before = _settings(session)
        yield session
        if _is_stopped(session):
            return
        after = _settings(session)
        for key in after.keys() - before.keys():
            session.conf.unset(key)
        for key, value in before.items():
            if after.get(key) != value:
                session.conf.set(key, value)
        # Statements: the methods of `session.catalog` and `session.conf` ask Java about each table and setting.
        views = {row.viewName: row.isTemporary for row in session.sql("SHOW VIEWS").collect()}
        for name, is_temporary in views.items():
            if is_temporary:
                session.catalog.dropTempView(name)
            else:
                session.sql(f"DROP VIEW `{name}`")
        for row in session.sql("SHOW TABLES").collect():
            session.sql(f"DROP TABLE `{row.tableName}`")

    def stop(self) -> None:
        """Stop it."""
        if self._session is not None and not _is_stopped(self._session):
            self._session.stop()


def _settings(session: Any) -> dict[str, str]:
    return {row.key: row.value for row in session.sql("SET").collect()}


def _is_stopped(session: Any) -> bool:
    connected = getattr(session, "is_stopped", None)
    return session.sparkContext._jsc is None if connected is None else connected
