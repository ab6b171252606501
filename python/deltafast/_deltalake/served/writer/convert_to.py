"""`deltalake.writer.convert_to`."""

from deltafast._deltalake.table import convert_to_deltalake

__all__ = ["convert_to_deltalake"]
