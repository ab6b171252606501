"""Connections of urllib3 whose answers have a deadline, and whose log lines have no signatures.

A timeout of urllib3, `Timeout(total=...)` included, is one between two bytes of an answer: a server that sends a byte
now and then would hold its reader for ever.
"""

from __future__ import annotations

import http.client
import io
import logging
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer

__all__ = ["DEADLINE", "pool_manager"]

#: When the answer to a request of this context must be complete, by the clock `time.monotonic`.
DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


class _TimedReader(io.RawIOBase):
    """The bytes of a socket until a deadline.

    Args:
        raw: Reads the socket.
        sock: The socket, whose timeout is that between two bytes.
        deadline: The deadline.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float) -> None:
        self._raw, self._sock, self._deadline = raw, sock, deadline
        self._timeout = sock.gettimeout()

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        """Read what has arrived, or wait for it.

        Raises:
            TimeoutError: Nothing arrived in time.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            message = "the deadline of the answer has passed"
            raise TimeoutError(message)
        self._sock.settimeout(left if self._timeout is None else min(left, self._timeout))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the reader of the socket."""
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """An answer whose status line, headers and body arrive until the deadline of the request's context."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        deadline = DEADLINE.get()
        if deadline is not None:
            self.fp: Any = io.BufferedReader(_TimedReader(self.fp.detach(), sock, deadline))


class _Connection(HTTPConnection):
    response_class = _TimedResponse


class _SecureConnection(HTTPSConnection):
    response_class = _TimedResponse


class _Pool(HTTPConnectionPool):
    ConnectionCls: Any = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls: Any = _SecureConnection


def pool_manager(connections: int, timeout: float) -> urllib3.PoolManager:
    """Return pools of connections, which send each request once.

    Args:
        connections: The most connections that are kept for each host.
        timeout: Seconds to connect, and between two bytes of an answer.
    """
    manager = urllib3.PoolManager(maxsize=connections, retries=False, timeout=urllib3.Timeout(timeout))
    classes: dict[str, type[HTTPConnectionPool | HTTPSConnectionPool]] = {"http": _Pool, "https": _SecurePool}
    manager.pool_classes_by_scheme = classes
    return manager


def _hide_signature(record: logging.LogRecord) -> bool:
    """Cut queries, which may be signatures, off the URLs in a line about a request of this module."""
    if DEADLINE.get() is not None and isinstance(record.args, tuple):
        record.args = tuple(arg.partition("?")[0] if isinstance(arg, str) else arg for arg in record.args)
    return True


# Its lines at DEBUG have the URLs of all requests.
logging.getLogger("urllib3.connectionpool").addFilter(_hide_signature)
