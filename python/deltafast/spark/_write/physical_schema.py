"""Rows of a frame -> rows of the table's files: matched by name, cast, with defaults, generated, checked, renamed.

Everything is a Spark expression, so Spark's optimizer and executors do the work. A row that violates a constraint
raises an error while it is written, and nothing is committed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast._expr import read_schema
from deltafast._expr.stored import constraint_sql, generation_sql
from deltafast._types import Path, fields_within, paired_parts, with_parts
from deltafast._types import parts as parts_of
from deltafast.exceptions import DeltaProtocolError, ErrorCode, InvalidArgumentError, SchemaMismatchError
from deltafast.spark._scan.char_padding import change_parts
from deltafast.spark._scan.physical_columns import Columns, plain_type, quoted, spark_type, with_collations
from deltafast.spark._write.identity_columns import counted
from deltafast.spark._write.row_errors import RowCheck, row_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._core_types import NamedExpression, TableConstraints
    from deltafast.spark._session.session import Session

__all__ = [
    "brought_together",
    "by_position",
    "cast_column",
    "cast_or_filled",
    "checked",
    "fits_as_stored",
    "logical",
    "not_null",
    "physical",
    "required",
]

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


_FIELD_ID = "delta.columnMapping.id"

#: Types with the same Parquet representation, between which delta-spark casts even where it does not cast others.
_STORED_ALIKE = (("byte", "short"), ("byte", "integer"), ("short", "integer"))


def fits_as_stored(data: dict[str, Any], table: dict[str, Any]) -> None:
    """Reject types that differ from the table's, as delta-spark's `save` does; other writes cast by ANSI rules.

    Args:
        data: The schema of the rows, with collations in its types.
        table: The schema that the table will have, likewise; columns that it lacks are not checked.

    Raises:
        SchemaMismatchError: A column has another type.
    """
    known = {field["name"].lower(): field for field in table["fields"]}
    for field in data["fields"]:
        there = known.get(field["name"].lower())
        if there is not None and not _is_stored_as(plain_type(field["type"]), plain_type(there["type"])):
            message = (
                f"Failed to merge fields '{there['name']}' and '{field['name']}': the data has "
                f"{spark_type(field['type']).simpleString()}, the table {spark_type(there['type']).simpleString()}; "
                "cast the column, or write by insertInto or saveAsTable, which cast"
            )
            raise SchemaMismatchError(
                message, column=field["name"], code=ErrorCode.FIELD_MERGE_FAILED, parameters={"column": field["name"]}
            )


def _is_stored_as(source: Any, target: Any) -> bool:
    match source, target:
        case {"type": "struct"}, {"type": "struct"}:
            known = {field["name"].lower(): field["type"] for field in target["fields"]}
            pairs = [(field["type"], known.get(field["name"].lower())) for field in source["fields"]]
            return all(to is None or _is_stored_as(of, to) for of, to in pairs)
        case str(), _:
            return source in (target, "void") or (source, target) in _STORED_ALIKE
        case _:
            pairs = paired_parts(source, target).values()
            return bool(pairs) and all(_is_stored_as(of, to) for of, to in pairs)


def logical(
    session: Session,
    frame: Any,
    target: dict[str, Any],
    constraints: TableConstraints,
    predicate: str | None,
    *,
    gather: bool = False,
    by_core: bool = False,
) -> tuple[Any, Columns]:
    """Return rows of the table, where a row that violates a constraint raises; they may not be shuffled afterwards.

    Args:
        session: The session.
        frame: The rows.
        target: The table's `schema` (parsed), `partition` columns, column mapping mode `mapped`, and the `identities`
            for which values are generated here.
        constraints: Checks, generated columns and defaults, as the core reports them.
        predicate: The condition that rows must match if they replace others.
        gather: Whether to repartition rows by partition into few tasks; needs the settings of
            `staging_folder.gathering`.
        by_core: Whether the core writes the rows.

    Returns:
        The frame, and the table's columns.

    Raises:
        SchemaMismatchError: A column has a type that cannot be cast to the table's.
    """
    from pyspark.sql import functions

    columns = Columns(target["schema"], target["partition"], is_mapped=target["mapped"])
    types = {field["name"]: plain_type(field["type"]) for field in columns.fields}
    counts = [identity["column"] for identity in target["identities"]]
    given = _by_name(frame)
    wanted = {name: of for name, of in types.items() if name not in counts and not (by_core and of == "void")}
    rows = frame.select(*cast_or_filled(session, given, wanted, constraints["defaults"]))
    schema = read_schema(target["schema"])
    checks = [RowCheck.check(check["name"], constraint_sql(check["sql"], schema)) for check in constraints["checks"]]
    checks += [RowCheck.length(check["name"], check["sql"]) for check in constraints["lengths"]]
    late: list[tuple[str, str]] = []
    for name, sql in [(value["name"], generation_sql(value["sql"], schema)) for value in constraints["generated"]]:
        if name.lower() in given:
            made = f"cast(({sql}) as {spark_type(types[name]).simpleString()})"
            checks.append(RowCheck.generated(name, f"{quoted(name)} <=> {made}"))
        elif any(column.lower() in sql.lower() for column in counts):
            late.append((name, sql))
        else:
            rows = rows.withColumn(name, functions.expr(sql).cast(spark_type(types[name])))
    if gather:
        rows = brought_together(rows, [name for name in target["partition"] if name not in (*counts, *dict(late))])
    rows = counted(rows, target["identities"])
    for name, sql in late:
        rows = rows.withColumn(name, functions.expr(sql).cast(spark_type(types[name])))
    checks += [RowCheck.not_null(".".join(path), not_null(path)) for path in required(columns.fields)]
    if predicate is not None:
        checks.append(RowCheck.replacement(predicate))
    return checked(rows, checks, columns, functions), columns


def cast_or_filled(
    session: Session, given: dict[str, dict[str, Any]], wanted: dict[str, Any], defaults: Sequence[NamedExpression]
) -> list[Any]:
    """Return given columns cast to the table's types, and the other ones with their default or null.

    Args:
        session: The session.
        given: The frame's fields, by their names in lower case.
        wanted: Names and types of the table's columns.
        defaults: Defaults of columns, as the core reports them.
    """
    from pyspark.sql import functions

    filled = {value["name"]: value["sql"] for value in defaults}
    out: list[Any] = []
    for name, of in wanted.items():
        if (source := given.get(name.lower())) is not None:
            column = functions.col(quoted(source["name"]))
            column = cast_column(session, column, plain_type(source["type"]), of, name, functions)
        elif name in filled:
            column = functions.expr(filled[name]).cast(spark_type(of))
        else:
            column = functions.lit(None).cast(spark_type(of)) if of != "void" else functions.lit(None)
        out.append(column.alias(name))
    return out


def brought_together(rows: Any, partition: Sequence[str]) -> Any:
    """Repartition rows by partition into few tasks; the hint is resolved here, and needs adaptive execution."""
    from pyspark.sql import functions

    return rows.hint("rebalance", *(functions.col(quoted(name)) for name in partition))


def _by_name(frame: Any) -> dict[str, dict[str, Any]]:
    fields = json.loads(frame.schema.json())["fields"]
    found: dict[str, dict[str, Any]] = {}
    for field in fields:
        if field["name"].lower() in found:
            message = f"the data has two columns called {field['name']!r}, which differ in case at most"
            raise InvalidArgumentError(message)
        found[field["name"].lower()] = with_collations(field)
    return found


def cast_column(session: Session, column: Any, source: Any, target: Any, name: str, functions: Any) -> Any:
    """Cast a column to another type; fields of structs are matched by name, numbers out of range are errors."""
    if source == target:
        return column
    match source, target:
        case "void", _:
            return column.cast(spark_type(target))
        case {"type": "struct"}, {"type": "struct"}:
            inner = {field["name"].lower(): field for field in source["fields"]}
            _check_has_fields(target, inner, name)
            parts: list[Any] = []
            for field in target["fields"]:
                found, path = inner.get(field["name"].lower()), f"{name}.{field['name']}"
                if found is None:
                    part = functions.lit(None).cast(spark_type(field["type"]))
                else:
                    value = column.getField(found["name"])
                    part = cast_column(session, value, found["type"], field["type"], path, functions)
                parts.append(part.alias(field["name"]))
            return functions.when(column.isNotNull(), functions.struct(*parts))
        case _ if pairs := paired_parts(source, target):

            def cast_part(_: str, pair: tuple[Any, Any], value: Any) -> Any:
                return cast_column(session, value, *pair, name, functions)

            return change_parts(column, pairs, cast_part, functions)
        case (str(), str()) if session.is_ansi:
            return column.cast(spark_type(target))
        case (str(), str()):
            # Without ANSI a cast turns values out of range into nulls or other numbers.
            made = column.try_cast(spark_type(target))
            wrong = functions.raise_error(
                functions.lit(f"a value of the column {name!r} is {source} in the data and does not fit {target}")
            )
            fits = column.isNull() | made.isNotNull()
            return functions.when(fits, made).otherwise(wrong.cast(spark_type(target)))
        case _:
            message = f"the column {name!r} is of another kind in the data than in the table"
            raise SchemaMismatchError(message, column=name)


def _check_has_fields(target: dict[str, Any], given: dict[str, Any], name: str) -> None:
    """Reject a struct with fields that the table's lacks: they would be lost.

    Raises:
        SchemaMismatchError: There is such a field.
    """
    known = {field["name"].lower() for field in target["fields"]}
    more = [f"{name}.{field['name']}" for key, field in given.items() if key not in known]
    if more:
        there = ", ".join(field["name"] for field in target["fields"])
        message = (
            f"the table lacks fields that the data has: {', '.join(more)}; the fields of {name!r} are {there}: leave "
            "the others out, or add them with mergeSchema"
        )
        raise SchemaMismatchError(
            message,
            column=more[0],
            code=ErrorCode.FIELD_NOT_IN_TABLE,
            parameters={"expected": there, "found": ", ".join(more)},
        )


def by_position(frame: Any, fields: Sequence[dict[str, Any]], *, evolves: bool) -> Any:
    """Return a frame whose structs have the names of the table's fields, at every depth, by their positions.

    Args:
        frame: The rows, whose columns have the names of the table's.
        fields: The table's columns, as in the JSON of a schema.
        evolves: Whether structs may have more fields than the table's; they follow them with their own names.

    Raises:
        InvalidArgumentError: A struct has fewer fields than the table's, or more.
    """
    from pyspark.sql import functions

    known = {field["name"].lower(): plain_type(field["type"]) for field in fields}
    columns: list[Any] = []
    is_renamed = False
    for field in json.loads(frame.schema.json())["fields"]:
        name, column = field["name"], functions.col(quoted(field["name"]))
        source = with_collations(field)["type"]
        renamed = _with_names(source, known.get(name.lower(), source), name, evolves=evolves)
        if renamed != source:
            is_renamed = True
            # A cast of a struct goes by position.
            column = column.cast(spark_type(renamed)).alias(name)
        columns.append(column)
    return frame.select(*columns) if is_renamed else frame


def _with_names(source: Any, target: Any, name: str, *, evolves: bool) -> Any:
    """Return a type with the names of another one's fields, by position."""
    match source, target:
        case {"type": "struct"}, {"type": "struct"}:
            given, wanted = source["fields"], target["fields"]
            if len(given) < len(wanted) or (len(given) > len(wanted) and not evolves):
                paths = ", ".join(f"{name}.{field['name']}" for field in wanted)
                message = f"{len(wanted)} columns ({paths}) are to get values, the rows have {len(given)}"
                raise InvalidArgumentError(
                    message,
                    code=ErrorCode.INSERT_ARITY_MISMATCH,
                    parameters={"columns": len(wanted), "values": len(given)},
                )
            pairs = zip(given, wanted, strict=False)
            named = [
                {**of, "name": to["name"], "type": _with_names(of["type"], to["type"], to["name"], evolves=evolves)}
                for of, to in pairs
            ]
            return {**source, "fields": [*named, *given[len(wanted) :]]}
        case _:
            wanted_parts = parts_of(target)
            return with_parts(
                source,
                lambda part, of: _with_names(of, wanted_parts.get(part, of), f"{name}.{part}", evolves=evolves),
            )


