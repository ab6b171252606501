"""Parser of CREATE TABLE, SHALLOW CLONE, ALTER TABLE, COMMENT ON, CONVERT TO DELTA."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deltafast._expr import token_kind
from deltafast._expr.errors import unsupported
from deltafast._expr.types import DECLARED_TYPE
from deltafast._sql.read_columns import read_column, read_columns, read_type
from deltafast._sql.tree import (
    AddColumns,
    AddConstraint,
    Alter,
    AlterColumn,
    AlterColumns,
    Clone,
    ClusterBy,
    ColumnChange,
    ColumnPlace,
    ColumnType,
    Convert,
    CreateTable,
    DropColumns,
    DropConstraint,
    DropFeature,
    RenameColumn,
    ReplaceColumns,
    SetComment,
    SetProperties,
    UnsetProperties,
)
from deltafast._util.column_path import column_text
from deltafast._util.write_modes import CreateMode
from deltafast.exceptions import ErrorCode
from deltafast.schema import Field

if TYPE_CHECKING:
    from deltafast._sql.reader import Reader
    from deltafast._sql.tree import Change, Path

__all__ = ["read_alter", "read_comment", "read_convert", "read_create"]

_NO_CATALOG: Final = "there is no catalog here: use a table's place"


def read_create(reader: Reader) -> CreateTable | Clone:
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t ..`, `REPLACE TABLE t ..`."""
    mode = _mode(reader)
    target = reader.table()
    if reader.accept("SHALLOW", "CLONE"):
        return _clone(reader, target, mode)
    if reader.peek("DEEP") or reader.peek("CLONE"):
        reader.absent("a deep CLONE", "write SHALLOW CLONE, or CREATE TABLE .. AS SELECT * FROM ..")
    if reader.accept("LIKE"):
        reader.absent("CREATE TABLE LIKE", "give the columns, or a query that gives no rows")
    parts: dict[str, Any] = {}
    if reader.is_op("(") and not reader.at_query():
        parts["columns"] = read_columns(reader)
    _clauses(reader, parts, target.name)
    if reader.accept("AS") or reader.at_query():
        if "columns" in parts:
            reader.fail("columns are given, or a query; expected the end of the statement")
        parts["query"] = reader.source()
    elif "columns" not in parts:
        parts["columns"] = ()
    return CreateTable(target, mode, **parts)


def _mode(reader: Reader) -> CreateMode:
    """Read the part before the table's name."""
    mode = CreateMode.CREATE
    if reader.accept("REPLACE"):
        mode = CreateMode.REPLACE
    else:
        reader.expect("CREATE")
        if reader.accept("OR", "REPLACE"):
            mode = CreateMode.CREATE_OR_REPLACE
    if reader.token.upper in ("VIEW", "TEMPORARY", "TEMP", "DATABASE", "SCHEMA", "FUNCTION", "EXTERNAL"):
        reader.absent(f"CREATE {reader.token.upper}", _NO_CATALOG)
    reader.expect("TABLE")
    if not reader.accept("IF", "NOT", "EXISTS"):
        return mode
    if mode is not CreateMode.CREATE:
        reader.fail("REPLACE and IF NOT EXISTS exclude each other; expected a table's name")
    return CreateMode.IF_NOT_EXISTS


def _clauses(reader: Reader, parts: dict[str, Any], name: str) -> None:  # noqa: C901 - one line a clause
    """Read the clauses of a table of this name between the columns and the query, in any order."""
    while True:
        pos = reader.token.pos
        if reader.accept("USING"):
            if reader.name_part("a format").lower() != "delta":
                raise reader.error("only tables of Delta are made", pos, "write USING delta")
            continue
        if reader.accept("PARTITIONED", "BY"):
            key, value = "partition_by", _partition_names(reader, parts)
        elif reader.accept("CLUSTER", "BY"):
            paths: tuple[Path, ...] = () if reader.accept("NONE") else reader.paths()
            key, value = "cluster_by", tuple(column_text(path) for path in paths)
        elif reader.accept("TBLPROPERTIES") or reader.accept("OPTIONS"):
            key, value = "properties", reader.properties()
        elif reader.accept("COMMENT"):
            key, value = "comment", reader.string_text()
        elif reader.accept("LOCATION"):
            key, value = "location", reader.string_text()
        elif reader.peek("CLUSTERED", "BY"):
            what = "buckets are not supported"
            code = ErrorCode.BUCKETS_UNSUPPORTED
            raise reader.error(what, pos, "write CLUSTER BY (columns)", code=code, parameters={"table": name})
        elif reader.accept("STORED", "AS") or reader.peek("ROW", "FORMAT"):
            reader.absent("a table of Hive's", "leave this out")
        else:
            return
        if key in parts and key != "partition_by":
            raise reader.error(f"{key.upper()} is given twice", pos, "give it once")
        parts[key] = value


