"""Reading of files by signed URLs, which are renewed."""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from deltafast._catalog.http_client import HttpAnswer, HttpClient, NoAnswerError
from deltafast._catalog.server_text import server_text
from deltafast._util.fork_lock import ForkLock
from deltafast.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._catalog.sharing.response_lines import SignedUrls

__all__ = ["SignedFiles"]

#: Seconds: to connect, and between two bytes of an answer.
_TIMEOUT = 60.0
#: Seconds from a request to the last byte of its answer.
_ANSWER_SECONDS = 600.0
#: How often a request is repeated, and seconds before the first repetition; each further one waits twice as long.
_REPEATS, _WAIT = 5, 0.2
#: URLs are renewed this many seconds before the first of them expires, or a fifth of their life before.
_MARGIN = 60.0
_LATER = (408, 429, 500, 502, 503, 504)
#: Answers to a URL that has expired: of S3 and Azure 403, of others also these.
_EXPIRED = (400, 401, 403)
#: The header of an answer with a part of a file: its first byte, its last one, and the size of the file.
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:(\d{1,18})|\*)", re.ASCII)
#: A size that no file has.
_ANY_SIZE = 1 << 50
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)


class SignedFiles:
    """The files of a table by their paths, for all threads and forked processes.

    Args:
        urls: The URLs.
        renew: Asks the server for URLs of the same files, with what the last ones came with.

    Raises:
        MissingLibraryError: urllib3 is not installed.
    """

    def __init__(self, urls: SignedUrls, renew: Callable[[SignedUrls], SignedUrls]) -> None:
        self._http = HttpClient(32, _TIMEOUT, "Delta Sharing")
        self._renew = renew
        self._lock = ForkLock()
        self._take(urls)

    def read(self, path: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, the latter exclusive; fewer where the file ends before.

        Raises:
            FileNotFoundError: There is no such file.
            PermissionError: The server gives no URL of the file, or one that is refused.
            StorageError: There is no answer, or it is not the one to the question.
        """
        if end <= start:
            return b""
        answer = self._get(path, start, end)
        if answer.status == HTTPStatus.OK:
            # A server without ranges sends everything.
            return answer.data[start:end]
        return answer.data

    def size(self, path: str) -> int:
        """Return the length of a file; the errors are those of `read`."""
        answer = self._get(path, 0, 1)
        size = _whole_size(answer)
        return len(self.read(path, 0, _ANY_SIZE)) if size is None else size

    def _get(self, path: str, start: int, end: int) -> HttpAnswer:
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

    def _answer(self, urls: SignedUrls, path: str, start: int, end: int) -> HttpAnswer:
        """Return an answer, with its body where it is a part of the file; no error has the URL."""
        url = urls.by_path.get(path)
        if url is None:
            message = "the sharing server has no URL for it any more: the table has changed, open it again"
            raise PermissionError(message)
        wait, reason = _WAIT, ""
        for left in range(_REPEATS, -1, -1):
            try:
                answer = self._http.request("GET", url, _ANSWER_SECONDS, {"Range": f"bytes={start}-{end - 1}"})
                if answer.status not in _LATER or not left:
                    _load(answer, start, end)
                    return answer
                answer.close()
            except NoAnswerError as error:
                reason = str(error)
                left = 0 if error.is_final else left  # noqa: PLW2901 - the last attempt
            if not left:
                break
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
        # With new URLs that have expired already the clocks disagree: the store's answer decides.
        if urls.expires_ms is not None and urls.expires_ms / 1000 > now:
            life = urls.expires_ms / 1000 - now
            self._renew_at = now + life - min(_MARGIN, life / 5)


def _load(answer: HttpAnswer, start: int, end: int) -> None:
    """Read the part of a file from an answer, after a comparison with the question.

    Raises:
        NoAnswerError: It is another part, or a part of it is missing.
    """
    if answer.status == HTTPStatus.OK:
        # The rest of a file that is sent whole is not needed.
        answer.load_until(end)
        return
    if answer.status != HTTPStatus.PARTIAL_CONTENT:
        answer.close()
        return
    header = answer.headers.get("Content-Range", "")
    content_range = _CONTENT_RANGE.fullmatch(header)
    if content_range is None:
        answer.close()
        message = f"it is a part of the file with the header Content-Range {server_text(header, most=60)!r}"
        raise NoAnswerError(message, is_final=True)
    first, last = int(content_range[1]), int(content_range[2])
    size = None if content_range[3] is None else int(content_range[3])
    expected_end = end if size is None else min(end, size)
    if first != start or last + 1 != expected_end:
        answer.close()
        message = f"it has the bytes {first} to {last} of the file where {start} to {expected_end - 1} were asked for"
        raise NoAnswerError(message, is_final=True)
    length = last + 1 - first
    answer.load(length, is_expanded=False)
    if len(answer.data) != length:
        message = f"it has {len(answer.data)} bytes of {length}"
        raise NoAnswerError(message)


def _whole_size(answer: HttpAnswer) -> int | None:
    """Return the size of the file in the headers of an answer; None if they do not have it."""
    if answer.status == HTTPStatus.PARTIAL_CONTENT:
        content_range = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        return int(content_range[3]) if content_range is not None and content_range[3] is not None else None
    length = answer.headers.get("Content-Length", "")
    return int(length) if _LENGTH.fullmatch(length) else None
