"""SQL over Delta tables with DuckDB.

Tables are registered as datasets, so DuckDB requests from each scan the columns and rows that a query needs.
deltafast's own connections are private and restricted: their time zone is UTC, no extension is downloaded, and without
external access statements cannot use files, the network or settings.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar, cast

import duckdb

from deltafast import _core
from deltafast._handle import handle_of
from deltafast.exceptions import InvalidArgumentError, printable

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

#: Seconds between the checks for signals of a waiting thread.
_TICK = 0.05
#: Seconds to wait for DuckDB to end an interrupted query.
_PATIENCE = 5

#: For every cursor of a connection.
_UTC = "SET GLOBAL TimeZone = 'UTC'"
_PINNED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
#: No files, no network, no extensions, no secrets. Spilling into `temp_directory` remains possible.
_NO_ACCESS = {"enable_external_access": "false", "allow_persistent_secrets": "false"}
#: What DuckDB says of a locked setting, and, before 2.0, of a secret in a file.
_LOCKED_OUT = ("the configuration has been locked", "Persistent secrets are disabled")
#: Without it a statement could write profiles and logs to a file, or change limits.
_LOCKED = "SET GLOBAL lock_configuration = true"
_UNKNOWN_TABLE = re.compile(r"Table with name (.+?) does not exist!")


def relation(
    table: TableHandle, connection: duckdb.DuckDBPyConnection | None, *, external_access: bool = False
) -> duckdb.DuckDBPyRelation:
    """Return the table as a DuckDB relation on the connection, or on a private one."""
    if connection is None:
        connection = connect(external_access=external_access)
    return connection.from_arrow(source_of(table))


def connect(
    settings: Mapping[str, str] | None = None,
    *,
    external_access: bool = False,
    session: Mapping[str, object] | None = None,
) -> duckdb.DuckDBPyConnection:
    """Open a private connection.

    Args:
        settings: DuckDB settings by name, for connecting.
        external_access: Whether statements may use files, the network, extensions, secrets and `SET`.
        session: DuckDB settings by name, set after connecting.

    Raises:
        InvalidArgumentError: DuckDB refuses a setting of `session`.
    """
    access = {} if external_access else _NO_ACCESS
    connection = duckdb.connect(":memory:", config=_PINNED | access | dict(settings or {}))

    def prepare() -> None:
        for name, value in (session or {}).items():
            _set(connection, name, value)
        # Not a setting for connecting: it belongs to an extension.
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
    """Return the message for a statement that a connection without external access refused; None for other errors.

    Args:
        error: DuckDB's error.
        remedy: The hint that ends the message.
    """
    what = str(error).partition("\n")[0]
    is_locked = any(said in what for said in _LOCKED_OUT)
    if not is_locked and not isinstance(error, duckdb.PermissionException):
        return None
    return f"{what}: queries have no access to files, the network, extensions and settings unless {remedy}"


def unknown_table(error: duckdb.Error) -> str | None:
    """Return the name of the table that a query did not find; None for other errors."""
    found = _UNKNOWN_TABLE.search(str(error)) if isinstance(error, duckdb.CatalogException) else None
    return None if found is None else found[1].strip('"')


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]) -> _T:
    """Run work of DuckDB so that the exception of a signal handler, as of Ctrl-C, ends it at once, however short it is.

    DuckDB 2.0 checks for signals itself, but raises a `RuntimeError`, and one of three queries that it interrupts in
    the waiting thread hangs forever. So the main thread, which receives signals, runs every statement in another
    thread.

    Args:
        connection: The connection whose queries are interrupted.
        work: The function to run.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    found: list[_T] = []
    wrong: list[BaseException] = []
    # Not `Thread.join`, which after an exception of a signal handler considers a thread ended.
    done = threading.Event()
    # Taken by the first of both: the thread when it begins, or the exception, after which it must not begin.
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
        # The signal may come while the thread is started, too.
        threading.Thread(target=run, name="deltafast-query", daemon=True).start()
        while not done.wait(_TICK):
            pass
    except BaseException as raised:  # noqa: BLE001 - it is raised again
        # `work` runs in the other thread: whatever is raised here is the exception of a signal handler. `Thread.start`
        # puts a `KeyError` of its own in front of it.
        interrupt = raised.__context__ if isinstance(raised, KeyError) and raised.__context__ else raised
        if begins.acquire(blocking=False):
            raise interrupt from None
        # A thread that returns to a finalized interpreter would crash the process, and so would closing its
        # connection. Between two of its queries there is nothing to interrupt, so it is tried repeatedly.
        last = time.monotonic() + _PATIENCE
        while not done.is_set() and time.monotonic() < last:
            connection.interrupt()
            done.wait(_TICK)
        raise interrupt from None
    if wrong:
        raise wrong[0]
    return found[0]