def _partition_names(reader: Reader, parts: dict[str, Any]) -> tuple[str, ...]:
    """`(a, b)`, or columns with their types, which then come last in the table."""
    if reader.ahead(2).text in (",", ")"):
        return reader.names()
    if reader.ahead(2).text == "(":
        reader.absent(
            "a partition transform", "use a generated column: day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))"
        )
    fields = read_columns(reader)
    parts["columns"] = (*parts.get("columns", ()), *fields)
    return tuple(field.name for field in fields)


def _clone(reader: Reader, target: Any, mode: Any) -> Clone:
    source = reader.source_table()
    properties = reader.properties() if reader.accept("TBLPROPERTIES") else {}
    location = reader.string_text() if reader.accept("LOCATION") else None
    return Clone(target, source, mode, properties, location)


def read_comment(reader: Reader) -> Alter:
    """`COMMENT ON TABLE t IS '..'`."""
    reader.expect("COMMENT", "ON", "TABLE")
    target = reader.table()
    reader.expect("IS")
    return Alter(target, SetComment(None if reader.accept("NULL") else reader.string_text()))


def read_convert(reader: Reader) -> Convert:
    """``CONVERT TO DELTA parquet.`place` [NO STATISTICS] [PARTITIONED BY (a INT)]``."""
    reader.expect("CONVERT", "TO", "DELTA")
    pos = reader.token.pos
    if reader.token.kind is token_kind.STRING:
        place = reader.string_text()
    else:
        name = reader.name_part("parquet.`place`").lower()
        if name == "iceberg":
            reader.absent("converting a table of Iceberg", "only folders of Parquet files are converted", pos)
        if name != "parquet" or not reader.accept_op(".") or reader.token.kind is not token_kind.QUOTED:
            raise reader.error("expected parquet.`place`", pos, "name the folder of Parquet files")
        place = reader.advance().text
    statistics = not reader.accept("NO", "STATISTICS")
    fields = read_columns(reader) if reader.accept("PARTITIONED", "BY") else ()
    return Convert(place, statistics, fields)


def read_alter(reader: Reader) -> Alter:
    """`ALTER TABLE t ..`."""
    reader.expect("ALTER", "TABLE")
    target = reader.table()
    pos = reader.token.pos
    for words, read in _CHANGES.items():
        if reader.accept(*words.split()):
            return Alter(target, read(reader))
    for words, hint in _ABSENT.items():
        if reader.peek(*words.split()):
            what, code, given = f"ALTER TABLE .. {words} is not supported", None, {"path": target.name}
            if words == "SET LOCATION" and target.by_path:
                code = ErrorCode.LOCATION_OF_PATH_TABLE
            elif words.endswith(("PARTITION", "PARTITIONS")):
                code, given = ErrorCode.PARTITIONS_NOT_MANAGED, {"table": target.name}
            raise unsupported(what, reader.text, pos, hint, code=code, parameters=given)
    reader.fail("expected a change of the table, such as ADD COLUMNS, SET TBLPROPERTIES or CLUSTER BY")


def _add_columns(reader: Reader) -> Change:
    bracketed = reader.accept_op("(")
    out: list[tuple[Path, Field, ColumnPlace | None]] = []
    while True:
        *parents, name = reader.path()
        field = read_column(reader, name=name)
        out.append((tuple(parents), field, _place(reader)))
        if not reader.accept_op(","):
            break
    if bracketed:
        reader.expect_op(")")
    return AddColumns(tuple(out))


def _replace_columns(reader: Reader) -> Change:
    """`(a INT COMMENT '..', ..)`."""
    reader.expect_op("(")
    out = [_replacing_column(reader)]
    while reader.accept_op(","):
        out.append(_replacing_column(reader))
    reader.expect_op(")")
    return ReplaceColumns(tuple(out))


