"""Tables that a session knows by name: registered views, temporary views, tables of its catalog."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from deltafast._handle import handle_of
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._scan.physical_columns import field_of, plain_type, spark_schema
from deltafast.spark._session.commit_settings import user_metadata
from deltafast.spark._session.storage import place_of
from deltafast.spark._session.unity_tables import has_catalogs, located, named
from deltafast.table import DeltaTable
from deltafast.transaction import CommitProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = [
    "FROM_CATALOG",
    "READ_BY_CLIENT",
    "View",
    "allows_protocol_downgrade",
    "become_delta",
    "commit_of",
    "default_place",
    "enforces_retention",
    "facts_of_name",
    "handle",
    "has_own_format",
    "is_temporary",
    "name_in_catalog",
    "new_entry",
    "others_provider",
    "place_of_name",
    "place_of_view",
    "put_into_catalog",
    "takes_tables",
    "views_of",
]

#: Begins a statement that shows what the catalog says of a table, and not what its log says.
FROM_CATALOG: Final = "/* entry of the catalog */ "
#: Settings of delta-spark.
_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
_PROTOCOL_DOWNGRADE = "spark.databricks.delta.restore.protocolDowngradeAllowed"


class View(NamedTuple):
    """A registered view of a table."""

    path: str
    #: The version that it shows: a fixed one, or the newest when it was last refreshed.
    version: int
    is_fixed: bool


_VIEWS: WeakKeyDictionary[Any, dict[str, View]] = WeakKeyDictionary()


def views_of(session: Session) -> dict[str, View]:
    """Return the registered views of a session by their names in lower case."""
    return _VIEWS.setdefault(session.spark, {})


def handle(session: Session, place: Place) -> DeltaTable:
    """Return a handle on the newest version of a table.

    Raises:
        TableNotFoundError: There is no table.
    """
    table = DeltaTable(place.uri, storage_options=place.options or None, time_zone=session.zone)
    opened = handle_of(table)
    opened.ansi, opened.dialect = session.is_ansi, Dialect.SPARK
    return table


def commit_of(session: Session) -> CommitProperties | None:
    """Return the session's commit properties for commands."""
    text = user_metadata(session)
    return None if text is None else CommitProperties(custom_metadata={"userMetadata": text})


def enforces_retention(session: Session) -> bool:
    """Return whether VACUUM refuses a shorter retention than the table's."""
    return str(session.conf(_RETENTION_CHECK, "true")).lower() != "false"


def allows_protocol_downgrade(session: Session) -> bool:
    """Return whether RESTORE in a session may lower the protocol of a table."""
    return str(session.conf(_PROTOCOL_DOWNGRADE, "false")).lower() == "true"


def place_of_name(session: Session, name: str) -> str | None:
    """Return the location of the Delta table that the session's catalog has under a name; None if it has none.

    Args:
        session: The session.
        name: The name in SQL syntax; for ``delta.`path` `` the path is returned, whether or not there is a table.
    """
    inside = path_in(name)
    if inside is not None:
        return inside
    if (whole := name_in_catalog(session, name)) is not None:
        return located(whole)
    facts = facts_of_name(session, name)
    return facts.get("Location") if facts.get("Provider", "").lower() == "delta" else None


def name_in_catalog(session: Session, name: str) -> str | None:
    """Return the whole name of a table of Unity Catalog, in SQL syntax; None for a name of the session's catalog.

    Args:
        session: The session.
        name: The name, which may leave out the current catalog and the current schema.
    """
    if not has_catalogs():
        return None
    if named(name) is not None:
        return name
    current = session.spark.catalog.currentCatalog()
    parts = [current] if name.count(".") else [current, session.spark.catalog.currentDatabase()]
    whole = ".".join([*parts, name.strip()])
    return whole if named(whole) is not None else None


