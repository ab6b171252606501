"""`deltalake.writer.properties`."""

from deltafast._deltalake.properties import Compression, Encoding
from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = ["BloomFilterProperties", "ColumnProperties", "Compression", "Encoding", "WriterProperties"]
