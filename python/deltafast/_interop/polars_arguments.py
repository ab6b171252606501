"""Arguments of Polars' functions for Delta tables that deltafast converts or checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from deltafast._handle import TableHandle

__all__ = ["CredentialProvider", "check_own_options", "check_types", "with_credentials"]

#: A function as Polars takes it: it returns storage options, and the second (Unix time) at which they expire, or None.
CredentialProvider: TypeAlias = Callable[[], tuple[Mapping[str, Any], int | None]]

#: Storage options that configure Polars' own reader, and have no meaning for deltafast's.
_READER_OPTIONS = frozenset(
    {
        "file_cache_ttl",
        "rate_read_ceiling",
        "rate_read_floor",
        "rate_read_init",
        "rate_write_ceiling",
        "rate_write_floor",
        "rate_write_init",
        "retry_base_multiplier",
        "retry_init_backoff_ms",
        "retry_max_backoff_ms",
        "retry_timeout_ms",
    }
)
#: Types of Polars without an equivalent in Delta, also as elements or fields.
_UNSUPPORTED = frozenset({"Duration", "Float16", "Int128", "Null", "Object", "Time", "UInt128"})


def with_credentials(
    storage_options: Mapping[str, Any] | None, credential_provider: CredentialProvider | Literal["auto"] | None
) -> dict[str, Any] | None:
    """Return storage options for deltafast, with those that the provider returns when it is called once.

    Raises:
        InvalidArgumentError: The provider is not a function, or does not return credentials and their expiry time.
    """
    known = None
    if storage_options is not None:
        known = {name: value for name, value in storage_options.items() if name not in _READER_OPTIONS}
    # By default the core looks for credentials in the environment, as Polars does.
    if credential_provider is None or credential_provider == "auto":
        return known
    if not callable(credential_provider):
        kind = type(credential_provider).__name__
        message = f"credential_provider must be a function, a pl.CredentialProvider, 'auto' or None, not a {kind}"
        raise InvalidArgumentError(message)
    returned = cast("object", credential_provider())
    pair = cast("tuple[Any, ...]", returned) if isinstance(returned, tuple) else ()
    if len(pair) != 2 or not isinstance(pair[0], Mapping):  # noqa: PLR2004
        # Not shown: it may contain secrets.
        message = "credential_provider must return a tuple: a dict of storage options, and their expiry time or None"
        raise InvalidArgumentError(message)
    return {**(known or {}), **cast("Mapping[str, Any]", pair[0])}


def check_own_options(
    table: TableHandle, storage_options: Mapping[str, Any] | None, credential_provider: object
) -> None:
    """Refuse options for the access to an open table, which has its own, unless they are the same.

    Raises:
        InvalidArgumentError: The options differ, or there is a credential provider.
    """
    if credential_provider is not None and credential_provider != "auto":
        message = "credential_provider cannot be given with a DeltaTable, which is open already: give its location"
        raise InvalidArgumentError(message)
    own = table.storage_options or {}
    given = with_credentials(storage_options, None) or {}
    different = [name for name, value in given.items() if name not in own or own[name] != value]
    if different:
        named = ", ".join(f"`{name}`" for name in different)
        message = f"storage_options ({named}) differ from those of the DeltaTable: give them when it is opened"
        raise InvalidArgumentError(message)


def check_types(schema: Mapping[str, Any]) -> None:
    """Refuse columns with a type that Delta lacks.

    Raises:
        InvalidArgumentError: There is such a column.
    """
    for name, dtype in schema.items():
        unsupported = _unsupported(dtype)
        if unsupported is not None:
            message = (
                f"Delta has no type for Polars' {unsupported}: cast the column before writing it (column `{name}`)"
            )
            raise InvalidArgumentError(message, column=name)


def _unsupported(dtype: Any) -> str | None:
    """Return the name of the first type that Delta lacks in a type, else None."""
    name = dtype.base_type().__name__
    if name in _UNSUPPORTED:
        return name
    inner = getattr(dtype, "inner", None)
    parts = [inner] if inner is not None else [field.dtype for field in getattr(dtype, "fields", ())]
    return next((found for part in parts if (found := _unsupported(part)) is not None), None)