def place_of_view(session: Session, name: str) -> str | None:
    """Return the location of the Delta table that a temporary view of a classic session selects completely, or None."""
    if not is_temporary(session, name):
        return None
    frame = session.spark.table(name)
    place = _shown(frame._jdf.queryExecution().analyzed())
    if place is None:
        return None
    names = [field.name for field in handle(session, place_of(session, place)).schema().fields]
    return place if names == frame.columns else None


def is_temporary(session: Session, name: str) -> bool:
    """Return whether a classic session has a temporary view of this name."""
    word = re.fullmatch(r"\s*`?(\w+)`?\s*", name)
    if session.is_connect or word is None:
        return False
    return not session.spark._jsparkSession.sessionState().catalog().getTempView(word[1]).isEmpty()


def _shown(plan: Any) -> str | None:
    """Return the location of the table that a plan only selects, renames and reorders columns of, or None."""
    while (class_name := plan.getClass().getSimpleName()) in ("SubqueryAlias", "View", "Project"):
        if class_name == "Project":
            chosen = plan.projectList()
            if not all(_is_column(chosen.apply(n)) for n in range(chosen.size())):
                return None
        plan = plan.child()
    if class_name != "LogicalRelation":
        return None
    relation = plan.relation()
    class_name = relation.getClass().getName()
    if class_name.startswith("io.deltafast.spark.") and class_name.endswith(".FrameRelation"):
        return relation.path()
    if class_name.endswith("HadoopFsRelation") or class_name.startswith("io.deltafast.spark."):
        index = relation.location()
        if index.getClass().getName().startswith("io.deltafast.spark."):
            return index.rootPaths().apply(0).toString()
    return None


def _is_column(chosen: Any) -> bool:
    """Return whether an expression is an unchanged column, possibly under another name."""
    if chosen.getClass().getSimpleName() == "Alias":
        name, chosen = chosen.name(), chosen.child()
        # A view casts columns to the types that they had when it was created.
        if chosen.getClass().getSimpleName() == "Cast":
            chosen = chosen.child()
        if chosen.getClass().getSimpleName() != "AttributeReference":
            return False
        return chosen.name() == name or chosen.name().startswith("col-")
    return chosen.getClass().getSimpleName() == "AttributeReference"


def others_provider(session: Session, name: str) -> str | None:
    """Return the format of a catalog table that is not a Delta table, else None."""
    provider = facts_of_name(session, name).get("Provider", "delta").lower()
    return None if provider == "delta" else provider


def facts_of_name(session: Session, name: str) -> dict[str, str]:
    """Return the session catalog's description of a table."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        # Checked first, since PySpark logs failed calls.
        if not session.spark.catalog.tableExists(name):
            return {}
        rows = session.run(f"{FROM_CATALOG}DESCRIBE TABLE EXTENDED {name}").collect()
    except (AnalysisException, ParseException):
        return {}
    facts = {str(row[0]): str(row[1]) for row in rows if row[1] is not None}
    return _said_of(session, name) if session.is_connect and "Provider" not in facts else facts


def _said_of(session: Session, name: str) -> dict[str, str]:
    """Return the catalog's description of a table that a Python data source reads, which DESCRIBE does not show."""
    database, _, table = name.rpartition(".")
    of = f" IN {database}" if database else ""
    rows = session.run(f"SHOW TABLE EXTENDED{of} LIKE '{table.strip('`').lower()}'").collect()
    lines = [line.partition(": ") for row in rows if not row.isTemporary for line in row.information.splitlines()]
    return {key: value for key, _, value in lines}


#: Sessions whose server keeps Delta tables in its catalog and cannot read them by name.
READ_BY_CLIENT: WeakSet[Any] = WeakSet()


def default_place(session: Session, name: str) -> str:
    """Return the location at which the session's catalog would create a table."""
    parts = name.rsplit(".", 1)
    table = parts[-1].strip("`")
    database = parts[0] if len(parts) > 1 else session.spark.catalog.currentDatabase()
    return f"{session.spark.catalog.getDatabase(database).locationUri.rstrip('/')}/{table.lower()}"


