"""`enable`: unchanged programs for delta-spark run on deltafast.

`provider` implements the format `delta`. While it is enabled, PySpark's own classes are patched for what a Spark format
cannot do: streams, existing tables of the catalog, statements of Delta's SQL, and the modules `delta.tables` and
`delta.exceptions`. `disable` reverts everything.
"""

from __future__ import annotations

import importlib
import re
import sys
import threading
from functools import update_wrapper
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast.exceptions import InvalidArgumentError, warn
from deltafast.spark._commands.argument_checks import path_in
from deltafast.spark._commands.catalog import READ_BY_CLIENT, place_of_name
from deltafast.spark._conditions import Operation
from deltafast.spark._enable.dataframe_writer import note_of
from deltafast.spark._enable.provider import (
    READ,
    DeltasJarError,
    Provider,
    forget_deltas_catalog,
    known_options,
    known_to_delta,
    read_frame,
)
from deltafast.spark._enable.statement_handler import is_of_the_catalog, managing, run_statement
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark._streaming.source_sink import register
from deltafast.spark.exceptions import conflict_from_java, translated
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec

    from deltafast._catalog.unity.client import UnityCatalog
    from deltafast.spark._enable.connect import ConnectProvider

__all__ = ["disable", "enable", "enable_once"]

#: delta-spark's package, and the files that provide it here.
_PACKAGE: Final = "delta"
_FILES: Final = Path(__file__).parents[1] / "_delta" / "served"

_CHANGES: Final = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|MERGE|CREATE\s+(?:OR\s+REPLACE\s+)?TABLE)\b", re.IGNORECASE)


