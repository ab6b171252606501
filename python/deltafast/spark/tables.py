"""`DeltaTable` of the Spark API and its builders: delta-spark's classes, by their names, on the core."""

# The builders access private members of their table.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltafast._delta_keys import (
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
)
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.stored import with_single_quotes
from deltafast._handle import handle_of
from deltafast._ops.alter import TableFeatures
from deltafast._ops.merge_clause import ClauseKind, MergeAction, MergeClause
from deltafast._sql import tree
from deltafast._sql.answers import counts
from deltafast._sql.reading import read_statement
from deltafast._sql.run_changes import add_value, assigned_path, check_order, merged, qualifiers, without_alias
from deltafast._sql.run_describe import run_describe
from deltafast._sql.run_maintenance import run_generate, run_optimize, run_restore, run_vacuum
from deltafast._sql.run_tables import run_convert
from deltafast._util.write_modes import CreateMode
from deltafast.exceptions import ErrorCode, InvalidArgumentError, TableNotFoundError
from deltafast.spark._commands import create_table, dml
from deltafast.spark._commands.argument_checks import (
    check,
    check_clone,
    columns_of,
    parts_of,
    path_in,
    refuse,
    session_of,
    time_travel_to,
)
from deltafast.spark._commands.catalog import become_delta, handle, place_of_name
from deltafast.spark._commands.catalog_tables import of_catalog
from deltafast.spark._commands.column_syntax import as_condition, as_values, sides_of
from deltafast.spark._commands.java_builder import JavaTableBuilder
from deltafast.spark._commands.result_frames import answered, history_of, nothing
from deltafast.spark._commands.session_tables import SparkTables
from deltafast.spark._conditions import Operation
from deltafast.spark._scan.physical_columns import field_of
from deltafast.spark._scan.reader import followed
from deltafast.spark._session.cached_rows import refresh_dependents
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark.exceptions import UnsupportedTypeException, translated
from deltafast.table import DeltaTable as Handle
from deltafast.table import pinned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._expr.syntax import Syntax
    from deltafast.spark._commands.column_syntax import Sides
    from deltafast.spark._session.storage import Place

__all__ = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]

_FEATURES = tuple(feature.value for feature in TableFeatures)

#: The name of the table in parsed statements.
_TABLE = tree.TableName("table", by_path=False, pos=0)


