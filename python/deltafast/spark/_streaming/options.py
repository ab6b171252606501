"""Options of a stream that reads a table: delta-spark's options by name -> their parsed values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from deltafast import _core
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["SCHEMA_TRACKING", "Room", "StreamOptions", "is_stream_option", "is_true", "stream_options"]

#: Maximum number of files of a batch if no limit of files or bytes is given.
_MAX_FILES = 1000

_OPTIONS = (
    "maxfilespertrigger",
    "maxbytespertrigger",
    "startingversion",
    "startingtimestamp",
    "ignoredeletes",
    "ignorechanges",
    "ignorefiledeletion",
    "skipchangecommits",
    "readchangefeed",
    "readchangedata",
    "excluderegex",
    "failondataloss",
)
#: The options of the schema log, see `schema_tracking`.
SCHEMA_TRACKING = (
    "schematrackinglocation",
    "schemalocation",
    "streamingsourcetrackingid",
    "allowsourcecolumndrop",
    "allowsourcecolumnrename",
    "allowsourcecolumntypechange",
)
_NO_SCHEMA_LOG = "only readStream.format('delta') of a classic session follows changes of the schema"
_REFUSED = {
    **dict.fromkeys(SCHEMA_TRACKING, _NO_SCHEMA_LOG),
    "endingversion": "a stream has no end: use Trigger.AvailableNow",
    "endingtimestamp": "a stream has no end: use Trigger.AvailableNow",
    "versionasof": "a stream has startingVersion",
    "timestampasof": "a stream has startingTimestamp",
}


class HasBytes(Protocol):
    """A file."""

    @property
    def bytes(self) -> int:
        """Its size."""
        ...


@dataclass(frozen=True)
class StreamOptions:
    """The parsed options of a stream."""

    #: Maximum number of files of a batch; None if only bytes are limited.
    max_files: int | None = _MAX_FILES
    #: Limit of bytes: the file that exceeds it is the last of its batch.
    max_bytes: int | None = None
    #: The first version whose changes are read; only later ones than the newest (`latest`); the existing rows if None.
    starting_version: int | Literal["latest"] | None = None
    #: The same by timestamp.
    starting_timestamp: str | None = None
    #: Commits that only delete rows are ignored, instead of an error.
    ignores_deletes: bool = False
    #: For commits that change rows, all rows of the new files are returned.
    ignores_changes: bool = False
    #: Commits that delete or change rows are ignored.
    skips_changes: bool = False
    #: The change data feed is read.
    change_data_feed: bool = False
    #: Files whose path in the log matches this regular expression are skipped.
    exclude: str | None = None
    #: Whether commits that were deleted from the log are an error.
    fails_on_loss: bool = True


class Room:
    """The remaining capacity of a batch; the file that exceeds the limit of bytes is its last.

    Args:
        options: The limits; None for no limits.
    """

    def __init__(self, options: StreamOptions | None) -> None:
        self._files = None if options is None else options.max_files
        self._bytes = None if options is None else options.max_bytes
        self._is_used = False

    @property
    def is_full(self) -> bool:
        """Whether the batch is full."""
        return (self._files is not None and self._files <= 0) or (self._bytes is not None and self._bytes <= 0)

    def taken(self, files: Sequence[HasBytes]) -> int:
        """Take files in their order and return their number."""
        count = 0
        while count < len(files) and not self.is_full:
            self._use(1, files[count].bytes)
            count += 1
        return count

    def takes_all(self, files: int, size: int) -> bool:
        """Take a commit if there is room for all of it; the first one is always taken."""
        fits = (self._files is None or files <= self._files) and (self._bytes is None or size <= self._bytes)
        if self._is_used and not fits:
            return False
        self._use(files, size)
        return True

    def _use(self, files: int, size: int) -> None:
        self._is_used = True
        self._files = None if self._files is None else self._files - files
        self._bytes = None if self._bytes is None else self._bytes - size


def stream_options(options: Mapping[str, Any], known: tuple[str, ...] = ()) -> StreamOptions:
    """Parse the options of a stream.

    Args:
        options: delta-spark's options; their names are case-insensitive.
        known: Names of options for others, in lower case, which are ignored.

    Raises:
        InvalidArgumentError: There is no such option, its value is invalid, or two exclude each other.
    """
    given: dict[str, Any] = {}
    for key, value in options.items():
        name = key.lower()
        if name in known:
            continue
        if name in _REFUSED:
            message = f"the option {key!r} is not for streams of deltafast: {_REFUSED[name]}"
            raise InvalidArgumentError(message)
        if name not in _OPTIONS:
            message = f"there is no option {key!r} for streams; there are {', '.join(_OPTIONS)}"
            raise InvalidArgumentError(message)
        given[name] = value
    if "startingversion" in given and "startingtimestamp" in given:
        message = "give startingVersion or startingTimestamp, not both"
        raise InvalidArgumentError(message)
    exclude = given.get("excluderegex")
    change_data_feed = is_true(given.get("readchangefeed", given.get("readchangedata")))
    if exclude is not None:
        try:
            re.compile(exclude)
        except re.error as error:
            message = f"excludeRegex is not a regular expression: {error}"
            raise InvalidArgumentError(message) from None
    max_bytes = None if "maxbytespertrigger" not in given else _size(given["maxbytespertrigger"])
    files = given.get("maxfilespertrigger", None if max_bytes is not None else _MAX_FILES)
    ignores_files = is_true(given.get("ignorefiledeletion"))
    return StreamOptions(
        max_files=None if files is None else _positive("maxFilesPerTrigger", files),
        max_bytes=max_bytes,
        starting_version=_version(given.get("startingversion")),
        starting_timestamp=None if "startingtimestamp" not in given else str(given["startingtimestamp"]),
        ignores_deletes=is_true(given.get("ignoredeletes")),
        ignores_changes=is_true(given.get("ignorechanges")) or ignores_files,
        skips_changes=is_true(given.get("skipchangecommits")),
        change_data_feed=change_data_feed,
        exclude=exclude,
        fails_on_loss=is_true(given.get("failondataloss", True)),
    )


def is_stream_option(name: str) -> bool:
    """Return whether delta-spark has an option of this name for streams."""
    return name.lower() in (*_OPTIONS, *_REFUSED)


def is_true(value: Any) -> bool:
    """Return the value of a boolean option; None is false."""
    if value is None or isinstance(value, bool):
        return bool(value)
    if str(value).lower() not in ("true", "false"):
        message = f"an option must be true or false, not {value!r}"
        raise InvalidArgumentError(message)
    return str(value).lower() == "true"


def _version(value: Any) -> int | Literal["latest"] | None:
    if value is None:
        return None
    if str(value).lower() == "latest":
        return "latest"
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0:
        message = f"startingVersion must be a version or 'latest', not {value!r}"
        raise InvalidArgumentError(message)
    return number


def _positive(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        message = f"{name} must be at least 1, not {value!r}"
        raise InvalidArgumentError(message)
    return number


def _size(value: Any) -> int:
    """Return bytes in Spark's syntax: `10m`, `1gb`, `5000`."""
    size = _core.parse_byte_size(str(value))
    if not size:
        message = f"maxBytesPerTrigger must be a size such as 1000 or 10m, not {value!r}"
        raise InvalidArgumentError(message)
    return size
