"""Columns of a table: the physical ones of its files and the logical ones of its readers.

Schemas are converted into Spark's schemas and projections. A schema is the parsed JSON of the log's `schemaString`,
which is also Spark's own form. With column mapping, files have physical names; everything else of a table uses logical
names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._delta_keys import COLUMN_MAPPING_MODE, COLUMN_MAPPING_PHYSICAL_NAME
from deltafast._expr.types import DECLARED_TYPE
from deltafast._types import fields_within, is_struct, leaves, nullable, transform, with_parts
from deltafast._util.column_mapping import MappingMode
from deltafast.exceptions import DeltaProtocolError, ErrorCode, InvalidArgumentError
from deltafast.spark._scan.char_padding import char_lengths, padded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from deltafast._expr.tree import Node

__all__ = [
    "Columns",
    "check_names",
    "field_of",
    "mapping_mode",
    "plain_type",
    "quoted",
    "spark_schema",
    "spark_type",
    "string_collations",
    "with_collations",
]

#: Characters that Spark's Parquet writer accepts in no column name.
_WRONG_IN_NAMES = " ,;{}()\n\t="


#: The keys of a field's metadata that readers see; the others are internal to the table.
_SEEN = ("comment", DECLARED_TYPE)


#: The key of a field's metadata for the collations of its strings, by path: `name`, `name.element`, `name.key` ...
_COLLATIONS: Final = "__COLLATIONS"
_COLLATION: Final = re.compile(r"(?:spark|icu)\.(\w+)(?:\..*)?")
#: A collated string within deltafast: a type that is equal only to strings of the same collation.
_COLLATED: Final = "string collate "


def field_of(name: str, of: Any, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a nullable field, in Delta's JSON."""
    return {"name": name, "type": of, "nullable": True, "metadata": metadata or {}}


def _seen(field: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in field.get("metadata", {}).items() if key in _SEEN}


