"""SQL over Delta tables with DuckDB.

Tables are registered as datasets, so DuckDB asks each scan for the columns and rows that a query needs.
Connections of our own are private and restricted: UTC, no extension is downloaded, and, unless external access is
asked for, statements reach no file, no network and no setting.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar, cast

import duckdb

from deltafast._handle import handle_of
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from deltafast._handle import HandleOwner, TableHandle

__all__ = [
    "QueryBuilder",
    "ViewQueryBuilder",
    "connect",
    "interruptible",
    "refused_access",
    "relation",
    "source_of",
    "streamed",
    "unknown_table",
]

_T = TypeVar("_T")

#: Seconds after which a thread that waits lets signals be handled.
_TICK = 0.05
#: Seconds within which DuckDB ends a query, if it does.
_PATIENCE = 5

#: For every cursor of a connection.
_UTC = "SET GLOBAL TimeZone = 'UTC'"
_PINNED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
#: No files, no network, no extensions, no secrets. Spilling into `temp_directory` remains possible.
_NO_ACCESS = {"enable_external_access": "false"}
#: Without it a statement could write profiles and logs to a file, or lift limits.
_LOCKED = "SET GLOBAL lock_configuration = true"
_UNKNOWN_TABLE = re.compile(r"Table with name (.+?) does not exist!")


def relation(
    table: TableHandle, connection: duckdb.DuckDBPyConnection | None, *, external_access: bool = False
) -> duckdb.DuckDBPyRelation:
    """The table as a DuckDB relation on the connection, or on a private one."""
    if connection is None:
        connection = connect(external_access=external_access)
    return connection.from_arrow(source_of(table))


def connect(
    settings: Mapping[str, str] | None = None,
    *,
    external_access: bool = False,
    session: Mapping[str, object] | None = None,
) -> duckdb.DuckDBPyConnection:
    """A private connection.

    Args:
        settings: DuckDB's settings to connect with, by name.
        external_access: Whether statements may use files, the network, extensions, secrets and `SET`.
        session: DuckDB's settings by name that are set after connecting.

    Raises:
        InvalidArgumentError: DuckDB refuses a setting of `session`.
    """
    access = {} if external_access else _NO_ACCESS
    connection = duckdb.connect(":memory:", config=_PINNED | access | dict(settings or {}))

    def prepare() -> None:
        for name, value in (session or {}).items():
            _set(connection, name, value)
        # No setting to connect with: it belongs to an extension.
        connection.execute(_UTC)
        if not external_access:
            connection.execute(_LOCKED)

    interruptible(connection, prepare)
    return connection


def _set(connection: duckdb.DuckDBPyConnection, name: str, value: object) -> None:
    quoted = name.replace('"', '""')
    literal = str(value).replace("'", "''")
    try:
        connection.execute(f"SET GLOBAL \"{quoted}\" = '{literal}'")
    except duckdb.Error as error:
        message = f"session_config: DuckDB does not take {name}: {error}"
        raise InvalidArgumentError(message) from None


def refused_access(error: duckdb.Error, remedy: str) -> str | None:
    """A message for a statement that a connection without external access refused; None for other errors.

    Args:
        error: DuckDB's error.
        remedy: What allows it.
    """
    what = str(error).partition("\n")[0]
    is_locked = "the configuration has been locked" in what
    if not is_locked and not isinstance(error, duckdb.PermissionException):
        return None
    return f"{what}: queries have no access to files, the network, extensions and settings unless {remedy}"


def unknown_table(error: duckdb.Error) -> str | None:
    """The name for which a query found no table; None for other errors."""
    found = _UNKNOWN_TABLE.search(str(error)) if isinstance(error, duckdb.CatalogException) else None
    return None if found is None else found[1].strip('"')


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]) -> _T:
    """Do what DuckDB works on, be it a moment; Ctrl-C ends it at once with a `KeyboardInterrupt`.

    DuckDB 2.0 looks for signals itself, but makes a `RuntimeError` of them, and of three queries that it interrupts in
    the thread that waits for them one waits for ever. So the main thread, which signals come to, leaves every statement
    to another one.

    Args:
        connection: Whose queries end.
        work: What is done.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    found: list[_T] = []
    wrong: list[BaseException] = []
    # Not `Thread.join`, which after Ctrl-C takes a thread for ended.
    done = threading.Event()
    # Held by who decides first: the thread to begin, or Ctrl-C before that to have nothing done.
    begins = threading.Lock()

    def run() -> None:
        if not begins.acquire(blocking=False):
            return
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            wrong.append(error)
        finally:
            done.set()

    try:
        # Ctrl-C may come while the thread is started, too.
        threading.Thread(target=run, name="deltafast-query", daemon=True).start()
        while not done.wait(_TICK):
            pass
    except KeyboardInterrupt:
        if begins.acquire(blocking=False):
            raise
        # A thread that comes back to an interpreter which is gone would end the process badly, and so would a
        # connection that is closed under it. Between two of its queries there is nothing to interrupt yet.
        last = time.monotonic() + _PATIENCE
        while not done.is_set() and time.monotonic() < last:
            connection.interrupt()
            done.wait(_TICK)
        raise
    if wrong:
        raise wrong[0]
    return found[0]


