"""Credentials of Google Cloud, by google-auth where it is installed."""

from __future__ import annotations

import json
import os
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast._libraries import is_installed
from deltafast.exceptions import MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GoogleAuth", "default_google"]

_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
#: Kinds of key files that the core reads itself.
_OWN_KINDS = ("service_account", "authorized_user")
#: Parts of the names of options with which the core has credentials of its own.
_OWN = ("service_account", "application_credentials", "bearer_token", "skip_signature")


class GoogleAuth(NamedTuple):
    """A credential provider: credentials of google-auth, which must be installed with `requests`.

    Examples:
        >>> DeltaTable("gs://bucket/events", credential_provider=GoogleAuth())                 # doctest: +SKIP
    """

    #: An object of `google.auth`; the application default credentials if None.
    credentials: Any = None

    def __call__(self) -> dict[str, Any]:
        """Return a token.

        Raises:
            MissingLibraryError: google-auth or requests is not installed.
        """
        if not (is_installed("google.auth") and is_installed("requests")):
            message = "GoogleAuth needs google-auth, which is not installed: pip install 'google-auth[requests]'"
            raise MissingLibraryError(message)
        import google.auth
        from google.auth.transport.requests import Request

        given = self.credentials
        found: Any = cast("Any", google.auth).default(scopes=[_SCOPE])[0] if given is None else given
        found.refresh(Request())
        # The time is in UTC, but does not say so.
        expires = None if found.expiry is None else found.expiry.replace(tzinfo=UTC)
        return {"token": found.token, "expires_at": expires}


def default_google(options: Mapping[str, str]) -> GoogleAuth | None:
    """Return the provider where `GOOGLE_APPLICATION_CREDENTIALS` names a file of a kind that the core does not read."""
    names = [key.strip().lower() for key, value in options.items() if value]
    path = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if not path or any(part in name for name in names for part in _OWN):
        return None
    try:
        kind = json.loads(Path(path).read_text("utf-8")).get("type")
    except (OSError, ValueError, AttributeError):
        # The core says what is wrong with the file.
        return None
    return None if kind in _OWN_KINDS else GoogleAuth()
