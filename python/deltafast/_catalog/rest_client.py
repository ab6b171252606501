"""Requests to the server of a catalog: authorization, repetition, and errors in one line."""

from __future__ import annotations

import base64
import json
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlencode

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.http_client import HttpAnswer, HttpClient, NoAnswerError
from deltafast._catalog.json_answer import AnswerSource, JsonObject, parse_json
from deltafast._catalog.server_text import check_secret, server_text, server_url
from deltafast._util.fork_lock import ForkLock
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CatalogError", "OAuthClient", "RestClient"]

#: Seconds: to connect, and between two bytes of an answer.
_TIMEOUT = 30.0
#: Seconds from a request to the last byte of its answer, and the most bytes of an answer that is read at once.
_ANSWER_SECONDS, _ANSWER_BYTES = 300.0, 1 << 26
#: Bytes of an error that are read.
_ERROR_BYTES = 1 << 16
#: How often a request is repeated, and seconds before the first repetition; each further one waits twice as long.
_REPEATS, _WAIT = 5, 0.2
#: The longest wait that `Retry-After` may ask for, seconds.
_LONGEST_WAIT = 60.0
#: A token is renewed this many seconds before it expires, or a fifth of its life before.
_MARGIN = 60.0
#: The life of a token whose server does not say how long it is, and the longest that is believed, seconds.
_LIFE, _LONGEST_LIFE = 3600.0, 86_400.0 * 366
#: The most pages of a listing: a server that always names a next one would be asked for ever.
_PAGES = 10_000
_THROTTLED = (429, 503)
_FAILED = (500, 502, 504)


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
    """A client of one server, for all threads and forked processes.

    Args:
        server: The server, such as `https://host`.
        root: The path of its API.
        auth: A token, a function that returns one, a client of OAuth, or None for a server without authorization.
        user: What needs the client, for errors.

    Raises:
        InvalidArgumentError: The URL is not one of a server, or the token cannot be sent.
        MissingLibraryError: urllib3 is not installed.
    """

    def __init__(self, server: str, root: str, auth: str | Callable[[], str] | OAuthClient | None, user: str) -> None:
        self.server = server_url(server, f"the URL of the server of {user}")
        if isinstance(auth, str):
            check_secret(auth, f"the token of {user}")
        elif isinstance(auth, OAuthClient):
            for name in ("client_id", "client_secret"):
                check_secret(getattr(auth, name), f"{name} of the OAuth client of {user}")
            server_url(auth.token_url_of(self.server), f"the token endpoint of the OAuth client of {user}")
        self._root, self._auth, self._user = root, auth, user
        self._http = HttpClient(16, _TIMEOUT, user)
        self._lock = ForkLock()
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
        is_secret: bool = False,
    ) -> JsonObject:
        """Return the JSON object of an answer; an empty one for an answer without a body.

        Args:
            method: The HTTP method.
            path: The path below the API.
            query: Parameters.
            body: The JSON of the request.
            repeats: Whether the request may be sent again after an answer that does not say whether it was carried out.
            is_secret: Whether the answer has credentials, which no error may show.

        Raises:
            CatalogError: The server refused the request, did not answer, or answered with something else.
        """
        answer = self.answer(method, path, query, body, repeats=repeats)
        return self._object(answer, AnswerSource(self.source(method, path), self._secrets(), is_secret))

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
    ) -> HttpAnswer:
        """Return an answer that is no error; the arguments and errors are those of `call`.

        Args:
            headers: Further headers.
            is_streamed: Whether the body is left for the caller to read.
        """
        wait, renewed = _WAIT, False
        for left in range(_REPEATS, -1, -1):
            answer, failure = self._try(method, path, query, body, headers or {}, is_streamed)
            if answer is None:
                if failure is None or failure.is_final or not left or not repeats:
                    message = f"the catalog {self.server} does not answer {_call(method, path)}: {failure}"
                    raise CatalogError(message)
                time.sleep(wait)
                wait *= 2
                continue
            if answer.is_success:
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
        message = f"the catalog {self.server} does not answer {_call(method, path)}"
        raise CatalogError(message)

    def pages(self, path: str, query: Mapping[str, str | int], key: str, tokens: tuple[str, str]) -> list[JsonObject]:
        """Return the entries of all pages of a listing.

        Args:
            path: The path below the API.
            query: Parameters.
            key: The member of a page that has its entries.
            tokens: The parameter that asks for a page, and the member of a page that names the next one.

        Raises:
            CatalogError: As for `call`; or a page names one that was there already, or there is no last one.
        """
        entries: list[JsonObject] = []
        parameter, member = tokens
        seen_tokens = {""}
        token = ""
        while True:
            page = self.call("GET", path, {**query, **({parameter: token} if token else {})})
            entries += page.objects(key)
            token = page.optional_text(member) or ""
            if not token:
                return entries
            if token in seen_tokens or len(seen_tokens) > _PAGES:
                problem = "the same page twice" if token in seen_tokens else f"more than {_PAGES} pages"
                message = f"{self.source('GET', path)} with {problem}"
                raise CatalogError(message)
            seen_tokens.add(token)

    def source(self, method: str, path: str) -> str:
        """Return what answers a request, for errors."""
        return f"the catalog {self.server} answers {_call(method, path)}"

    def shown(self, text: str | bytes, most: int = 300) -> str:
        """Return text of the server for an error, without the secrets that it was sent."""
        return server_text(text, self._secrets(), most)

    def _try(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        more_headers: Mapping[str, str],
        is_streamed: bool,
    ) -> tuple[HttpAnswer | None, NoAnswerError | None]:
        """Send a request; return its answer, or why there is none."""
        url = f"{self.server}{self._root}/{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", **more_headers}
        try:
            token = self._bearer()
            if token:
                headers["Authorization"] = f"Bearer {token}"
            data = None
            if body is not None:
                headers["Content-Type"] = "application/json"
                data = json.dumps(body).encode()
            answer = self._http.request(method, url, _ANSWER_SECONDS, headers, data)
            if not answer.is_success:
                answer.load_beginning(_ERROR_BYTES)
            elif not is_streamed:
                answer.load(_ANSWER_BYTES)
        except NoAnswerError as error:
            return None, error
        return answer, None

    def _object(self, answer: HttpAnswer, source: AnswerSource) -> JsonObject:
        """Return the object in the body of an answer."""
        if not answer.data.strip():
            return JsonObject({}, source)
        try:
            return JsonObject(parse_json(answer.data), source)
        except ValueError:
            pass
        what = f"{len(answer.data)} bytes" if source.is_secret else source.shown(answer.data)
        raise source.error(f"with {answer.kind} that is not JSON: {what}")

    def _bearer(self) -> str:
        """Return the token.

        Raises:
            NoAnswerError: The server of tokens, or a function of the caller, failed.
            CatalogError: It gives none.
            InvalidArgumentError: A function of the caller returns something else.
        """
        if self._auth is None or isinstance(self._auth, str):
            return self._auth or ""
        if not isinstance(self._auth, OAuthClient):
            return self._token_of_function(self._auth)
        with self._lock:
            if not self._token or time.time() >= self._renew_at:
                self._token, life = self._new_token(self._auth)
                self._renew_at = time.time() + life - min(_MARGIN, life / 5)
            return self._token

    def _token_of_function(self, function: Callable[[], str]) -> str:
        reason = ""
        try:
            token: Any = function()
        except OSError as error:
            reason, token = type(error).__name__, ""
        if reason:
            message = f"the function for tokens failed with {reason}"
            raise NoAnswerError(message)
        if not isinstance(token, str):
            message = f"the function for tokens of {self._user} returns a {type(token).__name__}, not a string"
            raise InvalidArgumentError(message)
        self._token = check_secret(token, f"the token of {self._user} that the function returns")
        return token

    def _forget_token(self) -> None:
        with self._lock:
            self._token = ""

    def _secrets(self) -> tuple[str, ...]:
        """Return what no message may show."""
        if isinstance(self._auth, OAuthClient):
            return self._token, self._auth.client_secret, _basic(self._auth)
        return (self._auth if isinstance(self._auth, str) else self._token,)

    def _new_token(self, client: OAuthClient) -> tuple[str, float]:
        url = client.token_url_of(self.server)
        fields = {"grant_type": "client_credentials", "scope": client.scope}
        content = "application/x-www-form-urlencoded"
        headers = {"Authorization": f"Basic {_basic(client)}", "Content-Type": content, "Accept": "application/json"}
        answer = self._http.request("POST", url, _ANSWER_SECONDS, headers, urlencode(fields))
        shown_url, client_id = server_text(url), server_text(client.client_id)
        if answer.status != HTTPStatus.OK:
            answer.close()
            message = f"{shown_url} gives no token to the client {client_id}: status {answer.status}"
            raise CatalogError(message, status=answer.status)
        answer.load(_ANSWER_BYTES)
        token_answer = self._object(answer, AnswerSource(f"{shown_url} answers the client {client_id}", (), True))
        token, life = token_answer.text("access_token"), token_answer.optional_number("expires_in")
        try:
            check_secret(token, "it")
        except InvalidArgumentError:
            token = ""
        if not token:
            message = f"{shown_url} gives the client {client_id} a token with characters that no request can carry"
            raise CatalogError(message)
        return token, _LIFE if life is None else min(max(life, 0.0), _LONGEST_LIFE)

    def _error(self, method: str, path: str, answer: HttpAnswer) -> CatalogError:
        """Return the error for an answer that is no success."""
        message = f"{self.source(method, path)} with status {answer.status}"
        kind, what = self._error_text(answer)
        if answer.status // 100 == HTTPStatus.MULTIPLE_CHOICES // 100 and (target := answer.headers.get("Location")):
            what = f"it redirects to {self.shown(target)}, which is not followed"
        return CatalogError(f"{message}: {what}" if what else message, status=answer.status, kind=kind)

    def _error_text(self, answer: HttpAnswer) -> tuple[str, str]:
        """Return the type of an error, and its text for people."""
        try:
            content: Any = parse_json(answer.data)
        except ValueError:
            return "", self.shown(answer.data)
        inner: Any = cast("dict[str, Any]", content).get("error", content) if isinstance(content, dict) else content
        if not isinstance(inner, dict):
            return "", self.shown(inner if isinstance(inner, str) else answer.data)
        error = cast("dict[str, Any]", inner)
        values = (error.get(name) for name in ("type", "error_code", "errorCode"))
        kind = self.shown(next((value for value in values if isinstance(value, str) and value), ""), 100)
        text = error.get("message")
        line = text.strip().partition("\n")[0] if isinstance(text, str) else ""
        return kind, " ".join(filter(None, (kind, self.shown(line))))


def _call(method: str, path: str) -> str:
    """Return a request for an error; its query may be a signature."""
    return f"{method} {path.partition('?')[0]}"


def _basic(client: OAuthClient) -> str:
    return base64.b64encode(f"{client.client_id}:{client.client_secret}".encode()).decode()


def _retry_after(header: str | None, usual: float) -> float:
    """Return the seconds of the header, or the usual wait."""
    import urllib3

    try:
        seconds = urllib3.Retry().parse_retry_after(header) if header else usual
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return usual
    return min(seconds, _LONGEST_WAIT)
