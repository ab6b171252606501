"""Calls of credential providers: their answers in the form of the core."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from urllib.parse import urlencode

from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from deltafast import _core

__all__ = ["KEY", "CredentialProvider", "Credentials", "DefaultProvider", "credential_source", "with_provider"]

Credentials: TypeAlias = Mapping[str, Any] | tuple[Mapping[str, Any], int | float | None]
"""The credentials that a provider returns."""

CredentialProvider: TypeAlias = Callable[[], Credentials | Awaitable[Credentials]]
"""A function that returns credentials, or a coroutine that does."""

#: The key of a provider among storage options.
KEY = "credential_provider"

#: Characters of the message of a provider's error that are shown.
_LONGEST_TEXT = 600

_PREFIXES = ("aws_", "azure_storage_", "azure_", "google_")
_NAMES = {
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "token": "token",
    "session_token": "token",
    "bearer_token": "token",
    "access_key": "access_key",
    "account_key": "access_key",
    "sas_token": "sas_token",
    "sas_key": "sas_token",
}


def with_provider(
    storage_options: Mapping[str, str] | None, provider: CredentialProvider | None
) -> Mapping[str, str] | None:
    """Return storage options with a provider among them, for the functions that pass options on.

    Raises:
        InvalidArgumentError: The provider cannot be called.
    """
    if provider is None:
        return storage_options
    if not callable(provider):
        message = f"credential_provider must be a function without arguments, not a {type(provider).__name__}"
        raise InvalidArgumentError(message)
    return cast("Mapping[str, str]", {**(storage_options or {}), KEY: provider})


def credential_source(provider: CredentialProvider) -> _core.CredentialSource:
    """Return the core's source for a provider; the same one for the same provider."""
    try:
        return _known_source(provider)
    except TypeError:
        # It has no hash.
        return _source(provider)


def _source(provider: CredentialProvider) -> _core.CredentialSource:
    from deltafast import _core

    return _core.CredentialSource(functools.partial(_ask, provider))


# Providers of two types may be equal: they are tuples.
_known_source = functools.lru_cache(maxsize=64, typed=True)(_source)


class DefaultProvider(NamedTuple):
    """A provider that is used because no credentials are given.

    Args:
        provider: The provider.
        advice: What to give instead.
    """

    provider: Callable[[], Credentials]
    advice: str

    def __call__(self) -> Credentials:
        """Return the credentials."""
        return self.provider()


def _ask(provider: CredentialProvider) -> tuple[dict[str, str], int | None]:
    """Call a provider; return its credentials by the core's names, and when they expire in milliseconds.

    Raises:
        PermissionError: The provider raised one: it will not be called again for the same request.
        RuntimeError: The provider failed, or its answer is not one of credentials.
    """
    try:
        answer: Any = provider()
        if isinstance(answer, Awaitable):
            import asyncio

            answer = asyncio.run(_awaited(cast("Awaitable[Credentials]", answer)))
    except Exception as error:
        kind = PermissionError if isinstance(error, PermissionError) else RuntimeError
        text = " ".join(str(error).split())[:_LONGEST_TEXT]
        message = f"the credential provider failed with {type(error).__name__}: {text}"
        if isinstance(provider, DefaultProvider):
            message = f"no credentials are given (give {provider.advice}), and {text}"
        raise kind(message) from error
    values, expires = cast("tuple[Any, Any]", answer) if isinstance(answer, tuple) else (answer, None)
    if not isinstance(values, Mapping):
        message = f"the credential provider must return a dict, not a {type(values).__name__}"
        raise PermissionError(message)
    given = cast("Mapping[str, Any]", values)
    return _core_values(given), _expiry_ms(given.get("expires_at") if expires is None else expires)


async def _awaited(answer: Awaitable[Credentials]) -> Credentials:
    return await answer


def _core_values(values: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for given, value in values.items():
        prefix = next((prefix for prefix in _PREFIXES if given.startswith(prefix)), "")
        name = _NAMES.get(given.removeprefix(prefix))
        if name is None or value is None:
            continue
        if isinstance(value, str):
            found[name] = value
        elif name == "sas_token":
            found[name] = urlencode(list(cast("Iterable[tuple[str, str]]", value)))
        else:
            message = f"`{given}` of the credential provider must be a string, not a {type(value).__name__}"
            raise PermissionError(message)
    return found


def _expiry_ms(expires: Any) -> int | None:
    if expires is None:
        return None
    if isinstance(expires, datetime):
        if expires.tzinfo is None:
            message = "`expires_at` of the credential provider must have a time zone"
            raise PermissionError(message)
        return round(expires.timestamp() * 1000)
    if isinstance(expires, (int, float)) and not isinstance(expires, bool):
        return round(expires * 1000)
    message = f"`expires_at` of the credential provider must be a datetime, not a {type(expires).__name__}"
    raise PermissionError(message)