def required(fields: Sequence[dict[str, Any]]) -> list[Path]:
    """Return the paths of the fields that are NOT NULL, including those within structs."""
    within = fields_within({"fields": fields}, in_parts=False)
    return [path for path, field in within if not field.get("nullable", True)]


def not_null(path: Path) -> str:
    """Return the check that a field is not null where the struct that contains it is not null."""
    names = [".".join(quoted(part) for part in path[:length]) for length in range(1, len(path) + 1)]
    return " or ".join([*(f"{name} is null" for name in names[:-1]), f"{names[-1]} is not null"])


def checked(rows: Any, checks: Sequence[RowCheck], columns: Columns, functions: Any) -> Any:
    """Return the rows with checks that raise for a violation: null counts as false."""
    if not checks:
        return rows
    # In the log the empty string is null.
    for field in columns.partition:
        if str(field["type"]).startswith("string") and field["name"] in rows.columns:
            value = functions.col(quoted(field["name"]))
            rows = rows.withColumn(field["name"], functions.when(functions.length(value) > 0, value))
    first = next(field["name"] for field in columns.fields if field["name"] in rows.columns)
    guarded: Any = None
    for check in checks:
        broken = ~functions.coalesce(functions.expr(check.sql), functions.lit(False))
        error = functions.raise_error(functions.lit(check.error))
        guarded = functions.when(broken, error) if guarded is None else guarded.when(broken, error)
    # The optimizer cannot remove a column that is written, whereas a filter could be moved.
    return rows.withColumn(first, guarded.otherwise(functions.col(quoted(first))))


