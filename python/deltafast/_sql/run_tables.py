"""CREATE TABLE, clones, ALTER TABLE and conversions through the methods of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from deltafast import _core
from deltafast._delta_keys import GENERATION_EXPRESSION
from deltafast._expr.stored import with_single_quotes
from deltafast._handle import OpenOptions, handle_of
from deltafast._ops.alter import ColumnChanges
from deltafast._ops.convert_parquet import convert_to_deltalake
from deltafast._sql.answers import counts, nothing
from deltafast._sql.expressions import plain
from deltafast._sql.rows import source_rows
from deltafast._sql.tree import (
    AddColumns,
    AddConstraint,
    AlterColumns,
    ClusterBy,
    ColumnChange,
    ColumnPlace,
    ColumnType,
    DropColumns,
    DropConstraint,
    DropFeature,
    Expression,
    RenameColumn,
    ReplaceColumns,
    SetComment,
    SetProperties,
    UnsetProperties,
)
from deltafast._util.column_path import column_text
from deltafast._util.options import commit_options
from deltafast._util.write_modes import CREATE_MODES, CreateMode, as_select
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError
from deltafast.schema import Field, Schema, StructType, parts_of
from deltafast.table import DeltaTable
from deltafast.writer import write_as_select

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltafast._core_types import WriteOptions
    from deltafast._ops.alter import TableAlterer
    from deltafast._sql.tables import Tables
    from deltafast._sql.tree import Alter, AlterColumn, Change, Clone, Convert, CreateTable, Path
    from deltafast._util.dialect import Dialect
    from deltafast.schema import DataType

__all__ = ["run_alter", "run_clone", "run_convert", "run_create"]


def run_create(create: CreateTable, tables: Tables) -> pa.RecordBatchReader:
    """Create a table, or replace the existing one."""
    place = tables.place(create.target, create.location)
    there = tables.existing(place)
    _check_there(create.mode, there, place)
    if there is not None and create.mode is CreateMode.IF_NOT_EXISTS:
        return nothing()
    _core.check_retention(dict(create.properties))
    if create.query is not None:
        _create_from_rows(create, place, there, tables)
    elif not create.columns:
        message = "the table would have no columns: give some, or a query (AS SELECT ..)"
        raise InvalidArgumentError(message)
    else:
        DeltaTable.create(
            place,
            Schema(_in_single_quotes(create.columns, tables.dialect)),
            CREATE_MODES[create.mode],
            partition_by=list(create.partition_by),
            description=create.comment,
            configuration=dict(create.properties),
            storage_options=tables.storage_options,
            commit_properties=tables.commit_properties,
            cluster_by=list(create.cluster_by),
            time_zone=tables.zone,
        )
    tables.moved(create.target)
    return nothing()


def _check_there(mode: CreateMode, there: DeltaTable | None, place: str) -> None:
    if mode is CreateMode.REPLACE and there is None:
        message = f"there is no table at {place} to be replaced; write CREATE OR REPLACE TABLE"
        raise TableNotFoundError(message, path=place)


def _create_from_rows(create: CreateTable, place: str, there: DeltaTable | None, tables: Tables) -> None:
    if there is not None and create.mode is CreateMode.CREATE:
        message = f"there is a table at {place} already; write CREATE OR REPLACE TABLE or CREATE TABLE IF NOT EXISTS"
        raise InvalidArgumentError(message)
    assert create.query is not None  # noqa: S101 - for the type checker
    definition: WriteOptions = {
        "partition_by": list(create.partition_by),
        "cluster_by": list(create.cluster_by),
        "description": create.comment,
        "configuration": dict(create.properties),
        "commit_options": commit_options(tables.commit_properties),
    }
    rows, opening = source_rows(create.query, tables), OpenOptions(tables.storage_options, time_zone=tables.zone)
    write_as_select(place if there is None else there, rows, as_select(create.mode), definition, opening)


def run_clone(clone: Clone, tables: Tables) -> pa.RecordBatchReader:
    """Create a shallow clone, or replace a table without rows by one."""
    source = tables.table(clone.source)
    place = tables.place(clone.target, clone.location)
    there = tables.existing(place)
    if there is not None and clone.mode is CreateMode.IF_NOT_EXISTS:
        return nothing()
    _check_there(clone.mode, there, place)
    made = source.clone(
        place,
        properties=clone.properties,
        replace=clone.mode in (CreateMode.REPLACE, CreateMode.CREATE_OR_REPLACE),
        storage_options=tables.storage_options,
        commit_properties=tables.commit_properties,
    )
    tables.moved(clone.target)
    detail = made.detail()
    return counts(
        source_table_size=detail["sizeInBytes"],
        source_num_of_files=detail["numFiles"],
        num_removed_files=0,
        num_copied_files=0,
        removed_files_size=0,
        copied_files_size=0,
    )


def run_convert(convert: Convert, tables: Tables) -> pa.RecordBatchReader:
    """Convert a folder of Parquet files to a table."""
    convert_to_deltalake(
        convert.place,
        partition_by=Schema(list(convert.partition_by)) if convert.partition_by else None,
        storage_options=tables.storage_options,
        collect_stats=convert.statistics,
        commit_properties=tables.commit_properties,
    )
    return nothing()


def run_alter(alter: Alter, tables: Tables) -> pa.RecordBatchReader:
    """Alter a table."""
    commit = {"commit_properties": tables.commit_properties}
    _alter(tables.table(alter.target), alter.change, commit, tables.dialect)
    return nothing()


def _alter(  # noqa: C901, PLR0912 - one line a change
    table: DeltaTable, change: Change, commit: dict[str, Any], dialect: Dialect
) -> None:
    do = table.alter
    match change:
        case AddColumns(fields):
            after = {_dotted((*path, field.name)): place.after for path, field, place in fields if place is not None}
            new = _joined(tuple((path, field) for path, field, _ in fields), table.schema())
            do.add_columns(_in_single_quotes(new, dialect), after=after, **commit)
        case ReplaceColumns(columns):
            do.replace_columns(_in_single_quotes(columns, dialect), **commit)
        case DropColumns(columns, if_exists):
            names = [column_text(path) for path in columns if not if_exists or _has(table.schema(), path)]
            if names:
                do.drop_columns(names, **commit)
        case RenameColumn(column, name):
            do.rename_column(column_text(column), name, **commit)
        case AlterColumns((column,)):
            _alter_column(do, column, commit)
        case AlterColumns(columns):
            together = ColumnChanges(handle_of(table))
            for column in columns:
                _alter_column(together, column, {})
            together.commit(**commit)
        case SetProperties(properties):
            _core.check_retention(dict(properties))
            do.set_table_properties(properties, **commit)
        case UnsetProperties(keys):
            do.unset_table_properties(list(keys), raise_if_not_exists=False, **commit)
        case SetComment(comment):
            do.set_table_description(comment or "", **commit)
        case AddConstraint(name, check):
            columns = [field.name for field in table.schema().fields]
            do.add_constraint({name: plain(check, columns, dialect=dialect)}, **commit)
        case DropConstraint(name, if_exists):
            do.drop_constraint(name, raise_if_not_exists=not if_exists, **commit)
        case DropFeature(feature, truncate):
            do.drop_feature(feature, truncate, **commit)
        case ClusterBy(columns):
            do.cluster_by([column_text(path) for path in columns] or None, **commit)


def _alter_column(do: TableAlterer, change: AlterColumn, commit: dict[str, Any]) -> None:
    name, value = column_text(change.column), change.value
    if isinstance(value, ColumnPlace):
        do.move_column(name, value.after, **commit)
    elif change.kind is ColumnChange.IDENTITY:
        do.sync_identity(name, **commit)
    elif isinstance(value, ColumnType):
        do.set_column_type(name, value.data_type, length=value.length, **commit)
    elif change.kind is ColumnChange.NULLABLE:
        set_null = do.drop_column_not_null if value else do.set_column_not_null
        set_null(name, **commit)
    elif change.kind is ColumnChange.COMMENT:
        do.set_column_metadata(name, {"comment": value}, **commit)
    else:
        default = with_single_quotes(value.text) if isinstance(value, Expression) else None
        do.set_column_metadata(name, {"CURRENT_DEFAULT": default}, **commit)


def _in_single_quotes(fields: Sequence[Field], dialect: Dialect) -> list[Field]:
    """Return new columns whose expressions have no strings in double quotes.

    Raises:
        InvalidArgumentError: In a statement, such a string of a generated column is also a column.
    """
    columns = [field.name for field in fields]
    out: list[Field] = []
    for field in fields:
        metadata = dict(field.metadata)
        if (generation := metadata.get(GENERATION_EXPRESSION)) is not None:
            metadata[GENERATION_EXPRESSION] = plain(Expression(generation, 0), columns, dialect=dialect)
        if (default := metadata.get("CURRENT_DEFAULT")) is not None:
            metadata["CURRENT_DEFAULT"] = with_single_quotes(default)
        out.append(field if metadata == field.metadata else Field(field.name, field.type, field.nullable, metadata))
    return out


def _dotted(path: Path) -> str:
    return ".".join(path)


_Fields: TypeAlias = "tuple[tuple[Path, Field], ...]"


def _joined(fields: _Fields, schema: DataType | None, path: Path = ()) -> list[Field]:
    """Return new fields as columns: nested fields within a struct with the name of their parent.

    Raises:
        InvalidArgumentError: The parent is not a struct or has the field, or the field is not nullable.
    """
    out: list[Field] = []
    nested: dict[str, _Fields] = {}
    for parents, field in fields:
        name = _dotted((*path, field.name))
        if parents:
            nested[parents[0]] = (*nested.get(parents[0], ()), (parents[1:], field))
            continue
        # The core checks columns.
        if path and _inner(schema, field.name) is not None:
            message = f"the table has a field `{name}` already"
            raise InvalidArgumentError(message)
        if path and not field.nullable:
            message = f"the new field `{name}` must be nullable: existing rows have no value for it"
            raise InvalidArgumentError(message)
        out.append(field)
    return out + [Field(name, _grown(inner, _inner(schema, name), (*path, name))) for name, inner in nested.items()]


def _grown(fields: _Fields, kind: DataType | None, path: Path) -> DataType:
    """Return a type with only the new fields, each within the struct of its path."""
    if kind is None or isinstance(kind, StructType):
        return StructType(_joined(fields, kind, path))
    grown: dict[str, DataType] = {}
    for part in {parents[:1] for parents, _ in fields}:
        inner = _inner(kind, part[0]) if part else None
        if inner is None:
            held = [*parts_of(kind)][-1:]
            hint = f"; name it `{_dotted((*path, *held))}.field`" if held else ""
            message = f"`{_dotted(path)}` is not a struct, so that no field can be added to it{hint}"
            raise InvalidArgumentError(message)
        of = tuple((parents[1:], field) for parents, field in fields if parents[:1] == part)
        grown[part[0]] = _grown(of, inner, (*path, part[0]))
    make: Any = type(kind)
    return make(*(parts_of(kind) | grown).values())


def _inner(kind: DataType | None, name: str) -> DataType | None:
    """Return the type of a field, or of the elements, keys or values of a list or map."""
    if isinstance(kind, StructType):
        return next((field.type for field in kind.fields if field.name.lower() == name.lower()), None)
    return parts_of(kind).get(name)


def _has(schema: StructType, path: Path) -> bool:
    kind: DataType | None = schema
    for part in path:
        kind = _inner(kind, part)
    return kind is not None