def _replacing_column(reader: Reader) -> Field:
    pos = reader.token.pos
    name, *fields = reader.path()
    if fields:
        what = "REPLACE COLUMNS lists columns, not fields"
        raise reader.error(what, pos, "give the column with its whole type: s STRUCT<x: INT>")
    metadata: dict[str, Any] = {}
    kind = read_type(reader, metadata)
    if reader.accept("COMMENT"):
        metadata["comment"] = reader.string_text()
    hints = {
        "NOT": ("NOT NULL in REPLACE COLUMNS", "write ALTER TABLE t ALTER COLUMN c SET NOT NULL afterwards"),
        "DEFAULT": ("DEFAULT in REPLACE COLUMNS", "write ALTER TABLE t ALTER COLUMN c SET DEFAULT .. afterwards"),
        "GENERATED": ("GENERATED in REPLACE COLUMNS", "generated columns keep their expressions; leave it out"),
        "FIRST": ("FIRST in REPLACE COLUMNS", "the columns get the order of the list"),
        "AFTER": ("AFTER in REPLACE COLUMNS", "the columns get the order of the list"),
    }
    if (word := reader.token.upper) in hints:
        reader.absent(*hints[word])
    return Field(name, kind, metadata=metadata)


def _place(reader: Reader) -> ColumnPlace | None:
    """`[FIRST | AFTER column]`; a field's sibling is named without the struct, as in Spark."""
    if reader.accept("FIRST"):
        return ColumnPlace(None)
    return ColumnPlace(reader.name_part("a column")) if reader.accept("AFTER") else None


def _drop_columns(reader: Reader) -> Change:
    if_exists = reader.accept("IF", "EXISTS")
    return DropColumns(reader.paths(), if_exists)


def _rename_column(reader: Reader) -> Change:
    column = reader.path()
    reader.expect("TO")
    return RenameColumn(column, reader.name_part("a name"))


def _alter_columns(reader: Reader) -> Change:
    out: list[AlterColumn] = []
    while True:
        pos = reader.token.pos
        one = _alter_column(reader)
        path = tuple(part.lower() for part in one.column)
        for other in out:
            known = tuple(part.lower() for part in other.column)
            if path[: len(known)] == known[: len(path)]:
                what = f"`{'.'.join(one.column)}` is changed twice"
                raise reader.error(
                    what,
                    pos,
                    "write a statement for each change",
                    code=ErrorCode.COLUMN_CHANGED_TWICE,
                    parameters={"column": ".".join(one.column)},
                )
        out.append(one)
        if not reader.accept_op(","):
            return AlterColumns(tuple(out))


def _alter_column(reader: Reader) -> AlterColumn:  # noqa: PLR0911 - one line a change
    column = reader.path()
    if reader.accept("TYPE"):
        return AlterColumn(column, ColumnChange.TYPE, _column_type(reader))
    if reader.accept("COMMENT"):
        return AlterColumn(column, ColumnChange.COMMENT, reader.string_text())
    if reader.accept("SET", "NOT", "NULL"):
        return AlterColumn(column, ColumnChange.NULLABLE, value=False)
    if reader.accept("DROP", "NOT", "NULL"):
        return AlterColumn(column, ColumnChange.NULLABLE, value=True)
    if reader.accept("SET", "DEFAULT"):
        return AlterColumn(column, ColumnChange.DEFAULT, reader.value())
    if reader.accept("DROP", "DEFAULT"):
        return AlterColumn(column, ColumnChange.DEFAULT, None)
    if reader.accept("SYNC", "IDENTITY"):
        return AlterColumn(column, ColumnChange.IDENTITY, None)
    if (place := _place(reader)) is None:
        what = "TYPE, COMMENT, SET NOT NULL, DROP NOT NULL, SET DEFAULT, DROP DEFAULT, FIRST, AFTER or SYNC IDENTITY"
        reader.fail(f"expected {what}")
    return AlterColumn(column, ColumnChange.POSITION, place)


def _column_type(reader: Reader) -> ColumnType:
    metadata: dict[str, Any] = {}
    kind = read_type(reader, metadata)
    return ColumnType(kind, metadata.get(DECLARED_TYPE))


def _is_type_next(reader: Reader, name: str) -> bool:
    """Whether the name of the column is repeated, for its type; `CHANGE COLUMN comment comment INT` is possible."""
    token = reader.token
    if token.kind is not token_kind.NAME or token.upper not in _COLUMN_CHANGES:
        return token.kind in (token_kind.NAME, token_kind.QUOTED)
    repeated = token.text.lower() == name.lower()
    return repeated and (
        token.upper == "TYPE" or (token.upper == "COMMENT" and reader.ahead(1).kind is not token_kind.STRING)
    )


