"""URLs, tokens and text of servers: checked when they are given, and made fit for messages."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, urlsplit

from deltafast import _core
from deltafast._catalog.catalog_error import CatalogError
from deltafast.exceptions import InvalidArgumentError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_secret", "checked_location", "has_control", "server_text", "server_url"]

#: The most characters of a server's text in a message.
_LONGEST = 300
#: Characters of a text of which the beginning is shown.
_LOOKED_AT = 4_000
#: A URL in a text: its scheme, user and password, the rest, and its query, which may be a signature.
_URL = re.compile(r"""([A-Za-z][A-Za-z0-9+.-]{0,30}://)(?:[^\s/?#@"'<>]*@)?([^\s?"'<>]*)(\?[^\s"'<>]*)?""")
#: The beginning of an absolute location.
_ABSOLUTE = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/|/)")
#: Secrets of fewer characters are words that any text may have.
_SHORTEST_SECRET = 4


def server_text(text: str | bytes, secrets: Iterable[str] = (), most: int = _LONGEST) -> str:
    """Return text of a server for a message: one line, short, without secrets, URLs without passwords and signatures.

    Control characters are escaped.

    Args:
        text: The text.
        secrets: What must not be shown, since a server may send back what it was sent.
        most: The most characters.
    """
    line = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            for spelling in (secret, quote(secret), quote_plus(secret)):
                line = line.replace(spelling, "***")
    beginning = " ".join(line[:_LOOKED_AT].split())
    line = _URL.sub(lambda found: f"{found[1]}{found[2]}{'?***' if found[3] else ''}", beginning)
    line = line if len(line) <= most else f"{line[:most]}..."
    return printable(line)


def has_control(text: str) -> bool:
    """Return whether a text has a control character, such as a line end."""
    return any(char < " " or "\x7f" <= char < "\xa0" for char in text)


def check_secret(secret: str, what: str) -> str:
    """Return a token or a secret that a request can carry.

    Raises:
        InvalidArgumentError: It cannot be sent; the message has no part of it.
    """
    if has_control(secret):
        message = f"{what} has a line end or another control character in it; give it without"
        raise InvalidArgumentError(message)
    if not secret.isascii():
        message = f"{what} has a character in it that is not ASCII, which no request can carry"
        raise InvalidArgumentError(message)
    return secret


def checked_location(location: str) -> str:
    """Return the location of a table.

    Raises:
        CatalogError: It is not an absolute one, or has a scheme of no store.
    """
    start = _ABSOLUTE.match(location)
    scheme = start and start["scheme"]
    if start is None or has_control(location) or (scheme and scheme.lower() not in _core.store_schemes()):
        message = f"the catalog gives the location {server_text(location)!r}, which is not one of a store"
        raise CatalogError(message)
    return location


def server_url(url: str, what: str) -> str:
    """Return the URL of a server: scheme, host, port and path, without user, password, query and a slash at its end.

    Args:
        url: The URL; one of HTTPS without a scheme.
        what: What it is, for the error.

    Raises:
        InvalidArgumentError: It is not a URL of HTTP; the message does not show it, as it may have a password.
    """
    parts, is_server = urlsplit(""), False
    # Not raised within `except`: the error may have a part of a password.
    with suppress(ValueError):
        parts = urlsplit(url if "://" in url else f"https://{url}")
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    if not is_server or has_control(url) or " " in url or "\\" in url:
        message = f"{what} is not a URL of HTTP such as https://host"
        raise InvalidArgumentError(message)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
