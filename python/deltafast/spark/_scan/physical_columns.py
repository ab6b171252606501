"""Columns of a table as its files have them, and as its readers know them.

Schemas go in, Spark's schemas and projections come out. A schema is the parsed JSON of the log's `schemaString`,
which is also Spark's own form. With column mapping, files have physical names; everything else of a table speaks of
logical ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from deltafast._expr.tree import Node

__all__ = [
    "Columns",
    "array_of",
    "check_names",
    "field_of",
    "mapping_mode",
    "plain_type",
    "quoted",
    "spark_schema",
    "spark_type",
]

#: What Spark's Parquet writer takes in no name of a column.
_WRONG_IN_NAMES = " ,;{}()\n\t="

_PHYSICAL = "delta.columnMapping.physicalName"

#: Of a field's metadata only what readers may see; the rest is the table's own business.
_SEEN = ("comment",)


def field_of(name: str, of: Any, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """A field that may be null, in Delta's JSON."""
    return {"name": name, "type": of, "nullable": True, "metadata": metadata or {}}


def _seen(field: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in field.get("metadata", {}).items() if key in _SEEN}


def array_of(of: Any) -> dict[str, Any]:
    """A list that may hold nulls."""
    return {"type": "array", "elementType": of, "containsNull": True}


class Columns:
    """The columns of a table.

    Args:
        schema: The table's schema.
        partition: Names of its partition columns.
        is_mapped: Whether files have physical names.
    """

    def __init__(self, schema: dict[str, Any], partition: list[str], *, is_mapped: bool) -> None:
        self.fields: list[dict[str, Any]] = schema["fields"]
        self.is_mapped = is_mapped
        self.partition = [next(f for f in self.fields if f["name"] == name) for name in partition]
        # Files never hold a `void`.
        self.data = [f for f in self.fields if f["name"] not in partition and f["type"] != "void"]

    def name(self, field: dict[str, Any]) -> str:
        """The name of a field in files."""
        return field.get("metadata", {}).get(_PHYSICAL, field["name"]) if self.is_mapped else field["name"]

    def physical(self, fields: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Fields as files have them; any may be null there, whatever the table says."""
        return [
            field_of(self.name(field), self._physical_type(field["type"]))
            for field in fields
            if field["type"] != "void"
        ]

    def declared(self, fields: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Physical fields, which may be null only where the table says so."""
        known = {self.name(field): field for field in self.fields}
        return [self._declared(known[field["name"]]) if field["name"] in known else field for field in fields]

    def _declared(self, field: dict[str, Any]) -> dict[str, Any]:
        of = self._physical_type(field["type"], self._declared)
        return field_of(self.name(field), of) | {"nullable": field.get("nullable", True)}

    def _physical_type(self, of: Any, declared: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Any:
        """A type as files have it; with `declared` for its fields nulls are as the table says."""
        match of:
            case {"type": "struct"}:
                fields = [field for field in of["fields"] if field["type"] != "void"]
                return {"type": "struct", "fields": [*map(declared, fields)] if declared else self.physical(fields)}
            case {"type": "array"}:
                element = {"elementType": self._physical_type(of["elementType"], declared)}
                return of | element | ({} if declared else {"containsNull": True})
            case {"type": "map"}:
                parts = {key: self._physical_type(of[key], declared) for key in ("keyType", "valueType")}
                return of | parts | ({} if declared else {"valueContainsNull": True})
            case _:
                return of

    def seen(self) -> list[dict[str, Any]]:
        """The table's columns with their comments, which may be null where the table says so."""
        return [
            field_of(field["name"], plain_type(field["type"]), _seen(field)) | {"nullable": field.get("nullable", True)}
            for field in self.fields
        ]

    def project(self) -> list[Any]:
        """The table's columns, made of the physical ones."""
        from pyspark.sql import functions

        return [self._logical(functions.col(quoted(self.name(field))), field, functions) for field in self.fields]

    def _logical(self, column: Any, field: dict[str, Any], functions: Any) -> Any:
        seen = _seen(field)
        named = self._renamed(column, field["type"], functions)
        return named.alias(field["name"], metadata=seen) if seen else named.alias(field["name"])

    def _renamed(self, column: Any, of: Any, functions: Any) -> Any:
        if of == "void":
            return functions.lit(None)
        if plain_type(of) == plain_type(self._physical_type(of)):
            return column
        if of["type"] == "struct":
            # A null struct stays null.
            parts = [self._logical(column.getField(self.name(f)), f, functions) for f in of["fields"]]
            return functions.when(column.isNotNull(), functions.struct(*parts))
        return column.cast(spark_type(plain_type(of)))

    def logical_paths(self, node: Node) -> Node:
        """A bound tree over physical names as one over logical names."""
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


def mapping_mode(min_reader_version: int, features: Iterable[str] | None, properties: Mapping[str, Any]) -> str:
    """How files name columns: `none`, `name` or `id`. The property counts only where the protocol has the feature."""
    can = min_reader_version == 2 or "columnMapping" in (features or ())  # noqa: PLR2004
    return properties.get("delta.columnMapping.mode", "none").lower() if can else "none"


def _names_in(of: Any) -> set[str]:
    """The names of all fields of a type."""
    match of:
        case {"fields": fields}:
            return {field["name"] for field in fields}.union(*(_names_in(field["type"]) for field in fields))
        case {"elementType": item}:
            return _names_in(item)
        case {"keyType": key, "valueType": value}:
            return _names_in(key) | _names_in(value)
        case _:
            return set()


def check_names(schema: Any, before: Callable[[], Any]) -> None:
    """Refuse new columns that only column mapping has names for.

    Args:
        schema: That of a table without column mapping.
        before: Gives the schema that the table had, or None; columns that are there already may stay.

    Raises:
        InvalidArgumentError: There is one.
    """
    wrong = {name for name in _names_in(schema) if any(letter in name for letter in _WRONG_IN_NAMES)}
    wrong = wrong and wrong - _names_in(before())
    if wrong:
        message = (
            f"Found invalid character(s) among {_WRONG_IN_NAMES!r} in the column names of your schema: "
            f"{', '.join(sorted(map(repr, wrong)))}; rename them, or set delta.columnMapping.mode to name"
        )
        raise InvalidArgumentError(message)


def plain_type(of: Any) -> Any:
    """A type without metadata, where anything may be null: what of it matters to a cast."""
    match of:
        case {"type": "struct"}:
            fields = [field_of(f["name"], plain_type(f["type"])) for f in of["fields"]]
            return {"type": "struct", "fields": fields}
        case {"type": "array"}:
            return array_of(plain_type(of["elementType"]))
        case {"type": "map"}:
            return {
                "type": "map",
                "keyType": plain_type(of["keyType"]),
                "valueType": plain_type(of["valueType"]),
                "valueContainsNull": True,
            }
        case _:
            return of


def spark_schema(fields: Iterable[dict[str, Any]]) -> Any:
    """Fields as a Spark schema."""
    from pyspark.sql.types import StructType

    return StructType.fromJson({"type": "struct", "fields": list(fields)})


def spark_type(of: Any) -> Any:
    """A type as Spark's."""
    return spark_schema([field_of("_", of)]).fields[0].dataType


def quoted(name: str) -> str:
    """A column's name where Spark reads one."""
    return "`" + name.replace("`", "``") + "`"
