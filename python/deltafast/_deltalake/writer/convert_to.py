"""`deltalake.writer.convert_to`."""

from deltafast.dropin_table import convert_to_deltalake

__all__ = ["convert_to_deltalake"]