def streamed(connection: duckdb.DuckDBPyConnection, text: str) -> pa.RecordBatchReader:
    """Return the rows of a statement; a stream without columns if it has no result."""
    import pyarrow as pa

    found = connection.sql(text)
    if found is None:  # pyright: ignore[reportUnnecessaryComparison]  # DuckDB 1 after a statement without rows
        return pa.RecordBatchReader.from_batches(pa.schema([]), [])
    return cast("pa.RecordBatchReader", found.to_arrow_reader())


def source_of(table: TableHandle) -> Any:
    """Return the object that DuckDB scans: a dataset with filter pushdown, or, without pyarrow, the table's stream."""
    try:
        from deltafast._interop.pyarrow_dataset import ScanDataset
    except ImportError:
        return table.pinned()
    return ScanDataset(table)


class QueryBuilder:
    """Run SQL over registered Delta tables.

    Args:
        session_config: DuckDB settings by name. DataFusion settings (`datafusion.*`), as for `deltalake`, are
            ignored.
        external_access: Allow queries to read and write files (`read_csv`, `COPY`, `ATTACH`), use the network, load
            extensions and change settings. Otherwise they can only access the registered tables.

    Examples:
        >>> from deltafast import DeltaTable, QueryBuilder, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> builder = QueryBuilder().register("cities", DeltaTable("cities"))
        >>> builder.execute("SELECT max(id) AS newest FROM cities").read_all().to_pylist()
        [{'newest': 3}]
    """

    def __init__(self, session_config: Mapping[str, str] | None = None, *, external_access: bool = False) -> None:
        given = (session_config or {}).items()
        session = {name: value for name, value in given if not name.startswith("datafusion.")}
        self._connection = connect(external_access=external_access, session=session)
        self._tables: dict[str, Any] = {}

    def register(self, table_name: str, delta_table: HandleOwner) -> QueryBuilder:
        """Register a table under a name, at the version that it points at now.

        Args:
            table_name: Name of the table in SQL.
            delta_table: The table.

        Returns:
            The builder itself.

        Raises:
            TypeError: The table is not a `DeltaTable`.
        """
        self._tables[table_name] = source_of(handle_of(delta_table))
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """Run one query.

        Args:
            sql: A query in DuckDB's SQL.

        Returns:
            The rows, streamed. Several results may be open at once.

        Raises:
            duckdb.Error: The query is invalid, or needs external access.
        """
        # A connection has one running result, so each query has its own connection.
        cursor = self._connection.cursor()

        def run() -> pa.RecordBatchReader:
            for name, source in self._tables.items():
                cursor.register(name, source)
            return streamed(cursor, sql)

        try:
            return interruptible(cursor, run)
        except duckdb.Error as error:
            # Values and names in messages may have control characters.
            message = printable(self._explained(error) or str(error), keep="\n\t")
            if message == str(error):
                raise
            raise type(error)(message) from None

    def _explained(self, error: duckdb.Error) -> str | None:
        """Return a message with a remedy for an error; None if DuckDB's own is sufficient."""
        if (name := unknown_table(error)) is not None:
            known = ", ".join(self._tables) or "none"
            return f"there is no table `{name}` (registered: {known}); use QueryBuilder.register({name!r}, table)"
        return refused_access(error, "QueryBuilder(external_access=True) allows it")


class ViewQueryBuilder(QueryBuilder):
    """The builder of `deltalake`: strings and binaries are Arrow views, which `QueryBuilder` avoids for pyarrow."""

    def __init__(self, session_config: Mapping[str, str] | None = None, *, external_access: bool = False) -> None:
        views = {"arrow_output_version": "1.4", "produce_arrow_string_view": "true"}
        super().__init__(views | dict(session_config or {}), external_access=external_access)

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """Run one query."""
        import pyarrow as pa

        rows = super().execute(sql)
        # DuckDB returns views for strings only.
        fields: list[Any] = list(cast("Any", rows.schema))
        views = pa.schema([f.with_type(pa.binary_view()) if f.type == pa.binary() else f for f in fields])
        if views == rows.schema:
            return rows
        # pyarrow before 25 makes views that it cannot export.
        return pa.RecordBatchReader.from_stream(cast("Any", _core.cast_stream(cast("Any", rows), views)))
