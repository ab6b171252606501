"""Delta's types and schemas, with the names and methods of `deltalake.schema`.

A schema is represented as in the log (field metadata included) and converts to JSON and to Arrow.
Only the methods that convert to or from Arrow import pyarrow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, cast

from deltafast._display import schema_html
from deltafast._libraries import names_missing
from deltafast._types import PRIMITIVES, SQL_NAMES, fields_within, integer_of_spark
from deltafast.exceptions import InvalidArgumentError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

__all__ = [
    "ArrayType",
    "DataType",
    "Field",
    "MapType",
    "PrimitiveType",
    "Schema",
    "StructType",
    "VariantType",
]

_PRIMITIVES = PRIMITIVES.keys() - {"variant"}
_SPARK_NONE = "interval"
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_MAX_PRECISION = 38
T = TypeVar("T")


class ArrowSchemaExportable(Protocol):
    """Any producer of an Arrow C schema: schemas and types of pyarrow, Polars, nanoarrow, arro3."""

    def __arrow_c_schema__(self) -> object:
        """Return the schema capsule."""
        ...


def tree_of(node: DataType | Field) -> Any:
    """Return a type or field as decoded Delta JSON."""
    return node._tree()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _dump(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _read(text: str, parse: Callable[[Any], T]) -> T:
    """Parse the JSON of a type or field.

    Raises:
        InvalidArgumentError: It is not JSON, or not that of a type, or nested too deeply.
    """
    try:
        return parse(_decoded(text))
    except RecursionError:  # in the decoder, or since Python 3.12, which decodes more levels, in `parse`
        message = "the type JSON is nested too deeply"
        raise InvalidArgumentError(message) from None


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"the type JSON is invalid: {error}"
        raise InvalidArgumentError(message) from None


def parse_type(value: object) -> DataType:
    """Build the type that decoded schema JSON describes."""
    if isinstance(value, str):
        if value == "decimal":  # old writers; Spark reads it as decimal(10,0)
            value = "decimal(10,0)"
        return VariantType() if value == "variant" else PrimitiveType(value)
    if isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        match node.get("type"):
            case "struct":
                return StructType([_parse_field(item) for item in _items(node)])
            case "array":
                element = parse_type(node.get("elementType"))
                return ArrayType(element, contains_null=bool(node.get("containsNull", True)))
            case "map":
                key, item = parse_type(node.get("keyType")), parse_type(node.get("valueType"))
                return MapType(key, item, value_contains_null=bool(node.get("valueContainsNull", True)))
            case _:
                pass
    message = f"not a Delta type: {value!r:.100}"
    raise InvalidArgumentError(message)


def _items(node: dict[str, Any]) -> list[Any]:
    fields = node.get("fields")
    if not isinstance(fields, list):
        message = "a struct type needs a list of fields"
        raise InvalidArgumentError(message)
    return cast("list[Any]", fields)


def _parse_field(value: object) -> Field:
    if isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        name = node.get("name")
        if isinstance(name, str) and "type" in node:
            kind = parse_type(node["type"])
            metadata = cast("dict[str, Any] | None", node.get("metadata"))
            return Field(name, kind, nullable=bool(node.get("nullable", True)), metadata=metadata)
    message = f"not a Delta field: {value!r:.100}"
    raise InvalidArgumentError(message)


def _coerce(kind: object) -> DataType:
    if isinstance(kind, str):
        return parse_type(kind)
    if isinstance(kind, _Type):
        return cast("DataType", kind)
    message = f"not a Delta type: {kind!r:.100}"
    raise InvalidArgumentError(message)


class _Type:
    """Base of all types: conversion from and to JSON and Arrow, structural equality."""

    __slots__ = ()
    type: str

    def _tree(self) -> Any:
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the type as in a Delta schema string."""
        return _dump(self._tree())

    @names_missing
    def to_arrow(self) -> pa.DataType:
        """Return the pyarrow type for values of this type."""
        return _arrow_type(cast("DataType", self), large=False)

    def __arrow_c_schema__(self) -> object:
        """The Arrow PyCapsule interface."""
        return cast("ArrowSchemaExportable", self.to_arrow()).__arrow_c_schema__()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Type):
            return NotImplemented
        return self._tree() == other._tree()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_json, (type(self), self.to_json())


