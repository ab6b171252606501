"""Small conversions between what people write, what the core takes and what the log says."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit

from deltafast.exceptions import InvalidArgumentError, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = [
    "address",
    "also_by_position",
    "choices",
    "instant",
    "late_arguments",
    "local_path",
    "location",
    "moment",
    "names",
    "partition_text",
    "property_strings",
    "sql_strings",
    "text_options",
    "without_secrets",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: The order of most of `deltalake`'s methods from the time when these were no keywords.
COMMIT_ARGUMENTS = ("commit_properties", "post_commithook_properties")
HOOKS_FIRST = COMMIT_ARGUMENTS[::-1]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


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


def text_options(options: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Storage options as the core takes them; booleans and numbers are allowed. Warns of names that are not known.

    Raises:
        InvalidArgumentError: They are not a mapping of strings. Values, which may be secret, are not shown.
    """
    if options is None:
        return None
    if not isinstance(options, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"storage_options must be a dict of strings, not a {type(options).__name__}"
        raise InvalidArgumentError(message)
    given: dict[str, str] = {}
    for key, value in options.items():
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
    return given


def property_strings(properties: Mapping[str, Any] | None) -> dict[str, str | None]:
    """Table properties as the log has them; booleans and integers are allowed, None stays.

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


def sql_strings(what: str, expressions: object) -> dict[str, str]:
    """Spark SQL by name.

    Args:
        what: What the argument is called.
        expressions: What was given for it.

    Raises:
        InvalidArgumentError: It is not a mapping, or a value is not a string.
    """
    if not isinstance(expressions, Mapping):
        given = type(expressions).__name__
        example = '{"positive": "id > 0"}' if what == "constraints" else '{"column": "column + 1"}'
        message = f"`{what}` takes Spark SQL by name, like {example}, not a value of type {given}"
        raise InvalidArgumentError(message)
    for name, sql in cast("Mapping[str, object]", expressions).items():
        if not isinstance(sql, str):
            if what == "constraints":
                hint = "write the condition as SQL"
            else:
                hint = "write it as SQL; `update` also takes Python values, as `new_values`"
            message = f"`{name}` in `{what}` must be Spark SQL in a string, not of type {type(sql).__name__}: {hint}"
            raise InvalidArgumentError(message)
    return dict(cast("Mapping[str, str]", expressions))


def instant(when: str | datetime) -> int:
    """Milliseconds since the epoch, UTC where no zone is given, rounded down."""
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            message = f"not an ISO 8601 date and time: {when!r:.60}"
            raise InvalidArgumentError(message) from None
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND


def also_by_position(*names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a method take these keywords by position too, behind its others and with a warning, as `deltalake` does."""

    def wrap(method: Callable[_P, _R]) -> Callable[_P, _R]:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        most = sum(parameter.kind in kinds for parameter in inspect.signature(method).parameters.values())
        name = method.__name__

        @wraps(method)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if len(args) <= most:
                return method(*args, **kwargs)
            late = late_arguments(name, names, args[most:], kwargs.keys(), before=most - 1)
            return cast("Any", method)(*args[:most], **kwargs, **late)

        return call

    return wrap


def late_arguments(
    method: str, names: Sequence[str], args: Sequence[Any], given: Collection[str], *, before: int = 0
) -> dict[str, Any]:
    """What became keywords, by name, where a method is given it by position; with a warning for the method's caller.

    Args:
        method: The method's name.
        names: The keywords, in the order of their positions.
        args: What is given by position.
        given: Names of what is given by keyword.
        before: How many arguments by position the method has before these.

    Raises:
        TypeError: There are too many, or one is given twice.
    """
    if len(args) > len(names):
        message = f"{method}() takes at most {before + len(names)} arguments by position, not {before + len(args)}"
        raise TypeError(message)
    late = dict(zip(names, args, strict=False))
    if twice := late.keys() & given:
        message = f"{method}() got multiple values for {min(twice)!r}"
        raise TypeError(message)
    message = f"{method}() takes {', '.join(late)} by keyword: to pass them positionally is deprecated"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return late


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


def partition_text(value: object) -> str | None:
    """A partition value as Delta writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def moment(milliseconds: int) -> datetime:
    """The inverse of `instant`."""
    return _EPOCH + milliseconds * _MILLISECOND


def choices(commit: CommitProperties | None, hooks: PostCommitHookProperties | None = None) -> dict[str, Any]:
    """Both properties, as the core takes them."""
    out: dict[str, Any] = {}
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
        # Not all that is given for hooks has it: `deltalake`'s do not.
        interval = getattr(hooks, "log_compaction_interval", None)
        if interval is not None and interval <= 1:
            message = f"log_compaction_interval must be at least 2 versions, it is {interval}"
            raise InvalidArgumentError(message)
        out["log_compaction_interval"] = interval
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
    """Column names, of which one may be given alone."""
    if columns is None:
        return None
    return [columns] if isinstance(columns, str) else list(columns)
