"""`deltalake.writer._utils`."""

from deltafast._deltalake.lookup import try_get_deltatable, try_get_table_and_table_uri

__all__ = ["try_get_deltatable", "try_get_table_and_table_uri"]
