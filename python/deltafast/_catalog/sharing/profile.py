"""Profile files of Delta Sharing: the server, and how requests are authorized."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from deltafast._catalog.json_answer import parse_json
from deltafast._catalog.rest_client import OAuthClient
from deltafast._catalog.server_text import server_text, server_url
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ShareProfile"]

_NEWEST_VERSION = 2
_OAUTH = "oauth_client_credentials"


class ShareProfile(NamedTuple):
    """What a profile file says: the server, and how requests are authorized.

    Source: "Profile File Format" of the Delta Sharing Protocol.
    """

    #: The URL of the server's API.
    endpoint: str
    #: A bearer token, or a client of OAuth.
    auth: str | OAuthClient

    def __repr__(self) -> str:
        return f"ShareProfile({server_text(self.endpoint)!r})"

    @classmethod
    def read(cls, path: str) -> ShareProfile:
        """Read a profile file.

        Args:
            path: A path, or a URL of HTTPS.

        Raises:
            InvalidArgumentError: There is no such file, it is not a profile, its token has expired, or it needs a newer
                release.
            MissingLibraryError: urllib3 is not installed.
        """
        text = _fetch(path) if path.startswith(("https://", "http://")) else _text(path)
        what = ""
        try:
            found = parse_json(text)
            version, endpoint = int(found["shareCredentialsVersion"]), _member(found, "endpoint")
            endpoint = server_url(endpoint, f"the endpoint in {_shown(path)}")
            return cls(endpoint, _auth(found, version, path))
        except InvalidArgumentError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"it lacks {error}" if isinstance(error, KeyError) else "it is not a JSON object with its fields"
        # Not within `except`: the error of JSON has the text, and with it the token.
        message = f"{_shown(path)} is not a profile of Delta Sharing: {what}"
        raise InvalidArgumentError(message)


def _auth(found: Mapping[str, Any], version: int, path: str) -> str | OAuthClient:
    if version > _NEWEST_VERSION:
        message = f"{_shown(path)} has version {version} of the profile format; this release reads up to 2"
        raise InvalidArgumentError(message)
    kind: Any = found.get("type", "bearer_token") if version == _NEWEST_VERSION else "bearer_token"
    if kind == _OAUTH:
        scope = str(found.get("scope") or "")
        client_id, secret = _member(found, "clientId"), _member(found, "clientSecret")
        return OAuthClient(client_id, secret, _member(found, "tokenEndpoint"), scope)
    if kind != "bearer_token":
        shown_kind = server_text(str(kind), most=40)
        message = f"{_shown(path)} asks for authorization by {shown_kind}; this release has bearer_token and {_OAUTH}"
        raise InvalidArgumentError(message)
    expires = found.get("expirationTime")
    if expires and datetime.fromisoformat(expires).astimezone(UTC) < datetime.now(UTC):
        shown_end = server_text(expires, most=40)
        message = f"the token of {_shown(path)} expired at {shown_end}: ask the owner of the share for a new profile"
        raise InvalidArgumentError(message)
    return _member(found, "bearerToken")


def _member(found: Mapping[str, Any], name: str) -> str:
    """Return a text of the profile.

    Raises:
        KeyError: It is missing.
        TypeError: It is something else.
    """
    member: Any = found[name]
    if not isinstance(member, str):
        raise TypeError(name)
    return member


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        message = f"cannot read the profile of Delta Sharing {path}: {reason}"
        raise InvalidArgumentError(message) from None


def _fetch(url: str) -> str:
    from deltafast._catalog.rest_client import CatalogError, RestClient

    server = server_url(url.partition("?")[0], "the location of the profile of Delta Sharing")
    host, _, path = server.partition("://")[2].partition("/")
    query = f"?{url.partition('?')[2]}" if "?" in url else ""
    client = RestClient(f"{server.partition('://')[0]}://{host}", "", None, "Delta Sharing")
    try:
        return client.answer("GET", f"{path}{query}").data.decode()
    except (CatalogError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, CatalogError) else "it is not text"
    # The server may send the signature back.
    secrets = [query, *(value for _, value in parse_qsl(query.removeprefix("?")))]
    message = f"cannot read the profile of Delta Sharing {_shown(url)}: {server_text(reason, secrets, 1_000)}"
    raise InvalidArgumentError(message)


def _shown(path: str) -> str:
    """Return the path; a URL without user, password and query, which may be a signature."""
    return server_text(path) if "://" in path else path
