"""The file formats of the jar with which Spark's tasks write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast.spark._session.java_library import UnavailableError, load, on_executors

if TYPE_CHECKING:
    from deltafast.spark._session.session import Session

__all__ = ["file_format"]


def file_format(session: Session, name: str) -> str | None:
    """Return the full name of a format's class; None if the session does not have it.

    Args:
        session: The session.
        name: The name of the class.
    """
    if session.is_connect:
        return None
    try:
        kind = load(session, name)
        on_executors(session, kind)
    except UnavailableError:
        return None
    return str(kind.getName())