def _from_json(cls: type[Any], text: str) -> Any:
    return cls.from_json(text)


def parts_of(kind: DataType | None) -> dict[str, DataType]:
    """Return the types within an array (`element`) or a map (`key`, `value`), as arguments of its class."""
    match kind:
        case ArrayType():
            return {"element": kind.element_type}
        case MapType():
            return {"key": kind.key_type, "value": kind.value_type}
        case _:
            return {}


def _checked(cls: type[T], kind: object) -> T:
    if not isinstance(kind, cls):
        message = f"the type is not a {cls.__name__}"
        raise TypeError(message)
    return kind


class PrimitiveType(_Type):
    """A type that is not nested, such as `PrimitiveType("integer")` or `PrimitiveType("decimal(10,2)")`.

    Args:
        data_type: One of string, long, integer, short, byte, float, double, boolean, binary, date,
            timestamp, timestamp_ntz, void and decimal(precision,scale); in tables of Spark
            also its interval types and time(digits), which are read as integers.

    Raises:
        InvalidArgumentError: The name is not one of them.

    Examples:
        >>> from deltafast import PrimitiveType
        >>> PrimitiveType("decimal(10,2)").to_json()
        '"decimal(10,2)"'
    """

    __slots__ = ("type",)

    def __init__(self, data_type: str) -> None:
        self.type = _primitive(data_type)

    def _tree(self) -> Any:
        return self.type

    def __repr__(self) -> str:
        return f'PrimitiveType("{self.type}")'

    @staticmethod
    def from_json(type_json: str) -> PrimitiveType:
        """Read a JSON string such as '"integer"'."""
        return _checked(PrimitiveType, _read(type_json, parse_type))

    @staticmethod
    @names_missing
    def from_arrow(data_type: ArrowSchemaExportable) -> PrimitiveType:
        """Convert an Arrow type."""
        return _checked(PrimitiveType, _from_arrow_type(data_type))


def _primitive(name: object) -> str:
    if isinstance(name, str):
        if name in _PRIMITIVES or name == _SPARK_NONE or integer_of_spark(name) is not None:
            return name
        if match := _DECIMAL.fullmatch(name):
            precision, scale = int(match[1]), int(match[2])
            if 1 <= precision <= _MAX_PRECISION and scale <= precision:
                return f"decimal({precision},{scale})"
            message = f"invalid type string: {name}, precision and scale must be at most {_MAX_PRECISION}"
            raise InvalidArgumentError(message)
    message = f"invalid type string: {name!s:.100}{_meant(name)}"
    raise InvalidArgumentError(message)


#: Type names of other systems, and Delta's.
_ALIASES = SQL_NAMES | {
    "bool": "boolean",
    "bytes": "binary",
    "char": "string",
    "datetime": "timestamp",
    "float32": "float",
    "float64": "double",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "int8": "byte",
    "numeric": "decimal(precision,scale)",
    "str": "string",
    "text": "string",
    "timestampntz": "timestamp_ntz",
    "utf8": "string",
    "varchar": "string",
}


def _meant(name: object) -> str:
    """Return the hint for the error of an unknown type's name."""
    word = name.strip().lower().partition("(")[0] if isinstance(name, str) else ""
    near = None if word == "variant" else _ALIASES.get(word)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; primitive types are {', '.join(sorted(_PRIMITIVES))} and decimal(precision,scale)"


