"""delta-spark's session settings of a commit: user metadata, idempotent writes, auto compaction.

A setting has the value that an option of a write does not give. The names and defaults are those of delta-spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltafast import _core
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.transaction import CommitProperties, PostCommitHookProperties, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltafast.spark._session.session import Session

__all__ = ["CommitSettings", "optimized_file_size", "user_metadata"]

_CONF: Final = "spark.databricks.delta."
_APP_ID, _VERSION = _CONF + "write.txnAppId", _CONF + "write.txnVersion"
_AUTO_RESET = _CONF + "write.txnVersion.autoReset.enabled"
_COMPACTION = _CONF + "autoCompact."
_OPTIMIZED_FILE_SIZE = _CONF + "optimize.maxFileSize"
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def user_metadata(session: Session) -> str | None:
    """Return the session's text for the history of its commits."""
    return session.conf(_CONF + "commitInfo.userMetadata")


def optimized_file_size(session: Session) -> int | None:
    """Return the size of the files that OPTIMIZE writes, in bytes; None if the session does not set it.

    Raises:
        InvalidArgumentError: The setting is not a size.
    """
    size = session.conf(_OPTIMIZED_FILE_SIZE)
    return None if size is None else _size(_OPTIMIZED_FILE_SIZE, size)


@dataclass(frozen=True)
class CommitSettings:
    """The settings of one commit.

    A command asks `is_committed` first, passes `properties` and `hooks` to the commit, and calls `end` once it
    succeeded or was skipped.
    """

    session: Session
    properties: CommitProperties
    hooks: PostCommitHookProperties | None
    #: What the commit records, so that it is not repeated.
    transaction: Transaction | None
    #: Whether `transaction` is from the session's settings, which may be reset after the commit.
    is_of_session: bool

    @classmethod
    def of(cls, session: Session, options: Mapping[str, Any] | None = None) -> CommitSettings:
        """Read the settings.

        Args:
            session: The session.
            options: Options of the write by their names in lower case, which take precedence.

        Raises:
            InvalidArgumentError: A setting is invalid, or only one of `txnAppId` and `txnVersion` is given.
        """
        given = options or {}
        transaction = _transaction(
            given.get("txnappid"), given.get("txnversion"), "the options txnAppId and txnVersion"
        )
        is_of_session = transaction is None
        if is_of_session:
            names = f"{_APP_ID} and {_VERSION}"
            transaction = _transaction(session.conf(_APP_ID), session.conf(_VERSION), names)
        text = given.get("usermetadata", user_metadata(session))
        properties = CommitProperties(
            custom_metadata=None if text is None else {"userMetadata": text},
            app_transactions=None if transaction is None else [transaction],
        )
        return cls(session, properties, _hooks(session), transaction, is_of_session and transaction is not None)

    def is_committed(self, last_version: Callable[[str], int | None]) -> bool:
        """Return whether the table has the transaction already, so that the command is to be skipped.

        Args:
            last_version: Returns the last version of an application that the table has recorded.
        """
        if self.transaction is None:
            return False
        known = last_version(self.transaction.app_id)
        return known is not None and known >= self.transaction.version

    def end(self) -> None:
        """Reset the session's `txnVersion` if the session says so, so that the next write is not skipped."""
        if self.is_of_session and str(self.session.conf(_AUTO_RESET, "false")).lower() == "true":
            self.session.spark.conf.unset(_VERSION)


def _transaction(app_id: Any, version: Any, names: str) -> Transaction | None:
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        message = f"both {names} must be specified for an idempotent write"
        raise InvalidArgumentError(message, code=ErrorCode.IDEMPOTENT_WRITE_OPTIONS_INCOMPLETE)
    if not re.fullmatch(r"\s*\d+\s*", str(version)):
        message = f"txnVersion must be a whole number that is not negative, not {str(version)!r:.50}"
        raise InvalidArgumentError(message)
    return Transaction(str(app_id), int(version))


def _hooks(session: Session) -> PostCommitHookProperties | None:
    """Return the maintenance after a commit as far as the session determines it."""
    # One by one, which is faster than all settings of the session.
    names = ("enabled", "minNumFiles", "maxFileSize", "minFileSize")
    found = {name: value for name in names if (value := session.conf(_COMPACTION + name)) is not None}
    if not found:
        return None
    hooks = PostCommitHookProperties()
    if (enabled := found.get("enabled")) is not None:
        hooks.auto_compact = enabled.strip().lower() in ("true", "auto", "legacy")
    if (files := found.get("minNumFiles")) is not None:
        hooks.auto_compact_min_files = _number(_COMPACTION + "minNumFiles", files)
    if (size := found.get("maxFileSize")) is not None:
        hooks.auto_compact_max_file_size = _size(_COMPACTION + "maxFileSize", size)
    if (size := found.get("minFileSize")) is not None:
        hooks.auto_compact_min_file_size = _size(_COMPACTION + "minFileSize", size)
    return hooks


def _number(setting: str, text: str) -> int:
    number = int(text) if re.fullmatch(r"\s*\d+\s*", text) else 0
    if not number:
        message = f"{setting} must be a whole number above 0, not {text!r:.50}"
        raise InvalidArgumentError(message)
    return number


def _size(setting: str, text: str) -> int:
    size = _core.parse_byte_size(text)
    if not size:
        message = f"{setting} must be a number of bytes, or one with a unit such as 128m, not {text!r:.50}"
        raise InvalidArgumentError(message)
    return size
