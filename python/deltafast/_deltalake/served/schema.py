"""`deltalake.schema`."""

from deltafast._deltalake.schema import Field
from deltafast.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    Schema,
    StructType,
    VariantType,
)

__all__ = ["ArrayType", "DataType", "Field", "MapType", "PrimitiveType", "Schema", "StructType", "VariantType"]
