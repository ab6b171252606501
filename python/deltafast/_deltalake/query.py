"""`deltalake.query`."""

from deltafast.dropin_query import QueryBuilder

__all__ = ["QueryBuilder"]