class _Enabled:
    """The patches of this process, and the original methods."""

    def __init__(self, provider: Provider | ConnectProvider) -> None:
        self.provider = provider
        self._methods: list[tuple[Any, str, Any]] = []
        #: The modules of the name `delta` that were imported before; None if they are used.
        self._modules: dict[str, ModuleType] | None = None

    def put(self, kind: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a method of a class, or a function of a module, by the result of a function that gets PySpark's."""
        before = getattr(kind, name)
        after = update_wrapper(make(before), before)
        self._methods.append((kind, name, before))
        setattr(kind, name, after)

    def put_modules(self) -> None:
        """Provide the package `delta`, unless the installed one is deltafast's already."""
        found = sys.modules.get(_PACKAGE) or find_spec(_PACKAGE)
        if found is None or not _is_ours(found):
            self._modules = _taken(_PACKAGE)
            spec = spec_from_file_location(_PACKAGE, _FILES / "__init__.py", submodule_search_locations=[str(_FILES)])
            package = module_from_spec(cast("ModuleSpec", spec))
            sys.modules[_PACKAGE] = package
            cast("Any", spec).loader.exec_module(package)

    def take_back(self) -> None:
        """Restore everything."""
        for kind, name, before in reversed(self._methods):
            setattr(kind, name, before)
        if self._modules is not None:
            _taken(_PACKAGE)
            sys.modules.update(self._modules)
        self.provider.end()

    def belongs_to(self, spark: Any) -> bool:
        """Return whether the format is that of this session's driver, or server."""
        return self.provider.belongs_to(spark)

    def statement(self, before: Any) -> Any:
        """Patch `SparkSession.sql` for parameters and frames, which its parser does not pass to Python, and Connect."""
        provider = self.provider

        def sql(spark: Any, sqlQuery: Any, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803 - PySpark's name
            if kwargs:
                return self._formatted(before, spark, sqlQuery, args, kwargs)
            provider.include(spark)
            if (provider.parses and not args) or is_of_the_catalog(str(sqlQuery)):
                return before(spark, sqlQuery, args)
            provider.forget(spark)
            return run_statement(provider, spark, sqlQuery, args)

        return sql

    def _formatted(self, before: Any, spark: Any, text: Any, args: Any, given: dict[str, Any]) -> Any:
        """Format a statement with frames and values in braces as PySpark does, with frames as temporary views."""
        package = "pyspark.sql.connect" if Session(spark).is_connect else "pyspark.sql"
        # Over Connect queries run later, when the views would no longer exist.
        if package != "pyspark.sql" and not _CHANGES.match(str(text)):
            return before(spark, text, args, **given)
        formatter = importlib.import_module(f"{package}.sql_formatter").SQLStringFormatter(spark)
        try:
            whole = formatter.format(text, **given)
            for frame, name in formatter._temp_views:
                frame.createOrReplaceTempView(name)
            return spark.sql(whole, args)
        finally:
            for _, name in formatter._temp_views:
                spark.catalog.dropTempView(name)

    def execute(self, before: Any) -> Any:
        """Patch a table builder's `execute`: a table without a location is managed by the catalog."""

        def execute(builder: Any) -> Any:
            spark, name = builder._session.spark, builder._name if builder._location is None else None
            with managing(self.provider, spark, name):
                return before(builder)

        return execute

    def table(self, before: Any) -> Any:
        """Patch methods that read a table by name or path: at its newest version, or according to options."""

        def table(reader: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
            from pyspark.sql import SparkSession

            is_session = isinstance(reader, SparkSession)
            spark = reader if is_session else reader._spark
            given = {} if is_session else note_of(reader).options
            self.provider.forget(spark)
            there = path_in(tableName)
            if there is None and known_options(given, READ):
                there = place_of_name(Session(spark), tableName)
            return (
                before(reader, tableName)
                if there is None
                else translated(Operation.RELATION)(read_frame)(spark, given | {"path": there})
            )

        return table

    def table_exists(self, before: Any) -> Any:
        """Patch `spark.catalog.tableExists`, which does not support paths."""

        def table_exists(catalog: Any, tableName: str, dbName: str | None = None) -> bool:  # noqa: N803
            path = path_in(tableName) if dbName is None else None
            if path is None:
                return before(catalog, tableName, dbName)
            place = place_of(Session(catalog._sparkSession), path)
            return DeltaTable.is_deltatable(place.uri, place.options or None)

        return table_exists

    def create_table(self, before: Any) -> Any:
        """Patch `spark.catalog.createTable`, which would only add an entry to the catalog."""

        def create_table(
            catalog: Any,
            tableName: str,  # noqa: N803
            path: str | None = None,
            source: str | None = None,
            schema: Any = None,
            description: str | None = None,
            **options: str,
        ) -> Any:
            spark = catalog._sparkSession
            form = source or spark.conf.get("spark.sql.sources.default")
            if schema is None or str(form).lower() != "delta":
                return before(catalog, tableName, path, source, schema, description, **options)
            from deltafast.spark.tables import DeltaTable as Table

            builder = Table.create(spark).tableName(tableName).addColumns(schema)
            builder = builder if path is None else builder.location(path)
            (builder if description is None else builder.comment(description)).execute()
            return spark.table(tableName)

        return create_table

    def new_session(self, before: Any) -> Any:
        """Patch `newSession`, whose result has the settings with which the driver was started."""

        def new_session(spark: Any) -> Any:
            made = before(spark)
            self.provider.include(made)
            return made

        return new_session


def _taken(package: str) -> dict[str, ModuleType]:
    """Remove a package and its modules from the imported ones, and return them."""
    names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    return {name: sys.modules.pop(name) for name in names}


def _is_ours(package: ModuleType | ModuleSpec) -> bool:
    """Return whether the package `delta` is that of `compat/delta-spark/`."""
    if isinstance(package, ModuleType):
        return getattr(package, "__served_by__", None) == "deltafast"
    try:
        return package.origin is not None and '__served_by__ = "deltafast"' in Path(package.origin).read_text("utf-8")
    except OSError:
        return False


_now: _Enabled | None = None


#: Held while a session is enabled, which creates sessions itself.
_ENABLING: Final = threading.RLock()
_STATE: Final = {"is enabling": False}


def enable_once(spark: Any) -> None:
    """Call `enable` for a session that is not enabled yet; a warning reports that Delta's own jar is in it."""
    with _ENABLING:
        if _STATE["is enabling"] or (_now is not None and _now.belongs_to(spark)):
            return
        _STATE["is enabling"] = True
        try:
            enable(spark)
        except DeltasJarError as error:
            warn(f"the session stays delta-spark's: {error}")
        finally:
            _STATE["is enabling"] = False


def enable(spark: Any, *, catalogs: Mapping[str, UnityCatalog] | None = None) -> None:
    """Run this process' programs for delta-spark on deltafast, unchanged.

    From now on deltafast implements `spark.read.format("delta")`, `frame.write.format("delta")`, `saveAsTable`,
    `insertInto`, `USING delta` in SQL, `readStream` and `writeStream` with `format("delta")`, `writeTo`, and
    `from delta.tables import DeltaTable`, with Spark's own Parquet reader and writer.

    Args:
        spark: The session, without Delta's jar; settings that name its extension and catalog may remain. Other
            sessions of the same process are enabled, too; over Connect the server's SQL supports the format in this
            session only.
        catalogs: Servers of Unity Catalog by the names of their catalogs: `catalog.schema.table` is then read and
            changed in SQL and by `spark.table`. For classic sessions. Settings may name them as well:
            `spark.sql.catalog.NAME=io.deltafast.spark.UnityCatalog`, `spark.sql.catalog.NAME.uri` and `.token`.

    Raises:
        InvalidArgumentError: Delta's own jar is in the session or on the server, or this Spark does not accept the
            format.

    Examples:
        >>> import deltafast.spark
        >>> deltafast.spark.enable(spark)                                   # doctest: +SKIP
        >>> spark.range(3).write.format("delta").save("/data/numbers")      # doctest: +SKIP
    """
    global _now  # noqa: PLW0603 - PySpark's classes are global, too
    session = Session(spark)
    if not session.is_connect and known_to_delta(session):
        message = (
            "Delta's own jar is in this session, so format('delta') is delta-spark's: leave it out of spark.jars and "
            "spark.jars.packages, or use deltafast.spark.read and write alongside it"
        )
        raise DeltasJarError(message)
    provider = _connect_provider(session) if session.is_connect else None
    if _now is not None:
        _now.take_back()
        _now = None
    if catalogs and provider is not None:
        message = "catalogs= is for classic sessions: over Connect the server has the catalogs"
        raise InvalidArgumentError(message)
    enabled = _on_classic(session) if provider is None else _on_connect(provider)
    from deltafast.spark.tables import DeltaTableBuilder

    if session.is_connect:
        # In a classic session this starts a Python process, for a second; programs for delta-spark do not need it.
        register(spark)
    enabled.put(type(spark), "sql", enabled.statement)
    enabled.put(DeltaTableBuilder, "execute", enabled.execute)
    enabled.put_modules()
    _now = enabled
    if isinstance(enabled.provider, Provider):
        enabled.provider.put_catalogs(catalogs or {})
    # Last, since a warning may be an error.
    from deltafast.spark._enable.ignored_settings import warn_of_settings

    warn_of_settings(session)


def _on_classic(session: Session) -> _Enabled:
    """Register the format in the driver's Java, and patch what it cannot do."""
    provider = Provider(session)
    enabled = _Enabled(provider)
    from pyspark.errors.exceptions import captured
    from pyspark.sql import DataFrameReader, DataFrameWriterV2, SparkSession
    from pyspark.sql.catalog import Catalog
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.conf import RuntimeConfig

    from deltafast.spark._enable import dataframe_writer, dataframe_writer_v2, ignored_settings, merge_into, streams

    enabled.put(SparkSession, "table", enabled.table)
    enabled.put(DataFrameReader, "table", enabled.table)
    enabled.put(Catalog, "tableExists", enabled.table_exists)
    enabled.put(Catalog, "createTable", enabled.create_table)
    enabled.put(SparkSession, "newSession", enabled.new_session)
    enabled.put(captured, "convert_exception", lambda before: _converting(before, provider))
    dataframe_writer.put(enabled.put)
    streams.put(enabled.put)
    merge_into.put(enabled.put, DataFrame)
    ignored_settings.put(enabled.put, RuntimeConfig)
    dataframe_writer_v2.put(enabled.put, DataFrameWriterV2, lambda writer: writer._df, enabled.provider.manage)
    return enabled


def _connect_provider(session: Session) -> ConnectProvider:
    """Register a Python data source on the server."""
    from deltafast.spark._enable.connect import ConnectProvider

    forget_deltas_catalog(session)
    return ConnectProvider(session)


def _on_connect(provider: ConnectProvider) -> _Enabled:
    """Patch the format into the client's Python."""
    from pyspark.sql.connect.catalog import Catalog
    from pyspark.sql.connect.conf import RuntimeConf
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.readwriter import DataFrameWriterV2

    from deltafast.spark._enable import connect, connect_streams, dataframe_writer_v2, ignored_settings, merge_into

    enabled = _Enabled(provider)
    connect.put(enabled.put)
    enabled.put(Catalog, "tableExists", enabled.table_exists)
    enabled.put(Catalog, "createTable", enabled.create_table)
    connect_streams.put(enabled.put)
    merge_into.put(enabled.put, DataFrame)
    ignored_settings.put(enabled.put, RuntimeConf)
    dataframe_writer_v2.put(enabled.put, DataFrameWriterV2, connect.frame_of, enabled.provider.manage)
    return enabled


def _converting(before: Any, provider: Provider) -> Any:
    """Patch the conversion of Java's exceptions: those of deltafast become classes of `deltafast.spark.exceptions`."""

    def convert_exception(error: Any) -> Any:
        text = str(error.toString())
        found = conflict_from_java(text) or provider.failure(text.partition(": ")[2])
        return before(error) if found is None else found

    return convert_exception


def disable(spark: Any) -> None:
    """Revert `enable`; does nothing if it was not called.

    Args:
        spark: The session.

    Examples:
        >>> import deltafast.spark
        >>> deltafast.spark.disable(spark)
    """
    global _now  # noqa: PLW0603 - see `enable`
    Session(spark)
    if _now is not None:
        _now.take_back()
        _now = None
    READ_BY_CLIENT.clear()
