"""Names of types in Spark's SQL, as Spark shows and stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltafast.schema import ArrayType, MapType, PrimitiveType, StructType, VariantType

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast.schema import DataType

__all__ = ["type_name"]

_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def type_name(kind: DataType, field_name: Callable[[str], str] = str) -> str:
    """Return the name of a type.

    Args:
        kind: The type.
        field_name: Returns the name of a field as it is shown; unchanged if not given.
    """
    match kind:
        case PrimitiveType():
            return _NAMES.get(kind.type, kind.type)
        case ArrayType():
            return f"array<{type_name(kind.element_type, field_name)}>"
        case MapType():
            return f"map<{type_name(kind.key_type, field_name)},{type_name(kind.value_type, field_name)}>"
        case StructType():
            fields = (f"{field_name(field.name)}:{type_name(field.type, field_name)}" for field in kind.fields)
            return f"struct<{','.join(fields)}>"
        case VariantType():
            return "variant"
