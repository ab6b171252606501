"""`deltalake.writer`."""

from deltafast.conversion import convert_to_deltalake
from deltafast.dropin_table import write_deltalake
from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]
