"""`deltalake.writer._conversion`: what other libraries import of it."""

from deltafast._deltalake.install import convert_arrow_schema as _convert_arro3_schema_to_delta

__all__ = ["_convert_arro3_schema_to_delta"]
