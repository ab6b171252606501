"""`HttpClient`: requests over HTTP, with limits of time and size for each answer."""

from __future__ import annotations

import contextlib
import http.client
import os
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from deltafast._catalog.server_text import server_text
from deltafast._libraries import raise_named

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = ["HttpAnswer", "HttpClient", "NoAnswerError"]

#: Bytes of a body that are read at once.
_PIECE = 1 << 15
#: Compressed bodies may expand to so many bytes, and to so many times their size.
#: Lines of a share have a digest or signature each, and with it at least a byte in fifty that does not shrink.
_ANY_EXPANSION, _EXPANSION = 1 << 26, 200
#: Encodings of bodies that are read; none is asked for.
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")


class NoAnswerError(Exception):
    """There is no complete answer.

    Args:
        reason: Why, in a few words without a URL.
        is_final: Whether the same request would have no answer again.
    """

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


class HttpAnswer:
    """An answer, of which the body has yet to be read.

    Args:
        response: The answer of urllib3.
        deadline: When the body must be complete, by the clock `time.monotonic`.
        seconds: The seconds that the answer may take, for the error.
    """

    def __init__(self, response: Any, deadline: float, seconds: float) -> None:
        self._response, self._deadline, self._seconds = response, deadline, seconds
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        #: The body, after `load`.
        self.data = b""

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def kind(self) -> str:
        """The content type, for messages."""
        return server_text(self.headers.get("Content-Type", "").partition(";")[0], most=60) or "no content type"

    def load(self, most: int, *, is_expanded: bool = True) -> None:
        """Read the body; the arguments and errors are those of `pieces`."""
        self.data = b"".join(self.pieces(most, is_expanded=is_expanded))

    def load_until(self, end: int) -> None:
        """Read so many bytes of the body as it is sent, or all if it has fewer; the errors are those of `pieces`."""
        beginning = bytearray()
        with contextlib.closing(self.pieces(end + 2 * _PIECE, is_expanded=False)) as pieces:
            for piece in pieces:
                beginning += piece
                if len(beginning) >= end:
                    break
        self.data = bytes(beginning)

    def load_beginning(self, most: int) -> None:
        """Read about so many bytes of the body; fewer if no more arrive."""
        beginning = bytearray()
        with contextlib.suppress(NoAnswerError), contextlib.closing(self.pieces(1 << 62)) as pieces:
            for piece in pieces:
                beginning += piece
                if len(beginning) >= most:
                    break
        self.data = bytes(beginning[: most + _PIECE])

    def close(self) -> None:
        """Leave the rest of the body unread."""
        self._response.close()

    def pieces(self, most: int, *, is_expanded: bool = True) -> Generator[bytes]:
        """Yield the body while it arrives.

        Args:
            most: The most bytes, after decompression.
            is_expanded: Whether a compressed body is expanded; else one is refused.

        Raises:
            NoAnswerError: It is larger, incomplete, or late.
        """
        encoding = self.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in (_ENCODINGS if is_expanded else _ENCODINGS[:2]):
            self._response.close()
            message = f"its body has the encoding {server_text(encoding, most=40)}, which was not asked for"
            raise NoAnswerError(message, is_final=True)
        size, failure = 0, None
        try:
            for piece in self._response.stream(_PIECE, decode_content=is_expanded):
                size += len(piece)
                if size > most:
                    failure = NoAnswerError(f"its body has more than {most} bytes", is_final=True)
                    break
                if size > _ANY_EXPANSION and encoding and size > _EXPANSION * self._response.tell():
                    message = f"its body expands to more than {_EXPANSION} times its size"
                    failure = NoAnswerError(message, is_final=True)
                    break
                yield piece
        except _errors() as error:
            failure = _no_answer(error, self._deadline, self._seconds)
        finally:
            # A connection with an unread body cannot be used again.
            self._response.close() if failure is not None or not self._is_read() else self._response.release_conn()
        # Not within `except`: the error of urllib3 has the URL, which may be signed.
        if failure is not None:
            raise failure

    def _is_read(self) -> bool:
        return bool(self._response.closed)


class HttpClient:
    """A client for all threads and forked processes. Each request is sent once; redirects are not followed.

    Args:
        connections: The most connections that are kept for each host.
        timeout: Seconds to connect, and between two bytes of an answer.
        user: What needs the client, for the error if urllib3 is missing.

    Raises:
        MissingLibraryError: urllib3 is not installed.
    """

    def __init__(self, connections: int, timeout: float, user: str) -> None:
        try:
            from deltafast._catalog import http_pool
        except ModuleNotFoundError as error:
            raise_named(error, user)
            raise
        self._module: Any = http_pool
        self._connections, self._timeout = connections, timeout
        self._held = self._new_pools()

    def request(
        self, method: str, url: str, seconds: float, headers: Mapping[str, str], body: bytes | str | None = None
    ) -> HttpAnswer:
        """Send a request, and return the answer when its headers have arrived.

        Args:
            method: The HTTP method.
            url: The URL.
            seconds: The time until the last byte of the answer.
            headers: The headers.
            body: The body.

        Raises:
            NoAnswerError: There is none.
        """
        deadline = time.monotonic() + seconds
        context = self._module.DEADLINE.set(deadline)
        try:
            response = self._pools().request(
                method, url, body=body, headers=headers, redirect=False, preload_content=False
            )
            return HttpAnswer(response, deadline, seconds)
        except _errors() as error:
            failure = _no_answer(error, deadline, seconds)
        finally:
            self._module.DEADLINE.reset(context)
        # Not within `except`: the error of urllib3 has the URL, which may be signed.
        raise failure

    def _pools(self) -> Any:
        """Return the pools of this process: on a connection that a fork shares, each would read the other's answers."""
        process, pools = self._held
        if process != os.getpid():
            # Of two threads that come here at once each may make pools; both work.
            self._held = process, pools = self._new_pools()
        return pools

    def _new_pools(self) -> tuple[int, Any]:
        return os.getpid(), self._module.pool_manager(self._connections, self._timeout)


def _errors() -> tuple[type[BaseException], ...]:
    """Return what urllib3 and what is below it raise."""
    import urllib3

    return urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError


def _no_answer(error: BaseException, deadline: float, seconds: float) -> NoAnswerError:
    if time.monotonic() >= deadline:
        return NoAnswerError(f"it took longer than {seconds:g} seconds", is_final=True)
    # The message of a pool has its address and path.
    return NoAnswerError(type(error).__name__)
