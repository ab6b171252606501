"""Requests to the server of a catalog: authorization, repetition, and errors in one line."""

from __future__ import annotations

import json
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from deltafast._libraries import raise_named
from deltafast.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CatalogError", "OAuthClient", "RestClient"]

#: Seconds: to connect, and between two bytes of an answer.
_TIMEOUT = 30.0
#: How often a request is repeated, and seconds before the first repetition; each further one waits twice as long.
_REPEATS, _WAIT = 5, 0.2
#: The longest wait that `Retry-After` may ask for, seconds.
_LONGEST_WAIT = 60.0
#: A token is renewed this many seconds before it expires, or a fifth of its life before.
_MARGIN = 60.0
_THROTTLED = (429, 503)
_FAILED = (500, 502, 504)
#: The least status of a refusal, and those that ask to try again.
_REFUSED, _LATER = 400, (408, 429)


class CatalogError(StorageError):
    """A catalog refused a request, or did not answer it.

    Args:
        message: One line, without tokens.
        status: The HTTP status; None without an answer.
        kind: The error type of the catalog, such as `NoSuchTableException`; empty if it gave none.
    """

    def __init__(self, message: str, *, status: int | None = None, kind: str = "") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind

    @property
    def is_not_found(self) -> bool:
        """Whether something that the request names does not exist."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_refusal(self) -> bool:
        """Whether the request was refused, so that it was not carried out and need not be sent again."""
        return self.status is not None and _REFUSED <= self.status < _FAILED[0] and self.status not in _LATER


class OAuthClient(NamedTuple):
    """A client of OAuth 2.0 that gets tokens with its own credentials (machine to machine)."""

    #: The client.
    client_id: str
    #: Its secret.
    client_secret: str
    #: The token endpoint; `{workspace}/oidc/v1/token`, as Databricks has it, if None.
    token_url: str | None = None
    #: The scope.
    scope: str = "all-apis"

    def __repr__(self) -> str:
        return f"OAuthClient({self.client_id!r})"

    def token_url_of(self, server: str) -> str:
        """Return the token endpoint for the API of a server."""
        return self.token_url or f"{server}/oidc/v1/token"


class RestClient:
    """A client of one server, for all threads.

    Args:
        server: The server, such as `https://host`.
        root: The path of its API.
        auth: A token, a function that returns one, a client of OAuth, or None for a server without authorization.
        user: What needs the client, for the error if urllib3 is missing.
    """

    def __init__(self, server: str, root: str, auth: str | Callable[[], str] | OAuthClient | None, user: str) -> None:
        try:
            import urllib3
        except ModuleNotFoundError as error:
            raise_named(error, user)
            raise

        self.server = server
        self._root, self._user = root, user
        self._auth = auth
        self._pool = urllib3.PoolManager(maxsize=16, retries=False, timeout=urllib3.Timeout(_TIMEOUT))
        self._lock = threading.Lock()
        self._token, self._renew_at = "", 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        """The pickle holds the token, if one was given."""
        return RestClient, (self.server, self._root, self._auth, self._user)

    @property
    def url(self) -> str:
        """The URL of the API."""
        return f"{self.server}{self._root}"

    @property
    def auth(self) -> str | Callable[[], str] | OAuthClient | None:
        """The authorization that was given."""
        return self._auth

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        repeats: bool = True,
    ) -> Any:
        """Return the JSON of an answer; None for one without a body.

        Args:
            method: The HTTP method.
            path: The path below the API.
            query: Parameters.
            body: The JSON of the request.
            repeats: Whether the request may be sent again after an answer that does not say whether it was carried out.

        Raises:
            CatalogError: The server refused the request, or did not answer.
        """
        answer = self.answer(method, path, query, body, repeats=repeats)
        return json.loads(answer.data) if answer.data else None

    def answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        repeats: bool = True,
        is_streamed: bool = False,
    ) -> Any:
        """Return an answer of urllib3 that is no error; the arguments and errors are those of `call`.

        Args:
            headers: Further headers.
            is_streamed: Whether the body is left for the caller to read.
        """
        wait, renewed = _WAIT, False
        for left in range(_REPEATS, -1, -1):
            try:
                answer = self._send(method, path, query, body, headers or {}, is_streamed)
            except OSError as error:
                if not left or not repeats:
                    message = f"the catalog {self.server} does not answer {method} {path}: {error}"
                    raise CatalogError(message) from None
                time.sleep(wait)
                wait *= 2
                continue
            if answer.status < HTTPStatus.MULTIPLE_CHOICES:
                return answer
            error = self._error(method, path, answer)
            if answer.status == HTTPStatus.UNAUTHORIZED and not renewed and not isinstance(self._auth, str | None):
                renewed = True
                self._forget_token()
                continue
            is_throttled = answer.status in _THROTTLED and error.kind != "ResourceExhaustedException"
            if not left or not (is_throttled or (repeats and answer.status in _FAILED)):
                raise error
            time.sleep(_retry_after(answer.headers.get("Retry-After"), wait))
            wait *= 2
        message = f"the catalog {self.server} does not answer {method} {path}"
        raise CatalogError(message)

    def pages(
        self, path: str, query: Mapping[str, str | int], key: str, tokens: tuple[str, str]
    ) -> list[dict[str, Any]]:
        """Return the entries of all pages of a listing.

        Args:
            path: The path below the API.
            query: Parameters.
            key: The member of a page that has its entries.
            tokens: The parameter that asks for a page, and the member of a page that names the next one.
        """
        found: list[dict[str, Any]] = []
        token: str | None = None
        asked, given = tokens
        while True:
            page: dict[str, Any] = self.call("GET", path, {**query, **({asked: token} if token else {})}) or {}
            found += page.get(key) or []
            token = page.get(given)
            if not token:
                return found

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        more_headers: Mapping[str, str],
        is_streamed: bool,
    ) -> Any:
        url = f"{self.server}{self._root}/{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", **more_headers}
        token = self._bearer()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        return self._request(method, url, data, headers, is_streamed=is_streamed)

    def _request(
        self, method: str, url: str, data: bytes | str | None, headers: Mapping[str, str], *, is_streamed: bool = False
    ) -> Any:
        """Send a request.

        Raises:
            OSError: There is no answer.
        """
        import urllib3

        try:
            return self._pool.request(
                method, url, body=data, headers=headers, redirect=False, preload_content=not is_streamed
            )
        except urllib3.exceptions.HTTPError as error:
            # The message of a pool has its address and path, but no headers.
            raise OSError(type(error).__name__) from None

    def _bearer(self) -> str:
        if self._auth is None or isinstance(self._auth, str):
            return self._auth or ""
        if not isinstance(self._auth, OAuthClient):
            return self._auth()
        with self._lock:
            if not self._token or time.time() >= self._renew_at:
                self._token, life = self._new_token(self._auth)
                self._renew_at = time.time() + life - min(_MARGIN, life / 5)
            return self._token

    def _forget_token(self) -> None:
        with self._lock:
            self._token = ""

    def _new_token(self, client: OAuthClient) -> tuple[str, float]:
        import urllib3

        url = client.token_url_of(self.server)
        fields = {"grant_type": "client_credentials", "scope": client.scope}
        basic = urllib3.make_headers(basic_auth=f"{client.client_id}:{client.client_secret}")
        headers = {**basic, "Content-Type": "application/x-www-form-urlencoded"}
        answer = self._request("POST", url, urlencode(fields), headers)
        if answer.status != HTTPStatus.OK:
            message = f"{url} gives no token to the client {client.client_id}: status {answer.status}"
            raise CatalogError(message, status=answer.status)
        found = json.loads(answer.data)
        return found["access_token"], float(found.get("expires_in") or 3600)

    def _error(self, method: str, path: str, answer: Any) -> CatalogError:
        try:
            found = json.loads(answer.data)
            said = found.get("error", found)
            names = ("type", "error_code", "errorCode")
            kind = next((str(said[name]) for name in names if said.get(name)), "")
            text = str(said.get("message") or "")
        except (ValueError, AttributeError):
            kind, text = "", ""
        what = " ".join(filter(None, (kind, text.partition("\n")[0][:300])))
        message = f"the catalog {self.server} answers {method} {path} with status {answer.status}"
        return CatalogError(f"{message}: {what}" if what else message, status=answer.status, kind=kind)


def _retry_after(given: str | None, usual: float) -> float:
    """Return the seconds of the header, or the usual wait."""
    try:
        return min(float(given), _LONGEST_WAIT) if given else usual
    except ValueError:
        return usual