class DeltaTable:
    """A Delta table of a Spark session, with the names, arguments and results of delta-spark's class.

    Created by `forPath`, `forName`, `convertToDelta` and the builders. Every method refers to the table's newest
    version. Conditions and values are SQL strings or columns of PySpark. Errors are raised as the classes of
    `deltafast.spark.exceptions`.

    Examples:
        >>> from deltafast.spark import DeltaTable
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> table = DeltaTable.forPath(spark, "cities")
        >>> table.delete("id = 1")
        >>> table.toDF().count()
        2
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

    # --- creation --------------------------------------------------------------------------------

    @classmethod
    @translated()
    def forPath(  # noqa: N802 - delta-spark's names
        cls,
        sparkSession: Any,  # noqa: N803
        path: str,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803
    ) -> DeltaTable:
        """Return the table at a path.

        Args:
            sparkSession: The session, classic or Connect.
            path: A path or URL (`s3a://`, `abfss://`, `gs://`).
            hadoopConf: Settings of Hadoop's file systems for this table (`fs.` and `dfs.`).

        Raises:
            TableNotFoundError: There is no table.
            InvalidArgumentError: A setting is not one of a file system.
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
        """Return a table of the session's catalog, or of ``delta.`path` ``.

        Raises:
            TableNotFoundError: The name is not that of a Delta table.
        """
        session = Session(sparkSession)
        path = path_in(tableOrViewName) or place_of_name(session, tableOrViewName)
        if path is None:
            message = f"`{tableOrViewName}` is not a Delta table of the session's catalog; use DeltaTable.forPath"
            raise TableNotFoundError(
                message, path=tableOrViewName, code=ErrorCode.NOT_A_CATALOG_TABLE, parameters={"table": tableOrViewName}
            )
        place = place_of(session, path)
        return cls(session, place, handle(session, place), name=tableOrViewName)

    @classmethod
    @translated()
    def isDeltaTable(cls, sparkSession: Any, identifier: str) -> bool:  # noqa: N802, N803
        """Return whether there is a table at a path, or ``delta.`path` ``."""
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
        """Convert a folder of Parquet files into a table, without writing data files.

        Args:
            sparkSession: The session.
            identifier: ``parquet.`path` ``, or a table of Parquet files of the session's catalog.
            partitionSchema: The partition columns with their types, as DDL text or a `StructType`.

        Raises:
            InvalidArgumentError: The files cannot be converted, or the identifier is neither.
        """
        session = Session(sparkSession)
        columns = partitionSchema
        if columns is not None and not isinstance(columns, str):
            columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in columns.fields)
        text = f"CONVERT TO DELTA {identifier}" + (f" PARTITIONED BY ({columns})" if columns else "")
        known = of_catalog(session, text)
        statement = read_statement(text if known is None else known.text, zone=session.zone)
        if not isinstance(statement, tree.Convert):
            message = f"{identifier!r} is not a folder of Parquet files; write parquet.`path`"
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
        """Return a builder of a new table, which raises an error if the table exists."""
        return DeltaTableBuilder(session_of(sparkSession), CreateMode.CREATE, cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: Any = None) -> DeltaTableBuilder:  # noqa: N802, N803
        """Return a builder of a new table, which leaves an existing table unchanged."""
        return DeltaTableBuilder(session_of(sparkSession), CreateMode.IF_NOT_EXISTS, cls)

    @classmethod
    def replace(cls, sparkSession: Any = None) -> DeltaTableBuilder:  # noqa: N803
        """Return a builder that replaces an existing table."""
        return DeltaTableBuilder(session_of(sparkSession), CreateMode.REPLACE, cls)

    @classmethod
    def createOrReplace(cls, sparkSession: Any = None) -> DeltaTableBuilder:  # noqa: N802, N803
        """Return a builder that creates a table, or replaces an existing one."""
        return DeltaTableBuilder(session_of(sparkSession), CreateMode.CREATE_OR_REPLACE, cls)

    # --- rows ------------------------------------------------------------------------------------

    @translated()
    def toDF(self) -> Any:  # noqa: N802
        """Return the rows as a data frame, under the alias if there is one; each query reads the newest version."""
        frame = followed(self._spark, self._place.hadoop, storage_options=self._place.options)
        return frame if self._alias is None else frame.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:  # noqa: N803
        """Return the same table under a name, for use in conditions."""
        return DeltaTable(self._session, self._place, self._handle, aliasName, self._name)

    @translated()
    def delete(self, condition: Any = None) -> Any:
        """Delete the rows for which a condition is true, or all rows without one.

        Returns:
            None; on Connect a data frame with `num_affected_rows`, as in delta-spark.

        Raises:
            TypeError: The condition is neither a string nor a column.
            InvalidArgumentError: The condition is invalid, or the table is append-only.
            CommitFailedError: Another writer changed the same rows concurrently.
        """
        where = as_condition(condition, self._session)
        table = self._newest()
        metrics = dml.delete(self._session, table, self._unqualified(where, table))
        return self._affected(metrics["num_deleted_rows"])

    @translated()
    def update(self, condition: Any = None, set: Any = None) -> Any:  # noqa: A002
        """Set columns to new values in the rows for which a condition is true, or in all rows without one.

        Args:
            condition: SQL or a column.
            set: New values, SQL or columns, by column.

        Returns:
            None; on Connect a data frame with `num_affected_rows`, as in delta-spark.

        Raises:
            ValueError: `set` is missing.
            TypeError: An argument is neither a string nor a column.
            InvalidArgumentError: A column or an expression is invalid, or the table is append-only.
            ConstraintViolatedError: A new value violates a constraint.
            CommitFailedError: Another writer changed the same rows concurrently.
        """
        assignments, where = as_values(set, self._session), as_condition(condition, self._session)
        table = self._newest()
        known = [field.name for field in table.schema().fields]
        values: dict[str, str | Syntax] = {}
        for name, value in assignments.items():
            column = (name,) if name in known else parts_of(name, self._session.zone)
            path = assigned_path(column, table, qualifiers(_TABLE, self._alias))
            add_value(values, path, self._unqualified(value, table))
        metrics = dml.update(self._session, table, values, self._unqualified(where, table))
        return self._affected(metrics["num_updated_rows"])

    def merge(self, source: Any, condition: Any) -> DeltaMergeBuilder:
        """Match rows of a data frame with rows of the table; the builder takes the clauses.

        Args:
            source: The data frame; conditions refer to it by its alias.
            condition: SQL or a column, over both sides.

        Raises:
            ValueError: An argument is missing.
            TypeError: The source is not a data frame, or the condition is neither a string nor a column.
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
            on = as_condition(condition, self._session, sides) or ""
        return DeltaMergeBuilder(self, source, sides, on)

    def _unqualified(self, expression: Any, table: Handle) -> Any:
        """Return an expression without the table's alias; None for None."""
        return expression and without_alias(expression, table, qualifiers(_TABLE, self._alias))

    # --- metadata --------------------------------------------------------------------------------

    @translated(Operation.HISTORY)
    def history(self, limit: int | None = None) -> Any:
        """Return the commits of the table, newest first, as a data frame with delta-spark's columns."""
        return history_of(self._session, self._place, self._newest(), limit)

    @translated()
    def detail(self) -> Any:
        """Return the result of DESCRIBE DETAIL as a data frame with one row."""
        target = (
            _TABLE if self._name is None or path_in(self._name) else tree.TableName(self._name, by_path=False, pos=0)
        )
        tables = self._tables() if target is _TABLE else SparkTables.of(self._session)
        return answered(self._session, run_describe(tree.Describe(target, tree.DescribeKind.DETAIL), tables))

    # --- maintenance -----------------------------------------------------------------------------

    @translated()
    def vacuum(self, retentionHours: float | None = None) -> Any:  # noqa: N803
        """Delete files that no version within the retention period needs.

        Args:
            retentionHours: Retention period in hours; if None, the table's `delta.deletedFileRetentionDuration` (168).
                A shorter period is an error unless `spark.databricks.delta.retentionDurationCheck.enabled` is false.

        Returns:
            An empty data frame.
        """
        wanted = tree.Vacuum(_TABLE, lite=False, hours=retentionHours, dry_run=False, inventory=None)
        run_vacuum(wanted, self._tables())
        return nothing(self._session)

    @translated()
    def optimize(self) -> DeltaOptimizeBuilder:
        """Return a builder that rewrites files."""
        return DeltaOptimizeBuilder(self)

    @translated()
    def generate(self, mode: str) -> None:
        """Write symlink manifests for readers without Delta; the mode is `symlink_format_manifest`.

        Raises:
            InvalidArgumentError: There is no such mode.
        """
        if str(mode).lower() != tree.SYMLINK_MANIFEST:
            message = f"there is no mode {mode!r} of GENERATE; there is symlink_format_manifest"
            raise InvalidArgumentError(message)
        run_generate(tree.Generate(_TABLE), self._tables())

    @translated(Operation.RESTORE)
    def restoreToVersion(self, version: int) -> Any:  # noqa: N802
        """Restore the table to an older version, as a new version; returns metrics as a data frame."""
        check(version, "version", int)
        return self._restored(tree.TimeTravel(version=version))

    @translated(Operation.RESTORE)
    def restoreToTimestamp(self, timestamp: str) -> Any:  # noqa: N802
        """Restore the table to the version at a timestamp, `yyyy-MM-dd` or `yyyy-MM-dd HH:mm:ss`, as a new version."""
        check(timestamp, "timestamp", str)
        return self._restored(time_travel_to(timestamp, self._session.zone))

    @translated()
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:  # noqa: N802, N803
        """Raise the protocol versions; one that is not higher than the table's is ignored, as in delta-spark.

        Raises:
            ValueError: A version is not an integer.
            InvalidArgumentError: The protocol has no such version.
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
        versions = {MIN_READER_VERSION: str(readerVersion), MIN_WRITER_VERSION: str(writerVersion)}
        table.alter.set_table_properties(versions, commit_properties=commit)

    @translated()
    def addFeatureSupport(self, featureName: str) -> None:  # noqa: N802, N803
        """Make the table support a feature, raising the protocol versions where necessary."""
        check(featureName, "featureName", str)
        commit = self._tables().commit_properties
        self._newest().alter.add_feature(featureName, allow_protocol_versions_increase=True, commit_properties=commit)

    @translated()
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:  # noqa: N802, N803
        """Drop a table feature; see `TableAlterer.drop_feature`."""
        check(featureName, "featureName", str)
        if truncateHistory is not None:
            check(truncateHistory, "truncateHistory", bool)
        table, commit = self._newest(), self._tables().commit_properties
        supported = table.protocol().writer_features or ()
        if featureName.lower() not in {str(name).lower() for name in (*_FEATURES, *supported)}:
            message = f"deltafast knows no table feature `{featureName}`, so the table has nothing of it to drop"
            raise InvalidArgumentError(
                message, code=ErrorCode.FEATURE_UNKNOWN_TO_DROP, parameters={"feature": featureName}
            )
        table.alter.drop_feature(featureName, bool(truncateHistory), commit_properties=commit)

    # --- clones ----------------------------------------------------------------------------------

    def clone(
        self,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Create a table at a path that shares the files of the newest version.

        Args:
            target: The path of the new table.
            isShallow: Must be true: no data files are copied.
            replace: Replace a table at the path by the clone, if it has no rows.
            properties: Properties of the new table, in addition to those of this one.

        Raises:
            UnsupportedExpressionError: `isShallow` is false.
            InvalidArgumentError: There is a table at the path, or the table to be replaced has rows.
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
        """Clone an older version; see `clone`."""
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
        """Clone the version at a timestamp; see `clone`."""
        check(timestamp, "timestamp", str)
        with translated():
            at = time_travel_to(timestamp, self._session.zone)
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
            table = pinned(table)
            table.load_as_version(self._tables().at(at))
        commit = self._tables().commit_properties
        made = table.clone(
            place.uri,
            properties=properties,
            replace=replace,
            storage_options=place.options or None,
            commit_properties=commit,
        )
        refresh_dependents(self._session, place.hadoop)
        return DeltaTable(self._session, place, made)

    # --- helpers ---------------------------------------------------------------------------------

    def _newest(self) -> Handle:
        """Return the handle at the newest version, with the time zone and the ANSI mode that the session has now."""
        opened = handle_of(self._handle)
        if opened.time_zone == self._session.zone:
            self._handle.update_incremental()
            opened.ansi = self._session.is_ansi
        else:
            self._handle = handle(self._session, self._place)
        return self._handle

    def _tables(self) -> SparkTables:
        """Return the tables with which parsed statements are executed."""
        return SparkTables.of(self._session, {_TABLE.name: self._newest()})

    def _affected(self, rows: int | None) -> Any:
        if not self._session.is_connect:
            return None
        return answered(self._session, counts(num_affected_rows=rows))

    def _restored(self, at: tree.TimeTravel) -> Any:
        result = run_restore(tree.Restore(_TABLE, at), self._tables())
        refresh_dependents(self._session, self._place.hadoop)
        return answered(self._session, result)


class DeltaMergeBuilder:
    """The clauses of a MERGE, with delta-spark's names: the first of its kind whose condition is true takes a row.

    Created by `DeltaTable.merge`; nothing is read or written before `execute`. Every method returns a new builder.
    Conditions and values are SQL strings or columns of PySpark. Clauses for matched rows may use both sides, those for
    rows without a match in the table the source, and those for rows without a match in the source the target.

    Examples:
        >>> from deltafast.spark import DeltaTable
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> table = DeltaTable.forPath(spark, "cities")
        >>> source = spark.createDataFrame([(3, "Quito"), (4, "Bonn")], ["id", "city"])
        >>> merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
        >>> result = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        >>> sorted(row.city for row in table.toDF().collect())
        ['Bonn', 'Oslo', 'Quito', 'Rome']
    """

    def __init__(
        self,
        table: DeltaTable,
        source: Any,
        sides: Sides,
        condition: str | Syntax,
        clauses: tuple[MergeClause, ...] = (),
        *,
        evolve: bool = False,
    ) -> None:
        self._table = table
        self._source = source
        self._sides = sides
        self._condition = condition
        self._clauses = clauses
        self._evolve = evolve

    def whenMatchedUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:  # noqa: A002, N802
        """Set columns of a matched row to new values.

        Args:
            condition: Only rows for which it is true.
            set: New values by column.

        Raises:
            ValueError: `set` is missing.
            TypeError: An argument is neither a string nor a column.
        """
        return self._with(ClauseKind.MATCHED, MergeAction.UPDATE, condition, set, "'set' in whenMatchedUpdate")

    def whenMatchedUpdateAll(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Set all columns of a matched row to the values of the source's columns of the same names."""
        return self._with(ClauseKind.MATCHED, MergeAction.UPDATE, condition)

    def whenMatchedDelete(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete a matched row."""
        return self._with(ClauseKind.MATCHED, MergeAction.DELETE, condition)

    def whenNotMatchedInsert(self, condition: Any = None, values: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Insert a row for a row of the source without a match.

        Args:
            condition: Only rows for which it is true.
            values: Values by column; other columns get their default, are generated or null.

        Raises:
            ValueError: `values` is missing.
            TypeError: An argument is neither a string nor a column.
        """
        return self._with(
            ClauseKind.NOT_MATCHED, MergeAction.INSERT, condition, values, "'values' in whenNotMatchedInsert"
        )

    def whenNotMatchedInsertAll(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Insert each row of the source without a match."""
        return self._with(ClauseKind.NOT_MATCHED, MergeAction.INSERT, condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802
        self,
        condition: Any = None,
        set: Any = None,  # noqa: A002
    ) -> DeltaMergeBuilder:
        """Set columns of a row without a match in the source to new values; see `whenMatchedUpdate`."""
        return self._with(
            ClauseKind.NOT_MATCHED_BY_SOURCE,
            MergeAction.UPDATE,
            condition,
            set,
            "'set' in whenNotMatchedBySourceUpdate",
        )

    def whenNotMatchedBySourceDelete(self, condition: Any = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete a row without a match in the source."""
        return self._with(ClauseKind.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE, condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:  # noqa: N802
        """Add columns and fields of the source that a clause assigns to the table's schema."""
        return DeltaMergeBuilder(self._table, self._source, self._sides, self._condition, self._clauses, evolve=True)

    @translated()
    def execute(self) -> Any:
        """Execute the MERGE: one commit, or none if no row changes.

        Returns:
            A data frame of `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and `num_inserted_rows`.

        Raises:
            InvalidArgumentError: There is no clause, a clause follows an unconditional one of its kind, an expression
                is invalid, or several rows of the source would change one row of the table.
            SchemaMismatchError: A clause assigns a column that the table does not have.
            ConstraintViolatedError: A new row violates a constraint.
            CommitFailedError: Another writer changed the same rows concurrently.
            PySparkException: Spark cannot compute the source.
        """
        check_order(self._clauses)
        session = self._table._session
        evolve = self._evolve or session.merges_schemas
        request = dml.MergeRequest(self._condition, self._sides.target, self._sides.source, self._clauses, evolve)
        metrics = dml.merge(session, self._table._newest(), self._source, request)
        return answered(session, merged(metrics))

    @translated()
    def _with(
        self, kind: ClauseKind, action: MergeAction, condition: Any, values: Any = None, what: str | None = None
    ) -> DeltaMergeBuilder:
        session = self._table._session
        updates = None if what is None else as_values(values, session, self._sides, what)
        clause = MergeClause(kind, action, as_condition(condition, session, self._sides), updates)
        return DeltaMergeBuilder(
            self._table, self._source, self._sides, self._condition, (*self._clauses, clause), evolve=self._evolve
        )


class DeltaOptimizeBuilder:
    """Rewrites the files of a table without changing rows; created by `DeltaTable.optimize`.

    Examples:
        >>> from deltafast.spark import DeltaTable
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> table = DeltaTable.forPath(spark, "cities")
        >>> metrics = table.optimize().executeZOrderBy("id")
        >>> metrics.count()
        1
    """

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self._filters: tuple[str, ...] = ()

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:  # noqa: N803 - delta-spark's names
        """Restrict to partitions for which SQL over partition columns is true; several filters are combined by AND.

        Raises:
            TypeError: The filter is not a string.
        """
        if not isinstance(partitionFilter, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"partitionFilter must be a string (expression in SQL syntax), not {type(partitionFilter)}"
            raise TypeError(message)
        self._filters += (partitionFilter,)
        return self

    def executeCompaction(self) -> Any:  # noqa: N802
        """Compact small files into large ones; in a clustered table, cluster the new files.

        Returns:
            A data frame with `path` and `metrics`, as in delta-spark.

        Raises:
            InvalidArgumentError: The filter names columns other than partition columns.
            CommitFailedError: Another writer changed the same files concurrently.
        """
        return self._run(())

    def executeZOrderBy(self, *cols: Any) -> Any:  # noqa: N802
        """Cluster rows along the Z-order curve of columns, given one by one or as a list.

        Returns:
            A data frame with `path` and `metrics`, as in delta-spark.

        Raises:
            TypeError: A column is not a string.
            InvalidArgumentError: A column does not exist, has a type without an order or is a partition column.
            CommitFailedError: Another writer changed the same files concurrently.
        """
        names = columns_of(cols, "Z-order column must be str.")
        return self._run(tuple((name,) for name in names))

    @translated(Operation.OPTIMIZE)
    def _run(self, columns: tuple[tuple[str, ...], ...]) -> Any:
        where = " AND ".join(f"({text})" for text in self._filters)
        wanted = tree.Optimize(
            tree.TableName("table", by_path=False, pos=0),
            full=False,
            where=tree.Expression(where, 0) if where else None,
            zorder_by=columns,
        )
        return answered(self._table._session, run_optimize(wanted, self._table._tables()))


@dataclass
class IdentityGenerator:
    """The sequence of an identity column.

    Examples:
        >>> from deltafast.spark import DeltaTable, IdentityGenerator
        >>> builder = DeltaTable.create(spark).location("orders")
        >>> builder = builder.addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=100, step=1))
        >>> builder.addColumn("city", "STRING").execute().toDF().columns
        ['id', 'city']
    """

    #: The first value.
    start: int = 1
    #: The increment; not 0.
    step: int = 1


class DeltaTableBuilder:
    """The definition of a new table, with delta-spark's names; created by `DeltaTable.create` and the like.

    A table needs a location or a name. A named table is registered in the session's catalog, which must have a provider
    that reads Delta tables.

    Examples:
        >>> from deltafast.spark import DeltaTable
        >>> builder = DeltaTable.createIfNotExists(spark).location("cities").addColumn("id", "BIGINT", nullable=False)
        >>> builder.property("delta.appendOnly", "true").execute().detail().first().properties
        {'delta.appendOnly': 'true'}
    """

    def __init__(
        self,
        session: Session,
        mode: CreateMode,
        made: type[DeltaTable],
    ) -> None:
        self._session = session
        self._mode = mode
        self._made = made
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._fields: list[dict[str, Any]] = []
        self._partition: list[str] = []
        self._cluster: list[str] = []
        self._properties: dict[str, str] = {}
        #: As in delta-spark, for programs that call its Java.
        self._jbuilder = JavaTableBuilder(self)

    def tableName(self, identifier: str) -> DeltaTableBuilder:  # noqa: N802 - delta-spark's names
        """Set the table's name in the session's catalog, or ``delta.`path` ``."""
        self._need_text("Identifier must be str.", identifier)
        self._name = identifier
        return self

    def location(self, location: str) -> DeltaTableBuilder:
        """Set the table's location."""
        self._need_text("Location must be str.", location)
        self._location = location
        return self

    def comment(self, comment: str) -> DeltaTableBuilder:
        """Set the table's description."""
        self._need_text("Table comment must be str.", comment)
        self._comment = comment
        return self

    def addColumn(  # noqa: N802
        self,
        colName: str,  # noqa: N803
        dataType: Any,  # noqa: N803
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,  # noqa: N803
        generatedByDefaultAs: IdentityGenerator | None = None,  # noqa: N803
        comment: str | None = None,
    ) -> DeltaTableBuilder:
        """Add a column.

        Args:
            colName: Its name.
            dataType: DDL or a type of PySpark.
            nullable: Whether values may be null.
            generatedAlwaysAs: The SQL expression that generates it, or the sequence of an identity column; writers
                cannot give it values.
            generatedByDefaultAs: The sequence of an identity column; writers may give it values.
            comment: Its description.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: Both kinds of generation are given, or the step is 0.
            UnsupportedOperationException: An identity column is not BIGINT.
            ParseException: The type is invalid.
        """
        from pyspark.sql.types import DataType, LongType

        self._need_text("Column name must be str.", colName)
        if not isinstance(dataType, (str, DataType)):
            refuse("Column data type must be str or DataType.", dataType)
        if type(nullable) is not bool:
            refuse("Column nullable must be bool.", nullable)
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            message = "generatedByDefaultAs and generatedAlwaysAs cannot both be set."
            raise ValueError(message)
        kind = DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        metadata = _generated(generatedAlwaysAs, generatedByDefaultAs)
        if IDENTITY_STEP in metadata and not isinstance(kind, LongType):
            message = f"the column `{colName}` counts, so it must be BIGINT, not {kind.simpleString().upper()}"
            raise UnsupportedTypeException(message, column=colName)
        if comment is not None:
            self._need_text("Column comment must be str.", comment)
            metadata["comment"] = comment
        self._fields.append(field_of(colName, json.loads(kind.json()), metadata) | {"nullable": nullable})
        return self

    def addColumns(self, cols: Any) -> DeltaTableBuilder:  # noqa: N802
        """Add the columns of a schema, a `StructType` or a list of `StructField`.

        Raises:
            TypeError: The argument is neither.
        """
        from pyspark.sql.types import StructField, StructType

        if isinstance(cols, list):
            fields: list[Any] = list(cols)  # pyright: ignore[reportUnknownArgumentType]
            for column in fields:
                if not isinstance(column, StructField):
                    refuse("Column in existing schema must be StructField.", column)
            cols = StructType(fields)
        if not isinstance(cols, StructType):
            refuse("Schema must be StructType or a list of StructField.", cols)
        self._fields += json.loads(cols.json())["fields"]
        return self

    def partitionedBy(self, *cols: Any) -> DeltaTableBuilder:  # noqa: N802
        """Set the partition columns, one by one or as a list."""
        self._partition = columns_of(cols, "Partitioning column must be str.")
        return self

    def clusterBy(self, *cols: Any) -> DeltaTableBuilder:  # noqa: N802
        """Set the clustering columns, one by one or as a list."""
        self._cluster = columns_of(cols, "Clustering column must be str.")
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """Set a table property."""
        self._need_text("Key and value of property must be string.", key)
        self._need_text("Key and value of property must be string.", value)
        self._properties[key] = value
        return self

    @translated()
    def execute(self) -> DeltaTable:
        """Create or replace the table.

        Returns:
            The table; with `createIfNotExists` the existing one, if there is one.

        Raises:
            InvalidArgumentError: The table already exists, a location is missing, or a column or property is invalid.
            TableNotFoundError: There is no table to replace.
        """
        path, name, is_managed = create_table.where(self._session, self._name, self._location)
        place = create_table.create(
            self._session,
            create_table.NewTable(
                self._mode,
                path,
                name,
                self._fields,
                self._partition,
                self._cluster,
                self._properties,
                self._comment,
                is_managed,
            ),
        )
        return self._made(self._session, place, handle(self._session, place))

    def _need_text(self, what: str, value: Any) -> None:
        if not isinstance(value, str):
            refuse(what, value)


def _generated(always: Any, by_default: Any) -> dict[str, Any]:
    """Return the column metadata that describes how values are generated."""
    metadata: dict[str, Any] = {}
    if isinstance(always, str):
        metadata[GENERATION_EXPRESSION] = with_single_quotes(always)
    elif isinstance(always, IdentityGenerator):
        metadata |= _identity(always, explicit=False)
    elif always is not None:
        refuse("Generated always as expression must be str or IdentityGenerator.", always)
    if isinstance(by_default, IdentityGenerator):
        metadata |= _identity(by_default, explicit=True)
    elif by_default is not None:
        refuse("Generated by default expression must be IdentityGenerator.", by_default)
    return metadata


def _identity(generator: IdentityGenerator, *, explicit: bool) -> dict[str, Any]:
    if generator.step == 0:
        message = "Column identity generation requires step to be non-zero."
        raise ValueError(message)
    return {
        IDENTITY_START: generator.start,
        IDENTITY_STEP: generator.step,
        IDENTITY_ALLOW_EXPLICIT_INSERT: explicit,
    }