def streamed(connection: duckdb.DuckDBPyConnection, text: str) -> pa.RecordBatchReader:
    """The rows of a statement; none of one that gives none."""
    import pyarrow as pa

    found = connection.sql(text)
    if found is None:  # pyright: ignore[reportUnnecessaryComparison]  # DuckDB 1 after a statement without rows
        return pa.RecordBatchReader.from_batches(pa.schema([]), [])
    return cast("pa.RecordBatchReader", found.to_arrow_reader())


def source_of(table: TableHandle) -> Any:
    """What DuckDB scans: a dataset, which takes filters, or without pyarrow the table's own stream."""
    try:
        from deltafast._interop.pyarrow_dataset import ScanDataset
    except ImportError:
        return table.pinned()
    return ScanDataset(table)


class QueryBuilder:
    """Run SQL over registered Delta tables.

    Args:
        session_config: DuckDB settings by name. DataFusion's (`datafusion.*`), which `deltalake` takes, have
            no meaning here and are ignored.
        external_access: Let queries read and write files (`read_csv`, `COPY`, `ATTACH`), use the network, load
            extensions and change settings. Without it they reach the registered tables only.

    Example:
        >>> events = DeltaTable("/data/events")                                         # doctest: +SKIP
        >>> reader = QueryBuilder().register("events", events).execute(                 # doctest: +SKIP
        ...     "SELECT day, count(*) FROM events GROUP BY day")
        >>> reader.read_all()                                                           # doctest: +SKIP
    """

    def __init__(self, session_config: Mapping[str, str] | None = None, *, external_access: bool = False) -> None:
        given = (session_config or {}).items()
        session = {name: value for name, value in given if not name.startswith("datafusion.")}
        self._connection = connect(external_access=external_access, session=session)
        self._tables: dict[str, Any] = {}

    def register(self, table_name: str, delta_table: HandleOwner) -> QueryBuilder:
        """Make a table known to SQL by a name, at the version it points at now.

        Args:
            table_name: The name.
            delta_table: The table.

        Returns:
            The builder itself.
        """
        self._tables[table_name] = source_of(handle_of(delta_table))
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """Run one query.

        Args:
            sql: DuckDB's SQL.

        Returns:
            The rows, as they are computed. Several results may be open at once.

        Raises:
            duckdb.Error: The query is wrong, or needs external access.
        """
        # A connection holds one running result, so each query has its own.
        cursor = self._connection.cursor()

        def run() -> pa.RecordBatchReader:
            for name, source in self._tables.items():
                cursor.register(name, source)
            return streamed(cursor, sql)

        try:
            return interruptible(cursor, run)
        except duckdb.Error as error:
            message = self._explained(error)
            if message is None:
                raise
            raise type(error)(message) from None

    def _explained(self, error: duckdb.Error) -> str | None:
        """A message that says what to do about an error; None where DuckDB's own is enough."""
        if (name := unknown_table(error)) is not None:
            known = ", ".join(self._tables) or "none"
            return f"there is no table `{name}` (registered: {known}); use QueryBuilder.register({name!r}, table)"
        return refused_access(error, "QueryBuilder(external_access=True) allows it")


class ViewQueryBuilder(QueryBuilder):
    """`deltalake`'s builder, whose strings and binaries come as Arrow views; `QueryBuilder` spares pyarrow these."""

    def __init__(self, session_config: Mapping[str, str] | None = None, *, external_access: bool = False) -> None:
        views = {"arrow_output_version": "1.4", "produce_arrow_string_view": "true"}
        super().__init__(views | dict(session_config or {}), external_access=external_access)

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """Run one query."""
        import pyarrow as pa

        rows = super().execute(sql)
        # DuckDB has views for strings alone.
        fields: list[Any] = list(cast("Any", rows.schema))
        views = pa.schema([f.with_type(pa.binary_view()) if f.type == pa.binary() else f for f in fields])
        return rows if views == rows.schema else rows.cast(views)
