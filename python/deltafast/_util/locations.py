"""Locations of tables: paths and URLs."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from deltafast.exceptions import InvalidArgumentError

__all__ = ["address", "local_path", "location", "without_secrets"]


def address(given: str | os.PathLike[str]) -> str:
    """Return a table's path or URL for the core; `~` is expanded in paths.

    Raises:
        InvalidArgumentError: The location is neither a string nor a path, or the home folder does not exist.
    """
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"the location of a table must be a string or a path, not a {type(given).__name__}"
        raise InvalidArgumentError(message)
    from deltafast import _core

    return _core.expand_address(text)


def without_secrets(uri: str) -> str:
    """Return the URL without user information, query and fragment, which may contain credentials."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    # Azure has the container in the position of the user.
    host = parts.netloc if parts.scheme in {"abfs", "abfss"} else parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()


def location(uri: str) -> str:
    """Return a table's location as a URL without credentials that ends in a slash."""
    from deltafast import _core

    if _core.is_url(uri):
        url = without_secrets(uri)
        # `file:/path` is an alternative notation.
        if url[:6].lower() == "file:/" and "://" not in url:
            url = f"file://{url[5:]}"
    else:
        url = Path(os.path.abspath(uri)).as_uri()  # noqa: PTH100  (takes .. away)
    return url if url.endswith("/") else f"{url}/"


def local_path(uri: str) -> str:
    """Return the path of a `file://` URL; other URLs are returned unchanged."""
    if not uri.startswith("file://"):
        return uri
    # It imports a web client, so it is imported only on demand.
    from urllib.request import url2pathname

    return url2pathname(urlsplit(uri).path)
