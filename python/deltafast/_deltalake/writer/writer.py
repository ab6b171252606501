"""`deltalake.writer.writer`."""

from deltafast.writer import try_get_table_and_table_uri, write_deltalake

__all__ = ["try_get_table_and_table_uri", "write_deltalake"]