class Columns:
    """The columns of a table.

    Args:
        schema: The table's schema, as in the log.
        partition: Names of its partition columns.
        is_mapped: Whether files have physical names.
    """

    def __init__(self, schema: dict[str, Any], partition: list[str], *, is_mapped: bool) -> None:
        self.fields = [with_collations(field) for field in schema["fields"]]
        self.is_mapped = is_mapped
        self.partition = [next(f for f in self.fields if f["name"] == name) for name in partition]
        # Files never contain `void` columns.
        self.data = [f for f in self.fields if f["name"] not in partition and f["type"] != "void"]

    def partitioned_by(self, partition: list[str]) -> Columns:
        """Return the same columns in files of another version, which had these partition columns."""
        if partition == [field["name"] for field in self.partition]:
            return self
        return Columns({"fields": self.fields}, partition, is_mapped=self.is_mapped)

    @property
    def is_plain(self) -> bool:
        """Whether the files have the table's names, and readers see no metadata of its fields."""
        return not self.is_mapped and not any(_seen(field) for field in self.fields)

    def name(self, field: dict[str, Any]) -> str:
        """Return the physical name of a field."""
        return (
            field.get("metadata", {}).get(COLUMN_MAPPING_PHYSICAL_NAME, field["name"])
            if self.is_mapped
            else field["name"]
        )

    def physical(self, fields: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return physical fields; all of them are nullable, whatever the table's schema says."""
        return self._physical_type({"type": "struct", "fields": list(fields)})["fields"]

    def declared(self, fields: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return physical fields, which are nullable only where the table's schema says so."""
        declared = self._physical_type({"type": "struct", "fields": self.fields}, is_declared=True)["fields"]
        known = {field["name"]: field for field in declared}
        return [known.get(field["name"], field) for field in fields]

    def _physical_type(self, of: Any, *, is_declared: bool = False) -> Any:
        """Return a physical type, whose nullability is that of the table's schema if `is_declared`."""

        def physical(of: Any) -> Any:
            if not is_struct(of):
                return of if is_declared else nullable(of)
            return {
                "type": "struct",
                "fields": [
                    field_of(self.name(field), field["type"])
                    | {"nullable": not is_declared or field.get("nullable", True)}
                    for field in of["fields"]
                    if field["type"] != "void"
                ],
            }

        return transform(of, physical)

    def seen(self) -> list[dict[str, Any]]:
        """Return the table's columns with their comments and nullability."""
        return [
            field_of(field["name"], plain_type(field["type"]), _seen(field)) | {"nullable": field.get("nullable", True)}
            for field in self.fields
        ]

    def project(self, *, pads: bool) -> list[Any]:
        """Return the table's columns as expressions over the physical ones.

        Args:
            pads: Whether to pad the strings of CHAR(n): for frames of the user, not for rows that are written again.
        """
        from pyspark.sql import functions

        return [
            self._logical(functions.col(quoted(self.name(field))), field, functions, pads=pads) for field in self.fields
        ]

    @property
    def has_chars(self) -> bool:
        """Whether `padded` changes anything."""
        return any(char_lengths(field) is not None for field in self.fields)

    def padded(self) -> list[Any]:
        """Return the table's columns as expressions over themselves, with the strings of CHAR(n) padded."""
        from pyspark.sql import functions

        columns = [(field, functions.col(quoted(field["name"]))) for field in self.fields]
        return [
            padded(column, field["type"], char_lengths(field), functions).alias(field["name"], metadata=_seen(field))
            for field, column in columns
        ]

    def _logical(self, column: Any, field: dict[str, Any], functions: Any, *, pads: bool = False) -> Any:
        seen = _seen(field)
        named = self._renamed(column, field["type"], functions)
        if pads:
            named = padded(named, field["type"], char_lengths(field), functions)
        return named.alias(field["name"], metadata=seen) if seen else named.alias(field["name"])

    def _renamed(self, column: Any, of: Any, functions: Any) -> Any:
        if of == "void":
            return functions.lit(None)
        if plain_type(of) == plain_type(self._physical_type(of)):
            return column
        if is_struct(of):
            # A null struct stays null.
            parts = [self._logical(column.getField(self.name(f)), f, functions) for f in of["fields"]]
            return functions.when(column.isNotNull(), functions.struct(*parts))
        return column.cast(spark_type(plain_type(of)))

    def logical_paths(self, node: Node) -> Node:
        """Convert the physical names of a bound tree to logical ones."""
        from deltafast._expr.tree import Call, Cast, Col, In

        match node:
            case Col(path=path, type=t):
                return Col(tuple(self._logical_path(path)), t)
            case Call(f=f, args=args, type=t):
                return Call(f, tuple(self.logical_paths(arg) for arg in args), t)
            case Cast(arg=arg, type=t, mode=mode):
                return Cast(self.logical_paths(arg), t, mode)
            case In(arg=arg, values=values):
                return In(self.logical_paths(arg), values)
            case _:
                return node

    def _logical_path(self, path: tuple[str, ...]) -> list[str]:
        out: list[str] = []
        level = self.fields
        for part in path:
            field = next(f for f in level if self.name(f) == part)
            out.append(field["name"])
            level = cast("list[dict[str, Any]]", field["type"]["fields"]) if len(out) < len(path) else []
        return out


def mapping_mode(min_reader_version: int, features: Iterable[str] | None, properties: Mapping[str, Any]) -> MappingMode:
    """Return the mode of column mapping; `NONE` if the protocol does not support the feature."""
    can = min_reader_version == 2 or "columnMapping" in (features or ())  # noqa: PLR2004
    return MappingMode(properties.get(COLUMN_MAPPING_MODE, MappingMode.NONE).lower()) if can else MappingMode.NONE


def _names_in(of: Any) -> set[str]:
    """Return the names of all fields of a type."""
    return {field["name"] for _, field in fields_within(of)}


def check_names(schema: Any, before: Callable[[], Any]) -> None:
    """Reject new columns whose names need column mapping.

    Args:
        schema: The schema of a table without column mapping.
        before: Returns the previous schema of the table, or None; its columns are accepted.

    Raises:
        InvalidArgumentError: There is such a column.
    """
    wrong = {name for name in _names_in(schema) if any(letter in name for letter in _WRONG_IN_NAMES)}
    wrong = wrong and wrong - _names_in(before())
    if wrong:
        message = (
            f"Found invalid character(s) among {_WRONG_IN_NAMES!r} in the column names of your schema: "
            f"{', '.join(sorted(map(repr, wrong)))}; rename them, or set delta.columnMapping.mode to name"
        )
        raise InvalidArgumentError(
            message, code=ErrorCode.INVALID_COLUMN_NAME, parameters={"columns": ", ".join(sorted(wrong))}
        )


def plain_type(of: Any) -> Any:
    """Return a type without metadata whose fields are all nullable: the part of it that matters to a cast."""
    return transform(of, _plain)


def _plain(of: Any) -> Any:
    if is_struct(of):
        return {"type": "struct", "fields": [field_of(field["name"], field["type"]) for field in of["fields"]]}
    return nullable(of)


def with_collations(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field whose types contain the collations that its metadata gives to strings, as does Spark's SQL.

    Raises:
        DeltaProtocolError: A string has a collation that Spark does not have.
    """
    collations = cast("dict[str, str]", field.get("metadata", {}).get(_COLLATIONS) or {})
    return field | {"type": _with_collations(field["type"], collations, field["name"])}


def _with_collations(of: Any, collations: Mapping[str, str], path: str) -> Any:
    match of:
        case {"fields": fields}:
            return of | {"fields": [with_collations(field) for field in fields]}
        case "string" if path in collations:
            found = _COLLATION.fullmatch(collations[path])
            if found is None:
                message = f"the column `{path}` has the collation {collations[path]}, which Spark does not have"
                raise DeltaProtocolError(message, column=path, feature="collations")
            return of if found[1].upper() == "UTF8_BINARY" else _COLLATED + found[1]
        case _:
            return with_parts(of, lambda part, inner: _with_collations(inner, collations, f"{path}.{part}"))


def string_collations(field: dict[str, Any]) -> dict[str, str | None]:
    """Return the strings of a field with the collations in its types, by path; None for byte order."""
    return {
        ".".join(path): None if of == "string" else of.removeprefix(_COLLATED)
        for path, of in leaves(field["type"], (field["name"],))
        if isinstance(of, str) and (of == "string" or of.startswith(_COLLATED))
    }


def _as_spark(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field with collations in its types as Spark's JSON has it: with the collations in its metadata."""
    collations: dict[str, str] = {}
    of = _without_collations(field["type"], collations, field["name"])
    if not collations:
        return field | {"type": of}
    return field | {"type": of, "metadata": field.get("metadata", {}) | {_COLLATIONS: collations}}


def _without_collations(of: Any, collations: dict[str, str], path: str) -> Any:
    match of:
        case {"fields": fields}:
            return of | {"fields": [_as_spark(field) for field in fields]}
        case str() if of.startswith(_COLLATED):
            name = of.removeprefix(_COLLATED)
            collations[path] = ("spark." if name.upper().startswith("UTF8_") else "icu.") + name
            return "string"
        case _:
            return with_parts(of, lambda part, inner: _without_collations(inner, collations, f"{path}.{part}"))


def spark_schema(fields: Iterable[dict[str, Any]]) -> Any:
    """Return fields as a Spark schema."""
    from pyspark.sql.types import StructType

    return StructType.fromJson({"type": "struct", "fields": [_as_spark(field) for field in fields]})


def spark_type(of: Any) -> Any:
    """Return a type as a Spark type."""
    return spark_schema([field_of("_", of)]).fields[0].dataType


def quoted(name: str) -> str:
    """Return a column's name, quoted where Spark needs that."""
    return "`" + name.replace("`", "``") + "`"