class VariantType(_Type):
    """A value of any type (table feature variantType); in Arrow a struct of two binaries.

    Examples:
        >>> from deltafast import DeltaTable, Field, Schema, VariantType
        >>> table = DeltaTable.create("events", Schema([Field("payload", VariantType())]))
        >>> table.protocol().reader_features
        ['variantType']
    """

    __slots__ = ()
    type: ClassVar[str] = "variant"  # pyright: ignore[reportIncompatibleVariableOverride]

    def _tree(self) -> Any:
        return "variant"

    def __repr__(self) -> str:
        return "VariantType()"

    @staticmethod
    def from_json(type_json: str) -> VariantType:
        """Read the JSON string '"variant"'."""
        return _checked(VariantType, _read(type_json, parse_type))


class ArrayType(_Type):
    """A list of values of one type.

    Args:
        element_type: Type of the elements, or a primitive type's name.
        contains_null: Whether elements may be null.

    Examples:
        >>> from deltafast import ArrayType
        >>> ArrayType("long", contains_null=False).to_json()
        '{"type":"array","elementType":"long","containsNull":false}'
    """

    __slots__ = ("contains_null", "element_type")
    type: ClassVar[str] = "array"  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, element_type: DataType | str, contains_null: bool = True) -> None:
        self.element_type: DataType = _coerce(element_type)
        self.contains_null = contains_null

    def _tree(self) -> Any:
        return {
            "type": "array",
            "elementType": tree_of(self.element_type),
            "containsNull": self.contains_null,
        }

    def __repr__(self) -> str:
        return f"ArrayType({self.element_type!r}, contains_null={self.contains_null})"

    @staticmethod
    def from_json(type_json: str) -> ArrayType:
        """Read an array type's JSON."""
        return _checked(ArrayType, _read(type_json, parse_type))

    @staticmethod
    @names_missing
    def from_arrow(data_type: ArrowSchemaExportable) -> ArrayType:
        """Convert an Arrow list type."""
        return _checked(ArrayType, _from_arrow_type(data_type))


class MapType(_Type):
    """A map.

    Args:
        key_type: Type of the keys, or a primitive type's name.
        value_type: Type of the values, or a primitive type's name.
        value_contains_null: Whether values may be null.

    Examples:
        >>> from deltafast import MapType
        >>> str(MapType("string", "long").to_arrow())
        'map<string, int64>'
    """

    __slots__ = ("key_type", "value_contains_null", "value_type")
    type: ClassVar[str] = "map"  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        key_type: DataType | str,
        value_type: DataType | str,
        value_contains_null: bool = True,
    ) -> None:
        self.key_type: DataType = _coerce(key_type)
        self.value_type: DataType = _coerce(value_type)
        self.value_contains_null = value_contains_null

    def _tree(self) -> Any:
        return {
            "type": "map",
            "keyType": tree_of(self.key_type),
            "valueType": tree_of(self.value_type),
            "valueContainsNull": self.value_contains_null,
        }

    def __repr__(self) -> str:
        return f"MapType({self.key_type!r}, {self.value_type!r}, value_contains_null={self.value_contains_null})"

    @staticmethod
    def from_json(type_json: str) -> MapType:
        """Read a map type's JSON."""
        return _checked(MapType, _read(type_json, parse_type))

    @staticmethod
    @names_missing
    def from_arrow(data_type: ArrowSchemaExportable) -> MapType:
        """Convert an Arrow map type."""
        return _checked(MapType, _from_arrow_type(data_type))


