"""Changes of what a table is: columns, constraints, properties, features. Names are those of `deltalake`'s `alter`.

Each call is one commit, after which the handle points at the new version. What constraints, generated columns,
partitions or clustering go by is protected: such columns cannot be dropped, renamed or retyped.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._util.arguments import COMMIT_ARGUMENTS, HOOKS_FIRST, also_by_position
from deltafast._util.options import commit_options, names, property_strings, sql_strings
from deltafast.progress import Progress, counted
from deltafast.schema import Field, PrimitiveType, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltafast._handle import TableHandle
    from deltafast.schema import DataType
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["ColumnChanges", "TableAlterer", "TableFeatures"]


class TableFeatures(Enum):
    """Table features by the names of `deltalake`; the values are those of the protocol."""

    AppendOnly = "appendOnly"
    ChangeDataFeed = "changeDataFeed"
    CheckConstraints = "checkConstraints"
    CheckpointProtection = "checkpointProtection"
    Clustering = "clustering"
    ColumnDefaults = "allowColumnDefaults"
    ColumnMapping = "columnMapping"
    DeletionVectors = "deletionVectors"
    DomainMetadata = "domainMetadata"
    GeneratedColumns = "generatedColumns"
    IcebergCompatV1 = "icebergCompatV1"
    IcebergCompatV2 = "icebergCompatV2"
    IdentityColumns = "identityColumns"
    InCommitTimestamp = "inCommitTimestamp"
    Invariants = "invariants"
    RowTracking = "rowTracking"
    TimestampWithoutTimezone = "timestampNtz"
    TypeWidening = "typeWidening"
    V2Checkpoint = "v2Checkpoint"
    VacuumProtocolCheck = "vacuumProtocolCheck"
    VariantType = "variantType"


class TableAlterer:
    """Changes one table; made by `DeltaTable.alter`.

    Every method also takes `commit_properties` and `post_commithook_properties`, and raises:

    * InvalidArgumentError: the change is not possible, and why;
    * DeltaProtocolError: the table needs a feature that this release does not have;
    * CommitFailedError: another writer's commit came in between;
    * StorageError: the store failed.
    """

    def __init__(self, table: TableHandle) -> None:
        self.table = table

    def _do(
        self,
        kind: str,
        commit: CommitProperties | None,
        hooks: PostCommitHookProperties | None,
        **change: Any,
    ) -> None:
        alter_table(self.table, kind, commit, hooks, **change)

    # --- columns ---------------------------------------------------------------------------------

    @also_by_position(*COMMIT_ARGUMENTS)
    def add_columns(
        self,
        fields: Field | Sequence[Field],
        *,
        after: Mapping[str, str | None] | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add columns. Rows that are there have null in them.

        Args:
            fields: The columns, nullable. A struct under the name of a struct column adds its new fields to that.
            after: The place of those that shall not come last: by the path of the column (`a.b` for a field), the name
                of the column or sibling behind which it stands, or None for the first place.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        schema = Schema([fields] if isinstance(fields, Field) else list(fields))
        change = {"fields": json.loads(schema.to_json()), "places": list((after or {}).items())}
        self._do("add_columns", commit_properties, post_commithook_properties, **change)

    def move_column(
        self,
        column: str,
        after: str | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Give a column or nested field another place among its siblings. No file is touched.

        Args:
            column: Its path, `a.b` for the field b of a.
            after: The name of the column or sibling behind which it shall stand; the first place if None.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        self._do("move_column", commit_properties, post_commithook_properties, column=column, after=after)

    def sync_identity(
        self,
        column: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> None:
        """Let an identity column go on behind the values that are there, those of other writers included.

        Reads the column. Its mark never goes back.

        Args:
            column: Its name.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
            progress: As for `add_constraint`.

        Protocol: "Identity Columns".
        """
        with counted(progress):
            self._do("sync_identity", commit_properties, post_commithook_properties, column=column)

    def drop_columns(
        self,
        columns: str | Sequence[str],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop columns or nested fields (`a.b`); the table must map columns (`delta.columnMapping.mode`).

        Their values stay in the files until these are rewritten.
        """
        self._do("drop_columns", commit_properties, post_commithook_properties, columns=names(columns))

    drop_column = drop_columns

    def rename_column(
        self,
        column: str,
        name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Rename a column or nested field; the table must map columns (`delta.columnMapping.mode`).

        Args:
            column: Its path, `a.b` for the field b of a.
            name: The new last part of the path.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        self._do("rename_column", commit_properties, post_commithook_properties, column=column, name=name)

    def set_column_type(
        self,
        column: str,
        data_type: DataType | str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Widen the type of a column or nested field; the table needs `delta.enableTypeWidening`.

        Args:
            column: Its path.
            data_type: The wider type.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        kind = PrimitiveType(data_type) if isinstance(data_type, str) else data_type
        change = {"column": column, "data_type": json.loads(kind.to_json())}
        self._do("change_type", commit_properties, post_commithook_properties, **change)

    def drop_column_not_null(
        self,
        column_name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Let a column be null."""
        change = {"column": column_name, "nullable": True}
        self._do("set_nullable", commit_properties, post_commithook_properties, **change)

    def set_column_not_null(
        self,
        column_name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        progress: Progress = False,
    ) -> None:
        """Make a column NOT NULL.

        Args:
            column_name: Its name.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
            progress: As for `add_constraint`.

        Raises:
            ConstraintViolatedError: A row that is there has null in it.
        """
        change = {"column": column_name, "nullable": False}
        with counted(progress):
            self._do("set_nullable", commit_properties, post_commithook_properties, **change)

    @also_by_position(*COMMIT_ARGUMENTS)
    def set_column_metadata(
        self,
        column: str,
        metadata: Mapping[str, Any],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set keys of a column's metadata.

        Args:
            column: Its path.
            metadata: Keys and values; None removes a key. `comment` is what Spark shows, `CURRENT_DEFAULT` (SQL) is the
                value of rows written without the column. Keys that begin with `delta.` are the protocol's.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        default = metadata.get("CURRENT_DEFAULT")
        if default is not None:
            from deltafast._expr.demands import bind_demands

            demand = {"checks": [], "generated": [], "defaults": [{"name": column, "sql": default}]}
            if any(field.name == column for field in self.table.schema().fields):
                bind_demands(json.dumps(demand), self.table.schema().to_json(), zone=self.table.time_zone)
        change = {"column": column, "metadata": dict(metadata)}
        self._do("set_column_metadata", commit_properties, post_commithook_properties, **change)

    # --- constraints -----------------------------------------------------------------------------

    @also_by_position(*HOOKS_FIRST)
    def add_constraint(
        self,
        constraints: Mapping[str, str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> None:
        """Add CHECK constraints, which all rows must satisfy from now on.

        Args:
            constraints: Names and conditions (Spark SQL).
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
            progress: True for a bar on standard error, a function of (done, all), or a tqdm-like bar; counts files
                that are read.

        Raises:
            ConstraintViolatedError: A row that is there does not satisfy one.
        """
        from deltafast._expr.demands import bind_demands
        from deltafast._expr.lexer import spark_text

        schema = self.table.schema().to_json()
        columns = {field.name for field in self.table.schema().fields}
        given = sql_strings("constraints", constraints)
        checks = [{"name": name, "sql": spark_text(sql, columns)} for name, sql in given.items()]
        demands = json.dumps({"checks": checks, "generated": [], "defaults": []})
        bound = json.loads(bind_demands(demands, schema, zone=self.table.time_zone))["checks"]
        with counted(progress):
            self._do("add_constraints", commit_properties, post_commithook_properties, constraints=bound)

    @also_by_position(*HOOKS_FIRST)
    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop a CHECK constraint.

        Args:
            name: Its name, compared without case.
            raise_if_not_exists: Whether one that is not there is an error.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        change = {"name": name, "if_exists": not raise_if_not_exists}
        self._do("drop_constraint", commit_properties, post_commithook_properties, **change)

    # --- domains ---------------------------------------------------------------------------------

    def set_domain_metadata(
        self,
        domain: str,
        configuration: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Keep a text of one's own with the table, under the name of a domain; `DeltaTable.domain_metadata` has them.

        Protocol: "Domain Metadata". Two writers of one domain conflict; writers of others do not.

        Args:
            domain: Its name; those that begin with `delta.` are the protocol's.
            configuration: Any text, often JSON; it takes the place of the one that is there.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.

        Raises:
            DeltaProtocolError: The table lacks the feature `domainMetadata`.
        """
        change = {"domain": domain, "configuration": configuration}
        self._do("set_domain", commit_properties, post_commithook_properties, **change)

    def remove_domain_metadata(
        self,
        domain: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove a domain; one that is not there is no error and makes no version.

        Args:
            domain: Its name; those that begin with `delta.` are the protocol's.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        change = {"domain": domain, "configuration": None}
        self._do("set_domain", commit_properties, post_commithook_properties, **change)

    # --- properties and features -----------------------------------------------------------------

    @also_by_position(*COMMIT_ARGUMENTS)
    def set_table_properties(
        self,
        properties: Mapping[str, str | bool | int],
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set table properties; the features that they need come along.

        `delta.enableRowTracking` on a table with files gives these row ids first, in commits of their own. Iceberg
        compatibility is refused where a file would have to be rewritten for it.

        Args:
            properties: Keys and values: strings, booleans or integers.
            raise_if_not_exists: Whether unknown `delta.` keys are refused.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        change = {"properties": property_strings(properties), "allow_unknown": not raise_if_not_exists}
        self._do("set_properties", commit_properties, post_commithook_properties, **change)

    def unset_table_properties(
        self,
        keys: str | Sequence[str],
        raise_if_not_exists: bool = True,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove table properties, so that their defaults hold; features stay.

        Args:
            keys: The keys.
            raise_if_not_exists: Whether one that is not set is an error.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        change = {"keys": names(keys), "if_exists": not raise_if_not_exists}
        self._do("unset_properties", commit_properties, post_commithook_properties, **change)

    @also_by_position(*COMMIT_ARGUMENTS)
    def set_table_name(
        self,
        name: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Give the table a name."""
        self._do("set_name", commit_properties, post_commithook_properties, name=name)

    @also_by_position(*COMMIT_ARGUMENTS)
    def set_table_description(
        self,
        description: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Give the table a description."""
        self._do("set_description", commit_properties, post_commithook_properties, description=description)

    @also_by_position(*COMMIT_ARGUMENTS)
    def add_feature(
        self,
        feature: TableFeatures | str | Sequence[TableFeatures | str],
        allow_protocol_versions_increase: bool = False,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Make the table support features, and those that they need.

        Args:
            feature: The features, by name or as `TableFeatures`.
            allow_protocol_versions_increase: Whether the protocol's versions may rise for it.
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        several = [feature] if isinstance(feature, (str, TableFeatures)) else list(feature)
        wanted = [item.value if isinstance(item, TableFeatures) else item for item in several]
        change = {"names": wanted, "allow_versions": allow_protocol_versions_increase}
        self._do("add_features", commit_properties, post_commithook_properties, **change)

    def drop_feature(
        self,
        feature: TableFeatures | str,
        truncate_history: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        progress: Progress = False,
    ) -> None:
        """Make the table do without a feature, as `ALTER TABLE .. DROP FEATURE` of delta-spark 4 does.

        Whatever of it the newest version has goes first, in commits of its own: deletion vectors and types that were
        widened by rewriting the files that have them, column mapping by rewriting all files under the columns' own
        names, row ids and metadata domains of files and log; properties are unset. CHECK constraints are yours to drop.

        Older versions still use it. If readers have to know it (columnMapping, deletionVectors, typeWidening,
        v2Checkpoint, vacuumProtocolCheck), the table gets the feature `checkpointProtection`, which keeps the
        checkpoints behind which nobody needs it. With `truncate_history` that history is deleted instead, which takes
        two calls: the second one once the history is older than `delta.dropFeatureTruncateHistory.retentionDuration`
        (24 hours). `checkpointProtection` itself is dropped with `truncate_history` only.

        appendOnly, changeDataFeed, clustering, identityColumns, generatedColumns, allowColumnDefaults, invariants,
        timestampNtz, variantType, icebergCompatV1 and icebergCompatV2 cannot be dropped, by no engine.

        A step before an error stays and harms nothing; the call can be made again. Protocol: "Table Features".

        Args:
            feature: The feature, by name or as `TableFeatures`.
            truncate_history: Whether history that uses it is deleted, rather than protected.
            commit_properties: How to commit; application transactions are recorded by the last commit.
            post_commithook_properties: What follows each commit.
            progress: As for `add_constraint`.

        Raises:
            DeltaProtocolError: for a feature that cannot be dropped.
            InvalidArgumentError: for a feature that is not there, that another one needs, or whose history must be
                waited for.
            CommitFailedError: another writer came in between.
        """
        table = self.table
        name = feature.value if isinstance(feature, TableFeatures) else feature
        options = json.dumps(commit_options(commit_properties, post_commithook_properties))
        with counted(progress):
            moved, _ = _core.drop_feature(table.snapshot, name, truncate_history, options)
        table.move(moved)

    def cluster_by(
        self,
        columns: str | Sequence[str] | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Cluster the table by other columns from now on; None for no longer. No file is rewritten."""
        self._do("cluster_by", commit_properties, post_commithook_properties, columns=names(columns) or [])


def alter_table(
    table: TableHandle,
    kind: str,
    commit: CommitProperties | None,
    hooks: PostCommitHookProperties | None,
    **change: Any,
) -> None:
    """Make one change of what a table is.

    Args:
        table: The table.
        kind: Of the change: `Change` in `src/ops/alter/operation.rs`.
        commit: How to commit.
        hooks: What follows the commit.
        **change: What the kind takes.
    """
    from deltafast._expr.demands import bind_demands

    snapshot = table.snapshot
    text = table.schema().to_json()
    bound = bind_demands(_core.demands_of(snapshot), text, zone=table.time_zone)
    options = json.dumps(commit_options(commit, hooks))
    moved, _ = _core.alter(snapshot, json.dumps({"kind": kind, **change}), bound, options)
    table.move(moved)


class ColumnChanges(TableAlterer):
    """Changes of columns that are one commit: methods note them, each of the table as the ones before leave it."""

    def __init__(self, table: TableHandle) -> None:
        super().__init__(table)
        self._changes: list[dict[str, Any]] = []

    def _do(
        self,
        kind: str,
        commit: CommitProperties | None,  # noqa: ARG002 - all changes are committed at once
        hooks: PostCommitHookProperties | None,  # noqa: ARG002 - the same
        **change: Any,
    ) -> None:
        self._changes.append({"kind": kind, **change})

    def commit(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Make what was noted.

        Args:
            commit_properties: How to commit.
            post_commithook_properties: What follows the commit.
        """
        super()._do("change_columns", commit_properties, post_commithook_properties, changes=self._changes)
