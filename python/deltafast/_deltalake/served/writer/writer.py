"""`deltalake.writer.writer`."""

from deltafast._deltalake.lookup import try_get_table_and_table_uri
from deltafast._deltalake.table import write_deltalake

__all__ = ["try_get_table_and_table_uri", "write_deltalake"]
