"""ALTER TABLE: columns, constraints, properties, features. Names are those of `deltalake`'s `alter`.

Each call is one commit, after which the handle points at the new version. Columns that constraints, generated columns,
partitioning or clustering use cannot be dropped, renamed or retyped.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from deltafast import _core
from deltafast._util.arguments import COMMIT_ARGUMENTS, HOOKS_FIRST, also_by_position
from deltafast._util.dialect import Dialect
from deltafast._util.options import CONSTRAINTS, commit_options, names, property_strings, sql_strings
from deltafast.progress import Progress, counted
from deltafast.schema import Field, PrimitiveType, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltafast._core_types import CommitOptions, NamedExpression, TableChange
    from deltafast._handle import TableHandle
    from deltafast.schema import DataType
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["ColumnChanges", "TableAlterer", "TableFeatures"]


class TableFeatures(Enum):
    """Table features by the names of `deltalake`; the values are those of the protocol.

    Examples:
        >>> from deltafast import DeltaTable, TableFeatures
        >>> table = DeltaTable.create("cities", {"id": "long"})
        >>> table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
        >>> table.protocol().writer_features
        ['appendOnly', 'deletionVectors', 'invariants']
    """

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
    TimestampNanos = "timestampNanos"
    TimestampWithoutTimezone = "timestampNtz"
    TypeWidening = "typeWidening"
    V2Checkpoint = "v2Checkpoint"
    VacuumProtocolCheck = "vacuumProtocolCheck"
    VariantType = "variantType"
    VariantTypePreview = "variantType-preview"


class TableAlterer:
    """Changes of one table; returned by `DeltaTable.alter`.

    Every method also takes `commit_properties` and `post_commithook_properties`, and raises:

    * InvalidArgumentError: the change is not possible; the message has the reason;
    * DeltaProtocolError: the table needs a feature that this release does not support;
    * CommitFailedError: a concurrent commit conflicts with the change;
    * StorageError: a request to the store failed.

    Examples:
        The examples of the methods continue this one.

        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> table = DeltaTable("cities")
        >>> table.alter.set_table_description("Cities with an office")
        >>> table.metadata().description
        'Cities with an office'
    """

    def __init__(self, table: TableHandle) -> None:
        self.table = table

    def _do(self, kind: str, options: CommitOptions, **change: Any) -> None:
        alter_table(self.table, kind, options, **change)

    def _to_store(self, schema: Schema) -> dict[str, Any]:
        """Return the JSON of new columns, whose expressions are as they are stored."""
        from deltafast._expr import read_schema, types
        from deltafast._expr.stored import fields_to_store, has_quoted_expressions

        tree: dict[str, Any] = json.loads(schema.to_json())
        if not has_quoted_expressions(tree["fields"]):
            return tree
        existing = read_schema(self.table.schema().to_json()).fields
        names = {field.name.lower() for field in existing}
        new = [field for field in read_schema(schema.to_json()).fields if field.name.lower() not in names]
        columns = types.Struct((*existing, *new))
        fields = fields_to_store(tree["fields"], columns, self.table.expression_context)
        return {**tree, "fields": fields}

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
        """Add columns; they are null in existing rows.

        Args:
            fields: The columns, nullable. A struct with the name of an existing struct column adds its new fields to
                that column.
            after: Positions of columns that are not added at the end: maps the path of the column (`a.b` for a field)
                to the name of the column or sibling after which it is inserted, or to None for the first position.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> from deltafast import Field
            >>> table.alter.add_columns(Field("zip", "string"), after={"zip": "id"})
            >>> [field.name for field in table.schema().fields]
            ['id', 'zip', 'city']
        """
        schema = Schema([fields] if isinstance(fields, Field) else list(fields))
        change = {"fields": self._to_store(schema), "positions": list((after or {}).items())}
        self._do("add_columns", commit_options(commit_properties, post_commithook_properties), **change)

    def replace_columns(
        self,
        fields: Sequence[Field] | Schema,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Give the table these columns, as `ALTER TABLE .. REPLACE COLUMNS` of delta-spark does. No file is rewritten.

        Columns and fields take the order of the list. Existing ones keep their metadata; they get the comment of the
        list if it has one, become nullable where the list has them nullable, and may get a wider type if the table has
        `delta.enableTypeWidening`. Others are added. Columns and fields that are not in the list are dropped, which
        needs column mapping (`delta.columnMapping.mode`). One struct, or the columns of the table, cannot both lose
        and get fields.

        Args:
            fields: The columns.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> from deltafast import Field
            >>> table.alter.replace_columns([Field("city", "string"), Field("id", "long"), Field("zip", "string")])
            >>> [field.name for field in table.schema().fields]
            ['city', 'id', 'zip']
        """
        schema = fields if isinstance(fields, Schema) else Schema(list(fields))
        change = {"fields": self._to_store(schema)}
        self._do("replace_columns", commit_options(commit_properties, post_commithook_properties), **change)

    def move_column(
        self,
        column: str,
        after: str | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Move a column or nested field to another position among its siblings. No file is rewritten.

        Args:
            column: Path of the column, `a.b` for the field b of a, `l.element.b` for a field of a list's elements.
            after: Name of the column or sibling after which it is placed; the first position if None.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.move_column("city")
            >>> [field.name for field in table.schema().fields]
            ['city', 'id']
        """
        self._do(
            "move_column", commit_options(commit_properties, post_commithook_properties), column=column, after=after
        )

    def sync_identity(
        self,
        column: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress = False,
    ) -> None:
        """Set the high-water mark of an identity column to the existing values, those of other writers included.

        Reads the column. The high-water mark never decreases.

        Args:
            column: Name of the column.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.
            progress: As for `add_constraint`.

        Protocol: "Identity Columns".

        Examples:
            >>> from deltafast import Field, Schema
            >>> settings = {"start": 1, "step": 1, "allowExplicitInsert": True}
            >>> metadata = {f"delta.identity.{key}": value for key, value in settings.items()}
            >>> fields = [Field("id", "long", metadata=metadata), Field("city", "string")]
            >>> numbered = DeltaTable.create("numbered", Schema(fields))
            >>> metrics = numbered.append({"id": [10], "city": ["Oslo"]})
            >>> numbered.alter.sync_identity("id")
            >>> metrics = numbered.append({"city": ["Rome"]})
            >>> numbered.to_pyarrow_table(filters="city = 'Rome'")["id"].to_pylist()
            [11]
        """
        with counted(progress):
            self._do("sync_identity", commit_options(commit_properties, post_commithook_properties), column=column)

    def drop_columns(
        self,
        columns: str | Sequence[str],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop columns or nested fields (`a.b`); the table needs column mapping (`delta.columnMapping.mode`).

        Their values stay in the files until the files are rewritten.

        Examples:
            >>> table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
            >>> table.alter.drop_columns("city")
            >>> [field.name for field in table.schema().fields]
            ['id']
        """
        self._do("drop_columns", commit_options(commit_properties, post_commithook_properties), columns=names(columns))

    drop_column = drop_columns

    def rename_column(
        self,
        column: str,
        name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Rename a column or nested field; the table needs column mapping (`delta.columnMapping.mode`).

        Args:
            column: Path of the column, `a.b` for the field b of a.
            name: The new last part of the path.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
            >>> table.alter.rename_column("city", "town")
            >>> [field.name for field in table.schema().fields]
            ['id', 'town']
        """
        self._do(
            "rename_column", commit_options(commit_properties, post_commithook_properties), column=column, name=name
        )

    def set_column_type(
        self,
        column: str,
        data_type: DataType | str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        length: str | None = None,
    ) -> None:
        """Widen the type of a column or nested field; the table needs `delta.enableTypeWidening`.

        Args:
            column: Path of the column; `l.element` for the elements of a list, `m.key` and `m.value` for those of a
                map.
            data_type: The wider type.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.
            length: The larger length of a string column, such as `varchar(10)`; None for strings of any length. This
                does not need `delta.enableTypeWidening`.

        Examples:
            >>> settings = {"delta.enableTypeWidening": True}
            >>> table = DeltaTable.create("narrow", {"id": "integer"}, configuration=settings)
            >>> table.alter.set_column_type("id", "long")
            >>> table.schema().fields[0].type
            PrimitiveType("long")
        """
        kind = PrimitiveType(data_type) if isinstance(data_type, str) else data_type
        change = {"column": column, "data_type": json.loads(kind.to_json()), "length": length}
        self._do("change_type", commit_options(commit_properties, post_commithook_properties), **change)

    def drop_column_not_null(
        self,
        column_name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Make a column nullable.

        Examples:
            >>> table.alter.set_column_not_null("id")
            >>> table.alter.drop_column_not_null("id")
            >>> table.schema().fields[0].nullable
            True
        """
        change = {"column": column_name, "nullable": True}
        self._do("set_nullable", commit_options(commit_properties, post_commithook_properties), **change)

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
            column_name: Name of the column.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.
            progress: As for `add_constraint`.

        Raises:
            ConstraintViolatedError: An existing row has null in the column.

        Examples:
            >>> table.alter.set_column_not_null("id")
            >>> table.schema().fields[0].nullable
            False
        """
        change = {"column": column_name, "nullable": False}
        with counted(progress):
            self._do("set_nullable", commit_options(commit_properties, post_commithook_properties), **change)

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
            column: Path of the column.
            metadata: Keys and values; None removes a key. `comment` is the comment in Spark, `CURRENT_DEFAULT` (SQL)
                the value of rows written without the column. Keys with the prefix `delta.` are reserved by the
                protocol.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.set_column_metadata("city", {"comment": "Name in English"})
            >>> table.schema().fields[1].metadata
            {'comment': 'Name in English'}
        """
        default = metadata.get("CURRENT_DEFAULT")
        if default is not None:
            from deltafast._expr import types
            from deltafast._expr.constraints import bind_constraints, expressions
            from deltafast._expr.stored import sql_to_store

            default = sql_to_store(default, types.Struct(()), self.table.expression_context)
            metadata = {**metadata, "CURRENT_DEFAULT": default}
            constraints = expressions(defaults=[{"name": column, "sql": default}])
            table, schema = self.table, self.table.schema()
            if any(field.name == column for field in schema.fields):
                bind_constraints(constraints, schema.to_json(), table.expression_context)
        change = {"column": column, "metadata": dict(metadata)}
        self._do("set_column_metadata", commit_options(commit_properties, post_commithook_properties), **change)

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
        """Add CHECK constraints, which all existing and new rows must satisfy.

        Args:
            constraints: Names and conditions (Spark SQL).
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.
            progress: True for a bar on standard error, a function of (done, total), or a tqdm-like bar; counts files
                that are read.

        Raises:
            ConstraintViolatedError: An existing row violates a constraint.

        Examples:
            >>> table.alter.add_constraint({"positive": "id > 0"})
            >>> table.metadata().configuration
            {'delta.constraints.positive': 'id > 0'}
        """
        from deltafast._expr import bind_predicate, read_schema
        from deltafast._expr.constraints import bind_constraints, expressions
        from deltafast._expr.stored import sql_to_store

        context, schema = self.table.expression_context, self.table.schema().to_json()
        columns, given = read_schema(schema), sql_strings(CONSTRAINTS, constraints)
        if context.dialect is Dialect.DELTALAKE:
            for sql in given.values():
                bind_predicate(sql, columns, context)
        checks: list[NamedExpression] = [
            {"name": name, "sql": sql_to_store(sql, columns, context)} for name, sql in given.items()
        ]
        bound = bind_constraints(expressions(checks=checks), schema, context)
        with counted(progress):
            self._do(
                "add_constraints",
                commit_options(commit_properties, post_commithook_properties),
                constraints=bound["checks"],
            )

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
            name: Name of the constraint, ignoring case.
            raise_if_not_exists: Whether a constraint that does not exist is an error.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.add_constraint({"positive": "id > 0"})
            >>> table.alter.drop_constraint("positive")
            >>> table.metadata().configuration
            {}
        """
        change = {"name": name, "if_exists": not raise_if_not_exists}
        self._do("drop_constraint", commit_options(commit_properties, post_commithook_properties), **change)

    # --- domains ---------------------------------------------------------------------------------

    def set_domain_metadata(
        self,
        domain: str,
        configuration: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the configuration of a metadata domain, a string; `DeltaTable.domain_metadata` returns all of them.

        Protocol: "Domain Metadata". Concurrent writers of one domain conflict; writers of different domains do not.

        Args:
            domain: Name of the domain; names with the prefix `delta.` are reserved by the protocol.
            configuration: Any string, often JSON; it replaces the existing one.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Raises:
            DeltaProtocolError: The table lacks the feature `domainMetadata`.

        Examples:
            >>> table.alter.add_feature("domainMetadata", allow_protocol_versions_increase=True)
            >>> table.alter.set_domain_metadata("import", '{"offset": 7}')
            >>> table.domain_metadata()
            {'import': '{"offset": 7}'}
        """
        change = {"domain": domain, "configuration": configuration}
        self._do("set_domain", commit_options(commit_properties, post_commithook_properties), **change)

    def remove_domain_metadata(
        self,
        domain: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove a metadata domain; without such a domain nothing is committed.

        Args:
            domain: Name of the domain; names with the prefix `delta.` are reserved by the protocol.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.add_feature("domainMetadata", allow_protocol_versions_increase=True)
            >>> table.alter.set_domain_metadata("import", '{"offset": 7}')
            >>> table.alter.remove_domain_metadata("import")
            >>> table.domain_metadata()
            {}
        """
        change = {"domain": domain, "configuration": None}
        self._do("set_domain", commit_options(commit_properties, post_commithook_properties), **change)

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
        """Set table properties, and enable the features that they need.

        `delta.enableRowTracking` on a table with files first assigns row ids to them, in separate commits. Iceberg
        compatibility is refused if a file would have to be rewritten for it.

        Args:
            properties: Keys and values: strings, booleans or integers.
            raise_if_not_exists: Whether unknown `delta.` keys are refused.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.set_table_properties({"delta.enableDeletionVectors": True})
            >>> table.protocol().reader_features
            ['deletionVectors']
        """
        change = {"properties": property_strings(properties), "allow_unknown": not raise_if_not_exists}
        self._do("set_properties", commit_options(commit_properties, post_commithook_properties), **change)

    def unset_table_properties(
        self,
        keys: str | Sequence[str],
        raise_if_not_exists: bool = True,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove table properties, so that their defaults apply; features stay.

        Args:
            keys: The keys.
            raise_if_not_exists: Whether a key that is not set is an error.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.set_table_properties({"owner": "sales"})
            >>> table.alter.unset_table_properties("owner")
            >>> table.metadata().configuration
            {}
        """
        change = {"keys": names(keys), "if_exists": not raise_if_not_exists}
        self._do("unset_properties", commit_options(commit_properties, post_commithook_properties), **change)

    @also_by_position(*COMMIT_ARGUMENTS)
    def set_table_name(
        self,
        name: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the name of the table.

        Examples:
            >>> table.alter.set_table_name("cities")
            >>> table.metadata().name
            'cities'
        """
        self._do("set_name", commit_options(commit_properties, post_commithook_properties), name=name)

    @also_by_position(*COMMIT_ARGUMENTS)
    def set_table_description(
        self,
        description: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the description of the table.

        Examples:
            >>> table.alter.set_table_description("Cities with an office")
            >>> table.metadata().description
            'Cities with an office'
        """
        self._do(
            "set_description", commit_options(commit_properties, post_commithook_properties), description=description
        )

    @also_by_position(*COMMIT_ARGUMENTS)
    def add_feature(
        self,
        feature: TableFeatures | str | Sequence[TableFeatures | str],
        allow_protocol_versions_increase: bool = False,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add features to the table's protocol, together with the features that they depend on.

        Args:
            feature: The features, by name or as `TableFeatures`.
            allow_protocol_versions_increase: Whether the protocol versions may increase.
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.

        Examples:
            >>> table.alter.add_feature("deletionVectors", allow_protocol_versions_increase=True)
            >>> table.protocol().reader_features
            ['deletionVectors']
        """
        several = [feature] if isinstance(feature, (str, TableFeatures)) else list(feature)
        wanted = [item.value if isinstance(item, TableFeatures) else item for item in several]
        change = {"names": wanted, "allow_versions": allow_protocol_versions_increase}
        self._do("add_features", commit_options(commit_properties, post_commithook_properties), **change)

    def drop_feature(
        self,
        feature: TableFeatures | str,
        truncate_history: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        progress: Progress = False,
    ) -> None:
        """Remove a feature from the table, as `ALTER TABLE .. DROP FEATURE` of delta-spark 4 does.

        First, separate commits remove the uses of the feature from the newest version: files with deletion vectors or
        widened types are rewritten; for column mapping all files are rewritten with the logical column names; row ids
        and metadata domains are removed from the log; properties are unset. CHECK constraints must be dropped by the
        caller.

        Older versions still use the feature. If it is a reader feature (columnMapping, deletionVectors, typeWidening,
        v2Checkpoint, vacuumProtocolCheck), the table gets the feature `checkpointProtection`, which protects the
        checkpoints from which on no reader needs it. With `truncate_history` that history is deleted instead. This
        takes two calls: the second one when the history is older than
        `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours). `checkpointProtection` itself can only be
        dropped with `truncate_history`.

        appendOnly, changeDataFeed, clustering, identityColumns, generatedColumns, allowColumnDefaults, invariants,
        timestampNtz, variantType, icebergCompatV1 and icebergCompatV2 cannot be dropped, as in delta-spark.

        After an error the finished steps stay, which is harmless, and the call can be repeated. Protocol: "Table
        Features".

        Args:
            feature: The feature, by name or as `TableFeatures`.
            truncate_history: Whether history that uses the feature is deleted, rather than protected.
            commit_properties: Options of the commits; the last commit records the application transactions.
            post_commithook_properties: Maintenance after each commit.
            progress: As for `add_constraint`.

        Raises:
            DeltaProtocolError: The feature cannot be dropped.
            InvalidArgumentError: The table does not have the feature, another feature depends on it, or its history is
                not old enough yet.
            CommitFailedError: A concurrent commit conflicts with a step.

        Examples:
            >>> table.alter.set_table_properties({"delta.enableRowTracking": True})
            >>> table.alter.drop_feature("rowTracking")
            >>> "rowTracking" in table.protocol().writer_features
            False
        """
        table = self.table
        name = feature.value if isinstance(feature, TableFeatures) else feature
        options = commit_options(commit_properties, post_commithook_properties)
        with counted(progress):
            done = _core.drop_feature(table.snapshot, name, truncate_history, options)
        table.move(done.snapshot)

    def cluster_by(
        self,
        columns: str | Sequence[str] | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Change the clustering columns; None for no clustering. No file is rewritten.

        Examples:
            >>> table = DeltaTable.create("clustered", {"id": "long", "city": "string"}, cluster_by="id")
            >>> table.alter.cluster_by(["city", "id"])
            >>> table.detail()["clusteringColumns"]
            ['city', 'id']
        """
        self._do(
            "cluster_by", commit_options(commit_properties, post_commithook_properties), columns=names(columns) or []
        )


#: Changes that are refused for columns that constraints or generated columns use, see `TableChange::reads_references`.
_READ_REFERENCES = frozenset(["drop_columns", "rename_column", "replace_columns", "change_type", "change_columns"])


def alter_table(table: TableHandle, kind: str, options: CommitOptions, **change: Any) -> None:
    """Commit one change of a table.

    Args:
        table: The table.
        kind: Kind of the change, see `TableChange` in `src/ops/alter/mod.rs`.
        options: Options of the commit.
        **change: Fields of that kind.
    """
    from deltafast._expr.constraints import bind_constraints

    snapshot = table.snapshot
    bound = _core.table_constraints(snapshot)
    if kind in _READ_REFERENCES:
        bound = bind_constraints(bound, table.schema().to_json(), table.expression_context)
    given = cast("TableChange", {"kind": kind, **change})
    done = _core.alter(snapshot, given, bound, options)
    table.move(done.snapshot)


class ColumnChanges(TableAlterer):
    """Several changes of columns in one commit; each change applies to the result of the previous ones."""

    def __init__(self, table: TableHandle) -> None:
        super().__init__(table)
        self._changes: list[dict[str, Any]] = []

    def _do(self, kind: str, options: CommitOptions, **change: Any) -> None:  # noqa: ARG002 - `commit` has the options
        self._changes.append({"kind": kind, **change})

    def commit(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit the changes.

        Args:
            commit_properties: Options of the commit.
            post_commithook_properties: Maintenance after the commit.
        """
        super()._do(
            "change_columns", commit_options(commit_properties, post_commithook_properties), changes=self._changes
        )