def _change_column(reader: Reader) -> Change:
    """Hive's `CHANGE COLUMN a a INT [COMMENT '..'] [FIRST | AFTER b]`, and Spark's form, which is ALTER COLUMN's."""
    start = reader.position
    column = reader.path()
    if not _is_type_next(reader, column[-1]):
        reader.move(start)
        return _alter_columns(reader)
    pos = reader.token.pos
    name = reader.name_part("the name of the column")
    if name.lower() != column[-1].lower():
        hint = f"write ALTER TABLE t RENAME COLUMN {'.'.join(column)} TO {name}"
        raise reader.error("CHANGE COLUMN does not rename a column", pos, hint)
    changes = [AlterColumn(column, ColumnChange.TYPE, _column_type(reader))]
    if reader.peek("NOT", "NULL"):
        reader.absent("NOT NULL in CHANGE COLUMN", "write ALTER TABLE t ALTER COLUMN c SET NOT NULL")
    if reader.accept("COMMENT"):
        changes.append(AlterColumn(column, ColumnChange.COMMENT, reader.string_text()))
    if (place := _place(reader)) is not None:
        changes.append(AlterColumn(column, ColumnChange.POSITION, place))
    return AlterColumns(tuple(changes))


def _set_properties(reader: Reader) -> Change:
    return SetProperties(reader.properties())


def _unset_properties(reader: Reader) -> Change:
    # Delta unsets existing keys either way.
    reader.accept("IF", "EXISTS")
    reader.expect_op("(")
    keys = [reader.property_key()]
    while reader.accept_op(","):
        keys.append(reader.property_key())
    reader.expect_op(")")
    return UnsetProperties(tuple(keys))


def _add_constraint(reader: Reader) -> Change:
    name = reader.name_part("a constraint's name")
    if reader.peek("PRIMARY") or reader.peek("FOREIGN") or reader.peek("UNIQUE"):
        reader.absent("a constraint other than CHECK", "write ADD CONSTRAINT name CHECK (..)")
    reader.expect("CHECK")
    return AddConstraint(name, reader.bracketed())


def _drop_constraint(reader: Reader) -> Change:
    if_exists = reader.accept("IF", "EXISTS")
    return DropConstraint(reader.name_part("a constraint's name"), if_exists)


def _drop_feature(reader: Reader) -> Change:
    feature = reader.string_text() if reader.token.kind is token_kind.STRING else reader.name_part("a feature")
    if not re.fullmatch(r"[\w-]+", feature):
        reader.fail("expected a feature's name")
    return DropFeature(feature, reader.accept("TRUNCATE", "HISTORY"))


def _cluster_by(reader: Reader) -> Change:
    return ClusterBy(() if reader.accept("NONE") else reader.paths())


#: Words that follow the column in ALTER COLUMN.
_COLUMN_CHANGES: Final = ("TYPE", "COMMENT", "SET", "DROP", "SYNC", "FIRST", "AFTER")
#: The first match counts.
_CHANGES: Final = {
    "ADD COLUMNS": _add_columns,
    "ADD COLUMN": _add_columns,
    "ADD CONSTRAINT": _add_constraint,
    "DROP COLUMNS": _drop_columns,
    "DROP COLUMN": _drop_columns,
    "DROP CONSTRAINT": _drop_constraint,
    "DROP FEATURE": _drop_feature,
    "RENAME COLUMN": _rename_column,
    "REPLACE COLUMNS": _replace_columns,
    "ALTER COLUMN": _alter_columns,
    "ALTER": _alter_columns,
    "CHANGE COLUMN": _change_column,
    "CHANGE": _change_column,
    "SET TBLPROPERTIES": _set_properties,
    "UNSET TBLPROPERTIES": _unset_properties,
    "CLUSTER BY": _cluster_by,
}
_ABSENT: Final = {
    "RENAME TO": "there is no catalog here, and a table's place stays",
    "SET LOCATION": "there is no catalog here, and a table's place stays",
    "ADD PARTITION": "partitions come with their rows",
    "DROP PARTITION": "write DELETE FROM t WHERE ..",
    "RECOVER PARTITIONS": "the log knows the partitions",
    "ADD FEATURE": "set the property delta.feature.<name> to 'supported'",
    "SET SERDE": "a table of Delta has none",
}
