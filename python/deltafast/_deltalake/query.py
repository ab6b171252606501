"""`deltalake.query`."""

from deltafast.query import ViewQueryBuilder as QueryBuilder

__all__ = ["QueryBuilder"]
