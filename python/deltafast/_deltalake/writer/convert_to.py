"""`deltalake.writer.convert_to`."""

from deltafast.conversion import convert_to_deltalake

__all__ = ["convert_to_deltalake"]
