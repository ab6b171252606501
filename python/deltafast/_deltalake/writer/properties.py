"""`deltalake.writer.properties`."""

from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = ["BloomFilterProperties", "ColumnProperties", "WriterProperties"]
