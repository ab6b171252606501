"""PySpark's `writeTo` while deltafast is enabled: tables of the catalog, and ``delta.`path` ``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from deltafast._expr.parser import parse
from deltafast._expr.syntax import Name
from deltafast._expr.syntax_sql import sql_text
from deltafast._util.dialect import Dialect
from deltafast._util.write_modes import CreateMode, WriteMode
from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._commands.catalog import place_of_name
from deltafast.spark._commands.column_syntax import as_condition
from deltafast.spark._commands.create_table import NewTable, create, where
from deltafast.spark._conditions import Operation
from deltafast.spark._enable.dataframe_writer import text_of
from deltafast.spark._enable.provider import properties_in, write_frame
from deltafast.spark._session.session import Session
from deltafast.spark.exceptions import translated

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._expr.syntax import Syntax
    from deltafast.spark._enable.dataframe_writer import Replace

__all__ = ["put"]

_KEY = "_deltafast_arguments"
_RECORDED = ("using", "option", "options", "tableProperty", "partitionedBy", "clusterBy")
_MAKES = {
    "create": CreateMode.CREATE,
    "replace": CreateMode.REPLACE,
    "createOrReplace": CreateMode.CREATE_OR_REPLACE,
}
_QUOTED = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


class _WriterArguments:
    """The arguments of a writer's methods, which PySpark passes only to Java, or to the server."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.provider: str | None = None
        self.options: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        self.partition: list[str] = []
        self.cluster: list[str] = []

    def is_delta(self, spark: Any) -> bool:
        """Return whether a new table would be a Delta table."""
        provider = self.provider or spark.conf.get("spark.sql.sources.default", "parquet")
        return path_in(self.table) is not None or provider.lower() == "delta"

    def location(self) -> str | None:
        """The location of a new table, if it is given."""
        given = {key.lower(): value for key, value in self.options.items()}
        return given.get("path", given.get("location"))


def put(replace: Replace, kind: Any, frame_of: Callable[[Any], Any], manage: Callable[[Any, str], None]) -> None:
    """Patch the methods.

    Args:
        replace: Replaces a method of a class.
        kind: The class that `writeTo` returns.
        frame_of: Returns the rows of such a writer.
        manage: Makes a new table of the catalog a managed one.
    """
    replace(kind, "__init__", _init)
    for name in _RECORDED:
        # PySpark 4.0 does not have all of them.
        if hasattr(kind, name):
            replace(kind, name, _recording(name))
    for name, mode in _MAKES.items():
        replace(kind, name, _making(mode, frame_of, manage))
    for name in ("append", "overwrite", "overwritePartitions"):
        replace(kind, name, _writing(name, frame_of))


def _init(before: Any) -> Any:
    def init(writer: Any, rows: Any, *arguments: Any, **named: Any) -> None:
        before(writer, rows, *arguments, **named)
        # Classic: a frame and the name; Connect: a plan, the session and the name.
        table = named.get("table", next((value for value in arguments if isinstance(value, str)), ""))
        setattr(writer, _KEY, _WriterArguments(table))

    return init


def _arguments_of(writer: Any) -> _WriterArguments | None:
    """Return the recorded arguments of a writer; None for one that was created before deltafast was enabled."""
    return getattr(writer, _KEY, None)


def _recording(name: str) -> Callable[[Any], Any]:
    def make(before: Any) -> Any:
        def method(writer: Any, *values: Any, **named: Any) -> Any:
            recorded = _arguments_of(writer)
            if recorded is None:
                return before(writer, *values, **named)
            given = [*values, *named.values()]
            match name:
                case "using":
                    recorded.provider = str(given[0])
                case "option":
                    recorded.options[str(given[0])] = text_of(given[1])
                case "options":
                    recorded.options |= {key: text_of(value) for key, value in named.items()}
                case "tableProperty":
                    recorded.properties[str(given[0])] = text_of(given[1])
                case "partitionedBy":
                    recorded.partition = [_column(column, Session(writer._spark)) for column in given]
                case _:
                    recorded.cluster = [str(column) for column in given]
            return before(writer, *values, **named)

        return method

    return make


def _column(column: Any, session: Session) -> str:
    if isinstance(column, str):
        expression: str | Syntax = column
        found = _QUOTED.fullmatch(column)
        parts = None if found is None else [str(found[2] or found[1].replace("``", "`"))]
    else:
        expression = parse(as_condition(column, session, what="'partitionedBy'") or "", dialect=Dialect.SPARK)
        parts = expression.parts if isinstance(expression, Name) else None
    if parts is None or len(parts) != 1:
        message = f"a Delta table is partitioned by columns, not by {sql_text(expression)}: generate a column of it"
        raise InvalidArgumentError(message)
    return parts[0]


def _making(
    mode: CreateMode, frame_of: Callable[[Any], Any], manage: Callable[[Any, str], None]
) -> Callable[[Any], Any]:
    def make(before: Any) -> Any:
        @translated(Operation.WRITE)
        def method(writer: Any) -> None:
            recorded, spark = _arguments_of(writer), writer._spark
            if recorded is None or not recorded.is_delta(spark):
                before(writer)
                return
            session = Session(spark)
            path, name, is_managed = where(session, recorded.table, recorded.location())
            properties, partition, cluster = (
                properties_in(recorded.options) | recorded.properties,
                recorded.partition,
                recorded.cluster,
            )
            table = NewTable(mode, path, name, [], partition, cluster, properties, None, is_managed)
            create(session, table, frame_of(writer))
            if is_managed:
                manage(spark, str(name))

        return method

    return make


def _writing(name: str, frame_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def make(before: Any) -> Any:
        @translated(Operation.WRITE)
        def method(writer: Any, *arguments: Any) -> None:
            recorded = _arguments_of(writer)
            path = recorded and (path_in(recorded.table) or place_of_name(Session(writer._spark), recorded.table))
            if recorded is None or path is None:
                before(writer, *arguments)
                return
            options: dict[str, Any] = recorded.options | {"path": path}
            if name == "overwrite":
                (condition,) = arguments
                where = as_condition(condition, Session(writer._spark)) or ""
                # As in delta-spark, an overwrite of all rows is one without a condition.
                if sql_text(where).strip("()").lower() != "true":
                    options["replaceWhere"] = where
            elif name == "overwritePartitions":
                options["partitionOverwriteMode"] = "dynamic"
            write_frame(frame_of(writer), WriteMode.APPEND if name == "append" else WriteMode.OVERWRITE, options)

        return method

    return make