def physical(
    rows: Any, columns: Columns, functions: Any, more: Sequence[str] = (), *, partitions: bool = True
) -> tuple[Any, list[str]]:
    """Rename columns to physical names with field ids; partition columns as strings if requested; `more` are added."""
    out: list[Any] = []
    for field in columns.fields:
        if field["type"] == "void":
            continue
        column = functions.col(quoted(field["name"]))
        if field in columns.partition:
            if partitions:
                out.append(_as_text(column, field, functions).alias(columns.name(field)))
        elif columns.is_mapped:
            out.append(_named(_in_file(column, field["type"], columns, functions), field, columns))
        else:
            out.append(column)
    out += [functions.col(quoted(name)) for name in more]
    return rows.select(*out), [columns.name(field) for field in columns.partition]


def _named(column: Any, field: dict[str, Any], columns: Columns) -> Any:
    """Return a column with its physical name and field id: the optimizer keeps an alias' metadata, not that of `to`."""
    number = field.get("metadata", {}).get(_FIELD_ID)
    return column.alias(columns.name(field), metadata={} if number is None else {"parquet.field.id": number})


def _in_file(column: Any, of: Any, columns: Columns, functions: Any) -> Any:
    """Return a column whose structs have physical names and field ids; a null struct remains null."""
    match of:
        case {"type": "struct"}:
            inner: list[dict[str, Any]] = [field for field in of["fields"] if field["type"] != "void"]
            parts = [
                _named(_in_file(column.getField(f["name"]), f["type"], columns, functions), f, columns) for f in inner
            ]
            return functions.when(column.isNotNull(), functions.struct(*parts))
        case _:

            def in_file(_: str, inner: Any, value: Any) -> Any:
                return _in_file(value, inner, columns, functions)

            nested = {part: inner for part, inner in parts_of(of).items() if not isinstance(inner, str)}
            return change_parts(column, nested, in_file, functions)


