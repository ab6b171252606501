"""`deltalake.query`."""

from deltafast._deltalake.query import QueryBuilder

__all__ = ["QueryBuilder"]