class Field:
    """A named column or struct member.

    Args:
        name: Name of the field.
        type: Type of the field, or a primitive type's name.
        nullable: Whether values may be null.
        metadata: Delta's metadata of the field (comments, column mapping, defaults ...).

    Examples:
        >>> from deltafast import Field
        >>> Field("id", "long", nullable=False, metadata={"comment": "Key"})
        Field(id, PrimitiveType("long"), nullable=False, metadata={'comment': 'Key'})
    """

    __slots__ = ("metadata", "name", "nullable", "type")

    def __init__(
        self,
        name: str,
        type: DataType | str,  # noqa: A002  (deltalake's name)
        nullable: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.type: DataType = _coerce(type)
        self.nullable = nullable
        self.metadata: dict[str, Any] = dict(metadata or {})

    def _tree(self) -> dict[str, Any]:
        return {"name": self.name, "type": tree_of(self.type), "nullable": self.nullable, "metadata": self.metadata}

    def to_json(self) -> str:
        """Return the field as in a Delta schema string."""
        return _dump(self._tree())

    @staticmethod
    def from_json(field_json: str) -> Field:
        """Read a field's JSON."""
        return _read(field_json, _parse_field)

    @names_missing
    def to_arrow(self) -> pa.Field[Any]:
        """Return the pyarrow field."""
        return _arrow_field(self, large=False)

    @staticmethod
    @names_missing
    def from_arrow(field: ArrowSchemaExportable) -> Field:
        """Convert an Arrow field."""
        import pyarrow as pa

        return _from_arrow_field(pa.field(cast("Any", field)))

    def __arrow_c_schema__(self) -> object:
        """The Arrow PyCapsule interface."""
        return cast("ArrowSchemaExportable", self.to_arrow()).__arrow_c_schema__()

    def __eq__(self, other: object) -> bool:
        return self._tree() == other._tree() if isinstance(other, Field) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_json, (type(self), self.to_json())

    def __repr__(self) -> str:
        metadata = f", metadata={self.metadata!r}" if self.metadata else ""
        return f"Field({printable(self.name)}, {self.type!r}, nullable={self.nullable}{metadata})"


class StructType(_Type):
    """A list of named fields.

    Args:
        fields: The fields.

    Examples:
        >>> from deltafast import Field, StructType
        >>> str(StructType([Field("x", "double"), Field("y", "double")]).to_arrow())
        'struct<x: double, y: double>'
    """

    __slots__ = ("_fields",)
    type: ClassVar[str] = "struct"  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, fields: Sequence[Field]) -> None:
        for field in fields:
            _checked(Field, field)
        self._fields = tuple(fields)

    @property
    def fields(self) -> list[Field]:
        """The fields, in order."""
        return list(self._fields)

    def _tree(self) -> Any:
        return {"type": "struct", "fields": [tree_of(field) for field in self._fields]}

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{', '.join(map(repr, self._fields))}])"

    @staticmethod
    def from_json(type_json: str) -> StructType:
        """Read a struct type's JSON."""
        return _checked(StructType, _read(type_json, parse_type))

    @staticmethod
    @names_missing
    def from_arrow(data_type: ArrowSchemaExportable) -> StructType:
        """Convert an Arrow struct type."""
        return _checked(StructType, _from_arrow_type(data_type))


class Schema(StructType):
    """The schema of a table: a struct of its columns.

    Examples:
        >>> import pyarrow as pa
        >>> from deltafast import Field, Schema
        >>> schema = Schema([Field("id", "long"), Field("city", "string")])
        >>> schema.to_arrow().names
        ['id', 'city']
        >>> Schema.from_arrow(pa.schema({"id": pa.int64(), "city": pa.string()})) == schema
        True
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return schema_html(self._tree())

    @property
    def invariants(self) -> list[tuple[str, str]]:
        """Pairs of field path and SQL expression, from the old `delta.invariants` field metadata."""
        return [
            (".".join(path), _expression(raw, ".".join(path)))
            for path, field in fields_within(self._tree())
            if isinstance(raw := field["metadata"].get("delta.invariants"), str)
        ]

    def json(self) -> dict[str, Any]:
        """Return the schema as nested dictionaries."""
        return cast("dict[str, Any]", json.loads(self.to_json()))

    @names_missing
    def to_arrow(self, as_large_types: bool = False) -> pa.Schema:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the pyarrow schema.

        Args:
            as_large_types: Use the variants of string, binary and list types with 64-bit offsets.
        """
        import pyarrow as pa

        return pa.schema([_arrow_field(field, large=as_large_types) for field in self._fields])

    @staticmethod
    def from_json(schema_json: str) -> Schema:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read a Delta schema string.

        Raises:
            InvalidArgumentError: The string is not JSON, or not a schema.
            TypeError: The string describes a type that is not a struct.
        """
        return Schema(_checked(StructType, _read(schema_json, parse_type)).fields)

    @staticmethod
    @names_missing
    def from_arrow(data_type: ArrowSchemaExportable) -> Schema:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Convert an Arrow schema.

        Raises:
            InvalidArgumentError: A type has no equivalent in Delta.
        """
        import pyarrow as pa

        fields: Any = pa.schema(cast("Any", data_type))
        return Schema([_from_arrow_field(field) for field in fields])


