"""`deltalake.writer.writer`."""

from deltafast._deltalake.table import write_deltalake
from deltafast.writer import try_get_table_and_table_uri

__all__ = ["try_get_table_and_table_uri", "write_deltalake"]
