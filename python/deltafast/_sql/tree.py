"""Parsed statements, independent of the tables: a closed set of records, one for each statement.

Expressions are kept as text (Spark SQL), queries as text with the tables that Delta's own syntax names cut out of it,
so the same records serve an engine that speaks Spark SQL itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._ops.merge_clause import ClauseKind, MergeAction
    from deltafast._util.write_modes import CreateMode
    from deltafast.schema import DataType, Field

__all__ = [
    "SYMLINK_MANIFEST",
    "AddColumns",
    "AddConstraint",
    "Alter",
    "AlterColumn",
    "AlterColumns",
    "Assignment",
    "Change",
    "Changes",
    "Clause",
    "Clone",
    "ClusterBy",
    "ColumnChange",
    "ColumnPlace",
    "ColumnType",
    "Convert",
    "CreateTable",
    "Default",
    "Delete",
    "Describe",
    "DescribeKind",
    "DropColumns",
    "DropConstraint",
    "DropFeature",
    "Expression",
    "Facts",
    "FactsKind",
    "Generate",
    "Insert",
    "InsertMode",
    "Merge",
    "Optimize",
    "Path",
    "Query",
    "RenameColumn",
    "Reorg",
    "ReplaceColumns",
    "Restore",
    "Select",
    "SetComment",
    "SetProperties",
    "Show",
    "ShowKind",
    "Source",
    "Statement",
    "TableName",
    "TimeTravel",
    "UnsetProperties",
    "Update",
    "Vacuum",
    "Values",
]

#: The only object of GENERATE.
SYMLINK_MANIFEST: Final = "symlink_format_manifest"

#: Parts of a column's name, `a.b` as ("a", "b").
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Expression:
    """Spark SQL of one value, with its position in the statement."""

    text: str
    pos: int


@dataclass(frozen=True)
class Default:
    """`DEFAULT` instead of a value."""


@dataclass(frozen=True)
class TimeTravel:
    """A version, or a timestamp: a string of digits `yyyyMMddHHmmssSSS`, or an expression."""

    version: int | None = None
    digits: str | None = None
    timestamp: Expression | None = None


@dataclass(frozen=True)
class TableName:
    """A table: by a name that the caller defines, or by its location (``delta.`place` ``)."""

    name: str
    by_path: bool
    pos: int
    at: TimeTravel | None = None


@dataclass(frozen=True)
class Changes:
    """`table_changes(..)`: the change data feed between two versions or timestamps, both included."""

    table: TableName
    start: int | str
    end: int | str | None


class FactsKind(StrEnum):
    """Metadata that a function of a query returns, as the end of the function's name."""

    FILES = "files"
    HISTORY = "history"
    DETAIL = "detail"


@dataclass(frozen=True)
class Facts:
    """`delta_files(..)`, `delta_history(..)` or `delta_detail(..)`: metadata of a table as rows."""

    table: TableName
    kind: FactsKind
    #: Largest number of commits of the history.
    limit: int | None = None


@dataclass(frozen=True)
class Query:
    """A query in the engine's own SQL; `parts` is the query with records for the tables in Delta's syntax."""

    text: str
    parts: tuple[str | TableName | Changes | Facts, ...]
    #: All other names in it, in lower case: the caller's tables that it may refer to.
    names: frozenset[str]


@dataclass(frozen=True)
class Values:
    """`VALUES (..), (..)`, in Spark SQL."""

    rows: tuple[tuple[Expression | Default, ...], ...]
    pos: int


Source: TypeAlias = Query | Values | TableName


@dataclass(frozen=True)
class Select:
    """A query as a statement."""

    query: Query


class InsertMode(Enum):
    """Which rows an INSERT replaces."""

    #: No rows.
    APPEND = "INSERT INTO"
    #: All rows, or those of partitions.
    OVERWRITE = "INSERT OVERWRITE"
    #: The rows for which a condition is true.
    WHERE = "REPLACE WHERE"
    #: The rows with the values of new rows in some columns.
    USING = "REPLACE USING"
    #: The rows that match a new row.
    ON = "REPLACE ON"


@dataclass(frozen=True)
class Insert:
    """INSERT in all its forms."""

    target: TableName
    source: Source
    mode: InsertMode = InsertMode.APPEND
    columns: tuple[str, ...] = ()
    by_name: bool = False
    partition: tuple[tuple[str, Expression | None], ...] = ()
    condition: Expression | None = None
    using: tuple[str, ...] = ()
    target_alias: str | None = None
    source_alias: str | None = None
    evolve: bool = False


@dataclass(frozen=True)
class Delete:
    """DELETE, and TRUNCATE TABLE."""

    target: TableName
    alias: str | None
    where: Expression | None


@dataclass(frozen=True)
class Assignment:
    """`column = value`."""

    column: Path
    value: Expression | Default


@dataclass(frozen=True)
class Update:
    """UPDATE."""

    target: TableName
    alias: str | None
    assignments: tuple[Assignment, ...]
    where: Expression | None


@dataclass(frozen=True)
class Clause:
    """One WHEN of a MERGE; an update or insert without assignments is of all columns (`*`)."""

    kind: ClauseKind
    action: MergeAction
    condition: Expression | None
    assignments: tuple[Assignment, ...] | None