DataType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType | VariantType
"""Any type of a field."""


#: Keys of metadata whose values are numbers and booleans in the log.
_IDENTITY = frozenset(f"delta.identity.{key}" for key in ("start", "step", "highWaterMark", "allowExplicitInsert"))


def as_schema(schema: object) -> Schema:
    """Return the schema of an argument: a deltafast or Arrow schema, or names and types.

    Raises:
        InvalidArgumentError: The argument is not one of these, or a type is unknown.
    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema([_field_of(name, kind) for name, kind in cast("Mapping[str, object]", schema).items()])
    try:
        return Schema.from_arrow(cast("ArrowSchemaExportable", schema))
    except InvalidArgumentError:
        raise
    except (TypeError, ValueError) as error:
        message = f"not a schema: {error}; pass a deltafast or Arrow schema, or a dict of column names and types"
        raise InvalidArgumentError(message) from None


def _field_of(name: str, kind: object) -> Field:
    if not isinstance(kind, str):
        import pyarrow as pa

        return _from_arrow_field(pa.field(name, kind)) if isinstance(kind, pa.DataType) else Field(name, _coerce(kind))
    try:
        return Field(name, kind)
    except InvalidArgumentError:
        import pyarrow as pa

        # The stubs accept only literal strings as aliases.
        by_alias = cast("Callable[[str], pa.DataType]", pa.type_for_alias)
        try:
            arrow = by_alias(kind)
        except ValueError:
            arrow = None
        if arrow is None:
            raise
        return _from_arrow_field(pa.field(name, arrow))


def for_the_log(schema: Schema) -> Schema:
    """Convert the settings of identity columns to numbers; in Arrow's metadata they are strings."""

    def value(key: str, given: Any) -> Any:
        if key in _IDENTITY and isinstance(given, str):
            try:
                return json.loads(given)
            except ValueError:
                message = f"{key} must be a number or a flag, not {given!r:.50}"
                raise InvalidArgumentError(message) from None
        return given

    def field(of: Field) -> Field:
        metadata = {key: value(key, given) for key, given in tree_of(of)["metadata"].items()}
        return Field(of.name, of.type, nullable=of.nullable, metadata=metadata)

    return Schema([field(of) for of in schema.fields])


