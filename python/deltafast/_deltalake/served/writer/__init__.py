"""`deltalake.writer`."""

from deltafast._deltalake.table import convert_to_deltalake, write_deltalake
from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]