def _as_text(column: Any, field: dict[str, Any], functions: Any) -> Any:
    """Return a partition value as a string that its type can parse, independent of the session's time zone."""
    of = field["type"]
    if of == "binary":
        message = (
            f"a binary partition column ({field['name']}) can only be written by the core: write with writer='driver'"
        )
        raise DeltaProtocolError(message, column=field["name"])
    if of != "timestamp":
        text = column.cast("string")
        # Collated types begin with `string`, too.
        return _not_hive_null(text, field["name"], functions) if of.startswith("string") else text
    seconds = functions.unix_micros(column).cast("decimal(20,0)") / functions.lit(1_000_000).cast("decimal(7,0)")
    zero = functions.lit(0)
    epoch = functions.expr("timestamp_ntz'1970-01-01 00:00:00'")
    timestamp = epoch + functions.make_dt_interval(zero, zero, zero, seconds.cast("decimal(18,6)"))
    return functions.concat(timestamp.cast("string"), functions.lit("Z"))


def _not_hive_null(column: Any, name: str, functions: Any) -> Any:
    """Return a string, or raise if it is the one that stands for null in the folder names of Spark's writer."""
    message = (
        f"the partition value `{_HIVE_NULL}` of the column {name!r} cannot be written: this text stands for null in "
        "the names of partition folders; write null or another text"
    )
    error = functions.raise_error(functions.lit(row_error(message)))
    return functions.when(column == functions.lit(_HIVE_NULL), error.cast("string")).otherwise(column)
