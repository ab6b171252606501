"""The rows that Spark has cached of a table that a command has changed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from deltafast.spark._session.java_calls import refresh_cached_rows
from deltafast.spark._session.storage import place_of

if TYPE_CHECKING:
    from deltafast.spark._session.session import Session

__all__ = ["refresh_dependents"]


def refresh_dependents(session: Session, path: str) -> None:
    """Make Spark read again what it has cached of the newest version of a table: frames, views, tables of the catalog.

    It raises no error, since the table has changed already. Over Connect frames are pinned to the version at which
    they were created, so that there is nothing to read again.

    Args:
        session: The session that changed the table; others of the same driver share its cache.
        path: The location of the table, as the core or Hadoop names it.
    """
    if session.is_connect:
        return
    with suppress(Exception):
        if session.spark._jsparkSession.sharedState().cacheManager().isEmpty():
            return
        root = place_of(session, path).hadoop
        try:
            refresh_cached_rows(session, root)
        except Exception:  # noqa: BLE001 - this Spark keeps its cache otherwise
            session.spark.catalog.refreshByPath(root)