def takes_tables(session: Session) -> bool:
    """Return whether the session has a provider called `delta` that reads tables."""
    return session.is_connect or _format(session) is not None


def has_own_format(session: Session) -> bool:
    """Return whether the provider called `delta` in the session's Java is deltafast's, which `enable` registers."""
    kind = None if session.is_connect else _format(session)
    return kind is not None and str(kind.getName()).startswith("io.deltafast.spark.")


def _format(session: Session) -> Any:
    """Return the class of the provider called `delta`, or None."""
    try:
        conf = session.spark._jsparkSession.sessionState().conf()
        formats = session.jvm.org.apache.spark.sql.execution.datasources
        return formats.DataSource.lookupDataSource("delta", conf)
    except Exception:  # noqa: BLE001 - there is no such class, whatever the error
        return None


def put_into_catalog(session: Session, name: str, place: Place) -> None:
    """Register a table in the session's catalog, or in Unity Catalog.

    Raises:
        InvalidArgumentError: The session has no provider that reads the table.
    """
    from pyspark.errors import PySparkException

    if (found := named(name)) is not None:
        found.catalog.register(found.uri, DeltaTable(place.uri, storage_options=place.options or None))
        return
    path = place.hadoop.replace("\\", "\\\\").replace("'", "\\'")
    try:
        session.run(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{path}'")
        if has_own_format(session):
            # Spark has put the columns of today into the entry; the log has those of any day.
            _provider(session).forgetColumns(session.spark._jsparkSession, name)
    except PySparkException as error:
        message = (
            f"the table is at {place.hadoop}, but the session's catalog does not take it as {name}: "
            f"{str(error).splitlines()[0]}; use its path, or deltafast.spark.register_view"
        )
        raise InvalidArgumentError(message) from None


@contextmanager
def new_entry(
    session: Session, name: str | None, place: Place, managed: Callable[[], list[dict[str, Any]]] | None
) -> Generator[None]:
    """Register the table that the caller writes within this context in the session's catalog.

    Over Connect, a managed table is registered before it is written, because Spark accepts a managed table only at an
    empty location, and its DROP TABLE deletes the files of managed tables only. In a classic session, `enable` changes
    the entry afterwards.

    Args:
        session: The session.
        name: The table's name; None for a table that is not registered.
        place: Its location.
        managed: Returns the columns, in Delta's JSON, if the catalog chose the location and has no table of the name.

    Raises:
        InvalidArgumentError: The session has no provider that reads the table.
    """
    if name is None:
        yield
        return
    is_registered = session.is_connect and managed is not None and _register_managed(session, name, managed())
    try:
        yield
    except BaseException:
        if is_registered:
            session.run(f"DROP TABLE IF EXISTS {name}")
        raise
    if not is_registered:
        put_into_catalog(session, name, place)


def _register_managed(session: Session, name: str, fields: list[dict[str, Any]]) -> bool:
    """Register a managed table; False if its location is not empty."""
    from pyspark.errors import AnalysisException

    try:
        columns = spark_schema(field_of(field["name"], plain_type(field["type"])) for field in fields)
        session.run(f"CREATE TABLE {name} ({columns.toDDL()}) USING delta")
    except AnalysisException as error:
        if error.getCondition() == "LOCATION_ALREADY_EXISTS":
            return False
        raise
    return True


def become_delta(session: Session, name: str) -> None:
    """Change a table of Parquet files in the catalog of a classic session to a Delta table."""
    if not has_own_format(session):
        message = (
            f"the files of {name} are a Delta table now, but the catalog still has them as Parquet: drop the name, "
        )
        message += "and create it again USING delta LOCATION ..; enable(spark) does that itself"
        raise InvalidArgumentError(message)
    _provider(session).convertToDelta(session.spark._jsparkSession, name)


def _provider(session: Session) -> Any:
    """Return deltafast's format, as Java's object."""
    arguments = session.spark._sc._gateway.new_array(session.jvm.java.lang.Object, 0)
    return _format(session).getConstructors()[0].newInstance(arguments)
