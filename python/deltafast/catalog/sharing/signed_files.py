"""Reading of files by signed URLs, which are renewed."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from deltafast._libraries import raise_named
from deltafast.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast.catalog.sharing.response_lines import SignedUrls

__all__ = ["SignedFiles"]

#: Seconds: to connect, and between two bytes of an answer.
_TIMEOUT = 60.0
#: How often a request is repeated, and seconds before the first repetition; each further one waits twice as long.
_REPEATS, _WAIT = 5, 0.2
#: URLs are renewed this many seconds before the first of them expires, or a fifth of their life before.
_MARGIN = 60.0
_LATER = (408, 429, 500, 502, 503, 504)
#: Answers to a URL that has expired: of S3 and Azure 403, of others also these.
_EXPIRED = (400, 401, 403)


class SignedFiles:
    """The files of a table by their paths, for all threads.

    Args:
        urls: The URLs.
        renew: Asks the server for URLs of the same files, with what the last ones came with.
    """

    def __init__(self, urls: SignedUrls, renew: Callable[[SignedUrls], SignedUrls]) -> None:
        try:
            import urllib3
        except ModuleNotFoundError as error:
            raise_named(error, "Delta Sharing")
            raise
        self._pool = urllib3.PoolManager(maxsize=32, retries=False, timeout=urllib3.Timeout(_TIMEOUT))
        self._renew = renew
        self._lock = threading.Lock()
        self._take(urls)

    def read(self, path: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, the latter exclusive.

        Raises:
            FileNotFoundError: There is no such file.
            PermissionError: The server gives no URL of the file, or one that is refused.
            StorageError: There is no answer.
        """
        if end <= start:
            return b""
        answer = self._get(path, start, end)
        data: bytes = answer.data
        # A server without ranges sends everything.
        return data if answer.status == HTTPStatus.PARTIAL_CONTENT else data[start:end]

    def size(self, path: str) -> int:
        """Return the length of a file; the errors are those of `read`."""
        answer = self._get(path, 0, 1)
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return int(total) if total.isdigit() else len(answer.data)

    def _get(self, path: str, start: int, end: int) -> Any:
        urls = self._urls
        if time.time() >= self._renew_at:
            urls = self._renewed(urls)
        answer = self._answer(urls, path, start, end)
        if answer.status in _EXPIRED:
            answer = self._answer(self._renewed(urls), path, start, end)
        if answer.status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            return answer
        what = f"the store of the share answers with status {answer.status}"
        if answer.status == HTTPStatus.NOT_FOUND:
            raise FileNotFoundError(what)
        if answer.status in _EXPIRED:
            message = f"{what} to a URL that the sharing server has just signed"
            raise PermissionError(message)
        raise StorageError(what)

    def _answer(self, urls: SignedUrls, path: str, start: int, end: int) -> Any:
        """Return an answer; no error has the URL."""
        import urllib3

        url = urls.by_path.get(path)
        if url is None:
            message = "the sharing server has no URL for it any more: the table has changed, open it again"
            raise PermissionError(message)
        headers, wait, reason = {"Range": f"bytes={start}-{end - 1}"}, _WAIT, ""
        for left in range(_REPEATS, -1, -1):
            try:
                answer = self._pool.request("GET", url, headers=headers, redirect=False)
                if answer.status not in _LATER or not left:
                    return answer
            except urllib3.exceptions.HTTPError as error:
                reason = type(error).__name__
            if left:
                time.sleep(wait)
                wait *= 2
        message = f"the store of the share does not answer: {reason}"
        raise StorageError(message)

    def _renewed(self, seen: SignedUrls) -> SignedUrls:
        """Return newer URLs than those that a thread has seen; the first thread asks for all."""
        with self._lock:
            if self._urls is seen:
                self._take(self._renew(seen))
            return self._urls

    def _take(self, urls: SignedUrls) -> None:
        self._urls = urls
        now = time.time()
        self._renew_at = float("inf")
        if urls.expires_ms is not None:
            life = max(0.0, urls.expires_ms / 1000 - now)
            self._renew_at = now + life - min(_MARGIN, life / 5)
