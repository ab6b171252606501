"""`deltalake.writer`."""

from deltafast.conversion import convert_to_deltalake
from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]
