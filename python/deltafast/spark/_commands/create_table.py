"""Creation of tables by builders and statements: their location, existing tables, and the catalog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast import _core
from deltafast._catalog.unity.table_name import SCHEME
from deltafast._expr.stored import table_to_store
from deltafast._util.write_modes import CREATE_MODES, CreateMode, as_select
from deltafast.exceptions import ErrorCode, InvalidArgumentError, TableNotFoundError
from deltafast.schema import Schema
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._commands.catalog import (
    commit_of,
    default_place,
    name_in_catalog,
    new_entry,
    others_provider,
    place_of_name,
    takes_tables,
)
from deltafast.spark._scan.physical_columns import check_names
from deltafast.spark._session.cached_rows import refresh_dependents
from deltafast.spark._session.storage import place_of, place_of_external
from deltafast.spark._session.unity_tables import located, named, named_at
from deltafast.spark._write.writer import defaults, write, write_as_select
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place
    from deltafast.spark._session.unity_tables import NamedTable

__all__ = ["NewTable", "create", "defaults_not_enabled", "place_of_new", "where"]


_MAPPING = "delta.columnmapping.mode"
_COLUMN_DEFAULTS = "delta.feature.allowcolumndefaults"


class NewTable(NamedTuple):
    """The definition of a new table."""

    mode: CreateMode
    path: str
    #: Its name in the session's catalog, or in Unity Catalog if its location is given.
    name: str | None
    #: In Delta's JSON; ignored if there are rows.
    fields: list[dict[str, Any]]
    partition: list[str]
    cluster: list[str]
    properties: dict[str, str]
    comment: str | None
    #: Whether the catalog chose the location, see `Where`.
    is_managed: bool

    @property
    def external(self) -> NamedTable | None:
        """Its name in Unity Catalog, if its location is given."""
        return None if self.name is None else named(self.name)


class Where(NamedTuple):
    """The location of a new table."""

    path: str
    #: Its name, if it is to be registered in the catalog.
    name: str | None
    #: Whether the catalog has no table of the name, and must store the location of this one.
    is_managed: bool


def where(session: Session, name: str | None, location: str | None) -> Where:
    """Return the location of a new table, and its name if it is to be registered in the catalog.

    Args:
        session: The session.
        name: Its name, or ``delta.`path` ``.
        location: Its path, in addition to the name or instead of it.

    Raises:
        InvalidArgumentError: Neither is given, they contradict each other, or the catalog cannot hold the table.
    """
    if name is None:
        if location is None:
            message = "the table needs a place: give tableName or location"
            raise InvalidArgumentError(message)
        return Where(location, None, is_managed=False)
    inside = path_in(name)
    if inside is not None:
        if location is not None and location != inside:
            message = f"the table is at {inside!r}, so the location cannot be {location!r}"
            raise InvalidArgumentError(message)
        return Where(inside, None, is_managed=False)
    if not takes_tables(session):
        message = (
            f"the session's catalog cannot hold the table {name}: nothing in it reads Delta tables; give only a "
            "location, and a name by deltafast.spark.register_view"
        )
        raise InvalidArgumentError(message)
    whole = name_in_catalog(session, name)
    if whole is not None:
        return _where_in_unity_catalog(session, whole, location)
    there = place_of_name(session, name)
    provider = None if there is not None else others_provider(session, name)
    if provider is not None:
        message = f"the session's catalog has a table {name} of the format {provider}: drop it, or take another name"
        raise InvalidArgumentError(message)
    path = location or there
    return Where(path or default_place(session, name), name, is_managed=path is None)


def _where_in_unity_catalog(session: Session, name: str, location: str | None) -> Where:
    """Return the location of a table of Unity Catalog; one that exists, or is to be managed, has its name there.

    Raises:
        InvalidArgumentError: The table exists at another location.
    """
    if location is not None:
        there = located(name)
        if there is None:
            return Where(location, name, is_managed=False)
        if named_at(place_of(session, location).hadoop) != named_at(there):
            message = f"the table {name} is at {there!r}, so its location cannot be {location!r}"
            raise InvalidArgumentError(message)
    return Where(f"{SCHEME}{name}", None, is_managed=False)


def place_of_new(session: Session, table: NewTable) -> Place:
    """Return the location of a new table, with the credentials with which it is created."""
    external = table.external
    return place_of(session, table.path) if external is None else place_of_external(session, table.path, external)


def create(session: Session, table: NewTable, rows: Any = None) -> Place:
    """Create a table.

    Args:
        session: The session.
        table: Its definition.
        rows: A data frame that provides its columns and rows.

    Returns:
        Its location; with `IF_NOT_EXISTS` the existing table may be unchanged.

    Raises:
        InvalidArgumentError: The table already exists, or a column or property is invalid.
        TableNotFoundError: There is no table to replace.
    """
    place = place_of_new(session, table)
    external = table.external
    is_there = DeltaTable.is_deltatable(place.uri, place.options or None)
    called = table.name or f"delta.`{table.path}`"
    if table.mode is CreateMode.CREATE and is_there:
        message = f"the table {called} already exists at {place.hadoop}; replace it, or create it if it does not exist"
        raise InvalidArgumentError(
            message, code=ErrorCode.CATALOG_TABLE_EXISTS, parameters={"table": called, "path": place.hadoop}
        )
    if not is_there and external is None and not place.uri.startswith(SCHEME):
        _check_empty(place)
    if table.mode is CreateMode.REPLACE and not is_there:
        message = f"the table {called} cannot be found, so it cannot be replaced; create or replace it"
        code = ErrorCode.CATALOG_TABLE_NOT_FOUND
        raise TableNotFoundError(message, path=table.path, code=code, parameters={"table": called})

    def columns() -> list[dict[str, Any]]:
        return table.fields if rows is None else rows.schema.jsonValue()["fields"]

    with new_entry(session, table.name, place, columns if table.is_managed else None):
        if is_there and table.mode is CreateMode.IF_NOT_EXISTS:
            rows = None
        elif rows is None:
            _create(session, place, table)
        elif external is not None or place.uri.startswith(SCHEME):
            _create_for(session, place, table, rows, is_there=is_there)
        else:
            write_as_select(
                rows,
                place,
                as_select(table.mode),
                partition_by=table.partition,
                cluster_by=table.cluster,
                description=table.comment,
                configuration=table.properties,
            )
            rows = None
    if external is not None:
        place = place_of(session, external.uri)
    if rows is not None:
        # Executors have credentials for the files of a table with a name.
        write(rows, place.uri, "append")
    return place


def defaults_not_enabled(column: str) -> InvalidArgumentError:
    """Return the error of a default in a table without the feature, which delta-spark never adds unasked."""
    message = (
        f"`{column}` gets a default, for which the table needs a feature: set the property "
        "'delta.feature.allowColumnDefaults' = 'supported'"
    )
    return InvalidArgumentError(message, code=ErrorCode.COLUMN_DEFAULTS_NOT_ENABLED, parameters={"column": column})


def _check_empty(place: Place) -> None:
    """Refuse to create a table among files that are not its own, as delta-spark does.

    Raises:
        InvalidArgumentError: The folder has files.
    """
    files, folders = _core.Files.open(place.uri, place.options or None).list("")
    if files or folders:
        message = f"there are files at {place.hadoop}, which are not those of a Delta table: take an empty folder, or "
        message += "CONVERT TO DELTA, if they are Parquet files"
        raise InvalidArgumentError(message, code=ErrorCode.LOCATION_NOT_EMPTY, parameters={"path": place.hadoop})


def _create_for(session: Session, place: Place, table: NewTable, rows: Any, *, is_there: bool) -> None:
    """Create a table of Unity Catalog for rows that are appended later.

    Raises:
        InvalidArgumentError: A table that exists would be replaced.
    """
    if is_there:
        message = f"{table.path} is not replaced by a query: its catalog has no such change; INSERT OVERWRITE does that"
        raise InvalidArgumentError(message)
    _create(session, place, table._replace(mode=CreateMode.CREATE, fields=rows.schema.jsonValue()["fields"]))


def _create(session: Session, place: Place, table: NewTable) -> None:
    if not table.fields:
        message = "the table would have no columns: give some, or a query"
        raise InvalidArgumentError(message)
    schema = {"type": "struct", "fields": table.fields}
    properties = defaults(session) | table.properties
    given = {key.lower(): value for key, value in properties.items()}
    names = [field["name"].lower() for field in table.fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        message = f"the column `{twice}` is given twice; names are compared without case"
        raise InvalidArgumentError(message, code=ErrorCode.DUPLICATE_FIELD_IN_SCHEMA, parameters={"column": twice})
    if _COLUMN_DEFAULTS not in given:
        for field in table.fields:
            if "CURRENT_DEFAULT" in (field.get("metadata") or {}):
                raise defaults_not_enabled(field["name"])
    if given.get(_MAPPING, "none") == "none":
        check_names(schema, lambda: None)
    # In Spark, double quotes enclose a string.
    text, stored = table_to_store(json.dumps(schema), properties, session.expression_context)
    DeltaTable.create(
        place.uri,
        Schema.from_json(text),
        CREATE_MODES[table.mode],
        partition_by=table.partition,
        description=table.comment,
        configuration=stored,
        storage_options=place.options or None,
        commit_properties=commit_of(session),
        cluster_by=table.cluster,
        time_zone=session.zone,
    )
    refresh_dependents(session, place.hadoop)
