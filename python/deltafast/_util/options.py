"""Conversion of options, properties and column names of the API for the core."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from deltafast._credentials.aws_profile import chosen_profile
from deltafast._credentials.azure_identity import default_identity
from deltafast._credentials.google_auth import default_google
from deltafast._credentials.provider import KEY, DefaultProvider, credential_source
from deltafast.exceptions import InvalidArgumentError, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast import _core
    from deltafast._core_types import AutoCompactOptions, CommitOptions
    from deltafast._credentials.provider import CredentialProvider
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = [
    "CONSTRAINTS",
    "UPDATES",
    "commit_options",
    "names",
    "property_strings",
    "sql_strings",
    "text_options",
]

#: What to give where the libraries of the clouds find no credentials.
_AWS = "`aws_access_key_id` and `aws_secret_access_key`, or `aws_skip_signature=true` for a public bucket"
_AZURE = "`azure_storage_account_key`, `azure_storage_sas_token` or a service principal"
_GOOGLE = "`google_service_account`"


def text_options(options: Mapping[str, Any] | None, uri: str) -> dict[str, str] | None:
    """Return storage options for the core; booleans and numbers are allowed. Warns about unknown names.

    A credential provider becomes an option that refers to it; S3 without one may have a profile of AWS.

    Args:
        options: The options.
        uri: The location that they are for.

    Raises:
        InvalidArgumentError: The options are not a mapping of strings. The message has no values: they may be secret.
    """
    if options is None:
        options = {}
    if not isinstance(options, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"storage_options must be a dict of strings, not a {type(options).__name__}"
        raise InvalidArgumentError(message)
    given = _CoreOptions()
    for key, value in options.items():
        if key == KEY and callable(value):
            given.source = credential_source(cast("CredentialProvider", value))
            continue
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"the names of storage options must be strings, not {type(key).__name__}"
            raise InvalidArgumentError(message)
        if not isinstance(value, (str, bool, int, float)):
            message = (
                f"the storage option `{key}` must be a string, not {type(value).__name__}; leave out what is not set"
            )
            raise InvalidArgumentError(message)
        given[key] = str(value).lower() if isinstance(value, bool) else str(value)
    from deltafast import _core

    for warning in _core.option_warnings(given):
        warn(warning)
    if given.source is None and "hadoop_gateway" not in given:
        _use_default(given, uri.partition("://")[0])
    if given.source is not None:
        given.update([given.source.option()])
    return given or None


def _use_default(options: _CoreOptions, scheme: str) -> None:
    """Take credentials that a library of the cloud finds, where the core has none of its own."""
    if scheme in ("s3", "s3a"):
        _use_profile(options)
    elif scheme in ("az", "azure", "adl", "abfs", "abfss"):
        identity = default_identity(options)
        if identity is not None:
            options.source = credential_source(DefaultProvider(identity, _AZURE))
    elif scheme == "gs":
        google = default_google(options)
        if google is not None:
            options.source = credential_source(DefaultProvider(google, _GOOGLE))


def _use_profile(options: _CoreOptions) -> None:
    """Take credentials and the region from a profile of AWS, if one is chosen."""
    profile = chosen_profile(options)
    if profile is None:
        return
    options.source = credential_source(DefaultProvider(profile, _AWS))
    names = {key.strip().lower() for key in options}
    has_region = names & {"region", "aws_region", "default_region", "aws_default_region"}
    if not has_region and not os.environ.get("AWS_REGION") and not os.environ.get("AWS_DEFAULT_REGION"):
        region = profile.region
        if region is not None:
            options["aws_region"] = region


class _CoreOptions(dict[str, str]):
    """Storage options for the core; the source of credentials to which they refer lives as long as they do."""

    source: _core.CredentialSource | None = None


def property_strings(properties: Mapping[str, Any] | None) -> dict[str, str | None]:
    """Return table properties as strings, as in the log; booleans and integers are converted, None stays.

    Raises:
        InvalidArgumentError: A value is of another type.
    """
    if properties is None:
        return {}
    out: dict[str, str | None] = {}
    for key, value in properties.items():
        if isinstance(value, bool):
            out[key] = str(value).lower()
        elif isinstance(value, (str, int)):
            out[key] = str(value)
        elif value is None:
            out[key] = None
        else:
            message = (
                f"the property `{key}` must be a string, a boolean or an integer, not of type {type(value).__name__}"
            )
            raise InvalidArgumentError(message)
    return out


class SqlArgument(NamedTuple):
    """An argument with Spark SQL expressions by name."""

    name: str
    example: str
    #: What to give instead of a value that is not a string.
    remedy: str


CONSTRAINTS: Final = SqlArgument("constraints", '{"positive": "id > 0"}', "write the condition as SQL")
UPDATES: Final = SqlArgument(
    "updates",
    '{"column": "column + 1"}',
    "write it as SQL; `update` also takes Python values, as `new_values`",
)


def sql_strings(argument: SqlArgument, expressions: object, parsed: tuple[type, ...] = ()) -> dict[str, str]:
    """Check an argument with Spark SQL expressions by name.

    Args:
        argument: The argument.
        expressions: Value of the argument.
        parsed: Classes of parsed expressions, which are accepted, too.

    Raises:
        InvalidArgumentError: The value is not a mapping, or one of its values is not a string.
    """
    if not isinstance(expressions, Mapping):
        given = type(expressions).__name__
        message = f"`{argument.name}` takes Spark SQL by name, like {argument.example}, not a value of type {given}"
        raise InvalidArgumentError(message)
    for name, sql in cast("Mapping[str, object]", expressions).items():
        if not isinstance(sql, (str, *parsed)):
            of = f"`{name}` in `{argument.name}`"
            message = f"{of} must be Spark SQL in a string, not of type {type(sql).__name__}: {argument.remedy}"
            raise InvalidArgumentError(message)
    return dict(cast("Mapping[str, str]", expressions))


def commit_options(commit: CommitProperties | None, hooks: PostCommitHookProperties | None = None) -> CommitOptions:
    """Return both properties as commit options of the core."""
    out: CommitOptions = {}
    if commit is not None:
        if commit.custom_metadata is not None:
            out["custom_metadata"] = _plain(commit.custom_metadata)
        if commit.max_commit_retries is not None:
            if commit.max_commit_retries < 0:
                message = f"max_commit_retries must not be negative, it is {commit.max_commit_retries}"
                raise InvalidArgumentError(message)
            out["max_commit_retries"] = commit.max_commit_retries
        out["app_transactions"] = [
            {"appId": app.app_id, "version": app.version, "lastUpdated": app.last_updated}
            for app in commit.app_transactions or ()
        ]
    if hooks is not None:
        out["create_checkpoint"] = hooks.create_checkpoint
        out["cleanup_expired_logs"] = hooks.cleanup_expired_logs
        # The class of `deltalake` lacks it.
        interval = getattr(hooks, "log_compaction_interval", None)
        if interval is not None and interval <= 1:
            message = f"log_compaction_interval must be at least 2 versions, it is {interval}"
            raise InvalidArgumentError(message)
        out["log_compaction_interval"] = interval
        out["auto_compact"] = _auto_compact(hooks)
    return out


def _auto_compact(hooks: PostCommitHookProperties) -> AutoCompactOptions:
    # The class of `deltalake` lacks these.
    out: AutoCompactOptions = {"enabled": getattr(hooks, "auto_compact", None)}
    for key in ("min_files", "max_file_size", "min_file_size"):
        value = getattr(hooks, f"auto_compact_{key}", None)
        if value is not None and value <= 0:
            message = f"auto_compact_{key} must be above 0, it is {value}"
            raise InvalidArgumentError(message)
        out[key] = value
    return out


def _plain(metadata: object) -> dict[str, Any]:
    if not isinstance(metadata, Mapping):
        message = f"custom_metadata must be a mapping, not a {type(metadata).__name__}"
        raise InvalidArgumentError(message)
    given: dict[Any, Any] = dict(cast("Any", metadata))
    for key in given:
        if not isinstance(key, str):
            message = f"custom_metadata keys must be strings, not {key!r:.50}"
            raise InvalidArgumentError(message)
    try:
        return json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:
        message = f"custom_metadata cannot be written as JSON: {error}"
        raise InvalidArgumentError(message) from None


def names(columns: Sequence[str] | str | None) -> list[str] | None:
    """Return column names as a list; a single name may be given as a string."""
    if columns is None:
        return None
    return [columns] if isinstance(columns, str) else list(columns)
