"""`CatalogError`: a server of a catalog or share refused a request, did not answer it, or answered oddly."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from deltafast.exceptions import ErrorCode, StorageError

__all__ = ["CatalogError"]

#: The least status of a refusal, that of a failure, and those that ask to try again.
_REFUSED, _FAILED, _LATER = 400, 500, (408, 429)


class CatalogError(StorageError):
    """A catalog or a share refused a request, did not answer it, or its answer is not one of its protocol.

    Args:
        message: One line, without tokens.
        status: The HTTP status; None without an answer.
        kind: The error type of the catalog, such as `NoSuchTableException`; empty if it gave none.
        place: As for `DeltaError`.
    """

    _code = ErrorCode.CATALOG_FAILED

    def __init__(self, message: str, *, status: int | None = None, kind: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.status, self.kind = status, kind

    @property
    def is_not_found(self) -> bool:
        """Whether something that the request names does not exist."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_refusal(self) -> bool:
        """Whether the request was refused, so that it was not carried out and need not be sent again."""
        return self.status is not None and _REFUSED <= self.status < _FAILED and self.status not in _LATER
