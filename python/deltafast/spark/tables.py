"""`DeltaTable` of the Spark API: delta-spark's class, by its names, on the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._ops.alter import TableFeatures
from deltafast._sql import tree
from deltafast._sql.answers import counts
from deltafast._sql.reading import read_statement
from deltafast._sql.run_changes import rows_of, values_of
from deltafast._sql.run_tables import run_convert
from deltafast._sql.run_upkeep import run_describe, run_generate, run_restore, run_vacuum
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError
from deltafast.spark._scan.reader import followed
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark._sql import dml
from deltafast.spark._sql.argument_checks import check, check_clone, moment_of, parts_of, path_in, session_of
from deltafast.spark._sql.catalog import SparkTables, become_delta, handle, place_of_name
from deltafast.spark._sql.catalog_tables import of_catalog
from deltafast.spark._sql.column_to_sql import as_condition, as_values, sides_of
from deltafast.spark._sql.result_frames import answered, history_of, nothing
from deltafast.spark.building import DeltaTableBuilder
from deltafast.spark.exceptions import translated
from deltafast.spark.merging import DeltaMergeBuilder
from deltafast.spark.optimizing import DeltaOptimizeBuilder
from deltafast.table import DeltaTable as Handle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast.spark._session.storage import Place

__all__ = ["DeltaTable"]

_FEATURES = tuple(feature.value for feature in TableFeatures)

#: How records of statements call the table.
_TABLE = tree.TableName("table", by_path=False, pos=0)


class DeltaTable:
    """A Delta table of a Spark session, with the names, arguments and answers of delta-spark's class.

    Made by `forPath`, `forName`, `convertToDelta` and the builders. Every method speaks of the table's newest
    version. Conditions and values are SQL text or columns of PySpark. What is wrong is raised as in
    `deltafast.spark.exceptions`.
    """

    def __init__(
        self, session: Session, place: Place, table: Handle, alias: str | None = None, name: str | None = None
    ) -> None:
        self._session = session
        self._spark = session.spark
        self._place = place
        self._handle = table
        self._alias = alias
        self._name = name

    # --- where tables come from ------------------------------------------------------------------

    @classmethod
    @translated()
    def forPath(  # noqa: N802 - delta-spark's names
        cls,
        sparkSession: Any,  # noqa: N803
        path: str,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803
    ) -> DeltaTable:
        """The table at a path.

        Args:
            sparkSession: The session, classic or Connect.
            path: A path or URL (`s3a://`, `abfss://`, `gs://`).
            hadoopConf: Settings of Hadoop's file systems for this table (`fs.` and `dfs.`).

        Raises:
            TableNotFoundError: There is no table.
            InvalidArgumentError: A setting is none of a file system.
        """
        settings = dict(hadoopConf or {})
        for key in settings:
            if not key.startswith(("fs.", "dfs.")):
                message = f"hadoopConf takes settings of file systems (fs., dfs.) only, not {key!r}"
                raise InvalidArgumentError(message)
        session = Session(sparkSession, settings)
        place = place_of(session, path)
        return cls(session, place, handle(session, place))

    @classmethod
    @translated()
    def forName(cls, sparkSession: Any, tableOrViewName: str) -> DeltaTable:  # noqa: N802, N803
        """A table of the session's catalog, or ``delta.`path` ``.

        Raises:
            TableNotFoundError: The name is none of a Delta table.
        """
        session = Session(sparkSession)
        path = path_in(tableOrViewName) or place_of_name(session, tableOrViewName)
        if path is None:
            message = f"`{tableOrViewName}` is not a Delta table of the session's catalog; use DeltaTable.forPath"
            raise TableNotFoundError(message, path=tableOrViewName)
        place = place_of(session, path)
        return cls(session, place, handle(session, place), name=tableOrViewName)

    @classmethod
    @translated()
    def isDeltaTable(cls, sparkSession: Any, identifier: str) -> bool:  # noqa: N802, N803
        """Whether there is a table at a path, or ``delta.`path` ``."""
        place = place_of(Session(sparkSession), path_in(identifier) or identifier)
        return Handle.is_deltatable(place.uri, place.options or None)

    @classmethod
    @translated()
    def convertToDelta(  # noqa: N802
        cls,
        sparkSession: Any,  # noqa: N803
        identifier: str,
        partitionSchema: Any = None,  # noqa: N803
    ) -> DeltaTable:
        """Make a table of a folder of Parquet files, without writing any.

        Args:
            sparkSession: The session.
            identifier: ``parquet.`path` ``, or a table of Parquet files of the session's catalog.
            partitionSchema: The partition columns with their types, as DDL text or a `StructType`.

        Raises:
            InvalidArgumentError: The files cannot be converted, or the identifier is none.
        """
        session = Session(sparkSession)
        columns = partitionSchema
        if columns is not None and not isinstance(columns, str):
            columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in columns.fields)
        text = f"CONVERT TO DELTA {identifier}" + (f" PARTITIONED BY ({columns})" if columns else "")
        known = of_catalog(session, text)
        statement = read_statement(text if known is None else known.text, zone=session.zone)
        if not isinstance(statement, tree.Convert):
            message = f"{identifier!r} is no folder of Parquet files; write parquet.`path`"
            raise InvalidArgumentError(message)
        place = place_of(session, statement.place)
        converted = tree.Convert(place.uri, statement.statistics, statement.partition_by)
        tables = SparkTables(
            {}, place.options or None, SparkTables.of(session).commit_properties, session.zone, session=session
        )
        run_convert(converted, tables)
        if known is not None:
            become_delta(session, known.name)
        return cls(session, place, handle(session, place))

    @classmethod
    def create(cls, sparkSession: Any = None) -> DeltaTableBuilder:  # noqa: N803
        """A builder of a new table; it is an error where there is one."""
        return DeltaTableBuilder(session_of(sparkSession), "create", cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: Any = None) -> DeltaTableBuilder:  # noqa: N802, N803
        """A builder of a new table, which leaves one that is there as it is."""
        return DeltaTableBuilder(session_of(sparkSession), "if_not_exists", cls)

    @classmethod
    def replace(cls, sparkSession: Any = None) -> DeltaTableBuilder:  # noqa: N803
        """A builder of a table in the place of one that is there."""
        return DeltaTableBuilder(session_of(sparkSession), "replace", cls)

    @classmethod
    def createOrReplace(cls, sparkSession: Any = None) -> DeltaTableBuilder:  # noqa: N802, N803
        """A builder of a table, in the place of one if there is one."""
        return DeltaTableBuilder(session_of(sparkSession), "create_or_replace", cls)

    # --- rows ------------------------------------------------------------------------------------

    @translated()
    def toDF(self) -> Any:  # noqa: N802
        """The rows as a data frame, under the alias if there is one; each query sees the newest version."""
        frame = followed(self._spark, self._place.hadoop, storage_options=self._place.options)
        return frame if self._alias is None else frame.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:  # noqa: N803
        """The same table under a name, for conditions."""
        return DeltaTable(self._session, self._place, self._handle, aliasName, self._name)

    @translated()
    def delete(self, condition: Any = None) -> Any:
        """Delete the rows for which a condition is true; all rows without one.

        Returns:
            Nothing; on Connect a data frame with `num_affected_rows`, as in delta-spark.

        Raises:
            TypeError: The condition is neither text nor a column.
            InvalidArgumentError: The condition is wrong, or the table is append-only.
            CommitFailedError: Another writer changed the same rows meanwhile.
        """
        where = as_condition(condition)
        table = self._newest()
        wanted = tree.Delete(_TABLE, self._alias, None if where is None else tree.Expression(where, 0))
        figures = dml.delete(self._session, table, rows_of(wanted, table), self._tables().commit_properties)
        return self._affected(figures["num_deleted_rows"])

    @translated()
    def update(self, condition: Any = None, set: Any = None) -> Any:  # noqa: A002
        """Give columns other values in the rows for which a condition is true; in all rows without one.

        Args:
            condition: SQL text or a column.
            set: New values, SQL text or columns, by column.

        Returns:
            Nothing; on Connect a data frame with `num_affected_rows`, as in delta-spark.

        Raises:
            ValueError: `set` is missing.
            TypeError: An argument is neither text nor a column.
            InvalidArgumentError: A column or an expression is wrong, or the table is append-only.
            ConstraintViolatedError: A new value breaks a constraint.
            CommitFailedError: Another writer changed the same rows meanwhile.
        """
        values, where = as_values(set), as_condition(condition)
        table = self._newest()
        known = [field.name for field in table.schema().fields]
        assignments = tuple(
            tree.Assignment((name,) if name in known else parts_of(name, self._session.zone), tree.Expression(text, 0))
            for name, text in values.items()
        )
        wanted = tree.Update(_TABLE, self._alias, assignments, None if where is None else tree.Expression(where, 0))
        commit = self._tables().commit_properties
        figures = dml.update(self._session, table, values_of(wanted, table), rows_of(wanted, table), commit)
        return self._affected(figures["num_updated_rows"])

    def merge(self, source: Any, condition: Any) -> DeltaMergeBuilder:
        """Match rows of a data frame with rows of the table; the builder takes what is done with them.

        Args:
            source: The data frame; its alias is how conditions call it.
            condition: SQL text or a column, over both sides.

        Raises:
            ValueError: An argument is missing.
            TypeError: The source is no data frame, or the condition neither text nor a column.
        """
        from pyspark.sql import DataFrame

        if source is None:
            message = "'source' in merge cannot be None"
            raise ValueError(message)
        if not isinstance(source, DataFrame):
            message = "Type of 'source' in merge must be DataFrame."
            raise TypeError(message)
        if condition is None:
            message = "'condition' in merge cannot be None"
            raise ValueError(message)
        with translated():
            sides = sides_of(source, self._alias)
            on = as_condition(condition, sides)
        return DeltaMergeBuilder(self, source, sides, str(on))

    # --- what is known of the table --------------------------------------------------------------

    @translated()
    def history(self, limit: int | None = None) -> Any:
        """What was done to the table, newest first, as a data frame with delta-spark's columns."""
        return history_of(self._session, self._place, self._newest(), limit)

    @translated()
    def detail(self) -> Any:
        """The facts of DESCRIBE DETAIL as a data frame with one row."""
        target = (
            _TABLE if self._name is None or path_in(self._name) else tree.TableName(self._name, by_path=False, pos=0)
        )
        tables = self._tables() if target is _TABLE else SparkTables.of(self._session)
        return answered(self._session, run_describe(tree.Describe(target, "detail"), tables))

    # --- upkeep ----------------------------------------------------------------------------------

    @translated()
    def vacuum(self, retentionHours: float | None = None) -> Any:  # noqa: N803
        """Delete files that no version in the time of retention needs.

        Args:
            retentionHours: Hours; the table's `delta.deletedFileRetentionDuration` (168) if None. Fewer are refused
                unless `spark.databricks.delta.retentionDurationCheck.enabled` is false.

        Returns:
            An empty data frame.
        """
        wanted = tree.Vacuum(_TABLE, lite=False, hours=retentionHours, dry_run=False, inventory=None)
        run_vacuum(wanted, self._tables())
        return nothing(self._session)

    @translated()
    def optimize(self) -> DeltaOptimizeBuilder:
        """A builder that lays files out anew."""
        return DeltaOptimizeBuilder(self)

    @translated()
    def generate(self, mode: str) -> None:
        """Write symlink manifests for readers without Delta; the mode is `symlink_format_manifest`.

        Raises:
            InvalidArgumentError: There is no such mode.
        """
        if str(mode).lower() != "symlink_format_manifest":
            message = f"there is no mode {mode!r} of GENERATE; there is symlink_format_manifest"
            raise InvalidArgumentError(message)
        run_generate(tree.Generate(_TABLE), self._tables())

    @translated()
    def restoreToVersion(self, version: int) -> Any:  # noqa: N802
        """Make a new version that is like an older one; its figures as a data frame."""
        check(version, "version", int)
        return self._restored(tree.TimeTravel(version=version))

    @translated()
    def restoreToTimestamp(self, timestamp: str) -> Any:  # noqa: N802
        """Make a new version like the one that was current at a moment, `yyyy-MM-dd` or `yyyy-MM-dd HH:mm:ss`."""
        check(timestamp, "timestamp", str)
        return self._restored(moment_of(timestamp, self._session.zone))

    @translated()
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:  # noqa: N802, N803
        """Raise the protocol's versions; one that is not higher than the table's stays, as in delta-spark.

        Raises:
            ValueError: A version is no number.
            InvalidArgumentError: There is no such version.
        """
        for value, name in ((readerVersion, "readerVersion"), (writerVersion, "writerVersion")):
            if not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
                message = f"The {name} needs to be an integer but got '{type(value)}'."
                raise ValueError(message)  # noqa: TRY004 - as delta-spark
        table, commit = self._newest(), self._tables().commit_properties
        now = table.protocol()
        if readerVersion <= now.min_reader_version and writerVersion <= now.min_writer_version:
            return
        readerVersion = max(readerVersion, now.min_reader_version)  # noqa: N806
        writerVersion = max(writerVersion, now.min_writer_version)  # noqa: N806
        versions = {"delta.minReaderVersion": str(readerVersion), "delta.minWriterVersion": str(writerVersion)}
        table.alter.set_table_properties(versions, commit_properties=commit)

    @translated()
    def addFeatureSupport(self, featureName: str) -> None:  # noqa: N802, N803
        """Make the table support a feature, raising the protocol's versions where it must be."""
        check(featureName, "featureName", str)
        commit = self._tables().commit_properties
        self._newest().alter.add_feature(featureName, allow_protocol_versions_increase=True, commit_properties=commit)

    @translated()
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:  # noqa: N802, N803
        """Make the table do without a feature; see `TableAlterer.drop_feature`."""
        check(featureName, "featureName", str)
        if truncateHistory is not None:
            check(truncateHistory, "truncateHistory", bool)
        table, commit = self._newest(), self._tables().commit_properties
        supported = table.protocol().writer_features or ()
        if featureName.lower() not in {str(name).lower() for name in (*_FEATURES, *supported)}:
            message = f"deltafast knows no table feature `{featureName}`, so the table has nothing of it to drop"
            raise InvalidArgumentError(message)
        table.alter.drop_feature(featureName, bool(truncateHistory), commit_properties=commit)

    # --- clones ----------------------------------------------------------------------------------

    def clone(
        self,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Make a table at a path that shares the files of the newest version.

        Args:
            target: The path of the new table.
            isShallow: Must be true: nothing is copied.
            replace: Let a table at the path become the clone, if it has no rows.
            properties: Properties of the new table, beside this one's.

        Raises:
            UnsupportedExpressionError: A deep clone is asked for.
            InvalidArgumentError: There is a table at the path, or one with rows that was to be replaced.
        """
        return self._cloned(None, target, isShallow, replace, properties)

    def cloneAtVersion(  # noqa: N802
        self,
        version: int,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of an older version."""
        check(version, "version", int)
        return self._cloned(tree.TimeTravel(version=version), target, isShallow, replace, properties)

    def cloneAtTimestamp(  # noqa: N802
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of the version that was current at a moment."""
        check(timestamp, "timestamp", str)
        with translated():
            at = moment_of(timestamp, self._session.zone)
        return self._cloned(at, target, isShallow, replace, properties)

    @translated()
    def _cloned(
        self,
        at: tree.TimeTravel | None,
        target: str,
        is_shallow: bool,
        replace: bool,
        properties: Mapping[str, str] | None,
    ) -> DeltaTable:
        check_clone(target, is_shallow, replace, properties)
        if not is_shallow:
            message = "a deep clone is not supported; clone with isShallow=True, or write toDF() there"
            raise UnsupportedExpressionError(message)
        place = place_of(self._session, target)
        table = self._newest()
        if at is not None:
            table = table._pinned()
            table.load_as_version(self._tables().at(at))
        commit = self._tables().commit_properties
        made = table.clone(
            place.uri,
            properties=properties,
            replace=replace,
            storage_options=place.options or None,
            commit_properties=commit,
        )
        return DeltaTable(self._session, place, made)

    # --- helpers ---------------------------------------------------------------------------------

    def _newest(self) -> Handle:
        """The handle, moved to the newest version."""
        self._handle.update_incremental()
        return self._handle

    def _tables(self) -> SparkTables:
        """What records of statements are run with."""
        return SparkTables.of(self._session, {_TABLE.name: self._newest()})

    def _affected(self, rows: int | None) -> Any:
        if not self._session.is_connect:
            return None
        return answered(self._session, counts(num_affected_rows=rows))

    def _restored(self, at: tree.TimeTravel) -> Any:
        return answered(self._session, run_restore(tree.Restore(_TABLE, at), self._tables()))
