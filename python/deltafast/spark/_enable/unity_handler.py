"""What Java's `UnityCatalog` asks of the servers of Unity Catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltafast._catalog.rest_client import CatalogError
from deltafast._catalog.unity.client import UnityCatalog
from deltafast._catalog.unity.table_name import TableName
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError
from deltafast.spark._conditions import Operation
from deltafast.spark._session.java_calls import set_catalog_handler
from deltafast.spark._session.unity_tables import CATALOG_CLASS, catalog_of, forget_catalogs, located, put_catalogs
from deltafast.spark.exceptions import during

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltafast.spark._session.session import Session

__all__ = ["UnityHandler", "named_in_settings"]

#: The prefix of Spark's settings of catalogs.
_SETTINGS: Final = "spark.sql.catalog."


def named_in_settings(session: Session) -> dict[str, UnityCatalog]:
    """Return the servers of the catalogs that a session's settings name by the class, `uri` and `token`.

    Raises:
        InvalidArgumentError: The URI of one is missing.
    """
    settings = session.settings(_SETTINGS)
    names = [name for name, value in settings.items() if value == CATALOG_CLASS]
    for name in names:
        if not settings.get(f"{name}.uri"):
            message = f"{_SETTINGS}{name} is {CATALOG_CLASS}: give its server as {_SETTINGS}{name}.uri"
            raise InvalidArgumentError(message)
    return {name: UnityCatalog(settings[f"{name}.uri"], settings.get(f"{name}.token") or None) for name in names}


class UnityHandler:
    """Answers Java; `CatalogHandler.java` documents the methods.

    Args:
        session: The session that is enabled; others of the same driver share the catalogs.
        fail: Keeps an exception that Java raises again.
    """

    def __init__(self, session: Session, fail: Callable[[BaseException, Any], None]) -> None:
        self._session, self._fail = session, fail
        #: The catalogs that the session's settings did not name.
        self._added: list[str] = []

    def put(self, catalogs: Mapping[str, UnityCatalog]) -> None:
        """Give the session the catalogs of servers."""
        put_catalogs(catalogs)
        set_catalog_handler(self._session, self)
        named = named_in_settings(self._session)
        self._added = [name for name in catalogs if name not in named]
        for name in self._added:
            self._session.spark.conf.set(f"{_SETTINGS}{name}", CATALOG_CLASS)

    def end(self) -> None:
        """Stop answering requests."""
        set_catalog_handler(self._session, None)
        forget_catalogs()
        for name in self._added:
            self._session.spark.conf.unset(f"{_SETTINGS}{name}")

    def location(self, session: Any, catalog: Any, schema: Any, table: Any, failure: Any) -> str | None:
        """Return the location of a table; None if it does not exist, or if `failure` was set."""
        del session
        return self._answer(lambda: located(_spelled(catalog, schema, table)), failure)

    def schemas(self, session: Any, catalog: Any, failure: Any) -> str | None:
        """Return the names of the schemas, one on each line; None if `failure` was set."""
        del session
        return self._answer(lambda: "\n".join(catalog_of(catalog).schemas(catalog)), failure)

    def tables(self, session: Any, catalog: Any, schema: Any, failure: Any) -> str | None:
        """Return the names of the tables of a schema, one on each line; None if it does not exist."""
        del session

        def names() -> str | None:
            try:
                return "\n".join(catalog_of(catalog).tables(catalog, schema))
            except CatalogError as error:
                if not error.is_not_found:
                    raise
                return None

        return self._answer(names, failure)

    def drop(self, session: Any, catalog: Any, schema: Any, table: Any, failure: Any) -> bool:
        """Drop a table; False if it does not exist, or if `failure` was set."""
        del session

        def drop() -> bool:
            try:
                catalog_of(catalog).drop(_spelled(catalog, schema, table))
            except TableNotFoundError:
                return False
            return True

        return bool(self._answer(drop, failure))

    def rename(self, session: Any, catalog: Any, schema: Any, table: Any, newName: Any, failure: Any) -> None:  # noqa: N803
        """Rename a table, unless `failure` is set."""
        del session
        self._answer(lambda: catalog_of(catalog).rename(_spelled(catalog, schema, table), newName), failure)

    def _answer(self, work: Callable[[], Any], failure: Any) -> Any:
        try:
            with during(Operation.RELATION):
                return work()
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            self._fail(error, failure)
            return None


def _spelled(catalog: str, schema: str, table: str) -> str:
    """Return a name in SQL syntax."""
    return TableName(catalog, schema, table).sql
