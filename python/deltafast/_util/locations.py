"""Locations of tables: paths and URLs."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from deltafast.exceptions import InvalidArgumentError

__all__ = ["address", "local_path", "location", "without_secrets"]


def address(given: str | os.PathLike[str]) -> str:
    """A table's path or URL as the core takes it; `~` is expanded in paths.

    Raises:
        InvalidArgumentError: It is neither a string nor a path, or there is no such home folder.
    """
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"the location of a table must be a string or a path, not a {type(given).__name__}"
        raise InvalidArgumentError(message)
    from deltafast import _core

    return _core.expand_address(text)


def without_secrets(uri: str) -> str:
    """The URL without user information, query and fragment, which may hold credentials."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    # Azure puts the container where others have the user.
    host = parts.netloc if parts.scheme in {"abfs", "abfss"} else parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()


def location(uri: str) -> str:
    """A table's place as a URL without credentials that ends in a slash."""
    from deltafast import _core

    if _core.is_url(uri):
        url = without_secrets(uri)
        # `file:/path` is another spelling.
        if url[:6].lower() == "file:/" and "://" not in url:
            url = f"file://{url[5:]}"
    else:
        url = Path(os.path.abspath(uri)).as_uri()  # noqa: PTH100  (takes .. away)
    return url if url.endswith("/") else f"{url}/"


def local_path(uri: str) -> str:
    """The path where the URL is one of a local file, else the URL."""
    if not uri.startswith("file://"):
        return uri
    # It brings a web client along, so only who needs it pays for it.
    from urllib.request import url2pathname

    return url2pathname(urlsplit(uri).path)
