"""Profile files of Delta Sharing: the server, and how requests are authorized."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast.catalog.rest_client import OAuthClient
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
        return f"ShareProfile({self.endpoint!r})"

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
        try:
            found = json.loads(text)
            version, endpoint = int(found["shareCredentialsVersion"]), str(found["endpoint"]).rstrip("/")
            auth = _auth(found, version, path)
        except InvalidArgumentError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"it lacks {error}" if isinstance(error, KeyError) else "it is not a JSON object with its fields"
            message = f"{_shown(path)} is not a profile of Delta Sharing: {what}"
            raise InvalidArgumentError(message) from None
        return cls(endpoint, auth)


def _auth(found: Mapping[str, Any], version: int, path: str) -> str | OAuthClient:
    if version > _NEWEST_VERSION:
        message = f"{_shown(path)} has version {version} of the profile format; this release reads up to 2"
        raise InvalidArgumentError(message)
    kind = found.get("type", "bearer_token") if version == _NEWEST_VERSION else "bearer_token"
    if kind == _OAUTH:
        scope = str(found.get("scope") or "")
        return OAuthClient(str(found["clientId"]), str(found["clientSecret"]), str(found["tokenEndpoint"]), scope)
    if kind != "bearer_token":
        message = f"{_shown(path)} asks for authorization by {kind}; this release has bearer_token and {_OAUTH}"
        raise InvalidArgumentError(message)
    expires = found.get("expirationTime")
    if expires and datetime.fromisoformat(expires).astimezone(UTC) < datetime.now(UTC):
        message = f"the token of {_shown(path)} expired at {expires}: ask the owner of the share for a new profile"
        raise InvalidArgumentError(message)
    return str(found["bearerToken"])


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        message = f"cannot read the profile of Delta Sharing {path}: {reason}"
        raise InvalidArgumentError(message) from None


def _fetch(url: str) -> str:
    from deltafast.catalog.rest_client import CatalogError, RestClient

    server, _, path = url.partition("://")[2].partition("/")
    client = RestClient(f"{url.partition('://')[0]}://{server}", "", None, "Delta Sharing")
    try:
        return client.answer("GET", path).data.decode()
    except (CatalogError, UnicodeDecodeError) as error:
        message = f"cannot read the profile of Delta Sharing {_shown(url)}: {error}"
        raise InvalidArgumentError(message) from None


def _shown(path: str) -> str:
    """Return the path without a query, which may be a signature."""
    return path.partition("?")[0] if "://" in path else path
