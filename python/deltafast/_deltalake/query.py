"""`deltalake.query`."""

from deltafast.query import QueryBuilder

__all__ = ["QueryBuilder"]