def _expression(invariant: str, path: str) -> str:
    """Return the SQL of an invariant."""
    try:
        return str(json.loads(invariant)["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        message = f"the invariant of {path} is not readable: {invariant:.100}"
        raise InvalidArgumentError(message, column=path) from None


# --- Arrow ---------------------------------------------------------------------------------------


def _arrow_type(kind: DataType, *, large: bool) -> pa.DataType:
    import pyarrow as pa

    if isinstance(kind, PrimitiveType):
        return _arrow_primitive(kind.type, large=large)
    if isinstance(kind, ArrayType):
        item = _named("element", _arrow_type(kind.element_type, large=large), kind.contains_null)
        return pa.large_list(item) if large else pa.list_(item)
    if isinstance(kind, MapType):
        key = _named("key", _arrow_type(kind.key_type, large=large), False)
        value = _named("value", _arrow_type(kind.value_type, large=large), kind.value_contains_null)
        return pa.map_(cast("Any", key), cast("Any", value))
    if isinstance(kind, StructType):
        return pa.struct([_arrow_field(field, large=large) for field in kind.fields])
    binary = _arrow_primitive("binary", large=large)
    return pa.struct([_named("metadata", binary, False), _named("value", binary, False)])


def _named(name: str, arrow: pa.DataType, nullable: bool, metadata: dict[str, str] | None = None) -> pa.Field[Any]:
    """Return an Arrow field; Arrow requires that a field of type null is nullable, even if the schema's is not."""
    import pyarrow as pa

    return pa.field(name, arrow, nullable=nullable or pa.types.is_null(arrow), metadata=cast("Any", metadata))


def _arrow_primitive(name: str, *, large: bool) -> pa.DataType:
    import pyarrow as pa

    if match := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(match[1]), int(match[2]))
    if (stored := integer_of_spark(name)) is not None:
        return pa.int32() if stored == "integer" else pa.int64()
    if name == _SPARK_NONE:
        return pa.null()
    makers: dict[str, Callable[[], pa.DataType]] = {
        "binary": pa.large_binary if large else pa.binary,
        "boolean": pa.bool_,
        "byte": pa.int8,
        "date": pa.date32,
        "double": pa.float64,
        "float": pa.float32,
        "integer": pa.int32,
        "long": pa.int64,
        "short": pa.int16,
        "string": pa.large_string if large else pa.string,
        "timestamp": lambda: pa.timestamp("us", "UTC"),
        "timestamp_ntz": lambda: pa.timestamp("us"),
        "void": pa.null,
    }
    return makers[name]()


def _arrow_field(field: Field, *, large: bool) -> pa.Field[Any]:
    metadata = {key: value if isinstance(value, str) else _dump(value) for key, value in field.metadata.items()}
    return _named(field.name, _arrow_type(field.type, large=large), field.nullable, metadata)


def _from_arrow_field(field: pa.Field[Any]) -> Field:
    metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    return Field(field.name, _from_pyarrow(field.type), nullable=field.nullable, metadata=metadata)


def _from_arrow_type(data_type: ArrowSchemaExportable) -> DataType:
    import pyarrow as pa

    if isinstance(data_type, pa.DataType):
        return _from_pyarrow(data_type)
    if isinstance(data_type, pa.Schema):
        return Schema.from_arrow(cast("ArrowSchemaExportable", data_type))
    return _from_pyarrow(pa.field(cast("Any", data_type)).type)


def _from_pyarrow(kind: Any) -> DataType:
    """Return the Delta type for a pyarrow type; dictionaries, views and large variants become their plain types."""
    import pyarrow as pa

    is_ = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _from_pyarrow(kind.storage_type)
    if is_.is_dictionary(kind) or is_.is_run_end_encoded(kind):
        return _from_pyarrow(kind.value_type)
    if is_.is_struct(kind):
        return StructType([_from_arrow_field(cast("Any", kind).field(i)) for i in range(kind.num_fields)])
    if is_.is_map(kind):
        key, item = _from_pyarrow(kind.key_type), _from_pyarrow(kind.item_type)
        return MapType(key, item, value_contains_null=kind.item_field.nullable)
    if _is_list(kind):
        return ArrayType(_from_pyarrow(kind.value_type), contains_null=kind.value_field.nullable)
    return PrimitiveType(_primitive_name(kind))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(kind) for test in tests)


# Unsigned integers map to the signed type of the same width, as in deltalake: values are checked when written.
_FROM_ARROW = {
    "bool": "boolean",
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "uint8": "byte",
    "uint16": "short",
    "uint32": "integer",
    "uint64": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
    "null": "void",
}


def _primitive_name(kind: Any) -> str:
    import pyarrow as pa

    if (name := _FROM_ARROW.get(str(kind))) is not None:
        return name
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= _MAX_PRECISION:
        return f"decimal({kind.precision},{kind.scale})"
    message = f"Delta Lake has no type for Arrow's {kind}"
    raise InvalidArgumentError(message)