@dataclass(frozen=True)
class Merge:
    """MERGE."""

    target: TableName
    alias: str | None
    source: Source
    source_alias: str | None
    on: Expression
    clauses: tuple[Clause, ...]
    evolve: bool
    #: The names of a query's columns, `AS s (a, b)`.
    source_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateTable:
    """CREATE or REPLACE TABLE, from columns or from a query."""

    target: TableName
    mode: CreateMode
    columns: tuple[Field, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    comment: str | None = None
    location: str | None = None
    query: Source | None = None


@dataclass(frozen=True)
class Clone:
    """CREATE TABLE .. SHALLOW CLONE."""

    target: TableName
    source: TableName
    mode: CreateMode
    properties: Mapping[str, str]
    location: str | None


@dataclass(frozen=True)
class ColumnPlace:
    """Position of a column among its siblings: FIRST, or AFTER one of them."""

    after: str | None


@dataclass(frozen=True)
class ColumnType:
    """A type of a column, and the length of a string (`varchar(10)`), if it has one."""

    data_type: DataType
    length: str | None


@dataclass(frozen=True)
class AddColumns:
    """ADD COLUMNS: each with the path of its struct, and with its position if it is not added at the end."""

    fields: tuple[tuple[Path, Field, ColumnPlace | None], ...]


@dataclass(frozen=True)
class ReplaceColumns:
    """REPLACE COLUMNS."""

    columns: tuple[Field, ...]


@dataclass(frozen=True)
class DropColumns:
    """DROP COLUMNS."""

    columns: tuple[Path, ...]
    if_exists: bool


@dataclass(frozen=True)
class RenameColumn:
    """RENAME COLUMN."""

    column: Path
    name: str


class ColumnChange(Enum):
    """What ALTER COLUMN changes of a column."""

    TYPE = "type"
    NULLABLE = "nullable"
    COMMENT = "comment"
    DEFAULT = "default"
    POSITION = "position"
    IDENTITY = "identity"


@dataclass(frozen=True)
class AlterColumn:
    """A change of type, nullable, comment, default (None drops it) or position; SYNC IDENTITY has no value."""

    column: Path
    kind: ColumnChange
    value: ColumnType | bool | str | Expression | ColumnPlace | None


@dataclass(frozen=True)
class AlterColumns:
    """ALTER COLUMN of one or several columns; CHANGE COLUMN, which changes one column in several ways."""

    columns: tuple[AlterColumn, ...]


@dataclass(frozen=True)
class SetProperties:
    """SET TBLPROPERTIES."""

    properties: Mapping[str, str]


@dataclass(frozen=True)
class UnsetProperties:
    """UNSET TBLPROPERTIES."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class SetComment:
    """COMMENT ON TABLE."""

    comment: str | None


@dataclass(frozen=True)
class AddConstraint:
    """ADD CONSTRAINT .. CHECK."""

    name: str
    check: Expression


@dataclass(frozen=True)
class DropConstraint:
    """DROP CONSTRAINT."""

    name: str
    if_exists: bool


@dataclass(frozen=True)
class DropFeature:
    """DROP FEATURE."""

    feature: str
    truncate_history: bool


@dataclass(frozen=True)
class ClusterBy:
    """CLUSTER BY; no columns stand for NONE."""

    columns: tuple[Path, ...]


Change: TypeAlias = (
    AddColumns
    | ReplaceColumns
    | DropColumns
    | RenameColumn
    | AlterColumns
    | SetProperties
    | UnsetProperties
    | SetComment
    | AddConstraint
    | DropConstraint
    | DropFeature
    | ClusterBy
)


@dataclass(frozen=True)
class Alter:
    """ALTER TABLE, and COMMENT ON TABLE."""

    target: TableName
    change: Change


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE."""

    target: TableName
    full: bool
    where: Expression | None
    zorder_by: tuple[Path, ...]


@dataclass(frozen=True)
class Reorg:
    """REORG TABLE; `upgrade` is the version of Iceberg compatibility, None for PURGE."""

    target: TableName
    where: Expression | None
    upgrade: int | None


@dataclass(frozen=True)
class Vacuum:
    """VACUUM; without LITE or FULL it is FULL, as in Spark."""

    target: TableName
    lite: bool
    hours: float | None
    dry_run: bool
    inventory: Source | None


@dataclass(frozen=True)
class Restore:
    """RESTORE."""

    target: TableName
    at: TimeTravel


class DescribeKind(Enum):
    """What DESCRIBE returns."""

    DETAIL = "DETAIL"
    HISTORY = "HISTORY"
    TABLE = "TABLE"
    EXTENDED = "EXTENDED"
    COLUMN = "COLUMN"


@dataclass(frozen=True)
class Describe:
    """DESCRIBE DETAIL, HISTORY and TABLE [EXTENDED], or of a column."""

    target: TableName
    kind: DescribeKind
    limit: int | None = None
    column: Path = ()


class ShowKind(Enum):
    """What SHOW lists."""

    PROPERTIES = "TBLPROPERTIES"
    COLUMNS = "COLUMNS"
    PARTITIONS = "PARTITIONS"
    CREATE_TABLE = "CREATE TABLE"


@dataclass(frozen=True)
class Show:
    """SHOW TBLPROPERTIES, COLUMNS, PARTITIONS and CREATE TABLE."""

    target: TableName
    kind: ShowKind
    key: str | None = None
    #: The values of PARTITION, by column.
    partition: tuple[tuple[str, Expression | None], ...] = ()


@dataclass(frozen=True)
class Convert:
    """CONVERT TO DELTA."""

    place: str
    statistics: bool
    partition_by: tuple[Field, ...]


@dataclass(frozen=True)
class Generate:
    """GENERATE symlink_format_manifest."""

    target: TableName


Statement: TypeAlias = (
    Select
    | Insert
    | Delete
    | Update
    | Merge
    | CreateTable
    | Clone
    | Alter
    | Optimize
    | Reorg
    | Vacuum
    | Restore
    | Describe
    | Show
    | Convert
    | Generate
)
